"""An attempt with its rounds and cases, made from its directory: ``AttemptData`` in ``viewer/data.d.ts``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_evocode.errors import DamagedRecord, RecordFault
from pytest_evocode.metrics.failures import failing_cases
from pytest_evocode.names import TASK_FILE, attempt_name
from pytest_evocode.process.evidence import Measure
from pytest_evocode.process.scores.rigor_score import RoundProcess
from pytest_evocode.report.html.bounded import bounded, bounded_value, read_bounded
from pytest_evocode.report.html.case_sources import CaseSources
from pytest_evocode.report.html.cells import UNDER_WAY, cell_of, cells_of
from pytest_evocode.report.html.introduced import Introductions, RoundEdits
from pytest_evocode.report.html.processes import read_process
from pytest_evocode.report.html.trajectory import ShownTrajectory, trajectory_parts
from pytest_evocode.report.tables import values_of
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.loading import StoredAttempt, load_results
from pytest_evocode.results.plain_files import is_within
from pytest_evocode.results.records import Case, FailureKind, RoundRecord

WritePart = Callable[[int, int, list[dict[str, Any]]], None]
"""Takes a part of a round's trajectory: the round's index, the part's number from 1, and its steps (``Step[]``)."""

_OUTPUT, _PASSED_OUTPUT = 256 * 2**10, 32 * 2**10  # bytes of what a suite printed
_MOST_ARTIFACTS, _MOST_COUNTED = 500, 100_000
_MADE_BY = 4000  # characters of a text
#: Characters of the outputs and of the diffs of all rounds together, and of an output beyond that.
_OUTPUTS, _DIFFS, _BEYOND = 16 * 2**20, 16 * 2**20, 8 * 2**10
_LEFT_OUT = "its diff is left out here, because the attempt changed too much; the steps of the trajectory have it"


def attempt_data(
    attempt: StoredAttempt,
    *,
    id: str,
    write_part: WritePart | None = None,
    task_file: Path | None = None,
    under_way: bool = False,
    problems: Sequence[str] = (),
    sources: CaseSources | None = None,
) -> dict[str, Any]:
    """Return what the viewer shows of an attempt, as JSON values; trajectories go to ``write_part`` while it is made.

    Whatever is missing or damaged is in its ``problems``; nothing is raised.

    Args:
        attempt: An attempt with its cases; see :func:`~pytest_evocode.report.html.attempt.with_cases`.
        id: Its id.
        write_part: Takes the trajectories of its rounds, part by part, the rounds in order; None drops them.
        task_file: The ``task.toml`` of its task, for commands; None where that is not known.
        under_way: Whether its session still writes.
        problems: What could not be read of it before.
        sources: The tests of its failing cases; None leaves them out.
    """
    record = attempt.record
    making = _Making(attempt, write_part, [*problems], task_file, sources)
    cells = cells_of(attempt, under_way=under_way)
    made = {each.index: each for each in record.rounds}
    rounds = []
    for index, name in enumerate(record.declared_rounds, start=1):
        if index in made:
            rounds.append(making.round(made[index]))
        else:
            rounds.append(making.missing(index, name, cells[index - 1]))
    return {
        **values_of(record, *_OF_ATTEMPTS),
        "id": id,
        "run": attempt.run,
        "made_by": bounded_value(record.made_by, _MADE_BY),
        "path": str(attempt.path),
        "rounds": rounds,
        "problems": making.problems,
    }


