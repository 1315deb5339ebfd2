"""``summary.json``, ``summary.md`` and every table as CSV: what a report says, for scripts and for language models."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_evocode.metrics.score_table import ScoreTable
from pytest_evocode.report.export import ROUND_COLUMNS, round_rows, write_csv
from pytest_evocode.report.html.contents import Redaction
from pytest_evocode.report.leaderboard import Leaderboard, leaderboard_table
from pytest_evocode.report.printable import printable_json
from pytest_evocode.report.results import results_json
from pytest_evocode.report.score_columns import REPORT_TASKS
from pytest_evocode.report.tables import NOT_MEASURED, counted, markdown_table, plain
from pytest_evocode.report.views import View, csv_text, printed

_SURVIVAL = ("agent", "round", "passed", "of", "first_failures")
_PARETO = ("score", "against", "agent", "x", "y", "front", "standing")
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
        yield "csv/leaderboard.csv", _encoded(redaction.values(csv_text(leaderboard_table(board))))
    names = {row["id"]: row["name"] for row in index["rows"]}
    yield "csv/rounds.csv", _csv(redaction.values(list(round_rows(table.rows))), ROUND_COLUMNS)
    yield "csv/tasks.csv", _csv(_tasks(index), ("agent", "task", *REPORT_TASKS, "name"))
    yield "csv/pass_rates.csv", _csv(_survival(index), _SURVIVAL)
    yield "csv/pareto.csv", _csv(_pareto(index, names), _PARETO)
    yield "csv/comparisons.csv", _csv(_differences(comparisons, names), _DIFFERENCES)


def _tasks(index: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for row in index["rows"]:
        for task, values in row["groups"].get("task", {}).items():
            yield {**values, "agent": row["name"], "name": row["name"], "task": task}


def _survival(index: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    return ({**point, "agent": row["name"]} for row in index["rows"] for point in row["survival"])


def _pareto(index: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for front in index["pareto"]:
        about = {"score": front["score"], "against": f"{front['against']}_per_attempt"}
        yield from ({**point, **about, "agent": names.get(point["row"])} for point in front["points"])


def _differences(comparisons: Mapping[str, Any], names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    for pair in comparisons["pairs"]:
        sides = {side: names.get(pair[side]) for side in ("first", "second")}
        for found in pair["differences"]:
            values = {f"{side}_value": found[side] for side in sides}
            yield {**found, **values, **sides, **(found["interval"] or {})}


def _csv(rows: Iterable[Mapping[str, Any]], columns: Iterable[str]) -> bytes:
    text = io.StringIO()
    write_csv(rows, columns, text)
    return _encoded(text.getvalue())


def _encoded(text: str) -> bytes:
    return text.encode("utf-8", "replace")


_MOST = 20
_RUN_FIELDS = ("name", "started", "finished", "exit_status", "arguments", "environment", "mode", "shard", "strict",
               "verify", "phases", "versions", "warnings", "commands")  # fmt: skip
_CELLS = {
    "r": "a regression", "n": "a new miss", "c": "carried failures", "s": "stale failures", "t": "a timeout",
    "b": "no case ran", "a": "an error of the agent", "i": "an infrastructure error", "o": "another reason",
}  # fmt: skip


def summary_json(
    table: ScoreTable,
    board: Leaderboard,
    index: Mapping[str, Any],
    requirements: Sequence[Mapping[str, Any]],
    redaction: Redaction,
) -> bytes:
    """Return the summary for scripts: the rows as ``evocode results --json`` has them, and what else a report counts.

    Args:
        table: The rows.
        board: The leaderboard.
        index: An Index of ``viewer/data.d.ts``.
        requirements: Those that failed, the worst first.
        redaction: Takes out of the table and the leaderboard what a report must not tell.
    """
    values = {
        **{name: index[name] for name in ("title", "written", "version", "under_way", "directories")},
        "runs": [{name: run[name] for name in _RUN_FIELDS} for run in index["runs"]],
        "leaderboard": board.entries,
        "notes": [*board.notes],
        # Intervals are in the leaderboard, where they were computed once.
        **results_json(table, by="task", with_intervals=False),
        "failures": {row["name"]: row["failures"] for row in index["rows"]},
        "requirements": list(requirements),
        "look_next": _look_next(index),
        "problems": index["problems"],
    }
    text = json.dumps(redaction.values(values), indent=1, ensure_ascii=False)
    return f"{printable_json(text)}\n".encode("utf-8", "replace")


def summary_markdown(
    board: Leaderboard, index: Mapping[str, Any], requirements: Sequence[Mapping[str, Any]], redaction: Redaction
) -> bytes:
    """Return the summary for people and language models, in Markdown; parameters as of :func:`summary_json`."""
    parts = [f"# {plain(index['title'])}", *_about(index)]
    parts += [
        "## Leaderboard",
        str(redaction.values(printed(View([leaderboard_table(board)]), "markdown"))) if board.entries else _NOTHING,
    ]
    notes = [f"- {plain(row['name'])}: {plain(note)}" for row in index["rows"] for note in row["notes"]]
    parts += ["\n".join(notes)] if notes else []
    if rows := index["rows"]:
        parts += ["## Failures by kind", "How many rounds did not pass, by what kept them from passing:"]
        parts += [_kinds({row["name"]: _rounds(row) for row in rows})]
        parts += ["Failing cases, by how they stand to the rounds before:"]
        parts += [_kinds({row["name"]: row["failures"]["cases"] for row in rows})]
    if requirements:
        parts += ["## Worst requirements", _requirements(requirements)]
    if found := _look_next(index):
        lines = (
            f"- {plain(each['task'])}, {plain(each['agent'])}, attempt {each['attempt']}: first failure in round "
            f"{each['round']}, {_CELLS.get(each['cell'], 'failed')}: {each['page']}"
            for each in found
        )
        parts += ["## Where to look next", "\n".join(lines)]
    if index["problems"]:
        shown = [f"- {plain(problem)}" for problem in index["problems"][:_MOST]]
        more = len(index["problems"]) - len(shown)
        parts += ["## Left out", "\n".join([*shown, *([f"- and {more} more"] if more else [])])]
    return ("\n\n".join(part.strip("\n") for part in parts) + "\n").encode("utf-8", "replace")


_NOTHING = "No round was made yet. Make attempts with: pytest --evocode-agent=AGENT TASKS"


def _about(index: Mapping[str, Any]) -> Iterator[str]:
    attempts = [each for each in index["attempts"] if not each["left_out"]]
    left_out = len(index["attempts"]) - len(attempts)
    tasks = index["tasks"]
    state = "A session is still writing results. " if index["under_way"] else ""
    agents = {each["agent"] for each in attempts}
    yield (
        f"{state}{counted(len(attempts), 'attempt')} by {counted(len(agents), 'agent')} at "
        f"{counted(len(tasks), 'task')} with {counted(sum(len(task['rounds']) for task in tasks), 'round')}, in "
        f"{counted(len(index['runs']), 'run')}"
        f"{f'; {left_out} more do not count' if left_out else ''}; written "
        f"{plain(index['written'])} by pytest-evocode {plain(index['version'])} from "
        f"{', '.join(map(plain, index['directories']))}."
    )
    head = ("Run", "Started", "Finished", "Mode", "Environment", "Exit status")
    rows = [
        (
            run["name"],
            run["started"] or NOT_MEASURED,
            run["finished"] or "not yet",
            run["mode"],
            run["environment"] or NOT_MEASURED,
            NOT_MEASURED if run["exit_status"] is None else str(run["exit_status"]),
        )
        for run in index["runs"][-_MOST:]
    ]
    if rows:
        yield markdown_table([head, *rows])
    if notes := index["notes"]:
        yield "\n".join(f"- {plain(note)}" for note in notes)


def _rounds(row: Mapping[str, Any]) -> dict[str, int]:
    return {**row["failures"]["rounds"], "not reached": row["failures"]["not_reached"]}


def _kinds(counts: Mapping[str, Mapping[str, int]]) -> str:
    kinds = dict.fromkeys(kind for found in counts.values() for kind, number in found.items() if number)
    if not kinds:
        return "None."
    rows = [(name, *(str(found.get(kind, 0)) for kind in kinds)) for name, found in counts.items()]
    return markdown_table([("agent", *kinds), *rows])


def _requirements(requirements: Sequence[Mapping[str, Any]]) -> str:
    head = ("Task", "Requirement", "Failed rounds", "Of", "Failing cases")
    rows = [
        (
            each["task"],
            each["requirement"],
            str(each["failed"]),
            str(each["of"]),
            ", ".join(f"{number} {kind}" for kind, number in each["kinds"].items()),
        )
        for each in requirements[:_MOST]
    ]
    more = len(requirements) - len(rows)
    return markdown_table([head, *rows]) + (f"\n\nAnd {more} more in summary.json." if more else "")


def _look_next(index: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the first failures of attempts that count, regressions and the earliest first, with their pages."""
    found = []
    for attempt in index["attempts"]:
        failing = [(place, cell) for place, cell in enumerate(attempt["cells"], 1) if cell in _CELLS]
        if failing and not attempt["left_out"]:
            place, cell = failing[0]
            about = {name: attempt[name] for name in ("task", "agent", "attempt", "run")}
            page = f"index.html#/round/{attempt['id']}/{place}"
            found.append({**about, "round": place, "cell": cell, "page": page})
    return sorted(found, key=lambda each: (each["cell"] != "r", each["round"], each["task"], each["agent"]))[:_MOST]
