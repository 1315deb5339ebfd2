"""What the runs of a suite mean for its round: passed, failed or flaky, why, and whether later rounds are run."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any

from pytest_evocode.metrics.failures import judge_cases
from pytest_evocode.metrics.flaky import differences
from pytest_evocode.results.cases import LONGEST_TEXT, without_middle
from pytest_evocode.results.phases import merged_phases, summed_phases
from pytest_evocode.results.records import Mode, Outcome, Repeats, RoundRecord, Verdict
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Round
from pytest_evocode.verifier.suite_run import SuiteRun

_LONGEST_CAUSE = 2**15  # characters
_MOST_FLAGS = 200
_SHOWN = 10
_LISTED = 50


def worst(runs: Sequence[SuiteRun]) -> SuiteRun:
    """Return the run that says least for the workspace, the first of several such.

    One without a verdict comes before all, then the lowest reward, then the fewest cases that passed.
    """
    return min(runs, key=_merit)


def _merit(run: SuiteRun) -> tuple[bool, float, int]:
    if run.verdict is None:
        return False, 0.0, 0
    return True, run.verdict.reward or 0.0, sum(case.status == "passed" for case in run.verdict.cases)


def of_repeated(runs: Sequence[SuiteRun]) -> SuiteRun:
    """Return what several runs of one suite on the same snapshot come to: the worst of them, and how often it passed.

    So a round passes only if its suite passes each time. Where runs differ, a flag of the verdict says in what. A run
    without a verdict leaves the round without one, as it would alone. The time is that of all runs, and a hang is of
    any.
    """
    if len(runs) == 1:
        return runs[0]
    counting = worst(runs)
    counting = replace(
        counting,
        seconds=sum(run.seconds for run in runs),
        phases=summed_phases(run.phases for run in runs),
        hang=next((run.hang for run in runs if run.hang), ""),
    )
    verdicts = [run.verdict for run in runs if run.verdict is not None]
    if counting.verdict is None:
        without = len(runs) - len(verdicts)
        said = f"{without} of {len(runs)} runs of the suite gave no verdict"
        return replace(counting, fault=f"{said}: {counting.fault}") if verdicts else counting
    ids, found = differences(verdicts)
    passed = sum(verdict.passed for verdict in verdicts)
    repeats = Repeats(times=len(runs), passed=passed, flaky=bool(found), differing=tuple(ids[:_LISTED]))
    flags = counting.verdict.flags
    if found:
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        flags += (
            f"flaky: the suite passed in {passed} of {len(runs)} runs on the same workspace, and the worst counts: "
            f"{'; '.join(found[:_SHOWN])}{more} (pytest --evocode-check TASK -k deterministic looks for the reason)",
        )
    return replace(counting, verdict=counting.verdict.model_copy(update={"repeats": repeats, "flags": flags}))


def judge(
    round_: Round,
    record: RoundRecord,
    suite: SuiteRun,
    *,
    agent_timed_out: bool,
    timeout_multiplier: float,
    strict: bool,
    is_oracle: bool = False,
) -> RoundRecord:
    """Return a round's record with what its suite decides; the rest of ``record`` tells of the agent's turn.

    ``timeout_multiplier`` is what the round's timeouts were multiplied by. ``strict`` fails a round whose
    suite trusts the agent's system. A suite that hangs is an error of the task where the agent ``is_oracle``: no agent
    does better than the reference solution.
    """
    suite_timed_out = suite.verdict is not None and suite.verdict.timed_out
    suite_limit = round_.verifier_timeout * timeout_multiplier
    if is_oracle and suite.hang:
        suite = replace(suite, verdict=None, fault=_fault_of_the_task(round_, suite.hang, suite_limit))
    verdict = suite.verdict
    if suite.of_agent:
        verdict = Verdict(reward=0.0, rewards={"reward": 0.0}, rests_on=round_.verify_in, lacks_reports=True)
    causes = [suite.of_agent] if suite.of_agent else []
    if agent_timed_out:
        # Without a deadline of the task's it is the agent's own, such as its model's.
        limit = (round_.agent_timeout or 0.0) * timeout_multiplier
        causes.append(f"the agent was stopped at its timeout of {limit:g} s" if limit else "the agent ran out of time")
    if verdict is not None and verdict.timed_out:
        causes.append(f"the suite was stopped at its timeout of {suite_limit:g} s")
    if suite.fault:
        causes.append(suite.fault)
    outcome: Outcome = "error"
    if verdict is not None:
        verdict = verdict.model_copy(update={"flags": (*verdict.flags, *suite.left_out)})
        outcome = "passed" if verdict.passed else "failed"
        if record.stopped and outcome == "failed":
            causes.append(f"the agent's turn was ended early, {record.stopped}")
        if strict and verdict.trusts_agent:
            outcome = "failed"
            verdict = _without_effect(verdict)
            causes.append("strict: the suite trusts the agent's system, so its word does not count")
    decided = {
        "outcome": outcome,
        "cause": "\n".join(causes),
        "fault": "infrastructure" if outcome == "error" else None,
        "verdict": verdict,
        "timed_out": "agent" if agent_timed_out else "verifier" if suite_timed_out else None,
        "verifier_seconds": suite.seconds,
        "phases": merged_phases(record.phases, suite.phases),
        "denied": record.denied if suite.denied is None else (*(record.denied or ()), *suite.denied),
    }
    return record.model_copy(update=decided)


def _fault_of_the_task(round_: Round, hang: str, limit: float) -> str:
    return (
        f"the suite of {round_.name} hangs although the reference solution was played, so the task is at fault and no "
        f"agent: {hang}\n"
        f"The suite's limit is {limit:g} s (timeout_sec of [verifier]). Give what may wait for ever a limit of its "
        "own, correct the solution where its program hangs, or raise the limit."
    )


def _without_effect(verdict: Verdict) -> Verdict:
    """Return a verdict whose rewards and cases count nothing."""
    pinned = None if verdict.pinned is None else (0, verdict.pinned[1])
    nothing = {"reward": 0.0, "rewards": dict.fromkeys(verdict.rewards, 0.0), "pinned": pinned, "void": True}
    return verdict.model_copy(update=nothing)


def as_recorded(record: RoundRecord, scrubber: Scrubber) -> RoundRecord:
    """Return a record without the host's secrets, whose texts have a bound, whatever programs and agents had to say."""
    record = scrubbed(record, scrubber)
    update: dict[str, Any] = {"cause": without_middle(record.cause, _LONGEST_CAUSE)}
    if record.verdict is not None:
        flags = [without_middle(flag, LONGEST_TEXT) for flag in record.verdict.flags]
        more = [f"and {len(flags) - _MOST_FLAGS} more"] if len(flags) > _MOST_FLAGS else []
        update["verdict"] = record.verdict.model_copy(update={"flags": (*flags[:_MOST_FLAGS], *more)})
    return record.model_copy(update=update)


