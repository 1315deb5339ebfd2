"""The built-in shell agent: a loop in which the model names a command and sees its output, until it is done."""

from __future__ import annotations

import logging
import os
import posixpath
import re
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import Field

from pytest_evocode.agents.harness import (
    CUT_REPLIES,
    HarnessOptions,
    Skill,
    check_files,
    read_file,
    read_skills,
    skill_head,
)
from pytest_evocode.agents.mcp.servers import ALL_TRANSPORTS, check_names, hosts_of, servers_of_file
from pytest_evocode.agents.protocol import RoundContext, RoundTranscript
from pytest_evocode.agents.shell.conversation import Compaction, Conversation, earlier_messages
from pytest_evocode.agents.shell.model_turn import ModelTurn
from pytest_evocode.agents.shell.terminal import TERMINAL, complaint_about_terminal, terminal_script
from pytest_evocode.agents.shell.text_calls import TextCalls, told
from pytest_evocode.agents.shell.tools import (
    BASH,
    VIEW_IMAGE,
    ServerTools,
    check_sdk,
    coerced,
    complaint_about,
    recorded,
    run_script,
    view_image,
)
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.agents.words import NUDGES
from pytest_evocode.environments import read_environment_file
from pytest_evocode.errors import TaskError, TurnStopped, UnreadableFile, UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.llm.model_options import ModelOptions
from pytest_evocode.llm.protocol import Message, ModelClient, Reply, RequestedCall, ShownImage, Tool
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.atif import AgentInfo, read_task_trajectory
from pytest_evocode.trajectories.recorder import Action

_SCRIPT = re.compile(r"^[ \t]*(```|~~~)[ \t]*(bash|sh|shell|console|zsh)\b", re.MULTILINE | re.IGNORECASE)
#: How often a turn's empty replies are asked for again, one after the other.
_EMPTY_REPLIES = 2


class Nudges:
    """The nudges of one turn; they follow from the replies alone, so a turn that is replayed has the same."""

    def __init__(self) -> None:
        self._empty = self._cut = 0
        self._has_called = False

    def after(self, reply: Reply) -> str:
        """Return why the turn goes on after a reply, of which :data:`NUDGES` has the words; empty where it does not."""
        if reply.calls:
            self._has_called, self._empty, self._cut = True, 0, 0
            return ""
        if reply.cut_off or reply.ending == "context":
            self._cut += 1
            why = "cut off" if reply.cut_off else "window full"
            return why if self._cut <= CUT_REPLIES else ""
        self._cut = 0
        is_empty = not reply.text.strip()
        if (is_empty or reply.ending == "paused") and self._empty < _EMPTY_REPLIES:
            self._empty += 1
            return "empty reply"
        # One that has called the tool knows how, and may show a script to the user.
        if not self._has_called and _SCRIPT.search(reply.text):
            self._has_called = True
            return "script without a call"
        return ""


_LIST = 'cd -- "$1" && for file in */SKILL.md; do [ ! -f "$file" ] || printf "%s\\0" "$file"; done'
_LISTING = 60.0  # seconds
_LONGEST = 2**20  # bytes of a SKILL.md


def skills_of_task(context: RoundContext) -> list[tuple[Skill, str]]:
    """Return the task's skills in order of name, each with the path of its file.

    Raises:
        TaskError: There is no such directory, or a skill is no readable file.
    """
    said = context.task.config.environment.skills_dir
    if said is None:
        return []
    directory = posixpath.join(context.environment.workdir, said)
    listing = ["bash", "-c", _LIST, "bash", directory]
    listed = context.environment.exec(listing, user=context.round.agent_user, timeout=_LISTING)
    if not listed.ok:
        why = f"skills_dir = {said!r} cannot be listed in the container: {listed.tail(3)}"
        raise TaskError(f"{why}; correct it, or the image", context.task.file)
    found = []
    for name in sorted(filter(None, listed.output.split("\0"))):
        path = posixpath.join(directory, name)
        try:
            text = (read_environment_file(context.environment, path, _LONGEST) or b"").decode("utf-8", "replace")
        except UnreadableFile as error:
            raise TaskError(f"the skill {path} cannot be read: {error}", context.task.file) from None
        head = skill_head(text)
        directory_name = posixpath.dirname(name)
        skill = Skill(head.get("name", directory_name), head.get("description", ""), directory_name)
        found.append((skill, path))
    return found


