"""Tells from what a program asks its model what it does: its conversations, with their replies, calls and results."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.gateway import Exchange
from pytest_evocode.gateway.replies import RequestFacts, ToolResult, call_marks, reply_of, request_facts, tokens_in
from pytest_evocode.llm.protocol import Reply
from pytest_evocode.llm.usage import Api
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall, tools_together
from pytest_evocode.trajectories.recorder import Action, Recorder

#: In which arguments commands are given to shells.
_COMMANDS = frozenset({"command", "cmd"})
_EXIT_CODE = re.compile(
    r'^(?:Error: |Process )?exit(?:ed with)? code:? (\d+)|"exit_code": ?(\d+)', re.MULTILINE | re.IGNORECASE
)
_TIMED_OUT = re.compile(r"^command timed out\b", re.MULTILINE | re.IGNORECASE)
#: Characters at both ends of a result in which programs say how a command ended.
_ENDS = 400


@dataclass(eq=False, slots=True)
class _Call:
    """A call whose result is not known yet."""

    call: ToolCall
    began: float


@dataclass(eq=False, slots=True)
class _Conversation:
    """Requests each of which goes on where the last reply to one of them ended."""

    helper_of: str = ""
    """The call that began it; empty for the turn's own."""
    has_tools: bool = False
    marks: set[str] = field(default_factory=set)
    """What tells the calls of its replies, see :func:`~pytest_evocode.gateway.replies.call_marks`."""
    open: dict[str, _Call] = field(default_factory=dict)
    last_reply: int | None = None
    """Its place, for :meth:`~pytest_evocode.trajectories.recorder.Recorder.amend`."""


