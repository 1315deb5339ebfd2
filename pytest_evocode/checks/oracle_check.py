"""The check ``oracle``: every round passes with the reference solutions; and why one does not, in words for authors.

Cases of earlier rounds that a solution breaks are most often those whose ``retired=`` was forgotten; those that are
retired and that the solution still passes are retired by mistake, or it does not do what was asked for.
"""

from __future__ import annotations

import json
import re
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.checks.catalogue import CheckWarning, first_of
from pytest_evocode.checks.empty_stdin import where_stdin_is_read
from pytest_evocode.checks.played_attempt import PlayedAttempt, PlayedRound
from pytest_evocode.errors import CannotBeChecked
from pytest_evocode.results.records import Case
from pytest_evocode.results.rewards import contradiction
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.native import NativeTest
from pytest_evocode.verifier import SuiteRun
from pytest_evocode.verifier.script import SCRIPT, tail

_SHOWN_PATHS = 10
_COUNT = re.compile(r" \(\d+ cases\)$", re.MULTILINE)
"""How many cases a fault is of, which are more in later rounds."""
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
        problems += _where_stdin_is_read(attempt, played) if found else []
        problems += [_NOT_THERE] if found and _passes_in_whole_system(attempt, played) else []
        problems += [] if found else _retired_by_mistake(attempt, played)
    return problems


def _passes_in_whole_system(attempt: PlayedAttempt, played: PlayedRound) -> bool:
    return played.round.verify_in == "clean" and not why_not(attempt.run_again(played, played.after, carry="system"))


def _where_stdin_is_read(attempt: PlayedAttempt, played: PlayedRound) -> list[str]:
    """Return where a ``test.sh`` without a verdict reads its stdin, which it is run once more for."""
    round_, usual = played.round, played.suite.result()
    if round_.verify_in != "clean" or not round_.has_script or usual.verdict is not None:
        return []
    refused = attempt.run_again(played, played.after, readable_stdin=False).output
    told = where_stdin_is_read(usual.output, refused, SCRIPT, {"/tests": round_.tests})
    return [told] if told else []


def _against_its_cases(played: PlayedRound) -> list[str]:
    """Return how a verdict that is a pass contradicts its own cases; other flags of it are warnings."""
    verdict = played.suite.result().verdict
    assert verdict is not None
    odd, name = contradiction(verdict), played.round.name
    advice = "have test.sh make its reward of its cases"
    wrong = [f"{name} passes against its own cases: {odd}; {advice}"] if odd else []
    return [*wrong, *(CheckWarning(f"{name} passes, but {flag}") for flag in verdict.flags if flag != odd)]


def _retired_by_mistake(attempt: PlayedAttempt, played: PlayedRound) -> Iterator[CheckWarning]:
    """Yield a warning for each marker with cases that a round retires and that its reference solution still passes.

    They are run on what the solution left, beside the round's own suite, whose verdict they do not change.
    """
    task, round_ = attempt.context.task, played.round
    if round_.has_script or task.in_place or not any(test.retired == round_.name for test in task.tests):
        return
    verdict = attempt.run_suite(played.after, round_, retired=round_.name, pinned=None).verdict
    cases = verdict.cases if verdict else ()
    contradicted = [_declaration(task, case) for case in cases if case.failing]
    for marked in _by_marker(task, [case for case in cases if case.status == "passed"]):
        others = contradicted.count(marked.test) if marked.test else 0
        where = f"{marked.test.path}:{marked.test.line}" if marked.test else "the marker that gives it its requirement"
        yield CheckWarning(
            "\n".join(
                [
                    f"{round_.name} retires what its reference solution still passes:",
                    *first_of([f"  {case.id}" for case in marked.cases]),
                    f"  If {round_.name}'s request does not contradict it, it is still required: take "
                    f'retired="{round_.name}" out in {where}'
                    + (f", which has it for {others} that fail, too, and give it to those alone." if others else "."),
                    f"  If it does, the solution of {round_.name} does not do what is asked for: correct it.",
                ]
            )
        )


