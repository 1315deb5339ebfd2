"""``evocode regrade``: today's tests on what rounds were left with, and no agent."""

from __future__ import annotations

import json
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from click.testing import CliRunner, Result

from pytest_evocode.cli import main
from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import Repeats
from pytest_evocode.tasks import Round
from pytest_evocode.trial.suites.left_forks import LeftFork
from pytest_evocode.trial.suites.runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

COUNTING_AGENT = """
    from pathlib import Path
    from pytest_evocode.agents import RoundTranscript

    class Counting:
        name = "counting"

        def run_round(self, context):
            with Path("calls").open("a") as calls:
                calls.write("x")
            context.environment.exec(f"echo line-{context.round.index} >> log.txt")
            return RoundTranscript()

    def pytest_evocode_make_agent(name):
        return Counting() if name == "counting" else None
"""
FAILS = "echo 'CASE_RESULT case_id=has-line-2 status=fail'; echo 0 > /logs/verifier/reward.txt"
PASSES = "echo 1 > /logs/verifier/reward.txt"

Regrade = Callable[..., Result]


@pytest.fixture
def regrade() -> Regrade:
    """Runs the command in this process."""
    return lambda *arguments: CliRunner().invoke(main, ["regrade", *arguments])


@pytest.fixture
def ran(pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks) -> Session:
    """A session whose agent wrote every line, and whose second suite is wrong to fail."""
    pytester.makeconftest(COUNTING_AGENT)
    write_task("a", 3, test={2: FAILS})
    return run_tasks("--evocode-snapshots", "tasks", agent="counting")


def change_test(session: Session, index: int, text: str, task: str = "a") -> None:
    (session.directory / f"tasks/{task}/steps/round-{index}/tests/test.sh").write_text(text)


def outcomes(session: Session, task: str = "a", agent: str = "counting") -> list[str]:
    return [round_.outcome for round_ in session.record(task, agent).rounds]


def test_corrected_tests_give_new_verdicts_beside_the_old_ones_and_without_the_agent(
    ran: Session, regrade: Regrade
) -> None:
    attempt = ran.attempt("a", "counting")
    assert outcomes(ran) == ["passed", "failed", "passed"]
    played = ran.record("a", "counting").rounds[0]
    before = {path.relative_to(attempt): path.read_bytes() for path in attempt.rglob("*") if path.is_file()}

    change_test(ran, 2, f"echo 'CASE_RESULT case_id=x status=success'; {PASSES}")
    result = regrade()
    assert result.exit_code == 0, result.output
    assert result.output.splitlines() == [
        "verified 3 rounds again",
        "task  attempt   round    before          after",
        "a     counting  round-2  failed 0/1  ->  passed 1/1",
        "",
        "counting: Dataset Score 66.7 -> 100.0",
    ]
    assert outcomes(ran) == ["passed", "passed", "passed"]
    assert (ran.directory / "calls").read_text() == "xxx"
    # What was no verdict stays.
    kept = ran.record("a", "counting").rounds[0]
    assert kept.agent_seconds == played.agent_seconds
    assert kept.model_copy(update={"verifier_seconds": played.verifier_seconds, "phases": played.phases}) == played

    change_test(ran, 3, FAILS.replace("has-line-2", "x"))
    found: dict[str, Any] = json.loads(regrade("--json").output)
    assert (found["attempts"], found["rounds"], found["problems"]) == (1, 3, [])
    (change,) = found["changes"]
    assert (change["task"], change["agent"], change["attempt"], change["round"]) == ("a", "counting", 1, "round-3")
    assert change["before"] == {"outcome": "passed", "reward": 1.0, "passed_cases": 3, "cases": 3}
    assert change["after"] == {"outcome": "failed", "reward": 0.0, "passed_cases": 0, "cases": 1}
    assert found["dataset_scores"]["counting"]["after"] == pytest.approx(100 * 2 / 3)
    assert found["flaky"] == []

    # Both earlier records are there, and failures are told apart by the new verdicts.
    first, second = attempt / "earlier/1", attempt / "earlier/2"
    for name in ("result.json", "steps/round-2/round.json", "steps/round-2/verifier/reward.txt"):
        assert (first / name).read_bytes() == before[Path(name)]
    rounds = json.loads((second / "result.json").read_bytes())["rounds"]
    assert [each["outcome"] for each in rounds] == ["passed", "passed", "passed"]
    assert outcomes(ran) == ["passed", "passed", "failed"]
    assert (attempt / "steps/round-3/verifier/reward.txt").read_text() == "0.0\n"
    (loaded,) = load_results([ran.results]).attempts
    assert loaded.record.regraded is not None
    verdict = ran.record("a", "counting").rounds[2].verdict
    assert verdict is not None
    assert [case.failure for case in verdict.cases] == ["regression"]


@pytest.mark.nightly
def test_verdicts_stay_unless_tests_are_flaky_and_where_a_suite_breaks_down(ran: Session, regrade: Regrade) -> None:
    assert regrade().output.splitlines()[:2] == ["verified 3 rounds again", "no verdict has changed"]

    # A verdict that is another one then, although the task is the same, is named.
    path = ran.attempt("a", "counting") / "result.json"
    values = json.loads(path.read_text())
    values["rounds"][1]["outcome"] = "passed"
    path.write_text(json.dumps(values))
    assert regrade().output.splitlines()[-1] == (
        "flaky, because their tasks have not changed since: a counting round-2"
    )
    assert outcomes(ran) == ["passed", "failed", "passed"]

    change_test(ran, 1, "true")  # No reward.
    change_test(ran, 2, PASSES)
    result = regrade()
    assert result.exit_code == 1
    assert "round-1: " in result.output
    assert outcomes(ran) == ["passed", "passed", "passed"]


