"""Commands that print what attempts came to, each as a table of its own: ``results``, ``leaderboard`` and others.

Each imports what makes its table when it is asked for.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import AttemptSelection, chosen_rows, json_option, selection_options
from pytest_evocode.metrics.breakdown import Dimension
from pytest_evocode.metrics.grid import are_of_the_same_rounds
from pytest_evocode.metrics.score_table import ScoreRow, differing_contents
from pytest_evocode.report.printable import printable

DIMENSIONS = ("task", "round", "activity", "interaction", "change", "category")


@click.command("results")
@click.option("--by", type=click.Choice(DIMENSIONS), help="Split each agent's scores by this.")
@click.option("--time", "with_times", is_flag=True, help="Show where the time of rounds went, in place of scores.")
@click.option("--intervals", "with_intervals", is_flag=True, help="Add 95 % intervals over tasks, from five tasks on.")
@selection_options
@json_option
def results_command(
    selection: AttemptSelection, by: Dimension | None, with_times: bool, with_intervals: bool, as_json: bool
) -> None:
    """Print the scores of each agent in results directories.

    DIR is a results directory of pytest or Harbor, or a directory of tasks with their harbor_jobs. The default is
    evocode-results. Of several attempts with the same number at the same task, the newest counts of which all rounds
    were selected.
    """
    from pytest_evocode.report.results import breakdown_lines, results_json, results_lines, time_lines

    is_scores = as_json or not (with_times or by)
    table = selection.read(with_apart=is_scores)
    if as_json:
        print_json(results_json(table, by=by, with_intervals=with_intervals, with_times=with_times))
    elif with_times:
        echo("\n".join(time_lines(table, by)))
    elif by is not None:
        echo("\n".join(breakdown_lines(table, by)))
    else:
        for line in results_lines(table, with_intervals=with_intervals):  # None where all runs are excluded.
            echo(line)


@click.command("leaderboard")
@click.option("--format", "form", type=click.Choice(["md", "csv", "json"]), default="md", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Same as --format=json.")
@click.option(
    "--intervals/--no-intervals", "with_intervals", default=True, show_default=True, help="Add 95 % intervals, or not."
)
@selection_options
def leaderboard_command(selection: AttemptSelection, form: str, as_json: bool, with_intervals: bool) -> None:
    """Print a leaderboard of the agents in results directories, the best first.

    DIR is a results directory; the default is evocode-results. Scores are 0 to 100; what was not measured is null in
    JSON. An agent has a row for each mode that it was run in; but its single rounds are the columns SR and Gap of its
    other rows, if it has any. Rows of different modes, tasks or rounds are not one ranking, and say so.
    """
    from pytest_evocode.report.leaderboard import as_csv, as_markdown, leaderboard

    board = leaderboard(selection.read(), with_intervals=with_intervals)
    if form == "md" and not as_json:
        echo(as_markdown(board), nl=False)
        return
    for note in board.notes:
        echo(f"note: {note}", err=True)
    if as_json or form == "json":
        print_json(board.entries)
    else:
        echo(as_csv(board), nl=False)


@click.command("analyses")
@selection_options
@json_option
def analyses_command(selection: AttemptSelection, as_json: bool) -> None:
    """Print pass@k and pass^k, survival by round, solvable rounds and token ratios.

    DIR is a results directory; the default is evocode-results. Several attempts at each task come from
    --evocode-attempts, and rounds that are solvable need runs with --evocode-mode=single-round too.
    """
    from pytest_evocode.metrics.analyses import analyse
    from pytest_evocode.report.analyses import analyses_json, analyses_lines

    found = analyse(selection.read())
    if as_json:
        print_json(analyses_json(found))
    else:
        echo("\n".join(analyses_lines(found)))


@click.command("failures")
@click.option("--agent", help="Show only this agent.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Entries in each list.")
@selection_options
@json_option
def failures_command(selection: AttemptSelection, agent: str | None, top: int, as_json: bool) -> None:
    """Print the kinds of failures, where attempts fail first, and the requirements failed most often.

    DIR is a results directory; the default is evocode-results.
    """
    from pytest_evocode.metrics.analyses import first_failures, survival
    from pytest_evocode.metrics.failures import failure_kinds, worst_requirements
    from pytest_evocode.report.failures import first_failure_lines, kind_lines, requirement_lines, survival_lines
    from pytest_evocode.report.notes import identity_json

    table = selection.read(cases=True)
    rows = chosen_rows(table.rows, agent)
    kinds = {row.name: failure_kinds(row.grid) for row in rows}
    # Single rounds are independent of each other, so that none of them fails first.
    chains = [row for row in rows if row.mode != "single-round"]
    first = {row.name: first_failures(row.grid) for row in chains}
    shares = {row.name: survival(row.grid) for row in chains}
    # Requirements of older contents may be others of the same name.
    newest = [row for row in rows if row.version == 0] or rows
    worst = worst_requirements(*(row.records for row in newest))
    if as_json:
        print_json(
            {
                "agents": {row.name: identity_json(row) for row in rows},
                "kinds": {name: asdict(found) for name, found in kinds.items()},
                "survival": {
                    name: {index: share.percent for index, share in found.items()} for name, found in shares.items()
                },
                "first_failures": {
                    name: [{**asdict(each), "position": each.position} for each in found]
                    for name, found in first.items()
                },
                "requirements": [{**asdict(each), "share": each.share} for each in worst],
            }
        )
        return
    parts = [kind_lines(kinds)]
    if chains:
        parts += [survival_lines(shares, first), first_failure_lines(first, top)]
    parts.append(requirement_lines(worst, top))
    echo("\n\n".join("\n".join(lines) for lines in parts))


@click.command("pareto")
@selection_options
@json_option
def pareto_command(selection: AttemptSelection, as_json: bool) -> None:
    """Print the Pareto front of score against cost, tokens and time.

    On it is who is beaten by no other agent, one that is at least as good in the score and in what it takes and better
    in one of them. Cost, tokens and time are those of one attempt at each task; an agent of which one of them is not
    known for every round is left out there. Agents that were run on other tasks or rounds, or in another mode, have
    fronts of their own.

    DIR is a results directory; the default is evocode-results.
    """
    from pytest_evocode.metrics.efficiency import efficiency
    from pytest_evocode.report.comparison import pareto_json, pareto_lines

    table = selection.read()
    groups = [
        {row.name: efficiency(row.grid, single=row.mode == "single-round") for row in group}
        for group in _comparable(table.rows)
    ]
    if as_json:
        print_json([pareto_json(group) for group in groups])
    else:
        echo("\n\n\n".join("\n".join(pareto_lines(group)) for group in groups))


def _comparable(rows: tuple[ScoreRow, ...]) -> list[list[ScoreRow]]:
    """Return the rows in groups of one mode, and of the same tasks and rounds."""
    groups: list[list[ScoreRow]] = []
    for row in rows:
        for group in groups:
            first = group[0]
            same_mode = (first.mode, first.from_round) == (row.mode, row.from_round)
            if same_mode and not differing_contents(first, row) and are_of_the_same_rounds(first.grid, row.grid):
                group.append(row)
                break
        else:
            groups.append([row])
    return groups


Form = Literal["csv", "parquet", "json"]


@click.command("export")
@click.option(
    "-o", "--output", "out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path), help="Write to FILE."
)
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json"]),
    help="Format; by default what the name of FILE ends with, or csv without FILE.",
)
@click.option("--json", "form", flag_value="json", help="Same as --format=json.")
@click.option("--cases", is_flag=True, help="Write a row for each case instead of each round.")
@selection_options
def export_command(selection: AttemptSelection, out: Path | None, form: Form | None, cases: bool) -> None:
    """Write a table with a row for each round of the attempts that count.

    DIR is a results directory; the default is evocode-results. Parquet needs a FILE and pyarrow: pip install
    'pytest-evocode[parquet]'. Without a FILE, CSV shows characters that cannot be seen by their codes.
    """
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


def _printable(row: dict[str, Any]) -> dict[str, Any]:
    return {name: printable(value) if isinstance(value, str) else value for name, value in row.items()}


def _form_of(out: Path | None) -> Form:
    endings: dict[str, Form] = {".csv": "csv", ".parquet": "parquet", ".json": "json"}
    if out is None:
        return "csv"
    if out.suffix not in endings:
        raise click.UsageError(f"{out} ends with none of {', '.join(endings)}; say what to write with --format")
    return endings[out.suffix]
