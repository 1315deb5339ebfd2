"""The texts of the files that the rounds of a recorded attempt were left with."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.environments import Engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.loading import StoredAttempt, load_results
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.recorded import RoundTexts, round_texts, task_directory
from pytest_evocode.trial.trial import Trial
from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo 0 > /logs/verifier/reward.txt"
FIRST = "printf 'one\\n' > a.py; printf '\\000' > binary; ln -s a.py link; mkdir __pycache__; touch __pycache__/a.pyc"
SECOND = "printf 'two\\n' >> a.py; rm given.py; printf 'new\\n' > sub.py"
LEFT = {1: {"a.py": "one\n", "given.py": "brought\n"}, 2: {"a.py": "one\ntwo\n", "sub.py": "new\n"}}


class Recorded(Scripted):
    """Follows a script, and takes down what it does."""

    def run_round(self, context: RoundContext) -> RoundTranscript:
        script = str(self._turns[context.round.index - 1])
        call = ToolCall(tool_call_id="1", function_name="bash", arguments={"command": script})
        context.recorder.reply("", [call])
        result = context.environment.exec(script, user=context.round.agent_user)
        context.recorder.observe("1", result.output, Action(result.exit_code, result.seconds))
        return RoundTranscript()


@pytest.fixture
def task(make_task: MakeTask) -> Task:
    return make_task(PASS, FAIL, files={"steps/round-1/workdir/given.py": "brought\n"})


def made(
    agent: Scripted, task: Task, place: Path, engine: Engine, finish: Finish, *, keep: bool = False
) -> StoredAttempt:
    finish(Trial(task, agent, engine, directory=AttemptDirectory(place), options=TrialOptions(keep_snapshots=keep)))
    return load_results([place]).attempts[0]


def texts_of(attempt: StoredAttempt, task: Task, engine: Engine) -> RoundTexts:
    return round_texts(attempt, task, lambda name: engine)


def test_recorded_changes_are_made_again_unless_the_task_has_changed(
    task: Task, tmp_path: Path, engine: Engine, finish: Finish
) -> None:
    attempt = made(Recorded(FIRST, SECOND), task, tmp_path / "attempt", engine, finish)
    found = texts_of(attempt, task, engine)
    assert (found.texts, found.missing) == (LEFT, {})
    (task.directory / "steps/round-1/workdir/given.py").write_text("other\n")
    found = texts_of(attempt, load_task(task.directory), engine)
    assert found.texts == {}
    assert "has changed since" in found.missing[2]


def test_kept_snapshots_are_read_and_without_them_no_round_has_texts(
    task: Task, tmp_path: Path, engine: Engine, finish: Finish
) -> None:
    attempt = made(Scripted(FIRST, SECOND), task, tmp_path / "attempt", engine, finish, keep=True)
    kept = [AttemptDirectory(attempt.path).read_snapshot(f"round-{index}") for index in (1, 2)]
    try:
        found = texts_of(attempt, task, engine)
        assert (found.texts, found.missing) == (LEFT, {})
        assert task_directory(attempt) == task.directory
    finally:
        for each in kept:
            snapshot = engine.find_snapshot(each.reference) if each else None
            if snapshot is not None:
                snapshot.discard()
    assert "are not on this machine" in texts_of(attempt, task, engine).missing[1]
    for path in attempt.path.glob("steps/*/snapshot.json"):
        path.unlink()
    found = texts_of(attempt, task, engine)
    assert found.texts == {}
    assert found.missing.keys() == {1, 2}
    assert "no snapshot, which a run with --evocode-snapshots keeps" in found.missing[1]
    assert task_directory(attempt) is None
