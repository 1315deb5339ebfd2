"""The modes over example tasks: every number equals one that was worked out by hand."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.test_modes import marks, row

# The modes themselves are in test_modes.py.
pytestmark = [pytest.mark.slow, pytest.mark.nightly]

EXAMPLES = Path(__file__).parents[2] / "example_tasks" / "process"
# It plays the reference solutions, but for the third round of recipes and the second of invoices.
AGENT = """
    from pytest_evocode.agents import RoundTranscript

    FAILS = {"recipes": 3, "invoices": 2}

    class Failing:
        name = "failing"

        def run_round(self, context):
            if context.round.index != FAILS[context.task.name]:
                context.environment.upload([context.round.solution], "/solution")
                context.environment.exec("bash /solution/solve.sh")
                context.environment.remove(["/solution"])
            return RoundTranscript()

    def pytest_evocode_make_agent(name):
        return Failing() if name == "failing" else None
"""


def run(pytester: pytest.Pytester, run_tasks: RunTasks, mode: str) -> Session:
    pytester.makeconftest(AGENT)
    for name in ("recipes", "invoices"):  # Here, because pytest reads no conftest.py that is beside its arguments.
        shutil.copytree(EXAMPLES / name, pytester.path / "tasks" / name, ignore=shutil.ignore_patterns("recorded"))
    return run_tasks(f"--evocode-mode={mode}", "tasks", agent="failing", replay=False)


def test_chain(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    session = run(pytester, run_tasks, "chain")
    # What round 2 of invoices requires is still missing in round 3.
    assert (marks(session, "recipes"), marks(session, "invoices")) == ("..F", ".FF")
    session.has("failing *50.0 *")  # (2/3 + 1/3) / 2
    assert row(session)["scores"]["dataset_score"] == pytest.approx(50)
    assert session.run.scores["failing"]["dataset_score"] == pytest.approx(50)


def test_fail_stop(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    session = run(pytester, run_tasks, "fail-stop")
    assert (marks(session, "recipes"), marks(session, "invoices")) == ("..F", ".F-")
    session.has("failing (fail-stop) *50.0  50.0  1 *")  # Dataset Score and MT@1, (2/3 + 1/3) / 2.
    assert row(session)["scores"]["mt_at_k"] == pytest.approx(50)
    assert session.run.scores["failing"]["mt_at_k"] == pytest.approx(50)


def test_single_round(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    session = run(pytester, run_tasks, "single-round")
    # Round 3 of invoices begins where the solution of round 2 leads.
    assert (marks(session, "recipes"), marks(session, "invoices")) == ("..F", ".F.")
    session.has("failing (single-round) *66.7 *66.7  1 *")  # 4 of 6 rounds; (2/3 + 2/3) / 2 by task.
    assert row(session)["scores"]["sr"] == pytest.approx(100 * 4 / 6)
    assert session.run.scores["failing"]["sr"] == pytest.approx(100 * 4 / 6)
