"""Recovery efficiency: how often did the product fail, how varied were the repairs, and what did they cost?

A recovery cycle goes from a failure caused by the product to the run in which the same command passes.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from math import inf
from statistics import median
from typing import Literal

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured
from pytest_evocode.process.tests_written.code_elements import WrittenTests
from pytest_evocode.process.trajectory.events import CommandRun, FileEdit, FileRead, RoundActivity
from pytest_evocode.process.trajectory.failure_causes import FailureCause

#: RigorBench's parameter lambda.
DECAY = 0.2
#: So many times the median of a round's steps is the most that one step counts for, lest it hide what others wasted.
MOST_TOKENS = 2

Region = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class RepairAttempt:
    """What the agent tried between two runs of the failing command."""

    edits: tuple[FileEdit, ...]
    """May be empty."""
    after: int
    """The ``step_id`` of the run before the attempt."""
    through: int
    """The ``step_id`` of the run that showed whether it helped, or of the last edit if there was none."""
    passed: bool

    @property
    def _of_source(self) -> Sequence[FileEdit]:
        return [edit for edit in self.edits if edit.role == "source"] or self.edits

    @property
    def _changing(self) -> Sequence[FileEdit]:
        return [edit for edit in self._of_source if not edit.hunks or any(hunk.removed for hunk in edit.hunks)]

    @property
    def only_adds(self) -> bool:
        """Whether no old line was changed."""
        return not self._changing

    @property
    def regions(self) -> tuple[Region, ...]:
        """The old lines of the source that were changed, by file; whole files where the lines are unknown.

        Those of tests where no source was changed, and the places of new lines where no old one was: what is added
        beside the same change makes no other attempt of it.
        """
        return tuple(
            (edit.path, *span)
            for edit in self._changing or self._of_source
            for span in ([span for hunk in edit.hunks for span in hunk.spans] or [(0, sys.maxsize)])
        )


@dataclass(frozen=True, slots=True)
class RecoveryCycle:
    """A failure, what was tried to repair it, and whether that succeeded."""

    failure: CommandRun
    attempts: tuple[RepairAttempt, ...]
    recovered: bool

    @property
    def strategies(self) -> int:
        """The number of attempts that changed something that no earlier one had changed."""
        distinct: list[RepairAttempt] = []
        for attempt in self.attempts:
            if attempt.edits and not any(same_strategy(attempt, other) for other in distinct):
                distinct.append(attempt)
        return len(distinct)


def recovery(activity: RoundActivity, tests: WrittenTests) -> dict[str, Measure]:
    """Return f(RAC), SD and 1 - TWR."""
    if not has_run(activity):
        unmeasured = not_measured("nothing was built, tested or started after an edit")
        return {"f(RAC)": unmeasured, "SD": unmeasured, "1-TWR": unmeasured}
    cycles = find_cycles(activity)
    evidence = tuple(_begun(cycle) for cycle in cycles) + _not_counted(activity)
    nothing = measured(1.0, "nothing that the product caused has failed")
    rac = f"RAC = {len(cycles)}" if cycles else nothing.reason
    found = {
        "f(RAC)": measured(recovery_decay(len(cycles)), rac, evidence),
        "SD": _diversity(cycles) if cycles else nothing,
        "1-TWR": _economy(activity, cycles, tests) if cycles else nothing,
    }
    return {name: as_claimed(each, activity.runs) for name, each in found.items()}


def as_claimed(measure: Measure, runs: Sequence[CommandRun]) -> Measure:
    """Return a measure that rests on how some commands went, as a claim where only the agent's program says that."""
    is_claimed = measure.value is not None and any(run.told for run in runs)
    return measure.model_copy(update={"certainty": "claimed"}) if is_claimed else measure


def recovery_decay(cycles: int) -> float:
    """Return ``1 / (1 + 0.2 RAC)``.

    >>> [round(recovery_decay(cycles), 3) for cycles in (0, 1, 2, 5)]
    [1.0, 0.833, 0.714, 0.5]
    """
    return 1 / (1 + DECAY * cycles)


def _begun(cycle: RecoveryCycle) -> Evidence:
    ending = "recovered" if cycle.recovered else "not recovered"
    return cycle.failure.evidence(f"{cycle.failure.purpose} failed, {len(cycle.attempts)} attempts, {ending}")


def _not_counted(activity: RoundActivity) -> tuple[Evidence, ...]:
    causes = ((run, cause_of(run, activity)) for run in activity.runs if run.passed is False)
    return tuple(run.evidence(f"does not count: {cause}") for run, cause in causes if cause != "product")


def has_run(activity: RoundActivity) -> bool:
    """Return whether anything was built, tested or started after the first edit of use."""
    begun = _begin(activity)
    return any(run.at >= begun and run.passed is not None and _is_of_use(run, activity) for run in activity.runs)


def _is_of_use(run: CommandRun, activity: RoundActivity) -> bool:
    """Return whether a run is not just of tests that cannot fail, or of a scratch script."""
    words = {word.removeprefix("./").partition("::")[0] for word in run.key.split()}
    named = {edit.path for edit in activity.product_edits if edit.path in words}
    return not named or any(activity.is_used(path) for path in named)


def _begin(activity: RoundActivity) -> float:
    return min((edit.at for edit in activity.working_edits), default=inf)


def cause_of(run: CommandRun, activity: RoundActivity) -> FailureCause | Literal["the state before"]:
    """Return why a run failed, by its output and by what the round shows.

    What fails before the first edit of a round is the state that the agent was given. So are tests that failed then and
    never passed in the round, such as those that need what the environment lacks. A script that the agent wrote and
    that nothing uses is a scratch script.
    """
    if run.at < _begin(activity):
        return "the state before"
    failing = {name for name, passed in run.tests.items() if not passed}
    if failing and failing <= _given_failures(activity):
        return "the state before"
    if run.purpose == "program" and _is_scratch(run, activity):
        return "scratch"
    return run.failure or "product"


