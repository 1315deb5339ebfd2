"""Every table of a report as CSV, for other programs."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pytest_evocode.metrics.score_table import ScoreTable
from pytest_evocode.report.export import ROUND_COLUMNS, round_rows, write_csv
from pytest_evocode.report.html.redaction import Redaction
from pytest_evocode.report.leaderboard import Leaderboard, as_csv

_TASKS = ("agent", "task", "dataset_score", "case_score", "avg_rounds", "mt_at_k", "sr", "gap", "rounds")
_SURVIVAL = ("agent", "round", "passed", "of", "first_failures")
_PARETO = ("score", "against", "agent", "x", "y", "front")
_DIFFERENCES = (
    "first", "second", "field", "first_value", "second_value", "difference", "low", "high", "p_value", "won", "lost",
    "tied", "tasks",
)  # fmt: skip


def csv_files(
    table: ScoreTable,
    board: Leaderboard,
    index: Mapping[str, Any],
    comparisons: Mapping[str, Any],
    redaction: Redaction,
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of all tables.

    Args:
        table: The rows, of which the rounds are.
        board: The leaderboard.
        index: An Index of ``viewer/data.d.ts``.
        comparisons: Its Comparisons.
        redaction: Takes out of the table and the leaderboard what a report must not tell.
    """
    if board.entries:
        yield "csv/leaderboard.csv", _encoded(redaction.values(as_csv(board)))
    names = {row["id"]: row["name"] for row in index["rows"]}
    yield "csv/rounds.csv", _csv(redaction.values(list(round_rows(table.rows))), ROUND_COLUMNS)
    yield "csv/tasks.csv", _csv(_tasks(index), _TASKS)
    yield "csv/survival.csv", _csv(_survival(index), _SURVIVAL)
    yield "csv/pareto.csv", _csv(_pareto(index, names), _PARETO)
    yield "csv/comparisons.csv", _csv(_differences(comparisons, names), _DIFFERENCES)


def _tasks(index: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in index["rows"]:
        for task, values in row["groups"].get("task", {}).items():
            yield {"agent": row["name"], "task": task, **{name: values.get(name) for name in _TASKS[2:]}}


def _survival(index: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in index["rows"]:
        for point in row["survival"]:
            yield {"agent": row["name"], **{name: point[name] for name in _SURVIVAL[1:]}}


def _pareto(index: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for front in index["pareto"]:
        for point in front["points"]:
            about = {"score": front["score"], "against": front["against"], "agent": names.get(point["row"])}
            yield {**about, **{name: point[name] for name in ("x", "y", "front")}}


def _differences(comparisons: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for pair in comparisons["pairs"]:
        for found in pair["differences"]:
            yield {
                **found,
                "first": names.get(pair["first"]),
                "second": names.get(pair["second"]),
                "first_value": found["first"],
                "second_value": found["second"],
                **(found["interval"] or {"low": None, "high": None}),
            }


def _csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> bytes:
    text = io.StringIO()
    columns = tuple(columns)
    write_csv(({name: row.get(name) for name in columns} for row in rows), columns, text)
    return _encoded(text.getvalue())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")