class _Making:
    """An attempt while its rounds are made, in order."""

    def __init__(
        self,
        attempt: StoredAttempt,
        write_part: WritePart | None,
        problems: list[str],
        task_file: Path | None,
        sources: CaseSources | None,
    ) -> None:
        record = attempt.record
        self._sources, self._sources_left = sources or CaseSources(None), _SOURCES
        self.problems = problems
        self._attempt = attempt
        self._write_part = write_part
        self._task_file = str(task_file) if task_file is not None else f"{record.task}/{TASK_FILE}"
        self._kinds: dict[int, dict[int, FailureKind]] = {}
        for round_, case, kind in failing_cases(record.rounds):
            self._kinds.setdefault(round_.index, {})[id(case)] = kind
        self._introductions = Introductions(alone=record.mode == "single-round")
        self._texts = _CaseTexts()
        self._process = self._read_process()
        self._outputs_left, self._diffs_left = _OUTPUTS, _DIFFS

    def node_id(self, round_: str) -> str:
        """Return the pytest node id of a round."""
        record = self._attempt.record
        return f"{self._task_file}::{attempt_name(record.agent, record.attempt)}::{round_}"

    def round(self, record: RoundRecord) -> dict[str, Any]:
        """Return a round that has a record."""
        directory = self._attempt.path / "steps" / record.round
        output, omitted = self._output(directory, record)
        trajectory = self._trajectory(directory, record.index)
        edits = RoundEdits(bool(trajectory.steps), trajectory.edits, stated=trajectory.changes is None)
        kinds = self._kinds.get(record.index, {})
        introduced = self._introductions.of_round(record, edits, output)
        verdict = record.verdict
        cases = self._texts.of_round(verdict.cases if verdict is not None else (), kinds, introduced)
        self._add_tests(record.round, cases)
        return _round_data(
            record,
            cell=cell_of(record, set(kinds.values())),
            cases=cases,
            output=output,
            omitted=omitted,
            changes=self._changes(trajectory),
            artifacts=self._artifacts(directory),
            trajectory=trajectory.data,
            process=self._process.get(record.index),
            node_id=self.node_id(record.round),
        )

    def _add_tests(self, round_: str, cases: Sequence[dict[str, Any]]) -> None:
        """Say of failing cases what their tests are, as long as that is not too much."""
        for case in cases:
            if case["status"] in ("failed", "error") and self._sources_left > 0:
                test = self._sources.of(self._attempt.record.task_hash, round_, case["id"])
                case["test"] = bounded(test, _TEXT)
                self._sources_left -= len(case["test"])

    def missing(self, index: int, name: str, cell: str) -> dict[str, Any]:
        """Return a round that has no record; a turn that is under way may have begun its trajectory."""
        trajectory = self._trajectory(self._attempt.path / "steps" / name, index) if name else ShownTrajectory()
        return _blank_round(index, name, cell) | {
            "node_id": self.node_id(name),
            "trajectory": trajectory.data,
            "changes": self._changes(trajectory),
        }

    def _output(self, directory: Path, record: RoundRecord) -> tuple[str, int]:
        path = directory / "verifier" / "test-stdout.txt"
        longest = _PASSED_OUTPUT if record.passed else _OUTPUT
        longest = min(longest, max(self._outputs_left, _BEYOND))
        try:
            text, omitted = read_bounded(path, longest, within=self._attempt.path)
        except FileNotFoundError:
            return "", 0
        except OSError as error:
            self.problems.append(f"{path}: it cannot be read: {error.strerror}; restore it, or verify the round again")
            return "", 0
        self._outputs_left -= len(text)
        return text, omitted

    def _trajectory(self, directory: Path, index: int) -> ShownTrajectory:
        def write(part: int, steps: list[dict[str, Any]]) -> None:
            if self._write_part is not None:
                self._write_part(index, part, steps)

        shown = trajectory_parts(directory / "agent" / "trajectory.json", write, within=self._attempt.path)
        if shown is None and len(self._attempt.record.declared_rounds) == 1:
            # Harbor keeps that of an only step at the top.
            path = self._attempt.path / "agent" / "trajectory.json"
            shown = trajectory_parts(path, write, within=self._attempt.path)
        shown = shown or ShownTrajectory()
        if shown.problem:
            self.problems.append(shown.problem)
        return shown

    def _changes(self, trajectory: ShownTrajectory) -> list[dict[str, Any]] | None:
        for change in trajectory.changes or ():
            if len(change["diff"]) > self._diffs_left:
                change["diff"], change["note"] = "", _LEFT_OUT
            self._diffs_left -= len(change["diff"])
        return trajectory.changes

    def _artifacts(self, directory: Path) -> list[str]:
        """Return the files of a round's artifacts, relative to their directory; of many the first ones."""
        artifacts = directory / "artifacts"
        try:
            if not is_within(artifacts, self._attempt.path):
                return []
            files = _files_below(artifacts)
            shown = list(islice(files, _MOST_ARTIFACTS))
            if more := sum(1 for _ in islice(files, _MOST_COUNTED)):
                counted = f"{more:,}" if more < _MOST_COUNTED else f"at least {more:,}"
                shown.append(f"... and {counted} more files, which the results have")
            return shown
        except (OSError, ValueError) as error:
            why = error.strerror if isinstance(error, OSError) else error
            self.problems.append(f"{artifacts}: it cannot be read: {why}")
            return []

    def _read_process(self) -> dict[int, dict[str, Any]]:
        """Return the process of the rounds that were scored, by their indices."""
        try:
            scored = read_process(self._attempt.path)
        except RecordFault as error:
            self.problems.append(str(error))
            return {}
        if scored is None:
            return {}
        return {round_.index: _process_data(round_) for round_ in scored.rounds}


