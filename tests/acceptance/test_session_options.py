"""Options that change how rounds are run and judged, such as the timeouts' multiplier."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

PASS = "echo 1 > /logs/verifier/reward.txt"


@pytest.mark.slow
def test_timeouts_are_multiplied(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task(
        "a",
        2,
        step={1: "agent.timeout_sec = 100", 2: "verifier.timeout_sec = 50"},
        solve={1: "echo line-1 >> log.txt; sleep 600"},
        test={2: f"{PASS}; sleep 600"},
    )
    first, second = run_tasks("--evocode-timeout-multiplier=0.02", "tasks").record().rounds
    assert (first.timed_out, first.cause) == ("agent", "the agent was stopped at its timeout of 2 s")
    assert "The suite's limit is 1 s (timeout_sec of [verifier])." in second.cause
    assert (first.outcome, second.outcome) == (
        "passed",
        "error",
    )  # Of an oracle a suite that hangs is the task's fault.


@pytest.mark.parametrize("value", ["nan", "0", "-1", "inf"])
@pytest.mark.matrix
def test_a_multiplier_that_is_none_is_refused(write_task: WriteTask, run_tasks: RunTasks, value: str) -> None:
    write_task("a", 1)
    session = run_tasks(f"--evocode-timeout-multiplier={value}", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines(["*--evocode-timeout-multiplier=*: it has to be a number above 0"])


@pytest.mark.parametrize("value", ["0", "two", "-1", "1.5"])
@pytest.mark.matrix
def test_a_number_of_verifiers_that_is_none_is_refused(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, value: str
) -> None:
    write_task("a", 1)
    pytester.makeini(f"[pytest]\nevocode_verifiers = {value}")
    session = run_tasks("tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"tox.ini: evocode_verifiers = {value}: it has to be a whole number, 1 or more" in session.text


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("evocode_verifiers=two", "-o evocode_verifiers=two: it has to be a whole number, 1 or more"),
        ("evocode_verifer=2", "-o: unknown setting evocode_verifer; did you mean evocode_verifiers?"),
        (
            "evocode_agent_options=effort",
            "--evocode-agent: -o evocode_agent_options: 'effort': write it as option=value, such as *",
        ),
    ],
)
def test_a_wrong_setting_of_the_command_line_is_not_blamed_on_the_ini_file(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, setting: str, message: str
) -> None:
    write_task("a", 1)
    pytester.makeini("[pytest]\nevocode_verifiers = 1\nevocode_agent_options = effort=high")
    session = run_tasks("-o", setting, "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([f"ERROR: {message}"])


def test_a_wrong_setting_of_the_ini_file_is_not_blamed_on_the_command_line(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makeini("[pytest]\nevocode_cases = all")
    session = run_tasks("-o", "evocode_verifiers=1", "tasks")
    session.result.stderr.fnmatch_lines(["ERROR: */tox.ini: evocode_cases = all: it has to be summary or subtests"])


def test_the_number_of_verifiers_is_that_of_the_ini_file(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    """With one slot the suites of three rounds never meet; each leaves a file while it runs."""
    meet = "cd /logs/artifacts; date +%s%N > begun; sleep 0.2; date +%s%N > ended; echo 1 > /logs/verifier/reward.txt"
    write_task("a", 3, test=dict.fromkeys((1, 2, 3), meet))
    pytester.makeini("[pytest]\nevocode_verifiers = 1")
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 3}
    steps = [session.attempt() / f"steps/round-{index}/artifacts" for index in (1, 2, 3)]
    times = sorted((int((step / "begun").read_text()), int((step / "ended").read_text())) for step in steps)
    assert all(ended <= begun for (_, ended), (begun, _) in itertools.pairwise(times))


def test_the_header_has_the_conditions_that_are_not_as_by_default_in_the_words_of_results(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    run_tasks("tasks").lacks("evocode: conditions *")
    changed = ("--evocode-timeout-multiplier=2", "--evocode-verify-times=3", "--evocode-strict")
    session = run_tasks(*changed, "-o", "evocode_reward_key=score", "--evocode-budget=turns=9, total-cost=5", "tasks")
    session.has(
        "evocode: conditions strict, budget=turns=9, reward-key=score, timeout-multiplier=2, verify-times=3",
    )
