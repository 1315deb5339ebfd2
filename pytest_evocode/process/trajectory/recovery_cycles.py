"""Recovery cycles: from a failure that the product caused to the run in which the same command passes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise

from pytest_evocode.process.trajectory.events import CommandRun, FileEdit, FileRead, RoundActivity

Region = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class RepairAttempt:
    """What was tried between two runs of the failing command; ``edits`` may be none."""

    edits: tuple[FileEdit, ...]
    after: int
    """The ``step_id`` of the run before; what comes after it belongs to the attempt."""
    through: int
    """That of the run that showed whether it helped, or of the last edit where there was none."""
    passed: bool

    @property
    def regions(self) -> tuple[Region, ...]:
        """Files and lines that were touched, as they were before; whole files where the lines are not known."""
        return tuple(
            (edit.path, *span)
            for edit in self.edits
            for span in ([span for hunk in edit.hunks for span in hunk.spans] or [(0, sys.maxsize)])
        )


@dataclass(frozen=True, slots=True)
class RecoveryCycle:
    """One recovery: the failure it began with, what was tried, and whether it came to an end."""

    failure: CommandRun
    attempts: tuple[RepairAttempt, ...]
    recovered: bool

    @property
    def strategies(self) -> int:
        """How many attempts changed something that none before them had changed."""
        distinct: list[RepairAttempt] = []
        for attempt in self.attempts:
            if attempt.edits and not any(same_strategy(attempt, other) for other in distinct):
                distinct.append(attempt)
        return len(distinct)


def same_strategy(one: RepairAttempt, other: RepairAttempt) -> bool:
    """Whether two attempts touch the same hunks: each region of either overlaps one of the other."""
    first, second = one.regions, other.regions
    return all(any(_overlap(a, b) for b in second) for a in first) and all(
        any(_overlap(a, b) for a in first) for b in second
    )


def _overlap(one: Region, other: Region) -> bool:
    return one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]


def find_cycles(activity: RoundActivity) -> list[RecoveryCycle]:
    """The recovery cycles of a round, in the order in which they began.

    A cycle begins at a build, a test run or a program that the product made fail. It ends when the same command
    passes, or the whole suite where it was a test. Test runs that fail while one is under way belong to it, whatever
    they select, and so do builds.
    """
    families: dict[str, list[CommandRun]] = {}
    for run in activity.runs:
        if run.passed is not None:
            families.setdefault(run.key if run.purpose == "program" else run.purpose, []).append(run)
    cycles = [cycle for runs in families.values() for cycle in _cycles(activity, runs)]
    return sorted(cycles, key=lambda cycle: cycle.failure.at)


def _cycles(activity: RoundActivity, runs: Sequence[CommandRun]) -> Iterator[RecoveryCycle]:
    under_way: list[CommandRun] = []
    for run in runs:
        if not run.passed:
            if run.failure == "product":
                under_way.append(run)
        elif under_way and (run.whole or any(run.key == failed.key for failed in under_way)):
            yield _cycle(activity, [*under_way, run])
            under_way = []
    if under_way:
        yield _cycle(activity, under_way)


def _cycle(activity: RoundActivity, runs: Sequence[CommandRun]) -> RecoveryCycle:
    attempts = [
        RepairAttempt(_edits(activity, before.at, after.at), before.step, after.step, bool(after.passed))
        for before, after in pairwise(runs)
    ]
    last = runs[-1]
    if not last.passed and (rest := _edits(activity, last.at, None)):
        attempts.append(RepairAttempt(rest, last.step, rest[-1].step, False))
    return RecoveryCycle(runs[0], tuple(attempts), bool(last.passed))


def _edits(activity: RoundActivity, begin: int, end: int | None) -> tuple[FileEdit, ...]:
    return tuple(edit for edit in activity.product_edits if edit.at > begin and (end is None or edit.at <= end))


def wasted_tokens(
    activity: RoundActivity, cycles: Sequence[RecoveryCycle], working: AbstractSet[int]
) -> tuple[int, int] | None:
    """Tokens of steps in failed recovery attempts, and of all steps; None where one is unknown.

    Only ``working`` steps count, on either side.
    """
    failed = [attempt for cycle in cycles for attempt in cycle.attempts if not attempt.passed]
    wasted = total = 0
    for step in working:
        tokens = activity.tokens.get(step)
        if tokens is None:
            return None
        total += tokens
        wasted += tokens if any(attempt.after < step <= attempt.through for attempt in failed) else 0
    return (wasted, total) if total else None


def working_steps(activity: RoundActivity, verifying: AbstractSet[str]) -> set[int]:
    """The steps that the task took: padding must not dilute what was wasted.

    They are those that read a file for the first time, changed the source or a test file that can fail (``verifying``),
    ran something for the first time since such a change, or ran something that failed.
    """
    steps: set[int] = set()
    seen: set[str] = set()
    has_run = False
    for signal in sorted((*activity.reads, *activity.edits, *activity.runs), key=lambda each: each.at):
        if isinstance(signal, FileRead):
            counts = signal.path not in seen
            seen.add(signal.path)
        elif isinstance(signal, FileEdit):
            counts = signal.role == "source" or signal.path in verifying
            has_run = has_run and not counts
        else:
            counts = not (has_run and isinstance(signal, CommandRun) and signal.passed)
            has_run = True
        if counts:
            steps.add(signal.step)
    return steps
