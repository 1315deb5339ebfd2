"""Runs pytest sessions of native suites: in the fork beside the program under test, or apart from it.

A session in the fork leaves a sealed report there. One that runs apart is in a verifier environment, with a door to the
fork: no file, process or user of the agent's is where the suite runs, and nothing of the suite is where the program
runs.
"""

from __future__ import annotations

import contextlib
import hashlib
import hmac
import json
import logging
import re
import secrets
import time
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path

from pytest_evocode.environments import (
    Command,
    Environment,
    ExecResult,
    Program,
    require_readable,
)
from pytest_evocode.environments.programs import CappedOutput, Stream
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import UnreadableFile
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
_STOPPED = re.compile(r'Timeout \(\d+:\d\d:[\d.]+\)!\n(?:.+\n){0,200}?  File "/tests/(.+)", line (\d+)')
"""Matches what Python's faulthandler prints before it ends a process, down to the innermost line of the tests."""
_TAIL = 2**16  # characters
_REPORT, _SEAL, _RUNNING = f"{LOGS}/report.json", f"{LOGS}/report.seal", f"{OWN}/running.json"
_LIMITS = {_REPORT: 64 * 2**20, _SEAL: 2**10, _RUNNING: 2**16}  # bytes
_LOOK = 0.25  # seconds after which a broken door is noticed; the session's end is noticed at once
_KILLING = 10.0  # seconds for a killed session to end
IMPORTS = {"collect": "does not import", "skip": "skipped as a whole"}
"""What becomes of modules before any case begins, by what an error is noted as."""
_UNASKED = (
    "no test of the suite used the fixture `workspace`, so none has looked at what the agent made: run the program by "
    '`workspace`, or say verify_in = "clean" in [metadata.evocode] of task.toml'
)


class NativeSession(ABC):
    """Runs pytest sessions of one native suite for one round."""

    def __init__(self, task: Task, round_: Round, settings: SuiteSettings) -> None:
        self.task = task
        self.round = round_
        self.settings = settings

    @abstractmethod
    def run(self, plan: Plan) -> tuple[ExecResult, SuiteReport]:
        """Run one session, and return how it ended and its report, or a report that says why there is none."""

    @abstractmethod
    def debug(self, plan: Plan) -> tuple[Environment, Command]:
        """Bring the suite once more, and return a command for a terminal, and where to run it.

        It writes no report, so that the one of the suite's own run stays.
        """

    def close(self) -> None:  # noqa: B027 - a session in the fork has nothing to end
        """End what :meth:`debug` has started beside its command."""

    def _bring_to(self, environment: Environment, *own: Path) -> list[str]:
        """Put the suite of the round into ``/tests``, and return the command that runs it.

        The files of the directories ``own`` are put beside pytest.
        """
        assert self.settings.toolbox is not None
        self.settings.stopwatch.begin("fork")
        place = Path(OWN).name
        suite = [(source, where) for where, source in self.task.suite(self.round).items()]
        brought = [*suite, (self.settings.toolbox.directory, place), *((directory, place) for directory in own)]
        environment.upload(brought, "/tests", writable=True)
        return [self.settings.toolbox.python, "-I", "-B", f"{OWN}/{PROGRAM}"]


class ForkSession(NativeSession):
    """A session in the fork."""

    def __init__(self, fork: Environment, task: Task, round_: Round, settings: SuiteSettings) -> None:
        super().__init__(task, round_, settings)
        self._fork = fork

    def run(self, plan: Plan) -> tuple[ExecResult, SuiteReport]:
        """See :class:`NativeSession`."""
        key = secrets.token_hex(32)
        argv = self._bring({**plan, "key": key})
        settings = self.settings
        settings.stopwatch.begin("suite")
        result = self._fork.exec(argv, user=self.round.verifier_user, env=settings.env, timeout=settings.timeout)
        settings.stopwatch.begin("reading")
        logger.debug("%s, %s: pytest ended with %s", self.task.name, self.round.name, result.exit_code)
        found = self._fork.read_files(_LIMITS)
        try:
            report, seal = require_readable(found[_REPORT]), require_readable(found[_SEAL])
        except UnreadableFile:
            report = seal = None
        if report is None or seal is None or not hmac.compare_digest(_seal(key, report), seal):
            return result, broken_off(result, *_running_case(found[_RUNNING]), settings.timeout)
        sealed: SuiteReport = json.loads(report)
        return result, sealed

    def debug(self, plan: Plan) -> tuple[Environment, Command]:
        """See :class:`NativeSession`."""
        return self._fork, Command(tuple(self._bring(plan)), user=self.round.verifier_user, env=self.settings.env)

    def _bring(self, plan: Plan) -> list[str]:
        with scratch_directory() as directory:
            Path(directory, "plan.json").write_text(json.dumps(plan))
            return self._bring_to(self._fork, Path(directory))


