"""``evocode leaderboard``: a table to be published."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_evocode.cli.selection import directories_argument, print_json, read_score_table, selection_options
from pytest_evocode.report.leaderboard import as_csv, as_markdown, entries


@click.command("leaderboard")
@directories_argument
@click.option("--format", "form", type=click.Choice(["md", "csv", "json"]), default="md", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format=json.")
@selection_options
def leaderboard_command(
    directories: tuple[Path, ...],
    form: str,
    as_json: bool,
    run: str | None,
    all_runs: bool,
    task_directory: Path | None,
) -> None:
    """Print a leaderboard of the agents in results directories, the best first.

    Scores are 0 to 100, in JSON null where nothing was measured. What an agent did in another mode than whole chains
    has a row of its own, which names the mode; but its single rounds are the SR and the Gap of its other rows.
    """
    table = read_score_table(directories, run=run, all_runs=all_runs, task_directory=task_directory)
    paired = {id(table.single_rounds(row)) for row in table.rows}
    board = entries({row.name: table.scores(row) for row in table.rows if id(row) not in paired})
    if as_json or form == "json":
        print_json(board)
    else:
        click.echo(as_markdown(board) if form == "md" else as_csv(board), nl=False)
