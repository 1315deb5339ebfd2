"""What several runs of one suite on the same snapshot come to: one verdict, and whether the runs agree on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from pytest_evocode.results.phases import summed_phases
from pytest_evocode.results.records import Repeats, Verdict
from pytest_evocode.verifier.suite_run import SuiteRun

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


def differences(verdicts: Sequence[Verdict]) -> tuple[list[str], list[str]]:
    """Return the ids of the cases in which several verdicts on one workspace differ, and lines about all that does."""
    outcomes = [{case.id: str(case.status) for case in verdict.cases} for verdict in verdicts]
    ids = [
        id for id in sorted({id for each in outcomes for id in each}) if len({each.get(id) for each in outcomes}) > 1
    ]
    found = [f"{id}: {', '.join(each.get(id, 'not there') for each in outcomes)}" for id in ids]
    if len({verdict.timed_out for verdict in verdicts}) > 1:
        found.append(f"in time: {', '.join('no' if verdict.timed_out else 'yes' for verdict in verdicts)}")
    if not found and len({verdict.reward for verdict in verdicts}) > 1:
        found.append(f"the reward: {', '.join(verdict.shown_reward for verdict in verdicts)}")
    return ids, found
