"""Attempts that are resumed with other rounds selected than before, and refusals."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents import RoundContext
from pytest_evocode.agents.oracle import NopAgent
from pytest_evocode.environments import Engine
from pytest_evocode.errors import AgentFault
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import AttemptState, TurnRecord
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
FIRST = RoundSelection(last=1)
RESUME = TrialOptions(resume=True)


@pytest.fixture
def task(make_task: MakeTask) -> Task:
    """Three rounds that pass."""
    return make_task(PASS, PASS, PASS)


@pytest.fixture
def directory(tmp_path: Path) -> AttemptDirectory:
    """Where the attempt is kept."""
    return AttemptDirectory(tmp_path / "attempt")


def indices(agent: Scripted) -> list[int]:
    return [context.round.index for context in agent.asked]


def test_what_a_smaller_selection_leaves_out_can_still_be_resumed(
    engine: Engine, task: Task, directory: AttemptDirectory, finish: Finish, scripted: type[Scripted]
) -> None:
    def fail(context: RoundContext) -> None:
        raise AgentFault("the model cannot be reached")

    finish(Trial(task, scripted("true", fail), engine, directory=directory))
    (kept,) = finish(Trial(task, scripted(), engine, directory=directory, rounds=FIRST, options=RESUME))
    assert kept.passed
    assert directory.read_state() is not None
    resumed = scripted("true", "true", "true")
    records = finish(Trial(task, resumed, engine, directory=directory, options=RESUME))
    assert ([record.outcome for record in records], indices(resumed)) == (["passed"] * 3, [2, 3])
    assert directory.read_state() is None


def test_what_a_session_leaves_that_dies_while_an_ended_attempt_is_cleared_away_is_not_needed(
    engine: Engine, task: Task, directory: AttemptDirectory, finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = []
    trial = Trial(task, NopAgent(), engine, directory=directory)
    real = trial._log.close

    def close(*, finished: bool) -> None:
        there.append((directory.read_state(), directory.read_attempt() is not None))
        real(finished=finished)

    monkeypatch.setattr(trial._log, "close", close)
    finish(trial)
    assert there == [(None, True)]


def test_a_smaller_selection_changes_nothing_of_an_attempt_that_has_ended(
    engine: Engine, task: Task, directory: AttemptDirectory, finish: Finish
) -> None:
    finish(Trial(task, NopAgent(), engine, directory=directory))
    before = (directory.path / "result.json").read_bytes()
    (kept,) = finish(Trial(task, NopAgent(), engine, directory=directory, rounds=FIRST, options=RESUME))
    assert kept.passed
    assert (directory.path / "result.json").read_bytes() == before


def test_a_partial_attempt_that_has_ended_is_made_whole_and_meanwhile_has_not_ended(
    engine: Engine, task: Task, directory: AttemptDirectory, finish: Finish, scripted: type[Scripted]
) -> None:
    """Or else the partial attempt would count for the whole one that is killed in its place."""
    there = []

    def look(_: RoundContext) -> None:
        there.append((directory.path / "result.json").exists())

    finish(Trial(task, NopAgent(), engine, directory=directory, rounds=FIRST))
    agent = scripted(look, "true", look)
    finish(Trial(task, agent, engine, directory=directory, options=RESUME))
    assert (there, (directory.path / "result.json").exists()) == ([False, False], True)
    assert indices(agent) == [1, 2, 3]
    record = directory.read_attempt()
    assert record is not None
    assert [each.index for each in record.rounds] == [1, 2, 3]


def test_a_refusal_is_the_error_of_the_first_round_that_the_attempt_has(
    engine: Engine, task: Task, directory: AttemptDirectory, finish: Finish
) -> None:
    """The oracle may have begun at a known state; rounds before that are reported by no session of the attempt."""
    turn = TurnRecord(index=2, snapshot="gone", timed_out=False, tool_calls=None, agent_seconds=1.0)
    directory.write_state(AttemptState(environment="sandbox", task_hash="of other files", turns=(turn,)))
    records = finish(Trial(task, NopAgent(), engine, directory=directory, options=RESUME))
    assert [(record.index, record.outcome) for record in records] == [(2, "error"), (3, "not reached")]
    assert "the task's files have changed" in records[0].cause


@pytest.mark.parametrize(
    ("version", "begun_by", "outcome"),
    [
        (3, {"spec": "cli", "harness": {"name": "cli", "version": "2"}, "name": "cli"}, "passed"),
        (2, {"spec": "cli"}, "passed"),  # Before version 3 no record had a harness.
        (3, {"spec": "cli", "harness": {"name": "cli", "version": "1"}}, "error"),
        (3, {"spec": "cli"}, "error"),
    ],
)
@pytest.mark.matrix("outcome")
def test_an_attempt_goes_on_with_the_same_version_of_the_harness(
    engine: Engine,
    task: Task,
    directory: AttemptDirectory,
    finish: Finish,
    version: int,
    begun_by: dict[str, object],
    outcome: str,
) -> None:
    directory.write_state(
        AttemptState(version=version, environment=engine.name, task_hash=content_hash(task.directory), made_by=begun_by)
    )
    agent = {"spec": "cli", "harness": {"name": "cli", "version": "2"}}
    options = TrialOptions(resume=True, agent=agent)
    (record,) = finish(Trial(task, NopAgent(), engine, directory=directory, rounds=FIRST, options=options))
    assert record.outcome == outcome
    assert ("another agent" in record.cause) == (outcome == "error")


@pytest.mark.parametrize(
    ("version", "options", "outcome"),
    [
        (4, {"base_url": "http://models:8000"}, "passed"),
        (4, {"base_url": "http://others:8000"}, "error"),
        (4, {}, "error"),
        (3, {}, "passed"),  # Before version 4 no record had a server.
    ],
)
@pytest.mark.matrix("outcome")
def test_an_attempt_goes_on_with_the_server_that_it_began_with(
    engine: Engine,
    task: Task,
    directory: AttemptDirectory,
    finish: Finish,
    version: int,
    options: dict[str, str],
    outcome: str,
) -> None:
    begun_by = {"spec": "openai/gpt-5", **({"options": options} if options else {})}
    directory.write_state(
        AttemptState(version=version, environment=engine.name, task_hash=content_hash(task.directory), made_by=begun_by)
    )
    agent = {"spec": "openai/gpt-5", "options": {"base_url": "http://models:8000"}}
    resume = TrialOptions(resume=True, agent=agent)
    (record,) = finish(Trial(task, NopAgent(), engine, directory=directory, rounds=FIRST, options=resume))
    assert record.outcome == outcome