def explain_failures(task: Task, runs: Sequence[tuple[Round, SuiteRun]]) -> Iterator[list[str]]:
    """Yield for each round why its suite does not pass with the reference solution, and nothing where it does.

    A case that fails in several rounds is told of in the first of them. One that an earlier round required, and that
    passed until then, may contradict the round's request, and the message says how to retire it.
    """
    passed: set[str] = set()
    failing_since: dict[str, str] = {}
    faults: dict[str, str] = {}
    for round_, run in runs:
        cases = run.verdict.cases if run.verdict else ()
        failing_since = {case.id: failing_since.get(case.id, round_.name) for case in cases if case.failing}
        new = [case for case in cases if failing_since.get(case.id) == round_.name]
        regressions = [case for case in new if case.id in passed and case.origin != round_.name]
        passed.update(case.id for case in cases if case.status == "passed")
        missed = [case for case in new if case not in regressions]
        why = why_not(run, missed)
        if run.verdict is None and (earlier := faults.setdefault(_COUNT.sub("", why), round_.name)) != round_.name:
            yield [f"{round_.name} does not pass for the same reason as {earlier}"]
            continue
        yield (
            [
                f"{round_.name} does not pass: {why}",
                *_where_to_look(task, round_, missed),
                *explain_contradictions(task, round_, regressions, cases),
                *_failing_longer(round_.name, failing_since),
            ]
            if why
            else []
        )


