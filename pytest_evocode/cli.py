"""``evocode``: everything that is not a test run."""

from __future__ import annotations

import click


@click.group()
@click.version_option(package_name="pytest-evocode")
def main() -> None:
    """Tools around pytest-evocode. Benchmarks themselves are run by pytest: pytest --evocode-agent=AGENT tasks/"""
