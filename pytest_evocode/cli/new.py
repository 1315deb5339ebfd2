"""``evocode new``: create a task to start from."""

from __future__ import annotations

import shlex
from pathlib import Path

import click

from pytest_evocode.cli.new_task import write_task
from pytest_evocode.errors import UsageError
from pytest_evocode.report.tables import aligned


@click.command("new")
@click.argument("directory", metavar="NAME", type=click.Path(path_type=Path))
@click.option("--rounds", type=click.IntRange(1, 99), default=2, show_default=True, help="Number of rounds.")
@click.option(
    "--native/--script", default=True, help="Verify by pytest tests (the default), or by a test.sh as Harbor does."
)
def new_command(directory: Path, rounds: int, native: bool) -> None:
    """Create a small task, complete and passing, in a new directory NAME.

    Comments in its files say what to change to make the task your own.
    """
    try:
        write_task(directory, rounds=rounds, form="native" if native else "script")
    except UsageError as error:
        raise click.UsageError(str(error)) from None
    except OSError as error:
        raise click.ClickException(f"{directory} cannot be written: {error.strerror}") from None
    task = shlex.quote(str(directory))
    commands = [
        (f"pytest --evocode-check {task}", "whether it is sound"),
        (f"pytest --evocode-agent=oracle {task}", "its reference solutions against its suites"),
        (f"pytest --evocode-pin {task}", "write down the cases that these pass"),
    ]
    click.echo(
        f"made {directory}, {rounds} round{'s' if rounds > 1 else ''} verified by {'pytest' if native else 'test.sh'}"
    )
    click.echo(f"{directory / 'task.toml'} says what is where; next:")
    click.echo("\n".join(f"  {line}" for line in aligned(commands, left=(0, 1))))
