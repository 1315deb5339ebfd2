"""What ``evocode compare`` and ``plan`` print: two agents side by side, and what differences can be seen."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from math import inf, sqrt
from typing import Any, Literal

from pytest_evocode.metrics.comparison import Comparison, ComparisonPlan, Flip, Range
from pytest_evocode.metrics.intervals import FEWEST_TASKS, NO_INTERVAL
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.metrics.statistics.variance import CONFIDENCE, MOST_PAIRS
from pytest_evocode.metrics.task_values import Metric
from pytest_evocode.report.score_columns import COLUMNS, COMPARED, SUFFIX
from pytest_evocode.report.tables import NOT_MEASURED, aligned, counted, format_number, values_of
from pytest_evocode.report.views import Column, Row, Table, View, ends, shown_cells

SHOWN_TASKS = (10, 20, 50, 100, 200)
SHOWN_ATTEMPTS = (1, 2, 4, 8, 16)


def planned_sizes(plan: ComparisonPlan) -> tuple[Sequence[int], Sequence[int]]:
    """Return the numbers of tasks and of attempts that a table shows: what there is, and some more of either."""
    return sorted({plan.tasks, *SHOWN_TASKS}), sorted({plan.attempts[0], *SHOWN_ATTEMPTS})


def range_json(name: str, found: Range) -> dict[str, float | None]:
    """Return the number that keeps the power under its name, and beside it the one by the variances as observed."""
    return {name: found.bound, f"{name}_as_observed": found.observed}


def wanted(plan: ComparisonPlan, difference: float) -> dict[str, float | None]:
    """Return what a difference takes, as JSON has it: attempts at these tasks, or tasks with as many attempts."""
    return {
        "difference": difference,
        **range_json("attempts", plan.attempts_for(difference)),
        **range_json("tasks", plan.tasks_for(difference, plan.attempts[0])),
    }


def plan_lines(plan: ComparisonPlan, difference: float, *, single_rounds: bool = False) -> Iterator[str]:
    """Yield what was observed, the table of detectable differences, and what ``difference`` takes.

    Args:
        plan: What can be planned.
        difference: The wanted difference, in points.
        single_rounds: Whether it was observed in mode single-round, where the Dataset Score is the SR by task.
    """
    yield f"observed at {_sizes(plan)}, in points of the {'SR by task' if single_rounds else 'Dataset Score'}:"
    if plan.variance is None:
        yield f"  the difference varies by {plan.seen.sd(1):.1f} (SD) from task to task"
    else:
        sds = plan.variance.sd(inf), sqrt(plan.variance.within)
        yield "  the difference varies by {:.1f} (SD) between tasks, and by {:.1f} from attempt to attempt".format(*sds)
    yield ""
    if plan.why_not:
        yield f"no number is given: {plan.why_not}"
        return
    yield f"smallest difference that is seen in {100 * plan.power:.0f} of 100 comparisons, at p <= {plan.alpha:.3g}:"
    table = plan_table({"": plan})
    yield from aligned(shown_cells(replace(table, columns=table.columns[1:], across=1)), left=())
    bounds = f"{100 * CONFIDENCE:.0f} % upper bounds of how much varies"
    yield f"the first number of two is by what was observed, the second by {bounds}, and keeps the power"
    yield ""
    yield from sentences(plan, difference)


def plan_table(plans: Mapping[str, ComparisonPlan]) -> Table:
    """Return the smallest differences that tasks and attempts show, by the name of what is planned."""
    rows = [
        {
            "of": name,
            "tasks": tasks,
            "attempts": attempts,
            **range_json("difference", made.difference(tasks, attempts)),
        }
        for name, made in plans.items()
        for tasks, attempts in product(*planned_sizes(made))
    ]
    columns = (
        Column.text("of", "of"),
        Column.count("tasks", "tasks"),
        Column("attempts", lambda row: counted(row["attempts"], "attempt"), fields=("attempts",)),
        Column(
            "difference",
            lambda row: _points(Range(row["difference_as_observed"], row["difference"])),
            help="the smallest difference of Dataset Scores that so many tasks show, in points: by what was observed, "
            "and by upper bounds of how much varies, which keeps the power",
            fields=("difference", "difference_as_observed"),
        ),
    )
    title = "The smallest differences that so many tasks and attempts show"
    return Table("plan", title, columns, rows, by_section=True, across=2)


def sentences(plan: ComparisonPlan, difference: float) -> Iterator[str]:
    """Yield which differences are seen with the tasks and attempts that there are, and what a wanted one takes."""
    if not plan.seen.sd(1):
        yield "the differences do not vary from task to task, so it is not known how large one must be to be seen"
        return
    seen = plan.detectable
    if seen.observed is None:
        yield f"with {_sizes(plan)} no difference is seen: no p-value can be as small as {plan.alpha:.3g}"
    elif seen.observed > 100:
        yield f"with {_sizes(plan)} no difference is seen: it would have to be over 100 points"
    else:
        yield (
            f"with {_sizes(plan)} you see differences over {_points(seen)} points "
            f"({100 * plan.power:.0f} % power, p <= {plan.alpha:.3g})"
        )
    if plan.why_not:
        yield f"what {difference:g} points take is not known: {plan.why_not}"
    elif seen.bound is None or seen.bound > difference:
        yield _needed(plan, difference)


def _needed(plan: ComparisonPlan, difference: float) -> str:
    attempts, tasks = plan.attempts_for(difference), plan.tasks_for(difference, plan.attempts[0])
    more = f"{_from_to(tasks, MOST_PAIRS)} tasks with {counted(plan.attempts[0], 'attempt')}"
    if attempts.bound is None:
        enough = "enough" if attempts.observed is None else f"sure to be enough, and {attempts.observed:.0f} the least"
        return f"for {difference:g} points take {more}; at these {plan.tasks} no number of attempts is {enough}"
    return f"for {difference:g} points take k = {_from_to(attempts)} attempts at these {plan.tasks} tasks, or {more}"


def _from_to(found: Range, most: int = 0) -> str:
    if found.observed is None:
        return f"more than {most}"
    if found.bound is None:
        return f"{found.observed:.0f} to more than {most}"
    return f"{found.observed:.0f}" if found.observed == found.bound else f"{found.observed:.0f} to {found.bound:.0f}"


def _sizes(plan: ComparisonPlan) -> str:
    fewest, most = plan.attempts
    attempts = counted(most, "attempt") if fewest == most else f"{fewest} to {most} attempts"
    return f"{counted(plan.tasks, 'task')} and {attempts}"


def _points(found: Range) -> str:
    if found.observed is None or found.bound is None:
        return NOT_MEASURED
    if found.observed > 100:
        return "over 100"
    return f"{found.observed:.1f} to {'over 100' if found.bound > 100 else f'{found.bound:.1f}'}"


Compared = Metric | Literal["without_faults"]
"""What has a row: a metric, or the Dataset Score without the rounds that infrastructure errors kept from a verdict."""
TITLES: dict[Compared, str] = {
    **{name: f" {SUFFIX}" if name == "without_faults" else COLUMNS[name].title for name in COMPARED},
    # A share here, and no number of tasks.
    "perfect_tasks": f"{COLUMNS['perfect_tasks'].title}, %",
}


SMALL_DIFFERENCE = 5.0
"""The difference, in points, of which a comparison says what it would take to be seen."""


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """Two rows that are compared, A and B, and what is to be said of them."""

    first: str
    """What A is called; ``second`` is that of B."""
    second: str
    rows: tuple[ScoreRow, ScoreRow]
    places: tuple[str, str]
    """The directory, run or name that was given for either."""
    found: Mapping[Compared, Comparison]
    """By metric, without those that were not measured for both, or cannot be compared; the Dataset Score is one of
    them, and its flips are listed.
    """
    left_out: Sequence[Metric]
    """The metrics that are not compared because the two have different numbers of attempts."""
    faults: tuple[int, int]
    """How many rounds of either infrastructure errors kept from a verdict."""
    plan: ComparisonPlan | None
    """What differences the two could show; None below five tasks."""
    adjusted: Mapping[Compared, float | None] | None = None
    """The p-values as adjusted for several pairs that are compared at once; None for one pair."""

    @property
    def headline(self) -> Comparison:
        """The comparison of Dataset Scores."""
        return self.found["dataset_score"]

    @property
    def single_rounds(self) -> bool:
        """Whether the two were measured in mode single-round, where the Dataset Score is the SR by task."""
        return self.rows[0].mode == "single-round"

    @property
    def paired(self) -> str:
        """How the two were compared, in one line."""
        return f"paired by task, {self.headline.tasks} of them; {_methods(self.found.values())}"


def comparisons_view(pairs: Sequence[ComparedPair], json: Callable[[], Any]) -> View:
    """Return the metrics of each pair, and the rounds that only one of the two passes."""
    flips = [
        {"a": pair.first, "b": pair.second, **asdict(flip), "passed_in": "A" if flip.lost else "B"}
        for pair in pairs
        for flip in pair.headline.flips
    ]
    notes = [
        f"{pair.first}, {pair.second}: {line}" for pair in pairs for line in (pair.paired, *_said(pair), *_absent(pair))
    ]
    tables = [replace(comparison_table(pairs), notes=notes)]
    if flips:
        tables.append(Table("flips", "Rounds that only one of two passes", _FLIPS, flips))
    return View(tables, json=json, text="\n\n".join("\n".join(comparison_lines(pair)) for pair in pairs).splitlines())


_FLIPS = (
    Column.text("A", "a"),
    Column.text("B", "b"),
    Column.text("task", "task"),
    Column("round", lambda row: row["round"] or f"round {row['index']}", fields=("round", "index"), left=True),
    Column("passed in A, %", lambda row: f"{100 * row['first']:.0f}", fields=("first",)),
    Column("passed in B, %", lambda row: f"{100 * row['second']:.0f}", fields=("second", "passed_in")),
)


def comparison_table(pairs: Sequence[ComparedPair]) -> Table:
    """Return a row for each metric of each pair."""
    rows = [
        {
            "first_name": pair.first,
            "second_name": pair.second,
            "metric": "SR, by task" if pair.single_rounds and metric == "dataset_score" else TITLES[metric],
            **values_of(each, "first", "second", "difference", "won", "tied", "lost", "p_value"),
            **ends(each.interval),
            "p_adjusted": pair.adjusted[metric] if pair.adjusted else None,
        }
        for pair in pairs
        for metric, each in pair.found.items()
    ]
    columns = [
        Column.text("A is", "first_name"),
        Column.text("B is", "second_name"),
        Column.text("", "metric"),
        Column("A", lambda row: format_number(row["first"], digits=_digits(row)), fields=("first",)),
        Column("B", lambda row: format_number(row["second"], digits=_digits(row)), fields=("second",)),
        Column("B - A", lambda row: f"{row['difference']:+.{_digits(row)}f}", fields=("difference",)),
        Column.interval("95 %", "low", "high", nothing=""),
        *(Column.count(name, name) for name in ("won", "tied", "lost")),
    ]
    if any(pair.headline.test is not None for pair in pairs):
        columns.append(Column("p", lambda row: format_p_value(row["p_value"]), fields=("p_value",)))
        if any(pair.adjusted is not None for pair in pairs):
            columns.append(Column("p, Holm", lambda row: format_p_value(row["p_adjusted"]), fields=("p_adjusted",)))
    return Table("comparisons", "Agents compared, task by task", columns, rows)


def _digits(row: Row) -> int:
    """Return how many decimals show a difference, if there is one.

    >>> _digits({"difference": -0.04}), _digits({"difference": 0.05}), _digits({"difference": 1e-15})
    (2, 1, 1)
    """
    difference = abs(row["difference"])
    return next((digits for digits in range(1, 7) if round(difference, digits)), 1)


def comparison_lines(pair: ComparedPair) -> Iterator[str]:
    """Yield the table of metrics, what it can and cannot tell, and the rounds that only one of two agents passes."""
    headline = pair.headline
    yield f"A: {pair.first}"
    yield f"B: {pair.second}"
    yield pair.paired
    yield ""
    table = comparison_table([pair])
    yield from aligned(shown_cells(replace(table, columns=table.columns[2:])))
    yield ""
    yield from _said(pair)
    yield from _flips("passed in A, not in B", [flip for flip in headline.flips if flip.lost])
    yield from _flips("passed in B, not in A", [flip for flip in headline.flips if not flip.lost])
    for line in _absent(pair):
        yield from ("", line)


def _said(pair: ComparedPair) -> Iterator[str]:
    """Yield what a comparison can and cannot tell."""
    headline = pair.headline
    if pair.plan is None:
        yield f"below {FEWEST_TASKS} tasks no difference can be told from noise, nor how many tasks it would take"
    else:
        yield from sentences(pair.plan, SMALL_DIFFERENCE)
    if pair.left_out:
        titles = ", ".join(COLUMNS[metric].title for metric in pair.left_out)
        sides = " and ".join(_attempts(*each) for each in zip("AB", headline.attempts, strict=True))
        yield f"not compared, because the best of more attempts is better: {titles}; {sides} at each task"
    if any(pair.faults):
        a, b = pair.faults
        yield f"without a verdict because of infrastructure errors: A {a}, B {b} rounds, as not passed"
    yield from _tests_of_flips(headline)


def _absent(pair: ComparedPair) -> Iterator[str]:
    """Yield which tasks are not compared."""
    headline = pair.headline
    if tasks := headline.undecided:
        yield (
            f"{counted(len(tasks), 'task')} not compared, because no reward decides any round "
            f"in A or in B: {', '.join(tasks)}; name the reward that decides with --evocode-reward-key"
        )
    for side, tasks in (("A", headline.only_first), ("B", headline.only_second)):
        if tasks:
            yield f"only in {side}, not compared: {', '.join(tasks)}"


def format_p_value(p: float | None) -> str:
    """Return a p-value with three decimals, or ``n/a``.

    >>> format_p_value(0.03125), format_p_value(0.0001), format_p_value(None)
    ('0.031', '<0.001', 'n/a')
    """
    return "<0.001" if p is not None and p < 0.0005 else format_number(p, digits=3)


def _methods(found: Collection[Comparison]) -> str:
    tests = [each.test for each in found if each.test]
    if not tests:
        return f"{NO_INTERVAL}, and no p-value"
    test = "permutation" if all(each.exact for each in tests) else "drawn permutations"
    return f"95 % intervals over tasks; p by {test} of tasks"


def _attempts(side: str, numbers: tuple[int, int]) -> str:
    fewest, most = numbers
    return f"{side} has {fewest if fewest == most else f'{fewest} to {most}'}"


def _tests_of_flips(headline: Comparison) -> Iterator[str]:
    if headline.flips:
        lost = sum(flip.lost for flip in headline.flips)
        by_round, by_task = (
            f"p = {format_p_value(p)}".replace("= <", "< ")
            for p in (headline.flips_p_value, headline.flips_by_task_p_value)
        )
        yield (
            f"flipped rounds: {lost} lost, {len(headline.flips) - lost} won; McNemar, as if the rounds of a task were "
            f"independent, {by_round}; by task, {by_task}"
        )


def _flips(title: str, flips: Sequence[Flip]) -> Iterator[str]:
    if not flips:
        return
    yield ""
    yield f"{title} ({len(flips)})"
    partial = any(share not in (0.0, 1.0) for flip in flips for share in (flip.first, flip.second))
    rows = []
    for flip in flips:
        shares = f"{100 * flip.first:.0f} % -> {100 * flip.second:.0f} % of the attempts" if partial else ""
        rows.append((f"  {flip.task}", flip.round or f"round {flip.index}", shares))
    yield from aligned(rows, left=(0, 1, 2))