def compare_cases(record: RoundRecord, earlier: Sequence[RoundRecord], held: Collection[str] = ()) -> RoundRecord:
    """Return a record whose failing cases say how they stand to the earlier rounds.

    ``earlier`` are the records of the rounds before, in order, and ``held`` the rounds before those, whose reference
    solutions were played. Cases are compared by name, so secrets have to be out of all records or of none.
    """
    if record.verdict is None:
        return record
    cases = judge_cases(record.verdict.cases, earlier, held)
    return record.model_copy(update={"verdict": record.verdict.model_copy(update={"cases": cases})})


def needs_verdict(round_: Round, mode: Mode) -> bool:
    """Return whether it depends on a round's verdict that later rounds are run."""
    return mode == "fail-stop" or round_.min_reward is not None


def may_fall_short(round_: Round, mode: Mode) -> bool:
    """Return whether a round's verdict may well end the chain, so that an agent's next turn is worth waiting with.

    A ``min_reward`` without a bound above 0 is not worth it: rewards are seldom negative. What is left is a suite
    without any verdict, or without a reward that is asked for. Both end the chain all the same (:func:`ended_by`), and
    what was begun meanwhile is dropped.
    """
    return mode == "fail-stop" or any(least > 0 for least in (round_.min_reward or {}).values())


def ended_by(round_: Round, record: RoundRecord, mode: Mode) -> str:
    """Return why a round's record keeps all later rounds from being run; empty where it does not."""
    if mode == "fail-stop" and not record.passed:
        return f"{round_.name} did not pass, which ends the attempt (fail-stop)"
    verdict, minimum = record.verdict, round_.min_reward
    if minimum is not None and (verdict is None or not verdict.reaches(minimum)):
        return f"{round_.name} stayed below its min_reward"
    return ""
