"""What is known of a task's suites from all attempts at it, whoever made them: an agent must not gain by silence."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from typing import NamedTuple

from pytest_evocode.results.records import RoundRecord


class SuiteFacts(NamedTuple):
    """What the suites of a task gave in any attempt, by the indices of its rounds."""

    cases: frozenset[int] = frozenset()
    """The rounds whose suites reported cases, or have cases that ``evocode.lock`` lists."""
    decided: frozenset[int] = frozenset()
    """The rounds of which a reward decided whether they passed."""

    def merged(self, other: SuiteFacts) -> SuiteFacts:
        """Return what two together know."""
        return SuiteFacts(self.cases | other.cases, self.decided | other.decided)


NOTHING_KNOWN = SuiteFacts()


def reports_cases(record: RoundRecord) -> bool:
    """Return whether the suite of a round reported cases, or has pinned ones."""
    return bool(record.case_counts[1] or (record.verdict and record.verdict.pinned and record.verdict.pinned[1]))


def facts_of(records: Iterable[RoundRecord]) -> SuiteFacts:
    """Return what the rounds of one task tell.

    >>> from pytest_evocode.results.records import Verdict
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r2", index=2, declared_rounds=2, outcome="failed",
    ...     verdict=Verdict(reward=0, rewards={}, counts=(0, 3)))
    >>> facts_of([record]) == SuiteFacts(frozenset({2}), frozenset({2}))
    True
    """
    records = list(records)
    return SuiteFacts(
        frozenset(record.index for record in records if reports_cases(record)),
        frozenset(record.index for record in records if record.outcome in ("passed", "failed")),
    )


def suite_facts(records: Iterable[RoundRecord]) -> dict[str, SuiteFacts]:
    """Return the facts by task, of records of any agents at the same contents of each task."""
    by_task: dict[str, list[RoundRecord]] = defaultdict(list)
    for record in records:
        by_task[record.task].append(record)
    return {task: facts_of(found) for task, found in by_task.items()}
