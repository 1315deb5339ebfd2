"""What a model of a session says, and what the session kept of it."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from tests.acceptance.sessions import Session
from tests.model_scripts import Asked, Run, Say, Step
from tests.model_server import ModelServer


def import_sdks() -> None:
    """Import what the clients of models are made with, all of it."""
    import anthropic
    import genai_prices  # noqa: F401
    import openai

    with openai.OpenAI(api_key="none") as one, anthropic.Anthropic(api_key="none") as other:
        # Parts are imported when they are asked for.
        assert all([one.chat.completions, one.responses, other.messages])


def in_rounds(*rounds: Sequence[Step]) -> Callable[[Asked], Step]:
    """A script that says each round's steps in order, and then that it is done; it looks at the conversation only."""
    steps: list[Step] = [step for round_ in rounds for step in (*round_, Say("Done."))]
    return lambda asked: steps[asked.replies]


def solver(rounds: int) -> Callable[[Asked], Step]:
    """A script that solves the tiny tasks."""
    return in_rounds(*([Run(f"echo line-{index} >> log.txt")] for index in range(1, rounds + 1)))


def at(server: ModelServer, spec: str) -> list[str]:
    """The options by which an agent finds its model."""
    url = server.url + ("/v1" if spec.startswith("openai") else "")
    return [f"--evocode-agent={spec}", f"--evocode-agent-option=base_url={url}"]


def steps_of(session: Session, round_: str, agent: str, task: str = "a") -> list[dict[str, Any]]:
    """The steps of a round's trajectory."""
    path = session.attempt(task, agent) / "steps" / round_ / "agent/trajectory.json"
    steps: list[dict[str, Any]] = json.loads(path.read_text())["steps"]
    return steps
