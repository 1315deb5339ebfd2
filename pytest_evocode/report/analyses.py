"""What ``evocode analyses`` prints: pass@k, Reliability, rates by round, survival, solvable rounds, token ratios."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

from pytest_evocode.metrics.analyses import Analyses, Failed, Pooled, Share, pool
from pytest_evocode.metrics.intervals import NO_INTERVAL, Interval
from pytest_evocode.metrics.over_attempts import Unit, counts
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.metrics.spending import TokenRatio, Tokens, overall_token_ratio
from pytest_evocode.metrics.statistics.survival import Survival, kaplan_meier
from pytest_evocode.report.notes import identity_json
from pytest_evocode.report.score_columns import COLUMNS, OLDER_LEADERBOARD, format_interval, score_values
from pytest_evocode.report.tables import NOT_MEASURED, aligned, format_number

_COUNTED: dict[Failed, str] = {"round": "rounds", "record": "failed records"}
_TOKENS: dict[Tokens, str] = {"generated": "generated tokens", "total": "prompt and generated tokens"}


class _Row(NamedTuple):
    """A number of each round, and one of all rounds together."""

    name: str
    overall: str
    by_round: Mapping[int, str]


def analyses_lines(found: Sequence[Analyses]) -> Iterator[str]:
    """Yield all tables."""
    pooled = [*(each.pooled for each in found), *pool(found)]
    yield "pass@k, that any of k attempts passes, and pass^k, that all do: means over tasks of their rounds"
    yield from _pass_at_k_lines(found, "round")
    yield ""
    chains = [each for each in found if each.row.mode != "single-round"]
    if chains:
        yield "the same of whole tasks, which an attempt passes that passes all rounds: means over tasks"
        yield from _pass_at_k_lines(chains, "task")
        yield ""
        yield from _reliability_lines(chains)
        yield ""
    yield "pass rate, by round: share of the tasks with so many rounds that pass it, and how many tasks these are"
    yield from _by_round([_Row(each.name, "", _shares(each.pass_rates)) for each in pooled])
    if chains:
        yield ""
        yield from _survival_lines(pooled)
    yield ""
    yield from _solvable_lines(pooled)
    for kind, title in _TOKENS.items():
        yield ""
        yield f"{title} of failing over passing rounds, by round, and how many of both there are"
        yield from _by_round([_ratio_row(each.name, each.token_ratios[kind]) for each in pooled])
    yield ""
    yield from older_lines({each.row.name: each.scores for each in found})


def _pass_at_k_lines(found: Sequence[Analyses], unit: Unit) -> Iterator[str]:
    rows = [("  agent", "k", "pass@k", "95 %", "pass^k", "95 %", "tasks")]
    for each in found:
        for one, (at, hat) in zip(each.pass_at_k.get(unit, ()), each.intervals.get(unit, ()), strict=True):
            any_of, all_of = format_number(one.pass_at_k), format_number(one.pass_hat_k)
            cells = (str(one.k), any_of, format_interval(at), all_of, format_interval(hat))
            rows.append((f"  {each.row.name}", *cells, f"{one.tasks}/{each.scores.tasks}"))
    yield from aligned(rows)
    if any(one.tasks < each.scores.tasks for each in found for one in each.pass_at_k.get(unit, ())):
        yield "  a number is over the tasks with k attempts; compare different k only over the same tasks"
    if any(None in pair for each in found for pair in each.intervals.get(unit, ())):
        yield f"  {NO_INTERVAL}"


def _reliability_lines(found: Sequence[Analyses]) -> Iterator[str]:
    yield "Reliability: of the rounds that any attempt passes, the share that all pass; over tasks with two or more"
    rows = [("  agent", "Reliability", "95 %", "tasks")]
    for each in found:
        tasks = f"{each.scores.reliability_tasks}/{each.scores.tasks}"
        cells = format_number(each.scores.reliability), format_interval(each.reliability_interval), tasks
        rows.append((f"  {each.row.name}", *cells))
    yield from aligned(rows)
    if any(each.scores.reliability is not None and each.reliability_interval is None for each in found):
        yield f"  {NO_INTERVAL}"


def _survival_lines(pooled: Sequence[Pooled]) -> Iterator[str]:
    yield "survival (Kaplan-Meier), by round: share of the attempts that fail in no round so far, of how many at risk"
    rows = []
    for each in pooled:
        if each.survives:
            found = kaplan_meier(each.followed)
            cells = {
                index: f"{format_number(100 * one.share)} ({each.followed[index].at_risk:.4g})"
                for index, one in found.items()
            }
            ends = {index: format_interval(_interval(one)) for index, one in found.items()}
            rows += [_Row(each.name, "", cells), _Row("  95 %", "", ends)]
    yield from _by_round(rows)
    yield "  attempts at one task count as one; what ended for no fault of the agent counts up to there"


def _interval(found: Survival) -> Interval | None:
    return None if found.low is None or found.high is None else Interval(100 * found.low, 100 * found.high, "log-log")


def _survival_json(pooled: Pooled) -> dict[str, dict[str, Any]] | None:
    if not pooled.survives:
        return None
    return {
        str(index): {
            "percent": 100 * one.share,
            "interval": _ends(_interval(one)),
            **asdict(pooled.followed[index]),
        }
        for index, one in kaplan_meier(pooled.followed).items()
    }


def _solvable_lines(pooled: Sequence[Pooled]) -> Iterator[str]:
    yield "solvable: of what fails in a chain, the share that passes in single-round mode, and how much fails"
    known = [
        (f"{each.name}, {title}", each.solvable[counted])
        for each in pooled
        if each.solvable is not None
        for counted, title in _COUNTED.items()
    ]
    if not known:
        yield f"  {NOT_MEASURED}: no agent has both; pytest --evocode-mode=single-round runs single rounds"
        return
    yield "  rounds: each (agent, task, round) that no attempt passed, reached or not"
    yield "  failed records: each (agent, task, attempt, round) that was reached and failed, as the paper counts"
    yield from _by_round([_Row(name, _share(of.overall), _shares(of.by_round)) for name, of in known])
    changes = sorted({change for _, of in known for change in of.by_change})
    if changes:
        yield ""
        yield "solvable, by change type"
        empty = Share(0, of=0)
        rows = [("  agent", *changes)]
        rows += [(f"  {name}", *(_share(of.by_change.get(change, empty)) for change in changes)) for name, of in known]
        yield from aligned(rows)


def _share(share: Share) -> str:
    return f"{format_number(share.percent)} ({share.of})"


def _shares(shares: Mapping[int, Share]) -> dict[int, str]:
    return {index: _share(share) for index, share in shares.items()}


def _ratio_row(name: str, ratios: Mapping[int, TokenRatio]) -> _Row:
    cells = {
        index: f"{format_number(found.ratio, digits=2)} ({found.failing_rounds}/{found.passing_rounds})"
        for index, found in ratios.items()
    }
    return _Row(name, format_number(overall_token_ratio(ratios), digits=2), cells)


def _by_round(rows: Sequence[_Row]) -> Iterator[str]:
    indices = sorted({index for row in rows for index in row.by_round})
    overall = ["all"] if any(row.overall for row in rows) else []
    cells = [("  agent", *overall, *map(str, indices))]
    for row in rows:
        shown = [row.overall] if overall else []
        cells.append((f"  {row.name}", *shown, *(row.by_round.get(index, "") for index in indices)))
    yield from aligned(cells)


def older_lines(scores: Mapping[str, Scores]) -> Iterator[str]:
    """Yield the table that EvoCode-Bench's older leaderboard (MT@4) has, by the name of the row."""
    yield "columns of EvoCode-Bench's older leaderboard; turns and tokens are of one attempt over all rounds of a task"
    rows: list[tuple[str, ...]] = [("  agent", *(COLUMNS[field].title for field in OLDER_LEADERBOARD))]
    for name, row in scores.items():
        values = score_values(OLDER_LEADERBOARD, row)
        cells = {field: COLUMNS[field].text(values, field) for field in OLDER_LEADERBOARD}
        if row.gap is not None:
            cells["gap"] = f"{row.gap:+.1f}"
        rows.append((f"  {name}", *cells.values()))
    yield from aligned(rows)


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
                **{name: getattr(each.scores, name) for name in _OF_SCORES},
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
    return {"percent": share.percent, "passed": share.passed, "of": share.of}


def _shares_json(shares: Mapping[int, Share] | Mapping[str, Share]) -> dict[str, dict[str, float | None]]:
    return {str(key): _share_json(share) for key, share in shares.items()}
