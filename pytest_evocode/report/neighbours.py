"""What ``evocode metrics`` prints: the metrics of other benchmarks, an agent or a round in each row."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pytest_evocode.metrics.neighbours.published import CodeQuality, Milestones, ZeroRegression
from pytest_evocode.metrics.neighbours.summary import AgentMetrics, NeighbourMetrics, Regressions, RoundRegressions
from pytest_evocode.report.tables import NOT_MEASURED, aligned, format_money, format_number, join_first

_Cell = Callable[[NeighbourMetrics], str]


def _zero(found: ZeroRegression | None) -> str:
    return NOT_MEASURED if found is None else f"{found.percent:.1f} ({found.without}/{found.of})"


def _part(whole: object, name: str) -> float | None:
    value: float | None = getattr(whole, name, None)
    return value


_CELLS: dict[str, dict[str, _Cell]] = {
    "swe-ci": {
        "EvoScore": lambda row: format_number(row.evo_score),
        "zero-regression": lambda row: _zero(row.zero_regression),
    },
    "evoclaw": {
        "recall": lambda row: format_number(_part(row.milestones, "recall")),
        "precision": lambda row: format_number(_part(row.milestones, "precision")),
        "F1": lambda row: format_number(_part(row.milestones, "f1")),
    },
    "swe-evo": {"Fix Rate": lambda row: format_number(row.fix_rate)},
    "regressions": {
        "lost": lambda row: format_number(_part(row.regressions, "lost")),
        "recovered": lambda row: format_number(_part(row.regressions, "recovered")),
        "standing": lambda row: format_number(_part(row.regressions, "standing")),
        "standing, %": lambda row: format_number(_part(row.regressions, "standing_share")),
        "so far": lambda row: format_number(_part(row.regressions, "so_far")),
    },
    "slopcodebench": {
        "verbosity": lambda row: format_number(_part(row.quality, "verbosity")),
        "erosion": lambda row: format_number(_part(row.quality, "erosion")),
        "lines": lambda row: format_number(_part(row.quality, "lines")),
    },
}
_NOT_BY_ROUND = ("zero-regression", "standing, %")
_BY_ROUND_ONLY = ("so far",)
_RISES: dict[str, Callable[[AgentMetrics], str]] = {
    "verbosity rises, %": lambda each: format_number(_part(each.decay, "verbosity_rises")),
    "erosion rises, %": lambda each: format_number(_part(each.decay, "erosion_rises")),
}
_COST: dict[str, Callable[[AgentMetrics], str]] = {
    "score": lambda each: format_number(each.efficiency.score),
    "cost": lambda each: format_money(each.efficiency.cost_usd.value),
    "score per USD": lambda each: format_number(each.efficiency.score_per_usd),
    "USD per passed round": lambda each: format_money(each.efficiency.usd_per_passed_round),
}
_SCORES = ("swe-ci", "evoclaw", "swe-evo")
METRICS = (*_CELLS, "cost")
"""The names of all that :func:`metric_lines` can print, in order."""
FROM_RECORDS = tuple(name for name in METRICS if name != "slopcodebench")
"""Those that take nothing but records."""


def metric_lines(agents: Mapping[str, AgentMetrics], names: Sequence[str]) -> Iterator[str]:
    """Yield tables with a row for each agent, of the metrics of the named benchmarks."""
    tables: dict[str, dict[str, Callable[[AgentMetrics], str]]] = {
        "what other benchmarks would say": _of_agents([name for name in names if name in _SCORES]),
        "cases that passed before and were lost, in one attempt": _of_agents({"regressions"} & {*names}),
        "the code that rounds were left with": _of_agents({"slopcodebench"} & {*names}),
        "the score for the money, of one attempt at each task": _COST if "cost" in names else {},
    }
    for place, (heading, columns) in enumerate((heading, columns) for heading, columns in tables.items() if columns):
        yield from ["", heading] if place else [heading]
        rows = [("  agent", *columns)]
        rows += [(f"  {name}", *(cell(each) for cell in columns.values())) for name, each in agents.items()]
        yield from aligned(rows)


def _of_agents(names: Collection[str]) -> dict[str, Callable[[AgentMetrics], str]]:
    columns: dict[str, Callable[[AgentMetrics], str]] = {
        title: lambda each, cell=cell: cell(each.whole)  # type: ignore[misc]
        for title, cell in _columns(names, without=_BY_ROUND_ONLY).items()
    }
    return columns | (_RISES if "slopcodebench" in names else {})


def round_lines(agents: Mapping[str, AgentMetrics], names: Sequence[str]) -> Iterator[str]:
    """Yield, for each agent, a row for each round index; what says nothing of a single round is left out."""
    columns = _columns(names, without=_NOT_BY_ROUND)
    for place, (agent, each) in enumerate(agents.items()):
        yield from ["", f"{agent}:"] if place else [f"{agent}:"]
        rows = [("round", *columns)]
        rows += [(str(index), *(cell(found) for cell in columns.values())) for index, found in each.by_round.items()]
        yield from aligned(rows)


def _columns(names: Collection[str], without: Container[str]) -> dict[str, _Cell]:
    return {title: cell for name in names for title, cell in _CELLS.get(name, {}).items() if title not in without}


def note_lines(agents: Mapping[str, AgentMetrics], names: Sequence[str]) -> Iterator[str]:
    """Yield what the numbers of agents rest on, and why some are n/a; what holds for several agents is said once."""
    told: dict[str, list[str]] = defaultdict(list)
    for agent, each in agents.items():
        for note in _notes(each, names):
            told[note].append(agent)
    for note, whose in told.items():
        yield f"{', '.join(whose)}: {note}"


def _notes(each: AgentMetrics, names: Sequence[str]) -> Iterator[str]:
    of_cases = any(name in _CELLS and name in FROM_RECORDS for name in names)
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


def metrics_json(agents: Mapping[str, AgentMetrics], names: Sequence[str], *, by_round: bool) -> dict[str, Any]:
    """Return the same as tables, with numbers in full precision; what was not measured is None."""
    return {agent: _agent_json(each, names, by_round) for agent, each in agents.items()}


def _agent_json(each: AgentMetrics, names: Sequence[str], by_round: bool) -> dict[str, Any]:
    found = _whole_json(each.whole, names)
    if "swe-ci" in found:
        found["swe-ci"]["gamma"] = each.gamma
    if "cost" in names:
        row = each.efficiency
        found["cost"] = {
            "score": row.score,
            "cost_usd": asdict(row.cost_usd),
            "score_per_usd": row.score_per_usd,
            "usd_per_passed_round": row.usd_per_passed_round,
        }
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
