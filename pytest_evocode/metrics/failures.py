"""What kind of failure a failing case is, decided case by case from the earlier rounds of its attempt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pytest_evocode.results.models import Case, CaseStatus, FailureKind, RoundRecord


def judge_cases(cases: Iterable[Case], earlier: Sequence[RoundRecord]) -> tuple[Case, ...]:
    """The cases with ``failure`` filled in for those that fail.

    ``earlier`` are the records of the rounds before, in order. A case that no earlier suite had is a *new miss*; one
    that passed when it was last run is a *regression*; one that failed then is *carried*.

    >>> from pytest_evocode.results.models import Verdict
    >>> before = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=2, outcome="failed",
    ...     verdict=Verdict(reward=0, rewards={}, cases=(Case(id="x", status="passed"), Case(id="y", status="failed"))))
    >>> now = [Case(id="x", status="failed"), Case(id="y", status="failed"), Case(id="z", status="error")]
    >>> [case.failure for case in judge_cases(now, [before])]
    ['regression', 'carried', 'new miss']
    """
    last: dict[str, CaseStatus] = {}
    for record in earlier:
        for case in record.verdict.cases if record.verdict else ():
            if case.status != "skipped":
                last[case.id] = case.status
    kinds: dict[CaseStatus, FailureKind] = {"passed": "regression", "failed": "carried", "error": "carried"}
    return tuple(
        case.model_copy(update={"failure": kinds[last[case.id]] if case.id in last else "new miss"})
        if case.failing
        else case
        for case in cases
    )
