"""What ``evocode results --view hazard`` prints: how often requirements break and are repaired, and how soon."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_evocode.metrics.hazard import Event, EventHistory, Hazard, hazards
from pytest_evocode.metrics.intervals import FEWEST_TASKS, Interval
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.report.neighbours import attempts_of_others, grid_of
from pytest_evocode.report.tables import join_first, values_of
from pytest_evocode.report.views import Column, Table, View, ends

_EVENTS: dict[Event, str] = {
    "break": "one that passed fails",
    "repair": "one that broke passes again",
    "catch-up": "one that failed when it came passes",
}
_EVENT = "What happens to a requirement: " + ", ".join(f"{event}, {what}" for event, what in _EVENTS.items()) + "."


def hazard_view(table: ScoreTable, rows: Sequence[ScoreRow]) -> View:
    """Return the hazards of some rows of a table, by rounds and by change types, and what is kept or repaired."""
    found: dict[str, dict[Event, EventHistory]] = {}
    notes = []
    # Single rounds begin with what the reference solutions lead to: nothing that an agent does lasts there.
    for row in (each for each in rows if each.mode != "single-round"):
        found[row.name], nameless = hazards(
            row.grid, grid_of(table, row, "oracle"), others=attempts_of_others(table, row), facts=table.facts
        )
        if nameless:
            notes.append(f"{row.name}: not counted, because nothing tells their cases apart: {join_first(nameless)}")
    known = [(name, event, each) for name, events in found.items() for event, each in events.items()]
    return View([_by_rounds(known), _without(known), _by_change(known)], notes=[*notes, *_notes(known)])


_History = tuple[str, Event, EventHistory]
"""The name of an agent, an event, and what is known of it."""


def _columns(across: str, cell: Column) -> tuple[Column, ...]:
    return (
        Column.text("agent", "agent"),
        Column.text("event", "event", _EVENT),
        Column.across(across),
        cell,
    )


_ENDS = " {percent_low:.1f}..{percent_high:.1f}"
_HAZARD = Column.form(
    "hazard",
    "{percent:.1f} ({events}/{at_risk})",
    "the share to which it happens (of how many that had come as far without it), and its 95 % interval",
    behind=_ENDS,
    fields=("percent", "events", "at_risk", "censored", "percent_low", "percent_high", "clusters"),
)


def _by_rounds(known: Sequence[_History]) -> Table:
    title = "hazard of requirements, by rounds since they passed (break), broke (repair) or came (catch-up)"
    return _table("hazard", title, "rounds", known, lambda each: [(None, each.overall), *each.by_rounds.items()])


def _by_change(known: Sequence[_History]) -> Table:
    title = "hazard of requirements, by change type of the round in which it happens"
    table = _table("hazard-by-change", title, "change", known, lambda each: each.by_change.items())
    return table if table.rows else replace(table, notes=["none: no metadata has change types"], most=0)


def _table(
    name: str,
    title: str,
    across: str,
    known: Sequence[_History],
    hazards_of: Callable[[EventHistory], Iterable[tuple[int | str | None, Hazard]]],
) -> Table:
    rows = [
        _row(agent, event, each, across, key, one)
        for agent, event, each in known
        for key, one in hazards_of(each)
        if one.at_risk
    ]
    return Table(name, title, _columns(across, _HAZARD), rows, titled=True, across=2)


def _row(name: str, event: Event, of: EventHistory, by: str, key: int | str | None, one: Hazard) -> dict[str, Any]:
    about = {"agent": name, "event": event, by: key, **values_of(one, "percent", "events", "at_risk", "censored")}
    return {**about, **ends(one.interval, "percent"), "clusters": of.clusters if one.interval else None}


def _without(known: Sequence[_History]) -> Table:
    """Return the curves: kept unbroken, which falls, and repaired or caught up, which rise."""
    rows = []
    for name, event, each in known:
        for rounds, one in each.without.items():
            percent, interval = one.percent, one.interval
            if event != "break":
                percent = 100 - percent
                interval = interval and Interval(100 - interval.high, 100 - interval.low, interval.method)
            about = {"agent": name, "event": event, "rounds": rounds}
            clusters = each.clusters if interval else None
            rows.append({**about, "percent": percent, **ends(interval, "percent"), "clusters": clusters})
    share = Column.form(
        "share",
        "{percent:.1f}",
        "the share of all up to then that never broke, or that were repaired or caught up, and its 95 % interval",
        behind=_ENDS,
        fields=("percent", "percent_low", "percent_high", "clusters"),
    )
    title = "kept unbroken, repaired and caught up (Kaplan-Meier), by rounds since the same"
    agent, _, *others = _columns("rounds", share)
    what = Column("what", lambda row: _KEPT[row["event"]], fields=("event",), left=True)
    return Table("hazard-curves", title, (agent, what, *others), rows, titled=True, across=2)


_KEPT: dict[Event, str] = {"break": "kept unbroken", "repair": "repaired", "catch-up": "caught up"}


def _notes(known: Sequence[_History]) -> Iterator[str]:
    units = {each.clusters for _, _, each in known if each.overall.at_risk}
    yield "what a retired requirement, the end of an attempt or a round without a verdict cuts off counts up to there"
    if "attempts" in units:
        yield f"below {FEWEST_TASKS} tasks intervals are over attempts, as if independent, and rather too short"
    if None in units:
        yield f"no interval below {FEWEST_TASKS} tasks and {FEWEST_TASKS} attempts"
