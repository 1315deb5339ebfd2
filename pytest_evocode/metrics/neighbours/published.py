"""Metrics of other benchmarks from our records, each with its source and its mapping."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.neighbours.round_cases import Ids, RoundCases, TaskCases, cases_of, mean, mean_over_tasks

_EPSILON = 1  # Added to both sides of the precision, as in the released code.


@dataclass(frozen=True, slots=True)
class Milestones:
    """EvoClaw's recall, precision and F1 of milestones, 0 to 100; the mean of F1 is no function of the other two.

    Source: *EvoClaw: Evaluating AI Agents on Continuous Software Evolution*, arXiv 2603.13428, and its released code,
    ``harness/e2e/collect_results.py`` of github.com/EvoClaw-Bench/EvoClaw (``calculate_precision_recall``,
    ``calculate_score_reliable``, ``compute_repo_summary``), which this follows.

    ========================================  ==========================================================================
    there                                     here
    ========================================  ==========================================================================
    repository, its itinerary                 task
    milestone                                 round
    tests fail-to-pass and none-to-pass       the cases that a round is the first to require
    tests pass-to-pass                        the cases that it still requires of earlier rounds
    N_broken: pass-to-pass failed or missing  those that do not pass, also where this attempt had never passed them
    a milestone that did not compile, or ran  a round in which no case ran: 0 in all three
    no test, or was not run
    ========================================  ==========================================================================

    Lost in the mapping: there, which tests belong to a milestone is known from running the reference before and after
    it; here, it is known where the results of ``oracle`` are among those that are read, and otherwise from all attempts
    at the same contents of the task. Milestones there form a graph, of which agents may take another way; rounds here
    are a chain.
    """

    recall: float
    precision: float
    f1: float


def milestone(target: int, fixed: int, broken: int) -> Milestones:
    """Return the values of one milestone.

    ``recall = fixed / target``, 1 where nothing new is asked for; ``precision = (fixed + 1) / (fixed + broken + 1)``;
    F1 is their harmonic mean.

    Args:
        target: How many tests are to be made to pass.
        fixed: How many of them pass.
        broken: How many tests that passed before do not.

    >>> milestone(target=4, fixed=3, broken=0), milestone(target=0, fixed=0, broken=1).precision
    (Milestones(recall=75.0, precision=100.0, f1=85.71428571428571), 50.0)
    """
    recall = fixed / target if target else 1.0
    precision = (fixed + _EPSILON) / (fixed + broken + _EPSILON)
    f1 = 2 * precision * recall / (precision + recall)  # The precision is above 0.
    return Milestones(100 * recall, 100 * precision, 100 * f1)


def milestone_of_round(round_: RoundCases) -> Milestones | None:
    """Return the values of a round; 0 where none of its cases ran, None where it is not known what it requires."""
    if not round_.ran:
        return Milestones(0.0, 0.0, 0.0)
    if not round_.told:
        return None
    return milestone(len(round_.new), len(round_.new & round_.passed), len(round_.broken))


def milestones(tasks: Sequence[TaskCases]) -> Milestones | None:
    """Return the means over the rounds of each task, then over tasks; None without any task."""
    recall, precision, f1 = (
        mean_over_tasks(tasks, lambda each, name=name: getattr(milestone_of_round(each), name, None))  # type: ignore[misc]
        for name in ("recall", "precision", "f1")
    )
    return None if recall is None or precision is None or f1 is None else Milestones(recall, precision, f1)


@dataclass(frozen=True, slots=True)
class ZeroRegression:
    """Of the attempts in which a suite gave any verdict, those without a regression."""

    without: int
    of: int
    percent: float
    """The mean over tasks of the share of each task's attempts, 0 to 100."""


def normalized_change(passed: int, base: int, target: int) -> float:
    """Return the normalized change, -1 to 1, of a state in which ``passed`` of ``target`` tests pass, ``base`` before.

    >>> normalized_change(9, 4, 14), normalized_change(3, 4, 14), normalized_change(4, 4, 4)
    (0.5, -0.25, 0.0)
    """
    if passed == base:
        return 0.0
    return (passed - base) / (target - base if passed > base else base)


def evo_score_of(changes: Sequence[float | None], gamma: float = 1.0) -> float | None:
    """Return the EvoScore of one task, -1 to 1, from the normalized changes of its iterations in order.

    One of which the change is None is left out; None without any other.

    >>> evo_score_of([0.5, 1.0]), evo_score_of([0.5, 1.0], gamma=2), evo_score_of([0.5, None])
    (0.75, 0.8333333333333334, 0.5)
    """
    known = [(gamma**place, change) for place, change in enumerate(changes, 1) if change is not None]
    total = sum(weight for weight, _ in known)
    return sum(weight * change for weight, change in known) / total if known else None


Base = dict[tuple[str, int], Ids]
"""What passes before an agent has done anything, by task and round index."""


