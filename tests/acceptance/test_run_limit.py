"""The limit on what a whole run may cost: attempts that it stops wait, and are neither passed nor failed."""

from __future__ import annotations

import json

import pytest

from pytest_evocode.results.loading import load_results
from tests.acceptance.models import at, solver
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Tokens
from tests.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

GPT = "openai/gpt-5"
#: A request costs one dollar.
DEAR = {"models": {"gpt-5": {"input": 1000.0, "output": 0.0}}}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture
def dear(pytester: pytest.Pytester) -> str:
    """The option with a table of prices."""
    (pytester.path / "dear.json").write_text(json.dumps(DEAR))
    return "--evocode-agent-option=prices=dear.json"


def score_of(session: Session) -> float | int | None:
    return session.run.scores["gpt-5"]["dataset_score"]


def test_attempts_that_the_limit_stops_wait_and_a_resume_with_a_higher_one_makes_them(
    write_task: WriteTask, run_tasks: RunTasks, dear: str
) -> None:
    write_task("a", 2)
    with ModelServer(solver(2), tokens=Tokens(prompt=1000, completion=50)) as server:
        options = [*at(server, GPT), dear, "--evocode-attempts=2", "tasks"]
        # Four requests are one attempt; the fifth is the second attempt's first.
        capped = run_tasks(*options, "--evocode-budget=total-cost=5", "--evocode-fail-under=50", agent=None)
        results = load_results([capped.results])
        asked = len(server.asked)
        session = run_tasks(*options, "--evocode-budget=total-cost=50", "--evocode-resume", agent=None)
        assert (asked, len(server.asked)) == (5, 8)  # Nothing is paid for twice.
    assert capped.outcomes == {"passed": 2, "skipped": 2}
    assert capped.exit_status == pytest.ExitCode.TESTS_FAILED
    capped.has(
        "gpt-5*100.0*",
        "a gpt-5.2*w  w",
        "evocode: budget: total-cost $5 of $5 used by the run: 1 of 2 attempts waits, and rounds without a verdict do "
        "not count; raise the limit and go on with --evocode-resume=*",
    )
    assert session.outcomes == {"passed": 4}
    assert session.exit_status == 0
    assert score_of(session) == 100.0
    session.lacks("*attempts wait*")
    # What is read of the capped run leaves out what waits.
    capped.has("--evocode-fail-under=50: not reached, attempts wait")
    [problem] = results.problems
    assert "attempts of this run wait (budget: total-cost $5 of $5 used by the run)" in problem
    found = {each.record.attempt: (each.selected, each.waiting) for each in results.attempts}
    assert found[1] == ((1, 2), False)


@pytest.mark.nightly
def test_what_is_read_of_a_capped_run_leaves_out_what_waits(
    write_task: WriteTask, run_tasks: RunTasks, dear: str
) -> None:
    write_task("a", 2)
    with ModelServer(solver(2), tokens=Tokens(prompt=1000, completion=50)) as server:
        options = [*at(server, GPT), dear, "--evocode-attempts=3", "--evocode-fail-under=50", "tasks"]
        capped = run_tasks(*options, "--evocode-budget=total-cost=6", agent=None)
    assert capped.run.waiting == "budget: total-cost $6 of $6 used by the run"
    assert score_of(capped) == 100.0
    assert capped.exit_status == pytest.ExitCode.TESTS_FAILED
    capped.has("--evocode-fail-under=50: not reached, attempts wait")
    results = load_results([capped.results])
    [problem] = results.problems
    assert "attempts of this run wait (budget: total-cost $6 of $6 used by the run)" in problem
    assert f"--evocode-resume={capped.run.run}" in problem
    found = {each.record.attempt: (each.selected, each.waiting) for each in results.attempts}
    assert found == {1: ((1, 2), False), 2: ((1,), True)}
    [run] = results.runs
    assert run.record.selected == {"a": {"gpt-5": (1, 2)}}
