"""A file to which a CLI writes its conversation as it goes, for what its events do not say in time."""

from __future__ import annotations

import io
import json

from pytest_evocode.agents.installed.event_reader import Event
from pytest_evocode.environments import Environment, User

_READING = 60.0  # seconds
#: What one look takes in: the agent may make the file as long as it likes.
_LOOK = 64 * 2**20  # bytes


class SessionLog:
    """One JSON object a line, of a file that ``pattern`` names in the shell of the agent's user; it need not exist."""

    def __init__(self, environment: Environment, user: User | None, pattern: str) -> None:
        self._environment = environment
        self._user = user
        self._pattern = pattern
        self._read = 0

    def new(self) -> list[Event]:
        """What was written since the last look, in whole lines."""
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