def base_of(untouched: Grid | None) -> Base:
    """Return what the agent ``nop`` passes; empty without its rounds."""
    found: Base = {}
    for task in untouched.tasks if untouched is not None else ():
        for index in task.indices:
            suites = (cases_of(attempt.get(index)) for attempt in task.attempts.values())
            cases = next((each for each in suites if each), ())
            found[task.task, index] = frozenset(case.id for case in cases if case.status == "passed")
    return found


def change_of_round(task: str, round_: RoundCases, base: Base) -> float | None:
    """Return the normalized change of a round, -100 to 100; None where it is not known what it requires."""
    if not round_.judged or not round_.required:
        return 0.0
    if round_.ran and not round_.told:
        return None
    before = base.get((task, round_.index), frozenset()) & round_.required
    return 100 * normalized_change(len(round_.passed), len(before), len(round_.required))


def evo_score(tasks: Iterable[TaskCases], base: Base | None = None, gamma: float = 1.0) -> float | None:
    """Return SWE-CI's EvoScore, -100 to 100: the mean over the attempts at a task, then over tasks; None without any.

    Source: *SWE-CI: Evaluating Agent Capabilities in Maintaining Codebases via Continuous Integration*, arXiv
    2603.03823, section 2, whose equation 3 is the EvoScore, and its released code,
    ``src/swe_ci/benchmark/summarize.py`` of github.com/SKYLENAGE-AI/SWE-CI (``metrics_func``), which this follows. The
    normalized change of an iteration after which n of the target's n* tests pass, n_0 of them before the first, is ``(n
    - n_0) / (n* - n_0)``, and ``(n - n_0) / n_0`` where n is less than n_0. The EvoScore of a task is the mean of its
    iterations' changes a_i, weighted by gamma^i; gamma is 1 in the released code, and at least 1 in the paper.

    =============================================  =====================================================================
    there                                          here
    =============================================  =====================================================================
    iteration                                      round
    the target's tests, the same in each           the cases that the round requires: its own suite
    n_0: what passes in the code before the first  what ``nop`` passes of that suite, where its results are among those
                                                   that are read; otherwise 0
    a task that ended early repeats its last n     a round without a verdict is no change: 0
    a task without regression: n never falls       no case that passed is ever lost while it is still required
    =============================================  =====================================================================

    Lost in the mapping: an agent there works towards one target for many iterations, here towards the next request in
    each, so that an EvoScore here tells how well each request was met and not how fast one target was approached.
    Without n_0 and with gamma 1 it is the Case Score over the cases that a round requires. The number of passing tests
    cannot be compared from round to round where suites grow and requirements are retired; cases can, and a gain then
    hides no loss, as it does where only n is looked at.
    """
    return mean(
        mean(
            evo_score_of([change_of_round(task.task, each, base or {}) for each in rounds], gamma)
            for rounds in task.attempts
            if rounds
        )
        for task in tasks
    )


def zero_regression(tasks: Iterable[TaskCases]) -> ZeroRegression | None:
    """Return the zero-regression rate; None where no suite gave a verdict.

    An attempt that passes nothing has nothing to lose, and counts as one without a regression, as there.
    """
    shares, without, of = [], 0, 0
    for task in tasks:
        kept = [
            not any(each.lost for each in rounds) for rounds in task.attempts if any(each.judged for each in rounds)
        ]
        if kept:
            shares.append(sum(kept) / len(kept))
            without, of = without + sum(kept), of + len(kept)
    return ZeroRegression(without, of, 100 * sum(shares) / len(shares)) if shares else None


def fix_rate_of(target: int, fixed: int, regressions: int) -> float | None:
    """Return the Fix Rate of one instance, 0 to 100; None where there is nothing to fix.

    Args:
        target: How many fail-to-pass tests there are.
        fixed: How many of them pass.
        regressions: How many pass-to-pass tests fail.

    >>> fix_rate_of(4, 3, 0), fix_rate_of(4, 4, 1), fix_rate_of(0, 0, 0)
    (75.0, 0.0, None)
    """
    if not target:
        return None
    return 0.0 if regressions else 100 * fixed / target


def fix_rate_of_round(round_: RoundCases) -> float | None:
    """Return the Fix Rate of a round; 0 where none of its cases ran, None where it is not known what it requires."""
    if not round_.told:
        return None if round_.ran else 0.0
    return fix_rate_of(len(round_.new), len(round_.new & round_.passed), len(round_.lost))


