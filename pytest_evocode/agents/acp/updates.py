"""What an agent that speaks ACP tells: its updates as steps of the trajectory, and the tokens that a turn has taken."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Mapping
from itertools import product
from typing import Any

from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall
from pytest_evocode.trajectories.recorder import Action, Recorder

_ENDED = ("completed", "failed")
_EXIT_CODES = ("exit_code", "exitCode", "exit")
_UNKNOWN_FORM = (LookupError, TypeError, AttributeError, ValueError, OverflowError)
_SHOWN = 300  # characters

Event = Mapping[str, Any]


class AcpReader:
    """Reads ``session/update``; a call is recorded when it has ended, because its arguments may come late."""

    def __init__(self, recorder: Recorder, terminals: Mapping[str, Any] | None = None) -> None:
        """Read for a recorder; ``terminals`` has what terminals printed and how they ended, by id."""
        self.recorder = recorder
        self.replies = 0
        """Number of the model's replies."""
        self.final = ""
        """Text of the model's last reply."""
        self.exit_codes: dict[str, int] = {}
        """Those of commands, by call."""
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._began: dict[str, float] = {}
        self.cost: float | None = None
        """What the session has cost so far in US dollars, where the agent says so."""
        self._terminals = terminals if terminals is not None else {}
        self._calls: dict[str, dict[str, Any]] = {}
        self._ended: set[str] = set()
        self._plans = 0

    def read(self, event: Event) -> None:
        """Record an update; one of unknown form is left out."""
        try:
            self._take(event)
        except _UNKNOWN_FORM as error:
            shown = json.dumps(event)[:_SHOWN]
            self.recorder.say("system", f"An event of unknown form was left out ({error!r}): {shown}")

    def _take(self, event: Event) -> None:
        kind = event["sessionUpdate"]
        if kind == "agent_message_chunk":
            self._texts.append(_text_of(event["content"]))
        elif kind == "agent_thought_chunk":
            self._thoughts.append(_text_of(event["content"]))
        elif kind in ("tool_call", "tool_call_update"):
            self._merge(event)
        elif kind == "plan":
            self._plan(event)
        elif kind == "usage_update" and (cost := event.get("cost")) and cost.get("currency") == "USD":
            amount = cost["amount"]
            # JSON as Python reads it has NaN and Infinity, and integers that no float can hold.
            if isinstance(amount, int | float) and 0 <= amount <= sys.float_info.max:
                self.cost = float(amount)

    def close(self) -> None:
        """Record what is left: calls without an end, and the last words."""
        for call in self._calls.values():
            self._record(call)
        self._calls = {}
        self._flush()

    def _flush(self, *calls: ToolCall) -> None:
        """Record a reply with what was said and thought, or without that add calls to the last one."""
        text, thoughts = "".join(self._texts), "".join(self._thoughts)
        self._texts, self._thoughts = [], []
        if text or thoughts or (calls and not self.replies):
            self.replies += 1
            self.final = text or self.final
            self.recorder.reply(text, calls, reasoning=thoughts)
        elif calls:
            self.recorder.amend(calls=calls)
        self._began |= {call.tool_call_id: time.monotonic() for call in calls}

    def _observe(self, call_id: str, content: str, exit_code: int | None = None, *, told: bool = False) -> None:
        seconds = time.monotonic() - self._began.pop(call_id, time.monotonic())
        extra = {"told": True} if told else None
        self.recorder.observe(call_id, content, Action(exit_code=exit_code, seconds=seconds), extra)

    def _merge(self, event: Event) -> None:
        number = str(event["toolCallId"])
        if event["sessionUpdate"] == "tool_call_update" and number in self._ended and number not in self._calls:
            return  # It was recorded when it had ended.
        call = self._calls.setdefault(number, {"toolCallId": number})
        call |= {name: value for name, value in event.items() if value is not None}
        if call.get("status") not in _ENDED:
            return
        self._record(self._calls.pop(number))
        self._ended.add(number)
        shown, exit_code = self._outcome(call)
        if call["status"] == "failed" and exit_code is None:
            shown = f"[failed]\n{shown}" if shown else "[failed]"
        # Only what ran in a terminal of ours is known; of its own commands an agent can say anything.
        seen = [each.get("terminalId") in self._terminals for each in call.get("content") or ()]
        self._observe(number, shown, exit_code, told=not (seen and all(seen)))
        if exit_code is not None:
            self.exit_codes[number] = exit_code

    def _record(self, call: Mapping[str, Any]) -> None:
        given = call.get("rawInput")
        arguments = dict(given) if isinstance(given, dict) else {} if given is None else {"input": given}
        if not arguments and call.get("locations"):
            arguments = {"path": call["locations"][0].get("path")}
        made = ToolCall(
            tool_call_id=call["toolCallId"],
            function_name=str(call.get("kind") or "other"),
            arguments=arguments,
            extra={"title": call["title"]} if call.get("title") else None,
        )
        self._flush(made)

    def _outcome(self, call: Mapping[str, Any]) -> tuple[str, int | None]:
        """Return what a call gave, and the exit code of its command, where it had one."""
        parts, exit_code = [], None
        for content in call.get("content") or ():
            if content.get("type") == "terminal" and (terminal := self._terminals.get(content.get("terminalId"))):
                parts.append(terminal.text())
                exit_code = terminal.exit_code
            elif content.get("type") == "diff":
                parts.append(f"[{content.get('path')} changed]")
            elif content.get("type") == "content":
                parts.append(_text_of(content.get("content")))
        raw = call.get("rawOutput")
        if isinstance(raw, dict) and exit_code is None:
            code = next((raw[name] for name in _EXIT_CODES if isinstance(raw.get(name), int)), None)
            exit_code = code if not isinstance(code, bool) else None
        if not parts and raw is not None:
            parts.append(raw if isinstance(raw, str) else json.dumps(raw, ensure_ascii=False))
        return "\n".join(parts), exit_code

    def _plan(self, event: Event) -> None:
        """Record a plan as a call of a planning tool, as other agents have one."""
        self._plans += 1
        number = f"plan-{self.replies}-{self._plans}"
        steps = [{"step": entry.get("content"), "status": entry.get("status")} for entry in event["entries"]]
        call = ToolCall(tool_call_id=number, function_name="update_plan", arguments={"plan": steps})
        self._flush(call)
        self._observe(number, "")


