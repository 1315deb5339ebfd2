"""Asks the model during one turn: its replies are journaled and recorded, and the conversation is kept short enough."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from contextvars import copy_context
from dataclasses import replace
from functools import partial
from typing import Any

from pytest_evocode.agents.protocol import RoundContext
from pytest_evocode.agents.shell.conversation import (
    ROOM,
    STEPS,
    SUMMARISER,
    Compaction,
    CompactionStep,
    Conversation,
    forget,
    put_compacted,
    put_in_words,
    put_summary,
    reply_as_json,
    reply_from_json,
    shorten,
    size,
    to_compact,
    to_summarise,
)
from pytest_evocode.agents.turn_time import Deadline, wait_for
from pytest_evocode.agents.words import COMPACTIONS, CONVERSATION
from pytest_evocode.errors import AgentFault, ContextOverflow, ConversationRefused, TurnStopped
from pytest_evocode.llm.budget import Budget
from pytest_evocode.llm.protocol import Message, ModelClient, Reply, RequestedCall, ShownImage, Tool
from pytest_evocode.results.records import Usage
from pytest_evocode.trajectories.atif import ToolCall

logger = logging.getLogger(__name__)

_GRACE = 3.0  # seconds that a reply may come after the turn's end


class ModelTurn:
    """The requests to the model in one turn.

    What an earlier session has paid for in the turn is taken from its journal, in the same order.
    """

    def __init__(
        self,
        client: ModelClient,
        conversation: Conversation,
        context: RoundContext,
        deadline: Deadline,
        *,
        tools: Callable[[], Sequence[Tool]],
        compact_at: float,
        compaction: Compaction = "agent",
    ) -> None:
        """Begin a turn; from the share ``compact_at`` of the model's window on, the conversation is shortened."""
        self._client, self._conversation, self._context = client, conversation, context
        self._deadline, self._tools = deadline, tools
        self._compact_at, self._compaction = compact_at, compaction
        self._earlier = list(context.journal.earlier)
        self.has_asked = bool(self._earlier)
        """Whether the model was asked for anything in the turn, by an earlier session or this one."""
        self._is_full = False
        """Whether the last reply ended because the window was full."""
        self._steps: list[CompactionStep] = []
        """What can still be tried to make room for the next request."""
        if self._earlier:
            logger.info("%s: %d entries of an earlier session are replayed", context.round.name, len(self._earlier))

    def begin(self) -> None:
        """Begin with a short conversation where the last turn ended because it was too long."""
        if self._conversation.overflowed and self._compact_at:
            self._conversation.overflowed = False
            self._context.recorder.say("system", forget(self._conversation), {"compaction": "all"})

    def ask(self) -> Reply:
        """Return the model's next reply.

        Raises:
            TurnStopped: A limit is reached, or the conversation is too long and cannot be made shorter.
            TimeoutError: The turn's time is over.
        """
        while self._earlier and not (entry := self._earlier[0]).keys().isdisjoint(("shorten", "lost", "in_words")):
            if "shorten" in entry:
                self._make_room_as_before()
            elif "lost" in self._earlier.pop(0):
                self._pay_for_lost(Usage.model_validate(entry["lost"]), paid_before=True)
            else:
                self._put_in_words()
        entry = self._earlier.pop(0) if self._earlier else None
        if entry is not None:
            reply, seconds, retries = reply_from_json(entry["reply"]), entry["seconds"], entry.get("retries", 0)
            self._count_waits_of_before()
        else:
            began, retries = self._now, self._retries
            reply = self._request()
            seconds, retries = round(self._now - began, 3), self._retries - retries
            self._context.journal.add({"reply": reply_as_json(reply), "seconds": seconds, "retries": retries})
        self._refuse_uncounted(reply.usage, self._context.spending.budget)
        usage = reply.usage
        self._conversation.filled = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        self._is_full = reply.ending == "context"
        self._conversation.add(reply.message)
        self._context.recorder.reply(
            reply.text,
            [_as_tool_call(call) for call in reply.calls],
            reasoning=reply.reasoning,
            usage=usage,
            model=reply.model,
            extra=_facts_of(reply) | {"seconds": seconds} | ({"retries": retries} if retries else {}),
            tokens=reply.tokens.metrics,
            paid_before=entry is not None,
        )
        return reply

    def result(self, shown: str, images: tuple[ShownImage, ...]) -> tuple[str, tuple[ShownImage, ...]]:
        """Return the result of a call as the model saw it in an earlier session, else as it is now."""
        # The rest of the conversation answers what the model saw then.
        if self._earlier and "result" in self._earlier[0]:
            entry = self._earlier.pop(0)
            return str(entry["result"]), tuple(ShownImage(*image) for image in entry.get("images", ()))
        seen = {"images": [[image.media_type, image.data] for image in images]} if images else {}
        self._context.journal.add({"result": shown} | seen)
        return shown, images

    @property
    def _now(self) -> float:
        """Seconds on a clock that stands while the provider is waited for."""
        return time.monotonic() - self._context.spending.waiting.seconds

    @property
    def _retries(self) -> int:
        waits = self._context.spending.waiting.waits
        return waits.retries if waits is not None else 0

    def _count_waits_of_before(self) -> None:
        """Count what an earlier session has waited for the model, once the last of it is replayed."""
        if any("seconds" in later for later in self._earlier):
            return  # Only then: what was done in time must not time out because it is done again.
        waited = sum(each.get("seconds", 0.0) for each in self._context.journal.earlier)
        self._deadline.set_back(waited)
        self._context.spending.set_back(waited)

    def _refuse_uncounted(self, usage: Usage, budget: Budget) -> None:
        """Raise AgentFault where the budget limits tokens or costs and the reply does not count its tokens."""
        if usage.tokens is None and (budget.limits_tokens or budget.limits_cost):
            raise AgentFault(
                f"{self._client.model}: the reply does not report its tokens, which the budget limits; "
                "have the server report its usage, or limit turns and minutes only"
            )

    def _request(self) -> Reply:
        first = 0 if self._compaction == "provider" else 1
        self._steps = list(STEPS[first:]) if self._compact_at else []
        window = self._client.context_tokens
        if self._is_full:
            self._make_room(max(self._conversation.filled, window or 0))
        elif window is not None and self._conversation.filled > self._compact_at * window:
            self._make_room(self._conversation.filled)
        was_refused = False
        while True:
            try:
                return self._wait_for(partial(self._client.complete, tuple(self._conversation), self._tools()))
            except ContextOverflow as error:
                known = max(self._conversation.filled, window or 0)
                if not self._make_room(known):
                    self._conversation.overflowed = True
                    raise TurnStopped(f"context: the conversation is longer than the model takes ({error})") from None
            except ConversationRefused:
                if was_refused or not self._put_in_words():
                    raise
                was_refused = True
                self._context.journal.add({"in_words": True})

    def _put_in_words(self) -> bool:
        """Put the last reply into words, which the provider may have refused to see again; whether there is one."""
        done = put_in_words(self._conversation)
        if done:
            self._context.recorder.say("system", CONVERSATION["was put in words"], {"in_words": "last reply"})
        return done

    def _wait_for(self, ask: Callable[..., Reply]) -> Reply:
        if spent := self._context.spending.exhausted:
            raise TurnStopped(spent)
        if self._deadline.over:
            raise TimeoutError
        self.has_asked = True
        try:
            return wait_for_reply(self._context.cancelled, partial(ask, timeout=self._deadline.left), self._deadline)
        finally:
            # Clients of other packages need not know.
            if (lost := getattr(self._client, "take_lost", lambda: None)()) is not None:
                self._context.journal.add({"lost": lost.model_dump()})
                self._pay_for_lost(lost, paid_before=False)

    def _pay_for_lost(self, lost: Usage, *, paid_before: bool) -> None:
        """Record what replies have used that broke off, as far as it is known."""
        self._context.recorder.pay(
            CONVERSATION["broken off"], lost, {"broken_off": lost.requests}, paid_before=paid_before
        )

    # Making room.

    def _make_room(self, filled: int) -> bool:
        """Shorten the conversation step by step until there is room, and return whether anything was left out.

        ``filled`` are the tokens that it takes now, as far as that is known.
        """
        before = size(self._conversation)
        window = self._client.context_tokens or filled
        done = False
        while self._steps:
            step = self._steps.pop(0)
            if not self._shorten(step):
                continue
            done = True
            if filled * size(self._conversation) <= ROOM * window * before:
                break
        self._conversation.filled = int(filled * size(self._conversation) / max(1, before))
        return done

    def _shorten(self, step: CompactionStep) -> bool:
        if step in ("summary", "provider"):
            return self._have_shortened(step)
        changed = shorten(self._conversation, step)
        if changed:
            self._context.journal.add({"shorten": step})
            self._note(step, changed)
        return bool(changed)

    def _make_room_as_before(self) -> None:
        """Shorten the conversation as an earlier session did, and know how long it is then, as that one did."""
        before, filled = size(self._conversation), self._conversation.filled
        window = self._client.context_tokens
        if window is not None and filled <= self._compact_at * window:
            filled = max(filled, window)  # It was the provider who found it too long.
        while self._earlier and "shorten" in self._earlier[0]:
            self._shorten_as_before(self._earlier.pop(0))
        self._conversation.filled = int(filled * size(self._conversation) / max(1, before))

    def _shorten_as_before(self, entry: Mapping[str, Any]) -> None:
        step: CompactionStep = entry["shorten"]
        if step in ("summary", "provider"):
            reply = reply_from_json(entry["reply"])
            self._count_waits_of_before()
            self._take_shorter(step, reply, paid_before=True)
        else:
            self._note(step, shorten(self._conversation, step))

    def _have_shortened(self, step: CompactionStep) -> bool:
        """Have the model summarise, or the provider compact, all but the last replies; return whether it did."""
        began = self._now
        reply = self._summarise() if step == "summary" else self._have_compacted()
        if reply is None:
            return False
        seconds = round(self._now - began, 3)
        self._context.journal.add({"shorten": step, "reply": reply_as_json(reply), "seconds": seconds})
        return self._take_shorter(step, reply, paid_before=False)

    def _summarise(self) -> Reply | None:
        text = to_summarise(self._conversation, self._client.context_tokens)
        while text:
            try:
                asked = (Message("system", SUMMARISER), Message("user", text))
                return self._wait_for(partial(self._client.complete, asked, ()))
            except ContextOverflow:
                text = text[: len(text) // 2] if len(text) > 1000 else ""
        return None

    def _have_compacted(self) -> Reply | None:
        messages = to_compact(self._conversation)
        if not messages:
            return None
        # Only clients that have it pass the agent's check.
        compact = getattr(self._client, "compact")  # noqa: B009
        with contextlib.suppress(ContextOverflow):
            return self._wait_for(partial(compact, messages, self._tools()))
        return None

    def _take_shorter(self, step: CompactionStep, reply: Reply, *, paid_before: bool) -> bool:
        """Record what is to stand for the earlier conversation, and put it there; return whether there is such."""
        self._refuse_uncounted(reply.usage, self._context.spending.budget)
        told = COMPACTIONS[step]
        made: dict[str, Any] = {"summary": reply.text}
        if step == "summary":
            done = bool(reply.text.strip()) and not reply.refused
        else:
            done = reply.native is not None and not reply.refused
            replaced = [message for message in to_compact(self._conversation) if message.role != "system"]
            told = told.format(len(replaced)) if done else CONVERSATION["not compacted"]
            if not reply.text:  # What is encrypted cannot be recorded; that it is there, can.
                made = {"encrypted": len(json.dumps(reply.native))} if done else {}
        extra = {"compaction": step, **made, **_facts_of(reply)}
        self._context.recorder.pay(told, reply.usage, extra, paid_before=paid_before)
        if done and step == "summary":
            put_summary(self._conversation, reply.text.strip())
        elif done:
            put_compacted(self._conversation, replace(reply.message, is_compacted=True))
        return done

    def _note(self, step: CompactionStep, changed: list[str]) -> None:
        told = COMPACTIONS[step].format(len(changed))
        logger.info("%s: %s", self._context.round.name, told)
        extra = {"elided": changed} if "outputs" in step else {"compaction": step, "shortened": changed}
        self._context.recorder.say("system", told, extra)


def _facts_of(reply: Reply) -> dict[str, Any]:
    """Return what the trajectory has of a reply beside its contents; nothing for what the provider does not say."""
    facts = {"request_id": reply.request_id, "stop_reason": reply.stop_reason, "ending": reply.ending}
    return {name: value for name, value in facts.items() if value} | reply.remarks


def _as_tool_call(call: RequestedCall) -> ToolCall:
    arguments = call.arguments if call.arguments is not None else {"written": call.written}
    return ToolCall(tool_call_id=call.id, function_name=call.name, arguments=arguments)


def wait_for_reply(cancelled: threading.Event, ask: Callable[[], Reply], deadline: Deadline) -> Reply:
    """Ask the model in a thread, and wait for its reply only while the session lasts.

    Raises:
        Cancelled: The session was stopped.
        TimeoutError: ``ask`` has not kept to the deadline, as with a server that falls silent in mid-answer.
    """
    over_since = math.inf
    answer: Future[Reply] = Future()

    def ask_model() -> None:
        try:
            answer.set_result(ask())
        except BaseException as error:
            answer.set_exception(error)

    def is_late() -> bool:
        nonlocal over_since
        over_since = min(over_since, time.monotonic()) if deadline.over else math.inf
        return time.monotonic() > over_since + _GRACE

    # In a copy of this context, by which clients know the turn that their waits are of.
    threading.Thread(target=copy_context().run, args=(ask_model,), name="model", daemon=True).start()
    if not wait_for(answer, cancelled, is_late):
        raise TimeoutError
    return answer.result()
