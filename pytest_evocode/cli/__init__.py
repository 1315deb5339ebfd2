"""The command ``evocode``: everything around benchmarks but running them, which is pytest's job."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from pytest_evocode.errors import EvocodeError, TaskWarning
from pytest_evocode.report.printable import printable

#: The module of each command, and what ``evocode --help`` says of it: known here, so that it loads no command.
COMMANDS = {
    "analyses": ("tables", "Show pass@k, survival and what failing costs."),
    "clean": ("kept", "Remove what killed sessions left behind."),
    "compare": ("comparisons", "Compare two agents, runs or results directories."),
    "diff": ("workspaces", "Show what changes from round to round."),
    "enter": ("kept", "Open a shell in a sandbox that a session kept."),
    "export": ("tables", "Write results as CSV, Parquet or JSON."),
    "failures": ("tables", "Show what went wrong, and where first."),
    "harden": ("harden", "Show which rounds are passed without work."),
    "import": ("new_task", "Make a task from tasks of other benchmarks."),
    "leaderboard": ("tables", "Print a leaderboard for publication."),
    "merge": ("directories", "Merge results directories into a new one."),
    "metrics": ("metrics", "Print the metrics of other benchmarks."),
    "new": ("new_task", "Create a task: small, complete and passing, or empty."),
    "new-round": ("new_task", "Add a round to a task."),
    "pareto": ("tables", "Print who is best for the money, tokens and time."),
    "plan": ("comparisons", "Tell how many tasks and attempts a comparison takes."),
    "process": ("process", "Score how disciplined the engineering was."),
    "regrade": ("directories", "Verify finished rounds again with today's tests."),
    "report": ("report", "Write results as pages to look at."),
    "results": ("tables", "Print the scores of each agent."),
    "runs": ("runs", "List runs, remove, exclude and tag them."),
    "schema": ("tasks", "Print the JSON Schema of task.toml."),
    "shell": ("workspaces", "Open a shell in the workspace as it is after a round."),
    "show": ("tasks", "Print the rounds and requirements of a task."),
    "watch": ("watch", "Run again what a change of a task affects."),
}


class _TaskWarnings:
    """Prints warnings of tasks as a line each, and only once however often a command loads a task."""

    def __init__(self, others: Callable[..., None]) -> None:
        self._others = others
        self._told: set[str] = set()

    def __call__(
        self, message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: Any, **more: Any
    ) -> None:
        if not issubclass(category, TaskWarning):
            self._others(message, category, filename, lineno, *rest, **more)
        elif (line := f"warning: {filename}:{lineno}: {message}") not in self._told:
            self._told.add(line)
            click.echo(printable(line), err=True)


class _Commands(click.Group):
    """A group that imports the module of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module = import_module(f"{__name__}.{COMMANDS[cmd_name][0]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, and name the nearest where there is none."""
        if args[0] not in COMMANDS and (near := get_close_matches(args[0], COMMANDS, n=1)):
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _TaskWarnings(warnings.showwarning)
            try:
                return super().invoke(ctx)
            except EvocodeError as error:
                raise click.ClickException(printable(str(error))) from None


@click.group(cls=_Commands)
@click.version_option(package_name="pytest-evocode")
def main() -> None:
    """Work with tasks and results of pytest-evocode.

    Benchmarks themselves are run by pytest: pytest --evocode-agent=AGENT tasks/
    """
