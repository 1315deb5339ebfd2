"""What the shell agent and replays ask of an environment."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.agents.shell.tools import run_script
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.environments import ExecResult


@pytest.mark.parametrize("seconds", [10**400, 1e300], ids=["int", "float"])
def test_no_script_gets_more_seconds_than_clocks_can_count(seconds: float) -> None:
    asked: list[float] = []

    def run(argv: list[str], *, timeout: float, **others: Any) -> ExecResult:
        asked.extend([float(argv[4]), timeout])
        return ExecResult(0, "Done.\n", timed_out=False, seconds=0.1)

    stub = SimpleNamespace(environment=SimpleNamespace(exec=run), round=SimpleNamespace(agent_user=None))
    shown, action = run_script("true", cast(RoundContext, stub), Deadline(None), seconds=seconds, limit=100)
    assert asked == [604_800, 604_810]
    assert (shown, action.exit_code) == ("Done.\n[exit code 0]", 0)


@pytest.mark.parametrize("size", [2**17 - 1, 2**17])
def test_a_script_that_no_argument_can_be_is_run_by_itself(size: int) -> None:
    asked: list[str | list[str]] = []

    def run(command: str | list[str], **others: Any) -> ExecResult:
        asked.append(command)
        return ExecResult(0, "", timed_out=False, seconds=0.1)

    stub = SimpleNamespace(environment=SimpleNamespace(exec=run), round=SimpleNamespace(agent_user=None))
    script = "#" * size
    run_script(script, cast(RoundContext, stub), Deadline(None), seconds=1, limit=100)
    assert asked == [script] if size == 2**17 else script in asked[0]
