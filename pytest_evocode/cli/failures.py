"""``evocode failures``: what went wrong, where first, and against which requirements."""

from __future__ import annotations

from dataclasses import asdict

import click

from pytest_evocode.cli.printing import echo, print_json
from pytest_evocode.cli.shared_options import AttemptSelection, chosen_rows, json_option, selection_options
from pytest_evocode.metrics.analyses import first_failures, survival
from pytest_evocode.metrics.failures import failure_kinds, worst_requirements
from pytest_evocode.report.failures import first_failure_lines, kind_lines, requirement_lines, survival_lines
from pytest_evocode.report.notes import identity_json


@click.command("failures")
@click.option("--agent", help="Show only this agent.")
@click.option("--top", type=click.IntRange(min=1), default=10, show_default=True, help="Entries in each list.")
@selection_options
@json_option
def failures_command(selection: AttemptSelection, agent: str | None, top: int, as_json: bool) -> None:
    """Print the kinds of failures, where attempts fail first, and the requirements failed most often.

    DIR is a results directory; the default is evocode-results.
    """
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
