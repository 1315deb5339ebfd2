"""What a program says of its turn while it works: one JSON object a line, taken down as it comes."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from pytest_evocode.llm.prices import ModelFacts
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action, Recorder

Event = Mapping[str, Any]
_SHOWN = 300  # characters


class EventReader(ABC):
    """Turns the events of one CLI in one turn into steps; :meth:`close` ends it."""

    def __init__(self, recorder: Recorder, facts: ModelFacts | None = None) -> None:
        """``facts`` are what is known of the model's prices."""
        self.recorder = recorder
        self.facts = facts
        self.session = ""
        """What the CLI calls the conversation, once there is something in it to be continued."""
        self.replies = 0
        """How often the model has answered."""
        self.final = ""
        """The model's last words."""
        self.failure = ""
        """Why the CLI could not do its work, in its own or the provider's words."""
        self.trouble = ""
        """What it tries to overcome, since the model's last answer."""
        self.stopped = ""
        """Why it ended the turn before the model did."""
        self._began: dict[str, float] = {}
        self._waiting: set[str] | None = None
        """Calls of the last answer without a result; None where it had none."""

    @property
    def between(self) -> bool:
        """Whether the last answer's calls are done and the model is about to be asked again."""
        return self._waiting is not None and not self._waiting

    def read(self, line: bytes) -> None:
        """Take a line that the program printed; what is no event is passed over."""
        try:
            event = json.loads(line)
        except ValueError:
            return
        if not isinstance(event, dict):
            return
        try:
            self.take(event)
        except (LookupError, TypeError, AttributeError, ValueError) as error:
            shown = line.decode("utf-8", "replace").strip()[:_SHOWN]
            self.recorder.say("system", f"An event of unknown form was left out ({error!r}): {shown}")

    @abstractmethod
    def take(self, event: Event) -> None:
        """Take an event."""

    def close(self) -> None:  # noqa: B027 - not all have something to do
        """Take down what was only begun; no further event comes."""

    # What events come to.

    def reply(
        self,
        text: str,
        calls: Sequence[ToolCall] = (),
        *,
        reasoning: str = "",
        usage: Usage | None = None,
        extra: Mapping[str, Any] | None = None,
    ) -> None:
        """The model has answered."""
        self.replies += 1
        self.trouble = ""
        self.final = text or self.final
        self.recorder.reply(text, calls, reasoning=reasoning, usage=usage, extra=extra)
        self._waiting = set() if calls else None
        for call in calls:
            self._wait_for(call)

    def call_too(self, call: ToolCall) -> None:
        """The last answer calls this as well."""
        self.recorder.amend(calls=[call])
        self._wait_for(call)

    def _wait_for(self, call: ToolCall) -> None:
        self._began[call.tool_call_id] = time.monotonic()
        self._waiting = {*(self._waiting or ()), call.tool_call_id}

    @property
    def waits(self) -> bool:
        """Whether a call of the last answer has no result yet."""
        return bool(self._waiting)

    def has_begun(self, call_id: str) -> bool:
        """Whether there is a call without a result."""
        return call_id in self._began

    def result(
        self,
        call_id: str,
        content: str,
        *,
        exit_code: int | None = None,
        timed_out: bool = False,
        seconds: float | None = None,
    ) -> None:
        """A call has its result; ``seconds`` where the CLI says how long it took."""
        began = self._began.pop(call_id, None)
        if seconds is None:
            seconds = 0.0 if began is None else time.monotonic() - began
        self.recorder.observe(call_id, content, Action(exit_code=exit_code, seconds=seconds, timed_out=timed_out))
        if self._waiting is not None:
            self._waiting.discard(call_id)

    def usage(self, *, prompt: int, completion: int, cached: int = 0, written: int = 0) -> Usage:
        """What one request took; ``cached`` and ``written`` are parts of ``prompt``."""
        return Usage(
            prompt_tokens=prompt,
            cached_tokens=cached,
            completion_tokens=completion,
            cost_usd=None if self.facts is None else self.facts.cost(prompt, completion, cached, written),
            requests=1,
        )


def text_of(content: Any) -> str:
    """The text of a message or a result, which may come in blocks."""
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        blocks = [block if isinstance(block, dict) else {"text": str(block)} for block in content]
        return "\n".join(str(block.get("text", f"[{block.get('type')}]")) for block in blocks)
    return "" if content is None else json.dumps(content, ensure_ascii=False)
