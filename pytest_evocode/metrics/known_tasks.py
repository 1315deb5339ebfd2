"""What results say of tasks: the facts, and how many rounds there are, of tasks too of which nothing was run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime

from pytest_evocode.results.directory import STAMP
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import RunRecord, TaskFacts


def known_facts(
    attempts: Iterable[StoredAttempt], runs: Iterable[RunRecord], contents: Mapping[str, str] | None = None
) -> dict[str, TaskFacts]:
    """Return the facts about tasks by name, as the newest attempt or run has them that says any.

    With ``contents`` only those runs tell that have a task in it at the contents of that hash.
    """
    found = [
        (begun(run.started, run.run), 0, run.run, task, known.facts)
        for run in runs
        for task, known in run.tasks.items()
        if contents is None or contents.get(task) == known.task_hash
    ]
    for attempt in attempts:
        record = attempt.record
        if record.facts is not None:
            found.append((begun(record.started, attempt.run), 1, str(attempt.path), record.task, record.facts))
    return {task: facts for *_, task, facts in sorted(found, key=lambda each: each[:4])}


def known_rounds(attempts: Iterable[StoredAttempt], facts: Mapping[str, TaskFacts]) -> dict[str, tuple[str, ...]]:
    """Return the names of the rounds of tasks: by their facts, else the most that an attempt by any agent tells.

    A name that is not known is empty.
    """
    most: dict[str, tuple[str, ...]] = {}
    for attempt in attempts:
        task, names = attempt.record.task, attempt.record.declared_rounds
        most[task] = max(most.get(task, ()), names, key=lambda each: (len(each), sum(map(bool, each)), each))
    return most | {task: known.rounds for task, known in facts.items()}


def begun(started: str, run: str) -> float:
    """Return when an attempt or run was begun, in seconds; without a time that is before all others."""
    for text, read in ((started, datetime.fromisoformat), (run, _stamp)):
        try:
            return read(text).timestamp()
        except ValueError:
            continue
    return 0.0


def _stamp(run: str) -> datetime:
    return datetime.strptime(run, STAMP)
