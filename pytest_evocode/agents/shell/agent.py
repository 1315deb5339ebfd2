"""The built-in shell agent: a loop in which the model names a command and sees its output, until it is done."""

from __future__ import annotations

import logging
import math
import os
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextvars import copy_context
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from pytest_evocode.agents.harness import HarnessOptions, Skill, check_files, read_file, read_skills
from pytest_evocode.agents.mcp.servers import (
    ALL_TRANSPORTS,
    check_names,
    servers_of_file,
)
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.agents.shell.bash_tool import BASH, Deadline, coerced, complaint_about, run_script
from pytest_evocode.agents.shell.conversation import Conversation, reply_as_json, reply_from_json
from pytest_evocode.agents.shell.earlier_messages import earlier_messages
from pytest_evocode.agents.shell.image_tool import VIEW_IMAGE, recorded, view_image
from pytest_evocode.agents.shell.server_tools import ServerTools, check_sdk
from pytest_evocode.agents.shell.task_skills import skills_of_task
from pytest_evocode.agents.shell.text_calls import INSTRUCTIONS, TextCalls, told
from pytest_evocode.errors import AgentFault, Cancelled, ContextOverflow, TurnStopped, UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, ModelClient, Reply, RequestedCall, ShownImage, Tool
from pytest_evocode.results.records import Usage
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.atif import AgentInfo, ToolCall
from pytest_evocode.trajectories.recorder import Action
from pytest_evocode.trajectories.task_trajectory import read_task_trajectory

logger = logging.getLogger(__name__)

_PROMPT = Path(__file__).parent / "prompt.md"
#: The harness's skills in the container.
_SKILLS = "/var/lib/evocode/skills"
#: Share of the model's window, by its own last count, from which on the conversation is shortened.
_FULL = 0.9
#: Share of the older results that is left out at once: seldom and much, because each time the provider's cache is lost.
_SHARE = 0.5
_POLL = 0.1  # seconds between checks whether the session was stopped
_GRACE = 3.0  # seconds that a reply may come after the turn's end


class ShellOptions(ModelOptions, HarnessOptions):
    """Options of the shell agent, its model's client and its harness.

    ``prompt`` replaces the system prompt, ``rules`` are appended to it.
    """

    command_timeout: float = Field(default=120.0, gt=0)
    """Seconds for a command unless the model asks for more."""
    output_limit: int = Field(default=16_000, ge=200)
    """Characters of a command's output that the model sees."""
    calls: Literal["tools", "text"] = "tools"
    """How the model calls its tool: by the API's tool calls, or, ``text``, by one fenced block in each reply."""
    view_image: bool = False
    """Whether the model may look at image files, by a tool of its own, and sees the images of MCP servers' tools."""