def _files_below(directory: Path) -> Iterator[str]:
    """Yield the files below a directory, by their paths in it; links are not followed."""
    waiting = [""]
    while waiting:
        place = waiting.pop()
        try:
            with os.scandir(directory / place) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except FileNotFoundError:
            continue
        for entry in found:
            path = f"{place}/{entry.name}" if place else entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path)
            else:
                yield path


def with_cases(attempt: StoredAttempt) -> tuple[StoredAttempt, list[str]]:
    """Return an attempt with the cases of all its rounds, and what could not be read.

    Args:
        attempt: An attempt that was loaded with its cases, which stays as it is, or without them.
    """
    record, problems = AttemptDirectory(attempt.path).with_all_cases(attempt.record)
    if not problems and any(round_.lacks_cases for round_ in record.rounds):
        record = record.model_copy(update={"rounds": _loaded_again(attempt, record.rounds)})
    return replace(attempt, record=record), problems


def _loaded_again(attempt: StoredAttempt, rounds: tuple[RoundRecord, ...]) -> tuple[RoundRecord, ...]:
    """Return the rounds with the cases that lie elsewhere, as in records of version 1 and in results of others."""
    try:
        found = load_results([attempt.path], cases=True).attempts
    except (RecordFault, DamagedRecord, OSError):
        return rounds
    verdicts = {
        round_.index: round_.verdict for each in found if each.path == attempt.path for round_ in each.record.rounds
    }
    return tuple(
        round_.model_copy(update={"verdict": verdicts[round_.index]})
        if round_.lacks_cases and verdicts.get(round_.index) is not None
        else round_
        for round_ in rounds
    )


_TEXT = 20_000  # characters of a text of a case, of which a suite may give 4,096
_ID = 1000  # characters of what names a case
_CAUSE = 20_000  # characters
_MOST = 500  # flags, tools and the like
_USAGE = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd", "requests")
_SOURCES = 2_000_000  # characters of tests of an attempt
_EVIDENCE = 2000  # characters of a text of evidence


