"""Which rows of scores can be ranked together: those of one mode, under the same conditions, of the same rounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.score_table import ScoreRow, differing_contents
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.identity import NOT_SAID, short_contents

_Groups = Mapping[str, Sequence[str]]
"""What rows have in common, with the names of the rows."""


def rankings(rows: Sequence[ScoreRow]) -> list[list[ScoreRow]]:
    """Return the rows by ranking: those over the most tasks and rounds first, and in each the rows in their order."""
    found: list[list[ScoreRow]] = []
    for row in rows:
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
    conditions = zip(_conditions(first), _conditions(second), strict=True)
    return (
        _mode(first) == _mode(second)
        and not differing_contents(first, second)
        and all(one == other for one, other in conditions if one and other)
    )


def ranking_notes(rows: Sequence[ScoreRow]) -> Iterator[str]:
    """Yield why the rows are not one ranking, a line for each reason; nothing where they are."""
    every = sorted({task.task for row in rows for task in row.grid.tasks})
    yield from _differ("modes", _grouped({row.name: _mode(row) for row in rows}))
    for column in zip(*map(_conditions, rows), strict=True):
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


def rounds_of(grid: Grid) -> tuple[tuple[str, tuple[int, ...]], ...]:
    """Return the tasks of a grid, and the indices of the rounds that count."""
    return tuple((task.task, task.indices) for task in grid.tasks)


def _mode(row: ScoreRow) -> str:
    return row.mode if row.from_round is None else f"{row.mode} from {row.from_round}"


def _conditions(row: ScoreRow) -> tuple[str, ...]:
    """Return the conditions of a row as texts, which are empty where its records do not say."""
    return tuple("" if text.endswith(NOT_SAID) else text for text in row.subject.conditions.texts())


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
        yield f"not one ranking, {what} differ: {_listed(groups)}"


def _differ_at(what: str, by_task: Mapping[str, _Groups]) -> Iterator[str]:
    """Yield how rows differ at the first task where they do, and which other tasks that holds for."""
    differing = [task for task, groups in by_task.items() if len(groups) > 1]
    if differing:
        task, *others = differing
        more = f"; and those of {join_first(others, 3)}" if others else ""
        yield f"not one ranking, {what} of {task} differ: {_listed(by_task[task])}{more}"


def _listed(groups: _Groups) -> str:
    return "; ".join(f"{text} ({join_first(names, 5)})" for text, names in groups.items())
