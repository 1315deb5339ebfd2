"""The rounds that a session has to run for those that were selected to mean something."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem


def restore_rounds(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items with the rounds of every chain together, in order, from the first to the last selected one.

    The second list has those that are left out, because they come before the round that chains begin with.
    """
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        if isinstance(item, RoundItem) and item.index <= item.parent.rounds.rounds_before:
            left_out.append(item)
            continue
        kept.append(item)
        if isinstance(item, RoundItem):
            item.parent.rounds = item.parent.rounds.including(item.index)
    restored: list[pytest.Item] = []
    seen: set[AttemptCollector] = set()
    for item in kept:
        if not isinstance(item, RoundItem) or not item.parent.is_chain:
            restored.append(item)
        elif item.parent not in seen:
            seen.add(item.parent)
            rounds = item.parent.rounds
            restored += item.parent.collect()[rounds.rounds_before : rounds.last]
    return restored, left_out
