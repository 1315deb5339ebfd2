"""What the sessions of a native suite have in common, whether they run in the fork or apart from it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from pytest_evocode.environments import Command, Environment, ExecResult
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.in_container.memory import OWN
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteError, SuiteReport
from pytest_evocode.verifier.script import tail
from pytest_evocode.verifier.suite_run import SuiteSettings
from pytest_evocode.verifier.toolbox import PROGRAM

_STOPPED = re.compile(r'Timeout \(\d+:\d\d:[\d.]+\)!\n(?:.+\n){0,200}?  File "/tests/(.+)", line (\d+)')
"""Matches what Python's faulthandler prints before it ends a process, down to the innermost line of the tests."""
_TAIL = 2**16  # characters


class NativeSession(Protocol):
    """Runs pytest sessions of one native suite for one round."""

    def run(self, plan: Plan) -> tuple[ExecResult, SuiteReport]:
        """Run one session, and return how it ended and its report, or a report that says why there is none."""

    def debug(self, plan: Plan) -> tuple[Environment, Command]:
        """Bring the suite once more, and return a command for a terminal, and where to run it.

        It writes no report, so that the one of the suite's own run stays.
        """

    def close(self) -> None:
        """End what :meth:`debug` has started beside its command."""


def bring_suite(environment: Environment, task: Task, round_: Round, settings: SuiteSettings, *own: Path) -> list[str]:
    """Put the suite of a round into ``/tests``, and return the command that runs it.

    The files of the directories ``own`` are put beside pytest.
    """
    assert settings.toolbox is not None
    settings.stopwatch.begin("fork")
    place = Path(OWN).name
    suite = [(source, where) for where, source in task.suite(round_).items()]
    brought = [*suite, (settings.toolbox.directory, place), *((directory, place) for directory in own)]
    environment.upload(brought, "/tests", writable=True)
    return [settings.toolbox.python, "-I", "-B", f"{OWN}/{PROGRAM}"]


def broken_off(result: ExecResult, case: str, where: str, limit: float) -> SuiteReport:
    """Return a report for a session that left none; ``case`` had begun at ``where``, and ``limit`` is in seconds."""
    output = "\n".join(line for line in result.output.splitlines() if f"{OWN}/" not in line)  # pytest's part of stacks.
    when = "hang"
    if result.timed_out:
        what = f"the suite was stopped at its limit of {limit:g} s"
    elif stopped := _STOPPED.search(output[-_TAIL:]):
        what = "the suite hangs"
        where = f"{stopped[1]}:{stopped[2]}"
    else:
        when = "stop"
        what = f"the suite ended with exit code {result.exit_code} and no report of its own"
    at = f" in {case}" if case else ""
    error: SuiteError = {
        "id": "",
        "when": when,
        "where": where,
        "what": f"{what}{at}; its last lines:\n{tail(output)}",
    }
    return {"tests": [], "evocode": {"problems": [], "errors": [error], "unlike": []}}
