"""Test assertion density: how many assertions that can fail are there in a test? Five are enough."""

from __future__ import annotations

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured
from pytest_evocode.process.tests_written import TestVerification, WrittenTests

#: Assertions in a test beyond which more of them do not raise the value.
ENOUGH = 5


def assertion_density(tests: WrittenTests, verification: TestVerification | None = None) -> dict[str, Measure]:
    """Return TAD = min(1, meaningful asserts / max(1, test functions) / 5), of the agent's own tests."""
    unread = tuple(Evidence(what=f"cannot be read: {why}", quote=path) for path, why in tests.unread.items())
    if tests.is_unknown:
        return {"TAD": not_measured("the tests cannot be read", unread)}
    meaningful = sum(test.asserts for test in tests.functions)
    trivial = sum(test.trivial for test in tests.functions)
    value = min(1.0, meaningful / max(1, len(tests.functions)) / ENOUGH)
    evidence = tuple(
        Evidence(what=f"{test.asserts} meaningful, {test.trivial} trivial assertions", quote=str(test))
        for test in tests.functions
    )
    reason = f"{meaningful} meaningful assertions in {len(tests.functions)} tests, {trivial} trivial ones left out"
    if verification is None:
        return {"TAD": measured(value, reason, (*evidence, *unread))}
    reason += f"; tests that fail for none of {verification.reason} have none"
    return {"TAD": measured(value, reason, (*evidence, *unread), certainty="executed")}
