"""Commands that load tasks say once what of a task.toml nothing reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.cli.new_task import write_task
from tests.cli.conftest import Evocode

pytestmark = pytest.mark.filterwarnings("default::pytest_evocode.TaskWarning")


@pytest.mark.parametrize("command", [("show", "kv"), ("diff", "kv", "round-2", "--suite")])
def test_each_key_is_one_line_of_the_error_channel(evocode: Evocode, command: tuple[str, ...]) -> None:
    write_task(Path("kv"), rounds=2, form="native")
    plain = evocode(*command)
    file = Path("kv/task.toml")
    line = file.read_text().count("\n") + 2
    file.write_text(file.read_text() + "\n[colours]\nblue = 1\n")
    for _ in range(2):
        told = evocode(*command)
        assert (told.status, told.out) == (plain.status, plain.out)
        assert told.err.startswith(
            f"{plain.err}warning: kv/task.toml:{line}: colours: unknown key; known here: agent, "
        )
        assert told.err.count("colours") == 1
