"""What breaks off an attempt, what does not, and how the rounds say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_what_an_agent_wrote_before_its_timeout_counts(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    write_task("a", 2, solve={1: "echo line-1 >> log.txt; sleep 600"}, step={1: "agent.timeout_sec = 2"})
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 2}
    first, second = session.record().rounds
    assert first.timed_out == "agent"
    assert first.cause == "the agent was stopped at its timeout of 2 s"
    assert second.timed_out is None


def test_a_failed_round_tells_of_the_agents_timeout(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, solve={1: "sleep 600; echo line-1 >> log.txt"}, step={1: "agent.timeout_sec = 0.5"})
    session = run_tasks("tasks")
    session.has(
        "round-1 failed: agent timeout, 1 of 1 cases failed*",
        "the agent was stopped at its timeout of 0.5 s",
        "FAILED tasks/a/task.toml::oracle::round-1 - round-1 failed: agent timeout, *",
    )


def test_nothing_that_a_timed_out_agent_started_lives_on(write_task: WriteTask, run_tasks: RunTasks) -> None:
    background = "echo 0 > beat; (setsid bash -c 'while sleep 0.1; do date +%s%N >> beat; done' &) ; sleep 600"
    suite = """
        before=$(cat beat); sleep 0.5
        [ -n "$before" ] && [ "$before" = "$(cat beat)" ] && echo 1 > /logs/verifier/reward.txt
    """
    write_task(
        "a",
        2,
        solve={1: background, 2: "cat beat > first; sleep 0.5; cmp beat first"},
        test={1: "echo 1 > /logs/verifier/reward.txt", 2: suite},
        step={1: "agent.timeout_sec = 1"},
    )
    assert run_tasks("tasks").outcomes == {"passed": 2}


def test_nothing_lives_on_of_an_agent_that_says_it_timed_out(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        from pytest_evocode.agents import RoundTranscript

        BACKGROUND = "(setsid bash -c 'while sleep 0.1; do date +%s%N >> beat; done' &); until [ -e beat ]; do :; done"

        class Late:
            name = "late"

            def run_round(self, context):
                if context.round.index == 1:
                    context.environment.exec(f"{BACKGROUND}; echo line-1 > log.txt")
                else:
                    context.environment.exec("cp beat first; sleep 0.5; cmp beat first && echo line-2 >> log.txt")
                return RoundTranscript(timed_out=True)

        def pytest_evocode_make_agent(name):
            return Late() if name == "late" else None
        """
    )
    write_task("a", 2)
    assert run_tasks("tasks", agent="late").outcomes == {"passed": 2}


def test_a_solution_that_fails_is_an_error_with_its_output(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 3, solve={2: "echo this went wrong >&2; exit 7"})
    session = run_tasks("-rs", "tasks")
    assert session.outcomes == {"passed": 1, "errors": 1, "skipped": 1}
    assert session.exit_status == 1
    session.has(
        "*ERROR at setup of a oracle round-2*",
        f"*{task}/steps/round-2/solution/solve.sh: the reference solution ended with exit code 7; correct it.*",
        "*this went wrong",
        "SKIPPED [[]1[]] tasks/a/task.toml:1: not reached: the attempt ended in round-2 with an error",
    )


def test_a_missing_solution_is_an_error_of_that_round(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 2, solve={2: None})
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 1, "errors": 1}
    session.has(f"*{task}/steps/round-2/solution/solve.sh: the oracle runs this file, which does not exist; write it")


def test_a_missing_solution_is_nothing_to_another_agent(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, solve={1: None, 2: None})
    assert run_tasks("tasks", agent="nop").outcomes == {"failed": 2}


@pytest.mark.parametrize("minimum", ["0.6", "{ reward = 0.6 }"])
@pytest.mark.matrix
def test_min_reward_stops_the_chain(write_task: WriteTask, run_tasks: RunTasks, minimum: str) -> None:
    write_task("a", 4, test={2: "echo 0.5 > /logs/verifier/reward.txt"}, step={2: f"min_reward = {minimum}"})
    session = run_tasks("-v", "tasks")
    assert session.outcomes == {"passed": 1, "failed": 1, "skipped": 2}
    session.has("*round-4 SKIPPED (not reached: round-2 stayed below its min_reward)*")
    assert not (session.attempt() / "steps/round-3").exists()


def test_min_reward_lets_the_chain_go_on_when_it_is_reached(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 3, test={2: "echo 0.5 > /logs/verifier/reward.txt"}, step={2: "min_reward = 0.5"})
    assert run_tasks("tasks").outcomes == {"passed": 2, "failed": 1}


def test_min_reward_wants_a_verdict(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, test={1: "true"}, step={1: "min_reward = 0.0"})
    assert run_tasks("tasks").outcomes == {"errors": 1, "skipped": 1}


