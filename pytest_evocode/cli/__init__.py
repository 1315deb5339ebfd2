"""The command ``evocode``: everything around benchmarks but running them, which is pytest's job."""

from __future__ import annotations

from difflib import get_close_matches
from importlib import import_module
from typing import Any

import click

from pytest_evocode.errors import EvocodeError
from pytest_evocode.report.printable import printable

#: What ``evocode --help`` says of each command; known here, so that printing it loads none of them.
_SUMMARIES = {
    "analyses": "Show pass@k, survival and what failing costs.",
    "clean": "Remove what killed sessions left behind.",
    "compare": "Compare two agents, runs or results directories.",
    "diff": "Show what changes from round to round.",
    "enter": "Open a shell in a sandbox that a session kept.",
    "export": "Write results as CSV, Parquet or JSON.",
    "failures": "Show what went wrong, and where first.",
    "harden": "Show which rounds are passed without work.",
    "import": "Make a task from tasks of other benchmarks.",
    "leaderboard": "Print a leaderboard for publication.",
    "merge": "Merge results directories into a new one.",
    "metrics": "Print the metrics of other benchmarks.",
    "new": "Create a task: small, complete and passing, or empty.",
    "new-round": "Add a round to a task.",
    "pareto": "Print who is best for the money, tokens and time.",
    "plan": "Tell how many tasks and attempts a comparison takes.",
    "process": "Score how disciplined the engineering was.",
    "regrade": "Verify finished rounds again with today's tests.",
    "report": "Write results as pages to look at.",
    "results": "Print the scores of each agent.",
    "schema": "Print the JSON Schema of task.toml.",
    "shell": "Open a shell in the workspace as it is after a round.",
    "show": "Print the rounds and requirements of a task.",
    "watch": "Run again what a change of a task affects.",
}
#: The modules of commands whose names are Python's own words.
MODULES = {"import": "import_tasks"}


class _Commands(click.Group):
    """A group that imports the module of a command when the command is asked for."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [*_SUMMARIES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in _SUMMARIES:
            return None
        module = MODULES.get(cmd_name, cmd_name.replace("-", "_"))
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"{__name__}.{module}"), f"{name}_command")
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find the command that is called, and name the nearest where there is none."""
        if args[0] not in _SUMMARIES and (near := get_close_matches(args[0], _SUMMARIES, n=1)):
            ctx.fail(f"No such command {args[0]!r}; did you mean {near[0]}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([*_SUMMARIES.items()])

    def invoke(self, ctx: click.Context) -> Any:
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
