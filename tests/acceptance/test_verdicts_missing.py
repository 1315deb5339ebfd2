"""A suite without a usable reward is an error that says what to do, never a failure of the agent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments.programs import OUTPUT_LIMIT

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

REWARD = "/logs/verifier/reward.txt"
HINT = r"test\.sh has to write a number from 0 to 1 to /logs/verifier/reward\.txt"
MESSAGES = {
    "true": r"test\.sh wrote no reward; it has to write a number from 0 to 1 to /logs/verifier/reward\.txt or ",
    f"echo nan > {REWARD}": rf"reward\.txt has nan for 'reward', which is not a finite number; {HINT}",
    f"echo -inf > {REWARD}": rf"reward\.txt has -inf for 'reward', which is not a finite number; {HINT}",
    f": > {REWARD}": rf"reward\.txt is empty; {HINT}",
    f"echo passed > {REWARD}": rf"reward\.txt holds 'passed\\n', which is not a number; {HINT}",
    f"mkdir {REWARD}": r"reward\.txt is a directory; a reward has to be a small regular file",
    f"echo 1 > /tmp/one; ln -s /tmp/one {REWARD}": r"reward\.txt is a symlink; a reward has to be a small regular file",
    f"mkfifo {REWARD}": r"reward\.txt is not a regular file; a reward has to be a small regular file",
    f"truncate -s 2M {REWARD}": r"reward\.txt is 2097152 bytes long, over the limit of \d+; a reward has to be a small",
    "echo '{}' > /logs/verifier/reward.json": rf"reward\.json holds '{{}}\\n', not a table with at least one.*{HINT}",
    "echo '[1]' > /logs/verifier/reward.json": rf"reward\.json holds '\[1\]\\n', not a table.*{HINT}",
    "echo '{' > /logs/verifier/reward.json": rf"reward\.json is not JSON \(.*\); {HINT}",
}


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("env", "suites"),
    [
        ("sandbox", [*MESSAGES]),
        pytest.param(
            "docker",
            [suite for suite in MESSAGES if suite.startswith("mk") or "ln -s" in suite],
            marks=pytest.mark.docker,
        ),
    ],
    ids=["sandbox", "docker"],
)
def test_every_unusable_reward_is_an_error_that_says_what_to_do(
    write_task: WriteTask, run_tasks: RunTasks, env: str, suites: list[str]
) -> None:
    write_task("a", len(suites), test=dict(enumerate(suites, 1)))
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"errors": len(suites)}
    assert session.exit_status == 1
    for suite, record in zip(suites, session.record().rounds, strict=True):
        assert record.outcome == "error"
        assert re.search(MESSAGES[suite], record.cause)
        assert re.search(MESSAGES[suite], session.text)


def test_a_suite_without_a_usable_reward_is_an_error_that_says_what_to_do_and_rounds_after_it_are_played(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    unusable = ["true", f"echo passed > {REWARD}", f"mkfifo {REWARD}"]
    suites = {
        1: "echo the suite broke down >&2; exit 3",
        2: f"echo 1 > {REWARD}; exit 3",  # The exit code does not matter.
        3: f"echo building; echo 'CASE_RESULT case_id=x status=passes'; echo 1 > {REWARD}",
        **dict(enumerate(unusable, 4)),
    }
    write_task("a", len(suites), test=suites)
    # A task can name the reward that decides.
    several = """echo '{"style": 0, "speed": 1}' > /logs/verifier/reward.json"""
    write_task("b", 1, test={1: several}, toml='[metadata.evocode]\nreward_key = "speed"')
    session = run_tasks("-v", "tasks")
    assert session.outcomes == {"passed": 2, "errors": 5}
    assert session.exit_status == 1
    session.has("tasks/a/task.toml::oracle::round-1 ERROR*", "tasks/a/task.toml::oracle::round-2 PASSED*")
    session.has("*test.sh ended with exit code 3; its last lines:", "*the suite broke down")
    session.has("line 2 of the suite's output has the status 'passes', *: CASE_RESULT case_id=x status=passes")
    rounds = session.record().rounds
    assert [each.outcome for each in rounds] == ["error", "passed", *4 * ["error"]]
    for suite, record in zip(unusable, rounds[3:], strict=True):
        assert re.search(MESSAGES[suite], record.cause)
        assert re.search(MESSAGES[suite], session.text)
    assert session.record("b").rewards == {"style": 0.0, "speed": 1.0}


def test_a_suite_that_hangs_is_stopped_and_is_a_failure_but_of_the_oracle_an_error(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    of_oracle = "echo 'CASE_RESULT case_id=starts status=ok'; printf 'CASE_RESULT case_id=ha'"
    of_nop = "echo 'CASE_RESULT case_id=hangs status=fail'"
    suite = f"if [ -e log.txt ]; then {of_oracle}; else {of_nop}; fi; sleep 600"
    write_task("a", 2, test={1: suite}, step={1: "verifier.timeout_sec = 1"})
    session = run_tasks("--evocode-agent=nop", "tasks")
    assert session.outcomes == {"passed": 1, "failed": 2, "errors": 1}
    assert [each.outcome for each in session.record(agent="nop").rounds] == ["failed", "failed"]
    session.has("round-1 failed: verifier timeout, 1 of 1 cases failed*", "the suite was stopped at its timeout of 1 s")
    session.has(
        "the suite of round-1 hangs although the reference solution was played, so the task is at fault and no agent: "
        "test.sh was stopped after the case starts, the last that it reported; its last lines:",
        "CASE_RESULT case_id=ha",
        "The suite's limit is 1 s (timeout_sec of [[]verifier[]]). Give what may wait for ever a limit of its own,*",
    )


@pytest.mark.nightly
@pytest.mark.slow
def test_a_gigabyte_of_output_is_survived(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        import re

        def pytest_unconfigure():
            # Not getrusage's, which for a new program begins with what the one that started it had.
            with open("/proc/self/status") as file:
                print("peak", int(re.search(r"VmHWM:\\s+(\\d+) kB", file.read())[1]) // 1024, "MB")
        """
    )
    write_task("a", 1, test={1: f"echo first; yes | head -c 1G; echo last; echo 1 > {REWARD}"})
    session = run_tasks("tasks", subprocess=True)
    assert session.outcomes == {"passed": 1}
    kept = (session.attempt() / "steps/round-1/verifier/test-stdout.txt").read_text()
    assert kept.startswith("first\n")
    assert kept.endswith("last\n")
    assert len(kept) < 2 * OUTPUT_LIMIT + 100
    peak = re.search(r"peak (\d+) MB", session.text)
    assert peak
    assert int(peak[1]) < 300
