"""The tasks that ``evocode new`` writes do, as they are, what a task has to."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.cli.new_task import Form, write_task
from pytest_evocode.results.records import Case

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session

pytestmark = pytest.mark.slow

INTRODUCED = {
    "round-1": {"price", "too-heavy", "usage"},
    "round-2": {"price-in-euros", "zone", "unknown-zone"},
    "round-3": {"zone-3"},
}
EITHER = pytest.mark.parametrize("form", ["native", "script"])


@pytest.fixture
def task(pytester: pytest.Pytester, form: Form) -> Path:
    """Three rounds."""
    path = pytester.path / "tasks/a"
    write_task(path, rounds=3, form=form)
    return path


def verified(session: Session, agent: str = "oracle") -> dict[str, tuple[Case, ...]]:
    """The cases of each round; every case names its requirement, its origin and its kind."""
    cases: dict[str, tuple[Case, ...]] = {}
    for record in session.record(agent=agent).rounds:
        assert record.verdict is not None
        assert record.verdict.flags == ()
        assert all(
            case.requirement in INTRODUCED[case.origin] and case.kind and case.intent for case in record.verdict.cases
        )
        cases[record.round] = record.verdict.cases
    return cases


def failing(cases: tuple[Case, ...]) -> set[str]:
    return {case.requirement for case in cases if case.failing}


# test_a_suite_has_the_cases_of_all_rounds_but_what_was_retired asks for the same of two rounds.
@pytest.mark.nightly
@pytest.mark.parametrize("rounds", [1, 2, 5])
@EITHER
def test_the_reference_solution_passes_every_round(
    pytester: pytest.Pytester, run_tasks: RunTasks, form: Form, rounds: int
) -> None:
    write_task(pytester.path / "tasks/a", rounds=rounds, form=form)
    assert run_tasks("tasks").outcomes == {"passed": rounds}


@pytest.mark.docker
@EITHER
@pytest.mark.nightly
def test_it_passes_in_docker(task: Path, run_tasks: RunTasks) -> None:
    assert run_tasks("tasks", env="docker").outcomes == {"passed": 3}


def sizes(session: Session) -> dict[str, dict[str, int]]:
    """By round, how many cases each requirement has."""
    return {round_: Counter(case.requirement for case in cases) for round_, cases in verified(session).items()}


FIRST = {"too-heavy": 1, "usage": 4}
SECOND = {**FIRST, "price-in-euros": 2, "zone": 4, "unknown-zone": 2}


def test_a_suite_has_the_cases_of_all_rounds_but_what_was_retired(
    pytester: pytest.Pytester, run_tasks: RunTasks
) -> None:
    write_task(pytester.path / "tasks/a", rounds=2, form="script")
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 2}
    assert sizes(session) == {"round-1": {**FIRST, "price": 4}, "round-2": SECOND}


@pytest.mark.nightly
@EITHER
def test_every_form_has_the_cases_of_all_rounds_but_what_was_retired(task: Path, run_tasks: RunTasks) -> None:
    found = sizes(run_tasks("tasks"))
    assert found == {"round-1": {**FIRST, "price": 4}, "round-2": SECOND, "round-3": {**SECOND, "zone-3": 1}}


@pytest.mark.nightly
@EITHER
def test_nothing_passes_where_nothing_was_done(task: Path, run_tasks: RunTasks) -> None:
    session = run_tasks("tasks", agent="nop")
    assert session.outcomes == {"failed": 3}
    for cases in verified(session, agent="nop").values():
        assert all(case.failing for case in cases)


@pytest.mark.nightly
@EITHER
def test_a_round_without_its_solution_fails_what_it_introduces_and_nothing_else(
    task: Path, run_tasks: RunTasks
) -> None:
    (task / "steps/round-2/solution/solve.sh").write_text("true\n")
    assert failing(verified(run_tasks("tasks"))["round-2"]) == INTRODUCED["round-2"]


@EITHER
@pytest.mark.nightly
def test_every_author_check_passes(task: Path, run_tasks: RunTasks) -> None:
    session = run_tasks("--evocode-check", "tasks", agent=None)
    assert session.exit_status == 0
    assert set(session.outcomes) == {"passed"}
