"""``evocode results`` and its views of what attempts came to, and ``evocode export``.

Each view is a command of its own, too, and imports what makes its tables when it is asked for.
"""

from __future__ import annotations

import json
import sys
from collections.abc import MutableSequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import click

from pytest_evocode.cli import VIEWS
from pytest_evocode.cli.printing import print_json, prints_view, tell_note
from pytest_evocode.cli.shared_options import (
    AttemptSelection,
    agents_option,
    directories_argument,
    named_runs,
    read_results,
    selection_options,
)
from pytest_evocode.metrics.breakdown import Dimension
from pytest_evocode.report.printable import printable, printable_json
from pytest_evocode.report.tables import counted
from pytest_evocode.report.views import View

DIMENSIONS = ("task", "round", "activity", "interaction", "change", "category")


class _Results(click.Command):
    """The view of scores, and by ``--view`` the command of any other view, with options of its own."""

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        rest = [*args]
        view = _taken("--view", rest)
        if view in VIEWS and parent is not None and isinstance(parent.command, click.Group):
            command = parent.command.get_command(parent, view)
            if command is not None:
                return command.make_context(f"{info_name} --view {view}", rest, parent, **extra)
        return super().make_context(info_name, args, parent, **extra)


def _taken(option: str, args: MutableSequence[str]) -> str:
    """Take an option out of arguments, and return its value; empty where it is not given."""
    for place, argument in enumerate(args):
        if argument == "--":
            break
        if argument == option and place + 1 < len(args):
            del args[place]
            return args.pop(place)
        if argument.startswith(f"{option}="):
            return args.pop(place).partition("=")[2]
    return ""


@click.command("results", cls=_Results)
@click.option(
    "--view",
    type=click.Choice(["scores", *VIEWS]),
    default="scores",
    expose_value=False,
    show_default=True,
    help="What to look at. Others have options of their own: evocode results --view NAME --help.",
)
@click.option("--by", type=click.Choice(DIMENSIONS), help="Split each agent's scores by this.")
@click.option("--time", "with_times", is_flag=True, help="Show where the time of rounds went, in place of scores.")
@click.option("--intervals", "with_intervals", is_flag=True, help="Add 95 % intervals over tasks, from five tasks on.")
@agents_option
@selection_options
@prints_view()
def results_command(selection: AttemptSelection, by: Dimension | None, with_times: bool, with_intervals: bool) -> View:
    """Print what the attempts in results directories came to: the scores of each agent, or another view.

    DIR is a results directory of pytest or Harbor, or a directory of tasks with their harbor_jobs. The default is
    evocode-results. Of several attempts with the same number at the same task, the newest counts of which all rounds
    were selected.
    """
    from pytest_evocode.report.results import groups_view, scores_view, time_view

    of_scores = not (with_times or by)
    table = selection.read(with_apart=of_scores, own_notes=of_scores)
    if with_times:
        return time_view(table, by, with_intervals=with_intervals)
    if by is not None:
        return groups_view(table, by, with_intervals=with_intervals)
    return scores_view(table, with_intervals=with_intervals)


@click.command("leaderboard")
@click.option(
    "--intervals/--no-intervals", "with_intervals", default=True, show_default=True, help="Add 95 % intervals, or not."
)
@agents_option
@selection_options
@prints_view("markdown")
def leaderboard_command(selection: AttemptSelection, with_intervals: bool) -> View:
    """Print a leaderboard of the agents in results directories, the best first.

    DIR is a results directory; the default is evocode-results. Scores are 0 to 100; what was not measured is null in
    JSON. An agent has a row for each mode that it was run in; but its single rounds are the columns SR and Gap of its
    other rows, if it has any. Rows of different modes, tasks or rounds are not one ranking, and say so.
    """
    from pytest_evocode.report.leaderboard import leaderboard_view

    return leaderboard_view(selection.read(own_notes=True), with_intervals=with_intervals)


@click.command("analyses")
@agents_option
@selection_options
@prints_view()
def analyses_command(selection: AttemptSelection) -> View:
    """Print pass@k and pass^k, pass rates and survival by round, solvable rounds and token ratios.

    DIR is a results directory; the default is evocode-results. Several attempts at each task come from
    --evocode-attempts, and rounds that are solvable need runs with --evocode-mode=single-round too.
    """
    from pytest_evocode.metrics.analyses import analyse
    from pytest_evocode.report.analyses import analyses_view

    return analyses_view(analyse(selection.read()))


