"""Pairs of rows of scores, compared task by task; the shape is ``Comparisons`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from typing import Any

from pytest_evocode.metrics.score_table import ScoreTable


def comparisons_of(table: ScoreTable) -> dict[str, Any]:
    """Return the comparisons of rows that are of one ranking, as JSON values."""
    raise NotImplementedError
