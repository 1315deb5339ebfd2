"""An attempt as the viewer shows it, made from its directory: ``AttemptData`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.results.stored import StoredAttempt

WritePart = Callable[[int, int, list[dict[str, Any]]], None]
"""Takes a part of a round's trajectory: the round's index, the part's number from 1, and its steps (``Step[]``)."""


def attempt_data(
    attempt: StoredAttempt,
    *,
    id: str,
    write_part: WritePart | None = None,
    task_file: Path | None = None,
    under_way: bool = False,
    problems: Sequence[str] = (),
) -> dict[str, Any]:
    """Return what the viewer shows of an attempt, as JSON values; trajectories go to ``write_part`` while it is made.

    Whatever is missing or damaged is in its ``problems``; nothing is raised.

    Args:
        attempt: An attempt with its cases; see :func:`~pytest_evocode.report.html.stored_cases.with_cases`.
        id: Its id.
        write_part: Takes the trajectories of its rounds, part by part, the rounds in order; None drops them.
        task_file: The ``task.toml`` of its task, for commands; None where that is not known.
        under_way: Whether its session still writes.
        problems: What could not be read of it before.
    """
    raise NotImplementedError
