"""Recovery efficiency: how often did the product fail, how varied were the repairs, and what did they cost?"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured
from pytest_evocode.process.tests_written import WrittenTests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.recovery_cycles import RecoveryCycle, find_cycles, wasted_tokens, working_steps

#: RigorBench's parameter lambda.
DECAY = 0.2


def recovery(activity: RoundActivity, tests: WrittenTests) -> dict[str, Measure]:
    """Return f(RAC), SD and 1 - TWR."""
    cycles = find_cycles(activity)
    evidence = tuple(_begun(cycle) for cycle in cycles) + _not_counted(activity)
    if not cycles:
        nothing = "nothing that the product caused has failed"
        return {
            "f(RAC)": measured(recovery_decay(0), nothing, evidence),
            "SD": measured(1.0, nothing),
            "1-TWR": measured(1.0, nothing),
        }
    return {
        "f(RAC)": measured(recovery_decay(len(cycles)), f"RAC = {len(cycles)}", evidence),
        "SD": _diversity(cycles),
        "1-TWR": _economy(activity, cycles, tests),
    }


def recovery_decay(cycles: int) -> float:
    """Return ``1 / (1 + 0.2 RAC)``.

    >>> [round(recovery_decay(cycles), 3) for cycles in (0, 1, 2, 5)]
    [1.0, 0.833, 0.714, 0.5]
    """
    return 1 / (1 + DECAY * cycles)


def _begun(cycle: RecoveryCycle) -> Evidence:
    ending = "recovered" if cycle.recovered else "not recovered"
    return cycle.failure.evidence(f"{cycle.failure.purpose} failed, {len(cycle.attempts)} attempts, {ending}")


def _not_counted(activity: RoundActivity) -> tuple[Evidence, ...]:
    others = [run for run in activity.runs if run.passed is False and run.failure != "product"]
    return tuple(run.evidence(f"does not count: {run.failure}") for run in others)


def _diversity(cycles: Sequence[RecoveryCycle]) -> Measure:
    attempts = sum(len(cycle.attempts) for cycle in cycles)
    distinct = sum(cycle.strategies for cycle in cycles)
    evidence = tuple(
        edit.evidence(f"attempt {number} after step {cycle.failure.step}, {'passed' if attempt.passed else 'failed'}")
        for cycle in cycles
        for number, attempt in enumerate(cycle.attempts, 1)
        for edit in attempt.edits
    )
    if not attempts:
        return measured(0.0, "a failure was left as it was", evidence)
    return measured(distinct / attempts, f"{distinct} distinct strategies in {attempts} attempts", evidence)


def _economy(activity: RoundActivity, cycles: Sequence[RecoveryCycle], tests: WrittenTests) -> Measure:
    tokens = wasted_tokens(activity, cycles, working_steps(activity, tests.verifying_paths))
    if tokens is None:
        return not_measured("the tokens of each step were not recorded")
    wasted, total = tokens
    return measured(1 - wasted / total, f"{wasted} of {total} tokens in attempts that failed")