def test_without_snapshots_nothing_is_verified(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, regrade: Regrade
) -> None:
    write_task("a", 1)
    session = run_tasks("tasks")
    before = (session.attempt() / "result.json").read_bytes()
    result = regrade()
    assert result.exit_code == 1
    assert "no round's files were kept, which takes a run with --evocode-snapshots" in result.output
    assert (session.attempt() / "result.json").read_bytes() == before
    assert not (session.attempt() / "earlier").exists()


def test_another_image_is_refused_and_tasks_may_lie_elsewhere_now(ran: Session, regrade: Regrade) -> None:
    dockerfile = ran.directory / "tasks/a/environment/Dockerfile"
    written = dockerfile.read_text()
    dockerfile.write_text(f"{written}ENV OTHER=1\n")
    change_test(ran, 2, PASSES)
    result = regrade()
    assert result.exit_code == 1
    assert "is another one now, which its rounds were not left in" in result.output
    assert outcomes(ran) == ["passed", "failed", "passed"]

    dockerfile.write_text(written)
    (ran.directory / "tasks").rename(ran.directory / "moved")
    refused = regrade()
    assert refused.exit_code == 1
    assert "tasks/a" in refused.output
    assert regrade("--tasks", "moved").exit_code == 0


@pytest.mark.nightly
def test_the_next_session_leaves_kept_snapshots_alone_until_they_are_cleaned(
    ran: Session, run_tasks: RunTasks, regrade: Regrade
) -> None:
    run_tasks("--evocode-results=other", "tasks", agent="nop", subprocess=True)
    assert regrade("evocode-results").exit_code == 0


def test_a_suite_that_was_at_fault_gives_a_verdict_and_what_a_min_reward_would_have_ended_is_not_reached(
    write_task: WriteTask, run_tasks: RunTasks, regrade: Regrade
) -> None:
    write_task("silent", 2, test={1: "true"})
    write_task("wanting", 2, step={1: "min_reward = 1.0"})
    session = run_tasks("--evocode-snapshots", "tasks")
    assert outcomes(session, "silent", "oracle")[0] == "error"
    change_test(session, 1, PASSES, "silent")
    change_test(session, 1, FAILS, "wanting")
    assert regrade().exit_code == 0
    assert outcomes(session, "silent", "oracle") == ["passed", "passed"]
    assert outcomes(session, "wanting", "oracle") == ["failed", "not reached"]


def repeats(session: Session) -> list[Repeats | None]:
    verdicts = (round_.verdict for round_ in session.record("a", "oracle").rounds)
    return [verdict.repeats if verdict else None for verdict in verdicts]


TWICE = Repeats(times=2, passed=2, flaky=False)


@pytest.mark.nightly
def test_workers_keep_snapshots_too_and_suites_are_run_as_often_as_before(
    write_task: WriteTask, run_tasks: RunTasks, regrade: Regrade
) -> None:
    write_task("a", 2, test={2: FAILS})
    session = run_tasks("--evocode-snapshots", "--evocode-verify-times=2", "-n1", "tasks")
    assert repeats(session) == [TWICE, Repeats(times=2, passed=0, flaky=False)]
    change_test(session, 2, PASSES)
    assert regrade().exit_code == 0
    assert outcomes(session, agent="oracle") == ["passed", "passed"]
    assert repeats(session) == [TWICE, TWICE]


@pytest.mark.docker
@pytest.mark.nightly
def test_containers_are_verified_again(write_task: WriteTask, run_tasks: RunTasks, regrade: Regrade) -> None:
    write_task("a", 2, test={2: FAILS})
    session = run_tasks("--evocode-snapshots", "--evocode-verify-times=2", "tasks", env="docker")
    change_test(session, 2, PASSES)
    result = regrade()
    assert result.exit_code == 0, result.output
    assert outcomes(session, agent="oracle") == ["passed", "passed"]
    assert repeats(session) == [TWICE, TWICE]


@pytest.mark.nightly
def test_what_would_have_ended_an_attempt_does_so_in_fail_stop_mode(
    write_task: WriteTask, run_tasks: RunTasks, regrade: Regrade
) -> None:
    write_task("a", 2)
    session = run_tasks("--evocode-snapshots", "--evocode-mode=fail-stop", "tasks")
    change_test(session, 1, FAILS)
    assert regrade().exit_code == 0
    assert outcomes(session, agent="oracle") == ["failed", "not reached"]


@pytest.mark.nightly
def test_single_rounds_are_verified_each_by_itself(
    write_task: WriteTask, run_tasks: RunTasks, regrade: Regrade
) -> None:
    write_task("a", 2, test={2: FAILS})
    session = run_tasks("--evocode-snapshots", "--evocode-mode=single-round", "tasks", agent="nop")
    assert outcomes(session, agent="nop") == ["failed", "failed"]
    change_test(session, 2, PASSES)
    result = regrade()
    assert result.exit_code == 0, result.output
    assert outcomes(session, agent="nop") == ["failed", "passed"]


def test_an_interrupt_ends_the_suites_that_run(ran: Session, regrade: Regrade, monkeypatch: pytest.MonkeyPatch) -> None:
    change_test(ran, 2, "sleep 3600")
    run = SuiteRunner.run_and_leave

    def run_and_interrupt(
        suites: SuiteRunner, environment: Environment, snapshot: Snapshot, round_: Round
    ) -> tuple[SuiteRun, LeftFork]:
        def interrupt(fork: Environment) -> None:
            if round_.index == 2:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        return run(suites, environment, snapshot, round_, change=interrupt)

    monkeypatch.setattr(SuiteRunner, "run_and_leave", run_and_interrupt)
    result = regrade()
    assert result.exit_code == 1
    assert "Aborted!" in result.output
    assert outcomes(ran) == ["passed", "failed", "passed"]
