"""The command ``evocode`` itself: what it lists, and when it loads what."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from pytest_evocode import cli
from tests.cli.conftest import Evocode

LISTED = cli.main.list_commands(click.Context(cli.main))


def loaded_by(statement: str) -> set[str]:
    """The modules that a new interpreter has loaded after a statement."""
    ask = f"import sys; {statement}; print(*sys.modules, file=sys.stderr)"
    return set(subprocess.run([sys.executable, "-c", ask], check=True, capture_output=True, text=True).stderr.split())


def test_help_loads_no_command_and_nothing_heavy() -> None:
    loaded = loaded_by("from pytest_evocode.cli import main; main(['--help'], standalone_mode=False)")
    assert loaded.isdisjoint(
        {"pydantic", "docker", "pytest", *(f"pytest_evocode.cli.{module}" for module, _ in cli.COMMANDS.values())}
    )


def test_every_command_is_listed_or_a_view_of_results_or_one_of_earlier_versions() -> None:
    texts = [path.read_text(encoding="utf-8") for path in Path(cli.__file__).parent.rglob("*.py")]
    commands = {name for text in texts for name in re.findall(r'^@click\.command\("([\w-]+)"', text, re.MULTILINE)}
    assert sorted(LISTED) == LISTED
    assert {*LISTED, *cli.VIEWS, *cli.EARLIER} == commands
    assert len(LISTED) < 18


@pytest.mark.parametrize("name", [*LISTED, *cli.VIEWS, *cli.EARLIER])
def test_every_command_has_help_of_its_own(evocode: Evocode, name: str) -> None:
    assert f" {name} [OPTIONS]" in evocode(name, "--help").lines[0]


def test_a_command_that_does_not_exist_is_one_clear_message(evocode: Evocode) -> None:
    ran = evocode("result")
    assert ran.status == 2
    assert "No such command 'result'" in ran.err


def test_a_mistyped_command_is_told_the_nearest(evocode: Evocode) -> None:
    ran = evocode("shwo", "parcels")
    assert ran.status == 2
    assert "No such command 'shwo'; did you mean show?" in ran.err
    assert "did you mean" not in evocode("xyz").err