logger = logging.getLogger(__name__)

_PROMPTS = {
    style: Path(__file__).parent / f"{name}.md" for style, name in (("full", "prompt"), ("bare", "prompt_bare"))
}
#: What ends the system prompt of a model that has no tool calls.
_TEXT_CALLS = Path(__file__).with_name("prompt_text_calls.md")
#: The harness's skills in the container.
_SKILLS = "/var/lib/evocode/skills"
_SHORTEST_OUTPUT = 200  # characters
#: Characters of an output that are shown for each token of the model's window.
_OUTPUT_SHARE = 0.4


class ShellOptions(ModelOptions, HarnessOptions):
    """Options of the shell agent, its model's client and its harness.

    ``prompt`` replaces the system prompt, ``rules`` are appended to it.
    """

    command_timeout: float = Field(default=120.0, gt=0)
    """Seconds for a command unless the model asks for more."""
    output_limit: int = Field(default=16_000, ge=200)
    """Characters of a command's output that the model sees; fewer where its window is short."""
    compact_at: float = Field(default=0.8, ge=0, le=1)
    """Share of the model's window from which on the conversation is shortened; 0 never shortens it."""
    compaction: Compaction = "agent"
    """Who shortens it: the agent, whatever the API, or first the provider, by an API of its own."""
    calls: Literal["tools", "text"] = "tools"
    """How the model calls its tool: by the API's tool calls, or, ``text``, by one fenced block in each reply."""
    terminal: bool = False
    """Whether the model has a terminal that stays open, for interactive programs, by a tool of its own; the environment
    needs ``tmux``."""
    prompt_style: Literal["full", "bare"] | None = None
    """The system prompt where there is no file ``prompt``: ``full``, the default, which says how to work as well, or
    ``bare``, which says no more than how the tool is called. ``agent.extra`` of each trajectory names it."""
    view_image: bool = False
    """Whether the model may look at PNG, JPEG, GIF and WebP files of up to 3.75 MB, by a tool of its own, and sees the
    images of MCP servers' tools; the trajectory has them in ``images/`` beside it."""


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

    @property
    def answered_by(self) -> dict[str, Any] | None:
        """See :class:`~pytest_evocode.agents.protocol.Agent`; None of a client of another package that does not say."""
        return getattr(self._client, "answered_by", None)

    def __init__(self, client: ModelClient, options: ShellOptions) -> None:
        self._client = cast("ModelClient", TextCalls(client)) if options.calls == "text" else client
        self._options = options
        self._conversation = Conversation()
        self._servers = ServerTools()
        self._images = [VIEW_IMAGE] if options.view_image else []
        self._terminals = [TERMINAL] if options.terminal else []

    def check(self, environ: Mapping[str, str], budget: Budget) -> None:
        """See :class:`~pytest_evocode.agents.protocol.CheckedAgent`."""
        self._client.check()
        if self._options.calls == "text" and self._options.view_image:
            raise UsageError("view_image is a tool of its own, which calls=text cannot call; leave one of them out")
        if self._options.calls == "text" and self._options.terminal:
            raise UsageError("terminal is a tool of its own, which calls=text cannot call; leave one of them out")
        if self._options.prompt is not None and self._options.prompt_style is not None:
            raise UsageError("prompt replaces the system prompt that prompt_style names; leave one of them out")
        self.check_price(budget)
        check_files(self._options.rules, self._options.prompt, skills=self._options.skills)
        if servers_of_file(self._options.mcp, environ):
            check_sdk()
        # Last, because they take a request. Clients of other packages need not have them.
        getattr(self._client, "probe", lambda: None)()
        if self._options.compaction == "provider":
            self._check_compaction()

    def check_price(self, budget: Budget) -> None:
        """Raise UsageError where a budget limits the cost and nobody knows the model's price."""
        if budget.limits_cost and not self._client.knows_price:
            raise UsageError(
                f"the budget limits the cost, and what {self._client.model} costs is not known; give its prices with "
                "--evocode-agent-option prices=FILE"
            )

    def _check_compaction(self) -> None:
        """Raise UsageError where the provider cannot shorten a conversation."""
        if not self._options.compact_at:
            raise UsageError("compact_at=0 shortens nothing, whatever compaction says; leave one of them out")
        try:
            if (check := getattr(self._client, "check_compaction", None)) is None:
                raise UsageError("its client has no compaction")
            check()
        except UsageError as error:
            raise UsageError(
                f"{self._client.model}: compaction=provider is not possible: {error}; set compaction=agent"
            ) from None

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
        return hosts_of(servers_of_file(self._options.mcp, os.environ))

    def warm_up(self) -> None:
        """See :class:`~pytest_evocode.agents.protocol.PreparedAgent`."""
        self._client.prepare()

    def close(self) -> None:
        """See :class:`~pytest_evocode.agents.protocol.ClosableAgent`."""
        self._client.close()

    def save_state(self) -> Any:
        """Return the conversation; see :class:`~pytest_evocode.agents.protocol.ResumableAgent`."""
        conversation = self._conversation
        return {
            "conversation": conversation.as_json(),
            "filled": conversation.filled,
            "overflowed": conversation.overflowed,
        }

    def load_state(self, state: Any) -> None:
        """See :meth:`save_state`."""
        self._conversation = Conversation.from_json(state["conversation"])
        self._conversation.filled = state["filled"]
        self._conversation.overflowed = state.get("overflowed", False)

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """See :class:`~pytest_evocode.agents.protocol.Agent`."""
        deadline = Deadline(context.timeout, context.spending.waiting)
        context.recorder.agent = AgentInfo(
            name=self.name,
            version=version("pytest-evocode"),
            model_name=self._client.model,
            extra={"prompt": "file" if self._options.prompt is not None else self._prompt_style},
        )
        servers = (*context.mcp_servers, *servers_of_file(self._options.mcp, os.environ))
        turn = ModelTurn(
            self._client,
            self._conversation,
            context,
            deadline,
            tools=lambda: [BASH, *self._others],
            compact_at=self._options.compact_at,
            compaction=self._options.compaction,
        )
        nudges = Nudges()
        turn.begin()
        self._open(context)
        try:
            self._servers.open(context, servers)
            if self._options.calls == "tools":
                definitions = tuple(tool.definition for tool in (BASH, *self._others))
                known = context.recorder.agent.model_copy(update={"tool_definitions": definitions})
                context.recorder.agent = known
            goes_on = True
            while goes_on:
                reply = turn.ask()
                if reply.refused:
                    self._answer_rest("the model refused")
                    return RoundTranscript(output=reply.text, stopped=_refusal(reply), refused=True)
                for call in reply.calls:
                    self._run(call, context, deadline, turn)
                goes_on = bool(reply.calls) or self._nudge(context, nudges, reply)
        except TimeoutError:
            self._answer_rest("the turn's time was over")
            return RoundTranscript(timed_out=True)
        except TurnStopped as stop:
            self._answer_rest(str(stop))
            return RoundTranscript(stopped=str(stop))
        finally:
            self._servers.close()
            if not turn.has_asked:
                context.recorder.ask_nothing()
        if reply.cut_off:
            return RoundTranscript(stopped="the model was cut off at its limit of completion tokens (max_tokens)")
        if reply.ending == "context":
            self._conversation.overflowed = True
            return RoundTranscript(stopped=f"context: the model's window was full in mid-reply ({reply.stop_reason})")
        return RoundTranscript(output=reply.text)

    @property
    def _output_limit(self) -> int:
        """Characters of an output that the model sees: a short window has no room for long ones."""
        window = self._client.context_tokens
        most = self._options.output_limit
        return most if window is None else max(_SHORTEST_OUTPUT, min(most, int(_OUTPUT_SHARE * window)))

    # A turn.

    def _open(self, context: RoundContext) -> None:
        """Add the instruction to the conversation, and before the first one the system prompt."""
        if not self._conversation.messages:
            prompt = self._system_prompt(context)
            self._conversation.add(Message("system", prompt))
            context.recorder.say("system", prompt)
        if not context.goes_on and (earlier := read_task_trajectory(context.round)) is not None:
            for message in earlier_messages(earlier):
                self._conversation.add(message)
        # The answer to a question is no request of its own: compaction keeps the one that was asked about.
        self._conversation.add(Message("user", context.instruction, is_nudge=context.goes_on))
        context.recorder.say("user", context.instruction)

    @property
    def _prompt_style(self) -> str:
        return self._options.prompt_style or "full"

    def _system_prompt(self, context: RoundContext) -> str:
        options = self._options
        prompt = read_file(options.prompt or _PROMPTS[self._prompt_style]).strip()
        prompt = prompt.replace("{workdir}", context.environment.workdir)
        prompt = prompt.replace("{command_timeout}", f"{options.command_timeout:g}")
        if options.rules is not None:
            prompt += f"\n\n# {options.rules.name}\n\n{read_file(options.rules).strip()}"
        if options.calls == "text":
            prompt += f"\n\n{read_file(_TEXT_CALLS).strip()}"
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

    def _nudge(self, context: RoundContext, nudges: Nudges, reply: Reply) -> bool:
        """Tell the model to go on where its reply was none, and return whether it was told."""
        if self._options.calls == "text":  # Its replies are answered by their form, and this one has ended the turn.
            return False
        if reply.ending == "context" and not self._options.compact_at:  # It would be as full again.
            return False
        why = nudges.after(reply)
        if why:
            self._conversation.add(Message("user", NUDGES[why], is_nudge=True))
            context.recorder.say("system", NUDGES[why], {"nudge": why})
        return bool(why)

    def _run(self, call: RequestedCall, context: RoundContext, deadline: Deadline, turn: ModelTurn) -> None:
        """Run a tool call and record its result; raises TimeoutError when the turn's time is over."""
        options, arguments = self._options, coerced(call.arguments or {})
        sees = bool(self._images)
        is_image, is_servers = sees and call.name == VIEW_IMAGE.name, self._servers.has(call.name)
        is_terminal = bool(self._terminals) and call.name == TERMINAL.name
        complaint = "" if is_image or is_servers else complaint_about(call, self._others)
        if is_terminal:
            complaint = complaint_about_terminal(call.arguments)
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
            seconds, limit = options.command_timeout, self._output_limit
            done = self._servers.run(call, context, deadline, seconds=seconds, limit=limit, sees=sees)
            shown, action, extra, images = done.shown, done.action, done.extra, done.images
        else:
            seconds = arguments.get("timeout", options.command_timeout)
            script = terminal_script(arguments) if is_terminal else arguments["command"]
            shown, action = run_script(script, context, deadline, seconds=seconds, limit=self._output_limit)
        shown, images = turn.result(shown, images)
        self._conversation.add(Message("tool", shown, call_id=call.id, images=images))
        context.recorder.observe(call.id, recorded(shown, images, context), action, extra)
        if deadline.over:
            raise TimeoutError

    @property
    def _others(self) -> list[Tool]:
        """The tools beside bash."""
        return [*self._images, *self._terminals, *self._servers.offered]

    def _answer_rest(self, why: str) -> None:
        """Answer the calls that are not run, because providers refuse conversations with open calls."""
        for call in self._conversation.unanswered:
            self._conversation.add(Message("tool", f"[not run: {why}]", call_id=call.id))


def _refusal(reply: Reply) -> str:
    """Return how a turn ended in which the model or a filter refused."""
    who = "the model refused to answer" if reply.ending == "refused" else "a filter of the provider's ended the reply"
    return f"refused: {who} ({reply.stop_reason or reply.ending})"
