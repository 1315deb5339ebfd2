"""A run that is killed again and again at any moment ends as one that never was, and leaves nothing."""

from __future__ import annotations

import inspect
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.results.directory import AttemptDirectory
from tests import remembering_agent

ROUNDS = 10
KILLS = 20
# Line 4 never counts, so that there are failing and passing rounds to be the same.
TEST = """
said="[$(seq -s ', ' {index})]"
[ "$(cat said)" = "$said" ] && echo CASE_RESULT case_id=said status=success || echo CASE_RESULT case_id=said status=fail
reward=1
for i in $(seq {index}); do
  if [ $i != 4 ] && grep -qx "line-$i" log.txt; then status=success; else status=fail; reward=0; fi
  echo "CASE_RESULT case_id=line-$i status=$status"
done
echo $reward > /logs/verifier/reward.txt
"""


def write_task(directory: Path) -> None:
    steps = [f'[[steps]]\nname = "round-{index}"\n' for index in range(1, ROUNDS + 1)]
    contents = {
        "task.toml": '[environment]\nnetwork_mode = "no-network"\n' + "".join(steps),
        "environment/Dockerfile": "FROM python:3.11-slim-bookworm\nWORKDIR /app\n",
    }
    for index in range(1, ROUNDS + 1):
        contents[f"steps/round-{index}/instruction.md"] = "Go on."
        contents[f"steps/round-{index}/tests/test.sh"] = TEST.format(index=index)
    for name, text in contents.items():
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(text)


def session(directory: Path, env: str, *arguments: str) -> subprocess.Popen[bytes]:
    argv = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--evocode-agent={remembering_agent.NAME}"]
    argv += [f"--evocode-env={env}", *arguments, "tasks"]
    with (directory / "output.txt").open("wb") as output:
        return subprocess.Popen(argv, cwd=directory, stdout=output, stderr=output, start_new_session=True)


def verdicts(directory: Path) -> list[Any]:
    """What counts of every round of the one attempt there is."""
    (attempt,) = directory.glob("evocode-results/a/harbor_jobs/*/*/a__a1")
    record = AttemptDirectory(attempt).read_attempt()
    assert record is not None
    return [(each.outcome, each.verdict and (each.verdict.rewards, each.verdict.cases)) for each in record.rounds]


def recorded(directory: Path) -> set[int]:
    """The rounds with a record."""
    found = directory.glob("evocode-results/a/harbor_jobs/*/*/a__a1/steps/round-*/round.json")
    return {json.loads(path.read_text())["index"] for path in found}


def left_over() -> set[str]:
    """Whatever ``evocode clean`` knows of."""
    argv = [sys.executable, "-c", "from pytest_evocode.cli import main; main()", "clean", "--dry-run", "--kept"]
    said = subprocess.run(argv, capture_output=True, text=True, check=True).stdout.splitlines()
    return {line for line in said if line.startswith("would remove ")}


def traces(cache: Path) -> dict[str, list[str]]:
    """What is left of our sessions: processes, mounts, files of sandboxes."""
    return {
        "mounts": [line for line in Path("/proc/mounts").read_text().splitlines() if str(cache) in line],
        "sandboxes": sorted(path.name for path in cache.glob("sandboxes*/*") if path.is_dir()),
        "processes": [line for line in _processes() if str(cache) in line],
    }


def _processes() -> list[str]:
    found = []
    for entry in os.scandir("/proc"):
        if entry.name.isdigit():
            try:
                found.append(Path(entry.path, "cmdline").read_bytes().replace(b"\0", b" ").decode("utf-8", "replace"))
            except OSError:
                continue
    return found


@pytest.mark.nightly
@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
def test_a_run_that_is_killed_at_any_moment_ends_as_if_it_had_not_been(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, env: str
) -> None:
    cache = tmp_path / "cache"  # Others keep what they need in theirs.
    monkeypatch.setenv("EVOCODE_CACHE", str(cache))
    for name in ("undisturbed", "killed"):
        write_task(tmp_path / name / "tasks/a")
        (tmp_path / name / "conftest.py").write_text(inspect.getsource(remembering_agent))
        (tmp_path / name / "pytest.ini").write_text("[pytest]\n")
    killed = tmp_path / "killed"
    others = left_over()
    started = time.monotonic()
    assert session(tmp_path / "undisturbed", env).wait(300) == 1
    whole = time.monotonic() - started

    moments = random.Random(4)
    resume: tuple[str, ...] = ()
    for _ in range(KILLS):
        before = recorded(killed)
        running = session(killed, env, *resume)
        try:
            running.wait(moments.uniform(0.1, 0.8) * whole)
        except subprocess.TimeoutExpired:
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        assert before <= recorded(killed)
        # No record, whole or not, may be anything but a record.
        for path in killed.glob("evocode-results/**/*.json"):
            json.loads(path.read_text())
        if list(killed.glob("evocode-results/runs/*.json")):
            resume = ("--evocode-resume",)
    assert session(killed, env, *resume).wait(300) == 1, (killed / "output.txt").read_text()
    assert verdicts(killed) == verdicts(tmp_path / "undisturbed")
    # A turn is taken again only when it was in flight, so never more often than there were kills.
    taken = remembering_agent.turns(killed)
    assert set(taken) == set(range(1, ROUNDS + 1))
    assert taken == sorted(taken)
    assert len(taken) <= ROUNDS + KILLS
    assert left_over() <= others
    assert traces(cache) == {"mounts": [], "sandboxes": [], "processes": []}
