"""``evocode results``: the scores of the attempts in results directories."""

from __future__ import annotations

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import AttemptSelection, json_option, selection_options
from pytest_evocode.metrics.breakdown import Dimension
from pytest_evocode.report.results import breakdown_lines, results_json, results_lines, time_lines

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
    table = selection.read()
    if as_json:
        print_json(results_json(table, by=by, with_intervals=with_intervals, with_times=with_times))
    elif with_times:
        echo("\n".join(time_lines(table, by)))
    elif by is not None:
        echo("\n".join(breakdown_lines(table, by)))
    else:
        echo("\n".join(results_lines(table, with_intervals=with_intervals)))
