"""``evocode report``: results as pages to look at."""

from __future__ import annotations

import webbrowser
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo
from pytest_evocode.cli.shared_options import DEFAULT_RESULTS, AttemptSelection, read_tasks, selection_options
from pytest_evocode.names import REPORT_DIRECTORY
from pytest_evocode.report.html.contents import ReportContents, found_tasks, with_foreign_cases
from pytest_evocode.report.html.writing import write_report, write_single_file

_MEGABYTE = 1_000_000


@click.command("report")
@selection_options
@click.option(
    "-o",
    "--output",
    "out",
    metavar="DIR",
    type=click.Path(path_type=Path),
    help=f"Write to DIR; by default {REPORT_DIRECTORY}, and with --single-file {REPORT_DIRECTORY}.html.",
)
@click.option("--title", default="", help="Title of the report.")
@click.option("--single-file", is_flag=True, help="Write one HTML file, for mail and artifacts.")
@click.option(
    "--most-megabytes",
    type=click.FloatRange(min=0, min_open=True),
    default=10,
    show_default=True,
    help="The size up to which --single-file writes a file.",
)
@click.option("--open", "open_", is_flag=True, help="Open the report in a browser.")
def report_command(
    selection: AttemptSelection, out: Path | None, title: str, single_file: bool, most_megabytes: float, open_: bool
) -> None:
    """Write results as pages that a browser opens, without a server.

    DIR is a results directory; the default is evocode-results. Beside index.html are summary.json, summary.md and
    every table as CSV. Written again to the same directory, only what changed is written.
    """
    results, table = selection.read_all()
    roots = selection.directories or (DEFAULT_RESULTS,)
    counted = selection.task_directory
    contents = ReportContents(
        results=with_foreign_cases(results, roots),
        table=table,
        roots=roots,
        title=title,
        only=selection.only(results),
        counted=None if counted is None else frozenset(read_tasks(counted) or ()),
        tasks=found_tasks(results, counted),
    )
    if single_file:
        file = out or Path(f"{REPORT_DIRECTORY}.html")
        report = write_single_file(file, contents, most=int(most_megabytes * _MEGABYTE))
    else:
        report = write_report(out or Path(REPORT_DIRECTORY), contents)
    for problem in report.problems:
        echo(f"warning: {problem}", err=True)
    echo(f"report written: {report.page}")
    if open_ and not webbrowser.open(report.page.resolve().as_uri()):
        echo("note: there is no browser to open it with", err=True)
