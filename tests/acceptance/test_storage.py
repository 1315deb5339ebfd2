"""Sessions that are killed on one machine and go on on another: with other results, another cache, and a storage."""

from __future__ import annotations

import contextlib
import inspect
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.results.storage import ObjectStore
from tests import remembering_agent
from tests.inner_sessions import UNUSED
from tests.remembering_agent import turns

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

# Put behind the agent, this ends its session at the end of the third turn, when the storage has the second.
DIES = """
import os, signal, time
from pytest_evocode.results.storage import AttemptCopy
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.storage import ObjectStore

def end_of_turn(task, index):
    while index == 3 and (HERE / "die").exists():
        for path in (HERE / "first").glob(f"{task}/harbor_jobs/*/*/*"):
            copy = AttemptCopy(ObjectStore((HERE / "die").read_text()), AttemptDirectory(path))
            stored = next(copy.manifests(), None)
            names = stored.files if stored is not None else {}
            if all(f"steps/round-{number}/round.json" in names for number in (1, 2)) and stored.last_turn == 2:
                os.killpg(0, signal.SIGKILL)
        time.sleep(0.05)
"""
LAST = {3: 'grep -qx "[[]1, 2, 3]" said && [ $(wc -l < log.txt) = 3 ] && echo 1 > /logs/verifier/reward.txt'}


def where(machine: str, storage: str) -> tuple[str, ...]:
    """The arguments of a session on a machine."""
    return (f"--evocode-results={machine}", "-o", f"evocode_storage={storage}", "tasks")


def play_until_killed(pytester: pytest.Pytester, machine: str, storage: str, env: str) -> None:
    """Run a session on a machine, in a process group of its own, which it kills."""
    of_session = (*UNUSED, f"--evocode-agent={remembering_agent.NAME}", f"--evocode-env={env}")
    killed = subprocess.run(
        [sys.executable, "-m", "pytest", *of_session, *where(machine, storage)],
        cwd=pytester.path,
        env={**os.environ, "EVOCODE_CACHE": str(pytester.path / f"cache-of-{machine}")},
        capture_output=True,
        text=True,
        timeout=300,
        start_new_session=True,
        check=False,
    )
    assert killed.returncode == -signal.SIGKILL, killed.stdout + killed.stderr


def kill_and_go_on(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    write_task: WriteTask,
    play_tasks: RunTasks,
    storage: str,
    env: str,
) -> str:
    """Have a session killed in round 3 go on on another machine, and return what that prints."""
    write_task("a", 3, test=LAST)
    pytester.makeconftest(inspect.getsource(remembering_agent) + DIES)
    die = pytester.path / "die"
    die.write_text(storage)
    play_until_killed(pytester, "first", storage, env)
    die.unlink()
    (run,) = (pytester.path / "first" / "runs").glob("*.json")
    if env == "docker":
        lose_images(pytester.path / "first")
    monkeypatch.setenv("EVOCODE_CACHE", str(pytester.path / "cache-of-second"))
    resumed = (f"--evocode-resume={run.stem}", *where("second", storage))
    done = play_tasks(*resumed, agent=remembering_agent.NAME, env=env)
    assert done.outcomes == {"passed": 3}, done.text
    assert f"resuming {run.stem}: 2 turns kept, 1 to go" in done.text
    assert turns(pytester.path) == [1, 2, 3, 3]
    for number in (1, 2):
        first, second = (
            json.loads(path.read_text())
            for machine in ("first", "second")
            for path in (pytester.path / machine).glob(f"a/harbor_jobs/*/*/*/steps/round-{number}/round.json")
        )
        for record in (first, second):
            del record["verdict"]["flags"]  # What is said of artifacts comes after the verdict, and the upload.
        assert first == second
    return done.text


def lose_images(results: Path) -> None:
    """Remove from the one Docker engine the snapshots that another machine would not have."""
    from pytest_evocode.environments.docker.engine import DockerEngine, connect

    (state,) = results.glob("a/harbor_jobs/*/*/*/state.json")
    DockerEngine().close()  # Removes what the killed session left, but for the snapshots.
    with contextlib.closing(connect()) as client:
        for turn in json.loads(state.read_text())["turns"]:
            client.remove_image(turn["snapshot"], force=True)


@pytest.mark.docker
@pytest.mark.nightly
def test_a_killed_session_in_docker_goes_on_on_another_machine(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, play_tasks: RunTasks
) -> None:
    kill_and_go_on(pytester, monkeypatch, write_task, play_tasks, str(pytester.path / "shared"), "docker")


@pytest.mark.nightly
def test_a_killed_session_goes_on_from_a_bucket(
    pytester: pytest.Pytester,
    monkeypatch: pytest.MonkeyPatch,
    write_task: WriteTask,
    play_tasks: RunTasks,
    bucket: str,
) -> None:
    shown = kill_and_go_on(pytester, monkeypatch, write_task, play_tasks, bucket, "sandbox")
    stored = [ObjectStore(bucket).read(name) or b"" for name in ObjectStore(bucket).tree("")]
    written = [path.read_bytes() for path in (pytester.path / "second").rglob("*") if path.is_file()]
    assert stored
    assert all(b"open-sesame-0002" not in each for each in (*stored, *written, shown.encode()))


@pytest.mark.parametrize(
    ("storage", "message"),
    [
        ("{here}/file/below", "the storage {here}/file/below: it cannot write runs/"),
        ("nothing://known", "the storage nothing://known: Protocol not known: nothing"),
        ("ftp://127.0.0.1:1/below", "the storage ftp://127.0.0.1:1/below cannot be opened: ConnectionRefusedError"),
    ],
)
@pytest.mark.matrix
def test_a_storage_that_cannot_be_had_is_one_message(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, storage: str, message: str
) -> None:
    write_task("a", 1)
    pytester.makeconftest(inspect.getsource(remembering_agent))
    (pytester.path / "file").touch()
    ended = run_tasks(*where("first", storage.format(here=pytester.path)), agent=remembering_agent.NAME)
    assert ended.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "Traceback" not in ended.text
    said = [line for line in ended.text.splitlines() if "the storage" in line]
    assert len(said) == 1
    assert said[0].startswith(f"ERROR: evocode_storage: {message.format(here=pytester.path)}")
