"""A protocol for models without tool calls: each reply has one fenced block with a script, or ends the turn."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from pytest_evocode.agents.shell.tools import BASH
from pytest_evocode.errors import TurnStopped
from pytest_evocode.llm.protocol import Message, ModelClient, Reply, RequestedCall, Tool

DONE = "DONE"
#: So many replies in a row that do not keep to the protocol end the turn.
MOST_FAILURES = 3
_FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})\s*([\w+-]*)\s*$")
_LANGUAGES = frozenset({"bash", "sh", "shell"})
_TIMEOUT = re.compile(r"#\s*timeout:\s*(\d+(?:\.\d+)?)\s*$", re.MULTILINE)
_FAILED = "[format: "


class TextCalls:
    """A :class:`~pytest_evocode.llm.protocol.ModelClient` that asks another one for text, and reads calls out of it."""

    def __init__(self, client: ModelClient) -> None:
        self.client = client

    def __getattr__(self, name: str) -> Any:
        """Return what is the other client's, where it has it: all but how it is asked."""
        return getattr(self.client, name)

    def compact(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """See :class:`~pytest_evocode.llm.base_client.BaseClient`."""
        compact = getattr(self.client, "compact")  # noqa: B009 - only clients that have it pass check_compaction
        reply: Reply = compact([_as_text(each) for each in conversation], [], timeout=timeout)
        return reply

    def complete(self, conversation: Sequence[Message], tools: Sequence[Tool], *, timeout: float | None) -> Reply:
        """Return the model's next message, with the call that its text asks for.

        A text that does not keep to the protocol becomes a call that says so (:attr:`RequestedCall.wrong`).

        Raises:
            TurnStopped: :data:`MOST_FAILURES` replies in a row did not keep to it.
        """
        failures = _failures_at_end(conversation)
        if tools and len(failures) >= MOST_FAILURES:
            raise TurnStopped(
                f"format: {MOST_FAILURES} replies in a row had not one fenced block: {', '.join(failures)}"
            )
        reply = self.client.complete([_as_text(each) for each in conversation], [], timeout=timeout)
        if not tools or reply.refused or reply.calls:
            return reply
        call = requested(reply.text)
        return reply if call is None else replace(reply, calls=(call,))


def requested(text: str) -> RequestedCall | None:
    r"""Return the call that a reply asks for, or that says what is wrong with the reply; None where the turn is over.

    >>> requested("I look.\n```bash\n# timeout: 5\nls\n```").arguments
    {'command': '# timeout: 5\nls', 'timeout': 5.0}
    >>> requested("It works.\n\nDONE"), requested("I am on it.").wrong
    (None, 'no block')
    """
    id = f"text_{uuid.uuid4().hex}"
    scripts = list(_scripts(text))
    if len(scripts) == 1 and scripts[0] is not None:
        timeout = _TIMEOUT.match(scripts[0])
        arguments = {"command": scripts[0]} | ({"timeout": float(timeout[1])} if timeout else {})
        return RequestedCall(id, BASH.name, arguments)
    if not scripts and text.rstrip().rpartition("\n")[2].strip(" *`.") == DONE:
        return None
    wrong = "an open block" if None in scripts else f"{len(scripts)} blocks" if scripts else "no block"
    return RequestedCall(id, BASH.name, None, text, wrong)


def told(wrong: str) -> str:
    """Return what the model is told of a reply that did not keep to the protocol."""
    return (
        f"{_FAILED}{wrong}] Nothing was run. Reply with exactly one block that begins with ```bash and ends with ```, "
        f"or, when you have finished, with {DONE} alone on the last line and no block."
    )


def _scripts(text: str) -> Iterator[str | None]:
    """Yield the scripts of a reply; None for a block that does not end."""
    fence, language = "", ""
    lines: list[str] = []
    for line in text.splitlines():
        found = _FENCE.match(line)
        if not fence and found:
            fence, language, lines = found[1], found[2].lower(), []
        elif fence and found and not found[2] and found[1].startswith(fence):
            if language in _LANGUAGES:
                yield "\n".join(lines)
            fence = ""
        elif fence:
            lines.append(line)
    if fence and language in _LANGUAGES:
        yield None


def _as_text(message: Message) -> Message:
    if message.role == "tool":
        return Message("user", message.text)
    return replace(message, calls=()) if message.calls else message


def _failures_at_end(conversation: Sequence[Message]) -> list[str]:
    """Return what was wrong with the last replies, as far back as all of them failed."""
    found: list[str] = []
    for message in reversed(conversation):
        if message.role == "tool":
            if not message.text.startswith(_FAILED):
                break
            found.insert(0, message.text.removeprefix(_FAILED).partition("]")[0])
        elif message.role != "assistant":
            break
    return found
