"""Finds the trajectories of an earlier attempt in what ``replay:PATH`` points to."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

from pydantic import ValidationError

from pytest_evocode.errors import AgentFault, UsageError, describe_validation
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trajectories.atif import Trajectory

_FILE = "trajectory.json"
_WHAT = (
    "an attempt's directory, a run's, a results directory, a directory with <round>.json or <round>/trajectory.json "
    "for every round, or one trajectory of a task of one round"
)


def check_path(path: Path) -> None:
    """Raise UsageError where the path does not exist."""
    if not path.exists():
        raise UsageError(f"replay: there is no {path}; name {_WHAT}")


class RecordedAttempt:
    """The trajectories of one earlier attempt at one task."""

    def __init__(self, path: Path, task: Task) -> None:
        """Find the attempt; raises AgentFault where there is none at the task, or more than one."""
        self._task = task
        self._place = _place(path, task)

    def of_round(self, round_: Round) -> Trajectory:
        """Read a round's trajectory; raises AgentFault with the file's path where it is missing or not in ATIF."""
        files = _files(self._place, self._task, round_)
        path = next((file for file in files if file.is_file()), None)
        if path is None:
            raise AgentFault(f"{files[0]}: there is no trajectory to replay in {round_.name}; record one")
        try:
            return Trajectory.model_validate_json(path.read_bytes())
        except OSError as error:
            raise AgentFault(f"{path}: the trajectory cannot be read: {error.strerror}") from None
        except ValidationError as error:
            why = describe_validation(error)
            raise AgentFault(f"{path}: this is not an ATIF trajectory: {why}; record it anew") from None


def _place(path: Path, task: Task) -> Path:
    """Return the file or directory that has the trajectories of the task's rounds."""
    if path.is_file() and not (attempts := _listed(path)):
        if len(task.rounds) > 1:
            raise AgentFault(
                f"{path}: this is the trajectory of one round, and {task.name} has {len(task.rounds)}; name {_WHAT}"
            )
        return path
    if path.is_dir() and _has_any(path, task):
        return path
    found = sorted(
        place
        for place in (attempts if path.is_file() else path.rglob(f"{task.name}__*"))
        if place.name.startswith(f"{task.name}__") and place.is_dir() and _has_any(place, task)
    )
    if len(found) > 1:  # The results of a replay may lie beside what it replays.
        found = [place for place in found if not _is_replay(place, task)]
    if len(found) > 1:
        places = "".join(f"\n  {place}" for place in found)
        raise AgentFault(f"{path}: several attempts at {task.name} are here; name one of them:{places}")
    if not found:
        raise AgentFault(f"{path}: no trajectory of {task.name} is here; name {_WHAT}")
    return found[0]


def _listed(path: Path) -> list[Path]:
    """Return the directories of the attempts of a run's record, ``runs/<run>.json``."""
    try:
        names = json.loads(path.read_bytes()).get("attempts")
    except (OSError, ValueError, AttributeError):
        return []
    return [path.parent.parent / name for name in names] if isinstance(names, list) else []


def _has_any(place: Path, task: Task) -> bool:
    return any(file.is_file() for round_ in task.rounds for file in _files(place, task, round_))


def _is_replay(place: Path, task: Task) -> bool:
    for round_ in task.rounds:
        for file in _files(place, task, round_):
            with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
                return bool(json.loads(file.read_bytes())["agent"]["extra"]["evocode"]["replayed"])
    return False


def _files(place: Path, task: Task, round_: Round) -> list[Path]:
    """Return where a round's trajectory may be, the likeliest first."""
    if place.is_file():
        return [place]
    kept = [place / f"{round_.name}.json", place / round_.name / _FILE]
    recorded = [place / "steps" / round_.name / "agent" / _FILE]
    files = [*recorded, *kept] if (place / "steps").is_dir() else [*kept, *recorded]
    # Harbor keeps the only step's at the top.
    return [*files, place / "agent" / _FILE, place / _FILE] if len(task.rounds) == 1 else files
