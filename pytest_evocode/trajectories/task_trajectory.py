"""The conversation that a task gives an agent to begin a round from: ``trajectory.json`` beside the instruction."""

from __future__ import annotations

from pydantic import ValidationError

from pytest_evocode.errors import TaskError, describe_validation
from pytest_evocode.tasks import Round
from pytest_evocode.trajectories.atif import Trajectory

_LARGEST = 64 * 2**20  # bytes


def read_task_trajectory(round_: Round) -> Trajectory | None:
    """Return the conversation before a round's instruction, or None where the task gives none.

    Raises:
        TaskError: The file cannot be read, or is not in ATIF.
    """
    path = round_.trajectory
    if path is None:
        return None
    try:
        if path.stat().st_size > _LARGEST:
            raise TaskError(f"is larger than {_LARGEST} bytes; shorten the conversation", path)
        return Trajectory.model_validate_json(path.read_bytes())
    except OSError as error:
        raise TaskError(f"cannot be read ({error.strerror}); check its permissions", path) from error
    except ValidationError as error:
        why = describe_validation(error)
        raise TaskError(f"this is not an ATIF trajectory: {why}; write it anew, or remove it", path) from None
