"""A measured value: a number or none, the evidence for it, and how certain it is."""

from __future__ import annotations

from typing import Literal

from pydantic import BaseModel, ConfigDict

#: How a value came about: by running something, by reading what was recorded, or by asking a model. Claimed is what was
#: read of results that the agent's own program has told.
Certainty = Literal["executed", "parsed", "judged", "claimed"]

#: Most characters of a trajectory in one piece of evidence.
QUOTE_LIMIT = 160


class FrozenRecord(BaseModel):
    """Base of the records of a process; they are immutable."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class Evidence(FrozenRecord):
    """Something in a trajectory, or the result of a command, that speaks for a value or against it."""

    what: str
    """What it shows."""
    step: int | None = None
    """The ``step_id`` in the round's trajectory; None for evidence from elsewhere."""
    quote: str = ""
    """Words, a file with its lines, or a command with its exit code."""


class Measure(FrozenRecord):
    """A number from 0 to 1, or none and the reason for that."""

    value: float | None
    certainty: Certainty | None = None
    """None if there is no value."""
    reason: str = ""
    """How the value was computed, or why there is none."""
    evidence: tuple[Evidence, ...] = ()


def measured(
    value: float, reason: str = "", evidence: tuple[Evidence, ...] = (), certainty: Certainty = "parsed"
) -> Measure:
    """Return a measure that has a value."""
    return Measure(value=value, certainty=certainty, reason=reason, evidence=evidence)


def not_measured(reason: str, evidence: tuple[Evidence, ...] = ()) -> Measure:
    """Return a measure without a value, which is never replaced by a neutral one."""
    return Measure(value=None, reason=reason, evidence=evidence)


def quoted(text: str) -> str:
    r"""Return a text on one line, cut to :data:`QUOTE_LIMIT` characters.

    >>> quoted("python -m pytest\n  tests")
    'python -m pytest tests'
    """
    line = " ".join(text.split())
    return line if len(line) <= QUOTE_LIMIT else f"{line[: QUOTE_LIMIT - 3]}..."
