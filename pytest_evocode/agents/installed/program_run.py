"""Runs a program for as long as its turn may last, and reads what it prints meanwhile."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import BinaryIO, Self

from pytest_evocode.agents.installed.event_reader import EventReader
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.environments import ExecResult
from pytest_evocode.errors import EnvironmentFault

#: Of what is longer nothing is an event, and no program can have this process hold all that it prints.
_LONGEST_LINE = 64 * 2**20  # bytes


@dataclass(frozen=True, slots=True)
class ProgramRun:
    """How a program ended."""

    result: ExecResult
    stopped: str
    """Which budget ended it; empty where none did."""


def run_program(
    context: RoundContext, command: str, *, env: Mapping[str, str], reader: EventReader | None = None
) -> ProgramRun:
    """Run a script as the round's agent user until it ends, or its time or the attempt's budget is over.

    The budget is looked at before it starts, and when the ``reader`` says that a model is about to be asked; all
    processes in there end with it, as they do at the deadline.
    """
    if spent := context.spending.exhausted:
        return ProgramRun(ExecResult(None, "", timed_out=False, seconds=0.0), spent)
    with _Reading(context, reader) as reading:
        result = context.environment.exec(
            command, user=context.round.agent_user, env=env, timeout=context.timeout, stdout=reading.sink
        )
    return ProgramRun(result, reading.stopped)


class _Reading:
    """A thread that reads a program's output, and is through with it at the end of the context."""

    def __init__(self, context: RoundContext, reader: EventReader | None) -> None:
        self._context = context
        self._reader = reader
        self._error: BaseException | None = None
        self._ended = False
        self.stopped = ""

    def __enter__(self) -> Self:
        # A pipe, so that a program that prints faster than it is taken down has to wait.
        source, sink = os.pipe()
        self.sink: BinaryIO = os.fdopen(sink, "wb", buffering=0)
        self._thread = threading.Thread(target=self._read, args=(os.fdopen(source, "rb"),), name="events", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.sink.close()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _read(self, source: BinaryIO) -> None:
        with source:
            # To its end, or the program would wait for ever, and with it who runs it.
            while line := source.readline(_LONGEST_LINE):
                if self._reader is not None and not self._ended:
                    try:
                        self._take(self._reader, line)
                    except BaseException as error:
                        self._error = error
                        self._end()

    def _take(self, reader: EventReader, line: bytes) -> None:
        reader.read(line)
        if reader.between:
            self.stopped = self._context.spending.exhausted
        if self.stopped or reader.failure:
            self._end()

    def _end(self) -> None:
        self._ended = True
        with contextlib.suppress(EnvironmentFault):  # Whoever runs the program is told of it.
            self._context.environment.kill_processes()
