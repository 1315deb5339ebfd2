"""What ``evocode analyses`` prints: pass@k, Reliability, rates by round, survival, solvable rounds, token ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pytest_evocode.metrics.analyses import ALL, Analyses, Failed, Pooled, Share, pool
from pytest_evocode.metrics.intervals import FEWEST_TASKS, NO_INTERVAL, Interval
from pytest_evocode.metrics.over_attempts import Unit, counts
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.metrics.spending import Tokens, overall_token_ratio
from pytest_evocode.metrics.statistics.survival import Survival, kaplan_meier
from pytest_evocode.report.notes import identity_json
from pytest_evocode.report.score_columns import COLUMNS, OLDER_LEADERBOARD, score_columns, score_values
from pytest_evocode.report.tables import NOT_MEASURED, values_of
from pytest_evocode.report.views import Column, Table, View, ends

_COUNTED: dict[Failed, str] = {"round": "rounds", "record": "failed records"}
_TOKENS: dict[Tokens, str] = {"generated": "generated tokens", "total": "prompt and generated tokens"}


_PASS_AT_K = (
    Column.text("agent", "agent"),
    Column.count("k", "k", "How many attempts the numbers are for."),
    Column.number("pass@k", "pass_at_k", "That any of k attempts passes."),
    Column.interval("95 %", "pass_at_k_low", "pass_at_k_high", "The interval before it, over tasks.", nothing=""),
    Column.number("pass^k", "pass_hat_k", "That all of k attempts pass."),
    Column.interval("95 %", "pass_hat_k_low", "pass_hat_k_high", nothing=""),
    Column.form("tasks", "{tasks}/{of}", "The tasks with k attempts."),
)


def analyses_view(found: Sequence[Analyses]) -> View:
    """Return all tables."""
    pooled = [*(each.pooled for each in found), *pool(found)]
    title = "pass@k, that any of k attempts passes, and pass^k, that all do: means over tasks of their rounds"
    tables = [_pass_at_k_table("pass-at-k-rounds", title, found, "round")]
    if chains := [each for each in found if each.row.mode != "single-round"]:
        title = "the same of whole tasks, which an attempt passes that passes all rounds: means over tasks"
        tables += [_pass_at_k_table("pass-at-k-tasks", title, chains, "task"), _reliability_table(chains)]
    tables.append(_pass_rates_table(pooled))
    if chains:
        tables.append(_survival_table(pooled))
    tables += _solvable_tables(pooled)
    tables += [_token_ratios_table(kind, pooled) for kind in _TOKENS]
    tables.append(older_table({each.row.name: each.scores for each in found}))
    return View(tables, json=lambda: analyses_json(found))


def _pass_at_k_table(name: str, title: str, found: Sequence[Analyses], unit: Unit) -> Table:
    rows = [
        {
            "agent": each.row.name,
            **asdict(one),
            "of": each.scores.tasks,
            **ends(at, "pass_at_k"),
            **ends(hat, "pass_hat_k"),
        }
        for each in found
        for one, (at, hat) in zip(each.pass_at_k.get(unit, ()), each.intervals.get(unit, ()), strict=True)
    ]
    notes = []
    if any(row["tasks"] < row["of"] for row in rows):
        notes.append("a number is over the tasks with k attempts; compare different k only over the same tasks")
    if any(None in pair for each in found for pair in each.intervals.get(unit, ())):
        notes.append(NO_INTERVAL)
    return Table(name, title, _PASS_AT_K, rows, titled=True, notes=notes)


def _reliability_table(found: Sequence[Analyses]) -> Table:
    rows = [
        {
            "agent": each.row.name,
            "reliability": each.scores.reliability,
            **ends(each.reliability_interval, "reliability"),
            "tasks": each.scores.reliability_tasks,
            "of": each.scores.tasks,
        }
        for each in found
    ]
    columns = (
        Column.text("agent", "agent"),
        Column.number("Reliability", "reliability", COLUMNS["reliability"].help),
        Column.interval("95 %", "reliability_low", "reliability_high", "Its 95 % interval, over tasks.", nothing=""),
        Column.form("tasks", "{tasks}/{of}", "Those with two or more attempts."),
    )
    unknown = any(row["reliability"] is not None and row["reliability_low"] is None for row in rows)
    title = "Reliability: of the rounds that any attempt passes, the share that all pass; over tasks with two or more"
    return Table("reliability", title, columns, rows, titled=True, notes=[NO_INTERVAL] if unknown else ())


def _share_columns(across: str, help: str) -> tuple[Column, ...]:
    """Return the columns of agents, and of a share for each of something that is across."""
    shown, fields = "{percent:.1f} ({of})", ("percent", "passed", "of")
    share = Column.form("share", shown, help, unknown=f"{NOT_MEASURED} ({{of}})", fields=fields)
    return Column.text("agent", "agent"), Column.across(across), share


def _pass_rates_table(pooled: Sequence[Pooled]) -> Table:
    title = "pass rate, by round: share of the tasks with so many rounds that pass it, and how many tasks these are"
    if any(each.name.startswith(ALL) for each in pooled):
        title += f"\n  {ALL}: of the pairs of an agent and a task, and how many pairs these are"
    columns = _share_columns("round", "the share of tasks that pass it (and how many have so many rounds)")
    rows = [
        {"agent": each.name, "round": index, **_share_json(share)}
        for each in pooled
        for index, share in each.pass_rates.items()
    ]
    return Table("pass-rates", title, columns, rows, titled=True, across=1)


def _survival_table(pooled: Sequence[Pooled]) -> Table:
    title = "survival (Kaplan-Meier), by round: share of the attempts that fail in no round so far, of how many at risk"
    share = Column.form(
        "share",
        "{percent:.1f} ({at_risk:.4g})",
        "the share that has failed in no round so far (of how many at risk), and its 95 % interval, log-log",
        behind=" {percent_low:.1f}..{percent_high:.1f}",
    )
    rows = [
        {
            "agent": each.name,
            "round": index,
            "percent": 100 * one.share,
            "at_risk": each.followed[index].at_risk,
            **ends(_interval(each, one), "percent"),
        }
        for each in pooled
        if each.survives
        for index, one in kaplan_meier(each.followed).items()
    ]
    notes = ["attempts at one task count as one; what ended for no fault of the agent counts up to there"]
    notes += [NO_INTERVAL] if any(each.survives and each.tasks < FEWEST_TASKS for each in pooled) else []
    columns = (Column.text("agent", "agent"), Column.across("round"), share)
    return Table("survival", title, columns, rows, titled=True, across=1, notes=notes)


def _interval(pooled: Pooled, found: Survival) -> Interval | None:
    if pooled.tasks < FEWEST_TASKS:
        return None
    return None if found.low is None or found.high is None else Interval(100 * found.low, 100 * found.high, "log-log")


def _survival_json(pooled: Pooled) -> dict[str, dict[str, Any]] | None:
    if not pooled.survives:
        return None
    return {
        str(index): {
            "percent": 100 * one.share,
            "interval": _ends(_interval(pooled, one)),
            **asdict(pooled.followed[index]),
        }
        for index, one in kaplan_meier(pooled.followed).items()
    }


def _solvable_tables(pooled: Sequence[Pooled]) -> Iterator[Table]:
    title = "solvable: of what fails in a chain, the share that passes in single-round mode, and how much fails"
    columns = _share_columns("round", "the share of what fails that passes alone (and how much fails)")
    known = [
        (f"{each.name}, {counted}", each.solvable[unit])
        for each in pooled
        if each.solvable is not None
        for unit, counted in _COUNTED.items()
    ]
    if not known:
        why = f"{NOT_MEASURED}: no agent has both; pytest --evocode-mode=single-round runs single rounds"
        yield Table("solvable", title, columns, [], titled=True, across=1, most=0, notes=[why])
        return
    title += (
        "\n  rounds: each (agent, task, round) that no attempt passed, reached or not"
        "\n  failed records: each (agent, task, attempt, round) that was reached and failed, as the paper counts"
    )
    rows = [
        {"agent": name, "round": index, **_share_json(share)}
        for name, of in known
        for index, share in ((None, of.overall), *of.by_round.items())
    ]
    yield Table("solvable", title, columns, rows, titled=True, across=1)
    if changes := sorted({change for _, of in known for change in of.by_change}):
        empty = Share(0, of=0)
        rows = [
            {"agent": name, "change": change, **_share_json(of.by_change.get(change, empty))}
            for name, of in known
            for change in changes
        ]
        columns = _share_columns("change", "the share of what fails that passes alone (and how much fails)")
        yield Table("solvable-by-change", "solvable, by change type", columns, rows, titled=True, across=1)


def _token_ratios_table(kind: Tokens, pooled: Sequence[Pooled]) -> Table:
    title = f"{_TOKENS[kind]} of failing over passing rounds, by round, and how many of both there are"
    about = "failing over passing (and how many of both)"
    ratio = Column.form("ratio", "{ratio:.2f}", about, behind=" ({failing_rounds}/{passing_rounds})")
    rows = []
    for each in pooled:
        ratios = each.token_ratios[kind]
        everything = {"ratio": overall_token_ratio(ratios), "failing_rounds": None, "passing_rounds": None}
        rows.append({"agent": each.name, "round": None, **everything})
        rows += [
            {"agent": each.name, "round": index, **asdict(one), "ratio": one.ratio} for index, one in ratios.items()
        ]
    columns = (Column.text("agent", "agent"), Column.across("round"), ratio)
    return Table(f"token-ratios-{kind}", title, columns, rows, titled=True, across=1)


def older_table(scores: Mapping[str, Scores]) -> Table:
    """Return the table that EvoCode-Bench's older leaderboard (MT@4) has, by the name of the row."""
    title = (
        "columns of EvoCode-Bench's older leaderboard; turns and tokens are of one attempt over all rounds of a task"
    )
    gap = COLUMNS["gap"]
    columns = [Column.text("agent", "agent")]
    for column in score_columns(OLDER_LEADERBOARD):
        signed = Column.form(gap.title, "{gap:+.1f}", gap.help)
        columns.append(signed if column.fields == ("gap",) else replace(column, nothing=""))
    rows = [{"agent": name, **score_values(OLDER_LEADERBOARD, row)} for name, row in scores.items()]
    return Table("older-leaderboard", title, columns, rows, titled=True)


