"""The slot ends with the suite: a fork is removed behind the record."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.plugin.live import status_lines
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.suites import clearing, left_forks
from pytest_evocode.trial.suites.clearing import MOST_FORKS, Clearing
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
FindProcesses = Callable[[str], list[int]]


@pytest.fixture
def removal(monkeypatch: pytest.MonkeyPatch) -> Iterator[threading.Event]:
    """No fork is removed before this is set."""
    may_end, stop = threading.Event(), LeftFork.stop

    def wait_and_stop(left: LeftFork) -> None:
        assert may_end.wait(300)
        stop(left)

    monkeypatch.setattr(LeftFork, "stop", wait_and_stop)
    yield may_end
    may_end.set()


@pytest.fixture
def directory(tmp_path: Path) -> AttemptDirectory:
    """Where an attempt's results go."""
    return AttemptDirectory(tmp_path / "attempt")


def flags_of(record: RoundRecord) -> tuple[str, ...]:
    """The flags of a round's verdict."""
    assert record.verdict is not None
    return record.verdict.flags


def test_suites_run_and_records_are_told_while_forks_are_removed(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], removal: threading.Event, directory: AttemptDirectory
) -> None:
    options = TrialOptions(verifiers=1)
    with Trial(make_task(PASS, PASS, PASS), scripted(), engine, directory=directory, options=options) as trial:
        assert [trial.wait(index).outcome for index in (1, 2, 3)] == ["passed"] * 3
        assert sorted(directory.read_rounds(["round-1", "round-2", "round-3"])) == ["round-1", "round-2", "round-3"]
        removal.set()


def test_nothing_of_a_suite_runs_while_its_fork_waits_to_be_removed(
    engine: Engine,
    make_task: MakeTask,
    scripted: type[Scripted],
    removal: threading.Event,
    moment: str,
    processes: FindProcesses,
) -> None:
    suite = f"setsid sleep {moment} & {PASS}"
    with Trial(make_task(suite), scripted(), engine) as trial:
        assert trial.wait(1).outcome == "passed"
        assert processes(moment) == []
        removal.set()


def test_the_end_of_an_attempt_waits_until_no_fork_is_left(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], monkeypatch: pytest.MonkeyPatch
) -> None:
    removed: list[int] = []
    stop = LeftFork.stop

    def note(left: LeftFork) -> None:
        stop(left)
        removed.append(left.round.index)

    monkeypatch.setattr(LeftFork, "stop", note)
    with Trial(make_task(PASS, PASS), scripted(), engine) as trial:
        trial.wait(2)
    assert sorted(removed) == [1, 2]
    trial.close()