def _given_failures(activity: RoundActivity) -> set[str]:
    begun = _begin(activity)
    given = {name for run in activity.runs if run.at < begun for name, passed in run.tests.items() if not passed}
    mended = {name for run in activity.runs if run.at >= begun for name, passed in run.tests.items() if passed}
    whole = any(run.whole and run.passed and run.at >= begun for run in activity.runs)
    return set() if whole else given - mended


def _is_scratch(run: CommandRun, activity: RoundActivity) -> bool:
    words = {word.removeprefix("./") for word in run.key.split()}
    return any(edit.path in words and not activity.is_used(edit.path) for edit in activity.edits)


def _diversity(cycles: Sequence[RecoveryCycle]) -> Measure:
    attempts = sum(len(cycle.attempts) for cycle in cycles)
    distinct = sum(cycle.strategies for cycle in cycles)
    evidence = tuple(
        edit.evidence(f"attempt {number} after step {cycle.failure.step}, {'passed' if attempt.passed else 'failed'}")
        for cycle in cycles
        for number, attempt in enumerate(cycle.attempts, 1)
        for edit in attempt.edits
    )
    if not attempts:
        return measured(0.0, "a failure was left as it was", evidence)
    return measured(distinct / attempts, f"{distinct} distinct strategies in {attempts} attempts", evidence)


def _economy(activity: RoundActivity, cycles: Sequence[RecoveryCycle], tests: WrittenTests) -> Measure:
    tokens = wasted_tokens(activity, cycles, working_steps(activity, tests.verifying_paths))
    if tokens is None:
        return not_measured("the tokens of each step were not recorded")
    wasted, total = tokens
    return measured(1 - wasted / total, f"{wasted} of {total} tokens in attempts that failed")


def same_strategy(one: RepairAttempt, other: RepairAttempt) -> bool:
    """Return whether two attempts change the same places: each region of either overlaps one of the other.

    Where one of them only adds lines, one region is enough, as more can be added anywhere.
    """
    first, second = one.regions, other.regions
    found = [any(_overlap(a, b) for b in second) for a in first]
    found += [any(_overlap(a, b) for a in first) for b in second]
    return any(found) if one.only_adds or other.only_adds else all(found)


def _overlap(one: Region, other: Region) -> bool:
    return one[0] == other[0] and one[1] <= other[2] and other[1] <= one[2]


def find_cycles(activity: RoundActivity) -> list[RecoveryCycle]:
    """Return the recovery cycles of a round, in the order in which they began.

    A cycle begins when a build, a test run or a program fails because of the product. It ends when the same command
    passes or, for tests and builds, when a run of all tests does. Further failing test runs belong to the cycle that is
    under way, whichever tests they select; the same holds for builds.
    """
    families: dict[str, list[CommandRun]] = {}
    for run in activity.runs:
        if run.passed is not None:
            families.setdefault(run.key if run.purpose == "program" else run.purpose, []).append(run)
            if run.purpose == "test" and run.whole and run.passed and "build" in families:
                families["build"].append(run)  # What passes all tests has been built.
    cycles = [cycle for runs in families.values() for cycle in _cycles(activity, runs)]
    return sorted(cycles, key=lambda cycle: cycle.failure.at)


def _cycles(activity: RoundActivity, runs: Sequence[CommandRun]) -> Iterator[RecoveryCycle]:
    under_way: list[CommandRun] = []
    for run in runs:
        if not run.passed:
            if cause_of(run, activity) == "product":
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
    return tuple(edit for edit in activity.working_edits if edit.at > begin and (end is None or edit.at <= end))


def wasted_tokens(
    activity: RoundActivity, cycles: Sequence[RecoveryCycle], working: AbstractSet[int]
) -> tuple[int, int] | None:
    """Return the tokens of steps in failed repair attempts, and of all steps; None where one is unknown.

    Only ``working`` steps are counted in both, each with at most :data:`MOST_TOKENS` times their median.
    """
    failed = [attempt for cycle in cycles for attempt in cycle.attempts if not attempt.passed]
    spent = {step: tokens for step in working if (tokens := activity.tokens.get(step)) is not None}
    if len(spent) < len(working) or not spent:
        return None
    most = int(MOST_TOKENS * median(spent.values()))
    wasted = total = 0
    for step, tokens in spent.items():
        tokens = min(tokens, most)
        total += tokens
        wasted += tokens if any(attempt.after < step <= attempt.through for attempt in failed) else 0
    return (wasted, total) if total else None


def working_steps(activity: RoundActivity, verifying: AbstractSet[str]) -> set[int]:
    """Return the steps that did something for the task, so that padding does not dilute what was wasted.

    These are the steps that read a file of the project for the first time, changed the source or a test file that can
    fail (``verifying``), ran something for the first time since such a change, or ran something that failed.
    """
    steps: set[int] = set()
    seen: set[str] = set()
    has_run = False
    working = set(map(id, activity.working_edits))
    for event in sorted((*activity.reads, *activity.edits, *activity.runs), key=lambda each: each.at):
        if isinstance(event, FileRead):
            counts = event.path not in seen and not event.path.startswith(("/", "~", "../"))
            seen.add(event.path)
        elif isinstance(event, FileEdit):
            counts = id(event) in working and (event.role == "source" or event.path in verifying)
            has_run = has_run and not counts
        else:
            counts = not (has_run and isinstance(event, CommandRun) and event.passed)
            has_run = True
        if counts:
            steps.add(event.step)
    return steps
