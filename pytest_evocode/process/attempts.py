"""Recorded attempts on disk: where they are, and what there is in each to judge a process by."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from pytest_evocode.errors import TaskError, UsageError
from pytest_evocode.names import natural_key
from pytest_evocode.process.protocols import Executor, Judge
from pytest_evocode.process.scores.records import AttemptProcess
from pytest_evocode.process.scores.round_scores import DeclaredRound, RoundDeclaration, score_rounds
from pytest_evocode.process.trajectory.project_kinds import purposes_of, recognise_project, roles_of
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext
from pytest_evocode.process.trajectory.workspace_texts import TaskTexts, workdir_of
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import PASS_REWARD, RoundRecord
from pytest_evocode.tasks import ProcessConfig, Task, find_tasks, load_task
from pytest_evocode.trajectories.atif import Trajectory

#: Where a round's trajectory is below an attempt's directory.
TRAJECTORY = "agent/trajectory.json"


@dataclass(frozen=True, slots=True)
class FoundAttempt:
    """An attempt that has trajectories."""

    directory: Path
    task: str
    agent: str
    attempt: int
    rounds: tuple[str, ...]
    """Their names, in order; of all of them, with a trajectory or without."""
    records: Mapping[str, RoundRecord] = field(default_factory=dict)


def find_attempts(results: Path) -> list[FoundAttempt]:
    """The attempts below a directory, or the one that it is; raises UsageError where there is none."""
    if not results.is_dir():
        raise UsageError(f"{results}: there is no such directory; give one that runs have written")
    found = [_read_attempt(directory) for directory in _attempt_directories(results)]
    if not found:
        raise UsageError(
            f"{results}: no steps/<round>/{TRAJECTORY} below it; only agents with trajectories have a process"
        )
    return sorted(found, key=lambda each: (each.task, each.agent, each.attempt, each.directory))


def _attempt_directories(results: Path) -> Iterator[Path]:
    for place, names, _ in os.walk(results):
        names.sort()
        if "steps" in names and any(Path(place, "steps").glob(f"*/{TRAJECTORY}")):
            names.clear()
            yield Path(place)


def _read_attempt(directory: Path) -> FoundAttempt:
    loaded = load_results([directory], cases=True)
    if loaded.problems:
        raise UsageError("; ".join(loaded.problems))
    there = sorted((path.name for path in (directory / "steps").iterdir() if path.is_dir()), key=natural_key)
    for stored in loaded.attempts:
        record = stored.record
        records = {round_.round: round_ for round_ in record.rounds}
        rounds = record.declared_rounds if all(record.declared_rounds) else there
        return FoundAttempt(directory, record.task, record.agent, record.attempt, tuple(rounds), records)
    # Nobody's record: trajectories alone, perhaps where Harbor puts them.
    parts = directory.resolve().parts
    jobs = len(parts) - 1 - parts[::-1].index("harbor_jobs") if "harbor_jobs" in parts else None
    number = re.search(r"__a(\d+)$", directory.name)
    task = parts[jobs - 1] if jobs else re.sub(r"__\w+$", "", directory.name)
    agent = parts[jobs + 1] if jobs and jobs + 1 < len(parts) else directory.name
    return FoundAttempt(directory, task, agent, int(number[1]) if number else 1, tuple(there))


class TaskFinder:
    """Finds tasks by name in directories that are tasks or have some in them."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self._places: dict[str, Path] = {}
        for directory in directories:
            self._places = find_tasks(directory) | self._places
        self._loaded: dict[str, Task | None] = {}

    def find(self, name: str) -> Task | None:
        """The task of that name; None where there is none. Raises TaskError for one that is wrong."""
        if name not in self._loaded:
            place = self._places.get(name)
            self._loaded[name] = load_task(place) if place is not None else None
        return self._loaded[name]


def score_attempt(
    directory: Path,
    task: Task | None,
    *,
    executor: Executor | None = None,
    judge: Judge | None = None,
) -> AttemptProcess:
    """The process record of one attempt's directory.

    Without the task nothing that it declares or brings is known. Raises UsageError for a trajectory that is none.
    """
    return score_found(_read_attempt(directory), task, executor=executor, judge=judge)


def score_found(
    found: FoundAttempt, task: Task | None, *, executor: Executor | None = None, judge: Judge | None = None
) -> AttemptProcess:
    """As :func:`score_attempt`, of an attempt that was found."""
    declared = task.process if task is not None else ProcessConfig()
    files = TaskTexts(task) if task is not None else None
    rounds = list(_recorded_rounds(found, task, declared, files))
    project = recognise_project(files.paths, files.context) if files is not None else None
    reading = TaskContext(
        roles=roles_of(declared),
        purposes=purposes_of(declared, project),
        workdir=workdir_of(task) if task is not None else None,
        originals=files.originals if files is not None else (lambda path: ()),
        matching=files.matching if files is not None else (lambda pattern: ()),
    )
    scored = tuple(score_rounds(rounds, reading, executor=executor, judge=judge))
    notes = () if task is not None else (f"the task {found.task} was not found, so nothing that it declares is known",)
    return AttemptProcess(
        task=found.task,
        agent=found.agent,
        attempt=found.attempt,
        category=declared.category,
        rounds=scored,
        notes=notes,
    )


def _recorded_rounds(
    found: FoundAttempt, task: Task | None, declared: ProcessConfig, files: TaskTexts | None
) -> Iterator[DeclaredRound]:
    of_task = {round_.name: round_ for round_ in task.rounds} if task is not None else {}
    names = list(of_task) or list(found.rounds)
    for index, name in enumerate(names, 1):
        path = found.directory / "steps" / name / TRAJECTORY
        if not path.is_file():
            continue
        round_ = of_task.get(name)
        yield DeclaredRound(
            RecordedRound(
                name=name,
                index=index,
                trajectory=read_trajectory(path),
                instruction=_read_instruction(round_.instruction) if round_ is not None else "",
                brought=files.brought_by(round_) if files is not None and round_ is not None else {},
            ),
            _declaration(declared, names, name, found),
        )


def _declaration(declared: ProcessConfig, names: Sequence[str], name: str, found: FoundAttempt) -> RoundDeclaration:
    so_far = {*names[: names.index(name) + 1], None}
    record = found.records.get(name)
    verdict = record.verdict if record is not None else None
    return RoundDeclaration(
        requirements=tuple(each for each in declared.requirements if each.round in so_far),
        abstain=declared.abstention(name),
        passed=record.passed if record is not None and verdict is not None else _passed(found.directory, name),
        cases=verdict.cases if verdict is not None else (),
        case_counts=record.case_counts if record is not None and verdict is not None else None,
    )


def _passed(directory: Path, name: str) -> bool | None:
    """What a round's reward file says, where there is no record."""
    try:
        return float((directory / "steps" / name / "verifier" / "reward.txt").read_text()) >= PASS_REWARD
    except (OSError, ValueError):
        return None


def _read_instruction(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"the instruction cannot be read: {error}; save it as UTF-8", path) from None


def read_trajectory(path: Path) -> Trajectory:
    """A trajectory in ATIF; raises UsageError that names the file and what is wrong with it."""
    try:
        return Trajectory.model_validate_json(path.read_bytes())
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise UsageError(f"{path}: no trajectory in ATIF: {where + ': ' if where else ''}{first['msg']}") from None
    except OSError as error:
        raise UsageError(f"{path}: cannot be read: {error.strerror}") from None
