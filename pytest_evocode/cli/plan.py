"""``evocode plan``: how many tasks and attempts a comparison takes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from pytest_evocode.cli.compared_rows import Side, matching_rows, read_side
from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import any_version_option, json_option, named_in_option, tasks_option
from pytest_evocode.metrics.comparison import ComparisonPlan, plan
from pytest_evocode.metrics.intervals import FEWEST_TASKS
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.report.comparison import plan_lines, planned_sizes, wanted

_SHARE = click.FloatRange(0, 1, min_open=True, max_open=True)


@click.command("plan")
@click.argument("first", metavar="A")
@click.argument("second", metavar="[B]", required=False)
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
@json_option
def plan_command(
    first: str,
    second: str | None,
    directory: Path,
    agent: str | None,
    task_directory: Path | None,
    any_version: bool,
    difference: float,
    power: float,
    alpha: float,
    correlation: float,
    as_json: bool,
) -> None:
    """Tell how many attempts or tasks it takes to see a difference between A and B, from how they varied so far.

    A and B are named as in evocode compare. Without B, another agent is taken to vary as much as A.
    """
    names = [name for name in (first, second) if name is not None]
    sides = [read_side(name, directory, agent, task_directory, any_version=any_version) for name in names]
    rows = matching_rows(*sides) if len(sides) == 2 else [(row,) for row in sides[0].rows]
    found = []
    for each in rows:
        made = plan(*(row.grid for row in each), alpha=alpha, power=power, correlation=correlation)
        if made is not None:
            found.append((each, made))
            continue
        both, common = " and ".join(row.name for row in each), " in common" if len(each) > 1 else ""
        echo(f"note: {both}: below {FEWEST_TASKS} tasks{common} it is not known how tasks vary; run more", err=True)
    if not found:
        raise click.ClickException("there is nothing to plan from")
    if as_json:
        print_json([_as_json(sides, *each, difference) for each in found])
    else:
        blocks = [
            [
                *_titles(sides, each, correlation),
                *plan_lines(made, difference, single_rounds=each[0].mode == "single-round"),
            ]
            for each, made in found
        ]
        echo("\n\n".join(map("\n".join, blocks)))


def _titles(sides: Sequence[Side], rows: Sequence[ScoreRow], correlation: float) -> list[str]:
    titles = [f"{letter}: {side.title(row)}" for letter, side, row in zip("AB", sides, rows, strict=False)]
    if len(rows) == 1:
        titles.append(f"B: any agent that varies as much, with a correlation of {correlation:g} over tasks")
    return titles


def _as_json(
    sides: Sequence[Side], rows: Sequence[ScoreRow], made: ComparisonPlan, difference: float
) -> dict[str, Any]:
    tasks, attempts = planned_sizes(made)
    named = {
        place: {"name": row.name, "in": side.name}
        for place, side, row in zip(("first", "second"), sides, rows, strict=False)
    }
    return {
        **named,
        "tasks": made.tasks,
        "attempts": made.attempts,
        "alpha": made.alpha,
        "power": made.power,
        "variance": {
            "between_tasks": made.variance.between,
            "within_tasks": made.variance.within,
            "measured": made.measured,
        },
        "detectable": made.detectable,
        "table": [
            {"tasks": number, "attempts": each, "detectable": made.difference(number, each)}
            for number in tasks
            for each in attempts
        ],
        "wanted": wanted(made, difference),
    }
