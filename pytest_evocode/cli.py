"""``evocode``: everything that is not a test run."""

from __future__ import annotations

import sys

import click


@click.group()
@click.version_option(package_name="pytest-evocode")
def main() -> None:
    """Tools around pytest-evocode. Benchmarks themselves are run by pytest: pytest --evocode-agent=AGENT tasks/"""


@main.command()
@click.option("--dry-run", is_flag=True, help="Only list what would be removed.")
@click.option("--kept", is_flag=True, help="Remove also what --evocode-resume would go on from.")
def clean(dry_run: bool, kept: bool) -> None:
    """Remove what sessions left that were killed, and the cached states of reference solutions.

    Nothing that a living session owns is touched. Containers, networks, snapshots and sandboxes of dead ones every new
    session removes by itself.
    """
    from pytest_evocode.environments.cleanup import leftovers
    from pytest_evocode.errors import EvocodeError

    failed = False
    with leftovers(kept=kept, references=True) as found:
        for leftover in found:
            if dry_run:
                click.echo(f"would remove {leftover.what}")
                continue
            try:
                leftover.remove()
                click.echo(f"removed {leftover.what}")
            except EvocodeError as error:
                failed = True
                click.echo(f"could not remove {leftover.what}: {error}", err=True)
        if not found:
            click.echo("nothing is left over")
    sys.exit(1 if failed else 0)
