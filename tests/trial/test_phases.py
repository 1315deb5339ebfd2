"""Where the time of a round went, as its record says."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import RoundContext
from pytest_evocode.environments import Engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.phases import Phase, Phases, Stopwatch, merged_phases
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
OF_TURNS = {"setup", "agent", "snapshot", "bookkeeping"}
OF_SUITES = {"waiting", "fork", "suite", "reading", "slot_seconds"}


@pytest.fixture
def began(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[Phase]]:
    """The phases that every thread has begun, in order, each once where it goes on."""
    found: dict[int, list[Phase]] = {}
    begin = Stopwatch.begin

    def noted(self: Stopwatch, phase: Phase) -> None:
        of_thread = found.setdefault(threading.get_ident(), [])
        if of_thread[-1:] != [phase]:
            of_thread.append(phase)
        begin(self, phase)

    monkeypatch.setattr(Stopwatch, "begin", noted)
    return found


def test_a_turn_and_its_suite_are_measured_apart(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, began: dict[int, list[Phase]]
) -> None:
    at_work: list[list[Phase]] = []

    def turn(context: RoundContext) -> None:
        at_work.append(list(began[threading.get_ident()]))

    files = {"steps/round-1/workdir/setup.sh": "true\n"}
    (record,) = finish(Trial(make_task(PASS, files=files), scripted(turn), engine))
    assert record.phases is not None
    assert set(record.phases.known) == OF_TURNS | OF_SUITES
    assert at_work == [["setup", "bookkeeping", "agent"]]
    of_trial, of_suite = began.values()
    assert of_trial == ["setup", "bookkeeping", "agent", "bookkeeping", "snapshot", "bookkeeping"]
    assert [each for each in of_suite if each not in ("waiting", "fork")] == ["suite", "reading"]
    assert of_suite.index("waiting") < of_suite.index("suite")


def test_the_harness_costs_what_neither_setup_nor_the_agent_takes(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish
) -> None:
    (record,) = finish(Trial(make_task(PASS), scripted(), engine))
    phases = record.phases
    assert phases is not None
    assert phases.snapshot is not None
    assert phases.bookkeeping is not None
    assert record.overhead_seconds == pytest.approx(phases.snapshot + phases.bookkeeping, abs=1e-3)


def test_a_suite_in_place_is_no_part_of_the_turn(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, began: dict[int, list[Phase]]
) -> None:
    task = make_task(PASS, toml='[metadata.evocode]\nverify_in = "in-place"\n')
    (record,) = finish(Trial(task, scripted(), engine))
    assert record.phases is not None
    assert set(record.phases.known) == OF_TURNS | OF_SUITES
    (order,) = began.values()
    turn, suite = ["setup", "bookkeeping", "agent", "bookkeeping"], ["waiting", "fork", "suite", "reading"]
    assert order == [*turn, *suite, "bookkeeping", "snapshot", "bookkeeping"]


def test_a_round_without_a_verdict_has_the_times_of_its_turn(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise RuntimeError("out of order")

    monkeypatch.setattr("pytest_evocode.trial.suites.runner.run_suite", broken)
    (record,) = finish(Trial(make_task(PASS), scripted(), engine))
    assert record.outcome == "error"
    assert record.phases is not None
    assert set(record.phases.known) == OF_TURNS


def test_all_runs_of_a_suite_count(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], tmp_path: Path, finish: Finish
) -> None:
    directory = AttemptDirectory(tmp_path / "attempt")
    options = TrialOptions(verify_times=2)
    (record,) = finish(Trial(make_task(PASS), scripted(), engine, directory=directory, options=options))
    assert record.phases is not None
    assert set(record.phases.known) == OF_TURNS | OF_SUITES
    assert directory.read_rounds(["round-1"])["round-1"].phases == record.phases
    written = directory.read_attempt()
    assert written is not None
    assert written.rounds[0].phases == record.phases


def test_records_say_when_the_turn_and_the_first_run_of_the_suite_began(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], tmp_path: Path, finish: Finish
) -> None:
    directory = AttemptDirectory(tmp_path / "attempt")
    turn: list[float] = []
    trial = Trial(
        make_task(PASS),
        scripted(lambda context: turn.append(time.time())),
        engine,
        directory=directory,
        options=TrialOptions(verify_times=2),
    )
    began = round(time.time(), 4)
    (record,) = finish(trial)
    for phases in (record.phases, directory.read_rounds(["round-1"])["round-1"].phases):
        assert phases is not None
        assert phases.turn_began is not None
        assert phases.suite_began is not None
        assert phases.suite is not None
        assert began <= phases.turn_began <= turn[0] <= phases.suite_began <= time.time() - phases.suite


def test_a_suite_that_is_run_again_later_began_when_it_was_run_again() -> None:
    played = Phases(agent=2.0, suite=4.0, turn_began=100.0, suite_began=102.0)
    found = merged_phases(played, Phases(suite=5.0, suite_began=900.0))
    assert found is not None
    assert (found.suite, found.turn_began, found.suite_began) == (5.0, 100.0, 900.0)