class _CaseTexts:
    """Makes cases for the viewer; those that passed are the same value in all rounds of an attempt."""

    def __init__(self) -> None:
        self._passed: dict[int, dict[str, Any]] = {}

    def of_round(
        self, cases: Sequence[Case], kinds: Mapping[int, FailureKind], introduced: Mapping[int, dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the cases of a round.

        Args:
            cases: The cases, which are kept elsewhere as long as this is used.
            kinds: What kind of failure those are that fail, by their :func:`id`.
            introduced: Who introduced the failures, by the place of the case.
        """
        found = []
        for place, case in enumerate(cases):
            if case.status != "passed":
                found.append(_case_data(case, kinds.get(id(case)), introduced.get(place)))
                continue
            # By identity, because they are read once where they say the same.
            data = self._passed.get(id(case))
            if data is None:
                data = self._passed[id(case)] = _case_data(_without_texts(case), None, None)
            found.append(data)
        return found


def _without_texts(case: Case) -> Case:
    return Case(id=case.id, status=case.status, origin=case.origin, requirement=case.requirement, kind=case.kind)


def _case_data(case: Case, kind: FailureKind | None, introduced: dict[str, Any] | None) -> dict[str, Any]:
    names = {name: bounded(getattr(case, name), _ID) for name in ("id", "origin", "requirement", "kind")}
    texts = {
        name: bounded(getattr(case, name), _TEXT)
        for name in ("intent", "scenario", "input", "expected", "actual", "reason")
    }
    return {**names, **texts, "status": case.status, "failure": kind, "test": "", "introduced": introduced}


_OF_ATTEMPTS = ("task", "agent", "attempt", "started", "finished", "environment", "strict", "regraded", "rewards")
_OF_RECORDS = ("outcome", "fault", "timed_out", "tool_calls", "agent_seconds", "verifier_seconds")
_OF_VERDICTS = ("reward", "rewards", "rests_on", "void")


def _blank_round(index: int, name: str, cell: str) -> dict[str, Any]:
    """Return a declared round that has no record: not selected, not reached or under way, as its cell says."""
    return {
        **dict.fromkeys((*_OF_RECORDS, *_OF_VERDICTS, "repeats", "changes", "usage", "trajectory", "process")),
        **{field: [] for field in ("flags", "trusts", "cases", "artifacts")},
        **{field: {} for field in ("rewards", "changed_counts", "phases")},
        **dict.fromkeys(("cause", "stopped", "output", "node_id"), ""),
        "index": index,
        "name": name,
        "cell": cell,
        "outcome": "under way" if cell == UNDER_WAY else "not reached",
        "counts": [0, 0],
        "void": False,
        "omitted": 0,
    }


def _round_data(record: RoundRecord, **given: Any) -> dict[str, Any]:
    """Return a round that has a record.

    Args:
        record: The record; its verdict's cases are not looked at.
        given: What the record does not tell, by the names of the fields in ``RoundData``.
    """
    found = _blank_round(record.index, record.round, given["cell"]) | values_of(record, *_OF_RECORDS)
    if (verdict := record.verdict) is not None:
        found |= values_of(verdict, *_OF_VERDICTS)
        found["repeats"] = verdict.repeats and verdict.repeats.model_dump(mode="json")
        found["trusts"] = list(verdict.trusts[:_MOST])
        found["changed_counts"] = dict(verdict.changed.counts) if verdict.changed is not None else {}
    return found | {
        "cause": bounded(record.cause, _CAUSE),
        "stopped": bounded(record.stopped, _CAUSE),
        "counts": list(record.case_counts),
        "usage": record.usage and values_of(record.usage, *_USAGE),
        "phases": record.phases.known if record.phases is not None else {},
        "flags": [bounded(note, _EVIDENCE) for note in record.notes[:_MOST]],
        **given,
    }


def _process_data(scored: RoundProcess) -> dict[str, Any]:
    """Return what the viewer shows of the process of a round."""
    score = scored.score()
    return {
        "score": None if score is None else 100 * score.value,
        "edited": scored.edited,
        "pillars": {
            name: {
                "value": pillar.value,
                "measures": {part: _measure_data(measure) for part, measure in pillar.parts.items()},
            }
            for name, pillar in scored.pillars.items()
        },
        "extended": {name: _measure_data(measure) for name, measure in scored.extended.items()},
    }


def _measure_data(measure: Measure) -> dict[str, Any]:
    return {
        "value": measure.value,
        "certainty": measure.certainty,
        "reason": bounded(measure.reason, _EVIDENCE),
        "evidence": [
            {"what": bounded(each.what, _EVIDENCE), "step": each.step, "quote": bounded(each.quote, _EVIDENCE)}
            for each in measure.evidence[:_MOST]
        ],
    }
