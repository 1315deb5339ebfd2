"""Find recorded attempts on disk, and score the process of each: every pillar and extended metric of its rounds."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from pytest_evocode.errors import RecordFault, UsageError, describe_validation
from pytest_evocode.names import natural_key
from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars.abstention import abstention, false_abstention
from pytest_evocode.process.pillars.edits import atomicity, exploration
from pytest_evocode.process.pillars.extended import extended
from pytest_evocode.process.pillars.planning import planning
from pytest_evocode.process.pillars.recovery import has_run, recovery
from pytest_evocode.process.pillars.verification import assertion_density, verification
from pytest_evocode.process.protocols import ExecutedMeasures, Executor, Judge, JudgeMaterial, Judgement
from pytest_evocode.process.scores.rigor_score import PARTS, AttemptProcess, RoundProcess, pillar
from pytest_evocode.process.tests_written.written_tests import used_files, written_tests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles, roles_of
from pytest_evocode.process.trajectory.file_texts import TaskTexts, workdir_of
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext, is_watched, read_rounds, unseen_edits
from pytest_evocode.process.trajectory.shell.purposes import purposes_of, recognise_project
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import PASS_REWARD, Case, RoundRecord
from pytest_evocode.tasks import Abstention, DeclaredRequirement, ProcessConfig, Task, find_tasks, load_task
from pytest_evocode.tasks.text_files import read_instruction
from pytest_evocode.trajectories.atif import Trajectory


@dataclass(frozen=True, slots=True)
class RoundDeclaration:
    """What the task and the verifier say about one round."""

    requirements: tuple[DeclaredRequirement, ...] = ()
    """The requirements of this round and of those before it."""
    abstain: Abstention | None = None
    passed: bool | None = None
    """Whether the round's suite passed; None without a verdict."""
    cases: tuple[Case, ...] = ()
    case_counts: tuple[int, int] | None = None
    """The number of passed cases and of all cases; None where it is unknown."""


BROUGHT = "most of what is new was made elsewhere, where nobody saw how, and brought"


def score_rounds(
    rounds: Iterable[tuple[RecordedRound, RoundDeclaration]],
    context: TaskContext | None = None,
    *,
    executor: Executor | None = None,
    judge: Judge | None = None,
) -> Iterator[RoundProcess]:
    """Yield the process of an attempt's rounds, in order."""
    rounds = list(rounds)
    context = context or TaskContext()
    activities = list(read_rounds([recorded for recorded, _ in rounds], context))
    # What goes on out of sight in one round would be the bad part of an attempt.
    brought = any(activity.brought for activity in activities)
    for activity, (_, declared) in zip(activities, rounds, strict=True):
        activity.brought = brought
        activity.used = used_files(activity, context.roles, written_tests(activity, context.roles))
        executed = executor.run_round(activity) if executor is not None else None
        yield score_round(activity, context.roles, declared, executed, judge)


def score_round(
    activity: RoundActivity,
    roles: FileRoles | None = None,
    declared: RoundDeclaration | None = None,
    executed: ExecutedMeasures | None = None,
    judge: Judge | None = None,
) -> RoundProcess:
    """Score one round: its pillars and extended metrics."""
    roles = roles or FileRoles()
    declared = declared or RoundDeclaration()
    executed = executed or ExecutedMeasures()
    tests = written_tests(activity, roles).confirmed(executed.verification)
    if activity.used is None:
        activity.used = used_files(activity, roles, tests)
    # A test that cannot fail is no work.
    verifying = tests.verifying_paths
    edited = any(edit.role == "source" or edit.path in verifying for edit in activity.working_edits)
    parts = {"aq": abstention(activity, declared.abstain, declared.requirements, declared.passed)}
    if edited:
        parts |= {
            "pf": planning(activity),
            "vc": verification(activity, roles, tests, declared.requirements, executed),
            "re": recovery(activity, tests),
            "ati": atomicity(activity, executed.build_health, executed.stability),
            "tad": assertion_density(tests, executed),
            "ee": exploration(activity, roles, tests),
        }
        if activity.brought:
            parts |= {name: dict.fromkeys(PARTS[name], not_measured(BROUGHT)) for name in ("pf", "re", "ati", "ee")}
    extra = extended(activity, roles, declared.abstain, declared.cases, executed)
    material = JudgeMaterial(activity, declared.requirements, tests)
    judgements = _ask(judge, material, parts, extra) if judge is not None else {}
    no_edit = not_measured("neither the product nor a test that can fail was changed")
    return RoundProcess(
        round=activity.name,
        index=activity.index,
        edited=edited,
        ran=has_run(activity),
        pillars={name: pillar(name, parts.get(name) or dict.fromkeys(PARTS[name], no_edit)) for name in PARTS},
        extended=extra,
        false_abstention=false_abstention(activity, declared.abstain),
        outcome=_outcome(declared),
        judge=judge.name if judge is not None else "",
        judgements=judgements,
    )


