"""What-if forks: which recorded state of another attempt an attempt begins in, and what was said of the rounds before.

A fork goes on from the files that another attempt was left with after a round, in a new conversation.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.errors import RecordFault, UsageError
from pytest_evocode.names import ForkPoint
from pytest_evocode.results.directory import AttemptDirectory, read_run
from pytest_evocode.results.records import AttemptRecord, ForkSource, RoundRecord, SnapshotFile
from pytest_evocode.tasks import Task
from pytest_evocode.tasks.lockfile import content_hash


@dataclass(frozen=True, slots=True)
class ForkedState:
    """The state that a fork begins in."""

    source: ForkSource
    kept: SnapshotFile
    """Where it is kept."""
    directory: Path
    """The directory of the other attempt."""

    def inherited(self) -> tuple[RoundRecord, ...]:
        """Return the rounds up to the fork as the other attempt has them, with their cases; raises RecordFault."""
        return _rounds_up_to(self.directory, self.source.index)


def inherited_rounds(attempt: Path, source: ForkSource, task: str) -> tuple[RoundRecord, ...]:
    """Return the rounds that a fork in the directory ``attempt`` has inherited, with their cases.

    The other attempt is in the same results directory. Raises RecordFault where it is not there any more.
    """
    other = AttemptDirectory.of(attempt.parents[4], task, source.agent, source.run, source.attempt)
    return _rounds_up_to(other.path, source.index)


def _rounds_up_to(directory: Path, index: int) -> tuple[RoundRecord, ...]:
    record = AttemptDirectory(directory).read_attempt()
    if record is None:
        raise RecordFault(f"{directory}: the record of the attempt that this one was forked from is gone")
    return tuple(round_ for round_ in record.rounds if round_.index <= index)


def find_fork(results: Path, point: ForkPoint, task: Task, number: int) -> ForkedState:
    """Return the state of another agent's attempt at a task that the attempt of the same number begins in.

    Args:
        results: The results directory that the other attempt is in.
        point: Which agent, and the round after which the state was left. Without a run it is the newest that counts.
        task: The task, whose contents have to be the same.
        number: The number of both attempts.

    Raises:
        UsageError: There is none, and the message says why and what to do.
        RecordFault: A record cannot be read.
    """
    names = [round_.name for round_ in task.rounds]
    return _Finder(results, point, task.name, content_hash(task.directory), names).find(number)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Finds states at one task; see :func:`find_fork`."""

    results: Path
    point: ForkPoint
    task: str
    task_hash: str
    rounds: Sequence[str]
    """The names of the task's rounds."""

    @property
    def index(self) -> int:
        """The place of the round after which attempts are forked, from 1; raises UsageError where none comes after."""
        index = self.point.index_in(self.rounds)
        if index is None:
            raise UsageError(f"{self.task} has no such round; its rounds are {', '.join(self.rounds)}")
        if index == len(self.rounds):
            raise UsageError(f"{self.rounds[-1]} is the last round of {self.task}, and none is left to go on with")
        return index

    def find(self, number: int) -> ForkedState:
        """Return the state that the attempt of a number begins in."""
        index = self.index
        name = self.rounds[index - 1]
        whole = list(self._whole_chains(number))
        path, record = max(whole, key=lambda found: (len(found[1].rounds) == len(self.rounds), found[1].started))
        if record.task_hash != self.task_hash:
            raise UsageError(
                f"{path}: the files of {self.task} have changed since, so nothing could be compared; restore them, or "
                f"run {self.point.agent} anew"
            )
        round_ = next((each for each in record.rounds if each.index == index), None)
        if round_ is None or round_.verdict is None or round_.outcome == "error":
            why = f": {round_.cause.partition(chr(10))[0]}" if round_ is not None and round_.cause else ""
            raise UsageError(f"{path}: there is no verdict on {name}, which that attempt has not reached{why}")
        kept = AttemptDirectory(path).read_snapshot(name)
        if kept is None:
            with_files = [each for each, _ in whole if AttemptDirectory(each).read_snapshot(name) is not None]
            run = f", or fork from {self.point.label}@{with_files[-1].parent.name}" if with_files else ""
            raise UsageError(
                f"{path}: the files that {name} was left with were not kept; run {self.point.agent} anew with "
                f"--evocode-snapshots, which keeps none where the image has a VOLUME or there is a compose file{run}"
            )
        outcomes = {each.round: each.outcome for each in record.rounds if each.index <= index}
        source = ForkSource(
            point=self.point.label,
            agent=record.agent,
            made_by=record.made_by,
            run=path.parent.name,
            attempt=number,
            round=name,
            index=index,
            snapshot=kept.reference,
            outcomes=outcomes,
        )
        return ForkedState(source, kept, path)

    def _whole_chains(self, number: int) -> Iterator[tuple[Path, AttemptRecord]]:
        """Yield the attempts of a number that began at the task's first round and have ended, in the order of runs.

        Raises UsageError where there are none.
        """
        found, why = False, ""
        for path in self._attempts(number):
            record = AttemptDirectory(path).read_attempt()
            if record is None:
                why = f"{path}: it has not ended; continue it with --evocode-resume={path.parent.name}"
            elif record.mode == "single-round":
                why = f"{path}: its rounds were run each by itself, and do not continue one another"
            elif record.start is not None:
                why = f"{path}: it began later itself ({record.start}), and only whole chains can be forked from"
            elif record.rounds and all(each.unscored is not None for each in record.rounds):
                why = f"{path}: it never started"
            elif not self.point.run and self._is_excluded(path.parent.name):
                why = f"{path}: its run is excluded; name the run, {self.point.label}@{path.parent.name}, or include it"
            else:
                found = True
                yield path, record
        if not found:
            raise UsageError(why)

    def _attempts(self, number: int) -> list[Path]:
        """Return the directories of the attempts of a number, in the order of runs; raises UsageError without any."""
        jobs = self.results / self.task / "harbor_jobs"
        agents = sorted(path.name for path in jobs.glob("*") if path.is_dir())
        if self.point.agent not in agents:
            there_are = f"; there are attempts by {', '.join(agents)}" if agents else ""
            raise UsageError(f"{self.results} has no attempt at {self.task} by {self.point.agent}{there_are}")
        runs = sorted(path for path in (jobs / self.point.agent).glob(self.point.run or "*") if path.is_dir())
        if not runs:
            raise UsageError(f"{self.results} has no run {self.point.run} by {self.point.agent} at {self.task}")
        every = [path for run in runs for path in run.glob(f"{self.task}__a*") if path.is_dir()]
        found = [path for path in every if path.name == f"{self.task}__a{number}"]
        if not found:
            numbers = sorted({int(path.name.rpartition("__a")[2]) for path in every})
            raise UsageError(
                f"{self.point.agent} has no attempt {number} at {self.task}, whose state that of the same number goes "
                f"on from; it has {', '.join(map(str, numbers)) or 'none'}; ask for no more --evocode-attempts"
            )
        return found

    def _is_excluded(self, run: str) -> bool:
        with contextlib.suppress(RecordFault, OSError):  # Without its record nothing says so.
            return read_run(self.results / "runs" / f"{run}.json").excluded
        return False
