"""What ``evocode metrics`` prints: the metrics of other benchmarks, an agent or a round in each row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Container, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pytest_evocode.metrics.grid import Grid, TaskRounds
from pytest_evocode.metrics.neighbours.published import CodeQuality, Milestones, ZeroRegression
from pytest_evocode.metrics.neighbours.summary import (
    AgentMetrics,
    NeighbourMetrics,
    Regressions,
    RoundRegressions,
    agent_metrics,
)
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable, differing_contents
from pytest_evocode.report.tables import join_first, values_of
from pytest_evocode.report.views import Column, Table, View

_COLUMNS: dict[str, tuple[Column, ...]] = {
    "swe-ci": (
        Column.number("EvoScore", "evo_score", "SWE-CI: how far from what nop passes to what is required."),
        Column.form(
            "zero-regression",
            "{zero_regression:.1f} ({without}/{of})",
            "SWE-CI: the share of attempts (so many of so many) that never lose a case that passed.",
        ),
    ),
    "evoclaw": (
        Column.number(
            "recall", "recall", "EvoClaw: the share that pass of the cases that a round is the first to require."
        ),
        Column.number(
            "precision",
            "precision",
            "EvoClaw: new passing cases over these and older failing ones, with 1 added to both.",
        ),
        Column.number("F1", "f1", "EvoClaw: the harmonic mean of both in each round, the mean over rounds."),
    ),
    "swe-evo": (
        Column.number("Fix Rate", "fix_rate", "SWE-EVO: as recall, but 0 where a case fails that passed before."),
    ),
    "regressions": (
        Column.number("lost", "lost", "Cases that passed before and fail, over all rounds."),
        Column.number("recovered", "recovered", "Lost cases that passed again."),
        Column.number("standing", "standing", "Lost cases that still fail in the last round."),
        Column.number(
            "standing, %", "standing_share", "The share of the cases that passed before and are still required."
        ),
        Column.number("so far", "so_far", "Cases that were lost up to this round."),
    ),
    "slopcodebench": (
        Column.number("verbosity", "verbosity", "SlopCodeBench: the share of lines that are flagged or cloned."),
        Column.number("erosion", "erosion", "SlopCodeBench: functions' mass in those of a complexity over 10."),
        Column.number("lines", "lines", "Lines of code."),
        Column.number("verbosity rises, %", "verbosity_rises", "The share of attempts whose verbosity rises."),
        Column.number("erosion rises, %", "erosion_rises", "The share of attempts whose erosion rises."),
    ),
    "cost": (
        Column.number("score", "score", "The Dataset Score, or SR of single rounds."),
        Column.form(
            "cost, each task once", "${cost_usd_each_task_once:,.4f}", "US dollars of one attempt at each task."
        ),
        Column.number("score per USD", "score_per_usd", "The score over the cost."),
        Column.form("USD per passed round", "${usd_per_passed_round:,.4f}", "The cost over the rounds that passed."),
    ),
}
_NOT_BY_ROUND = ("zero_regression", "standing_share", "verbosity_rises", "erosion_rises")
_BY_ROUND_ONLY = ("so_far",)
_SCORES = ("swe-ci", "evoclaw", "swe-evo")
METRICS = (*_COLUMNS,)
"""The names of all metrics, in order."""
FROM_RECORDS = tuple(name for name in METRICS if name != "slopcodebench")
"""Those that take nothing but records."""
_TITLES = {
    "published": "what other benchmarks would say",
    "regressions": "cases that passed before and were lost, in one attempt",
    "slopcodebench": "the code that rounds were left with",
    "cost": "the score for the money, of one attempt at each task",
}


def neighbour_metrics(table: ScoreTable, row: ScoreRow, gamma: float = 1.0) -> AgentMetrics:
    """Return the metrics of a row; oracle in its table tells what rounds require, and nop what they begin with."""
    return agent_metrics(
        row.grid,
        reference=grid_of(table, row, "oracle"),
        untouched=grid_of(table, row, "nop"),
        others=attempts_of_others(table, row),
        single=row.mode == "single-round",
        gamma=gamma,
    )


def attempts_of_others(table: ScoreTable, like: ScoreRow) -> Iterator[TaskRounds]:
    """Yield all other attempts at the same contents of tasks."""
    for row in table.rows:
        if row is not like:
            differing = differing_contents(row, like)
            yield from (task for task in row.grid.tasks if task.task not in differing)


def grid_of(table: ScoreTable, like: ScoreRow, agent: str) -> Grid:
    """Return the rounds of an agent in the mode of a row, of those tasks whose contents do not differ."""
    place = (agent, like.mode, like.from_round)
    found: dict[str, TaskRounds] = {}
    for row in table.rows:
        if (row.agent, row.mode, row.from_round) == place:
            same = row.without_tasks(differing_contents(row, like)).grid.tasks
            found = {task.task: task for task in same} | found
    return Grid(tuple(found.values()))


def metrics_view(agents: Mapping[str, AgentMetrics], names: Sequence[str], *, by_round: bool) -> View:
    """Return tables of the metrics of the named benchmarks, with a row for each agent or for each of its rounds."""
    tables = []
    if by_round:
        rows = [_row(name, of, index) for name, each in agents.items() for index, of in each.by_round.items()]
        columns = [Column.text("agent", "agent"), Column.text("round", "round")]
        columns += _columns([name for name in names if name != "cost"], without=_NOT_BY_ROUND)
        tables = [Table("metrics-by-round", "Metrics by round", columns, rows, by_section=True)]
    for name, title in _TITLES.items() if not by_round else ():
        shown = [each for each in names if each == name or (name == "published" and each in _SCORES)]
        if shown:
            columns = [Column.text("agent", "agent"), *_columns(shown, without=_BY_ROUND_ONLY)]
            rows = [_row(agent, each.whole) | _of_agent(each) for agent, each in agents.items()]
            tables.append(Table(f"metrics-{name}", title, columns, rows, titled=True))
    return View(tables, json=lambda: {agent: _agent_json(each, names, by_round) for agent, each in agents.items()})


def _columns(names: Collection[str], without: Container[str]) -> list[Column]:
    return [each for name in names for each in _COLUMNS[name] if each.fields[0] not in without]


def _row(agent: str, found: NeighbourMetrics, index: int | None = None) -> dict[str, Any]:
    """Return the values of one agent, over everything or in one round, by the fields of columns; None is not known."""
    values: dict[str, Any] = dict.fromkeys(field for each in _columns(METRICS, ()) for field in each.fields)
    for part in (found.milestones, found.regressions, found.quality):
        values |= {} if part is None else asdict(part)
    zero = found.zero_regression
    if zero is not None:
        values |= {"zero_regression": zero.percent, "without": zero.without, "of": zero.of}
    return {**values, "agent": agent, "round": index, "evo_score": found.evo_score, "fix_rate": found.fix_rate}


def _of_agent(each: AgentMetrics) -> dict[str, Any]:
    row, decay = each.efficiency, each.decay
    rises = {name: getattr(decay, name, None) for name in ("verbosity_rises", "erosion_rises")}
    amounts = values_of(row, "score", "score_per_usd", "usd_per_passed_round")
    return {**rises, **amounts, "cost_usd_each_task_once": row.cost_usd.value}


def note_lines(agents: Mapping[str, AgentMetrics], names: Sequence[str]) -> Iterator[str]:
    """Yield what the numbers of agents rest on, and why some are n/a; what holds for several agents is said once."""
    told: dict[str, list[str]] = defaultdict(list)
    for agent, each in agents.items():
        for note in _notes(each, names):
            told[note].append(agent)
    for note, whose in told.items():
        yield f"{', '.join(whose)}: {note}"


def _notes(each: AgentMetrics, names: Sequence[str]) -> Iterator[str]:
    of_cases = any(name in FROM_RECORDS and name != "cost" for name in names)
    if of_cases and each.without_reference:
        where = join_first(each.without_reference)
        yield f"without results of oracle, a round requires what any attempt has a case for: {where}"
    if of_cases and each.untold:
        yield f"n/a, because no attempt tells all cases that the round requires: {join_first(each.untold)}"
    if "swe-ci" in names and each.without_base:
        where = join_first(each.without_base)
        yield f"without results of nop, EvoScore takes it that nothing passes at the start: {where}"
    if of_cases and each.nameless:
        yield f"not counted, because nothing tells their cases apart: {join_first(each.nameless)}"
    if "cost" in names and (why := each.efficiency.cost_usd.why_not):
        yield f"the cost is {why}, so that the score per USD is not"


def _agent_json(each: AgentMetrics, names: Sequence[str], by_round: bool) -> dict[str, Any]:
    """Return the same as tables, with numbers in full precision; what was not measured is None."""
    found = _whole_json(each.whole, names)
    if "swe-ci" in found:
        found["swe-ci"]["gamma"] = each.gamma
    if "cost" in names:
        found["cost"] = values_of(each.efficiency, "score", "score_per_usd", "usd_per_passed_round")
        found["cost"]["cost_usd"] = asdict(each.efficiency.cost_usd)
    if "slopcodebench" in names:
        found["slopcodebench"] = None if each.decay is None else asdict(each.decay)
    for field in ("without_reference", "untold", "without_base", "nameless"):
        found[field] = list(getattr(each, field))
    if by_round:
        found["by_round"] = {
            str(index): _whole_json(of, names) | ({"slopcodebench": _table(of.quality)} if each.decay else {})
            for index, of in each.by_round.items()
        }
    return found


def _whole_json(row: NeighbourMetrics, names: Sequence[str]) -> dict[str, Any]:
    values: dict[str, Any] = {
        "swe-ci": {"evo_score": row.evo_score, "zero_regression": _table(row.zero_regression)},
        "evoclaw": _table(row.milestones),
        "swe-evo": {"fix_rate": row.fix_rate},
        "regressions": _table(row.regressions),
    }
    return {name: values[name] for name in names if name in values}


def _table(
    found: Milestones | ZeroRegression | Regressions | RoundRegressions | CodeQuality | None,
) -> dict[str, Any] | None:
    return None if found is None else asdict(found)
