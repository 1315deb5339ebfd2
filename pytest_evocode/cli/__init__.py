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
    "agents": ("agents", "List all agents, and the versions that were tried."),
    "clean": ("kept", "Remove what killed sessions left behind."),
    "compare": ("comparisons", "Compare two agents, runs or results directories."),
    "doctor": ("doctor", "Print what works on this machine, with remedies."),
    "export": ("tables", "Write results as CSV, Parquet or JSON."),
    "harden": ("harden", "Show which rounds are passed without work."),
    "merge": ("directories", "Merge results directories into a new one."),
    "new": ("new_task", "Create a task, also from another benchmark's, or a round of one."),
    "paper": ("paper", "Write all that a paper needs of results."),
    "process": ("process", "Score how disciplined the engineering was."),
    "regrade": ("directories", "Verify finished rounds again with today's tests."),
    "report": ("report", "Write results as pages to look at."),
    "results": ("tables", "Print scores, failures and other views of results."),
    "runs": ("runs", "List runs, remove, exclude and tag them."),
    "shell": ("workspaces", "Open a shell in a workspace after a round, or that was kept."),
    "show": ("tasks", "Print what a task's rounds require, or what one changes."),
    "watch": ("watch", "Run again what a change of a task affects."),
}
#: The views of ``evocode results``, with the module of each. They are commands, too, which ``--help`` does not list.
VIEWS = {
    "leaderboard": "tables",
    "failures": "tables",
    "forks": "tables",
    "analyses": "tables",
    "hazard": "tables",
    "metrics": "metrics",
    "model": "tables",
    "pareto": "tables",
    "plan": "comparisons",
    "timeline": "tables",
}
#: Commands of earlier versions that are options of others, with the module of each; ``--help`` does not list them.
EARLIER = {
    "diff": "workspaces",
    "enter": "kept",
    "import": "new_task",
    "new-round": "new_task",
    "schema": "tasks",
}
#: The module of every command by name, listed or not.
MODULES = {**{name: module for name, (module, _) in COMMANDS.items()}, **VIEWS, **EARLIER}


def _task_warnings_once(others: Callable[..., None]) -> Callable[..., None]:
    """Return what prints warnings of tasks as a line each, and only once however often a command loads a task."""
    told = set()

    def show(message: object, category: type[Warning], filename: str, lineno: int, *rest: Any, **more: Any) -> None:
        line = f"warning: {filename}:{lineno}: {message}"
        if not issubclass(category, TaskWarning):
            others(message, category, filename, lineno, *rest, **more)
        elif line not in told:
            told.add(line)
            click.echo(printable(line), err=True)

    return show


class _Commands(click.Group):
    """A group that imports the module of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*COMMANDS]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in MODULES:
            return None
        module = import_module(f"{__name__}.{MODULES[cmd_name]}")
        command: click.Command = getattr(module, f"{cmd_name.replace('-', '_')}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, and name the nearest where there is none."""
        if args[0] not in MODULES and (near := get_close_matches(args[0], MODULES, n=1)):
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, summary) for name, (_, summary) in COMMANDS.items()])

    def invoke(self, ctx: click.Context) -> Any:
        with warnings.catch_warnings():
            warnings.showwarning = _task_warnings_once(warnings.showwarning)
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
