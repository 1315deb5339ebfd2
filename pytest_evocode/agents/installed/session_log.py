"""Reads the log that a CLI writes of its session, for what its events do not say in time."""

from __future__ import annotations

import io
import json
from abc import abstractmethod

from pytest_evocode.agents.installed.event_reader import Event, EventReader
from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.environments import Environment, User

_READING = 60.0  # seconds
#: Read at once at most: the agent may make the file as long as it likes.
_LOOK = 64 * 2**20  # bytes


class SessionLog:
    """A log of one JSON object a line; ``pattern`` is its path for the user's shell. It need not exist yet."""

    def __init__(self, environment: Environment, user: User | None, pattern: str) -> None:
        self._environment = environment
        self._user = user
        self._pattern = pattern
        self._read = 0

    def new(self) -> list[Event]:
        """Return the entries that were written since the last call, in whole lines."""
        output = io.BytesIO()
        read = f'tail -c +{self._read + 1} "$log" | head -c {_LOOK}'
        script = f'for log in {self._pattern}; do [ -f "$log" ] && {{ {read}; break; }}; done'
        self._environment.exec(script, user=self._user, cwd="/", timeout=_READING, stdout=output)
        written = output.getvalue()
        written = written[: written.rfind(b"\n") + 1]
        self._read += len(written)
        found: list[Event] = []
        for line in written.splitlines():
            try:
                event = json.loads(line)
            except ValueError:
                continue
            if isinstance(event, dict):
                found.append(event)
        return found


class LoggedEventReader(EventReader):
    """Reads events, and beside them the log of the session."""

    _context: RoundContext | None = None
    _log: SessionLog | None = None

    @abstractmethod
    def pattern(self, session: str) -> str:
        """Return the path of a session's log, as a pattern for the shell."""

    def watch(self, context: RoundContext, session: str) -> None:
        """See :class:`~pytest_evocode.agents.installed.event_reader.EventReader`."""
        self._context = context
        if session:
            self.open_log(session)
            self.skip(self.new_entries())

    def skip(self, entries: list[Event]) -> None:
        """Take note of what earlier turns have written to the log."""

    def open_log(self, session: str) -> None:
        """Follow the log of a session."""
        if self._context is not None and self._log is None:
            self._log = SessionLog(self._context.environment, self._context.round.agent_user, self.pattern(session))

    def new_entries(self) -> list[Event]:
        """Return the entries since the last call."""
        return [] if self._log is None else self._log.new()
