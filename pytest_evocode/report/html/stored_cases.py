"""An attempt with the cases of its rounds, read from its directory whatever state that is in."""

from __future__ import annotations

from dataclasses import replace

from pytest_evocode.errors import RecordFault
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.stored import StoredAttempt


def with_cases(attempt: StoredAttempt) -> tuple[StoredAttempt, list[str]]:
    """Return an attempt with the cases of all its rounds, and what could not be read.

    Args:
        attempt: An attempt that was loaded with its cases, which stays as it is, or without them.
    """
    if attempt.layout != "evocode":
        return attempt, []
    directory, problems, rounds = AttemptDirectory(attempt.path), [], []
    for round_ in attempt.record.rounds:
        try:
            rounds.append(directory.with_cases(round_))
        except RecordFault as error:
            problems.append(str(error))
            rounds.append(round_)
    return replace(attempt, record=attempt.record.model_copy(update={"rounds": tuple(rounds)})), problems
