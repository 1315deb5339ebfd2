"""How the requirements of a task change from step to step: ``[metadata.requirement_chain]``."""

from __future__ import annotations

from typing import Annotated, Literal

from pytest_evocode.tasks.fields import Text, one_or_many
from pytest_evocode.tasks.sections import FreeSection

ChangeType = Literal["extension", "correction", "conflict"]


class ChainStep(FreeSection):
    """How the requirements changed in one step."""

    step: Text
    """The name of the step."""
    change_types: Annotated[tuple[ChangeType, ...], one_or_many(ChangeType)] = ()
    """What the step does to earlier requirements: extension adds some, conflict replaces some, correction repairs what
    an earlier request got wrong.
    """


class RequirementChain(FreeSection):
    """``[metadata.requirement_chain]``: how the requirements changed from step to step."""

    steps: tuple[ChainStep, ...] = ()
    """The steps with what they change."""
