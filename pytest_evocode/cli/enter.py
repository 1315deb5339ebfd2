"""``evocode enter``: a shell in a sandbox that a session kept."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from pytest_evocode.environments.sandbox.engine import enter_kept_sandbox


@click.command("enter")
@click.argument("directory", type=click.Path(path_type=Path))
def enter_command(directory: Path) -> None:
    """Open a shell in the sandbox that --evocode-keep left in DIRECTORY."""
    if not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal")
    sys.exit(enter_kept_sandbox(directory, sys.stdin.fileno()))
