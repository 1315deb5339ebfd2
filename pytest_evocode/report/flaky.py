"""Names flaky rounds, in the summary of a session and below the table of results."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_evocode.metrics.faults import FlakyRound
from pytest_evocode.names import attempt_name

_SHOWN_ROUNDS = 20
_SHOWN_CASES = 3


def flaky_lines(found: Sequence[FlakyRound]) -> Iterator[str]:
    r"""Yield a line for each flaky round below a head, as far as they fit; nothing without any.

    >>> found = FlakyRound("ledger", "oracle", "round-3", 3, None, 1, 2, ("total", "balance"))
    >>> print(*flaky_lines([found]), sep="\n")
    1 flaky round, whose verdict differs although nothing else does; pytest --evocode-check looks for the reason:
      ledger oracle round-3: 1 of 2 attempts passed (differing: total, balance)
    """
    if not found:
        return
    head = (
        "1 flaky round, whose verdict differs"
        if len(found) == 1
        else f"{len(found)} flaky rounds, whose verdicts differ"
    )
    yield f"{head} although nothing else does; pytest --evocode-check looks for the reason:"
    for each in found[:_SHOWN_ROUNDS]:
        attempt, what = each.agent, "attempts"
        if each.attempt is not None:
            attempt, what = attempt_name(each.agent, each.attempt), "runs of its suite"
        more = " and more" if len(each.differing) > _SHOWN_CASES else ""
        cases = f" (differing: {', '.join(each.differing[:_SHOWN_CASES])}{more})" if each.differing else ""
        yield f"  {each.task} {attempt} {each.round}: {each.passed} of {each.of} {what} passed{cases}"
    if len(found) > _SHOWN_ROUNDS:
        yield f"  and {len(found) - _SHOWN_ROUNDS} more"
