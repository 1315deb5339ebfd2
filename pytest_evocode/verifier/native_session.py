"""Runs pytest sessions of native suites: in the fork beside the program under test, or apart from it.

One that runs apart is in a verifier environment: no file, process or user of the agent's is where the suite runs, and
nothing of the suite is where the program runs.
"""

from __future__ import annotations

import contextlib
import json
import logging
import re
import signal
import time
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from pytest_evocode.environments import (
    Command,
    Environment,
    ExecResult,
    Program,
)
from pytest_evocode.environments.programs import CappedOutput, Stream
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.door import Door
from pytest_evocode.verifier.in_container.door_client import DOOR
from pytest_evocode.verifier.in_container.memory import OWN
from pytest_evocode.verifier.in_container.protocol import FrameError, Plan, SuiteError, SuiteReport
from pytest_evocode.verifier.in_container.start import RELAY
from pytest_evocode.verifier.script import tail
from pytest_evocode.verifier.suite_run import LOGS, SuiteSettings
from pytest_evocode.verifier.toolbox import PROGRAM

logger = logging.getLogger(__name__)

MAY_HANG = "the program may hang, in a check the solution"
"""What is said where calls of the program took the time of a suite that was stopped at its limit."""
_STOPPED = re.compile(r'Timeout \(\d+:\d\d:[\d.]+\)!\n(?:.*\n){0,400}?  File "/tests/(.+)", line (\d+)')
"""Matches what Python's faulthandler prints before it ends a process, down to the innermost line of the tests
in any thread."""
_TAIL = 2**16  # characters
_LOOK = 0.25  # seconds after which a broken door is noticed; the session's end is noticed at once
_KILLING = 10.0  # seconds for a killed session to end
_OF_AN_ERROR: tuple[Literal["id", "when", "where", "what"], ...] = ("id", "when", "where", "what")
IMPORTS = {"collect": "does not import", "skip": "skipped as a whole"}
"""What becomes of modules before any case begins, by what an error is noted as."""
_UNASKED = (
    "no test of the suite used the fixture `workspace`, so none has looked at what the agent made: run the program by "
    '`workspace`, or say verify_in = "clean" in [metadata.evocode] of task.toml'
)


