"""Sessions side by side that share one cache, killed at random: nothing is lost, all start, and nothing is left."""

from __future__ import annotations

import contextlib
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from pytest_evocode.environments.docker import engine as docker_engine
from pytest_evocode.environments.docker.engine import OWNER, connect
from pytest_evocode.environments.owners import Owner
from pytest_evocode.results.loading import Results, load_results
from tests.integrity.host_state import processes_of
from tests.waiting import wait_until

KILLS = int(os.environ.get("EVOCODE_TEST_KILLS", "200"))
SEED = int(os.environ.get("EVOCODE_TEST_SEED", time.time_ns() % 10**6))
_FIRST = 8.0  # seconds that a session is thought to take until one has shown
_ENDING = 120.0  # seconds for what ends by itself on a busy machine
_ASKED = 600.0  # seconds for a session that nobody kills
_WRONG = re.compile(
    r"^.*(Traceback|INTERNALERROR|\bERROR\b|\berror:|damaged|[1-9]\d* (?:failed|errors?)\b).*$", re.MULTILINE
)
SERVICES = """\
services:
  store: {image: python:3.11-slim-bookworm, command: [sleep, infinity], init: true, volumes: ["kept:/var/lib/kept"]}
volumes: {kept: {}}
"""
NATIVE = "def test_{index}(workspace):\n    assert 'line-{index}' in workspace.run('cat log.txt').stdout\n"
SCRIPT = "if [ $(tail -n1 log.txt) = line-{index} ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt\n"


@dataclass
class Lane:
    """One user, who starts a session again whenever it was killed."""

    directory: Path
    task: str
    env: str
    results: str
    dice: random.Random
    kills: int
    owners: list[str] = field(default_factory=list)
    """All sessions that were started."""
    known: dict[tuple[str, int], str] = field(default_factory=dict)
    """The outcomes of the rounds that have a verdict."""
    stopped: bool = False
    """Whether another one has failed."""
    length: float = _FIRST
    """Seconds that the last session took that was not killed."""

    def run(self) -> None:
        """Start sessions until enough of them were killed, and one that ends."""
        left, resumed = self.kills, False
        while left and not self.stopped:
            if self.session(resumed, self.dice.uniform(0.2, 1.1 * self.length)):
                left -= 1
                resumed = self.has_begun() and self.dice.random() < 0.8
            else:
                resumed = False
        assert self.stopped or not self.session(self.has_begun())

    def session(self, resumed: bool, seconds: float | None = None) -> bool:
        """Run one, and kill it after so many seconds; return whether it was killed."""
        argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--evocode-agent=oracle"]
        argv += [f"--evocode-env={self.env}", f"--evocode-results={self.results}", f"tasks/{self.task}"]
        argv += ["--evocode-resume"] if resumed else []
        begun = time.monotonic()
        with (self.directory / f"output-{self.task}.txt").open("w+") as output:
            running = subprocess.Popen(
                argv, cwd=self.directory, env=environment(self.directory), stdin=subprocess.DEVNULL,
                stdout=output, stderr=output, start_new_session=True,
            )  # fmt: skip
            self.owners.append(str(Owner.of(running.pid)))
            with contextlib.suppress(subprocess.TimeoutExpired):
                running.wait(_ASKED if seconds is None else seconds)
            killed = running.poll() is None
            if killed:  # Of one that has ended nothing is killed, so that what it left is found.
                os.killpg(running.pid, signal.SIGKILL)
            status = running.wait()
            output.seek(0)
            printed = output.read()
        # Until one has shown how long they take, moments come later and later.
        self.length = self.length * 1.1 if killed else time.monotonic() - begun
        told = f"{self.task} {argv[-1]} killed={killed} after {seconds}: exit {status}\n{printed}"
        assert killed or status == 0, told
        assert not _WRONG.search(printed), told
        self.look()
        return killed

    def has_begun(self) -> bool:
        """Tell whether there is a run of this task that can be resumed."""
        return any(attempt.record.task == self.task for attempt in self.load().attempts)

    def load(self) -> Results:
        """Read the results directory, into which others may write meanwhile."""
        path = self.directory / self.results
        path.mkdir(exist_ok=True)
        return load_results([path])

    def look(self) -> None:
        """See that all records can be read, and that no verdict that was there is gone or another one."""
        results = self.load()
        assert results.problems == []
        found: dict[tuple[str, int], str] = {
            (str(attempt.path), round_.index): round_.outcome
            for attempt in results.attempts
            if attempt.record.task == self.task
            for round_ in attempt.record.rounds
            if round_.verdict is not None
        }
        assert self.known.items() <= found.items(), {*self.known.items()} - {*found.items()}
        assert {*found.values()} <= {"passed"}
        self.known = found


