"""The requirements that agents fail most."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from pytest_evocode.metrics.failures import failing_cases
from pytest_evocode.results.records import FailureKind, RoundRecord


@dataclass(frozen=True, slots=True)
class RequirementFailures:
    """How often one requirement failed, over all rounds that checked it, of any agents and attempts."""

    task: str
    requirement: str
    """The requirement's id, or the id of a case that names no requirement."""
    failed: int
    """In how many rounds one of its cases failed."""
    of: int
    """In how many rounds one of its cases was run."""
    kinds: dict[FailureKind, int]
    """How many of its failing cases are of each kind."""

    @property
    def share(self) -> float:
        """The share of the rounds that checked the requirement in which it failed, 0 to 100."""
        return 100 * self.failed / self.of


def worst_requirements(records: Iterable[RoundRecord]) -> list[RequirementFailures]:
    """Return the requirements that ever failed, the worst first: by share, then by number of rounds, then by name.

    >>> from pytest_evocode.results.records import Case, Verdict
    >>> def record(index, **cases):
    ...     cases = tuple(Case(id=id_, status=status, requirement=id_[0]) for id_, status in cases.items())
    ...     return RoundRecord(task="t", agent="a", attempt=1, round=f"r{index}", index=index, declared_rounds=2,
    ...         outcome="failed", verdict=Verdict(reward=0, rewards={}, cases=cases))
    >>> records = [record(1, a1="failed", a2="passed", b1="passed"), record(2, a1="passed", b1="failed", c1="failed")]
    >>> [(found.requirement, found.failed, found.of) for found in worst_requirements(records)]
    [('c', 1, 1), ('a', 1, 2), ('b', 1, 2)]
    """
    run: Counter[tuple[str, str]] = Counter()
    failed: Counter[tuple[str, str]] = Counter()
    kinds: dict[tuple[str, str], Counter[FailureKind]] = defaultdict(Counter)
    records = list(records)
    for record in records:
        checked: dict[tuple[str, str], bool] = {}
        for case in record.verdict.cases if record.verdict else ():
            key = record.task, case.requirement or case.id
            if case.status != "skipped" and key[1]:
                checked[key] = checked.get(key, False) or case.failing
        run.update(checked.keys())
        failed.update(key for key, fails in checked.items() if fails)
    for record, case, kind in failing_cases(records):
        kinds[record.task, case.requirement or case.id][kind] += 1
    found = [
        RequirementFailures(*key, failed=number, of=run[key], kinds=dict(sorted(kinds[key].items())))
        for key, number in failed.items()
    ]
    return sorted(found, key=lambda each: (-each.share, -each.failed, each.task, each.requirement))
