"""``summary.json`` and ``summary.md``: what a report says, for scripts and for language models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pytest_evocode.metrics.score_table import ScoreTable
from pytest_evocode.report.html.redaction import Redaction
from pytest_evocode.report.leaderboard import Leaderboard, as_markdown
from pytest_evocode.report.markdown import markdown_table, plain
from pytest_evocode.report.printable import printable_json
from pytest_evocode.report.results_json import results_json
from pytest_evocode.report.tables import NOT_MEASURED

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
    parts += ["## Leaderboard", str(redaction.values(as_markdown(board))) if board.entries else _NOTHING]
    if rows := index["rows"]:
        parts += ["## Failures by kind", "Rounds that did not pass, by what kept them from passing:"]
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
    attempts, tasks = index["attempts"], index["tasks"]
    state = "A session is still writing results. " if index["under_way"] else ""
    yield (
        f"{state}{len(attempts)} attempts by {len({each['agent'] for each in attempts})} agents at {len(tasks)} tasks "
        f"with {sum(len(task['rounds']) for task in tasks)} rounds, in {len(index['runs'])} runs; written "
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
    return markdown_table([("Agent", *kinds), *rows])


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
