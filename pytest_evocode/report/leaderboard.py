"""The leaderboard: which rows can be ranked together, and the best first."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from pytest_evocode.metrics.faults import Faults
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.intervals import NO_INTERVAL
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, differing_contents
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.report.score_columns import (
    COLUMNS,
    LEADERBOARD,
    MARK,
    WITH_INTERVAL,
    depending_on_k,
    format_range,
    listed,
    score_columns,
    score_values,
)
from pytest_evocode.report.score_lines import (
    TRUSTS,
    case_lines,
    cut_lines,
    fault_lines,
    marked_lines,
    marked_name,
    undecided_lines,
)
from pytest_evocode.report.tables import NOT_MEASURED, fitting_groups, join_first
from pytest_evocode.report.views import Column, Row, Table, View
from pytest_evocode.results.identity import NOT_SAID, condition_columns, short_contents

_Groups = Mapping[str, Sequence[str]]
"""What rows have in common, with the names of the rows."""


def rankings(rows: Sequence[ScoreRow]) -> list[list[ScoreRow]]:
    """Return the rows by ranking: those over the most tasks and rounds first, and in each the rows in their order.

    Controls are in none.
    """
    found: list[list[ScoreRow]] = []
    for row in (row for row in rows if not row.is_control):
        fitting = (ranking for ranking in found if all(_is_one_ranking(row, each) for each in ranking))
        if (ranking := next(fitting, None)) is None:
            found.append([row])
        else:
            ranking.append(row)
    return sorted(found, key=lambda ranking: _size(ranking[0].grid), reverse=True)


def _size(grid: Grid) -> tuple[int, int]:
    return len(grid.tasks), sum(len(task.indices) for task in grid.tasks)


def _is_one_ranking(first: ScoreRow, second: ScoreRow) -> bool:
    return rounds_of(first.grid) == rounds_of(second.grid) and can_be_compared(first, second)


def can_be_compared(first: ScoreRow, second: ScoreRow) -> bool:
    """Return whether two rows can be compared over what both have: in mode, conditions and contents of tasks."""
    conditions = _conditions([first, second])
    return (
        _mode_of(first) == _mode_of(second)
        and not differing_contents(first, second)
        and all(one == other for one, other in conditions if one and other)
    )


def ranking_notes(rows: Sequence[ScoreRow]) -> Iterator[str]:
    """Yield why the rows are not one ranking, a line for each reason; nothing where they are."""
    every = sorted({task.task for row in rows for task in row.grid.tasks})
    yield from _differ("modes", _grouped({row.name: _mode_of(row) for row in rows}))
    for column in _conditions(rows):
        said = {row.name: text for row, text in zip(rows, column, strict=True) if text}
        yield from _differ("conditions", _grouped(said))
    yield from _differ("tasks", _grouped({row.name: _selection(row, every) for row in rows}))
    parts = {task: _grouped({row.name: text for row in rows if (text := _part(row, task))}) for task in every}
    yield from _differ_at("rounds", parts)
    differing = {task for first, second in combinations(rows, 2) for task in differing_contents(first, second)}
    contents = {
        task: _grouped({row.name: short_contents(row.contents[task]) for row in rows if row.contents.get(task)})
        for task in every
        if task in differing
    }
    yield from _differ_at("contents", contents)


def different_tasks(rows: Sequence[ScoreRow]) -> Iterator[str]:
    """Yield which tasks rows of the newest contents cover, in one line; nothing where they are the same."""
    newest = [row for row in rows if row.version == 0]
    every = sorted({task.task for row in newest for task in row.grid.tasks})
    groups = _grouped({row.name: _selection(row, every) for row in newest})
    if len(groups) > 1:
        yield fitting_groups("rows are over different tasks, compare them by evocode compare: ", groups)


def rounds_of(grid: Grid) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the tasks of a grid, and the indices of the rounds that count."""
    return tuple((task.task, task.indices) for task in grid.tasks)


def _mode_of(row: ScoreRow) -> str:
    return row.mode if row.from_round is None else f"{row.mode} from {row.from_round}"


