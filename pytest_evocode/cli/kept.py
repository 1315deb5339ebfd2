"""Commands about what sessions left: ``evocode enter``, for a sandbox that was kept, and ``evocode clean``."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from threading import Thread

import click

from pytest_evocode.cli.printing import echo
from pytest_evocode.environments.cleanup import images_of_agents, leftovers
from pytest_evocode.environments.removals import Removals

_SOON = 2.0  # seconds


@click.command("enter")
@click.argument("directory", type=click.Path(path_type=Path))
def enter_command(directory: Path) -> None:
    """Open a shell in the sandbox that --evocode-keep left in DIRECTORY."""
    from pytest_evocode.environments.sandbox.engine import enter_kept_sandbox

    if not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal")
    sys.exit(enter_kept_sandbox(directory, sys.stdin.fileno()))


@click.command("clean")
@click.option("--dry-run", is_flag=True, help="List what would be removed, and remove nothing.")
@click.option("--kept", is_flag=True, help="Also remove what --evocode-keep left and --evocode-resume needs.")
@click.option(
    "--all-caches",
    is_flag=True,
    help="With --kept, also what was kept with another EVOCODE_CACHE, or by versions that noted none.",
)
@click.option("--agents", is_flag=True, help="Also list what agents have installed, and remove what nothing uses.")
def clean_command(dry_run: bool, kept: bool, all_caches: bool, agents: bool) -> None:
    """Remove what killed sessions left behind, and what is kept to save time.

    Killed sessions leave containers, networks, snapshots, sandboxes and scratch files in TMPDIR, which the next session
    removes by itself, too. Kept are the states that reference solutions lead to, what they change, datasets, and the
    tasks that a node of a cluster got. Sessions that need them make them anew. Built images stay, except for those of
    agents with --agents, and nothing that belongs to a running session is touched.
    In sandboxes, what agents have installed counts as used as long as any session with sandboxes is running.
    """
    if all_caches and not kept:
        raise click.UsageError("--all-caches goes with --kept")
    failed = False
    with contextlib.ExitStack() as stack:
        of_engines = stack.enter_context(leftovers(kept=kept, references=True))
        unused, used = stack.enter_context(images_of_agents()) if agents else ([], [])
        others = [] if all_caches else [each for each in of_engines if each.of_other_cache]
        found = [each for each in (*of_engines, *unused) if each not in others]
        for what in used:
            echo(f"in use: {what}")
        for leftover in found:
            if dry_run:
                echo(f"would remove {leftover.what}")
                continue
            removals = Removals()
            removal = Thread(target=removals.attempt, args=[leftover.what, leftover.remove], daemon=True)
            removal.start()
            removal.join(_SOON)
            if removal.is_alive():
                echo(f"waiting for {leftover.what} to be removed", err=True)
            removal.join()
            for what, why in removals.left.items():
                failed = True
                echo(f"could not remove {what}: {why}", err=True)
            if not removals.left:
                echo(f"removed {leftover.what}")
        if not found:
            echo("nothing is left over")
        if others:
            echo(f"stays, kept with another EVOCODE_CACHE or with none noted: {len(others)} (--all-caches removes it)")
    sys.exit(1 if failed else 0)
