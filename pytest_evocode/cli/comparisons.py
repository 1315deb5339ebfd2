"""``evocode compare`` compares agents, runs or results directories task by task; ``evocode plan`` says what that takes.

Both take rows of scores by names of agents, runs and directories.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, Literal

import click

from pytest_evocode.cli.printing import Trouble, echo, format_options, print_view, prints_view, tell_note
from pytest_evocode.cli.shared_options import (
    any_version_option,
    named_in_option,
    named_runs,
    print_notes,
    read_results,
    read_tasks,
    rows_of_agent,
    tasks_option,
)
from pytest_evocode.errors import EvocodeError
from pytest_evocode.metrics.comparison import (
    ALPHA,
    BEST_OF_ATTEMPTS,
    Comparison,
    ComparisonPlan,
    Range,
    compare,
    plan,
    regressed,
)
from pytest_evocode.metrics.faults import faults, without_faults
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.intervals import FEWEST_TASKS, NO_INTERVAL
from pytest_evocode.metrics.score_table import ScoreRow, differing_contents, score_table
from pytest_evocode.metrics.scores import pinned_case_score
from pytest_evocode.metrics.statistics.significance import holm, smallest_p_value
from pytest_evocode.metrics.task_values import Metric
from pytest_evocode.report.comparison import (
    SMALL_DIFFERENCE,
    TITLES,
    Compared,
    ComparedPair,
    comparisons_view,
    plan_lines,
    plan_table,
    planned_sizes,
    range_json,
    wanted,
)
from pytest_evocode.report.notes import identity_json
from pytest_evocode.report.printable import printable
from pytest_evocode.report.score_lines import cut_lines
from pytest_evocode.report.tables import join_first, values_of
from pytest_evocode.report.views import Format, Table, View, printed
from pytest_evocode.results.identity import differing_conditions, short_contents, subject_labels
from pytest_evocode.results.loading import Results


@dataclass(frozen=True, slots=True)
class Side:
    """One side of a comparison, as it was named."""

    name: str
    rows: tuple[ScoreRow, ...]
    where: str
    """The run or directory of its rows; empty if ``name`` is that of an agent."""
    agent: str | None = None
    """The only agent that is wanted of it; None wants all."""

    def title(self, row: ScoreRow) -> str:
        """Return what to call one of its rows."""
        return f"{row.name} in {self.where}" if self.where else row.name


def read_side(
    name: str, directory: Path, agent: str | None, task_directory: Path | None, *, any_version: bool = False
) -> Side:
    """Find what a name stands for: a directory, else a run, else an agent, else a tag of runs.

    Args:
        name: A results directory, the name of a run or its file, the name of an agent, or a tag, all but an agent with
            ``::AGENT`` behind it for the only agent that is wanted there.
        directory: Where to look for agents and runs given by name.
        agent: The only agent that is wanted of a directory or run that names none.
        task_directory: The tasks that count; None counts all.
        any_version: Whether attempts at different contents of a task are in one row, and are compared.

    Raises:
        click.UsageError: There is nothing of that name.
    """
    name, agent = split_side(name, agent)
    path = Path(name)
    only = None
    if path.is_dir():
        directory = path
    elif path.is_file() and path.suffix == ".json" and path.parent.name == "runs":
        directory, only = path.parent.parent, frozenset({path.stem})
    tasks = read_tasks(task_directory)
    if not directory.is_dir():
        raise click.UsageError(f"{name} is no directory, and there is no {directory} to look for a run or agent in")
    results = read_results([directory], tasks=tasks)
    if only is None and not path.is_dir() and _is_of_runs(name, results):
        only = named_runs(results, name)
    table = score_table(results, only=only, any_version=any_version, tasks=tasks)
    if not table.rows:
        raise click.UsageError(f"{name}: no result is of {'these tasks' if tasks is not None else 'this run'}")
    wanted = agent if path.is_dir() or only is not None else name
    chosen = rows_of_agent(table.rows, wanted)
    exact = tuple(row for row in chosen if wanted is not None and row.name in (wanted, row.label))
    if not chosen:
        known = ", ".join(row.name for row in table.rows)
        what = f"{name} is no directory, run or agent" if wanted == name else f"{name} has no agent {wanted}"
        raise click.UsageError(f"{what}; the agents in {directory} are {known}")
    print_notes(replace(table, rows=chosen, superseded=0), own_notes=True)
    for note in cut_lines({row.name: row.attempts for row in chosen}):
        tell_note(note)
    where = (path.stem if path.is_file() else name) if only else str(directory) if path.is_dir() else ""
    if any_version:
        exact, chosen = (tuple(replace(row, contents={}) for row in rows) for rows in (exact, chosen))
    return Side(name, exact or chosen, where, agent)


def split_side(name: str, agent: str | None = None) -> tuple[str, str | None]:
    """Return the directory, run or tag that a name has before ``::``, and the agent behind it, else the one given.

    >>> split_side("results::gpt-5"), split_side("results", "o1")
    (('results', 'gpt-5'), ('results', 'o1'))
    """
    place, colons, own = name.partition("::")
    return (name, agent) if Path(name).exists() or not (place and colons and own) else (place, own)


def _is_of_runs(name: str, results: Results) -> bool:
    """Return whether a name is that of runs: of one, or a tag that no agent is called."""
    if name in results.run_names or name.startswith("tag:"):
        return True
    agents = {attempt.record.agent for attempt in results.attempts}
    return name not in agents and any(name in stored.record.tags for stored in results.runs)


def names_and_place(given: Sequence[str], directory: Path, *, fewest: int) -> tuple[Sequence[str], Path]:
    """Return the names of sides, and where agents and runs are looked for: a directory behind names of no files.

    Args:
        given: The arguments.
        directory: Where they are looked for without one.
        fewest: How many names there are at least.
    """
    *names, last = given
    if len(names) >= fewest and Path(last).is_dir() and not any(Path(split_side(name)[0]).exists() for name in names):
        return names, Path(last)
    return given, directory


def matching_rows(first: Side, second: Side, *, any_conditions: bool = False) -> list[tuple[ScoreRow, ScoreRow]]:
    """Return the rows to compare: those of the same agent or name, or the only row of one side and its match.

    Tasks whose contents differ are left out of both; that, rows without a counterpart, and who is not the same agent,
    is told on standard error.

    Raises:
        click.UsageError: It is not clear which rows belong together, or their scores cannot be compared, as under
            different conditions without ``any_conditions``.
        click.ClickException: All their tasks differ.
    """
    if len(first.rows) == len(second.rows) == 1:
        pairs = [(first.rows[0], second.rows[0])]
    else:
        pairs = _of_the_same_agents(first.rows, second.rows)
        single = {len(first.rows): first, len(second.rows): second}.get(1)
        if not pairs and single is not None:  # A name against the one row of the other side in its mode.
            other = second if single is first else first
            mode = [row for row in other.rows if _protocol(row) == _protocol(single.rows[0])]
            if len(mode) == 1:
                pairs = [(single.rows[0], mode[0]) if single is first else (mode[0], single.rows[0])]
    if not pairs:
        names = "; ".join(f"{side.name} has {', '.join(row.name for row in side.rows)}" for side in (first, second))
        named = any(len(side.rows) > 1 and not side.where for side in (first, second))
        remedy = "name one of them as it is called here" if named else "choose with --agent, or with DIR::AGENT"
        raise click.UsageError(f"it is not clear what to compare: {names}; {remedy}")
    for side, other, place in ((first, second, 0), (second, first, 1)):
        if alone := [row.name for row in side.rows if all(row is not pair[place] for pair in pairs)]:
            tell_note(f"{side.name}: left out, {other.name} has none to compare with: {', '.join(alone)}")
    for a, b in pairs:
        if _protocol(a) != _protocol(b):
            raise click.UsageError(f"scores of different modes cannot be compared: {a.name} and {b.name}")
        if (differing := differing_conditions(a.subject.conditions, b.subject.conditions)) and not any_conditions:
            raise click.UsageError(
                f"{a.name} and {b.name} ran under different conditions, which scores depend on: "
                f"{join_first(differing)}; compare them all the same with --any-conditions"
            )
        for note in (*_notes(a, b), *(f"A against B: {each}" for each in differing)):
            tell_note(note)
    return [_at_equal_contents(a, b) for a, b in pairs]


def _of_the_same_agents(first: Sequence[ScoreRow], second: Sequence[ScoreRow]) -> list[tuple[ScoreRow, ScoreRow]]:
    """Return the pairs of rows that are of one agent under the same conditions, else of one agent, else of one name."""
    found: dict[int, ScoreRow] = {}
    keys: tuple[Callable[[ScoreRow], object], ...] = (
        lambda row: (row.subject, row.version, _protocol(row)),
        lambda row: (row.subject.agent, row.version, _protocol(row)),
        lambda row: (row.subject.agent.name, row.version, _protocol(row)),
    )
    for key in keys:
        free = [row for row in second if all(row is not each for each in found.values())]
        counts = [Counter(map(key, rows)) for rows in (first, second)]
        by_key = {key(row): row for row in free if all(count[key(row)] == 1 for count in counts)}
        for place, row in enumerate(first):
            if place not in found and (match := by_key.pop(key(row), None)) is not None:
                found[place] = match
    return [(first[place], match) for place, match in sorted(found.items(), key=lambda each: each[0])]


def _notes(first: ScoreRow, second: ScoreRow) -> Iterator[str]:
    """Yield why two rows are not of the same agent although of one name, and what their contents have to do with it."""
    one, other = first.subject, second.subject
    labels = subject_labels([one, other])
    if one.agent.name == other.agent.name and (labels[one], labels[other]) != (first.label, second.label):
        yield f"A is {labels[one]} and B is {labels[other]}"
    versions = [
        sorted({(each.record.conditions or {}).get("version", "") for each in row.attempts} - {""})
        for row in (first, second)
    ]
    if all(versions) and versions[0] != versions[1]:
        yield f"A was made with pytest-evocode {', '.join(versions[0])}, B with {', '.join(versions[1])}"
    known = [row.subject.conditions.settings is not None for row in (first, second)]
    if any(known) and not all(known):
        yield f"it is not known whether {'B' if known[0] else 'A'} ran under the same conditions"
    if left_out := differing_contents(first, second):
        told = join_first([_both_contents(first, second, task) for task in left_out])
        yield f"{first.name}: left out, because their contents differ (--any-version compares them): {told}"
    differing = {task for task, digest in first.contents.items() if second.contents.get(task, digest) != digest}
    if unknown := sorted(differing.difference(left_out)):
        yield f"it is not known whether these tasks had the same contents on both sides: {join_first(unknown)}"


def _both_contents(first: ScoreRow, second: ScoreRow, task: str) -> str:
    return f"{task} ({short_contents(first.contents[task])}, {short_contents(second.contents[task])})"


def _at_equal_contents(first: ScoreRow, second: ScoreRow) -> tuple[ScoreRow, ScoreRow]:
    """Return two rows without the tasks whose contents differ."""
    left_out = differing_contents(first, second)
    if not left_out:
        return first, second
    rows = first.without_tasks(left_out), second.without_tasks(left_out)
    if not all(row.grid.tasks for row in rows):
        told = join_first([_both_contents(first, second, task) for task in left_out])
        raise click.ClickException(
            f"{first.name} and {second.name}: no task has the same contents on both sides: {told}; run both on the "
            "same tasks, or compare all the same with --any-version"
        )
    return rows


def _protocol(row: ScoreRow) -> tuple[str, str | None]:
    return row.mode, row.from_round


Regression = Literal["noise", "score", "round", "interval"]


class _CompareCommand(click.Command):
    """A command whose status 1 says that something is worse; whatever keeps it from an answer is 2."""

    def invoke(self, ctx: click.Context) -> object:
        try:
            return super().invoke(ctx)
        except click.UsageError:
            raise
        except click.ClickException as error:
            raise Trouble(error.message) from None
        except EvocodeError as error:
            raise Trouble(printable(str(error))) from None


@click.command("compare", cls=_CompareCommand)
@click.argument("first", metavar="A")
@click.argument("others", metavar="B... [DIR]", nargs=-1, required=True)
@named_in_option
@click.option("--agent", help="Compare only this agent; A::NAME and B::NAME choose one each.")
@tasks_option("Compare only the tasks in DIR; those without a result count as not passed.")
@any_version_option
@click.option("--any-conditions", is_flag=True, help="Compare what ran under different conditions all the same.")
@click.option(
    "--fail-on-regression", is_flag=True, help="Exit with status 1 if B is worse than A, or lacks an agent or task."
)
@click.option("--any-tasks", is_flag=True, help="With --fail-on-regression: let B lack tasks that A has.")
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
@format_options()
def compare_command(
    first: str,
    others: tuple[str, ...],
    directory: Path,
    agent: str | None,
    task_directory: Path | None,
    any_version: bool,
    any_conditions: bool,
    fail_on_regression: bool,
    any_tasks: bool,
    regression: Regression,
    form: Format,
    quiet: bool,
    table: str | None,
) -> None:
    """Compare B with A, task by task, and name the rounds that only one of them passes.

    A and B are each a results directory, the name of an agent, or a run, given by its name, its file in runs/ or a tag.
    Directories and runs are compared agent by agent, or, as in DIR::gpt-5 RUN::o1, one agent of each. If each has only
    one agent, these are compared whatever their names. Of several B, each is compared with A, and p-values are adjusted
    for their number.

    Agents and runs are looked for in DIR, an argument behind their names; the default is evocode-results.
    """
    names, directory = names_and_place((first, *others), directory, fewest=2)
    baseline, *further = (read_side(name, directory, agent, task_directory, any_version=any_version) for name in names)
    sides = [(baseline, side) for side in further]
    matched = [(each, matching_rows(*each, any_conditions=any_conditions)) for each in sides]
    rows = [(each, matching) for each, found in matched for matching in found]
    # Of m comparisons a p-value can be up to 0.05 as adjusted by Holm only if it is up to 0.05 / m for one of them.
    pairs = [_compared(each, *matching, alpha=ALPHA / len(rows)) for each, matching in rows]
    pairs = _adjusted(pairs) if len(pairs) > 1 else pairs
    rules = [_rule(pair, regression, len(pairs)) for pair in pairs]
    worse = _worse(pairs, rules)
    view = comparisons_view(pairs, json=lambda: [_pair_json(*each) for each in zip(pairs, rules, worse, strict=True)])
    said = []
    if fail_on_regression:
        gone = [line for each, found in matched for line in _gone_agents(*each, found)]
        gone += [] if any_tasks else [line for pair in pairs for line in _gone_tasks(pair)]
        said = [*_regression_lines(pairs, regression, rules, worse), *gone]
    if form == "markdown":
        if fail_on_regression:
            _tell_too_few_tasks(pairs, regression)
        view = replace(view, notes=[*view.notes, *said])
    print_view(view, form, quiet=quiet, table=table)
    if fail_on_regression:
        _tell_too_few_tasks(pairs, regression)
    for line in said:
        echo(line, err=True)
    if said:
        sys.exit(1)


def _regression_lines(
    pairs: Sequence[ComparedPair], regression: Regression, rules: Sequence[Regression], worse: Sequence[bool]
) -> Iterator[str]:
    """Yield who is worse by which rule, and why by that one where another was asked for."""
    for rule in dict.fromkeys(rules):
        named = zip(pairs, rules, worse, strict=True)
        bad = [pair for pair, of_pair, is_worse in named if is_worse and of_pair == rule]
        if bad:
            why = ""
            if rule != regression:
                sure = all(map(_has_no_noise, bad))
                why = "both sides are deterministic" if sure else "too few tasks to tell it from noise"
                why = f" (any lower score counts: {why})"
            yield f"regression ({rule}): {', '.join(pair.rows[1].name for pair in bad)}{why}"


def _gone_agents(first: Side, second: Side, matching: Sequence[tuple[ScoreRow, ScoreRow]]) -> Iterator[str]:
    """Yield the agents that a directory or run lacks, unless one of its agents was named; a gate guards these, too."""
    if second.where and second.agent is None:
        compared = {row.name for row, _ in matching}
        if gone := [row.name for row in first.rows if row.version == 0 and row.name not in compared]:
            yield f"gone: {second.name} lacks agents of {first.name}: {', '.join(gone)}"


def _gone_tasks(pair: ComparedPair) -> Iterator[str]:
    if gone := pair.headline.only_first:
        yield f"gone: {pair.rows[1].name} lacks tasks of A (--any-tasks allows that): {join_first(gone)}"


def _compared(sides: tuple[Side, Side], first: ScoreRow, second: ScoreRow, *, alpha: float) -> ComparedPair:
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
    a, b = sides
    planned = plan(first.grid, second.grid, alpha=alpha)
    return ComparedPair(
        a.title(first), b.title(second), (first, second), (a.name, b.name), found, left_out, lost, planned
    )


def _without_faults(row: ScoreRow) -> Grid:
    return without_faults(row.grid, chains=row.mode != "single-round")


def _faults(row: ScoreRow) -> int:
    single = row.mode == "single-round"
    found = faults(Grid(()) if single else row.grid, row.grid if single else Grid(()))
    return found.rounds if found else 0


def _adjusted(pairs: Sequence[ComparedPair]) -> list[ComparedPair]:
    """Return the pairs with p-values adjusted for their number."""
    by_metric = {
        metric: holm([pair.found[metric].p_value if metric in pair.found else None for pair in pairs])
        for metric in TITLES
    }
    return [
        replace(pair, adjusted={metric: of_metric[place] for metric, of_metric in by_metric.items()})
        for place, pair in enumerate(pairs)
    ]


def _rule(pair: ComparedPair, regression: Regression, pairs: int) -> Regression:
    """Return the rule that one of several pairs is judged by: without noise, or the means to tell, any loss counts."""
    any_lower = _has_no_noise(pair) or _has_too_few_tasks(pair, pairs)
    return "score" if regression == "noise" and any_lower else regression


def _has_no_noise(pair: ComparedPair) -> bool:
    return all(row.deterministic for row in pair.rows)


def _worse(pairs: Sequence[ComparedPair], rules: Sequence[Regression]) -> list[bool]:
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


def _has_too_few_tasks(pair: ComparedPair, pairs: int) -> bool:
    """Return whether no p-value of so many comparisons could be small enough, whatever happened at the tasks."""
    tasks = pair.headline.tasks
    return tasks < FEWEST_TASKS or smallest_p_value(tasks, two_sided=False) * pairs > ALPHA


def _tell_too_few_tasks(pairs: Sequence[ComparedPair], regression: Regression) -> None:
    """Tell which pairs have too few tasks for a regression to be told from noise."""
    for pair in pairs:
        tasks, name = pair.headline.tasks, pair.rows[1].name
        count = f"{tasks} {'task' if tasks == 1 else 'tasks'}"
        if regression == "noise" and _has_too_few_tasks(pair, len(pairs)):
            tell_note(f"{name}: {count} cannot show a regression beyond noise; any lower score counts")
        if regression == "interval" and tasks < FEWEST_TASKS:
            tell_note(f"{name}: {count} cannot show a regression beyond noise, however large")


def _pair_json(pair: ComparedPair, rule: Regression, worse: bool) -> dict[str, Any]:
    headline, (first, second) = pair.headline, pair.rows
    metrics = {
        metric: {
            **values_of(each, "tasks", "first", "second", "difference", "won", "tied", "lost", "p_value", "p_lower"),
            "interval": each.interval and [each.interval.low, each.interval.high],
            "interval_method": each.interval and each.interval.method,
            "p_adjusted": each.p_value if pair.adjusted is None else pair.adjusted[metric],
        }
        for metric, each in pair.found.items()
    }
    return {
        "first": {"name": first.name, "in": pair.places[0], **identity_json(first)},
        "second": {"name": second.name, "in": pair.places[1], **identity_json(second)},
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
        **values_of(headline, "flips_p_value", "flips_by_task_p_value", "only_first", "only_second", "undecided"),
        "alpha": pair.plan and pair.plan.alpha,
        **range_json("detectable", pair.plan.detectable if pair.plan else Range(None, None)),
        "wanted": pair.plan and wanted(pair.plan, SMALL_DIFFERENCE),
    }


_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("plan")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
@click.argument("place", metavar="[DIR]", required=False)
@named_in_option
@click.option("--agent", help="Take only this agent.")
@tasks_option("Take only the tasks in DIR; those without a result count as not passed.")
@any_version_option
@click.option(
    "--difference",
    metavar="POINTS",
    type=click.FloatRange(0, 100, min_open=True),
    default=5.0,
    show_default=True,
    help="The difference of Dataset Scores that is to be seen.",
)
@click.option("--power", type=_SHARE, default=0.8, show_default=True, help="How often it is to be seen.")
@click.option("--alpha", type=_SHARE, default=0.05, show_default=True, help="The p-value up to which it is seen.")
@click.option(
    "--correlation",
    type=click.FloatRange(0, 1, max_open=True),
    default=0.5,
    show_default=True,
    help="Without B: how closely its values at the tasks are expected to go with those of A.",
)
@click.option(
    "--assurance",
    "with_assurance",
    is_flag=True,
    help="Tell, too, how probable it is that designs show the difference of A and B: by a model of their rounds, which "
    "needs 'pytest-evocode[stats]'.",
)
@prints_view()
def plan_command(
    first: str,
    second: str | None,
    place: str | None,
    directory: Path,
    agent: str | None,
    task_directory: Path | None,
    any_version: bool,
    difference: float,
    power: float,
    alpha: float,
    correlation: float,
    with_assurance: bool,
) -> View:
    """Tell how many attempts or tasks it takes to see a difference between A and B, from how they varied so far.

    A, B and DIR are named as in evocode compare. Without B, another agent is taken to vary as much as A.
    """
    given = [name for name in (first, second, place) if name is not None]
    names, directory = names_and_place(given, directory, fewest=2)
    if len(names) > 2:
        raise click.UsageError(f"{place} is no directory, and two agents are compared, not {len(names)}")
    if with_assurance and len(names) < 2:
        raise click.UsageError("--assurance is of a difference that was observed: name B, too")
    sides = [read_side(name, directory, agent, task_directory, any_version=any_version) for name in names]
    rows = matching_rows(*sides, any_conditions=True) if len(sides) == 2 else [(row,) for row in sides[0].rows]
    found = []
    for each in rows:
        made = plan(*(row.grid for row in each), alpha=alpha, power=power, correlation=correlation)
        if made is not None:
            found.append((each, made))
            continue
        both, common = " and ".join(row.name for row in each), " in common" if len(each) > 1 else ""
        tell_note(f"{both}: below {FEWEST_TASKS} tasks{common} it is not known how tasks vary; run more")
    if not found:
        raise click.ClickException("there is nothing to plan from")
    blocks = [
        [
            *_titles(sides, each, correlation),
            *plan_lines(made, difference, single_rounds=each[0].mode == "single-round"),
        ]
        for each, made in found
    ]
    tables = [_assurance(each, made) for each, made in found] if with_assurance else []
    for block, table in zip(blocks, tables, strict=False):
        block += ["", *printed(View([table]), "text", definitions=False).splitlines()]
    return View(
        [plan_table({" and ".join(row.name for row in each): made for each, made in found}), *tables],
        json=lambda: [
            _plan_json(sides, *each, difference) | ({"assurance": tables[place].rows} if tables else {})
            for place, each in enumerate(found)
        ],
        text="\n\n".join(map("\n".join, blocks)).splitlines(),
    )


def _assurance(rows: Sequence[ScoreRow], made: ComparisonPlan) -> Table:
    """Return how probable it is that designs show the difference of two rows."""
    from pytest_evocode.metrics.round_model.outcomes import outcomes, too_few
    from pytest_evocode.metrics.round_model.posterior import fit
    from pytest_evocode.metrics.round_model.sampling import require_numpyro
    from pytest_evocode.report.round_model import assurance_table

    require_numpyro()
    if why := too_few(rows):
        raise click.ClickException(f"there is no assurance to tell: {why}")
    return assurance_table(fit(outcomes(rows)), *planned_sizes(made), made.alpha)


def _titles(sides: Sequence[Side], rows: Sequence[ScoreRow], correlation: float) -> list[str]:
    titles = [f"{letter}: {side.title(row)}" for letter, side, row in zip("AB", sides, rows, strict=False)]
    if len(rows) == 1:
        titles.append(f"B: any agent that varies as much, with a correlation of {correlation:g} over tasks")
    return titles


def _plan_json(
    sides: Sequence[Side], rows: Sequence[ScoreRow], made: ComparisonPlan, difference: float
) -> dict[str, Any]:
    named = {
        place: {"name": row.name, "in": side.name}
        for place, side, row in zip(("first", "second"), sides, rows, strict=False)
    }
    return {
        **named,
        **values_of(made, "tasks", "attempts", "alpha", "power"),
        "variance": {
            "between_tasks": made.variance and max(0.0, made.variance.between),
            "within_tasks": made.variance and made.variance.within,
            "measured": made.variance is not None,
        },
        "why_not": made.why_not or None,
        **range_json("detectable", Range(None, None) if made.why_not else made.detectable),
        "table": [
            {"tasks": number, "attempts": each, **range_json("detectable", made.difference(number, each))}
            for number, each in product(*planned_sizes(made))
        ],
        "wanted": wanted(made, difference),
    }