def fix_rate(tasks: Sequence[TaskCases]) -> float | None:
    """Return SWE-EVO's Fix Rate: the mean over the rounds of each task, then over tasks; None without any task.

    Source: *SWE-EVO: Benchmarking Coding Agents in Long-Horizon Software Evolution Scenarios*, arXiv 2512.18470, and
    the authors' script ``SWE-bench/evaluate_instance.py``, read in the fork github.com/tao2years/SWE-EVO, which this
    follows: of an instance in which no pass-to-pass test fails, the share of the fail-to-pass tests that pass; 0 of one
    in which any fails, and of one without a result.

    ==================================  ================================================================================
    there                               here
    ==================================  ================================================================================
    instance: one release               round: one request
    the code that the agent is given    what the same attempt left in the round before
    tests fail-to-pass                  the cases that the round is the first to require
    tests pass-to-pass                  the cases of earlier rounds that passed when this attempt last ran them
    ==================================  ================================================================================

    Lost in the mapping: an instance there begins with the code of the reference, so that each of its tests is one of
    the two; here a case that the attempt failed in an earlier round and still fails is neither, and is not held against
    this round again. A round that asks for nothing new, which SWE-EVO does not have, is left out.
    """
    return mean_over_tasks(tasks, fix_rate_of_round)


@dataclass(frozen=True, slots=True)
class CodeQuality:
    """The numbers of one round, or means of several."""

    verbosity: float
    """0 to 100, large for much slop; ``erosion`` likewise."""
    erosion: float
    lines: float
    """Source lines, without blank ones and comments."""


@dataclass(frozen=True, slots=True)
class CodeDecay:
    """SlopCodeBench's verbosity and erosion: how the code of one agent is, and how it changes in an attempt.

    Source: *SlopCodeBench: Benchmarking How Coding Agents Degrade Over Long-Horizon Iterative Tasks*, arXiv 2603.24755,
    and ``docs/metrics-reference.md`` of github.com/SprocketLab/slop-code-bench: both numbers come directly from the
    report of the program ``scb-check``, of which that benchmark pins release 0.1.3. Verbosity is the share of the
    source lines that a rule for slop flags or that are in a clone; erosion is the share of all functions' mass,
    ``complexity * sqrt(lines)``, that is in functions with a cyclomatic complexity above 10. Here they come from the
    same program, called with the same options; nothing of it is made again.

    ======================  ============================================================================================
    there                   here
    ======================  ============================================================================================
    checkpoint              round
    its snapshot            the text files of the working directory as the agent left them, what the task brought too
    trajectory              attempt
    mean over checkpoints   mean over the rounds of an attempt, then over attempts, then over tasks
    ======================  ============================================================================================

    Lost in the mapping: an agent there begins with nothing, so that all code is its own; a task here may bring code,
    tests too, which is in the numbers. So the numbers of a round say less than how they change, and than those of
    another agent at the same task.
    """

    quality: CodeQuality
    by_round: dict[int, CodeQuality]
    verbosity_rises: float | None
    """The share of the attempts, 0 to 100, that end with more verbosity than their first round left; None where no
    attempt has two rounds. ``erosion_rises`` likewise.
    """
    erosion_rises: float | None
    rounds: int
    """How many rounds could be measured."""


Attempts = Mapping[str, Sequence[Mapping[int, CodeQuality]]]
"""The rounds that could be measured, by index, of the attempts at each task."""


def quality_of(report: Mapping[str, Any]) -> CodeQuality | None:
    """Return the numbers of a report of ``scb-check``; None where it found no line of code.

    >>> quality_of({"verbosity": 0.25, "erosion": 0.5, "total_loc": 8})
    CodeQuality(verbosity=25.0, erosion=50.0, lines=8)
    """
    if not report["total_loc"]:
        return None
    return CodeQuality(100 * report["verbosity"], 100 * report["erosion"], report["total_loc"])


def code_decay(attempts: Attempts) -> CodeDecay | None:
    """Return what the rounds of one agent come to; None where none could be measured."""
    whole = _mean_quality(
        [[_mean_quality([[each] for each in rounds.values()]) for rounds in task] for task in attempts.values()]
    )
    if whole is None:
        return None
    indices = sorted({index for task in attempts.values() for rounds in task for index in rounds})
    by_round = {
        index: _mean_quality([[rounds.get(index) for rounds in task] for task in attempts.values()])
        for index in indices
    }
    changes = [
        (rounds[min(rounds)], rounds[max(rounds)]) for task in attempts.values() for rounds in task if len(rounds) > 1
    ]
    return CodeDecay(
        whole,
        {index: each for index, each in by_round.items() if each is not None},
        mean(100.0 * (last.verbosity > first.verbosity) for first, last in changes),
        mean(100.0 * (last.erosion > first.erosion) for first, last in changes),
        sum(len(rounds) for task in attempts.values() for rounds in task),
    )


def _mean_quality(groups: Iterable[Iterable[CodeQuality | None]]) -> CodeQuality | None:
    """Return the mean over groups of the mean over what each has; None where no group has anything."""
    found = [[each for each in group if each is not None] for group in groups]

    def of(name: str) -> float | None:
        return mean(mean(getattr(each, name) for each in group) for group in found)

    verbosity, erosion, lines = map(of, ("verbosity", "erosion", "lines"))
    return None if verbosity is None or erosion is None or lines is None else CodeQuality(verbosity, erosion, lines)
