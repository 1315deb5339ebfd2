"""Suites that are run several times on one snapshot: the worst run counts, with what it left."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import Repeats
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from pytest_evocode.verifier import SuiteRun, run_suite

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

#: Gives another reward each time, which fails, and leaves it in a file of the workspace and in an artifact.
CHANGING = """
reward=0.$(od -An -N6 -tu4 /dev/urandom | tr -d ' \\n')
[ ! -e seen ] || reward=0
echo $reward | tee seen /logs/artifacts/reward > /logs/verifier/reward.txt
"""
PASS = "echo 1 > /logs/verifier/reward.txt"


def test_the_run_with_the_lowest_reward_counts_with_its_fork_and_its_artifacts(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], tmp_path: Path
) -> None:
    directory = AttemptDirectory(tmp_path / "attempt")
    options = TrialOptions(verify_times=4, hold_forks=True)
    with Trial(make_task(CHANGING), scripted(), engine, directory=directory, options=options) as trial:
        record = trial.wait(1)
        assert record.outcome == "failed"
        assert record.verdict is not None
        assert record.verdict.repeats == Repeats(times=4, passed=0, flaky=True)
        rewards = re.findall(r"([\d.]+) in run \d", record.verdict.flags[0])
        assert len(set(rewards)) == 4
        assert record.verdict.reward == pytest.approx(min(map(float, rewards)), abs=1e-5)
        assert (record.verdict.reward or 0.0) > 0, "each run had a fresh fork"
        fork = trial.fork_of(1)
        assert fork is not None
        left = {float(fork.environment.exec(["cat", "seen"]).output)}
        artifacts = directory.artifacts("round-1")
        left.add(float((artifacts / "reward").read_text()))
        assert left == {record.verdict.reward}
        assert [path.name for path in artifacts.parent.glob("[.]*")] == []


@pytest.mark.parametrize("control_breaks", [True, False])
@pytest.mark.matrix
def test_a_suite_that_gives_a_verdict_only_now_and_then_is_as_one_that_gives_none(
    engine: Engine,
    make_task: MakeTask,
    scripted: type[Scripted],
    finish: Finish,
    monkeypatch: pytest.MonkeyPatch,
    control_breaks: bool,
) -> None:
    breaks = iter([False, True, False, control_breaks])

    def breaking(*arguments: Any, **more: Any) -> SuiteRun:
        return SuiteRun("", None, "pytest was killed") if next(breaks) else run_suite(*arguments, **more)

    monkeypatch.setattr("pytest_evocode.trial.suites.runner.run_suite", breaking)
    task = make_task(f"{PASS} # {control_breaks}")
    (record,) = finish(Trial(task, scripted(), engine, options=TrialOptions(verify_times=3)))
    assert record.outcome == ("error" if control_breaks else "failed")
    assert record.cause.endswith("1 of 3 runs of the suite gave no verdict: pytest was killed")


def test_a_suite_in_place_is_run_once(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish
) -> None:
    task = make_task(PASS, toml='[metadata.evocode]\nverify_in = "in-place"')
    (record,) = finish(Trial(task, scripted(), engine, options=TrialOptions(verify_times=3)))
    assert record.verdict is not None
    assert (record.outcome, record.verdict.repeats) == ("passed", None)
