"""Simulated users beside a whole session: what counts as a question, and whose fault it is that none is answered."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pytest_evocode.agents.journal import Journal
from pytest_evocode.agents.protocol import Agent, RoundContext, RoundTranscript
from pytest_evocode.agents.simulated_user import SimulatedUser, asks, run_with_user
from pytest_evocode.errors import AgentFault, ContextOverflow, ModelFault, RunLimitReached
from pytest_evocode.llm.budget import AttemptSpending, RunSpending, parse_budget
from pytest_evocode.llm.protocol import ModelClient, Reply
from pytest_evocode.results.records import Usage
from pytest_evocode.tasks.model import UserConfig
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder


@dataclass
class Failing:
    """A model that cannot be asked."""

    error: Exception

    def complete(self, *args: Any, **options: Any) -> Any:
        raise self.error


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("Which of the two?", True),
        ("I looked.\n\nWhich of the two? I wait.", True),
        ("Why did it fail? The path was wrong.\n\nIt is done now.", False),
        ("What I did:\n \nI fixed it.", False),
    ],
)
def test_a_message_asks_something_when_its_last_paragraph_does(message: str, expected: bool) -> None:
    assert asks(message) is expected


@pytest.mark.parametrize("error", [AgentFault("no temperature for this model"), ContextOverflow("too long")])
def test_the_agent_is_not_to_blame_for_a_users_model_that_refuses_the_request(error: Exception) -> None:
    config = UserConfig.model_validate({"model": "openai/gpt-5-mini", "notes": "The word is heron."})
    user = SimulatedUser(config, "Do it.", threading.Event(), _client=cast(ModelClient, Failing(error)))
    with pytest.raises(ModelFault, match=r"the simulated user \(openai/gpt-5-mini\) cannot answer: "):
        user.answer([], "Which word?")


@dataclass
class Asking:
    """An agent that keeps no journal, as a program in the container: it says one thing after the other."""

    says: list[str]
    heard: list[str] = field(default_factory=list)
    name: str = "a-program"

    def run_round(self, context: RoundContext) -> RoundTranscript:
        self.heard.append(context.instruction)
        if not self.says:
            raise KeyboardInterrupt
        return RoundTranscript(output=self.says.pop(0))


@dataclass
class Answering:
    """A model that answers by the question."""

    asked: int = 0

    def complete(self, messages: Any, *args: Any, **options: Any) -> Reply:
        self.asked += 1
        answer = "Port 1." if "port" in messages[-1].text.rpartition("# The engineer")[2] else "In blue."
        return Reply(answer, usage=Usage(prompt_tokens=10, completion_tokens=1, requests=1))


def play(
    path: Path, *says: str, spending: AttemptSpending | None = None
) -> tuple[Asking, Answering, SimulatedUser, Callable[[], RoundTranscript]]:
    config = UserConfig.model_validate({"model": "openai/gpt-5-mini", "notes": "Port 1, and blue."})
    agent, model = Asking(list(says)), Answering()
    user = SimulatedUser(config, "Do it.", threading.Event(), _client=cast(ModelClient, model))
    context = RoundContext(
        task=cast(Any, None),
        round=cast(Any, SimpleNamespace(name="round-1")),
        instruction="Do it.",
        environment=cast(Any, None),
        solution_env={},
        timeout=None,
        recorder=Recorder(AgentInfo(name="a-program", version="1"), "a-session", spending=spending),
        journal=Journal(path),
    )
    return agent, model, user, lambda: run_with_user(cast(Agent, agent), context, user)


@pytest.mark.parametrize(
    ("again", "answer", "asked"), [("Which port?", "Port 1.", 0), ("Which colour?", "In blue.", 1)]
)
def test_an_answer_of_an_earlier_session_is_given_to_the_same_question_alone(
    tmp_path: Path, again: str, answer: str, asked: int
) -> None:
    _, _, _, begin = play(tmp_path / "journal", "Which port?")
    with pytest.raises(KeyboardInterrupt):
        begin()
    agent, model, user, go_on = play(tmp_path / "journal", again, "Done.")
    assert go_on().output == "Done."
    assert agent.heard == ["Do it.", answer]
    assert model.asked == asked
    assert user.usage is not None
    assert user.usage.requests == 1 + asked  # What was paid for in vain counts.


def test_the_user_is_not_asked_once_the_run_has_cost_what_it_may(tmp_path: Path) -> None:
    run = RunSpending(tmp_path / "spent")
    run.add(1.0)
    spending = AttemptSpending(parse_budget("total-cost=1"), run=run)
    _, model, _, begin = play(tmp_path / "journal", "Which port?", spending=spending)
    with pytest.raises(RunLimitReached):
        begin()
    assert model.asked == 0


def test_the_user_is_not_asked_when_the_agent_may_not_go_on(tmp_path: Path) -> None:
    spending = AttemptSpending(parse_budget("turns=1/round"))
    spending.charge(None)
    _, model, _, begin = play(tmp_path / "journal", "Which port?", spending=spending)
    assert begin().stopped == "budget: turns 1 of 1 used in the round"
    assert model.asked == 0