def _conditions(rows: Sequence[ScoreRow]) -> list[tuple[str, ...]]:
    """Return for each condition its text in each row, which is empty where the row's records do not say."""
    columns = condition_columns([row.subject.conditions for row in rows])
    return [tuple("" if text.endswith(NOT_SAID) else text for text in column) for column in columns]


def _selection(row: ScoreRow, every: Sequence[str]) -> str:
    """Return how many of all tasks a row has, and without which."""
    absent = sorted(set(every) - {task.task for task in row.grid.tasks})
    text = f"{len(every) - len(absent)} of {len(every)}"
    return f"{text}, without {join_first(absent, 3)}" if absent else text


def _part(row: ScoreRow, name: str) -> str:
    """Return the rounds of a task that a row counts; empty where it does not have the task."""
    return next((_span(task.indices) for task in row.grid.tasks if task.task == name), "")


def _span(indices: Sequence[int]) -> str:
    """Return round indices in few characters.

    >>> _span((1, 2, 3)), _span((2,)), _span((1, 3))
    ('1-3', '2', '1, 3')
    """
    first, last = indices[0], indices[-1]
    whole = len(indices) > 1 and list(indices) == list(range(first, last + 1))
    return f"{first}-{last}" if whole else join_first(indices)


def _grouped(texts: Mapping[str, str]) -> _Groups:
    """Return the names by their texts, in the order in which texts first appear."""
    groups: dict[str, list[str]] = defaultdict(list)
    for name, text in texts.items():
        groups[text].append(name)
    return groups


def _differ(what: str, groups: _Groups) -> Iterator[str]:
    if len(groups) > 1:
        yield fitting_groups(f"not one ranking, {what} differ: ", groups)


def _differ_at(what: str, by_task: Mapping[str, _Groups]) -> Iterator[str]:
    """Yield how rows differ at the first task where they do, and which other tasks that holds for."""
    differing = [task for task, groups in by_task.items() if len(groups) > 1]
    if differing:
        task, *others = differing
        more = f"; and those of {join_first(others, 3)}" if others else ""
        yield fitting_groups(f"not one ranking, {what} of {task} differ: ", by_task[task]) + more


#: Columns that are there where no agent has a number in them, too.
_ALWAYS = ("95 %", "SR", "Gap")


@dataclass(frozen=True, slots=True)
class Leaderboard:
    """The rows with numbers in full precision, and what is to be known before one compares them."""

    entries: list[dict[str, Any]]
    """By group that can be ranked, in each the best first, and at last the controls, whose ``ranking_group`` is None;
    what was not measured is None. All have the same fields.
    """
    notes: tuple[str, ...]


def best_first(table: ScoreTable, *, columns: bool = False) -> list[ScoreRow]:
    """Return the rows that the board has, or those of single rounds that are ``columns`` of its rows."""
    paired = {id(table.single_rounds(row)) for row in table.rows}

    def key(row: ScoreRow) -> tuple[float, float, str]:
        found = table.scores(row)
        return -_or_last(found.dataset_score), -_or_last(found.sr), row.name

    return sorted((row for row in table.rows if (id(row) in paired) == columns), key=key)


def _or_last(value: float | None) -> float:
    return -1.0 if value is None else value


def leaderboard(table: ScoreTable, *, with_intervals: bool) -> Leaderboard:
    """Return the leaderboard of a table.

    The single rounds of an agent are the columns SR and Gap of its other rows, if it has any. The scores without faults
    are there where any row has a fault.
    """
    rows = best_first(table)
    on_board = {row.name for row in rows}
    scores = {row.name: table.scores(row) for row in table.rows if row.name in on_board}
    faults = {row.name: table.faults(row) for row in rows}
    groups = rankings(rows)
    controls = [row for row in rows if row.is_control]
    entries = []
    for number, ranking in (*enumerate(groups, 1), *([(None, controls)] if controls else [])):
        ranked = number is not None
        depend_on_k = (
            depending_on_k(LEADERBOARD) if ranked and _differ_in_k(scores[row.name] for row in ranking) else []
        )
        for row in ranking:
            intervals = table.intervals(row) if with_intervals else None
            values = score_values(
                LEADERBOARD, scores[row.name], intervals, faults[row.name], with_faults=any(faults.values())
            )
            about = {
                "partial": len(row.partial),
                "waiting": len(row.waiting),
                "name": row.name,
                "identity": row.subject.agent.hash,
                "ranking_group": number,
                "not_comparable": depend_on_k,
            }
            entries.append({"agent": row.name, **values, **about})
    of_rankings = [row for ranking in groups for row in ranking]
    singles = [table.grids(row)[1] for row in of_rankings if row.mode != "single-round"]
    notes = _notes(entries, of_rankings, faults, singles)
    undecided = undecided_lines(scores, {row.name: row.grid for row in (*of_rankings, *controls)})
    cut = cut_lines({row.name: row.attempts for row in (*rows, *controls)})
    return Leaderboard(entries, (*notes, *case_lines(scores), *undecided, *cut))


