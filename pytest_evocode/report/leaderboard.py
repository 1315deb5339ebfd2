"""The leaderboard, a row for each agent with the best first, as Markdown, CSV and JSON."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_evocode.metrics.faults import Faults
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.intervals import NO_INTERVAL, Interval
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.report.export import write_csv
from pytest_evocode.report.faults import LEFT_OUT, SUFFIX, fault_lines
from pytest_evocode.report.markdown import plain
from pytest_evocode.report.rankings import ranking_notes, rankings, rounds_of
from pytest_evocode.report.scores import (
    MARK,
    TRUSTS,
    case_lines,
    format_interval,
    format_part,
    format_range,
    marked,
    undecided_lines,
)
from pytest_evocode.report.tables import NOT_MEASURED, format_number, format_thousands

TITLES = {
    "dataset_score": "Dataset Score",
    "case_score": "Case Score",
    "avg_rounds": "Avg Rounds",
    "perfect_tasks": "Perfect Tasks",
    "final_round_completion": "Comp",
    "hard_tasks": "Hard Tasks",
    "mean_reward": "Mean Reward",
    "mt_at_k": "MT@k",
    "sr": "SR",
    "gap": "Gap",
    "avg_turns": "Avg Turns",
    "output_tokens": "Output Tok.",
    "tasks": "Tasks",
    "rounds": "Rounds",
}
"""The titles of columns by fields of :class:`~pytest_evocode.metrics.scores.Scores`."""
#: Behind the name of an agent of which not all rounds were selected.
PARTIAL = "†"
_MARKED = ("dataset_score", "case_score", "perfect_tasks", "final_round_completion", "mean_reward", "mt_at_k", "sr")
#: Scores that have an interval on the board: those that agents are ranked by.
_WITH_INTERVAL = ("dataset_score", "sr")
#: Scores whose expectation changes with the number of attempts; the others are means over attempts.
_DEPEND_ON_K = ("perfect_tasks", "final_round_completion", "hard_tasks", "mt_at_k", "gap")
#: Columns of the Markdown table that are left out where no agent has a number in them.
_IF_MEASURED = ("SR 95 %", f"SR{SUFFIX}", "Avg Turns", "Output Tok.")
_WITHOUT_FAULTS = "_without_faults"
_LEFT_OUT = {field: LEFT_OUT[title] for field, title in TITLES.items() if title in LEFT_OUT}


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The rows with numbers in full precision, and what is to be known before one compares them."""

    entries: list[dict[str, Any]]
    """By ranking, in each the best first; what was not measured is None. All have the same fields."""
    notes: tuple[str, ...]


def leaderboard(table: ScoreTable, *, with_intervals: bool) -> Leaderboard:
    """Return the leaderboard of a table.

    The single rounds of an agent are the columns SR and Gap of its other rows, if it has any. The scores without faults
    are there where any row has a fault.
    """
    paired = {id(table.single_rounds(row)) for row in table.rows}
    rows = [row for row in table.rows if id(row) not in paired]
    scores = {row.name: table.scores(row) for row in rows}
    rows.sort(key=lambda row: (-_or_last(scores[row.name].dataset_score), -_or_last(scores[row.name].sr), row.name))
    faults = {row.name: table.faults(row) for row in rows}
    groups = rankings(rows)
    entries = []
    for number, ranking in enumerate(groups, 1):
        depend_on_k = list(_DEPEND_ON_K) if _differ_in_k(scores[row.name] for row in ranking) else []
        for row in ranking:
            intervals = table.intervals(row) if with_intervals else {}
            values = _values(scores[row.name], intervals, faults[row.name], with_faults=any(faults.values()))
            about = {
                "decided_tasks": scores[row.name].decided_tasks,
                "trusting": scores[row.name].trusting,
                "partial": sum(attempt.partial for attempt in row.attempts),
                "identity": row.subject.agent.hash,
                "ranking": number,
                "not_comparable": depend_on_k,
            }
            entries.append({"agent": row.name, **values, **about})
    singles = [table.grids(row)[1] for row in rows if row.mode != "single-round"]
    ranked = [row for ranking in groups for row in ranking]
    notes = _notes(entries, ranked, faults, singles)
    undecided = undecided_lines(scores, {row.name: row.grid for row in ranked})
    return Leaderboard(entries, (*notes, *case_lines(scores), *undecided))


def _values(
    scores: Scores, intervals: Mapping[str, Interval | None], faults: Faults | None, *, with_faults: bool
) -> dict[str, Any]:
    """Return k and the scores of a row, with the ends of intervals and the scores without faults behind them."""
    values: dict[str, Any] = {"k_min": scores.fewest_attempts, "k_max": scores.attempts}
    for field in TITLES:
        values[field] = getattr(scores, field)
        if intervals and field in _WITH_INTERVAL:
            values |= _ends(field, intervals[field])
        if with_faults and field in _LEFT_OUT:
            values[field + _WITHOUT_FAULTS] = values[field] if faults is None else _LEFT_OUT[field](faults)
    if with_faults:
        values["faults"] = 0 if faults is None else faults.rounds
    return values


