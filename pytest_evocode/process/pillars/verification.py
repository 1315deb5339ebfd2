"""Verification coverage: which functions, lines and requirements do the agent's own tests reach?

And test assertion density: how many assertions that can fail are there in a test? Five are enough.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured
from pytest_evocode.process.pillars.messages import specific_words
from pytest_evocode.process.protocols import ExecutedMeasures
from pytest_evocode.process.tests_written.code_elements import Symbol, TestFunction, TestVerification, WrittenTests
from pytest_evocode.process.tests_written.written_tests import changed_symbols, covers
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.tasks import DeclaredRequirement

#: Least share of a requirement's specific words in a test that is about it.
TRACED_SHARE = 0.5
#: Least number of these words; fewer where the requirement has fewer.
TRACED_WORDS = 2
#: Most requirements that one test can be about; a test that has more of them in its name or code is about none.
MOST_OF_A_TEST = 3


def verification(
    activity: RoundActivity,
    roles: FileRoles,
    tests: WrittenTests,
    requirements: Sequence[DeclaredRequirement],
    executed: ExecutedMeasures,
) -> dict[str, Measure]:
    """Return TCR, dC and RT, given the requirements of this round and of those before it."""
    if unknown := _unknown(executed):
        return {"TCR": unknown, "dC": executed.coverage_gain, "RT": unknown}
    return {
        "TCR": _creation_rate(activity, roles, tests, executed.verification),
        "dC": executed.coverage_gain,
        "RT": _traceability(tests, requirements, executed.verification),
    }


def _unknown(executed: ExecutedMeasures) -> Measure | None:
    """Return a measure without a value where nothing shows which tests can fail: whatever is written reads well."""
    unknown = executed.verification is None and executed.unverified
    return not_measured(f"which tests can fail is not known: {executed.unverified}") if unknown else None


def _creation_rate(
    activity: RoundActivity, roles: FileRoles, tests: WrittenTests, verification: TestVerification | None
) -> Measure:
    symbols, unread = changed_symbols(activity, roles)
    evidence = [Evidence(what=f"cannot be read: {why}", quote=path) for path, why in unread.items()]
    if not symbols:
        reason = "the changed source cannot be read" if unread else "no function or class was added or changed"
        return not_measured(reason, tuple(evidence))
    if tests.is_unknown:
        return not_measured("the tests cannot be read")
    covered = 0
    for symbol in symbols:
        test, how = _test_of(symbol, tests, verification)
        covered += test is not None
        what = f"{how} {test}" if test else "no test of the agent can fail for it"
        evidence.append(Evidence(what=what, quote=str(symbol)))
    reason = f"{covered} of {len(symbols)} functions and classes that were added or changed"
    return _sure(covered / len(symbols), reason, evidence, verification)


def _test_of(
    symbol: Symbol, tests: WrittenTests, verification: TestVerification | None
) -> tuple[TestFunction | None, str]:
    """Return a test of a function or class, and how that is known: by its mutants where there are some."""
    name = f"{symbol.path}:{symbol.name}"
    if verification is not None and name in verification.symbols:
        failing = (test for test in tests.verifying if name in verification.kills.get((test.path, test.name), ()))
        return next(failing, None), "its mutants fail"
    return next((test for test in tests.verifying if covers(test, symbol)), None), "imported and called by"


def _sure(value: float, reason: str, evidence: Sequence[Evidence], verification: TestVerification | None) -> Measure:
    if verification is None:
        return measured(value, reason, tuple(evidence))
    return measured(value, f"{reason}; {verification.reason}", tuple(evidence), certainty="executed")


def _traceability(
    tests: WrittenTests, requirements: Sequence[DeclaredRequirement], verification: TestVerification | None
) -> Measure:
    if not requirements:
        return not_measured("the task declares no requirements")
    if tests.is_unknown:
        return not_measured("the tests cannot be read")
    evidence = []
    traced = 0
    about = {test: [each for each in requirements if traces_to(test, each)] for test in tests.verifying}
    for requirement in requirements:
        found = [test for test, few in about.items() if requirement in few and len(few) <= MOST_OF_A_TEST]
        words = specific_words(requirement.text)
        # The evidence is the test whose name says most of it.
        test = max(found, key=lambda each: len(words & specific_words(each.name)), default=None)
        traced += test is not None
        what = f"{requirement.id}: {f'traced to by {test}' if test else 'no test of the agent is about it'}"
        evidence.append(Evidence(what=what, quote=requirement.text))
    reason = f"{traced} of {len(requirements)} requirements"
    return _sure(traced / len(requirements), reason, evidence, verification)


def traces_to(test: TestFunction, requirement: DeclaredRequirement) -> bool:
    """Return whether a test is about a requirement: it contains its id, or half of its specific words."""
    if not test.calls:
        return False
    text = f"{test.name}\n{test.text}"
    identifier = re.escape(requirement.id).replace(r"\-", "[-_ ]")
    if len(requirement.id) > 1 and re.search(rf"(?<![A-Za-z0-9]){identifier}(?![A-Za-z0-9])", text, re.IGNORECASE):
        return True
    words = specific_words(requirement.text)
    found = len(words & specific_words(text))
    return bool(words) and found / len(words) >= TRACED_SHARE and found >= min(TRACED_WORDS, len(words))


#: Assertions in a test beyond which more of them do not raise the value.
ENOUGH = 5


def assertion_density(tests: WrittenTests, executed: ExecutedMeasures) -> dict[str, Measure]:
    """Return TAD = min(1, meaningful asserts / max(1, test functions) / 5), of the agent's own tests."""
    if unknown := _unknown(executed):
        return {"TAD": unknown}
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
    if executed.verification is None:
        return {"TAD": measured(value, reason, (*evidence, *unread))}
    reason += f"; tests that fail for none of {executed.verification.reason} have none"
    return {"TAD": measured(value, reason, (*evidence, *unread), certainty="executed")}