#: The sub-metrics that a judge is asked about, each with its pillar; None for an extended metric.
JUDGED: Mapping[str, str | None] = {"DQ": "pf", "RT": "vc", "AQ": "aq", "SC": None, "CBS": None}


def _ask(
    judge: Judge, material: JudgeMaterial, parts: Mapping[str, dict[str, Measure]], extra: dict[str, Measure]
) -> dict[str, Judgement]:
    """Replace the measures of the rules by those of a judge, and return what the judge said."""
    judgements = {}
    for name, of in JUDGED.items():
        place = extra if of is None else parts.get(of)
        if place is None or (judgement := judge.judge(name, material, place[name])) is None:
            continue
        judgements[name] = judgement
        by_rule = "nothing" if judgement.rule is None else f"{judgement.rule:.2f}"
        votes = ", ".join(f"{vote:.2f}" for vote in judgement.votes)
        evidence = (Evidence(what=f"votes {votes}; the rule says {by_rule}", quote=quoted(judgement.reason)),)
        place[name] = measured(judgement.value, f"by {judge.name}", evidence, certainty="judged")
    return judgements


def _outcome(declared: RoundDeclaration) -> float | None:
    if declared.passed is None:
        return None
    passed, total = declared.case_counts or (0, 0)
    return passed / total if total else float(declared.passed)


#: The path of a round's trajectory below the round's directory.
TRAJECTORY = "agent/trajectory.json"


@dataclass(frozen=True, slots=True)
class FoundAttempt:
    """An attempt with trajectories."""

    directory: Path
    task: str
    agent: str
    attempt: int
    rounds: tuple[str, ...]
    """The names of all its rounds in order, with a trajectory or without."""
    records: Mapping[str, RoundRecord] = field(default_factory=dict)


def find_attempts(results: Path) -> tuple[list[FoundAttempt], list[str]]:
    """Return the attempts below a directory, or the one attempt that it is, and what in their records is left out.

    Raises:
        UsageError: There is no attempt.
    """
    if not results.is_dir():
        raise UsageError(f"{results}: there is no such directory; give one that runs have written")
    found: list[FoundAttempt] = []
    problems: list[str] = []
    for directory in _attempt_directories(results):
        try:
            found.append(_read_attempt(directory, problems))
        except RecordFault as error:
            problems.append(str(error))
    if not found and not problems:
        raise UsageError(
            f"{results}: no steps/<round>/{TRAJECTORY} below it; only agents with trajectories have a process"
        )
    return sorted(found, key=lambda each: (each.task, each.agent, each.attempt, each.directory)), problems


def _attempt_directories(results: Path) -> Iterator[Path]:
    for place, names, _ in os.walk(results):
        names.sort()
        if "steps" in names and any(Path(place, "steps").glob(f"*/{TRAJECTORY}")):
            names.clear()
            yield Path(place)


def _read_attempt(directory: Path, problems: list[str]) -> FoundAttempt:
    """Return an attempt, and add to ``problems`` what is left out of it; raises RecordFault where that is all."""
    loaded = load_results([directory], cases=True)
    if loaded.problems and not loaded.attempts:
        raise RecordFault("; ".join(loaded.problems))
    problems += loaded.problems
    there = sorted((path.name for path in (directory / "steps").iterdir() if path.is_dir()), key=natural_key)
    for stored in loaded.attempts:
        record = stored.record
        records = {round_.round: round_ for round_ in record.rounds}
        rounds = record.declared_rounds if all(record.declared_rounds) else there
        return FoundAttempt(directory, record.task, record.agent, record.attempt, tuple(rounds), records)
    # Trajectories without our records, perhaps in Harbor's layout.
    parts = directory.resolve().parts
    jobs = len(parts) - 1 - parts[::-1].index("harbor_jobs") if "harbor_jobs" in parts else None
    number = re.search(r"__a(\d+)$", directory.name)
    task = parts[jobs - 1] if jobs else re.sub(r"__\w+$", "", directory.name)
    agent = parts[jobs + 1] if jobs and jobs + 1 < len(parts) else directory.name
    return FoundAttempt(directory, task, agent, int(number[1]) if number else 1, tuple(there))