class ExchangeReader:
    """Records what a program has asked and was answered in one turn as steps of its trajectory.

    A request goes on with the conversation whose calls it has. One that has none of any begins a helper's, where a call
    has its opening words or is still open; else the turn's own goes on with it, as after a summary. What is asked
    without tools beside a conversation that has some is no part of it: a title, a summary, a check.

    Args:
        recorder: The turn's.
        tells_failures: Whether the program tells its model of a command's exit code just where that is not 0.
    """

    def __init__(self, recorder: Recorder, *, tells_failures: bool = False) -> None:
        self._recorder = recorder
        self._tells_failures = tells_failures
        self.replies = 0
        """Number of the replies in all conversations."""
        self.final = ""
        """The last words in the turn's own conversation."""
        self.refused = ""
        """The provider's word for why the last reply there is a refusal; empty where it is none."""
        self.cut_off = False
        """Whether the last reply there ended at its limit of tokens, before it called anything."""
        self._conversations: list[_Conversation] = []
        self._asked: dict[int, tuple[_Conversation, RequestFacts]] = {}
        """The requests without an answer as yet, by number."""
        self._calls: list[ToolCall] = []
        self._held: list[Exchange] = []
        """First exchanges without tools: what is asked next tells whether they are the conversation's."""

    def begin(self, number: int, api: Api, asked: Any) -> None:
        """Record the results in a request that has come."""
        request = request_facts(api, asked)
        conversation = self._continued_by(request)
        self._asked[number] = conversation, request
        conversation.has_tools |= request.has_tools
        if conversation.has_tools or request.has_replies:
            self._release()
        for open_, result in list(_results_for(conversation, request)):
            call_id = open_.call.tool_call_id
            del conversation.open[call_id]
            action = self._action(open_, result)
            # What a program asks next can say anything of its commands.
            self._recorder.observe(call_id, result.text, action, {"told": True})

    def take(self, exchange: Exchange) -> None:
        """Record a reply."""
        if exchange.api is None:
            return
        if exchange.number not in self._asked:
            self.begin(exchange.number, exchange.api, exchange.asked())
        conversation, _ = self._asked[exchange.number]
        if not self.replies and not conversation.has_tools:
            self._held.append(exchange)
        else:
            self._record(exchange)

    def settle(self) -> None:
        """Record what is left, and which results nobody has asked about; nothing is asked any more."""
        self._release()
        for conversation in self._conversations:
            if conversation.open:
                unknown = {"results": f"not known, because nothing was asked after: {', '.join(conversation.open)}"}
                self._recorder.amend(notes=unknown, at=conversation.last_reply)

    def _continued_by(self, request: RequestFacts) -> _Conversation:
        for conversation in reversed(self._conversations):
            if not request.calls.isdisjoint(conversation.marks):
                return conversation
        # A program may write the arguments of a call that has no id in another way.
        names = {result.name for result in request.results} - {""}
        for conversation in reversed(self._conversations):
            if any(each.call.function_name in names for each in conversation.open.values()):
                return conversation
        own = self._conversations[0] if self._conversations else None
        helper_of = self._beginner_of(request) if own is not None and request.has_tools else ""
        if own is None or helper_of:
            own = _Conversation(helper_of)
            self._conversations.append(own)
        return own

    def _beginner_of(self, request: RequestFacts) -> str:
        """Return the call that a request of no known conversation was begun by; empty where there is none."""
        for call in reversed(self._calls):
            if any(isinstance(value, str) and value.strip() in request.opening for value in call.arguments.values()):
                return call.tool_call_id
        return next((call_id for each in reversed(self._conversations) for call_id in reversed(each.open)), "")

    def _release(self) -> None:
        held, self._held = self._held, []
        for exchange in held:
            self._record(exchange)

    def _record(self, exchange: Exchange) -> None:
        conversation, request = self._asked.pop(exchange.number)
        reply = reply_of(exchange) if exchange.complete else None
        facts = {"request_id": exchange.request_id, "helper_of": conversation.helper_of}
        if reply is None:
            if exchange.usage is not None:
                self._recorder.amend(usage=exchange.usage, at=conversation.last_reply)
        elif conversation.has_tools and not request.has_tools:
            facts = {"beside": "the conversation", "model": exchange.model, **facts}
            self._recorder.pay(reply.text, exchange.usage or Usage(), _given(facts))
        else:
            facts |= {"stop_reason": reply.stop_reason, "ending": reply.ending}
            if not conversation.helper_of:
                agent = self._recorder.agent
                tools = tools_together(agent.tool_definitions, request.tools)
                self._recorder.agent = agent.model_copy(update={"tool_definitions": tools or None})
            self._reply(exchange, reply, conversation, facts)

    def _reply(self, exchange: Exchange, reply: Reply, conversation: _Conversation, facts: dict[str, str]) -> None:
        calls = [
            ToolCall(tool_call_id=call.id, function_name=call.name, arguments=call.arguments or {})
            for call in reply.calls
        ]
        self._recorder.reply(
            reply.text,
            calls,
            reasoning=reply.reasoning,
            usage=exchange.usage,
            model=exchange.model,
            extra=_given(facts),
            tokens=tokens_in(exchange).metrics,
        )
        self.replies += 1
        self._calls += calls
        conversation.last_reply = self._recorder.last_reply
        for call in calls:
            conversation.open[call.tool_call_id] = _Call(call, time.monotonic())
            conversation.marks |= call_marks(call.tool_call_id, call.function_name, call.arguments)
        if not conversation.helper_of:
            agent = self._recorder.agent
            self._recorder.agent = agent.model_copy(update={"model_name": agent.model_name or exchange.model or None})
            self.final = reply.text or self.final
            self.refused = (reply.stop_reason or reply.ending) if reply.refused else ""
            self.cut_off = reply.cut_off and not calls

    def _action(self, open_: _Call, result: ToolResult) -> Action:
        """Return how a call ended, as far as its result tells."""
        code, ends = None, f"{result.text[:_ENDS]}\n{result.text[-_ENDS:]}"
        if not _COMMANDS.isdisjoint(open_.call.arguments):
            found = None if self._tells_failures and result.failed is False else _EXIT_CODE.search(ends)
            if found is not None:
                code = int(found[1] or found[2])
            elif self._tells_failures and not result.failed and "background" not in result.text.partition("\n")[0]:
                code = 0
        timed_out = bool(code and _TIMED_OUT.search(ends))
        return Action(exit_code=code, seconds=time.monotonic() - open_.began, timed_out=timed_out)


def _results_for(conversation: _Conversation, request: RequestFacts) -> Iterator[tuple[_Call, ToolResult]]:
    """Yield the open calls of a conversation that a request has the results of."""
    by_id = {result.call_id: result for result in request.results}
    # Gemini's have the ids that their program made up.
    loose = [result for result in request.results if result.name and result.call_id not in conversation.open]
    for call_id, open_ in conversation.open.items():
        result = by_id.get(call_id)
        if result is None:
            result = next((each for each in loose if each.name == open_.call.function_name), None)
            if result is None:
                continue
            loose.remove(result)
        yield open_, result


def _given(facts: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in facts.items() if value}