def analyses_json(found: Sequence[Analyses]) -> dict[str, Any]:
    """Return what the tables show as JSON values, in full precision; None where nothing was measured."""
    return {
        "rows": [
            {
                **identity_json(each.row),
                "mode": each.row.mode,
                "from_round": each.row.from_round,
                "pass_at_k": {unit: _estimates(each, unit) for unit in each.pass_at_k},
                "passes": {unit: _passes(each, unit) for unit in each.pass_at_k},
                **values_of(each.scores, *_OF_SCORES),
                "reliability_interval": _ends(each.reliability_interval),
                **_pooled_json(each.pooled),
            }
            for each in found
        ],
        "pooled": [_pooled_json(each) for each in pool(found)],
    }


def _estimates(found: Analyses, unit: Unit) -> list[dict[str, Any]]:
    return [
        {**asdict(one), "pass_at_k_interval": _ends(at), "pass_hat_k_interval": _ends(hat)}
        for one, (at, hat) in zip(found.pass_at_k[unit], found.intervals[unit], strict=True)
    ]


def _ends(found: Interval | None) -> list[float] | None:
    return None if found is None else [found.low, found.high]


def _passes(found: Analyses, unit: Unit) -> dict[str, list[dict[str, int]]]:
    """Return what the estimates are made of, by task: how many attempts there are, and how many passed."""
    return {task.task: [{"attempts": n, "passed": c} for n, c in counts(task, unit)] for task in found.row.grid.tasks}


_OF_SCORES = ("tasks", "fewest_attempts", "attempts", "reliability", "reliability_tasks", *OLDER_LEADERBOARD[1:])


def _pooled_json(pooled: Pooled) -> dict[str, Any]:
    return {
        "name": pooled.name,
        "pass_rates": _shares_json(pooled.pass_rates),
        "kaplan_meier": _survival_json(pooled),
        "solvable": None
        if pooled.solvable is None
        else {
            counted: {
                "overall": _share_json(of.overall),
                "by_round": _shares_json(of.by_round),
                "by_change": _shares_json(of.by_change),
            }
            for counted, of in pooled.solvable.items()
        },
        "token_ratios": {
            kind: {
                "overall": overall_token_ratio(ratios),
                "by_round": {str(index): {**asdict(one), "ratio": one.ratio} for index, one in ratios.items()},
            }
            for kind, ratios in pooled.token_ratios.items()
        },
    }


def _share_json(share: Share) -> dict[str, float | None]:
    return values_of(share, "percent", "passed", "of")


def _shares_json(shares: Mapping[int, Share] | Mapping[str, Share]) -> dict[str, dict[str, float | None]]:
    return {str(key): _share_json(share) for key, share in shares.items()}
