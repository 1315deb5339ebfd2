"""Runs a native suite apart from the program under test: in a verifier environment, with a door to the fork.

No file, process or user of the agent's is where the suite runs, and nothing of the suite is where the program runs.
"""

from __future__ import annotations

import json
import logging
import time
import uuid
from collections.abc import Mapping

from pytest_evocode.environments import Command, Environment, ExecResult, Program, ProgramEnvironment
from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.programs import Stream
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier.door import Door
from pytest_evocode.verifier.in_container.door_client import DOOR
from pytest_evocode.verifier.in_container.frames import FrameError
from pytest_evocode.verifier.in_container.protocol import Plan, SuiteReport
from pytest_evocode.verifier.in_container.start import RELAY
from pytest_evocode.verifier.native_session import bring_suite, broken_off
from pytest_evocode.verifier.suite_run import LOGS, SuiteSettings

logger = logging.getLogger(__name__)

_LOOK = 0.25  # seconds after which a broken door is noticed; the session's end is noticed at once
_KILLING = 10.0  # seconds for a killed session to end
_UNASKED = (
    "no test of the suite used the fixture `workspace`, so none has looked at what the agent made: run the program by "
    '`workspace`, or say verify_in = "clean" in [metadata.evocode] of task.toml'
)


class SeparateSession:
    """A :class:`~pytest_evocode.verifier.native_session.NativeSession` in a verifier environment."""

    def __init__(
        self,
        verifier: ProgramEnvironment,
        fork: ProgramEnvironment,
        task: Task,
        round_: Round,
        settings: SuiteSettings,
        program_env: Mapping[str, str],
    ) -> None:
        """Take both environments, started. ``program_env`` are variables for programs beside those of the image."""
        self._verifier = verifier
        self._fork = fork
        self._task = task
        self._round = round_
        self._settings = settings
        self._program_env = program_env
        self._door: Door | None = None

    def run(self, plan: Plan) -> tuple[ExecResult, SuiteReport]:
        """See :class:`~pytest_evocode.verifier.native_session.NativeSession`.

        Raises what kept the door from doing a request, such as EnvironmentFault.
        """
        argv = self._bring()
        started = time.monotonic()
        output = CappedOutput()
        self._settings.stopwatch.begin("suite")
        door = self._open_door(plan)
        try:
            program = self._start([*argv, DOOR], door, output)
            exit_code = self._wait(program, door, started + self._settings.timeout)
        finally:
            door.close()
            self._settings.stopwatch.begin("reading")
        if door.fault is not None and not isinstance(door.fault, FrameError):
            raise door.fault
        if door.fault is not None:
            output.add(f"\n{door.fault}\n".encode())
        timed_out = exit_code is None and door.fault is None
        result = ExecResult(exit_code, output.text(), timed_out, time.monotonic() - started)
        logger.debug("%s, %s: pytest ended with %s", self._task.name, self._round.name, exit_code)
        return result, self._report(door, result)

    def debug(self, plan: Plan) -> tuple[Environment, Command]:
        """See :class:`~pytest_evocode.verifier.native_session.NativeSession`.

        The session's own streams are the terminal, so the door passes through a socket and a second program.
        """
        argv = self._bring()
        path = f"/tmp/door-{uuid.uuid4().hex}"
        self._door = self._open_door(plan)
        self._start([*argv, RELAY, path], self._door, CappedOutput())
        deadline = time.monotonic() + _KILLING
        while self._verifier.file_status(path) is None and time.monotonic() < deadline:
            time.sleep(0.02)
        command = Command((*argv, f"{DOOR}={path}"), self._round.verifier_user, self._settings.env, "/tmp")
        return self._verifier, command

    def close(self) -> None:
        """See :class:`~pytest_evocode.verifier.native_session.NativeSession`."""
        if self._door is not None:
            self._verifier.end_programs()
            self._door.close()

    def _bring(self) -> list[str]:
        """Bring the suite to a verifier environment that has nothing of an earlier one."""
        self._verifier.end_programs()
        self._verifier.remove(["/tests", LOGS, "/tmp"])
        self._verifier.make_directories([LOGS, "/tmp"])
        return bring_suite(self._verifier, self._task, self._round, self._settings)

    def _open_door(self, plan: Plan) -> Door:
        user = self._round.agent_user
        config = self._task.config
        declared = [config.environment.env, getattr(config.verifier.environment, "env", {}), self._settings.env]
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

        command = Command(tuple(argv), self._round.verifier_user, self._settings.env, "/tmp")
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
            return broken_off(result, *door.running, self._settings.timeout)
        report: SuiteReport = json.loads(door.report)
        # Some cases may well be those that look at nothing, and what no fixture let begin has a cause of its own.
        begun = any(test["outcome"] not in ("skipped", "error") for test in report["tests"])
        if door.calls == 0 and not self._settings.patterns and begun:
            report["evocode"]["problems"].append(_UNASKED)
        return report
