"""The ids of what a report shows: in names of files and in permalinks, the same whenever a report is written again."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.results.loading import StoredAttempt, StoredRun

_DIGITS = 12  # Of a hash: 48 bits, so that no two of ten thousand attempts meet.
_HASHED = re.compile(rf"-[0-9a-f]{{{_DIGITS}}}$")
_LONGEST = 40  # characters of a name in an id


def task_id(name: str) -> str:
    """Return the id of a task.

    >>> task_id("ledger"), task_id("my_Task")
    ('ledger', 'my-task-079a37cbed57')
    """
    text = _plain(name)
    # What looks like an id with a hash gets one, too, or somebody could name a task as another's id.
    return text if text == name and text and not _HASHED.search(text) else _id(text, name)


def attempt_id(attempt: StoredAttempt, roots: Sequence[Path]) -> str:
    """Return the id of an attempt, made of its directory's path below the results directories.

    Args:
        attempt: An attempt that was loaded from one of the directories.
        roots: The directories that were loaded.
    """
    path = os.fspath(attempt.path)
    # Not the record's agent, which a table of scores may call by another name.
    *_, agent, _, name = ("", "", *path.split(os.sep))
    return _id(_plain(f"{name}-{agent}"), _below(path, tuple(map(os.fspath, roots))))


def run_id(run: str, where: Path, roots: Sequence[Path]) -> str:
    """Return the id of a session, or of a job of Harbor.

    Args:
        run: Its name.
        where: The directory that its attempts are in, or that its record belongs to.
        roots: The directories that were loaded.
    """
    return _id(_plain(run), f"{_below(os.fspath(where), tuple(map(os.fspath, roots)))}\n{run}")


def results_of_run(run: StoredRun) -> Path:
    """Return the results directory that a session's record lies in."""
    return run.path.parent.parent


def row_id(row: ScoreRow) -> str:
    """Return the id of a row of scores, made of who it is, under which conditions and in which mode."""
    who = row.subject.agent
    parts = who.name, who.parts, tuple(row.subject.conditions), row.agent, row.mode, row.from_round, row.version
    return _id(_plain(row.agent), repr(parts))


def _id(text: str, what: str) -> str:
    digest = hashlib.sha256(what.encode(errors="surrogatepass")).hexdigest()[:_DIGITS]
    return f"{text}-{digest}" if text else digest


def _plain(name: str) -> str:
    return re.sub(r"[^0-9a-z]+", "-", name.lower()).strip("-")[:_LONGEST].rstrip("-")


def _below(place: str, roots: tuple[str, ...]) -> str:
    """Return a path relative to the directories, so that ids stay the same where all of them are moved."""
    base = _base(roots)
    return os.path.relpath(place, base) if base else place


@lru_cache(maxsize=16)
def _base(roots: tuple[str, ...]) -> str:
    return os.path.commonpath([os.path.realpath(root) for root in roots]) if roots else ""
