"""What ``evocode pareto`` prints: the fronts of score against cost, tokens and time, and how sure they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from pytest_evocode.metrics.efficiency import (
    AMOUNTS,
    SURE,
    Chance,
    Efficiency,
    efficiency,
    front,
    standings,
    taken_interval,
)
from pytest_evocode.metrics.grid import are_of_the_same_rounds
from pytest_evocode.metrics.intervals import FEWEST_TASKS, NO_INTERVAL, Interval
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, differing_contents
from pytest_evocode.metrics.task_values import passed_share
from pytest_evocode.report.tables import NOT_MEASURED, aligned, join_first
from pytest_evocode.report.views import Column, Row, Table, View, ends, shown_cells

_FRONTS = {**{name: (name,) for name in AMOUNTS}, "cost, tokens and time": (*AMOUNTS,)}
"""What the score is set against, by title."""
PER_ATTEMPT = {
    "cost": "Cost per attempt",
    "tokens": "Tokens per attempt",
    "time": "Agent time per attempt",
}
"""What columns of such amounts are called, which other tables have sums of."""
_FIELDS = {title: title if title in AMOUNTS else "all" for title in _FRONTS}


@dataclass(frozen=True, slots=True)
class _Group:
    """Rows that can be compared."""

    rows: Mapping[str, Efficiency]
    intervals: Mapping[str, Mapping[str, Interval | None]]
    """By row, of the score and of what it took."""
    chances: Mapping[str, Mapping[str, Chance]]
    """By front and row; without any below five tasks."""


def pareto_view(table: ScoreTable) -> View:
    """Return the fronts of those rows that can be compared."""
    groups = [_group(table, rows) for rows in _comparable(table.rows)]
    values = [_values(name, place, group) for place, group in enumerate(groups, 1) for name in group.rows]
    whole = Table("pareto", "Scores, and what one attempt took", (*_AMOUNTS, *_ON_FRONTS), values)
    lines = "\n\n\n".join("\n".join(_lines(group, place)) for place, group in enumerate(groups, 1))
    return View([whole, _pairs_table(groups)], json=lambda: [*map(_json, groups)], text=lines.splitlines())


def _comparable(rows: tuple[ScoreRow, ...]) -> list[list[ScoreRow]]:
    """Return the rows in groups of one mode, and of the same tasks and rounds."""
    groups: list[list[ScoreRow]] = []
    for row in rows:
        for group in groups:
            first = group[0]
            same_mode = (first.mode, first.from_round) == (row.mode, row.from_round)
            if same_mode and not differing_contents(first, row) and are_of_the_same_rounds(first.grid, row.grid):
                group.append(row)
                break
        else:
            groups.append([row])
    return groups


def _group(table: ScoreTable, group: Sequence[ScoreRow]) -> _Group:
    single = group[0].mode == "single-round"
    rows = {row.name: efficiency(row.grid, single=single, control=row.is_control) for row in group}
    grids = {row.name: row.grid for row in group}
    return _Group(
        rows,
        {
            row.name: {
                "score": table.intervals(row)["sr" if single else "dataset_score"],
                **{f"{amount}_per_attempt": taken_interval(row.grid, amount) for amount in AMOUNTS.values()},
            }
            for row in group
        },
        {
            title: standings(rows, grids, amounts, value=None if single else passed_share)
            for title, amounts in _FRONTS.items()
        },
    )


def _values(name: str, place: int, group: _Group) -> Row:
    row = group.rows[name]
    values: dict[str, Any] = {"agent": name, "group": place, "score": row.score}
    values |= {f"{amount}_per_attempt": row.per_attempt(amount) for amount in AMOUNTS.values()}
    for field, found in group.intervals[name].items():
        values |= ends(found, field)
    values["front_of"] = [title for title, amounts in _FRONTS.items() if name in front(group.rows, amounts).front]
    for title, field in _FIELDS.items():
        chance = group.chances[title].get(name)
        values |= {f"{field}_standing": chance and chance.standing, f"{field}_chance": chance and chance.on_front}
        values[f"{field}_percent"] = chance and 100 * chance.on_front
    return values


def _amount_columns(amount: str, before: str, form: str, behind: str, what: str) -> tuple[Column, Column]:
    """Return the columns of an amount and of its interval, with what a number has around it."""
    field = f"{AMOUNTS[amount]}_per_attempt"
    title = PER_ATTEMPT[amount][0].lower() + PER_ATTEMPT[amount][1:]
    one, low, high = (f"{before}{{{name}:{form}}}{behind}" for name in (field, f"{field}_low", f"{field}_high"))
    return (
        Column.form(title, one, f"{what} of one attempt at a task, the mean over tasks."),
        Column.form(f"{title} 95 %", f"{low}..{high}", nothing=NOT_MEASURED),
    )


_AMOUNTS = (
    Column.text("agent", "agent"),
    Column.number("score", "score", "The Dataset Score, or SR of single rounds."),
    Column.interval("95 %", "score_low", "score_high", "The interval of the score, over tasks."),
    *_amount_columns("cost", "$", ",.4f", "", "US dollars"),
    *_amount_columns("tokens", "", ",.0f", "", "Prompt and generated tokens"),
    *_amount_columns("time", "", ",.1f", " s", "Seconds of the agent's turns, without suites,"),
)


def _standing_column(title: str, field: str) -> Column:
    form, fields = f"{{{field}_standing}} ({{{field}_percent:.0f}} %)", (f"{field}_standing", f"{field}_chance")
    return Column.form(f"front: {title}", form, fields=fields, left=True, nothing=NOT_MEASURED)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


_ON_FRONTS = (
    Column(
        "front",
        lambda row: ", ".join(row["front_of"]) or "none",
        help="No row of its group is as good in the score and in what it takes, and better in one of them.",
        fields=("front_of", "group"),
        left=True,
    ),
    *(_standing_column(title, field) for title, field in _FIELDS.items()),
)


def _pairs_table(groups: Sequence[_Group]) -> Table:
    """Return how sure it is that a row dominates another one."""
    rows = [
        {"agent": name, "by": by, "front": title, "chance": share, "percent": 100 * share, "group": place}
        for place, group in enumerate(groups, 1)
        for title, chances in group.chances.items()
        for name, chance in chances.items()
        for by, share in chance.dominated_by.items()
    ]
    columns = (
        Column.text("agent", "agent"),
        Column.text("dominated by", "by"),
        Column.text("score against", "front"),
        Column.form(
            "resamples",
            "{percent:.0f} %",
            f"The share of resamples of the tasks, from {FEWEST_TASKS} tasks on, in which it is so.",
            fields=("chance", "group"),
        ),
    )
    return Table("pareto-pairs", "Who dominates whom, and how sure that is", columns, rows)


def _lines(group: _Group, place: int) -> Iterator[str]:
    """Yield the rows with what one attempt took, and the fronts."""
    yield from aligned(shown_cells(Table("", "", _AMOUNTS, [_values(name, place, group) for name in group.rows])))
    for title, amounts in _FRONTS.items():
        found, chances = front(group.rows, amounts), group.chances[title]
        yield ""
        yield f"score against {title}: {join_first(found.front) or 'nobody'}"
        for name, chance in chances.items():
            by = [f"{other} ({_percent(share)})" for other, share in chance.dominated_by.items()]
            more = f"; dominated by {join_first(by)}" if by else ""
            yield f"  {name}: {chance.standing} ({_percent(chance.on_front)}){more}"
        if not chances:
            yield from (f"  {name}: dominated by {join_first(by)}" for name, by in found.dominated.items())
        yield from (f"  {name}: left out, {why}" for name, why in found.left_out.items())
    if any(group.chances.values()):
        yield ""
        yield (
            "in brackets the share of resamples of the tasks in which a row is on the front, or is dominated; "
            f"from {100 * SURE:g} % on it is said that a row is on it, or beaten"
        )


def _json(group: _Group) -> dict[str, Any]:
    """Return the same as tables, with numbers in full precision; what was not measured is None."""
    rows = group.rows
    return {
        "agents": {name: _efficiency_json(row) for name, row in rows.items()},
        "intervals": {
            name: {field: each and asdict(each) for field, each in found.items()}
            for name, found in group.intervals.items()
        },
        "fronts": {title: asdict(front(rows, amounts)) for title, amounts in _FRONTS.items()},
        "chances": {
            title: {name: asdict(each) | {"standing": each.standing} for name, each in chances.items()}
            for title, chances in group.chances.items()
        },
        "why_not": "" if any(group.chances.values()) else NO_INTERVAL,
    }


def _efficiency_json(row: Efficiency) -> dict[str, Any]:
    return {
        "score": row.score,
        **{
            f"{field}_per_attempt": {**asdict(getattr(row, field)), "value": row.per_attempt(field)}
            for field in AMOUNTS.values()
        },
        "passed_rounds": row.passed_rounds,
        "control": row.control,
        "score_per_usd": row.score_per_usd,
    }
