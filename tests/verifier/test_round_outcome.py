"""What a round is, by its suite: where the suite trusts the agent's system, and where it hangs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.metrics.failures import round_failure
from pytest_evocode.metrics.scores import scores
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import Case, RoundRecord, Verdict
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.verifier import SuiteRun, judge

CASES = (Case(id="a", status="passed"), Case(id="b", status="passed"))
PASSED = SuiteRun("", Verdict(reward=1.0, rewards={"reward": 1.0, "style": 0.5}, cases=CASES, pinned=(2, 3)))
BROKEN = SuiteRun("", None, "the suite left no reward")
RECORD = RoundRecord(
    task="t", agent="a", attempt=1, round="task", index=1, declared_rounds=1, outcome="not reached", tool_calls=1
)


@pytest.fixture
def task(tmp_path: Path) -> Task:
    """A task of one round."""
    for name, text in {"task.toml": "", "instruction.md": "x\n", "tests/test.sh": "true\n"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    (tmp_path / "environment").mkdir()
    (tmp_path / "environment/Dockerfile").write_text("FROM debian:bookworm-slim\n")
    return load_task(tmp_path)


def judged(task: Task, trusts: tuple[str, ...], *, strict: bool) -> RoundRecord:
    suite = PASSED.saying(rests_on="in-place", trusts=trusts)
    return judge(task.rounds[0], RECORD, suite, agent_timed_out=False, timeout_multiplier=1.0, strict=strict)


def test_strict_takes_reward_and_cases_of_a_round_that_trusts_the_agents_system(task: Task) -> None:
    record = judged(task, ("/",), strict=True)
    assert record.outcome == "failed"
    assert "strict: the suite trusts the agent's system" in record.cause
    assert record.verdict is not None
    assert (record.verdict.rewards, record.verdict.pinned) == ({"reward": 0.0, "style": 0.0}, (0, 3))
    assert record.verdict.cases == CASES, "what the suite said can be looked at"
    for kept in (record, record.without_cases()):
        found = scores([kept])
        assert (found.dataset_score, found.case_score, found.pinned_case_score, found.mean_reward) == (0, 0, 0, 0)
        assert found.trusting == 1
        assert round_failure(kept) == "other"


def test_without_strict_it_is_marked_only(task: Task) -> None:
    record = judged(task, ("/",), strict=False)
    assert record.outcome == "passed"
    found = scores([record])
    assert (found.case_score, found.trusting) == (100.0, 1)


def test_a_round_that_trusts_nothing_of_it_is_not_touched(task: Task) -> None:
    record = judged(task, (), strict=True)
    assert record.outcome == "passed"
    assert scores([record]).trusting == 0


def test_a_suite_without_a_verdict_is_an_error_unless_it_is_the_agents_doing(task: Task) -> None:
    for suite, outcome, fault in [
        (BROKEN, "error", "infrastructure"),
        (replace(BROKEN, of_agent="a control has one"), "failed", None),
    ]:
        record = judge(task.rounds[0], RECORD, suite, agent_timed_out=False, timeout_multiplier=1.0, strict=False)
        assert (record.outcome, record.fault) == (outcome, fault)
    assert record.cause == "a control has one\nthe suite left no reward"
    assert record.verdict is not None
    assert (record.verdict.rewards, record.verdict.rests_on) == ({"reward": 0.0}, "separate")
    assert round_failure(record) == "build"


def test_a_suite_that_is_run_anew_changes_nothing_in_the_times_of_the_turn(task: Task) -> None:
    old = RECORD.model_copy(update={"phases": Phases(agent=9.0, snapshot=0.5, suite=30.0)})
    suite = replace(PASSED, phases=Phases(waiting=1.0, suite=20.0))
    record = judge(task.rounds[0], old, suite, agent_timed_out=False, timeout_multiplier=1.0, strict=False)
    assert record.phases == Phases(agent=9.0, snapshot=0.5, waiting=1.0, suite=20.0)
    silent = judge(task.rounds[0], RECORD, PASSED, agent_timed_out=False, timeout_multiplier=1.0, strict=False)
    assert (silent.phases, silent.overhead_seconds) == (None, None)


HANG = "test.sh was stopped after the case b, the last that it reported; its last lines:\nwaiting"
STOPPED = SuiteRun("", Verdict(reward=0.0, rewards={"reward": 0.0}, cases=CASES, timed_out=True), hang=HANG)


def judged_hang(task: Task, suite: SuiteRun, *, is_oracle: bool) -> RoundRecord:
    return judge(
        task.rounds[0],
        RECORD,
        suite,
        agent_timed_out=False,
        timeout_multiplier=2.0,
        strict=False,
        is_oracle=is_oracle,
    )


@pytest.mark.parametrize("suite", [STOPPED, SuiteRun("", None, "not counted against the agent", HANG)])
def test_a_suite_that_hangs_under_the_oracle_is_an_error_of_the_task(task: Task, suite: SuiteRun) -> None:
    record = judged_hang(task, suite, is_oracle=True)
    assert (record.outcome, record.fault, record.verdict) == ("error", "infrastructure", None)
    assert record.cause == (
        "the suite of round-1 hangs although the reference solution was played, so the task is at fault and no agent: "
        f"{HANG}\n"
        "The suite's limit is 1200 s (timeout_sec of [verifier]). Give what may wait for ever a limit of its own, "
        "correct the solution where its program hangs, or raise the limit."
    )
    assert round_failure(record) == "infrastructure"


def test_a_suite_that_hangs_under_another_agent_is_a_failure(task: Task) -> None:
    record = judged_hang(task, STOPPED, is_oracle=False)
    assert (record.outcome, record.timed_out) == ("failed", "verifier")
    assert record.cause == "the suite was stopped at its timeout of 1200 s"
    assert round_failure(record) == "timeout"


def test_a_suite_of_the_oracle_that_fails_without_hanging_is_a_failure(task: Task) -> None:
    failing = SuiteRun("", Verdict(reward=0.0, rewards={"reward": 0.0}))
    assert judged_hang(task, failing, is_oracle=True).outcome == "failed"
