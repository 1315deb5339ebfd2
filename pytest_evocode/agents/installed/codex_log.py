"""The requests in Codex' log of a session: what each made and took, and which recorded step it is."""

from __future__ import annotations

import contextlib
import json
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.agents.installed.event_reader import UNKNOWN_FORM, Event, text_of
from pytest_evocode.trajectories.atif import ToolCall

Key = tuple[str, str]
"""What the log and the events call the same: its kind, and its text where both have it."""
_SHELLS = frozenset({"shell", "shell_command", "exec_command", "container.exec"})
#: Calls of which Codex prints no event.
_UNSEEN = frozenset({"write_stdin", "view_image", "wait", "list_mcp_resources", "list_mcp_resource_templates"})
_WORDS = ("text", "thought")
_PARTS = ("cached_input_tokens", "cache_write_input_tokens", "reasoning_output_tokens")


@dataclass
class LoggedRequest:
    """A request of the log, whose tokens follow what the model made in it."""

    keys: list[Key] = field(default_factory=list)
    """What of it the events have as well."""
    unseen: list[ToolCall] = field(default_factory=list)
    """Calls of which there is no event."""
    items: int = 0
    usage: Mapping[str, int] = field(default_factory=dict)
    """Its numbers of tokens, by Codex' names."""

    @property
    def has_no_event(self) -> bool:
        """Whether it made something, and nothing that the events have."""
        return bool(self.items) and not self.keys

    def take(self, item: Event) -> None:
        """Add an item that the model made."""
        self.items += 1
        kind, name = item.get("type"), str(item.get("name") or "")
        if kind == "message":
            self.keys.append(("text", text_of(item.get("content"))))
        elif kind == "reasoning":
            self.keys += [("thought", str(part.get("text"))) for part in item.get("summary") or ()]
        elif kind == "web_search_call":
            self.keys.append(("web_search", ""))
        elif name in _UNSEEN:
            self.unseen.append(_as_call(item))
        else:
            self.keys.append(_key_of(kind, name, item))


def keys_of(texts: Iterable[str], thoughts: Iterable[str], calls: Iterable[ToolCall]) -> list[Key]:
    """Return the keys of a step that events made."""
    found: list[Key] = [("text", text) for text in texts]
    found += [("thought", text) for text in thoughts]
    for call in calls:
        name, arguments = call.function_name, call.arguments
        script = str(arguments.get("command", "")) if name == "shell" else ""
        kinds = {"shell": "command", "apply_patch": "patch", "update_plan": "plan", "web_search": "web_search"}
        found.append((kinds[name], script) if name in kinds else ("tool", name.rpartition(".")[2]))
    return found


