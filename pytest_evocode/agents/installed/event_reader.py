"""Reads the events that a CLI prints or logs during its turn, one JSON object a line, and records them as steps."""

from __future__ import annotations

import io
import json
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.environments import Environment, User
from pytest_evocode.gateway import Exchange
from pytest_evocode.gateway.replies import reply_of, tokens_in
from pytest_evocode.results.records import Usage, total_usage
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action, Recorder

Event = Mapping[str, Any]
_SHOWN = 300  # characters
_READING = 60.0  # seconds
#: Read of a log at once at most: the agent may make the file as long as it likes.
_LOOK = 64 * 2**20  # bytes
UNKNOWN_FORM = (LookupError, TypeError, AttributeError, ValueError, OverflowError)
"""What taking an event, or an entry of a log, raises that has another form than expected."""


class EventReader(ABC):
    """Turns the events of one CLI in one turn into steps of the trajectory.

    What a reply took, and how it ended, the gateway knows: each step has what was asked since the one before it.
    """

    def __init__(self, recorder: Recorder, new_exchanges: Callable[[], Sequence[Exchange]] = tuple) -> None:
        """Read for a recorder; ``new_exchanges`` gives what the gateway has answered since it was last called."""
        self.recorder = recorder
        self._new_exchanges = new_exchanges
        self._is_counted = True
        self.session = ""
        """The CLI's id of the session, once there is something to be resumed."""
        self.replies = 0
        """Number of the model's replies."""
        self.final = ""
        """Text of the model's last reply."""
        self.failure = ""
        """Why the CLI could not do its work, in its own words."""
        self.stopped = ""
        """Why the CLI ended the turn before the model did."""
        self.refused = ""
        """The provider's word for why the last reply is a refusal; empty where it is none."""
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._began: dict[str, float] = {}
        self._waiting: set[str] | None = None
        """Calls of the last reply without a result; None where it had none."""

    def read(self, line: bytes) -> None:
        """Read a line that the program printed; lines that are no events are ignored."""
        event = _parse(line)
        if event is None:
            return
        try:
            self.take(event)
        except UNKNOWN_FORM as error:
            shown = line.decode("utf-8", "replace").strip()[:_SHOWN]
            self.recorder.say("system", f"An event of unknown form was left out ({error!r}): {shown}")

    def watch(self, context: RoundContext, session: str) -> None:  # noqa: B027 - events are enough for most CLIs
        """Prepare for the events of a turn that resumes the session, or begins one where it is empty."""

    @abstractmethod
    def take(self, event: Event) -> None:
        """Record an event."""

    def close(self) -> None:  # noqa: B027 - not all have something to do
        """Record what was only begun; no further event comes."""

    def settle(self) -> None:
        """Record what was asked after the last reply, or beside all of them; nothing is asked any more."""
        left = self.take_new()
        if self._told(left)[1].get("ending") in ("refused", "filtered"):  # Of which CLIs say nothing.
            self._reply_with("", (), left)
        else:
            self._amend(left)

    # For subclasses.

    def reply(
        self,
        text: str,
        calls: Sequence[ToolCall] = (),
        *,
        reasoning: str = "",
        model: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """Record a reply, with the model that gave it where the CLI says so, and what the gateway knows of it."""
        self.replies += 1
        self.final = text or self.final
        new = self.take_new()
        if len(new) > 1 and not self._is_counted:  # It was answered in full only after its first call was done.
            self._amend([new.pop(0)])
        self._reply_with(text, calls, new, reasoning=reasoning, model=model, extra=extra)
        self._waiting = set() if calls else None
        for call in calls:
            self._wait_for(call)

    def flush(self, calls: Sequence[ToolCall] = (), *, continues: bool = False) -> None:
        """Record a reply with the texts and thoughts that were collected, if there are any, and with calls.

        Calls without texts and thoughts are added to the last reply where that one ``continues``.
        """
        has_words = bool(self._texts or self._thoughts)
        if continues and not has_words:
            for call in calls:
                self.recorder.amend(calls=[call])
                self._wait_for(call)
        elif calls or has_words:
            self.reply("\n\n".join(self._texts), calls, reasoning="\n\n".join(self._thoughts))
            self._texts, self._thoughts = [], []

    def _wait_for(self, call: ToolCall) -> None:
        self._began[call.tool_call_id] = time.monotonic()
        self._waiting = {*(self._waiting or ()), call.tool_call_id}

    @property
    def waits(self) -> bool:
        """Whether a call of the last reply has no result yet."""
        return bool(self._waiting)

    def result(
        self,
        call_id: str,
        content: str,
        *,
        exit_code: int | None = None,
        timed_out: bool = False,
        seconds: float | None = None,
    ) -> None:
        """Record the result of a call; ``seconds`` where the CLI says how long it took."""
        began = self._began.pop(call_id, None)
        if seconds is None:
            seconds = 0.0 if began is None else time.monotonic() - began
        self.recorder.observe(call_id, content, Action(exit_code=exit_code, seconds=seconds, timed_out=timed_out))
        if self._waiting is not None:
            self._waiting.discard(call_id)
        if not self._is_counted:
            self._amend(self.take_new())

    def take_new(self) -> list[Exchange]:
        """Return what was answered since the last call."""
        return [*self._new_exchanges()]

    def _reply_with(
        self,
        text: str,
        calls: Sequence[ToolCall],
        exchanges: Sequence[Exchange],
        *,
        reasoning: str = "",
        model: str = "",
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        usage, notes = self._told(exchanges)
        self._is_counted = usage is not None
        answered_by = notes.pop("model", "")
        self.recorder.reply(
            text,
            calls,
            reasoning=reasoning,
            usage=usage,
            model=model or answered_by,
            extra=notes | dict(extra or {}),
            tokens=tokens_in(exchanges[-1]).metrics if exchanges else None,
        )

    def _amend(self, exchanges: Sequence[Exchange]) -> None:
        """Add exchanges to the last reply."""
        if exchanges:
            usage, notes = self._told(exchanges)
            self._is_counted = True
            self.recorder.amend(usage=usage, model=notes.pop("model", ""), notes=notes)

    def _told(self, exchanges: Sequence[Exchange]) -> tuple[Usage | None, dict[str, Any]]:
        """Return what exchanges took, and the model and the ending of the last reply in them."""
        usage = total_usage(each.usage for each in exchanges)
        replies = map(reply_of, reversed(exchanges))
        last = next((reply for reply in replies if reply is not None), None)
        if last is None:
            return usage, {}
        self.refused = (last.stop_reason or last.ending) if last.refused else ""
        notes = {"model": last.model, "stop_reason": last.stop_reason, "ending": last.ending}
        return usage, {name: value for name, value in notes.items() if value}


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
        return [event for line in written.splitlines() if (event := _parse(line)) is not None]


def _parse(line: bytes) -> Event | None:
    """Return the JSON object in a line; None where there is none."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    return event if isinstance(event, dict) else None


def text_of(content: Any) -> str:
    """Return the text of a message or a result, which may come in blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = [block if isinstance(block, dict) else {"text": str(block)} for block in content]
        return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in blocks)
    return "" if content is None else json.dumps(content, ensure_ascii=False)