class NativeSession:
    """Runs pytest sessions of one native suite for one round, each with a door to the host."""

    def __init__(
        self,
        fork: Environment,
        verifier: Environment | None,
        task: Task,
        round_: Round,
        settings: SuiteSettings,
        program_env: Mapping[str, str],
    ) -> None:
        """Take what has been started.

        Args:
            fork: Where the program under test is.
            verifier: Where the suite runs apart from it; None for in the fork, too.
            task: The task.
            round_: The round whose suite is run.
            settings: How it is run.
            program_env: Variables for programs of a suite that runs apart, beside those of the image.
        """
        self.task = task
        self.round = round_
        self.settings = settings
        self._fork = fork
        self._place = fork if verifier is None else verifier
        self._is_apart = verifier is not None
        self._program_env = program_env
        self._relay: tuple[Program, Door] | None = None

    def run(self, plan: Plan) -> tuple[ExecResult, SuiteReport]:
        """Run one session, and return how it ended and its report, or a report that says why there is none.

        Raises what kept the door from doing a request, such as EnvironmentFault.
        """
        argv = self._bring()
        started = time.monotonic()
        output = CappedOutput()
        self.settings.stopwatch.begin("suite")
        door = self._open_door(plan)
        try:
            program = self._start([*argv, DOOR], door, output)
            exit_code = self._wait(program, door, started + self.settings.timeout)
        finally:
            door.close()
            self.settings.stopwatch.begin("reading")
        if door.fault is not None and not isinstance(door.fault, FrameError):
            raise door.fault
        if door.fault is not None:
            output.add(f"\n{door.fault}\n".encode())
        timed_out = exit_code is None and door.fault is None
        result = ExecResult(exit_code, output.text(), timed_out, time.monotonic() - started)
        logger.debug("%s, %s: pytest ended with %s", self.task.name, self.round.name, exit_code)
        return result, self._report(door, result)

    def debug(self, plan: Plan) -> tuple[Environment, Command]:
        """Bring the suite once more, and return a command for a terminal, and where to run it.

        The session's own streams are the terminal, so the door passes through a socket and a second program.
        """
        argv = self._bring()
        path = f"/tmp/door-{uuid.uuid4().hex}"
        door = self._open_door(plan)
        self._relay = self._start([*argv, RELAY, path], door, CappedOutput()), door
        deadline = time.monotonic() + _KILLING
        while self._place.file_status(path) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        return self._place, self._command([*argv, f"{DOOR}={path}"])

    def close(self) -> None:
        """End what :meth:`debug` has started beside its command."""
        if self._relay is not None:
            program, door = self._relay
            program.signal(signal.SIGKILL)
            door.close()

    def _bring(self) -> list[str]:
        """Put the suite of the round into ``/tests``, and return the command that runs it."""
        if self._is_apart:  # Another suite may have been there.
            self._place.end_programs()
            self._place.remove(["/tests", LOGS, "/tmp"])
            self._place.make_directories([LOGS, "/tmp"])
        assert self.settings.toolbox is not None
        self.settings.stopwatch.begin("fork")
        suite = [(source, where) for where, source in self.task.suite(self.round).items()]
        self._place.upload([*suite, (self.settings.toolbox.directory, Path(OWN).name)], "/tests", writable=True)
        return [self.settings.toolbox.python, "-I", "-B", f"{OWN}/{PROGRAM}"]

    def _open_door(self, plan: Plan) -> Door:
        user = self.round.agent_user
        config = self.task.config
        declared = [config.environment.env, getattr(config.verifier.environment, "env", {}), self.settings.env]
        known: Plan = {
            **plan,
            "apart": self._is_apart,
            "workdir": self._fork.workdir,
            "user": "" if user is None else user,
            "variables": sorted({name for variables in declared for name in variables}),
        }
        return Door(self._fork, user, self._program_env, known)

    def _command(self, argv: list[str]) -> Command:
        directory = "/tmp" if self._is_apart else None
        return Command(tuple(argv), self.round.verifier_user, self.settings.env, directory)

    def _start(self, argv: list[str], door: Door, output: CappedOutput) -> Program:
        def take(stream: Stream, data: bytes) -> None:
            if stream == 1:
                door.take(data)
            else:
                output.add(data)

        program = self._place.open_program(self._command(argv), take)
        door.open_to(program.write)
        return program

    def _wait(self, program: Program, door: Door, deadline: float) -> int | None:
        """Wait for the session's end and return its exit code; None when it was ended, at its deadline or before."""
        while (left := deadline - time.monotonic()) > 0 and not door.broken.is_set():
            if (exit_code := program.wait(min(left, _LOOK))) is not None:
                return exit_code
        self._place.end_programs()
        program.wait(_KILLING)
        return None

    def _report(self, door: Door, result: ExecResult) -> SuiteReport:
        report = None if door.report is None else parse_report(door.report)
        if report is None or door.fault is not None or result.timed_out:
            return broken_off(result, *door.running, self.settings.timeout, timeouts=door.timeouts)
        if not self._is_apart:
            return report
        # Some cases may well be those that look at nothing, and what no fixture let begin has a cause of its own.
        begun = any(test["outcome"] not in ("skipped", "error") for test in report["tests"])
        if door.calls == 0 and not self.settings.patterns and begun:
            report["evocode"]["problems"].append(_UNASKED)
        # Nothing of an agent is where modules are imported, unless they ask for it or read what earlier suites kept.
        if not (door.asked_before_cases or self.task.config.metadata.evocode.verifier_state):
            report["evocode"]["problems"] += [
                ": ".join(filter(None, (error["where"], IMPORTS[error["when"]], error["what"])))
                for error in report["evocode"]["errors"]
                if error["when"] in IMPORTS
            ]
        return report


def parse_report(text: bytes) -> SuiteReport | None:
    """Return a session's report; None for what is none, as code of the agent's that a test imports may tell."""
    with contextlib.suppress(ValueError, RecursionError, LookupError, TypeError):
        report: SuiteReport = json.loads(text)
        notes = report["evocode"]
        errors = (error[name] for error in notes["errors"] for name in _OF_AN_ERROR)
        outcomes = (test["outcome"] for test in report["tests"])
        if all(isinstance(each, str) for each in (*notes["problems"], *notes["unlike"], *errors, *outcomes)):
            return report
    return None


def broken_off(result: ExecResult, case: str, where: str, limit: float, *, timeouts: int = 0) -> SuiteReport:
    """Return a report for a session that left none; ``case`` had begun at ``where``, and ``limit`` is in seconds.

    ``timeouts`` says how many calls of the program had reached their own timeouts.
    """
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
    if result.timed_out and timeouts:
        calls = "1 call" if timeouts == 1 else f"{timeouts} calls"
        at += f", after {calls} of the program reached their timeouts: {MAY_HANG}"
    error: SuiteError = {
        "id": "",
        "when": when,
        "where": where,
        "what": f"{what}{at}; its last lines:\n{tail(output)}",
    }
    return {"tests": [], "evocode": {"problems": [], "errors": [error], "unlike": []}}
