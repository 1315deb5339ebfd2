"""``evocode compare``: agents, runs or results directories, compared with one of them task by task."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

import click

from pytest_evocode.cli.compared_rows import Side, matching_rows, read_side
from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import any_version_option, json_option, named_in_option, tasks_option
from pytest_evocode.metrics.comparison import (
    ALPHA,
    BEST_OF_ATTEMPTS,
    Comparison,
    ComparisonPlan,
    compare,
    plan,
    regressed,
)
from pytest_evocode.metrics.faults import faults, without_faults
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.intervals import FEWEST_TASKS, NO_INTERVAL
from pytest_evocode.metrics.score_table import ScoreRow, differing_contents
from pytest_evocode.metrics.scores import pinned_case_score
from pytest_evocode.metrics.statistics.significance import holm, smallest_p_value
from pytest_evocode.metrics.task_values import Metric
from pytest_evocode.report.comparison import SMALL_DIFFERENCE, TITLES, Compared, comparison_lines, wanted
from pytest_evocode.report.notes import identity_json

Regression = Literal["noise", "score", "round", "interval"]


@dataclass(frozen=True, slots=True)
class _Pair:
    """Two rows that are compared."""

    sides: tuple[Side, Side]
    rows: tuple[ScoreRow, ScoreRow]
    found: dict[Compared, Comparison]
    """Without the metrics that were not measured for both, or cannot be compared."""
    left_out: tuple[Metric, ...]
    """Those that cannot, because the two have different numbers of attempts."""
    faults: tuple[int, int]
    """How many rounds of either infrastructure errors kept from a verdict."""
    plan: ComparisonPlan | None

    @property
    def headline(self) -> Comparison:
        return self.found["dataset_score"]


@click.command("compare")
@click.argument("first", metavar="A")
@click.argument("others", metavar="B...", nargs=-1, required=True)
@named_in_option
@click.option("--agent", help="Compare only this agent.")
@tasks_option("Compare only the tasks in DIR; those without a result count as not passed.")
@any_version_option
@click.option("--fail-on-regression", is_flag=True, help="Exit with status 1 if B is worse than A.")
@click.option(
    "--regression",
    type=click.Choice(["noise", "score", "round", "interval"]),
    default="noise",
    show_default=True,
    help=(
        "What worse means: a Dataset Score that is lower beyond noise, by a permutation test, or any lower one where "
        "both agents are deterministic or the tasks too few to tell; any lower one; a round that only A passes; or a "
        "95 % interval below 0."
    ),
)
@json_option
def compare_command(
    first: str,
    others: tuple[str, ...],
    directory: Path,
    agent: str | None,
    task_directory: Path | None,
    any_version: bool,
    fail_on_regression: bool,
    regression: Regression,
    as_json: bool,
) -> None:
    """Compare B with A, task by task, and name the rounds that only one of them passes.

    A and B are each a results directory, the name of an agent, or a run, given by its name or its file in runs/.
    Directories and runs are compared agent by agent. If each has only one agent, these are compared whatever their
    names. Of several B, each is compared with A, and p-values are adjusted for their number.
    """
    baseline, *further = (
        read_side(name, directory, agent, task_directory, any_version=any_version) for name in (first, *others)
    )
    sides = [(baseline, side) for side in further]
    rows = [(each, matching) for each in sides for matching in matching_rows(*each)]
    # Of m comparisons a p-value can be up to 0.05 as adjusted by Holm only if it is up to 0.05 / m for one of them.
    pairs = [_compared(each, *matching, alpha=ALPHA / len(rows)) for each, matching in rows]
    adjusted = _adjusted(pairs)
    rules = [_rule(pair, regression, len(pairs)) for pair in pairs]
    worse = _worse(pairs, rules)
    if as_json:
        print_json([_as_json(*each) for each in zip(pairs, adjusted, rules, worse, strict=True)])
    else:
        echo("\n\n".join("\n".join(_lines(*each, len(pairs) > 1)) for each in zip(pairs, adjusted, strict=True)))
    if fail_on_regression:
        _tell_too_few_tasks(pairs, regression)
        for rule in dict.fromkeys(rules):
            named = zip(pairs, rules, worse, strict=True)
            if names := ", ".join(pair.rows[1].name for pair, of_pair, bad in named if bad and of_pair == rule):
                echo(f"regression ({rule}): {names}", err=True)
        if any(worse):
            sys.exit(1)


def _compared(sides: tuple[Side, Side], first: ScoreRow, second: ScoreRow, *, alpha: float) -> _Pair:
    found: dict[Compared, Comparison] = {}
    left_out: list[Metric] = []
    lost = _faults(first), _faults(second)
    for name in TITLES:
        grids = first.grid, second.grid
        metric: Metric = "dataset_score" if name == "without_faults" else name
        if name == "without_faults":
            if not any(lost):
                continue
            grids = _without_faults(first), _without_faults(second)
        if name == "pinned_case_score" and None in map(pinned_case_score, grids):
            continue
        if first.mode == "single-round" and name in BEST_OF_ATTEMPTS:
            continue
        try:
            comparison = compare(*grids, metric)
        except ValueError as error:
            if name == "dataset_score":
                raise click.ClickException(f"{first.name} and {second.name}: {error}") from None
            continue
        if name in BEST_OF_ATTEMPTS and not comparison.same_attempts:
            left_out.append(metric)
        else:
            found[name] = comparison
    return _Pair(sides, (first, second), found, tuple(left_out), lost, plan(first.grid, second.grid, alpha=alpha))


def _without_faults(row: ScoreRow) -> Grid:
    return without_faults(row.grid, chains=row.mode != "single-round")


def _faults(row: ScoreRow) -> int:
    single = row.mode == "single-round"
    found = faults(Grid(()) if single else row.grid, row.grid if single else Grid(()))
    return found.rounds if found else 0


def _adjusted(pairs: Sequence[_Pair]) -> list[dict[Compared, float | None]]:
    """Return the p-values of each pair by metric, adjusted for the number of pairs."""
    adjusted: list[dict[Compared, float | None]] = [{} for _ in pairs]
    for metric in TITLES:
        p_values = holm([pair.found[metric].p_value if metric in pair.found else None for pair in pairs])
        for of_pair, p in zip(adjusted, p_values, strict=True):
            of_pair[metric] = p
    return adjusted


def _rule(pair: _Pair, regression: Regression, pairs: int) -> Regression:
    """Return the rule that one of several pairs is judged by: without noise, or the means to tell, any loss counts."""
    is_without_noise = all(row.deterministic for row in pair.rows)
    return "score" if regression == "noise" and (is_without_noise or _has_too_few_tasks(pair, pairs)) else regression


def _worse(pairs: Sequence[_Pair], rules: Sequence[Regression]) -> list[bool]:
    """Return of each pair whether B is worse."""
    beyond_noise = regressed([pair.headline for pair in pairs])
    found = []
    for pair, rule, is_beyond_noise in zip(pairs, rules, beyond_noise, strict=True):
        headline = pair.headline
        if rule == "noise":
            found.append(bool(is_beyond_noise))
        elif rule == "round":
            found.append(any(flip.lost for flip in headline.flips))
        elif rule == "interval":
            found.append(headline.interval is not None and headline.interval.high < 0)
        else:
            found.append(headline.lost > 0 and headline.difference < 0)
    return found


def _has_too_few_tasks(pair: _Pair, pairs: int) -> bool:
    """Return whether no p-value of so many comparisons could be small enough, whatever happened at the tasks."""
    tasks = pair.headline.tasks
    return tasks < FEWEST_TASKS or smallest_p_value(tasks, two_sided=False) * pairs > ALPHA


def _tell_too_few_tasks(pairs: Sequence[_Pair], regression: Regression) -> None:
    """Tell which pairs have too few tasks for a regression to be told from noise."""
    for pair in pairs:
        tasks, name = pair.headline.tasks, pair.rows[1].name
        count = f"{tasks} {'task' if tasks == 1 else 'tasks'}"
        if regression == "noise" and _has_too_few_tasks(pair, len(pairs)):
            echo(f"note: {name}: {count} cannot show a regression beyond noise; any lower score counts", err=True)
        if regression == "interval" and tasks < FEWEST_TASKS:
            echo(f"note: {name}: {count} cannot show a regression beyond noise, however large", err=True)


def _lines(pair: _Pair, adjusted: Mapping[Compared, float | None], several: bool) -> Iterator[str]:
    (a, b), (first, second) = pair.sides, pair.rows
    return comparison_lines(
        a.title(first),
        b.title(second),
        pair.found,
        plan=pair.plan,
        adjusted=adjusted if several else None,
        left_out=pair.left_out,
        faults=pair.faults,
        single_rounds=first.mode == "single-round",
    )


def _as_json(pair: _Pair, adjusted: Mapping[Compared, float | None], rule: Regression, worse: bool) -> dict[str, Any]:
    headline, (first, second) = pair.headline, pair.rows
    metrics = {}
    for metric, each in pair.found.items():
        values = asdict(each)
        for name in ("metric", "flips", "only_first", "only_second", "undecided", "attempts", "same_attempts", "test"):
            del values[name]
        values["interval"] = None if each.interval is None else [each.interval.low, each.interval.high]
        values["interval_method"] = None if each.interval is None else each.interval.method
        values |= {"p_value": each.p_value, "p_lower": each.p_lower, "p_adjusted": adjusted[metric]}
        metrics[metric] = values
    return {
        "first": {"name": first.name, "in": pair.sides[0].name, **identity_json(first)},
        "second": {"name": second.name, "in": pair.sides[1].name, **identity_json(second)},
        "changed_tasks": [
            {"task": task, "first": first.contents[task], "second": second.contents[task]}
            for task in differing_contents(first, second)
        ],
        "regression": worse,
        "regression_rule": rule,
        "metrics": metrics,
        "no_interval": NO_INTERVAL if headline.interval is None else None,
        "attempts": {"first": headline.attempts[0], "second": headline.attempts[1]},
        "left_out": pair.left_out,
        "faults": {"first": pair.faults[0], "second": pair.faults[1]},
        "flips": [{**asdict(flip), "lost": flip.lost} for flip in headline.flips],
        "flips_p_value": headline.flips_p_value,
        "flips_by_task_p_value": headline.flips_by_task_p_value,
        "alpha": pair.plan and pair.plan.alpha,
        "detectable": pair.plan and pair.plan.detectable,
        "wanted": pair.plan and wanted(pair.plan, SMALL_DIFFERENCE),
        "only_first": headline.only_first,
        "only_second": headline.only_second,
        "undecided": headline.undecided,
    }
