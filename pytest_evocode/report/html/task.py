"""A task as the viewer shows it: requirements, cases through all rounds and attempts: ``TaskData`` in ``data.d.ts``."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pytest_evocode.results.records import Case
from pytest_evocode.results.stored import StoredAttempt
from pytest_evocode.tasks import Task


@dataclass(frozen=True, slots=True)
class Lineage:
    """How the cases of one attempt went, without their texts, so that it takes little memory."""

    id: str
    """The attempt's id."""
    declared_rounds: tuple[str, ...]
    cases: dict[str, Case]
    """By id, one case each that has its origin, requirement, kind and intent."""
    rounds: dict[int, dict[str, str]]
    """By index of the round and id of the case: a character, as ``TaskData.attempts`` has them."""


def lineage_of(attempt: StoredAttempt, *, id: str) -> Lineage:
    """Return how the cases of an attempt went; the attempt has its cases."""
    raise NotImplementedError


def task_data(name: str, lineages: Iterable[Lineage], task: Task | None, *, id: str, note: str = "") -> dict[str, Any]:
    """Return what the viewer shows of a task, as JSON values.

    Args:
        name: The task's name.
        lineages: Those of its attempts, in the order of the index.
        task: The task's directory, read; None where it is not found, or is not valid.
        id: The task's id.
        note: Why there is no task; empty has a sentence of its own.
    """
    raise NotImplementedError
