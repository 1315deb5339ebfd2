"""A suite without a verdict is run again without the agent's work, which tells whose fault it is."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents import RoundContext
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, Environment
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from pytest_evocode.verifier import SuiteRun, run_suite

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
SILENT = "echo no reward"
#: Has no verdict where the file ``made`` is not.
WANTS_MADE = f"[ ! -e made ] || {PASS}"
BREAKS = "touch broken"
#: Has no verdict on what :data:`BREAKS` leaves.
SILENT_WHEN_BROKEN = f"[ -e broken ] || {PASS}"
SOLUTION = {"steps/round-1/solution/solve.sh": "touch made"}


@pytest.fixture(autouse=True)
def _states_of_this_test(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def suites(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The rounds of the suites that are run, controls included."""
    found: list[int] = []

    def counted(*arguments: Any, **more: Any) -> SuiteRun:
        found.append(arguments[2].index)
        return run_suite(*arguments, **more)

    monkeypatch.setattr("pytest_evocode.trial.suites.runner.run_suite", counted)
    return found


def failing_forks(starts: int) -> Any:
    """A turn after which so many forks of its snapshot do not start."""

    def turn(context: RoundContext) -> None:
        environment = context.environment
        make, left = environment.fork, iter(range(starts))

        def start() -> None:
            raise EnvironmentFault("the engine stumbled")

        def fork(*arguments: Any, **more: Any) -> Environment:
            made = make(*arguments, **more)
            if next(left, None) is not None:
                made.start = start  # type: ignore[method-assign]
            return made

        environment.fork = fork  # type: ignore[method-assign]

    return turn


def test_a_verdict_without_the_agent_fails_its_round_and_is_asked_for_once(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, suites: list[int]
) -> None:
    task = make_task(PASS, SILENT_WHEN_BROKEN, PASS)
    for controls in (1, 0):
        suites.clear()
        records = finish(Trial(task, scripted("true", BREAKS, "true"), engine))
        assert [record.outcome for record in records] == ["passed", "failed", "passed"]
        assert records[1].fault is None
        assert records[1].verdict is not None
        assert records[1].verdict.rewards == {"reward": 0.0}
        assert "gives one on the image as built, so the agent's work is to blame" in records[1].cause
        assert "test.sh wrote no reward" in records[1].cause
        assert sorted(suites) == [1, *[2] * (1 + controls), 3]


def test_a_suite_that_never_has_a_verdict_is_an_error(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, suites: list[int]
) -> None:
    task = make_task(SILENT)
    for controls in (1, 0):
        suites.clear()
        (record,) = finish(Trial(task, scripted("true"), engine))
        assert (record.outcome, record.fault, record.verdict) == ("error", "infrastructure", None)
        assert record.cause.startswith("test.sh wrote no reward")
        assert len(suites) == 1 + controls


def test_where_the_image_has_no_verdict_what_the_solutions_lead_to_decides(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish
) -> None:
    task = make_task(WANTS_MADE, files=SOLUTION)
    options = TrialOptions(references=True)
    assert finish(Trial(task, OracleAgent(), engine, options=options))[0].passed
    (record,) = finish(Trial(task, scripted("true"), engine, options=options))
    assert record.outcome == "failed"
    assert "gives one on what the reference solutions lead to" in record.cause


def test_the_oracle_has_no_control(engine: Engine, make_task: MakeTask, finish: Finish, suites: list[int]) -> None:
    task = make_task(SILENT_WHEN_BROKEN, files={"steps/round-1/solution/solve.sh": BREAKS})
    (record,) = finish(Trial(task, OracleAgent(), engine))
    assert (record.outcome, record.fault) == ("error", "infrastructure")
    assert suites == [1]


@pytest.mark.parametrize(
    ("starts", "outcome"), [pytest.param(1, "passed", id="once"), pytest.param(2, "failed", id="each-time")]
)
def test_a_fork_that_does_not_start_is_tried_once_more_before_it_is_held_against_the_agent(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, starts: int, outcome: str
) -> None:
    (record,) = finish(Trial(make_task(PASS), scripted(failing_forks(starts)), engine))
    assert (record.outcome, record.fault) == (outcome, None)
    assert ("the engine stumbled" in record.cause) == (outcome == "failed")


def test_a_known_control_counts_only_while_the_engine_starts_environments(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task(SILENT_WHEN_BROKEN)
    (record,) = finish(Trial(task, scripted(BREAKS), engine))
    assert record.outcome == "failed"

    def down(*arguments: Any, **more: Any) -> Environment:
        raise EnvironmentFault("the engine is down")

    def turn(context: RoundContext) -> None:
        context.environment.exec(BREAKS)
        monkeypatch.setattr(engine, "create", down)

    (record,) = finish(Trial(task, scripted(turn), engine))
    assert (record.outcome, record.fault) == ("error", "infrastructure")


@pytest.mark.parametrize(
    ("module", "outcome"), [("test_a.py", "error"), ("test_b.py", "passed")], ids=["broken", "sound"]
)
def test_a_native_suite_that_does_not_import_is_an_error_although_the_image_fails_some_of_it(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish, module: str, outcome: str
) -> None:
    good = "def test_good(workspace):\n    assert workspace.run('cat /app/made').exit_code == 0\n"
    tests = {"test_a.py": "import nosuchmodule\n\ndef test_x():\n    pass\n", "test_b.py": good}
    wanted = {f"steps/round-1/tests/{name}": tests[name] for name in {module, "test_b.py"}}
    task = make_task(PASS, files={**SOLUTION, **wanted}, dockerfile="FROM python:3.11-slim-bookworm\nWORKDIR /app\n")
    (task.directory / "steps/round-1/tests/test.sh").unlink()
    (record,) = finish(Trial(load_task(task.directory), scripted("touch made"), engine))
    assert record.outcome == outcome
    assert record.fault == ("infrastructure" if module == "test_a.py" else None)
    assert ("test_a.py:1: does not import: ModuleNotFoundError: " in record.cause) == (module == "test_a.py")
    assert "to blame" not in record.cause


def test_a_control_leaves_nothing_to_later_suites(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted], finish: Finish
) -> None:
    first = f"[ -e broken ] || touch /state/of-the-control; {SILENT_WHEN_BROKEN}"
    second = f"[ ! -e /state/of-the-control ] && {PASS}"
    task = make_task(first, second, toml='[metadata.evocode]\nverifier_state = ["/state"]\n')
    records = finish(Trial(task, scripted(BREAKS, "true"), engine))
    assert [record.outcome for record in records] == ["failed", "passed"]