class LoggedRequests:
    """The requests of one turn as the log grows, each with the place of the step that it is, once that is known."""

    def __init__(self) -> None:
        self._open = LoggedRequest()
        self._waiting: list[LoggedRequest] = []
        self._marks: list[tuple[Key, int]] = []
        self._later: list[Key] = []
        self._charged: set[int] = set()
        self._total: Event | None = None
        self.outputs: dict[str, str] = {}
        """What calls gave, by their ids."""

    def read(self, entries: Iterable[Event]) -> None:
        """Take the new entries of the log; those of another form are left out, because the agent can write there."""
        for entry in entries:
            with contextlib.suppress(*UNKNOWN_FORM):
                self._take(entry)

    def _take(self, entry: Event) -> None:
        payload: Any = entry.get("payload") or {}
        kind = str(payload.get("type") or "")
        if kind == "token_count":
            self._count(payload.get("info") or {})
        elif kind.endswith("_output"):
            self.outputs[str(payload.get("call_id"))] = text_of(payload.get("output"))
        elif entry.get("type") == "response_item" and (kind != "message" or payload.get("role") == "assistant"):
            self._open.take(payload)

    def _count(self, info: Event) -> None:
        """Take the tokens of the request that has just been answered."""
        # They are written again with each new word about rate limits.
        total = info.get("total_token_usage")
        if (usage := info.get("last_token_usage")) and (total is None or total != self._total):
            names = ("input_tokens", "output_tokens", *(name for name in _PARTS if usage.get(name) is not None))
            self._open.usage = {name: int(usage[name]) for name in names}
            self._waiting.append(self._open)
            self._open = LoggedRequest()
        self._total = total or self._total

    def skip(self, entries: Iterable[Event]) -> None:
        """Take entries of earlier turns, whose requests are no matter of this one."""
        self.read(entries)
        self._open, self._waiting = LoggedRequest(), []

    def mark(self, keys: Iterable[Key], place: int) -> None:
        """Note what the step at a place made, by the events."""
        for key in keys:
            if key in self._later:  # Its request was found already, by another step that it made.
                self._later.remove(key)
                self._charged.add(place)
            else:
                self._marks.append((key, place))

    def known(self) -> list[tuple[int, LoggedRequest]]:
        """Return the requests whose steps are known by now, in order, each with the place of its step."""
        found = []
        while self._waiting and (place := self._place_of(self._waiting[0])) is not None:
            request = self._waiting.pop(0)
            found.append((place, request))
            self._charged.add(place)
            for key in request.keys:
                # Each was made once: the same words in a later request are those of a later step.
                mark = next((mark for mark in self._marks if mark[0] == key), None)
                if mark is not None:
                    self._marks.remove(mark)
                    self._charged.add(mark[1])
        return found

    def before(self, keys: Sequence[Key]) -> list[LoggedRequest]:
        """Return the requests that were answered before the step with some keys, and are no step yet.

        Of these there is no event, or none but words that were printed before those of the step. There are none once a
        request may be that of the step itself.
        """
        found = []
        while self._waiting and (
            (self._waiting[0].has_no_event and self._has_begun(keys)) or self._has_words_only(self._waiting[0], keys)
        ):
            found.append(self._waiting.pop(0))
        return found

    def _has_words_only(self, request: LoggedRequest, keys: Sequence[Key]) -> bool:
        """Whether a request made words of what a step would have, and a later one made more of it."""
        shared = [key for key in request.keys if key in keys]
        later = [key for each in (*self._waiting[1:], self._open) for key in each.keys if key not in request.keys]
        return bool(shared) and all(kind in _WORDS for kind, _ in shared) and any(key in keys for key in later)

    def rest(self) -> list[LoggedRequest]:
        """Return the requests that are left, because the turn is over."""
        rest, self._waiting = self._waiting, []
        return rest

    def _has_begun(self, keys: Sequence[Key]) -> bool:
        """Whether the log has come as far as a step; kinds are enough, because texts may be written differently."""
        kinds = {kind for kind, _ in keys}
        return any(kind in kinds for request in (*self._waiting, self._open) for kind, _ in request.keys)

    def _place_of(self, request: LoggedRequest) -> int | None:
        """Return the place of a request's step: one that made the same, else the first that made such things."""
        for key in request.keys:
            if (place := next((at for each, at in self._marks if each == key), None)) is not None:
                self._later += [each for each in request.keys if not any(each == made for made, _ in self._marks)]
                return place
        if request.has_no_event:
            return None
        kinds = {kind for kind, _ in request.keys}
        free = ((kind, at) for (kind, _), at in self._marks if at not in self._charged)
        return next((at for kind, at in free if not kinds or kind in kinds), None)


def _key_of(kind: Any, name: str, item: Event) -> Key:
    given = item.get("input") or item.get("arguments") or item.get("action") or ""
    if name == "update_plan":
        return ("plan", "")
    if name == "apply_patch" or "*** Begin Patch" in str(given):
        return ("patch", "")
    if kind == "custom_tool_call":
        return ("command", "")
    if kind != "local_shell_call" and name not in _SHELLS:
        return ("tool", name.rpartition("__")[2])
    arguments = _arguments(given)
    script = arguments.get("cmd") or arguments.get("command") or ""
    if isinstance(script, list):
        is_shell = len(script) == 3 and script[1] in ("-lc", "-c")
        script = script[2] if is_shell else shlex.join(map(str, script))
    return ("command", str(script))


def _arguments(given: Any) -> dict[str, Any]:
    if isinstance(given, str):
        try:
            given = json.loads(given)
        except ValueError:
            return {}
    return given if isinstance(given, dict) else {}


def _as_call(item: Event) -> ToolCall:
    return ToolCall(
        tool_call_id=str(item.get("call_id")),
        function_name=str(item.get("name")),
        arguments=_arguments(item.get("arguments")),
    )