def _where_to_look(task: Task, round_: Round, missed: Sequence[Case]) -> Iterator[str]:
    """Yield where the tests of cases are that fail and never passed, and how to see what they expect."""
    tests = filter(None, (_declaration(task, case) for case in missed))
    places = [*dict.fromkeys(f"{test.path}:{test.line}" for test in tests)]
    if places and round_.solution is not None:
        yield (
            f"  Correct the solution in {round_.solution}, or the {'test' if len(places) == 1 else 'tests'} at "
            f"{', '.join(places[:_SHOWN_PATHS])}. What was expected shows: pytest --evocode-agent=oracle "
            f"{shlex.quote(str(task.directory))} -k {round_.name}"
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
    if run.verdict.timed_out:
        return f"the suite did not end within its limit: {run.hang}"
    failing = [case for case in run.verdict.cases if case.failing]
    head = (
        f"{len(failing)} of {len(run.verdict.cases)} cases failed"
        if failing
        else f"the reward is {run.verdict.shown_reward}"
    )
    lines = first_of(_told(failing if told is None else told))
    if not failing and run.output.strip():  # A script without cases tells in its own words.
        lines = ["the last lines of its output:", tail(run.output)]
    return "\n".join([head, *run.verdict.flags, *lines] if not failing else [head, *lines, *run.verdict.flags])


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


@dataclass(frozen=True, slots=True)
class _Marked:
    """Cases of one requirement that one marker declares; ``test`` is None where the marker is not known."""

    requirement: str
    test: NativeTest | None
    since: str
    """The round that introduced the requirement."""
    cases: list[Case]


def explain_contradictions(
    task: Task, round_: Round, regressions: Sequence[Case], cases: Sequence[Case]
) -> Iterator[str]:
    """Yield for each requirement that a round's reference solution breaks since when it holds, and how to retire it.

    Args:
        task: The task.
        round_: The round whose suite failed.
        regressions: The cases of earlier rounds that passed before it and fail in it.
        cases: All cases of its suite.
    """
    for marked in _by_marker(task, regressions):
        what = f"requirement {marked.requirement}" if marked.requirement else "a case without a requirement"
        head = f"{what}, required since {marked.since}, passed before {round_.name} and fails now:"
        yield "\n".join([head, *first_of(_told(marked.cases)), _advice(task, round_, marked, cases)])


def _told(cases: Sequence[Case]) -> list[str]:
    return [f"  {case.id}: {(case.reason or case.actual or 'failed').splitlines()[0]}" for case in cases]


def _by_marker(task: Task, regressions: Sequence[Case]) -> Iterator[_Marked]:
    """Yield the cases with the same marker together, in the order in which the first of them comes."""
    introduced = {requirement.id: requirement.introduced for requirement in task.requirements}
    groups: dict[tuple[object, ...], _Marked] = {}
    for case in regressions:
        test = _declaration(task, case)
        key = (case.requirement, test.path, test.line) if test else (case.requirement or case.id,)
        since = introduced.get(case.requirement, case.origin)
        groups.setdefault(key, _Marked(case.requirement, test, since, [])).cases.append(case)
    yield from groups.values()


def _declaration(task: Task, case: Case) -> NativeTest | None:
    """Return where the requirement of a native suite's case is declared; None where that is not written out."""
    place, _, name = case.id.partition("::")
    round_ = next((each for each in task.rounds if each.name == place.partition("/")[0]), None)
    directory = round_.directory / "tests" if round_ else task.directory / "tests"
    path = directory / (place.partition("/")[2] if round_ else place)
    function = _function(name)
    of_it = [test for test in task.tests if test.requirement == case.requirement and test.round == case.origin]
    in_it = [test for test in of_it if test.path == path]
    named = [test for test in in_it if test.name == function]
    # A marker under a name of its own has no test; one that is inherited may be in another module.
    return next(iter([*named, *(test for test in (*in_it, *of_it) if test.requirement)]), None)


def _function(name: str) -> str:
    """Return the name of the function that a case runs.

    >>> _function("TestPrice::test_light[1::2]")
    'test_light'
    """
    return name.partition("[")[0].rpartition("::")[2]


def _advice(task: Task, round_: Round, marked: _Marked, cases: Sequence[Case]) -> str:
    """Return what to write where, if the request of the round contradicts the cases."""
    wrong = f"  If it does not, the solution of {round_.name} is wrong: correct it."
    may = f"  {round_.name}'s request may contradict it:"
    if round_.has_script:
        scripts = (path for place in reversed(round_.tests) if (path := place / "test.sh").is_file())
        script = next(scripts, "the test.sh of the verifier's image")
        return f"{may} have {script} leave it out from {round_.name} on.\n{wrong}"
    may += f' retire it with retired="{round_.name}".'
    if (test := marked.test) is None:
        return f"{may} Write that into the marker that gives it its requirement.\n{wrong}"
    kind = f'kind="{test.kind}", ' if test.kind else ""
    marker = f'pytest.mark.requirement("{test.requirement or "ID"}", {kind}retired="{round_.name}")'
    where, sign = _where(task, test, marked.cases, cases)
    return f"{may} {where} write:\n    {sign}{marker}\n{wrong}"


def _where(task: Task, test: NativeTest, failing: Sequence[Case], cases: Sequence[Case]) -> tuple[str, str]:
    """Return the place of the marker, or of one more where it holds for what passes; and ``@`` for a decorator."""
    functions = {_function(case.id.partition("::")[2]) for case in failing}
    declared = {each.name for each in task.tests if (each.path, each.line) == (test.path, test.line) and each.name}
    if not test.requirement:
        return f"It has no requirement yet; above {test.path}:{test.line}", "@"
    if declared - functions:
        line = _line_of(test.path, min(functions & declared or functions))
        return f"The marker at {test.path}:{test.line} holds for other tests, too, so above {test.path}:{line}", "@"
    stems = {case.id.partition("[")[0] for case in failing}
    passing = [case for case in cases if case.id.partition("[")[0] in stems and case.status == "passed"]
    if passing:
        count = f"{len(passing)} other {'parameter passes' if len(passing) == 1 else 'parameters pass'}"
        return f"{count}, so in the marks of a pytest.param(..., marks=...) below {test.path}:{test.line}", ""
    return f"In {test.path}:{test.line}", "@" if _lines(test.path)[test.line - 1].lstrip().startswith("@") else ""


def _line_of(path: Path, function: str) -> int:
    """Return the line on which a function begins; 1 where it is not to be seen."""
    begins = re.compile(rf"\s*(?:async\s+)?def {re.escape(function)}\b")
    return next((number for number, line in enumerate(_lines(path), 1) if begins.match(line)), 1)


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="replace").split("\n")
