"""Pinned cases: those that a clean run of the reference solutions had, in ``evocode.lock`` beside task.toml."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from pytest_evocode.errors import TaskError, describe_validation
from pytest_evocode.names import TASK_FILE, TRAJECTORY_FILE
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory

LOCK_FILE = "evocode.lock"
#: The files and directories at the top of a task that the format gives a meaning. What else lies there, such as a
#: README, this lock or recorded attempts, is for people and changes nothing that a run does.
PARTS = (TASK_FILE, "environment", "instruction.md", "solution", "steps", "tests", TRAJECTORY_FILE)


class Lock(BaseModel):
    """The contents of ``evocode.lock``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    version: Literal[1] = 1
    task_hash: str
    """The hash of the task's directory without the lock; see :func:`content_hash`."""
    environment: str
    """``docker`` or ``sandbox``: where the reference solutions were run."""
    image: str
    """Identifies the contents of the image there; for Docker its id, a digest."""
    rounds: dict[str, dict[str, str]]
    """The cases that passed, by round: their ids with the requirements, which are empty where the suite names none."""


@dataclass(frozen=True, slots=True)
class Pins:
    """The cases that the reference solutions are known to pass."""

    rounds: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    stale: Path | None = None
    """The path of a lock that does not count, because the task has changed since it was written."""

    def of(self, round_: str) -> Mapping[str, str] | None:
        """Return the cases of a round by id, with their requirements; None where they are not known."""
        return self.rounds.get(round_)


NOT_PINNED = Pins()


def content_hash(directory: Path) -> str:
    """Return a SHA-256 in hex over what a run depends on: the files of a task that its format knows.

    Neither what else lies beside task.toml nor what editors and Python leave behind changes it.
    """
    return hash_directory(directory, only=PARTS)


def read_pins(directory: Path) -> Pins:
    """Return the pinned cases of the task in ``directory``; none where its files have changed since they were pinned.

    Raises:
        TaskError: The lock cannot be read.
    """
    lock = read_lock(directory)
    if lock is None:
        return NOT_PINNED
    if lock.task_hash != content_hash(directory):
        return Pins(stale=directory / LOCK_FILE)
    return Pins(lock.rounds)


def read_lock(directory: Path) -> Lock | None:
    """Return the lock of the task in ``directory``, or None where there is none.

    Raises:
        TaskError: The lock cannot be read.
    """
    path = directory / LOCK_FILE
    try:
        return Lock.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return None
    except (OSError, ValidationError) as error:
        why = describe_validation(error) if isinstance(error, ValidationError) else error.strerror
        raise TaskError(f"cannot be read ({why}); remove it, and write it anew with --evocode-pin", path) from None


def write_lock(directory: Path, lock: Lock) -> Path:
    """Write a task's lock and return its path; raises OSError."""
    path = directory / LOCK_FILE
    text = json.dumps(lock.model_dump(), indent=1, ensure_ascii=False) + "\n"
    write_atomically(path, text)
    return path
