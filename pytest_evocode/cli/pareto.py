"""``evocode pareto``: which agents no other beats in score and in what it takes."""

from __future__ import annotations

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import AttemptSelection, json_option, selection_options
from pytest_evocode.metrics.efficiency import efficiency
from pytest_evocode.metrics.grid import are_of_the_same_rounds
from pytest_evocode.metrics.score_table import ScoreRow, differing_contents
from pytest_evocode.report.comparison import pareto_json, pareto_lines


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
