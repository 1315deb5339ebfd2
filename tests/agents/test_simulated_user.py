"""Simulated users beside a whole session: what counts as a question, and whose fault it is that none is answered."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, cast

import pytest

from pytest_evocode.agents.simulated_user import SimulatedUser, asks
from pytest_evocode.errors import AgentFault, ContextOverflow, ModelFault
from pytest_evocode.llm.protocol import ModelClient
from pytest_evocode.tasks.users import UserConfig


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
