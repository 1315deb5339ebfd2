"""Score the rounds of an attempt: every pillar and extended metric, from its activity to the process record."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars.abstention import abstention, false_abstention
from pytest_evocode.process.pillars.edits import atomicity, exploration
from pytest_evocode.process.pillars.extended import extended
from pytest_evocode.process.pillars.planning import planning
from pytest_evocode.process.pillars.recovery import has_run, recovery
from pytest_evocode.process.pillars.verification import assertion_density, verification
from pytest_evocode.process.protocols import ExecutedMeasures, Executor, Judge, JudgeMaterial, Judgement
from pytest_evocode.process.scores.rigor_score import PARTS, Pillar, RoundProcess, pillar
from pytest_evocode.process.tests_written import used_files, written_tests
from pytest_evocode.process.trajectory.events import RoundActivity
from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.process.trajectory.reader import RecordedRound, TaskContext, read_rounds
from pytest_evocode.results.records import Case
from pytest_evocode.tasks import Abstention, DeclaredRequirement

_NO_EDIT = "neither the product nor a test that can fail was changed"


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
    activities = read_rounds([recorded for recorded, _ in rounds], context)
    for activity, (_, declared) in zip(activities, rounds, strict=True):
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
            "tad": assertion_density(tests, executed.verification),
            "ee": exploration(activity, roles, tests),
        }
    extra = extended(activity, roles, declared.abstain, declared.cases, executed)
    material = JudgeMaterial(activity, declared.requirements, tests)
    judgements = _ask(judge, material, parts, extra) if judge is not None else {}
    return RoundProcess(
        round=activity.name,
        index=activity.index,
        edited=edited,
        ran=has_run(activity),
        pillars={name: pillar(name, parts[name]) if name in parts else _unmeasured(name) for name in PARTS},
        extended=extra,
        false_abstention=false_abstention(activity, declared.abstain),
        outcome=_outcome(declared),
        judge=judge.name if judge is not None else "",
        judgements=judgements,
    )


def _unmeasured(name: str) -> Pillar:
    return pillar(name, {part: not_measured(_NO_EDIT) for part in PARTS[name]})


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