class ShellAgent:
    """A model with one tool, ``bash``.

    It works on the host, so that the container needs no network and no key. The conversation goes on over all rounds
    and sessions.
    """

    name = "shell"
    takes_conversations = True
    pays = True
    takes_skills = True
    mcp_transports = ALL_TRANSPORTS

    @property
    def harness(self) -> tuple[str, str]:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        return "pytest-evocode", version("pytest-evocode")

    def __init__(self, client: ModelClient, options: ShellOptions) -> None:
        self._client: ModelClient = TextCalls(client) if options.calls == "text" else client
        self._options = options
        self._conversation = Conversation()
        self._filled = 0
        """Tokens of the last request."""
        self._servers = ServerTools()
        self._images = [VIEW_IMAGE] if options.view_image else []

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        self._client.check()
        if self._options.calls == "text" and self._options.view_image:
            raise UsageError("view_image is a tool of its own, which calls=text cannot call; leave one of them out")
        if budget.limits_cost and not self._client.knows_price:
            raise UsageError(
                f"the budget limits the cost, and what {self._client.model} costs is not known; give its prices with "
                "--evocode-agent-option prices=FILE"
            )
        check_files(self._options.rules, self._options.prompt, skills=self._options.skills)
        if servers_of_file(self._options.mcp, environ):
            check_sdk()

    def check_task(self, task: Task, engine: str) -> None:
        """See :class:`~pytest_evocode.agents.protocol.SelectiveAgent`."""
        servers = [each.name for each in task.config.environment.mcp_servers]
        servers += [each.name for each in servers_of_file(self._options.mcp, os.environ)]
        if servers and self._options.calls == "text":
            raise UsageError(
                f"{task.directory / 'task.toml'}: calls=text has no way to call tools of MCP servers, and there are "
                f"{', '.join(servers)}; set calls=tools, or leave the servers out"
            )
        if task.config.environment.mcp_servers:
            check_sdk()
        check_names(task, servers_of_file(self._options.mcp, os.environ), self._options.mcp)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The harness' MCP servers, which are reached from the container; see :class:`~pytest_evocode.agents.Agent`."""
        servers = servers_of_file(self._options.mcp, os.environ)
        return tuple(dict.fromkeys(server.host for server in servers if server.host))

    def warm_up(self) -> None:
        """See :class:`~pytest_evocode.agents.protocol.PreparedAgent`."""
        self._client.prepare()

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.protocol.ClosableAgent`."""
        self._client.close()

    def save_state(self) -> Any:
        """Return the conversation; see :class:`~pytest_evocode.agents.protocol.ResumableAgent`."""
        return {"conversation": self._conversation.as_json(), "filled": self._filled}

    def load_state(self, state: Any) -> None:
        """See :meth:`save_state`."""
        self._conversation = Conversation.from_json(state["conversation"])
        self._filled = state["filled"]

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        deadline = Deadline(context.timeout, context.spending.waiting)
        earlier = list(context.journal.earlier)
        if earlier:
            logger.info("%s: %d entries of an earlier session are replayed", context.round.name, len(earlier))
        context.recorder.agent = AgentInfo(
            name=self.name, version=version("pytest-evocode"), model_name=self._client.model
        )
        servers = (*context.mcp_servers, *servers_of_file(self._options.mcp, os.environ))
        self._open(context)
        try:
            self._servers.open(context, servers)
            while (reply := self._ask(context, deadline, earlier)).calls:
                for call in reply.calls:
                    self._run(call, context, deadline, earlier)
        except TimeoutError:
            self._answer_rest("the turn's time was over")
            return RoundTranscript(timed_out=True)
        except TurnStopped as stop:
            self._answer_rest(str(stop))
            return RoundTranscript(stopped=str(stop))
        finally:
            self._servers.close()
        if reply.cut_off:
            return RoundTranscript(stopped="the model was cut off at its limit of completion tokens (max_tokens)")
        return RoundTranscript(output=reply.text)

    # A turn.

    def _open(self, context: RoundContext) -> None:
        """Add the instruction to the conversation, and before the first one the system prompt."""
        if not self._conversation.messages:
            prompt = self._system_prompt(context)
            self._conversation.add(Message("system", prompt))
            context.recorder.say("system", prompt)
        if (earlier := read_task_trajectory(context.round)) is not None:
            for message in earlier_messages(earlier):
                self._conversation.add(message)
        self._conversation.add(Message("user", context.instruction))
        context.recorder.say("user", context.instruction)

    def _system_prompt(self, context: RoundContext) -> str:
        options = self._options
        prompt = read_file(options.prompt or _PROMPT).strip()
        prompt = prompt.replace("{workdir}", context.environment.workdir)
        prompt = prompt.replace("{command_timeout}", f"{options.command_timeout:g}")
        if options.rules is not None:
            prompt += f"\n\n# {options.rules.name}\n\n{read_file(options.rules).strip()}"
        if options.calls == "text":
            prompt += f"\n\n{INSTRUCTIONS.strip()}"
        if skills := self._skills(context):
            lines = [f"- {each.name}: {each.description} ({path})" for each, path in skills]
            prompt += "\n\n# Skills\n\nRead a skill's file before you do what it is for.\n\n" + "\n".join(lines)
        return prompt

    def _skills(self, context: RoundContext) -> list[tuple[Skill, str]]:
        """Return the harness' skills, which are put into the container, and the task's, each with its file."""
        found = []
        if self._options.skills is not None:
            context.environment.upload([self._options.skills], _SKILLS, writable=True)
            of_harness = read_skills(self._options.skills)
            found = [(skill, f"{_SKILLS}/{skill.directory}/SKILL.md") for skill in of_harness]
        return [*found, *skills_of_task(context)]

    def _ask(self, context: RoundContext, deadline: Deadline, earlier: list[Any]) -> Reply:
        """Return the model's next reply, from an earlier session where that one has paid for it."""
        if paid_before := bool(earlier):
            entry = earlier.pop(0)
            for calls in entry["elided"]:
                self._note_elided(context, self._conversation.elide(_SHARE), calls)
            reply = reply_from_json(entry["reply"])
            if not any("reply" in later for later in earlier):
                # Only now: what was done in time must not time out because it is done again.
                waited = sum(each.get("seconds", 0.0) for each in context.journal.earlier)
                deadline.set_back(waited)
                context.spending.set_back(waited)
        else:
            began = time.monotonic() - context.spending.waiting.seconds
            reply, elided = self._request(context, deadline)
            seconds = round(time.monotonic() - context.spending.waiting.seconds - began, 3)
            context.journal.add({"reply": reply_as_json(reply), "elided": elided, "seconds": seconds})
        usage = reply.usage
        self._refuse_uncounted(usage, context.spending.budget)
        self._filled = (usage.prompt_tokens or 0) + (usage.completion_tokens or 0)
        self._conversation.add(reply.message)
        context.recorder.reply(
            reply.text,
            [_as_tool_call(call) for call in reply.calls],
            reasoning=reply.reasoning,
            usage=usage,
            extra={"request_id": reply.request_id} if reply.request_id else None,
            paid_before=paid_before,
        )
        return reply

    def _refuse_uncounted(self, usage: Usage, budget: Budget) -> None:
        """Raise AgentFault where the budget limits tokens or costs and the reply does not count its tokens."""
        if usage.tokens is None and (budget.limits_tokens or budget.limits_cost):
            raise AgentFault(
                f"{self._client.model}: the reply does not report its tokens, which the budget limits; "
                "have the server report its usage, or limit turns and minutes only"
            )

    def _request(self, context: RoundContext, deadline: Deadline) -> tuple[Reply, list[list[str]]]:
        """Ask the model, and return its reply with the calls whose results had to be left out for it."""
        elided: list[list[str]] = []
        window = self._client.context_tokens
        if window is not None and self._filled > _FULL * window:
            self._shorten(context, elided)
        while True:
            if spent := context.spending.exhausted:
                raise TurnStopped(spent)
            if deadline.over:
                raise TimeoutError
            asked = partial(
                self._client.complete, tuple(self._conversation), [BASH, *self._others], timeout=deadline.left
            )
            try:
                return _wait_for_reply(context.cancelled, asked, deadline), elided
            except ContextOverflow as error:
                if not self._shorten(context, elided):
                    raise TurnStopped(f"context: the conversation is longer than the model takes ({error})") from None

    def _shorten(self, context: RoundContext, elided: list[list[str]]) -> bool:
        calls = self._conversation.elide(_SHARE)
        if calls:
            logger.info("%s: the results of %d calls are left out", context.round.name, len(calls))
            elided.append(calls)
            self._note_elided(context, calls, calls)
        return bool(calls)

    def _note_elided(self, context: RoundContext, calls: list[str], before: list[str]) -> None:
        what = f"The outputs of {len(calls)} earlier commands were left out of the conversation to make room."
        context.recorder.say("system", what, {"elided": calls or before})

    def _run(self, call: RequestedCall, context: RoundContext, deadline: Deadline, earlier: list[Any]) -> None:
        """Run a tool call and record its result; raises TimeoutError when the turn's time is over."""
        options, arguments = self._options, coerced(call.arguments or {})
        sees = bool(self._images)
        is_image, is_servers = sees and call.name == VIEW_IMAGE.name, self._servers.has(call.name)
        complaint = "" if is_image or is_servers else complaint_about(call, self._others)
        extra: Mapping[str, Any] | None = None
        if call.wrong:
            complaint, extra = told(call.wrong), {"format_error": call.wrong}
        images: tuple[ShownImage, ...] = ()
        if complaint:
            shown, action = complaint, Action()
        elif deadline.over:
            raise TimeoutError
        elif is_image:
            shown, images = view_image(call, context)
            action = Action()
        elif is_servers:
            seconds, limit = options.command_timeout, options.output_limit
            done = self._servers.run(call, context, deadline, seconds=seconds, limit=limit, sees=sees)
            shown, action, extra, images = done.shown, done.action, done.extra, done.images
        else:
            seconds = arguments.get("timeout", options.command_timeout)
            shown, action = run_script(
                arguments["command"], context, deadline, seconds=seconds, limit=options.output_limit
            )
        if earlier and "result" in earlier[0]:
            # The rest of the conversation answers what the model saw in the earlier session.
            entry = earlier.pop(0)
            shown, images = entry["result"], tuple(ShownImage(*image) for image in entry.get("images", ()))
        else:
            seen = {"images": [[image.media_type, image.data] for image in images]} if images else {}
            context.journal.add({"result": shown} | seen)
        self._conversation.add(Message("tool", shown, call_id=call.id, images=images))
        context.recorder.observe(call.id, recorded(shown, images, context), action, extra)
        if deadline.over:
            raise TimeoutError

    @property
    def _others(self) -> list[Tool]:
        """The tools beside bash."""
        return [*self._images, *self._servers.offered]

    def _answer_rest(self, why: str) -> None:
        """Answer the calls that are not run, because providers refuse conversations with open calls."""
        for call in self._conversation.unanswered:
            self._conversation.add(Message("tool", f"[not run: {why}]", call_id=call.id))


def _as_tool_call(call: RequestedCall) -> ToolCall:
    arguments = call.arguments if call.arguments is not None else {"written": call.written}
    return ToolCall(tool_call_id=call.id, function_name=call.name, arguments=arguments)


def _wait_for_reply(cancelled: threading.Event, ask: Callable[[], Reply], deadline: Deadline) -> Reply:
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

    # In a copy of this context, by which clients know the turn that their waits are of.
    threading.Thread(target=copy_context().run, args=(ask_model,), name="model", daemon=True).start()
    while not cancelled.is_set():
        if wait([answer], timeout=_POLL).done:
            return answer.result()
        over_since = min(over_since, time.monotonic()) if deadline.over else math.inf
        if time.monotonic() > over_since + _GRACE:
            raise TimeoutError
    raise Cancelled("the session was stopped")
