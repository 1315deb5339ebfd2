"""The simulated user of a round: a model on the host that answers the agent's questions from the task's notes."""

from __future__ import annotations

import re
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from pytest_evocode.agents.journal import Journal
from pytest_evocode.agents.protocol import Agent, RoundContext, RoundTranscript
from pytest_evocode.agents.shell.model_turn import wait_for_reply
from pytest_evocode.agents.turn_time import Deadline
from pytest_evocode.agents.words import USER
from pytest_evocode.errors import AgentFault, ContextOverflow, ModelFault
from pytest_evocode.llm.client_factory import client_of
from pytest_evocode.llm.protocol import Message, ModelClient
from pytest_evocode.results.records import Usage, total_usage
from pytest_evocode.tasks.model import UserConfig

_QUESTION = re.compile(r"\?(?=[\s\"'`*_)\]]|$)")
_LONGEST = 20_000  # characters of the engineer's message that the user reads


@dataclass(slots=True)
class SimulatedUser:
    """The user of one round."""

    config: UserConfig
    request: str
    cancelled: threading.Event
    usages: list[Usage] = field(default_factory=list)
    _client: ModelClient | None = None

    @property
    def usage(self) -> Usage | None:
        """What the user's model has used; None where it was not asked."""
        return total_usage(self.usages)

    @property
    def answered_by(self) -> dict[str, Any]:
        """What decides who answers besides the model's name; see :class:`~pytest_evocode.agents.protocol.Agent`."""
        return getattr(self._client, "answered_by", None) or {}

    def answer(self, said: Sequence[tuple[str, str]], question: str) -> tuple[str, Usage]:
        """Return the answer to the agent's message, after the questions and answers before it."""
        if self._client is None:
            self._client = client_of(self.config)
        system = f"{self.config.persona or USER['persona']}\n\n{USER['role']}\n\n# Your notes\n\n{self.config.notes}"
        told = [f"# Your request\n\n{self.request}"]
        told += [f"# The engineer\n\n{asked}\n\n# You\n\n{answered}" for asked, answered in said]
        told.append(f"# The engineer\n\n{question[-_LONGEST:]}")
        messages = (Message("system", system), Message("user", "\n\n".join(told)))
        try:
            reply = wait_for_reply(
                self.cancelled, partial(self._client.complete, messages, (), timeout=None), Deadline(None)
            )
        except (AgentFault, ContextOverflow) as error:  # The agent is not to blame for the user's model.
            raise ModelFault(f"the simulated user ({self.config.model}) cannot answer: {error}") from None
        return reply.text.strip() or "I have no preference.", reply.usage

    def close(self) -> None:
        """Close the connection to the user's model."""
        if self._client is not None:
            self._client.close()


def asks(message: str) -> bool:
    r"""Return whether an agent's last message ends with a question: there is one in its last paragraph.

    >>> asks("I looked. Which of the two? I wait."), asks("Which one is it? The second.\n\nIt is done.")
    (True, False)
    """
    paragraphs = [each for each in re.split(r"\n\s*\n", message.strip()) if each.strip()]
    return bool(paragraphs) and bool(_QUESTION.search(paragraphs[-1]))


def run_with_user(agent: Agent, context: RoundContext, user: SimulatedUser) -> RoundTranscript:
    """Run an agent's turn, and go on with it after each answer of the user.

    Answers of an earlier session are taken from the journal, where they separate the parts of the turn, as long as the
    same is asked: a program in the container begins its turn anew, and may ask for something else.
    """
    parts = context.journal.split("answer")
    given = [entry for entry in context.journal.earlier if isinstance(entry, dict) and "answer" in entry]
    said: list[tuple[str, str]] = []
    part = replace(context, journal=parts[0])
    while True:
        transcript = agent.run_round(part)
        ended = transcript.timed_out or transcript.stopped or transcript.refused
        if ended or len(said) >= user.config.answers or not asks(transcript.output):
            return transcript
        number = len(said)
        if number < len(given) and given[number]["question"] != transcript.output:
            user.usages += [Usage.model_validate(entry["usage"]) for entry in given[number:]]  # Paid for all the same.
            del given[number:], parts[number + 1 :]
        if paid_before := number < len(given):
            answer, usage = given[number]["answer"], Usage.model_validate(given[number]["usage"])
        else:
            if spent := context.spending.exhausted:  # The turn could not go on with an answer.
                return replace(transcript, stopped=spent)
            with context.spending.waiting.pausing(0.0, "provider"):
                answer, usage = user.answer(said, transcript.output)
            context.journal.add({"question": transcript.output, "answer": answer, "usage": usage.model_dump()})
            context.spending.charge_run(usage)
        user.usages.append(usage)
        said.append((transcript.output, answer))
        facts: dict[str, Any] = {"model": user.config.model, "question": transcript.output, "answer": answer}
        facts |= {"usage": usage.model_dump(exclude_none=True)}
        facts |= {"paid_before": True} if paid_before else user.answered_by
        told = f"The simulated user answers, {number + 1} of at most {user.config.answers} times."
        context.recorder.say("system", told, {"simulated_user": facts})
        left = context.seconds_left()
        journal = parts[number + 1] if number + 1 < len(parts) else Journal.following(context.journal)
        part = replace(context, instruction=answer, timeout=left, journal=journal, goes_on=True)
