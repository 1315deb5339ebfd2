"""The workspace as a round leaves it, without a suite: what the reference solutions lead to, and what was recorded."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine
from pytest_evocode.errors import AgentFault, UsageError
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.recorded import recorded_workspace
from pytest_evocode.trial.references import ReferenceWorkspaces, RoundWorkspace
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask

PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"


@pytest.fixture(autouse=True)
def _states_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))


def solutions(*scripts: str) -> Mapping[str, str]:
    """Files of a task: the reference solution of each round."""
    return {f"steps/round-{index}/solution/solve.sh": script for index, script in enumerate(scripts, 1)}


class Looking:
    """Looks at workspaces of the reference solutions, and knows which of these were played for it."""

    def __init__(self, task: Task, engine: Engine) -> None:
        self.played: list[str] = []
        self._states = ReferenceWorkspaces(task, engine, playing=lambda round_: self.played.append(round_.name))

    def __call__(self, index: int, script: str = "echo $(cat log)") -> str:
        with self._states.after(index) as self.workspace:
            return said(self.workspace, script)


def said(workspace: RoundWorkspace, script: str) -> str:
    return workspace.environment.exec(script).output.strip()


def test_a_round_that_fails_its_suite_can_be_looked_at(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(
        PASS,
        FAIL,
        PASS,
        files={
            **solutions("echo one >> log", "echo two >> log", "echo three >> log"),
            "steps/round-1/workdir/log": "brought\n",
            "steps/round-3/workdir/setup.sh": "echo setup >> log",
        },
    )
    look = Looking(task, engine)
    assert look(2) == "brought one two"
    assert look(0) == "brought"
    assert look(3) == "brought one two setup three"
    assert look.workspace.fault == ""


def test_what_was_played_is_kept_for_the_next_time(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(PASS, PASS, files=solutions("echo one >> log", "cat /proc/sys/kernel/random/uuid >> log"))
    look = Looking(task, engine)
    last = look(2)
    assert look.played == ["round-1", "round-2"]
    again = Looking(task, engine)
    assert (again(2), again(1), again.played) == (last, "one", [])
    assert again(2, "echo changed > log") == ""
    assert again(2) == last


def test_no_attempt_begins_where_no_suite_has_looked(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    task = make_task(PASS, PASS, files=solutions("cat /proc/sys/kernel/random/uuid > log", "true"))
    seen = Looking(task, engine)(1)
    options = TrialOptions(references=True)
    trial = Trial(task, OracleAgent(), engine, rounds=RoundSelection(first_wanted=2), options=options)
    assert [record.round for record in finish(trial)] == ["round-1", "round-2"]
    # What the suite accepted has taken the place of what was looked at.
    look = Looking(task, engine)
    assert look(1) != seen
    assert look.played == []
    with Trial(task, OracleAgent(), engine, rounds=RoundSelection(first_wanted=2), options=options) as trial:
        assert trial.first_played() == 2


def test_nothing_of_the_harness_and_no_process_is_left(engine: Engine, make_task: MakeTask, moment: str) -> None:
    task = make_task(PASS, files=solutions(f"sleep {moment} & echo one > log"))
    look = Looking(task, engine)
    assert look(1, f"ls -d /solution /tests 2>/dev/null; pgrep -f {moment}") == ""


def test_a_solution_that_breaks_off_leaves_something_to_look_at(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(PASS, PASS, PASS, files=solutions("echo one >> log", "echo two >> log; false", "true"))
    look = Looking(task, engine)
    for _ in range(2):  # And is not kept for the next time.
        assert look(2) == "one two"
        assert "the reference solution ended with exit code 1" in look.workspace.fault
    assert look.played == ["round-1", "round-2", "round-2"]
    with pytest.raises(AgentFault, match=r"round-2/solution/solve\.sh"):
        look(3)


@pytest.mark.nightly
def test_a_solution_that_does_not_end_in_time_too(engine: Engine, make_task: MakeTask, moment: str) -> None:
    script = f"echo one > log; sleep {moment}"
    task = make_task(PASS, PASS, steps={1: "agent.timeout_sec = 0.5"}, files=solutions(script, "true"))
    look = Looking(task, engine)
    assert look(1) == "one"
    assert "did not end in its time" in look.workspace.fault
    with pytest.raises(AgentFault, match="did not end in its time"):
        look(2)


@pytest.mark.nightly
def test_what_a_recorded_agent_left_can_be_looked_at(
    tmp_path: Path, engine: Engine, make_task: MakeTask, finish: Finish
) -> None:
    task = make_task(PASS, FAIL, files=solutions("echo one >> log", "echo two >> log"))
    directory = AttemptDirectory(tmp_path / "attempt")
    finish(Trial(task, OracleAgent(), engine, directory=directory, options=TrialOptions(keep_snapshots=True)))
    kept = directory.read_snapshot("round-2")
    assert kept is not None
    with recorded_workspace(task, engine, kept) as workspace:
        assert said(workspace, "echo $(cat log); echo changed > log") == "one two"
    with recorded_workspace(task, engine, kept) as workspace:
        assert said(workspace, "echo $(cat log)") == "one two"
    changed = kept.model_copy(update={"image": "other"})
    with pytest.raises(UsageError, match="another one now"), recorded_workspace(task, engine, changed):
        pass
    gone = kept.model_copy(update={"reference": "snapshot-gone"})
    with pytest.raises(UsageError, match="are not on this machine"), recorded_workspace(task, engine, gone):
        pass
