"""From a turn and its suite to what a round's record says."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from pytest_evocode.metrics.failures import judge_cases
from pytest_evocode.results.records import RoundRecord, TurnRecord, Verdict
from pytest_evocode.verifier.suite_run import SuiteRun


def judge(
    turn: TurnRecord,
    suite: SuiteRun,
    earlier: Sequence[RoundRecord],
    *,
    agent_limit: float | None,
    verifier_limit: float,
    held: Collection[str] = (),
    strict: bool,
) -> dict[str, Any]:
    """The fields of the round's :class:`RoundRecord` that its outcome decides.

    ``earlier`` are the records of the rounds before, in order, and ``held`` the rounds before those, whose solutions
    were played; the limits are in seconds. ``strict`` fails a round in
    which the agent had changed tools of the image.
    """
    verdict = suite.verdict
    if strict and verdict is None and suite.changed_tools:
        # What the agent may have broken by it is the agent's failure, and nobody else's fault.
        verdict = Verdict(reward=0.0, rewards={"reward": 0.0}, changed_tools=suite.changed_tools)
    timed_out = "agent" if turn.timed_out else "verifier" if verdict and verdict.timed_out else None
    causes = []
    if turn.timed_out:
        # Without a deadline of the task's it is the agent's own, such as its model's.
        causes.append(
            f"the agent was stopped at its timeout of {agent_limit:g} s" if agent_limit else "the agent ran out of time"
        )
    if verdict is not None and verdict.timed_out:
        causes.append(f"the suite was stopped at its timeout of {verifier_limit:g} s")
    if suite.fault:
        causes.append(suite.fault)
    outcome = "error"
    if verdict is not None:
        left_out = (f"artifact left out: {reason}" for reason in suite.left_out)
        cases = judge_cases(verdict.cases, earlier, held)
        verdict = verdict.model_copy(update={"cases": cases, "flags": (*verdict.flags, *left_out)})
        outcome = "passed" if verdict.passed else "failed"
        if turn.stopped and outcome == "failed":
            causes.append(f"the agent's turn was ended early, {turn.stopped}")
        if strict and verdict.changed_tools:
            outcome = "failed"
            causes.append("strict: the agent changed tools of the image, so the suite's word does not count")
    return {
        "outcome": outcome,
        "cause": "\n".join(causes),
        "fault": "infrastructure" if outcome == "error" else None,
        "verdict": verdict,
        "timed_out": timed_out,
        "tool_calls": turn.tool_calls,
        "usage": turn.usage,
        "stopped": turn.stopped,
        "agent_seconds": turn.agent_seconds,
        "verifier_seconds": suite.seconds,
    }
