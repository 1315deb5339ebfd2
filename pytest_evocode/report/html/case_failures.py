"""The kinds of an attempt's failing cases, counted while its records are there with their cases."""

from __future__ import annotations

from collections import Counter

from pytest_evocode.metrics.failures import failing_cases
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import FailureKind


def case_failures_of(attempt: StoredAttempt) -> dict[int, dict[FailureKind, int]]:
    """Return how many failing cases of each kind the rounds of an attempt have, by the round's index.

    Args:
        attempt: An attempt that was loaded with its cases.
    """
    found: dict[int, Counter[FailureKind]] = {}
    for record, _, kind in failing_cases(attempt.record.rounds):
        found.setdefault(record.index, Counter())[kind] += 1
    return {index: dict(kinds) for index, kinds in found.items()}
