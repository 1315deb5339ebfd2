"""What the tables of a task.toml have in common: whether they take keys that the format does not know."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Section(BaseModel):
    """A table in which only known keys are allowed."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class FreeSection(BaseModel):
    """A table in which all keys are allowed; those that are not fields here are in ``model_extra``."""

    model_config = ConfigDict(extra="allow", frozen=True)
