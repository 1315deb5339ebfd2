"""Sessions that score the process of their agents."""

from __future__ import annotations

import json

import pytest

from pytest_evocode.process.scores.rigor_score import AttemptProcess
from tests.acceptance.models import at, in_rounds
from tests.acceptance.sessions import RunTasks, Session
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Run, Step
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(2), pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

TOML = """[metadata.evocode.process]
build = "python3 -m py_compile app.py"
test = "python3 -m unittest -q"
source = ["*.py"]
tests = ["test_*.py"]
"""
TEST = (
    "import unittest, app\\n\\nclass T(unittest.TestCase):\\n"
    "    def test_x(self):\\n        self.assertEqual(app.x(), 1)\\n"
)
STEPS: list[Step] = [
    Run(f"printf 'def x():\\n    return 1\\n' > app.py; printf '{TEST}' > test_app.py"),
    Run("python3 -m unittest -q; echo line-1 >> log.txt"),
]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")


def played(run_tasks: RunTasks, *arguments: str, subprocess: bool = False) -> Session:
    with ModelServer(in_rounds(STEPS)) as server:
        return run_tasks(
            *at(server, "openai/gpt-5"), "--evocode-process", *arguments, "tasks", agent=None, subprocess=subprocess
        )


def test_the_pillars_stand_beside_the_scores_and_in_the_results(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, toml=TOML)
    session = played(run_tasks)
    assert session.outcomes == {"passed": 1}
    session.has("*evocode benchmark*", "gpt-5*100.0*", "*evocode process*", "agent*PF*VC*RE*AQ*ATI*TAD*EE*", "gpt-5 *")
    scored = AttemptProcess.model_validate_json((session.attempt(agent="gpt-5") / "process.json").read_text())
    assert scored.edited
    assert scored.values["tad"] is not None
    assert scored.rounds[0].pillars["ati"].value is not None  # Which takes building and testing the states between.


@pytest.mark.nightly
def test_workers_score_the_attempts_that_they_make(write_task: WriteTask, run_tasks: RunTasks) -> None:
    for name in ("a", "b"):
        write_task(name, 1, toml=TOML)
    session = played(run_tasks, "-n2")
    session.has("*evocode process*", "gpt-5 *2")
    for name in ("a", "b"):
        assert json.loads((session.attempt(name, "gpt-5") / "process.json").read_text())["task"] == name


def test_without_trajectories_there_is_no_process(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-process", "tasks")
    session.has("no agent of this run gave a trajectory, so there is no process to score")


def test_a_budget_that_is_none_is_a_usage_error(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makeini("[pytest]\nevocode_process_budget = soon\n")
    session = run_tasks("--evocode-process", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "evocode_process_budget = soon: it has to be seconds, 0 or more" in session.text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--evocode-judge=openai/gpt-5"], "add --evocode-process"),
        (["--evocode-process", "--evocode-judge=gpt-5"], "--evocode-judge: gpt-5: a judge is a model, such as"),
    ],
)
def test_a_judge_that_cannot_judge_is_a_usage_error(
    write_task: WriteTask, run_tasks: RunTasks, options: list[str], message: str
) -> None:
    write_task("a", 1)
    session = run_tasks(*options, "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert message in session.text
