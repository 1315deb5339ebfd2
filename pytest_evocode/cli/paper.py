"""``evocode paper``: all that a publication needs of results, in files."""

from __future__ import annotations

from datetime import date
from importlib.metadata import version
from pathlib import Path

import click

from pytest_evocode.cli.printing import echo
from pytest_evocode.cli.shared_options import DEFAULT_RESULTS, AttemptSelection, selection_options
from pytest_evocode.errors import TaskError
from pytest_evocode.report.datasets import DatasetFacts
from pytest_evocode.report.html.contents import Redaction, found_tasks
from pytest_evocode.report.paper import paper_files
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.atomic_write import write_atomically


@click.command("paper")
@selection_options
@click.option(
    "-o", "--output", "out", metavar="DIR", type=click.Path(file_okay=False, path_type=Path), default=Path("paper"),
    show_default=True, help="Write to DIR.",
)  # fmt: skip
@click.option("--name", default="tasks", show_default=True, help="What the set of tasks is called.")
@click.option("--license", "terms", default="", help="The license of the tasks, as a URL or SPDX identifier.")
@click.option("--url", default="", help="Where the tasks are to be had.")
def paper_command(selection: AttemptSelection, out: Path, name: str, terms: str, url: str) -> None:
    """Write what a paper needs of results: tables, data of figures, how they were made, and what the tasks are.

    tables/ has every view of evocode results but model as LaTeX (for the package booktabs), CSV and Markdown, each with
    what its columns are; figures/ has scores by round, survival and the Pareto front as CSV. reproducibility.md says
    how the numbers were made, as the records tell it. croissant.json (Croissant 1.0, with its data in dataset/) and
    datasheet.md describe the tasks, which are looked for where the runs had them, or in --tasks. What nothing says is
    said to be unknown.
    """
    results, table = selection.read_all(cases=True)
    names = {task.task for row in table.rows for task in row.grid.tasks}
    tasks = []
    for task, directory in sorted(found_tasks(results, selection.task_directory).items()):
        try:
            tasks += [load_task(directory)] if task in names else []
        except TaskError as error:
            echo(f"warning: {error}", err=True)
    if absent := sorted(names - {task.name for task in tasks}):
        echo(f"note: not described, because their directories are not known (--tasks): {', '.join(absent)}", err=True)
    shown = Redaction(selection.directories or (DEFAULT_RESULTS,)).values
    files = paper_files(
        results,
        table,
        tasks,
        DatasetFacts(name, terms, url),
        shown=shown,
        made=date.today().isoformat(),
        version=version("pytest-evocode"),
    )
    written = 0
    try:
        for path, text in files:
            (out / path).parent.mkdir(parents=True, exist_ok=True)
            write_atomically(out / path, text)
            written += 1
    except OSError as error:
        raise click.ClickException(f"{error.filename or out} cannot be written: {error.strerror}") from None
    echo(f"wrote {written} files to {out}")
