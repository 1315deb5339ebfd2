"""Which lost tries count against an attempt."""

from __future__ import annotations

from typing import Any, cast

import pytest

from pytest_evocode.plugin.cluster.placement import Needs
from pytest_evocode.plugin.cluster.units import MOST_NOT_BEGUN, AttemptUnit

pytestmark = pytest.mark.every_python


def unit() -> AttemptUnit:
    nothing = cast(Any, None)
    return AttemptUnit("a-1", nothing, None, [], nothing, Needs(), 0.0)


def test_a_node_that_had_died_before_the_attempt_began_there_costs_no_try() -> None:
    lost = unit()
    assert not lost.count_loss("on a", "the node was lost", with_node=True)
    assert lost.losses == []


def test_a_node_that_dies_under_an_attempt_does() -> None:
    lost = unit()
    lost.was_begun = True
    assert lost.count_loss("on a", "the node was lost", with_node=True)
    assert lost.losses == ["on a: the node was lost"]


def test_a_task_that_fails_on_a_living_node_does() -> None:
    assert unit().count_loss("on a", "its task failed: no such file", with_node=False)


def test_an_attempt_that_no_node_begins_is_not_tried_for_ever() -> None:
    lost = unit()
    counted = [lost.count_loss("on a", "the node was lost", with_node=True) for _ in range(2 * (MOST_NOT_BEGUN + 1))]
    assert sum(counted) == 2
    assert counted[-1]
