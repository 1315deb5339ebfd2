"""What ``evocode results --view model`` prints: agents, tasks, effects and variance, by the model of rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from itertools import combinations
from string import ascii_lowercase
from typing import TYPE_CHECKING

from pytest_evocode.metrics.round_model.posterior import TOLD_APART, Posterior, estimate
from pytest_evocode.report.tables import format_number
from pytest_evocode.report.views import Column, Row, Table, View

if TYPE_CHECKING:
    from pytest_evocode.metrics.round_model.outcomes import Floats

_INTERVAL = "Its 95 % interval."
_AGENTS = (
    Column.text("agent", "agent"),
    Column.number("score", "score", "The score expected of new attempts at these tasks, 0 to 100, by the model."),
    Column.interval("95 %", "low", "high", _INTERVAL),
    Column.form(
        "rank", "{rank_low:.0f} to {rank_high:.0f}", "The 95 % interval of its rank.",
        fields=("rank", "rank_low", "rank_high"),
    ),
    Column.text("group", "group", "Agents that share a letter are not told apart."),
)  # fmt: skip
_DIFFERENCES = (
    Column.text("agent", "agent"),
    Column.text("than", "than"),
    Column.number("difference", "difference", "Of the two scores, in points."),
    Column.interval("95 %", "low", "high", _INTERVAL),
    Column(
        "better", lambda row: format_number(100 * row["better"]),
        help="The probability that the first is better, in per cent.", fields=("better",),
    ),
)  # fmt: skip
_TASKS = (
    Column.text("task", "task"),
    Column.number(
        "difficulty", "difficulty", "The log-odds that the mean of these agents fails its middle round.", digits=2
    ),
    Column.interval("95 %", "low", "high", _INTERVAL),
    Column.number("discrimination", "discrimination", "How much more abilities matter than elsewhere.", digits=2),
    Column.interval("95 %", "discrimination_low", "discrimination_high"),
)
_EFFECTS = (
    Column.text("effect", "effect"),
    Column.number("log-odds", "log_odds", "What it adds to those that a round is passed.", digits=2),
    Column.interval("95 %", "low", "high", _INTERVAL),
)
_SHARES = (
    Column.text("part", "part"),
    Column.number("share", "share", "Of the variance of the log-odds of one round, in per cent."),
    Column.interval("95 %", "low", "high", _INTERVAL),
)
_MEANING = {
    "depth": "each further round",
    "carried": "the round before was not passed",
    "interaction": "agent by task",
}


def model_view(found: Mapping[str, Posterior]) -> View:
    """Return the tables of each mode, by its name, which is empty for chains."""
    tables = [table for mode, posterior in found.items() for table in _tables(mode, posterior)]
    notes = [
        f"{mode or 'chains'}: {posterior.diagnostics.draws:,} draws, R-hat at most {posterior.diagnostics.r_hat:.3f}, "
        f"at least {posterior.diagnostics.effective:.0f} effective, {posterior.diagnostics.divergences} "
        f"divergent; agents are told apart from a probability of "
        f"{TOLD_APART:.1%} on"
        for mode, posterior in found.items()
    ]
    return View(tables, json=lambda: _json(found), notes=notes)


def _json(found: Mapping[str, Posterior]) -> dict[str, dict[str, object]]:
    return {
        mode or "chain": {
            **{table.name.removesuffix(_suffix(mode)): _values(table) for table in _tables(mode, posterior)},
            "groups": [[posterior.seen.agents[each] for each in group] for group in posterior.groups],
            "diagnostics": asdict(posterior.diagnostics),
        }
        for mode, posterior in found.items()
    }


def _values(table: Table) -> list[dict[str, object]]:
    return [{name: row[name] for name in table.fields} for row in table.rows]


def _suffix(mode: str) -> str:
    return f"-{mode.replace(', ', '-').replace(' ', '-')}" if mode else ""


def _tables(mode: str, posterior: Posterior) -> Iterator[Table]:
    seen = posterior.seen

    def table(name: str, title: str, columns: Sequence[Column], rows: Sequence[Row]) -> Table:
        return Table(name + _suffix(mode), f"{title} ({mode})" if mode else title, columns, rows, titled=True)

    yield table("agents", "agents, by a model of their rounds", _AGENTS, list(_agents(posterior)))
    differences = [
        {
            "agent": seen.agents[one],
            "than": seen.agents[two],
            **_row("difference", posterior.scores[:, one] - posterior.scores[:, two]),
            "better": posterior.better(one, two),
        }
        for one, two in combinations(posterior.order, 2)
    ]
    yield table("differences", "differences of agents", _DIFFERENCES, differences)
    tasks: list[Row] = [
        {
            "task": seen.tasks[place],
            **_row("difficulty", posterior.difficulties[:, place]),
            **{
                name if name == "discrimination" else f"discrimination_{name}": value
                for name, value in _row("discrimination", posterior.discriminations[:, place]).items()
            },
        }
        for place in (-posterior.difficulties.mean(axis=0)).argsort(kind="stable")
    ]
    yield table("tasks", "tasks, the most difficult first", _TASKS, tasks)
    effects = [{"effect": _MEANING[name], **_row("log_odds", value)} for name, value in posterior.effects.items()]
    yield table("effects", "effects on a round", _EFFECTS, effects)
    shares = [
        {"part": _MEANING.get(name, name), **_row("share", 100 * value)}
        for name, value in posterior.variance_shares.items()
    ]
    yield table("variance", "shares of variance", _SHARES, shares)


def _row(name: str, draws: Floats) -> dict[str, float]:
    found = estimate(draws)
    return {name: found.mean, "low": found.low, "high": found.high}


def _agents(posterior: Posterior) -> Iterator[Row]:
    ranks = posterior.ranks
    for place in posterior.order:
        rank = estimate(ranks[:, place])
        letters = [_letter(number) for number, group in enumerate(posterior.groups) if place in group]
        yield {
            "agent": posterior.seen.agents[place],
            **_row("score", posterior.scores[:, place]),
            "rank": rank.mean,
            "rank_low": rank.low,
            "rank_high": rank.high,
            "group": " ".join(letters),
        }


def _letter(number: int) -> str:
    """Return a letter, and from the 27th group on two.

    >>> _letter(0), _letter(27)
    ('a', 'ab')
    """
    more, place = divmod(number, len(ascii_lowercase))
    return (_letter(more - 1) if more else "") + ascii_lowercase[place]


def assurance_table(posterior: Posterior, tasks: Sequence[int], attempts: Sequence[int], alpha: float) -> Table:
    """Return the probability that designs show the difference of the first two agents."""
    found = posterior.assurance(tasks, attempts, alpha)
    rows = [
        {"tasks": number, "attempts": made, "assurance": float(found[row, column])}
        for row, number in enumerate(tasks)
        for column, made in enumerate(attempts)
    ]
    columns = (
        Column.count("tasks", "tasks"),
        Column.count("attempts", "attempts"),
        Column(
            "assurance", lambda row: format_number(100 * row["assurance"]),
            help="The probability, in per cent, that so many show the difference of the two, whatever it is.",
            fields=("assurance",),
        ),
    )  # fmt: skip
    title = f"assurance: probability in per cent that new tasks and attempts show the difference (p <= {alpha:g})"
    return Table("assurance", title, columns, rows, titled=True, across=1)
