"""Cases of earlier rounds that a reference solution breaks: most often one whose ``retired=`` was forgotten."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pytest_evocode.results.records import Case
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.native import NativeTest

_SHOWN_CASES = 5


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
        shown = [f"  {_in_one_line(case)}" for case in marked.cases[:_SHOWN_CASES]]
        if (more := len(marked.cases) - _SHOWN_CASES) > 0:
            shown.append(f"  and {more} more")
        what = f"requirement {marked.requirement}" if marked.requirement else "a case without a requirement"
        head = f"{what}, required since {marked.since}, passed before {round_.name} and fails now:"
        yield "\n".join([head, *shown, _advice(task, round_, marked, cases)])


def _in_one_line(case: Case) -> str:
    return f"{case.id}: {(case.reason or case.actual or 'failed').splitlines()[0]}"


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
