"""``[metadata.evocode.users.STEP]``: a simulated user, who answers the agent's questions inside a round."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from pytest_evocode.tasks.fields import FilledText


class UserConfig(BaseModel):
    """The user of one round; the agent sees the answers and nothing else of it."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    model: FilledText
    """The model that plays the user: PROVIDER/MODEL, with the key and the address of that provider's variables."""
    notes: FilledText
    """What the user knows and wants beyond the request; answers are made of the request and these notes alone."""
    persona: FilledText | None = None
    """Who the user is and how they talk. Default: a busy colleague."""
    answers: Annotated[int, Field(ge=1, le=100)] = 3
    """How many questions are answered at most."""