def test_a_fork_that_cannot_be_silenced_is_removed_before_its_slot_is_free(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    done: list[str] = []

    def fail(fork: object) -> None:
        raise EnvironmentFault("PID 1 does not answer")

    def told(trial: Trial) -> list[RoundRecord]:
        records = finish(trial)
        done.append("told")
        return records

    def note(left: LeftFork) -> None:
        done.append("removed")
        stop(left)

    stop = LeftFork.stop
    monkeypatch.setattr(SandboxEnvironment, "kill_processes", fail)
    monkeypatch.setattr(LeftFork, "stop", note)
    (record,) = told(Trial(make_task(PASS), scripted(), engine))
    assert record.outcome == "passed"
    assert done[0] == "removed"


def test_a_fault_while_artifacts_are_collected_changes_no_verdict_and_is_said(
    engine: Engine,
    make_task: MakeTask,
    scripted: type[Scripted],
    finish: Finish,
    directory: AttemptDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise EnvironmentFault("no space left")

    monkeypatch.setattr(left_forks, "collect_artifacts", fail)
    (told,) = finish(Trial(make_task(PASS), scripted(), engine, directory=directory))
    attempt = directory.read_attempt()
    assert attempt is not None
    said = ("artifacts not collected: no space left",)
    assert (told.outcome, flags_of(told)) == ("passed", said)
    assert flags_of(directory.read_rounds(["round-1"])["round-1"]) == flags_of(attempt.rounds[0]) == said


def test_artifacts_that_fill_the_disk_are_not_collected_at_all(
    engine: Engine,
    make_task: MakeTask,
    scripted: type[Scripted],
    finish: Finish,
    directory: AttemptDirectory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fill(fork: object, round_: object, target: Path) -> tuple[str, ...]:
        target.mkdir(parents=True)
        (target / "large").write_text("as much as there was room for")
        return ("artifacts/large: No space left on device",)

    monkeypatch.setattr(left_forks, "collect_artifacts", fill)
    (told,) = finish(Trial(make_task(PASS), scripted(), engine, directory=directory))
    assert told.outcome == "passed"
    (flag,) = flags_of(directory.read_rounds(["round-1"])["round-1"])
    assert flag.startswith("artifacts not collected: ")
    assert not directory.artifacts("round-1").exists()
    assert not directory.gathered_artifacts("round-1").exists()


def test_artifacts_are_in_their_place_when_their_record_is_told(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], directory: AttemptDirectory
) -> None:
    agent = scripted("touch /logs/artifacts/file")
    with Trial(make_task(PASS, PASS), agent, engine, directory=directory) as trial:
        assert trial.wait(1).outcome == "passed"
        assert [path.name for path in directory.artifacts("round-1").iterdir()] == ["file"]


def test_an_attempt_that_is_stopped_leaves_no_fork_and_no_artifacts(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], directory: AttemptDirectory, moment: str
) -> None:
    begun = threading.Event()
    agent = scripted("touch /logs/artifacts/file", lambda _: begun.set())
    trial = Trial(make_task(PASS, f"sleep {moment}"), agent, engine, directory=directory)
    with trial:
        assert begun.wait(300)
    assert trial.wait(2).outcome == "not reached"
    trial.close()


def test_no_more_forks_wait_to_be_removed_than_there_is_room_for() -> None:
    behind, may_end, stopped = Clearing("a task"), threading.Event(), threading.Event()
    for _ in range(MOST_FORKS - 1):
        behind.begin(lambda: may_end.wait(300), fork=True)
    behind.wait_for_room(stopped)
    behind.begin(lambda: may_end.wait(300), fork=True)
    stopped.set()
    with pytest.raises(Cancelled):
        behind.wait_for_room(stopped)
    may_end.set()
    behind.wait_for_room(threading.Event())
    behind.finish()


def test_a_job_that_fails_keeps_no_other_from_being_done() -> None:
    def fail() -> None:
        raise OSError("no space left")

    behind, done = Clearing("a task"), list[str]()
    behind.begin(fail, fork=True)
    behind.begin(lambda: behind.begin(lambda: done.append("later")))
    behind.finish()
    assert done == ["later"]
    behind.wait_for_room(threading.Event())
    behind.begin(lambda: done.append("after the end"))
    behind.finish()
    assert done == ["later", "after the end"]


def test_what_an_attempts_end_waits_for_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clearing, "NOTICEABLE", 0.0)
    behind, may_end = Clearing("a task"), threading.Event()
    behind.begin(lambda: may_end.wait(300), fork=True)
    assert behind.progress is None
    waiting = threading.Thread(target=behind.finish)
    waiting.start()
    while (progress := behind.progress) is None:
        waiting.join(0.01)
    assert status_lines({"a oracle": progress}, now=progress.since + 3, columns=80, rows=24) == [
        "a oracle: clearing up: 1 forks, 0:03"
    ]
    may_end.set()
    waiting.join(300)
    assert behind.progress is None


def test_what_a_killed_session_gathered_is_removed_by_the_next(directory: AttemptDirectory) -> None:
    gathered = directory.gathered_artifacts("round-1")
    gathered.mkdir(parents=True)
    (gathered / "key.txt").write_text("not scrubbed")
    directory.recover_rounds(["round-1"])
    assert not gathered.exists()
