"""An attempt as the viewer shows it, made from its directory: ``AttemptData`` in ``viewer/data.d.ts``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from pytest_evocode.errors import RecordFault
from pytest_evocode.metrics.failures import failing_cases
from pytest_evocode.names import TASK_FILE, attempt_name
from pytest_evocode.report.html.bounded import bounded_value, read_bounded
from pytest_evocode.report.html.cells import cell_of, cells_of
from pytest_evocode.report.html.overview.processes import read_process
from pytest_evocode.report.html.rounds.introduced import Introductions, RoundEdits
from pytest_evocode.report.html.rounds.round_data import CaseTexts, missing_round, process_data, round_data
from pytest_evocode.report.html.steps.trajectory import ShownTrajectory, trajectory_parts
from pytest_evocode.results.plain_files import is_within
from pytest_evocode.results.records import FailureKind, RoundRecord
from pytest_evocode.results.stored import StoredAttempt

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
) -> dict[str, Any]:
    """Return what the viewer shows of an attempt, as JSON values; trajectories go to ``write_part`` while it is made.

    Whatever is missing or damaged is in its ``problems``; nothing is raised.

    Args:
        attempt: An attempt with its cases; see :func:`~pytest_evocode.report.html.rounds.stored_cases.with_cases`.
        id: Its id.
        write_part: Takes the trajectories of its rounds, part by part, the rounds in order; None drops them.
        task_file: The ``task.toml`` of its task, for commands; None where that is not known.
        under_way: Whether its session still writes.
        problems: What could not be read of it before.
    """
    record = attempt.record
    making = _Making(attempt, write_part, [*problems], task_file)
    cells = cells_of(attempt, under_way=under_way)
    made = {each.index: each for each in record.rounds}
    rounds = []
    for index, name in enumerate(record.declared_rounds, start=1):
        if index in made:
            rounds.append(making.round(made[index]))
        else:
            rounds.append(making.missing(index, name, cells[index - 1]))
    return {
        "id": id,
        "task": record.task,
        "agent": record.agent,
        "attempt": record.attempt,
        "run": attempt.run,
        "started": record.started,
        "finished": record.finished,
        "environment": record.environment,
        "made_by": bounded_value(record.made_by, _MADE_BY),
        "strict": record.strict,
        "regraded": record.regraded,
        "rewards": record.rewards,
        "path": str(attempt.path),
        "rounds": rounds,
        "problems": making.problems,
    }


class _Making:
    """An attempt while its rounds are made, in order."""

    def __init__(
        self, attempt: StoredAttempt, write_part: WritePart | None, problems: list[str], task_file: Path | None
    ) -> None:
        record = attempt.record
        self.problems = problems
        self._attempt = attempt
        self._write_part = write_part
        self._task_file = str(task_file) if task_file is not None else f"{record.task}/{TASK_FILE}"
        self._kinds: dict[int, dict[int, FailureKind]] = {}
        for round_, case, kind in failing_cases(record.rounds):
            self._kinds.setdefault(round_.index, {})[id(case)] = kind
        self._introductions = Introductions(alone=record.mode == "single-round")
        self._texts = CaseTexts()
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
        edits = RoundEdits(False)
        if trajectory is not None and trajectory.steps:
            recorded = trajectory.changes is not None
            edits = RoundEdits(True, trajectory.edits, stated=not recorded)
        kinds = self._kinds.get(record.index, {})
        introduced = self._introductions.of_round(record, edits, output)
        verdict = record.verdict
        cases = self._texts.of_round(verdict.cases if verdict is not None else (), kinds, introduced)
        return round_data(
            record,
            cell=cell_of(record, set(kinds.values())),
            cases=cases,
            output=output,
            omitted=omitted,
            changes=self._changes(trajectory),
            artifacts=self._artifacts(directory),
            trajectory=trajectory.data if trajectory is not None else None,
            process=self._process.get(record.index),
            node_id=self.node_id(record.round),
        )

    def missing(self, index: int, name: str, cell: str) -> dict[str, Any]:
        """Return a round that has no record; a turn that is under way may have begun its trajectory."""
        trajectory = self._trajectory(self._attempt.path / "steps" / name, index) if name else None
        data = trajectory.data if trajectory is not None else None
        return missing_round(index, name, cell, self.node_id(name), data, self._changes(trajectory))

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

    def _trajectory(self, directory: Path, index: int) -> ShownTrajectory | None:
        def write(part: int, steps: list[dict[str, Any]]) -> None:
            if self._write_part is not None:
                self._write_part(index, part, steps)

        shown = trajectory_parts(directory / "agent" / "trajectory.json", write, within=self._attempt.path)
        if shown is None and len(self._attempt.record.declared_rounds) == 1:
            # Harbor keeps that of an only step at the top.
            path = self._attempt.path / "agent" / "trajectory.json"
            shown = trajectory_parts(path, write, within=self._attempt.path)
        if shown is not None and shown.problem:
            self.problems.append(shown.problem)
        return shown

    def _changes(self, trajectory: ShownTrajectory | None) -> list[dict[str, Any]] | None:
        if trajectory is None or trajectory.changes is None:
            return None
        for change in trajectory.changes:
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
        return {round_.index: process_data(round_) for round_ in scored.rounds}


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
