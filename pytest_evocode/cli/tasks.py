"""Commands that tell of tasks: ``evocode show``, which runs reference solutions at most, and their schema."""

from __future__ import annotations

from pathlib import Path

import click

from pytest_evocode.checks.lint.sources import TaskSources
from pytest_evocode.checks.lint.suites import find_syntax_errors
from pytest_evocode.cli.printing import echo
from pytest_evocode.cli.shared_options import changes_options, environment_option
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
@click.argument("rounds", metavar="[ROUND [ROUND]]", nargs=-1)
@changes_options
@environment_option
@click.option(
    "--schema", is_flag=True, is_eager=True, expose_value=False, callback=_print_schema,
    help="Print the JSON Schema of task.toml instead.",
)  # fmt: skip
def show_command(directory: Path, rounds: tuple[str, ...], environment: str, **asked: bool) -> None:
    """Print the rounds and requirements of the task in the directory TASK.

    With a ROUND, print what changes to it from the round before, or from the first of two, as a unified diff with the
    prefixes a/ and b/. Workspaces are those that the reference solutions lead to, passed or failed; caches, and what
    Git keeps in .git, are left out. The round "starter" is what the first round begins with. The exit status is then
    diff's own: 0 for no difference, 1 for some, 2 for trouble.

    Editors with Taplo, such as VS Code with Even Better TOML, complete and explain keys by the schema: write it beside
    task.toml, evocode show --schema > task.schema.json, and begin task.toml with "#:schema ./task.schema.json".
    """
    if rounds:
        from pytest_evocode.cli.workspaces import show_changes

        show_changes(directory, rounds, environment, asked)
    if options := [f"--{each}" for each, is_asked in asked.items() if is_asked]:
        raise click.UsageError(f"{options[0]} is about what a round changes; name the round behind {directory}")
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
