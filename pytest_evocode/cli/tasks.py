"""Commands that tell of tasks, and run nothing: ``evocode show``, also of a schema for editors."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_evocode.checks.lint.sources import TaskSources
from pytest_evocode.checks.lint.suites import find_syntax_errors
from pytest_evocode.cli.printing import echo
from pytest_evocode.report.task import task_lines
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.lockfile import read_pins
from pytest_evocode.tasks.schema import SCHEMA_FILE


def _print_schema(context: click.Context, parameter: click.Parameter, is_asked: bool) -> None:
    if is_asked:
        click.echo(SCHEMA_FILE.read_text(encoding="utf-8"), nl=False)
        context.exit()


@click.command("show")
@click.argument("directory", metavar="TASK", type=click.Path(path_type=Path))
@click.option(
    "--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
    help="Print the JSON Schema of task.toml instead.",
)  # fmt: skip
def show_command(directory: Path) -> None:
    """Print the rounds and requirements of the task in the directory TASK.

    Editors with Taplo, such as VS Code with Even Better TOML, complete and explain keys by the schema: write it beside
    task.toml, evocode show --schema > task.schema.json, and begin task.toml with "#:schema ./task.schema.json".
    """
    try:
        task = load_task(directory, to_show=True)
        pins = read_pins(directory)
    except OSError as error:
        raise click.ClickException(str(error)) from None
    lines = task_lines(
        task, pins.rounds, stale=pins.stale is not None, paint=lambda text, colour: click.style(text, fg=colour)
    )
    click.echo("\n".join(lines))  # Without the colours where it is no terminal.
    for problem in find_syntax_errors(TaskSources(task)):
        echo(f"note: the tests of this module are missing above: {problem}", err=True)


@click.command("schema")
def schema_command() -> None:
    """Print the JSON Schema of task.toml, as evocode show --schema does."""
    click.echo(SCHEMA_FILE.read_text(encoding="utf-8"), nl=False)
