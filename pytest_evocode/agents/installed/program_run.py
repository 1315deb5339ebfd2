"""Runs an agent's program in the container within its time and budget, and reads what it prints meanwhile."""

from __future__ import annotations

import contextlib
import logging
import os
import threading
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import BinaryIO

from pytest_evocode.agents.installed.event_reader import EventReader
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.environments import ExecResult
from pytest_evocode.errors import EnvironmentFault, RunLimitReached
from pytest_evocode.results.records import Usage

logger = logging.getLogger(__name__)

#: Longer lines are no events; the limit keeps a program from filling this process's memory.
_LONGEST_LINE = 64 * 2**20  # bytes
#: For a turn without a limit. A container sees the end of its session only during commands that may take long.
_ENDLESS = 20 * 86400.0  # seconds; more than 2**31 milliseconds cannot be waited for at once


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How an agent's program ended."""

    result: ExecResult
    stopped: str
    """The budget limit that ended it; empty where none did."""


def run_program(
    context: RoundContext, command: str, *, env: Mapping[str, str], reader: EventReader | None = None
) -> ProgramRun:
    """Run a script as the round's agent user until it ends, or its time or the attempt's budget is over.

    The budget is checked before the program starts, and whenever the ``reader`` says that a model is about to be asked.
    When it is over, all processes of the container are killed, as they are at the deadline.

    Args:
        context: The agent's turn.
        command: Bash script.
        env: Variables that the program gets.
        reader: Reads the lines that the program prints.
    """
    if spent := context.spending.exhausted:
        return ProgramRun(ExecResult(None, "", timed_out=False, seconds=0.0), spent)
    turn = f"{context.task.name} {context.round.name}"
    logger.info("%s: the agent's program is started", turn)
    reading = _Reading(context, reader)
    try:
        with reading.pipe() as sink:
            result = context.environment.exec(
                command, user=context.round.agent_user, env=env, timeout=context.timeout or _ENDLESS, stdout=sink
            )
    except BaseException as error:
        if reader is not None:
            if isinstance(error, RunLimitReached):
                reader.close()  # What the program's log has of its last replies counts for the run as well.
            context.recorder.break_off(reader.used)
        raise
    ending = "was killed at its deadline" if result.timed_out else f"ended with exit code {result.exit_code}"
    logger.info("%s: the agent's program %s after %.1f s", turn, ending, result.seconds)
    return ProgramRun(result, reading.stopped)


class _Reading:
    """Reads a program's output while it runs, and ends the program where it may not go on."""

    def __init__(self, context: RoundContext, reader: EventReader | None) -> None:
        self._context = context
        self._reader = reader
        self._error: BaseException | None = None
        self._ended = False
        self._used: Usage | None = None if reader is None else reader.used
        self.stopped = ""

    @contextlib.contextmanager
    def pipe(self) -> Iterator[BinaryIO]:
        """Yield a file for the output, which a thread reads; all of it is read when the context ends."""
        # A pipe makes a program wait that prints faster than its output is read.
        source, sink = os.pipe()
        thread = threading.Thread(target=self._read, args=(os.fdopen(source, "rb"),), name="events", daemon=True)
        thread.start()
        try:
            with os.fdopen(sink, "wb", buffering=0) as output:
                yield output
        finally:
            thread.join()
        if self._error is not None:
            raise self._error

    def _read(self, source: BinaryIO) -> None:
        with source:
            # Read to the end, or the program would wait for ever.
            while line := source.readline(_LONGEST_LINE):
                if self._reader is not None and not self._ended:
                    try:
                        self._take(self._reader, line)
                    except BaseException as error:
                        self._error = error
                        self._end()

    def _take(self, reader: EventReader, line: bytes) -> None:
        reader.read(line)
        if (used := reader.used) is not None and used != self._used:
            self._used = used
            self._context.journal.add_used(used)
        if reader.between:
            self.stopped = self._context.spending.exhausted
        if self.stopped or reader.failure:
            self._end()

    def _end(self) -> None:
        self._ended = True
        logger.info("the agent's program is killed: %s", "its budget is used up" if self.stopped else "it failed")
        with contextlib.suppress(EnvironmentFault):  # Running the program fails with it, too.
            self._context.environment.kill_processes()