def _text_of(block: Mapping[str, Any]) -> str:
    return str(block.get("text", f"[{block.get('type')}]"))


def usage_told(told: Any, *, cost: float | None, requests: int) -> Usage | None:
    """Return the usage of a turn; None where nothing is told of it.

    Whether tokens of the cache are among ``inputTokens``, and those of thoughts among ``outputTokens``, differs from
    agent to agent; ``totalTokens`` tells. What is no number of tokens is unknown.

    Args:
        told: The protocol's ``usage``.
        cost: US dollars; None where unknown.
        requests: Number of requests to the model.
    """
    counts: Mapping[str, Any] = told if isinstance(told, Mapping) else {}
    if not counts and cost is None:
        return None
    prompt, completion = _tokens(counts, "inputTokens"), _tokens(counts, "outputTokens")
    read, written = _tokens(counts, "cachedReadTokens"), _tokens(counts, "cachedWriteTokens")
    thought = _tokens(counts, "thoughtTokens")
    cached, total = (read or 0) + (written or 0), _tokens(counts, "totalTokens")
    known = (prompt or 0) + (completion or 0)
    ways = product((cached, 0), (0, thought or 0))
    includes = total is not None and total < known + cached
    of_cache, of_thought = next((way for way in ways if total == known + sum(way)), (0 if includes else cached, 0))
    return Usage(
        prompt_tokens=None if prompt is None else prompt + of_cache,
        cached_tokens=read,
        completion_tokens=None if completion is None else completion + of_thought,
        cache_write_tokens=written,
        reasoning_tokens=thought,
        cost_usd=cost,
        requests=requests,
    )


def _tokens(counts: Mapping[str, Any], name: str) -> int | None:
    number = counts.get(name)
    return number if isinstance(number, int) and not isinstance(number, bool) and number >= 0 else None
