"""Harbor and pytest-evocode side by side: ``python -m benchmarks.side_by_side --harbor PATH``, from the project's root.

The oracle of each plays public tasks of three rounds in Docker, one task at a time, each harness with its defaults:
``harbor run --agent oracle`` and ``pytest --evocode-agent=oracle``. Three times, with the one or the other first in
turn: cold, with no image of the task and an empty cache of ours, and then warm. "Bare" are ``solve.sh`` and ``test.sh``
of every round by ``docker exec`` in one container of the task's image; the harness time of a round is what a warm run
takes beyond that, over the number of rounds. Seconds are of whole processes, from start to end.

Harbor is the program at PATH, of an environment of its own. Tasks are taken from ``--repositories DIR``, as in
:mod:`benchmarks.corpora`; Docker has to have their base image. Where they go without the network they are given it, in
both harnesses alike, because Harbor refuses them on kernels that lack what its proxy needs.

Nothing else may run on the machine: before each pair it is looked at for a second, and where more than 1.5 cores work
without us, no ratio is printed.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import tempfile
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.corpora import find_repository, read_manifest, write_out
from benchmarks.material import run_pytest, working_cores
from pytest_evocode.errors import TaskWarning
from pytest_evocode.report.tables import aligned
from pytest_evocode.tasks import Task, load_task

CORPUS = "jackchen03/hcjackchen-tbench-multiturn"
TASKS = (
    "crash-recovery-replay-pivot",
    "heap-tuple-writer-byte-exact-pivot",
    "jbd2-journal-replay-consistent-pivot",
    "price-time-priority-worker-violation-pivot",
    "session-feature-reader-writer-pivot",
)
HARNESSES = ("harbor", "evocode")
PAIRS, QUIET, GOAL = 3, 1.5, 0.5


def measure(task: Task, harbor: Path, scratch: Path) -> tuple[dict[str, list[float]], float]:
    """Return the seconds of all runs of a task by their names, and the most cores that were busy without us."""
    seconds: dict[str, list[float]] = {}
    busiest, place = 0.0, task.directory
    for pair in range(PAIRS):
        for harness in HARNESSES if pair % 2 else reversed(HARNESSES):
            busiest = max(busiest, working_cores())
            with _no_images_left(), tempfile.TemporaryDirectory(dir=scratch) as directory:
                for state in ("cold", "warm"):
                    run = _harbor(harbor, place, Path(directory)) if harness == "harbor" else _evocode(place, directory)
                    seconds.setdefault(f"{harness}, {state}", []).append(run)
        with _no_images_left():
            seconds.setdefault("bare", []).append(_bare(task))
    return seconds, busiest


def _harbor(program: Path, task: Path, directory: Path) -> float:
    options = ["--path", str(task), "--jobs-dir", str(directory / "jobs"), "--agent", "oracle", "--quiet", "--yes"]
    # Or else it asks for a list of prices at its end, which takes 8 s where that cannot be had.
    env = {**os.environ, "LITELLM_LOCAL_MODEL_COST_MAP": "True"}
    started = time.perf_counter()
    done = subprocess.run(
        [program, "run", *options], cwd=directory, env=env, capture_output=True, text=True, check=False
    )
    seconds = time.perf_counter() - started
    results = sorted((directory / "jobs").glob("*/*/result.json"))
    rewards = [json.loads(path.read_text()).get("verifier_result") for path in results]
    if done.returncode or any((reward or {}).get("rewards") != {"reward": 1.0} for reward in rewards):
        raise RuntimeError(f"{task.name} by Harbor: {rewards}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return seconds


def _evocode(task: Path, directory: str) -> float:
    env = {"EVOCODE_CACHE": f"{directory}/cache"}
    options = ("--evocode-agent=oracle", "--evocode-env=docker", f"--evocode-results={directory}/results")
    return run_pytest(task.parent, *options, task.name, env=env)  # It fails where a round does.


def _bare(task: Task) -> float:
    """Return the seconds of all commands of a task, in one container; copying them in does not count."""
    directory = task.directory
    image = _docker("build", "--quiet", str(directory / "environment"))
    container = _docker("run", "--detach", "--init", image, "sleep", "infinity")
    seconds = 0.0
    try:
        for round_ in task.rounds:
            for name, script in (("solution", "/solution/solve.sh"), ("tests", "/tests/test.sh")):
                _docker("exec", container, "sh", "-c", f"rm -rf /{name}; mkdir -p /logs/verifier")
                _docker("cp", str(directory / "steps" / round_.name / name), f"{container}:/{name}")
                started = time.perf_counter()
                _docker("exec", container, "bash", script)
                seconds += time.perf_counter() - started
    finally:
        _docker("rm", "--force", container)
    return seconds


@contextmanager
def _no_images_left() -> Iterator[None]:
    """Remove the images that come to be in the meantime, and with them what building them anew would reuse."""
    before = {*_docker("image", "ls", "--all", "--quiet", "--no-trunc").split()}
    yield
    for _ in range(2):  # An image that another is made from can be removed only after that.
        left = {*_docker("image", "ls", "--all", "--quiet", "--no-trunc").split()} - before
        if left:
            subprocess.run(["docker", "image", "rm", "--force", *left], capture_output=True, check=False)


def _docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"docker {arguments[0]} failed:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout.strip()


def _rows(name: str, seconds: dict[str, list[float]], rounds: int, quiet: bool) -> Iterator[tuple[str, ...]]:
    medians = {run: statistics.median(each) for run, each in seconds.items()}
    bare = medians["bare"]
    for state in ("cold", "warm"):
        theirs, ours = (medians[f"{harness}, {state}"] for harness in HARNESSES)
        per_round = [f"{(each - bare) / rounds:.2f}" for each in (theirs, ours)] if state == "warm" else ["", ""]
        share = f"{ours / theirs:.2f}" if quiet else "not quiet"
        yield name, state, f"{bare:.1f}", f"{theirs:.1f}", f"{ours:.1f}", share, *per_round


def main() -> None:
    """Print the table, and write all seconds to ``side_by_side.json``."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--harbor", type=Path, required=True, metavar="PATH", help="Harbor's program")
    parser.add_argument("--repositories", type=Path, default=Path("benchmark-corpora"), metavar="DIR")
    parser.add_argument("--json", type=Path, default=Path("benchmark-results"), help="directory for the JSON file")
    options = parser.parse_args()
    corpus = next(each for each in read_manifest() if each.repository == CORPUS)
    harbor = options.harbor.absolute()
    version = subprocess.run([harbor, "--version"], capture_output=True, text=True, check=True).stdout.strip()
    head = ("task", "", "bare, s", "Harbor, s", "evocode, s", f"share (goal {GOAL:g})", "Harbor, s a round", "evocode")
    table: list[tuple[str, ...]] = [head]
    measured = {}
    with tempfile.TemporaryDirectory(prefix="evocode-side-by-side-") as directory:
        scratch = Path(directory)
        write_out(find_repository(corpus, options.repositories.resolve()), corpus.commit, scratch / "corpus")
        for name in TASKS:
            task = scratch / "corpus" / name
            toml = (task / "task.toml").read_text()
            (task / "task.toml").write_text(toml.replace("allow_internet = false", "allow_internet = true"))
            with warnings.catch_warnings(action="ignore", category=TaskWarning):
                loaded = load_task(task)
            seconds, busiest = measure(loaded, harbor, scratch)
            table += _rows(name, seconds, len(loaded.rounds), busiest <= QUIET)
            measured[name] = {"seconds": seconds, "busy cores without us": round(busiest, 2)}
            print(f"{name}: at most {busiest:.2f} cores were busy without us", flush=True)
    print(f"\nHarbor {version}, {os.cpu_count()} cores, medians of {PAIRS} pairs\n")
    print("\n".join(aligned(table, left=(0, 1))))
    options.json.mkdir(parents=True, exist_ok=True)
    (options.json / "side_by_side.json").write_text(json.dumps({"harbor": version, "tasks": measured}, indent=1) + "\n")


if __name__ == "__main__":
    main()
