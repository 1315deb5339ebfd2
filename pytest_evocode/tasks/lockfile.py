"""Pinned totals: the cases that a clean run of the reference solutions had, in ``evocode.lock`` beside task.toml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory

LOCK_FILE = "evocode.lock"


class Lock(BaseModel):
    """``evocode.lock``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    task_hash: str
    """Of the task's directory without the lock, see :func:`content_hash`."""
    environment: str
    """``docker`` or ``sandbox``: where the reference solutions were run."""
    image: str
    """What names the contents of the image there; for Docker its id, a digest."""
    rounds: dict[str, dict[str, str]]
    """By round, the cases that passed: their ids with the requirements, empty where the suite names none."""


@dataclass(frozen=True, slots=True)
class Pins:
    """What is known of the cases that the reference solutions pass."""

    rounds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stale: Path | None = None
    """A lock that does not count, because the task has changed since it was written."""

    def of(self, round_: str) -> Mapping[str, str] | None:
        """A round's cases by id, with their requirements; None where they are not known."""
        return self.rounds.get(round_)


NOT_PINNED = Pins()


def content_hash(directory: Path) -> str:
    """A SHA-256 in hex over a task's files, without the lock and what Python and pytest leave behind."""
    return hash_directory(directory, leaving_out=frozenset((LOCK_FILE, "__pycache__", ".pytest_cache")))


def read_pins(directory: Path) -> Pins:
    """The pinned cases of the task in ``directory``, as long as its files are those of then.

    Raises TaskError for a lock that is none.
    """
    lock = read_lock(directory)
    if lock is None:
        return NOT_PINNED
    if lock.task_hash != content_hash(directory):
        return Pins(stale=directory / LOCK_FILE)
    return Pins(lock.rounds)


def read_lock(directory: Path) -> Lock | None:
    """The lock of the task in ``directory``; None where there is none. Raises TaskError for one that cannot be read."""
    path = directory / LOCK_FILE
    try:
        return Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        why = _explained(error) if isinstance(error, ValidationError) else error.strerror
        raise TaskError(f"cannot be read ({why}); remove it, and write it anew with --evocode-pin", path) from None


def _explained(error: ValidationError) -> str:
    first = error.errors()[0]
    return ": ".join(part for part in (".".join(map(str, first["loc"])), first["msg"]) if part)


def write_lock(directory: Path, lock: Lock) -> Path:
    """Write a task's lock, whole or not at all, and return its path. Raises OSError."""
    path = directory / LOCK_FILE
    text = json.dumps(lock.model_dump(), indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text)
    return path
