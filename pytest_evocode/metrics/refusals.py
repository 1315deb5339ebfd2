"""How often models, or filters of their providers, refused to go on."""

from __future__ import annotations

from collections.abc import Iterable

from pytest_evocode.metrics.grid import by_agent
from pytest_evocode.results.records import RoundRecord


def refusal_rates(records: Iterable[RoundRecord]) -> dict[str, float]:
    """Return by agent the share, 0 to 100, of the rounds whose turn ended in a refusal, of those that it was asked for.

    Agents that refused nothing are left out.

    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r", index=1, declared_rounds=1, outcome="failed")
    >>> refusal_rates([record, record.model_copy(update={"refused": True, "index": 2})])
    {'a': 50.0}
    """
    found = {}
    for agent, of_agent in by_agent(records).items():
        asked = [record for record in of_agent if record.outcome != "not reached"]
        if refused := sum(record.refused for record in asked):
            found[agent] = 100 * refused / len(asked)
    return found