class TaskFinder:
    """Finds tasks by name in directories that are tasks or contain tasks."""

    def __init__(self, directories: Iterable[Path]) -> None:
        self._places: dict[str, Path] = {}
        for directory in directories:
            self._places = find_tasks(directory) | self._places
        self._loaded: dict[str, Task | None] = {}

    def find(self, name: str) -> Task | None:
        """Return the task of a name; None where there is none.

        Raises:
            TaskError: The task is not valid.
        """
        if name not in self._loaded:
            place = self._places.get(name)
            self._loaded[name] = load_task(place, unknown_keys="ignore") if place is not None else None
        return self._loaded[name]


def score_attempt(
    directory: Path,
    task: Task | None,
    *,
    executor: Executor | None = None,
    judge: Judge | None = None,
) -> AttemptProcess:
    """Score the process of the attempt in a directory.

    Args:
        directory: The attempt's directory in a results directory.
        task: The task of the attempt; None if it cannot be found, so that its declarations and files are unknown.
        executor: Runs builds and tests in the attempt's states; None to start nothing.
        judge: The model that is asked beside the rules; None to ask none.

    Raises:
        RecordFault: A trajectory or the attempt's record cannot be read.
    """
    found = _read_attempt(directory, [])
    declared = task.process if task is not None else ProcessConfig()
    files = TaskTexts(task) if task is not None else None
    rounds = list(_recorded_rounds(found, task, declared, files))
    context = TaskContext()
    if task is not None and files is not None:
        purposes = purposes_of(declared, recognise_project(files.context))
        context = TaskContext(roles_of(declared), purposes, workdir_of(task), files.originals, files.matching)
    scored = tuple(score_rounds(rounds, context, executor=executor, judge=judge))
    notes = [] if task is not None else [f"the task {found.task} was not found, so nothing that it declares is known"]
    trajectories = [recorded.trajectory for recorded, _ in rounds]
    if not any(map(is_watched, trajectories)):
        told = "changes of files were not recorded, and are read from what the calls say"
        unseen = unseen_edits(trajectories)
        notes.append(f"{told}; {unseen} calls ran scripts that write files, which are not seen" if unseen else told)
    return AttemptProcess(
        task=found.task,
        agent=found.agent,
        attempt=found.attempt,
        category=declared.category,
        rounds=scored,
        notes=tuple(notes),
    )


def _recorded_rounds(
    found: FoundAttempt, task: Task | None, declared: ProcessConfig, files: TaskTexts | None
) -> Iterator[tuple[RecordedRound, RoundDeclaration]]:
    of_task = {round_.name: round_ for round_ in task.rounds} if task is not None else {}
    names = list(of_task) or list(found.rounds)
    for index, name in enumerate(names, 1):
        path = found.directory / "steps" / name / TRAJECTORY
        if not path.is_file():
            continue
        round_ = of_task.get(name)
        recorded = RecordedRound(
            name=name,
            index=index,
            trajectory=read_trajectory(path),
            instruction=read_instruction(round_.instruction) if round_ is not None else "",
            brought=files.brought_by(round_) if files is not None and round_ is not None else {},
        )
        yield recorded, _declaration(declared, names, name, found)


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
    """Return whether a round passed by its reward file, for a round without a record."""
    try:
        return float((directory / "steps" / name / "verifier" / "reward.txt").read_text()) >= PASS_REWARD
    except (OSError, ValueError):
        return None


def read_trajectory(path: Path) -> Trajectory:
    """Read a trajectory in ATIF.

    Raises:
        RecordFault: The file cannot be read, or is not valid ATIF; the message says what is wrong where.
    """
    try:
        return Trajectory.model_validate_json(path.read_bytes())
    except ValidationError as error:
        why = f"no trajectory in ATIF: {describe_validation(error)}"
    except OSError as error:
        why = f"cannot be read: {error.strerror}"
    raise RecordFault(f"{path}: {why}; restore it, or move it away to score the attempt's other rounds")