def environment(directory: Path) -> dict[str, str]:
    """The variables of all that is started, by which its processes are known."""
    own = {"EVOCODE_CACHE": str(directory / "cache"), "TMPDIR": str(directory / "scratch")}
    return {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")} | own


@pytest.fixture
def directory(tmp_path: Path) -> Iterator[Path]:
    """A directory with the tasks: in the sandbox as script and native, in Docker without and with services."""
    for task in ("a", "b", "c", "d"):
        native = task == "b"
        image = f"FROM python:3.11-slim-bookworm\nWORKDIR /app\nRUN echo {tmp_path}{task}\n"
        files = {
            "task.toml": '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n',
            "environment/Dockerfile": image,
        }
        if task == "d":
            files["environment/docker-compose.yaml"] = SERVICES
        for index in (1, 2):
            step = f"steps/round-{index}"
            suite = "test_it.py" if native else "test.sh"
            files[f"{step}/tests/{suite}"] = (NATIVE if native else SCRIPT).replace("{index}", str(index))
            files[f"{step}/instruction.md"] = "Go on.\n"
            files[f"{step}/solution/solve.sh"] = f"echo line-{index} >> log.txt\n"
        for name, text in files.items():
            path = tmp_path / "tasks" / task / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    for name in ("cache", "scratch"):
        (tmp_path / name).mkdir()
    yield tmp_path
    with contextlib.suppress(Exception), contextlib.closing(connect()) as client:
        for image in client.images(name="evocode-task"):
            said = client.history(image["Id"])  # type: ignore[no-untyped-call]
            if any(str(tmp_path) in layer["CreatedBy"] for layer in said):
                client.remove_image(image["Id"], force=True)


@pytest.mark.docker
@pytest.mark.nightly
@pytest.mark.slow("200 sessions, and each of them is killed")
def test_nothing_is_lost_or_left_of_sessions_that_are_killed_at_random(directory: Path) -> None:
    print(f"EVOCODE_TEST_SEED={SEED}")
    dice = random.Random(SEED)
    lanes = [
        Lane(directory, task, env, results, random.Random(dice.random()), KILLS // 4)
        for task, env, results in (
            ("a", "sandbox", "shared"), ("b", "sandbox", "shared"), ("c", "docker", "of-c"), ("d", "docker", "of-d")
        )
    ]  # fmt: skip
    with ThreadPoolExecutor() as pool:
        for each in as_completed([pool.submit(lane.run) for lane in lanes]):
            for lane in lanes:
                lane.stopped |= each.exception() is not None
            each.result()
    owners = {owner for lane in lanes for owner in lane.owners}
    for lane in lanes:
        assert lane.known
        shutil.rmtree(directory / lane.results, ignore_errors=True)  # Snapshots are kept for it.
    wait_until(lambda: not left_of(directory, owners)["processes"], lambda: left_of(directory, owners), seconds=_ENDING)
    clean = [sys.executable, "-c", "from pytest_evocode.cli import main; main()", "clean"]
    cleaned = subprocess.run(clean, cwd=directory, env=environment(directory), capture_output=True, text=True)
    assert cleaned.returncode == 0, cleaned.stdout + cleaned.stderr
    assert not any(left_of(directory, owners).values()), left_of(directory, owners)


def left_of(directory: Path, owners: set[str]) -> Mapping[str, list[str]]:
    """Return what is there of sessions: files, mounts, processes, and what Docker has."""
    cache = directory / "cache"
    kept = [*cache.glob("sandboxes/*/"), *cache.glob("sandboxes-*/*"), *cache.glob("sandbox-snapshots/*/")]
    kept += [path for path in (directory / "scratch").iterdir() if not path.name.startswith("pytest-of-")]
    mounts = [line for line in Path("/proc/self/mountinfo").read_text().splitlines() if str(directory) in line]
    found = {"files": [str(path) for path in kept], "mounts": mounts, "processes": processes_of(directory)}
    with contextlib.closing(connect()) as client:
        for kind, entries in docker_engine.find_docker_leftovers(client, needed_too=True).items():
            found[kind] = [each["Id"] for each in entries if each["Labels"].get(OWNER) in owners]
    return found