def test_a_rounds_workdir_is_laid_over_the_workspace(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task(
        "a",
        2,
        workdir={2: {"log.txt": "line-1\n", "given/deep.txt": "line-2\n"}},
        solve={1: "echo lost > log.txt; echo line-1 >> log.txt", 2: "cat given/deep.txt >> log.txt"},
        test={2: "[ \"$(cat log.txt)\" = $'line-1\\nline-2' ] && echo 1 > /logs/verifier/reward.txt"},
    )
    assert run_tasks("tasks").outcomes == {"passed": 2}


def test_setup_sh_runs_before_the_agents_turn(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task(
        "a",
        1,
        workdir={1: {"setup.sh": "pwd > made-by-setup"}},
        solve={1: "grep -qx /app made-by-setup && echo line-1 > log.txt"},
    )
    assert run_tasks("tasks").outcomes == {"passed": 1}


def test_a_setup_sh_that_fails_is_an_error_with_its_output(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 3, workdir={2: {"setup.sh": "echo no such service; exit 4"}})
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 1, "errors": 1, "skipped": 1}
    session.has(f"*{task}/steps/round-2/workdir/setup.sh: ended with exit code 4; correct it.*", "*no such service")


def test_a_healthcheck_of_the_environment_that_fails_is_an_error(write_task: WriteTask, run_tasks: RunTasks) -> None:
    check = '[environment.healthcheck]\ncommand = "echo not yet; false"\ninterval_sec = 0\nretries = 2'
    task = write_task("a", 2, toml=check)
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1, "skipped": 1}
    session.has(
        f"*{task}/task.toml: the healthcheck of the environment failed 2 times in a row: echo not yet; false",
        "not yet",
    )


def test_a_healthcheck_of_a_round_that_fails_is_an_error_of_that_round(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3, step={2: 'healthcheck = { command = "test -e ready", interval_sec = 0, retries = 1 }'})
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 1, "errors": 1, "skipped": 1}
    session.has("*the healthcheck of round-2 failed 1 times in a row: test -e ready*")


def test_a_healthcheck_is_tried_again(write_task: WriteTask, run_tasks: RunTasks) -> None:
    check = 'healthcheck = { command = "echo x >> tries; [ $(wc -l < tries) = 3 ]", interval_sec = 0, retries = 3 }'
    write_task("a", 1, step={1: check})
    assert run_tasks("tasks").outcomes == {"passed": 1}


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_a_dockerfile_that_fails_is_one_error_and_other_tasks_run(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    dockerfile = "FROM python:3.11-slim-bookworm\nRUN echo the last words; exit 3\n"
    task = write_task("a", 3, dockerfile=dockerfile)
    write_task("b", 2)
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 2, "errors": 1, "skipped": 2}
    assert session.exit_status == 1
    session.has(f"*{task}/environment/Dockerfile*", "*the last words*")


def test_what_the_sandbox_cannot_replay_says_that_the_task_needs_docker(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    task = write_task("a", 1, dockerfile="FROM python:3.11-slim-bookworm\nRUN apt-get install -y cowsay\n")
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1}
    session.has(f"*{task}/environment/Dockerfile:2: this task needs Docker: *--evocode-env=docker*")


def test_a_missing_variable_is_an_error_that_names_it(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVOCODE_TEST_HOST", raising=False)
    task = write_task("a", 1, toml='[environment]\nenv = { TOKEN = "${EVOCODE_TEST_HOST}" }')
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1}
    session.has(f"*{task}/task.toml:2: EVOCODE_TEST_HOST not set in the environment; export it or give a default*")


def test_variables_reach_agent_and_suite(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOCODE_TEST_WORD", "line")
    write_task(
        "a",
        1,
        toml='[environment]\nenv = { WORD = "${EVOCODE_TEST_WORD}" }\n[solution]\nenv = { NUMBER = "${NO:-1}" }\n'
        '[verifier]\nenv = { WANTED = "line-1" }',
        solve={1: "echo $WORD-$NUMBER$WANTED > log.txt"},
        test={1: 'grep -qx "$WANTED$NUMBER" log.txt && echo 1 > /logs/verifier/reward.txt'},
    )
    assert run_tasks("tasks").outcomes == {"passed": 1}


def test_an_agent_of_a_plugin_that_crashes_is_an_error_with_its_traceback(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        class Crashing:
            name = "crashing"

            def run_round(self, context):
                raise KeyError("in the middle")

        def pytest_evocode_make_agent(name):
            return Crashing() if name == "crashing" else None
        """
    )
    write_task("a", 2)
    session = run_tasks("tasks", agent="crashing")
    assert session.outcomes == {"errors": 1, "skipped": 1}
    session.has("*conftest.py*in run_round", "*KeyError: 'in the middle'")


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_tests_rewards_and_solutions_are_out_of_the_agents_reach(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    look = "ls -d /tests /logs/verifier /solution/../tests 2>/dev/null; true"
    write_task(
        "a",
        2,
        solve={1: f"({look}) > seen; echo line-1 >> log.txt", 2: f"({look}) >> seen; echo line-2 >> log.txt"},
        test={2: "[ ! -s seen ] && [ ! -e /solution ] && echo 1 > /logs/verifier/reward.txt"},
    )
    assert run_tasks("tasks", env=env).outcomes == {"passed": 2}
