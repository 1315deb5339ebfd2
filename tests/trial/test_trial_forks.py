"""Forks of failed rounds that are held for somebody to look at."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
FAIL = "echo seen by the suite > /tests/note; echo 0 > /logs/verifier/reward.txt"
HOLD = TrialOptions(hold_forks=True)


def test_the_fork_of_a_failed_round_lives_with_its_snapshot_until_it_is_dropped(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], tmp_path: Path
) -> None:
    agent = scripted("echo one > work; echo one > untouched", "echo two > work", "echo three > work")
    directory = AttemptDirectory(tmp_path / "attempt")
    with Trial(make_task(FAIL, FAIL, PASS), agent, engine, directory=directory, options=HOLD) as trial:
        assert [trial.wait(index).outcome for index in (1, 2, 3)] == ["failed", "failed", "passed"]
        references = {index: trial._log.snapshot_of(index).reference for index in (1, 2, 3)}
        fork = trial.fork_of(1)
        assert fork is not None
        assert fork.environment.exec("cat work untouched /tests/note").output == "one\none\nseen by the suite\n"
        for index in (1, 2):
            assert engine.find_snapshot(references[index]) is not None
            trial.drop_fork(index)
            assert trial.fork_of(index) is None
            assert engine.find_snapshot(references[index]) is None
        with pytest.raises(EnvironmentFault):
            fork.environment.exec(["true"])
        trial.drop_fork(1)
        assert engine.find_snapshot(references[3]) is not None, "it is for a later session"


def test_nothing_is_held_unless_it_is_asked_for(engine: Engine, make_task: MakeTask, scripted: type[Scripted]) -> None:
    with Trial(make_task(FAIL), scripted(), engine) as trial:
        assert trial.wait(1).outcome == "failed"
        assert trial.fork_of(1) is None


def test_forks_of_failed_rounds_alone_are_held_in_no_slot_until_the_attempt_ends(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted]
) -> None:
    options = TrialOptions(hold_forks=True, verifiers=1)
    with Trial(make_task(PASS, "true", FAIL, FAIL), scripted(), engine, options=options) as trial:
        assert [trial.wait(index).outcome for index in (1, 2, 3, 4)] == ["passed", "error", "failed", "failed"]
        forks = [trial.fork_of(index) for index in (1, 2, 3, 4)]
        assert [fork is not None and fork.environment.exec(["true"]).ok for fork in forks] == [False, False, True, True]
    for fork in forks[2:]:
        assert fork is not None
        with pytest.raises(EnvironmentFault):
            fork.environment.exec(["true"])