@click.command("failures")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Entries in each list.")
@agents_option
@selection_options
@prints_view()
def failures_command(selection: AttemptSelection, top: int) -> View:
    """Print the kinds of failures, where attempts fail first, and the requirements failed most often.

    DIR is a results directory; the default is evocode-results.
    """
    from pytest_evocode.report.failures import failures_view

    return failures_view(selection.read(cases=True).rows, top=top)


@click.command("forks")
@selection_options
@prints_view()
def forks_command(selection: AttemptSelection) -> View:
    """Print what forks say (--evocode-fork-from): whether a state was bad, or an agent cannot do a round.

    DIR is a results directory; the default is evocode-results. Each round after a fork is held against the attempt that
    the fork went on from, a fork by that agent itself, and whole attempts of the fork's agent, where there are any.
    """
    from pytest_evocode.metrics.forks import forked_rounds
    from pytest_evocode.report.forks import forks_view

    results, table = selection.read_all()
    if not (rounds := forked_rounds(table, results.attempts)):
        raise click.ClickException("no attempt is a fork; --evocode-fork-from=AGENT:ROUND makes some")
    return forks_view(rounds)


@click.command("hazard")
@agents_option
@selection_options
@prints_view()
def hazard_command(selection: AttemptSelection) -> View:
    """Print how often requirements break and are repaired, by rounds and change types, and what is kept unbroken.

    DIR is a results directory; the default is evocode-results. A requirement is the cases of one name that came in the
    same round, or a case that names none. Where there are results of oracle, they tell what a round requires.
    """
    from pytest_evocode.report.hazard import hazard_view

    table = replace(selection, agents=()).read(cases=True)  # All agents tell what a round requires.
    return hazard_view(table, selection.shown(table).rows)


@click.command("timeline")
@click.option("--run", metavar="RUN", help="Show this run, Harbor job or tag (tag:NAME), not the newest.")
@directories_argument
@prints_view()
def timeline_command(directories: tuple[Path, ...], run: str | None) -> View:
    """Print where the time of a run went: what waited for what, by stage, attempt and slot.

    DIR is a results directory; the default is evocode-results. The run's critical path leads back from its end: to the
    suite that ended last, from there to the suite that gave it its slot or to the turn that it judges, and so on to
    the beginning. To make a run faster, begin with what takes most of it; what is not on it costs no time.
    """
    from pytest_evocode.metrics.timeline import timelines
    from pytest_evocode.report.timeline import timeline_view

    results = read_results(directories)
    found = timelines(results, None if run is None else named_runs(results, run))
    if not found:
        of = f" of run {run}" if run else ""
        raise click.ClickException(f"no record{of} tells when rounds began; sessions of this version write it")
    return timeline_view(found[0])


@click.command("pareto")
@agents_option
@selection_options
@prints_view()
def pareto_command(selection: AttemptSelection) -> View:
    """Print the Pareto front of score against cost, tokens and time.

    On it is who is beaten by no other agent, one that is at least as good in the score and in what it takes and better
    in one of them. Cost, tokens and time are those of one attempt at each task; an agent of which one of them is not
    known for every round is left out there, and so are oracle and nop. Agents that were run on other tasks or rounds,
    or in another mode, have fronts of their own. From five tasks on, resamples of the tasks tell how sure that is.

    DIR is a results directory; the default is evocode-results.
    """
    from pytest_evocode.report.pareto import pareto_view

    return pareto_view(selection.read())


@click.command("model")
@click.option(
    "--draws", type=click.IntRange(min=10), default=250, show_default=True, help="Draws of each of four chains."
)
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True, help="Another one, other draws.")
@selection_options
@prints_view()
def model_command(selection: AttemptSelection, draws: int, seed: int) -> View:
    """Print what a model of rounds says: scores, differences, ranks, tasks, effects of depth and of a failed round.

    It is a hierarchical logistic regression with agent, task, attempt, depth and carried state, and needs
    'pytest-evocode[stats]', two agents, five tasks, and two attempts at these. Controls (oracle, nop) are left out.
    """
    from pytest_evocode.metrics.round_model.outcomes import grouped_outcomes
    from pytest_evocode.metrics.round_model.posterior import fit
    from pytest_evocode.metrics.round_model.sampling import require_numpyro
    from pytest_evocode.report.round_model import model_view

    require_numpyro()
    found = grouped_outcomes(selection.read().rows)
    return model_view({name: fit(seen, draws=draws, seed=seed) for name, seen in found.items()})


