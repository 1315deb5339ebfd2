"""Verbosity and erosion over rounds, attempts and tasks."""

from __future__ import annotations

import pytest

from pytest_evocode.metrics.neighbours.published import CodeQuality, code_decay, quality_of


def quality(verbosity: float, erosion: float = 0, lines: float = 10) -> CodeQuality:
    return CodeQuality(verbosity, erosion, lines)


def test_means_are_over_rounds_then_attempts_then_tasks() -> None:
    found = code_decay({"t": [{1: quality(10), 2: quality(30)}, {1: quality(40)}], "u": [{1: quality(0)}]})
    assert found is not None
    assert found.quality.verbosity == pytest.approx(((10 + 30) / 2 + 40) / 2 / 2)
    assert found.by_round[1].verbosity == pytest.approx(((10 + 40) / 2 + 0) / 2)
    assert found.by_round[2].verbosity == 30
    assert found.rounds == 4


def test_decay_is_the_share_of_attempts_that_end_with_more() -> None:
    rising, falling = {1: quality(10, 5), 3: quality(20, 5)}, {1: quality(20, 5), 2: quality(90, 9), 3: quality(10, 5)}
    found = code_decay({"t": [rising, falling, {2: quality(0)}]})
    assert found is not None
    assert (found.verbosity_rises, found.erosion_rises) == (50, 0)
    alone = code_decay({"t": [{2: quality(0)}]})
    assert alone is not None
    assert alone.verbosity_rises is None


def test_without_files_nothing_is_measured() -> None:
    assert code_decay({}) is None
    assert code_decay({"t": [{}]}) is None
    assert quality_of({"verbosity": 0.0, "erosion": 0.0, "total_loc": 0}) is None