class SeparateSession(NativeSession):
    """A session in a verifier environment."""

    def __init__(
        self,
        verifier: Environment,
        fork: Environment,
        task: Task,
        round_: Round,
        settings: SuiteSettings,
        program_env: Mapping[str, str],
    ) -> None:
        """Take both environments, started. ``program_env`` are variables for programs beside those of the image."""
        super().__init__(task, round_, settings)
        self._verifier = verifier
        self._fork = fork
        self._program_env = program_env
        self._door: Door | None = None

    def run(self, plan: Plan) -> tuple[ExecResult, SuiteReport]:
        """See :class:`NativeSession`.

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
        """See :class:`NativeSession`.

        The session's own streams are the terminal, so the door passes through a socket and a second program.
        """
        argv = self._bring()
        path = f"/tmp/door-{uuid.uuid4().hex}"
        self._door = self._open_door(plan)
        self._start([*argv, RELAY, path], self._door, CappedOutput())
        deadline = time.monotonic() + _KILLING
        while self._verifier.file_status(path) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        command = Command((*argv, f"{DOOR}={path}"), self.round.verifier_user, self.settings.env, "/tmp")
        return self._verifier, command

    def close(self) -> None:
        """See :class:`NativeSession`."""
        if self._door is not None:
            self._verifier.end_programs()
            self._door.close()

    def _bring(self) -> list[str]:
        """Bring the suite to a verifier environment that has nothing of an earlier one."""
        self._verifier.end_programs()
        self._verifier.remove(["/tests", LOGS, "/tmp"])
        self._verifier.make_directories([LOGS, "/tmp"])
        return self._bring_to(self._verifier)

    def _open_door(self, plan: Plan) -> Door:
        user = self.round.agent_user
        config = self.task.config
        declared = [config.environment.env, getattr(config.verifier.environment, "env", {}), self.settings.env]
        known: Plan = {
            **plan,
            "workdir": self._fork.workdir,
            "user": "" if user is None else user,
            "variables": sorted({name for variables in declared for name in variables}),
        }
        return Door(self._fork, user, self._program_env, known)

    def _start(self, argv: list[str], door: Door, output: CappedOutput) -> Program:
        def take(stream: Stream, data: bytes) -> None:
            if stream == 1:
                door.take(data)
            else:
                output.add(data)

        command = Command(tuple(argv), self.round.verifier_user, self.settings.env, "/tmp")
        program = self._verifier.open_program(command, take)
        door.open_to(program.write)
        return program

    def _wait(self, program: Program, door: Door, deadline: float) -> int | None:
        """Wait for the session's end and return its exit code; None when it was ended, at its deadline or before."""
        while (left := deadline - time.monotonic()) > 0 and not door.broken.is_set():
            if (exit_code := program.wait(min(left, _LOOK))) is not None:
                return exit_code
        self._verifier.end_programs()
        program.wait(_KILLING)
        return None

    def _report(self, door: Door, result: ExecResult) -> SuiteReport:
        if door.report is None or door.fault is not None or result.timed_out:
            return broken_off(result, *door.running, self.settings.timeout, timeouts=door.timeouts)
        report: SuiteReport = json.loads(door.report)
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


def _seal(key: str, report: bytes) -> bytes:
    return hmac.new(key.encode(), report, hashlib.sha256).hexdigest().encode()


def _running_case(running: bytes | UnreadableFile | None) -> tuple[str, str]:
    """Return the case that had begun, and where it is; empty where that is not known."""
    # A program under test may have written it.
    with contextlib.suppress(ValueError, KeyError, TypeError, RecursionError):
        noted = json.loads(running if isinstance(running, bytes) else b"{}")
        return str(noted["id"]), str(noted["where"])
    return "", ""