def _differ_in_k(scores: Iterable[Scores]) -> bool:
    found = {k for row in scores for k in (row.fewest_attempts, row.attempts)}
    return len(found) > 1


def _or_last(value: float | None) -> float:
    return -1.0 if value is None else value


def _ends(field: str, found: Interval | None) -> dict[str, float | None]:
    return {f"{field}_low": found.low if found else None, f"{field}_high": found.high if found else None}


def _notes(
    entries: Sequence[Mapping[str, Any]],
    rows: Sequence[ScoreRow],
    faults: Mapping[str, Faults | None],
    singles: Iterable[Grid],
) -> Iterator[str]:
    if any(entry.get(f"{field}_low", 0) is None is not entry[field] for entry in entries for field in _WITH_INTERVAL):
        yield f"95 %: {NO_INTERVAL}"
    if any(entry["not_comparable"] for entry in entries):
        *names, last = (TITLES[field] for field in _DEPEND_ON_K)
        yield (
            f"{', '.join(names)} and {last} depend on k, the number of attempts at each task, which is not the same "
            "for all: do not rank by them (evocode analyses has pass@k at a k that all have)"
        )
    yield from ranking_notes(rows)
    if len({rounds_of(single) for single in singles if single.tasks}) > 1:
        yield "SR and Gap are not over the same rounds for all: do not rank by them"
    if lines := list(fault_lines(faults)):
        yield "; ".join(line.strip() for line in lines)


def as_markdown(board: Leaderboard) -> str:
    """Return the board as a Markdown table for GitHub, with its notes below."""
    rows = [{"Agent": _name(entry), **_cells(entry)} for entry in board.entries]
    unmeasured = {title for title in _IF_MEASURED if all(row.get(title) == NOT_MEASURED for row in rows)}
    if max(entry["ranking"] for entry in board.entries) == 1:
        unmeasured.add("Ranking")
    head = [title for title in rows[0] if title not in unmeasured]
    lines = [head, [":--", *("--:" for _ in head[1:])], *([row[title] for title in head] for row in rows)]
    table = "\n".join(f"| {' | '.join(line)} |" for line in lines) + "\n"
    if any(entry["partial"] for entry in board.entries):
        table += f"\n{PARTIAL} partial: where not all rounds of an attempt were selected, those that were count\n"
    if any(entry["trusting"] for entry in board.entries):
        table += f"\n\\{MARK} with rounds, passed or not, whose verdict trusts {TRUSTS}\n"
    return table + "".join(f"\n{plain(note)}\n" for note in board.notes)


def _name(entry: Mapping[str, Any]) -> str:
    name = str(entry["agent"]).replace("|", "\\|")
    return f"{name} {PARTIAL}" if entry["partial"] else name


def _cells(entry: Mapping[str, Any]) -> dict[str, str]:
    """Return the cells of a row by the titles of their columns."""
    k = format_range(entry["k_min"], entry["k_max"])
    cells = {"k": k}
    for field, title in TITLES.items():
        cells[title] = _mark(entry, field, _text(entry, field))
        if field in entry["not_comparable"] and cells[title] != NOT_MEASURED:
            cells[title] += f" (k={k})"
        if f"{field}_low" in entry:
            low, high = entry[f"{field}_low"], entry[f"{field}_high"]
            interval = None if low is None else Interval(low, high, "")
            cells["95 %" if field == "dataset_score" else f"{title} 95 %"] = format_interval(interval)
        if field + _WITHOUT_FAULTS in entry:
            cells[title + SUFFIX] = _mark(entry, field, format_number(entry[field + _WITHOUT_FAULTS]))
    if "faults" in entry:
        cells["Faults"] = str(entry["faults"])
    return {**cells, "Ranking": str(entry["ranking"])}


def _text(entry: Mapping[str, Any], field: str) -> str:
    if field == "perfect_tasks":
        return format_part(entry[field], entry["decided_tasks"])
    if field == "output_tokens":
        return format_thousands(entry[field])
    return str(entry[field]) if field in ("tasks", "rounds") else format_number(entry[field])


def _mark(entry: Mapping[str, Any], field: str, cell: str) -> str:
    return marked(cell).replace(MARK, f"\\{MARK}") if entry["trusting"] and field in _MARKED else cell


def as_csv(board: Leaderboard) -> str:
    """Return the board as CSV with numbers in full precision; what was not measured is empty, and lists have spaces."""
    text = io.StringIO()
    rows = [{**entry, "not_comparable": " ".join(entry["not_comparable"])} for entry in board.entries]
    write_csv(rows, rows[0], text)
    return text.getvalue()