Form = Literal["csv", "parquet", "json", "sft", "rl"]


@click.command("export")
@click.option(
    "-o", "--output", "out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write to FILE."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json", "sft", "rl"]),
    help="Format; by default what the name of FILE ends with, or csv without FILE. For sft and rl it is lines of JSON, "
    "or Parquet where FILE ends so.",
)
@click.option("--json", "form", flag_value="json", help="Same as --format=json.")
@click.option("--cases", is_flag=True, help="Write a row for each case instead of each round.")
@click.option(
    "--min-score",
    type=click.FloatRange(0, 100),
    help="For sft and rl: leave out attempts that passed a smaller share of their rounds, in percent.",
)
@click.option("--split", is_flag=True, help="For rl: begin a new sequence where a server made other tokens of a reply.")
@agents_option
@selection_options
def export_command(
    selection: AttemptSelection, out: Path | None, form: Form | None, cases: bool, min_score: float | None, split: bool
) -> None:
    """Write a table with a row for each round of the attempts that count.

    DIR is a results directory; the default is evocode-results. Parquet needs a FILE and pyarrow: pip install
    'pytest-evocode[parquet]'. Without a FILE, CSV shows characters that cannot be seen by their codes.

    With --format=sft or rl there is a row for each attempt, to train on: its messages with tools; or the tokens that a
    model's server read and wrote, with a mask of those that the model wrote, their logprobs, and rewards by step, round
    and attempt. Nothing is written where a server re-tokenises, so that a prompt has other tokens than the model wrote
    before, unless with --split. --tasks adds the canaries of its tasks. The Python module
    pytest_evocode.report.training says what is in them, and reads them.
    """
    if split and form != "rl":
        raise click.UsageError("--split is for --format=rl")
    if form in ("sft", "rl"):
        _export_to_train_on(selection, form, out, min_score or 0.0, cases, split)
        return
    if min_score is not None:
        raise click.UsageError("--min-score is for --format=sft and rl")
    from pytest_evocode.report.export import (
        CASE_COLUMNS,
        ROUND_COLUMNS,
        apart_rows,
        case_rows,
        round_rows,
        write_csv,
        write_parquet,
    )

    form = form or _form_of(out)
    if form == "parquet" and out is None:
        raise click.UsageError("Parquet cannot be printed; name a file with -o")
    read = selection.read(cases=cases, with_apart=not cases)
    table = list(case_rows(read.rows) if cases else (*round_rows(read.rows), *apart_rows(read.apart)))
    columns = CASE_COLUMNS if cases else ROUND_COLUMNS
    if out is None:
        print_json(table) if form == "json" else write_csv(map(_printable, table), columns, sys.stdout)
        return
    try:
        if form == "parquet":
            write_parquet(table, columns, out)
        elif form == "json":
            print_json(table, out)
        else:
            with out.open("w", encoding="utf-8", newline="") as file:
                write_csv(table, columns, file)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from None


def _export_to_train_on(
    selection: AttemptSelection,
    kind: Literal["sft", "rl"],
    out: Path | None,
    min_score: float,
    cases: bool,
    split: bool,
) -> None:
    from pytest_evocode.report.training import training_rows, write_rows

    if cases:
        raise click.UsageError(f"--format={kind} has a row for each attempt, and --cases asks for others")
    rows = training_rows(
        selection.read().rows, kind, tasks=selection.task_directory, min_score=min_score, split=split, told=tell_note
    )
    if out is None:
        for row in rows:
            click.echo(printable_json(json.dumps(row, ensure_ascii=False)))
        return
    try:
        written = write_rows(rows, out)
    except OSError as error:
        raise click.ClickException(f"{out} cannot be written: {error.strerror}") from None
    tell_note(f"{counted(written, 'attempt')} in {out}")


def _printable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: printable(value) if isinstance(value, str) else value for name, value in row.items()}


def _form_of(out: Path | None) -> Form:
    endings: dict[str, Form] = {".csv": "csv", ".parquet": "parquet", ".json": "json"}
    if out is None:
        return "csv"
    if out.suffix not in endings:
        raise click.UsageError(f"{out} ends with none of {', '.join(endings)}; say what to write with --format")
    return endings[out.suffix]
