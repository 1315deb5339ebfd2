"""The command ``evocode agents``: which agents there are, and how far those of others were tried."""

from __future__ import annotations

import textwrap

import click

from pytest_evocode.agents.tried import rows_of_kinds
from pytest_evocode.report.tables import aligned

_NOTES = 60  # characters


@click.command("agents")
def agents_command() -> None:
    """Print a table of all agents: how each is driven, its API, the version that was tried, and what to know.

    Three rounds means that the program of that version knew in rounds 2 and 3 what was said in round 1 only, and that
    its tokens and cost were those that the server had counted. docs/clis.md has the command for each.
    """
    rows = []
    for *cells, note in rows_of_kinds():
        first, *more = textwrap.wrap(note, _NOTES, break_long_words=False, break_on_hyphens=False) or [""]
        rows.append([*cells, first])
        rows += [[*[""] * len(cells), line] for line in more]
    click.echo("\n".join(aligned(rows, left=range(len(rows[0])))))
