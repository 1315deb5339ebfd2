"""``evocode export``: results as tables for other programs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Literal

import click

from pytest_evocode.cli.selection import directories_argument, print_json, read_score_table, selection_options
from pytest_evocode.report.export import (
    CASE_COLUMNS,
    ROUND_COLUMNS,
    case_rows,
    round_rows,
    write_csv,
    write_parquet,
)

Form = Literal["csv", "parquet", "json"]


@click.command("export")
@directories_argument
@click.option("-o", "--output", "out", metavar="FILE", type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--format",
    "form",
    type=click.Choice(["csv", "parquet", "json"]),
    help="What to write, if the name of FILE does not end with it; csv without FILE.",
)
@click.option("--json", "form", flag_value="json", help="The same as --format=json.")
@click.option("--cases", is_flag=True, help="A row for each case instead of each round.")
@selection_options
def export_command(
    directories: tuple[Path, ...],
    out: Path | None,
    form: Form | None,
    cases: bool,
    run: str | None,
    all_runs: bool,
    task_directory: Path | None,
) -> None:
    """Write a table with a row for each round of the attempts that count.

    Parquet needs a FILE, and pyarrow, which pip install 'pytest-evocode[parquet]' brings.
    """
    form = form or _form_of(out)
    if form == "parquet" and out is None:
        raise click.UsageError("Parquet is nothing to print; name a file with -o")
    read = read_score_table(directories, cases=cases, run=run, all_runs=all_runs, task_directory=task_directory)
    table = list(case_rows(read.rows) if cases else round_rows(read.rows))
    columns = CASE_COLUMNS if cases else ROUND_COLUMNS
    if form == "json":
        table = [{name: row[name] for name in columns} for row in table]
    if out is None:
        print_json(table) if form == "json" else write_csv(table, columns, sys.stdout)
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


def _form_of(out: Path | None) -> Form:
    endings: dict[str, Form] = {".csv": "csv", ".parquet": "parquet", ".json": "json"}
    if out is None:
        return "csv"
    if out.suffix not in endings:
        raise click.UsageError(f"{out} ends with none of {', '.join(endings)}; say what to write with --format")
    return endings[out.suffix]
