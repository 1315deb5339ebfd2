"""The check ``oracle``: every round passes with the reference solutions; and why one does not, in words for authors."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from pytest_evocode.checks.catalogue import CheckWarning
from pytest_evocode.checks.contradictions import explain_contradictions
from pytest_evocode.checks.played_attempt import PlayedAttempt, PlayedRound
from pytest_evocode.errors import CannotBeChecked
from pytest_evocode.results.records import Case
from pytest_evocode.results.rewards import contradiction, why_undecided
from pytest_evocode.tasks import Round, Task
from pytest_evocode.verifier import SuiteRun

_SHOWN_CASES = 5
_SHOWN_PATHS = 10
_NO_STATE = ("/tmp", "/var/tmp", "/logs", "/solution", "/root/.cache")
_NOT_THERE = (
    "Its environment is the image as built with all files that the solutions changed: have it need no running process, "
    "FIFO, device and set-id bit."
)


def oracle(attempt: PlayedAttempt, played_rounds: Sequence[PlayedRound]) -> list[str]:
    """Check that every round passes with the reference solutions, and that its cases say so, too."""
    runs = [(played.round, played.suite.result()) for played in played_rounds]
    problems = []
    for played, found in zip(played_rounds, explain_failures(attempt.context.task, runs), strict=True):
        problems += found or _against_its_cases(played)
        problems += [_NOT_THERE] if found and played.round.verify_in == "clean" else []
    return problems


def _against_its_cases(played: PlayedRound) -> list[str]:
    """Return how a verdict that is a pass contradicts its own cases; other flags of it are warnings."""
    verdict = played.suite.result().verdict
    assert verdict is not None
    odd, name = contradiction(verdict), played.round.name
    advice = "have test.sh make its reward of its cases"
    wrong = [f"{name} passes against its own cases: {odd}; {advice}"] if odd else []
    return [*wrong, *(CheckWarning(f"{name} passes, but {flag}") for flag in verdict.flags if flag != odd)]


def explain_failures(task: Task, runs: Sequence[tuple[Round, SuiteRun]]) -> Iterator[list[str]]:
    """Yield for each round why its suite does not pass with the reference solution, and nothing where it does.

    A case that fails in several rounds is told of in the first of them. One that an earlier round required, and that
    passed until then, may contradict the round's request, and the message says how to retire it.
    """
    passed: set[str] = set()
    failing_since: dict[str, str] = {}
    for round_, run in runs:
        cases = run.verdict.cases if run.verdict else ()
        failing_since = {case.id: failing_since.get(case.id, round_.name) for case in cases if case.failing}
        new = [case for case in cases if failing_since.get(case.id) == round_.name]
        regressions = [case for case in new if case.id in passed and case.origin != round_.name]
        passed.update(case.id for case in cases if case.status == "passed")
        why = why_not(run, [case for case in new if case not in regressions])
        yield (
            [
                f"{round_.name} does not pass: {why}",
                *explain_contradictions(task, round_, regressions, cases),
                *_failing_longer(round_.name, failing_since),
            ]
            if why
            else []
        )


def _failing_longer(name: str, failing_since: Mapping[str, str]) -> Iterator[str]:
    """Yield how many of a round's cases fail since which round before it."""
    for since, count in Counter(failing_since.values()).items():
        if since != name:
            yield f"  {count} {'fails' if count == 1 else 'fail'} since {since}"


def why_not(run: SuiteRun, told: Sequence[Case] | None = None) -> str:
    """Return why a suite does not pass, or an empty text where it does.

    ``told`` are the failing cases to name; None for all of them.
    """
    if run.verdict is None:
        return run.fault
    if run.verdict.passed:
        return ""
    if run.verdict.reward is None:
        return why_undecided(run.verdict.rewards)
    if run.verdict.timed_out:
        return f"the suite did not end within its limit: {run.hang}"
    failing = [case for case in run.verdict.cases if case.failing]
    shown = [
        f"  {case.id}: {(case.reason or case.actual or 'failed').splitlines()[0]}"
        for case in (failing if told is None else told)
    ]
    more = [f"  and {len(shown) - _SHOWN_CASES} more"] if len(shown) > _SHOWN_CASES else []
    head = (
        f"{len(failing)} of {len(run.verdict.cases)} cases failed"
        if failing
        else f"the reward is {run.verdict.reward:g}"
    )
    return "\n".join([head, *shown[:_SHOWN_CASES], *more, *run.verdict.flags])


def missing_state(attempt: PlayedAttempt, played: PlayedRound) -> str:
    """Return the line of task.toml that declares what a suite finds only because the solutions change it."""
    changed = [
        path
        for path in played.after.changed_paths([attempt.environment.workdir, *attempt.context.task.state, *_NO_STATE])
        if "__pycache__" not in path
    ]
    declared = [*attempt.context.task.state, *changed]
    while len(declared) > _SHOWN_PATHS and (deep := max(declared, key=lambda path: path.count("/"))).count("/") > 2:
        above = deep.rpartition("/")[0]
        declared = sorted({above, *(path for path in declared if not path.startswith(f"{above}/"))})
    return f"Declare what belongs to the work, in [metadata.evocode]: state = {json.dumps(declared)}"


def require_a_pass(played: PlayedRound) -> None:
    """Raise CannotBeChecked where the suite does not even pass with the solution."""
    if why_not(played.suite.result()):
        raise no_pass(played)


def no_pass(played: PlayedRound) -> CannotBeChecked:
    """Return why what rests on a pass with the reference solution cannot be checked."""
    why = why_not(played.suite.result()).splitlines()[0]
    return CannotBeChecked(f"{played.round.name} does not pass with its solution: {why}", told_by="oracle")
