"""``--evocode-shell``: a shell in the fork where a round's suite failed, or where any suite ran."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.sessions import sandboxes_left
from tests.waiting import wait_until

if TYPE_CHECKING:
    from tests.acceptance.sessions import AtTerminal, RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
EITHER = pytest.mark.parametrize("env", ENVIRONMENTS)
FAIL = "echo 0 > /logs/verifier/reward.txt"
PROMPT = "bash-"


@EITHER
@pytest.mark.matrix
def test_a_shell_opens_in_the_fork_of_each_failed_round_and_for_nothing_else(
    write_task: WriteTask, person: AtTerminal, env: str
) -> None:
    """It has the suite's user and variables; without a verdict or without a fork there is none."""
    solve = {
        1: "echo line-1 > log.txt; chmod 666 log.txt; echo never read > untouched",
        2: "echo wrong > log.txt",
        3: "echo later > log.txt",
    }
    toml = '[verifier]\nuser = "nobody"\n[verifier.env]\nMINE = "${FROM_HOST:-nothing} at all"\n'
    write_task("a", 3, toml=toml, solve=solve, files={"tests/data": "shared"})
    write_task("b", 2, test={2: "true"})
    write_task("c", 1, toml='[metadata.evocode]\nverify_in = "in-place"', test={1: FAIL})
    person.pytest("--evocode-shell", "-n0", "tasks", env=env)
    shown = person.sees("the fork of round-2: tests in /tests, the suite's files in /logs/verifier")
    assert "round-2 failed: 2 of 2 cases failed" in shown
    assert "PASSED" not in shown
    script = "pwd; cat log.txt untouched /tests/data /logs/verifier/reward.txt; grep -c CASE_RESULT /tests/test.sh"
    assert person.asks(script) == "/app\nwrong\nnever read\nshared\n0\n1\n"
    assert person.asks("id -u; echo $MINE; echo mine > /tests/mine; cat /tests/mine") == "65534\nnothing at all\nmine\n"
    person.type("echo line-2 >> log.txt; exit\n")
    person.sees("the session goes on")
    person.sees("the fork of round-3")
    assert person.asks("cat log.txt") == "later\n"
    person.type("exit 7\n")
    code, rest = person.ends()
    assert code == 1
    assert "3 failed, 2 passed, 1 error" in rest
    assert "has-line-1 [round-1" not in rest  # What was shown at the shell is not shown again.
    assert "the fork of" not in rest
    assert (
        'there is nothing to enter: with verify_in = "in-place" the suite ran where the agent goes on working' in rest
    )


@pytest.mark.nightly
def test_suites_of_later_rounds_run_while_a_shell_is_open(
    pytester: pytest.Pytester, write_task: WriteTask, person: AtTerminal
) -> None:
    pytester.makeini("[pytest]\nevocode_verifiers = 1")
    write_task("a", 3, test={1: FAIL})
    person.pytest("--evocode-shell", "tasks")
    person.sees(PROMPT)
    wait_until(lambda: list(pytester.path.glob("evocode-results/a/**/round-3/verifier/reward.txt")))
    person.type("exit\n")
    assert "1 failed, 2 passed" in person.ends()[1]


@pytest.mark.nightly
def test_a_shell_opens_after_every_round(write_task: WriteTask, person: AtTerminal) -> None:
    write_task("a", 3, test={2: FAIL, 3: "echo this suite gives no verdict"})
    person.pytest("--evocode-shell=always", "tasks", "-v")
    for round_, log in (
        ("round-1", "line-1\n"),
        ("round-2", "line-1\nline-2\n"),
        ("round-3", "line-1\nline-2\nline-3\n"),
    ):
        shown = person.sees(f"the fork of {round_}")
        assert ("round-2 failed" in shown) == (round_ == "round-2")
        assert person.asks("cat log.txt") == log
        person.type("exit\n")
        person.sees("the session goes on")
    code, shown = person.ends()
    assert code == 1
    assert "1 failed, 1 passed, 1 error" in shown


@pytest.mark.nightly
def test_there_is_one_shell_for_a_round_with_subtests(write_task: WriteTask, person: AtTerminal) -> None:
    write_task("a", 1, solve={1: "true"})
    person.pytest("--evocode-shell", "-o", "evocode_cases=subtests", "tasks")
    person.sees(PROMPT)
    person.type("exit\n")
    code, shown = person.ends()
    assert code == 1
    assert shown.count("the session goes on") == 1
    assert "the fork of" not in shown


@pytest.mark.nightly
def test_a_round_of_an_earlier_session_has_no_fork_to_enter(
    write_task: WriteTask, person: AtTerminal, run_tasks: RunTasks
) -> None:
    write_task("a", 1, test={1: FAIL})
    run_tasks("tasks")
    person.pytest("--evocode-shell", "--evocode-resume", "tasks")
    assert "there is nothing to enter: no suite of this round was run in this session" in person.ends()[1]


@pytest.mark.nightly
def test_a_session_that_is_stopped_while_a_shell_is_open_leaves_nothing(
    write_task: WriteTask, person: AtTerminal, cache: Path
) -> None:
    write_task("a", 1, test={1: FAIL})
    person.pytest("--evocode-shell", "tasks")
    person.sees(PROMPT)
    assert person.session is not None
    person.session.send_signal(signal.SIGTERM)
    assert person.ends()[0] == 128 + signal.SIGTERM
    assert sandboxes_left(cache) == []


def test_a_shell_needs_a_terminal(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-shell", "tasks", subprocess=True)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "--evocode-shell needs a terminal, and standard input is none" in session.text


def test_what_a_shell_does_not_go_with_is_refused(
    write_task: WriteTask, run_tasks: RunTasks, person: AtTerminal
) -> None:
    write_task("a", 1)
    run, check = "--evocode-agent=oracle", "--evocode-check"
    left_out = "--evocode-check runs no agent and pins nothing; leave out"
    refused = {
        (
            run,
            "--evocode-shell=sometimes",
        ): "--evocode-shell=sometimes: it has to be failed, as without a value, or always",
        (run, "--evocode-shell", "-n2"): "--evocode-shell needs one process with a terminal; leave out -n, or use -n0",
        (check, "--evocode-shell"): f"{left_out} --evocode-shell",
        (check, "--evocode-keep"): f"{left_out} --evocode-keep",
    }
    # Standard input has to be a terminal, and a session in this process takes what that has.
    before = os.dup(0)
    os.dup2(person.terminal, 0)
    try:
        for options, message in refused.items():
            session = run_tasks(*options, "tasks", agent=None)
            assert session.exit_status == pytest.ExitCode.USAGE_ERROR
            assert message in session.text
    finally:
        os.dup2(before, 0)
        os.close(before)