def _differ_in_k(scores: Iterable[Scores]) -> bool:
    found = {k for row in scores for k in (row.fewest_attempts, row.attempts)}
    return len(found) > 1


def _notes(
    entries: Sequence[Mapping[str, Any]],
    rows: Sequence[ScoreRow],
    faults: Mapping[str, Faults | None],
    singles: Iterable[Grid],
) -> Iterator[str]:
    if any(entry.get(f"{field}_low", 0) is None is not entry[field] for entry in entries for field in WITH_INTERVAL):
        yield f"95 %: {NO_INTERVAL}"
    if any(entry["not_comparable"] for entry in entries):
        yield (
            f"{listed(depending_on_k(LEADERBOARD))} depend on k, the attempts at a task, which differs: do not rank "
            "by them (--view analyses has pass@k at one k)"
        )
    yield from ranking_notes(rows)
    if len({rounds_of(single) for single in singles if single.tasks}) > 1:
        yield "SR and Gap are not over the same rounds for all: do not rank by them"
    yield from (line.strip() for line in fault_lines(faults))


def leaderboard_view(table: ScoreTable, *, with_intervals: bool) -> View:
    """Return the leaderboard of a table."""
    board = leaderboard(table, with_intervals=with_intervals)
    return View([leaderboard_table(board)], json=lambda: board.entries, caveats=board.notes)


def leaderboard_table(board: Leaderboard) -> Table:
    """Return the board as a table, with its notes below."""
    first = board.entries[0]
    with_faults = "faults" in first
    columns = [Column("agent", _name, fields=("agent",), left=True)]
    for column in score_columns(LEADERBOARD, intervals="dataset_score_low" in first, with_faults=with_faults):
        columns.append(
            replace(column, cell=partial(_with_k, column), nothing="" if column.title in _ALWAYS else column.nothing)
        )
    if with_faults:
        columns.append(Column.count("Faults", "faults", "Rounds that infrastructure errors kept from a verdict."))
    if len({entry["ranking_group"] for entry in board.entries}) > 1:
        about = "Rows of one number can be ranked against each other; the number is no rank. Controls are not ranked."
        columns.append(Column("Ranking group", lambda entry: str(entry["ranking_group"] or "control"), help=about))
    partial_, is_open = (any(entry[kind] for entry in board.entries) for kind in ("partial", "waiting"))
    notes = marked_lines(partial=partial_, is_open=is_open)
    if any(entry["trusting"] for entry in board.entries):
        notes.append(f"{MARK} with rounds, passed or not, whose verdict trusts {TRUSTS}")
    return Table("leaderboard", "Leaderboard", columns, board.entries, more=[*first], notes=[*notes, *board.notes])


def _with_k(column: Column, entry: Row) -> str:
    """Return the cell of a score, with k behind it where it depends on that and not all rows have the same."""
    cell = column.cell(entry)
    if cell == NOT_MEASURED or not any(COLUMNS[field].title == column.title for field in entry["not_comparable"]):
        return cell
    return f"{cell} (k={format_range(entry['k_min'], entry['k_max'])})"


def _name(entry: Row) -> str:
    return marked_name(entry["agent"], partial=bool(entry["partial"]), is_open=bool(entry["waiting"]))
