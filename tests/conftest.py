"""Plugins of all tests: what is left to the night, and how long tests take."""

from __future__ import annotations

import pytest

from tests.by_day import ByDay
from tests.durations import Durations


def pytest_configure(config: pytest.Config) -> None:
    """Register the plugins."""
    config.pluginmanager.register(ByDay(config), "by-day")
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Durations(config), "test-durations")


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have reports say why a test is slow."""
    for mark in item.iter_markers("slow"):
        item.user_properties += [("slow", reason) for reason in mark.args]
