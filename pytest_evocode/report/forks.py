"""What ``evocode results --view forks`` prints: rounds after what-if forks, with what else was played of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from pytest_evocode.metrics.forks import ForkedRound
from pytest_evocode.report.views import Column, Table, View

_COUNTS = {
    "state": "The states that passed the suite of the round in FROM, of all.",
    "went_on": "Of the attempts that left these states, those that passed the round, of those with a verdict on it.",
    "fresh": "The same of forks by that agent itself, in new conversations.",
    "forked": "The same of the forks by AGENT.",
    "own": "The same of whole attempts by AGENT.",
}


def forks_view(rounds: Sequence[ForkedRound]) -> View:
    """Return the table of the rounds after forks."""
    columns = (
        Column.text("task", "task"),
        Column.text("from", "point", "Whose state the forks went on from, and the round that it was left after."),
        Column.text("agent", "agent", "Who went on."),
        Column.text("round", "round"),
        *(_passes_column(name, help) for name, help in _COUNTS.items()),
        Column.text("reading", "reading", "What that means where each count is all or none; else mixed."),
    )
    notes = ["only the first round after a fork begins in the state itself; later ones go on from what came of it too"]
    if any(each.forked.of == 1 for each in rounds):
        notes.append("a count of 1 is one attempt, which may come out otherwise; --evocode-attempts makes more")
    title = "Rounds after forks: whether the state was bad, or the agent cannot do the round"
    return View([Table("forks", title, columns, [_row(each) for each in rounds], notes=notes)])


def _row(found: ForkedRound) -> dict[str, Any]:
    values = asdict(found)
    for name in _COUNTS:
        values |= {f"{name}_{part}": number for part, number in values.pop(name).items()}
    return values


def _passes_column(name: str, help: str) -> Column:
    passed, of = f"{name}_passed", f"{name}_of"
    return Column(
        name.replace("_", " "),
        lambda row: f"{row[passed]}/{row[of]}" if row[of] else "-",
        help=help,
        fields=(passed, of),
        nothing="-",
    )
