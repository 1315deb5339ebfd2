"""What breaks off an attempt, what does not, and how the rounds say so."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.results.loading import load_results
from tests.acceptance.tasks import DOCKERFILE

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]


def listed(session: Session, task: str) -> list[str]:
    """What a verbose session listed of a task's rounds, in order."""
    start = f"tasks/{task}/task.toml::"
    lines = (line for line in session.result.outlines if line.startswith(start))
    return [line.split(maxsplit=2)[1] for line in lines]


@pytest.mark.parametrize("env", ENVIRONMENTS)
@pytest.mark.matrix
def test_what_an_agent_wrote_before_its_timeout_counts_and_nothing_that_it_started_lives_on(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    background = "(setsid bash -c 'while sleep 0.1; do date +%s%N >> beat; done' &)"
    stopped = '[ "$before" ] && [ "$before" = "$(cat beat)" ]'
    write_task(
        "a",
        2,
        solve={
            1: f"echo line-1 >> log.txt; echo 0 > beat; {background}; sleep 600",
            2: "cat beat > first; sleep 0.5; cmp beat first",
        },
        test={2: f"before=$(cat beat); sleep 0.5; {stopped} && echo 1 > /logs/verifier/reward.txt"},
        step={1: "agent.timeout_sec = 2"},
    )
    write_task("late", 1, solve={1: "sleep 600; echo line-1 >> log.txt"}, step={1: "agent.timeout_sec = 0.5"})
    session = run_tasks("tasks", env=env)
    assert session.outcomes == {"passed": 2, "failed": 1}
    first, second = session.record().rounds
    assert first.timed_out == "agent"
    assert first.cause == "the agent was stopped at its timeout of 2 s"
    assert second.timed_out is None
    session.has(
        "round-1 failed: agent timeout, 1 of 1 cases failed*",
        "the agent was stopped at its timeout of 0.5 s",
        "FAILED tasks/late/task.toml::oracle::round-1 - round-1 failed: agent timeout, *",
    )


@pytest.mark.nightly
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


def test_what_fails_before_an_agents_turn_or_in_a_solution_is_an_error_that_says_what_to_do(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("EVOCODE_TEST_HOST", raising=False)
    solution = write_task("solution", 3, solve={2: "echo this went wrong >&2; exit 7"})
    missing = write_task("missing", 2, solve={2: None})
    setup = write_task("setup", 3, workdir={2: {"setup.sh": "echo no such service; exit 4"}})
    unhealthy = '[environment.healthcheck]\ncommand = "echo not yet; false"\ninterval_sec = 0\nretries = 2'
    environment = write_task("environment", 2, toml=unhealthy)
    write_task("round", 3, step={2: 'healthcheck = { command = "test -e ready", interval_sec = 0, retries = 1 }'})
    variable = write_task("variable", 1, toml='[environment]\nenv = { TOKEN = "${EVOCODE_TEST_HOST}" }')
    docker = write_task("docker", 1, dockerfile="FROM python:3.11-slim-bookworm\nONBUILD RUN true\n")
    session = run_tasks("-v", "-rs", "tasks")
    assert session.exit_status == 1
    assert {task: listed(session, task) for task in ("solution", "missing", "setup", "round")} == {
        "solution": ["PASSED", "ERROR", "SKIPPED"],
        "missing": ["PASSED", "ERROR"],
        "setup": ["PASSED", "ERROR", "SKIPPED"],
        "round": ["PASSED", "ERROR", "SKIPPED"],
    }
    assert listed(session, "environment") == ["ERROR", "SKIPPED"]
    assert listed(session, "variable") == listed(session, "docker") == ["ERROR"]
    for headline, *lines in (
        (
            "solution oracle round-2",
            f"*{solution}/steps/round-2/solution/solve.sh: the reference solution ended with exit code 7; correct it.*",
            "*this went wrong",
        ),
        (
            "missing oracle round-2",
            f"*{missing}/steps/round-2/solution/solve.sh: the oracle runs this file, which does not exist; write it",
        ),
        (
            "setup oracle round-2",
            f"*{setup}/steps/round-2/workdir/setup.sh: ended with exit code 4; correct it.*",
            "*no such service",
        ),
        (
            "environment oracle round-1",
            f"*{environment}/task.toml: the healthcheck of the environment failed 2 times in a row: "
            "echo not yet; false",
            "not yet",
        ),
        ("round oracle round-2", "*the healthcheck of round-2 failed 1 times in a row: test -e ready*"),
        (
            "variable oracle round-1",
            f"*{variable}/task.toml:2: EVOCODE_TEST_HOST not set in the environment; export it or give a default*",
        ),
        (
            "docker oracle round-1",
            f"*{docker}/environment/Dockerfile:2: this task needs Docker: *--evocode-env=docker*",
        ),
    ):
        session.has(f"*ERROR at setup of {headline}*", *lines)
    session.has("SKIPPED [[]1[]] tasks/solution/task.toml:1: not reached: the attempt ended in round-2 with an error")


def test_a_missing_solution_is_nothing_to_another_agent(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, solve={1: None})
    assert run_tasks("tasks", agent="nop").outcomes == {"failed": 1}


def test_min_reward_stops_the_chain_below_it_and_wants_a_verdict(write_task: WriteTask, run_tasks: RunTasks) -> None:
    half = {1: "echo 0.5 > /logs/verifier/reward.txt"}
    write_task("below", 3, test=half, step={1: "min_reward = 0.6"})
    write_task("named", 2, test=half, step={1: "min_reward = { reward = 0.6 }"})
    write_task("reached", 2, test=half, step={1: "min_reward = 0.5"})
    write_task("silent", 2, test={1: "true"}, step={1: "min_reward = 0.0"})
    session = run_tasks("-v", "tasks")
    assert {task: listed(session, task) for task in ("below", "named", "reached", "silent")} == {
        "below": ["FAILED", "SKIPPED", "SKIPPED"],
        "named": ["FAILED", "SKIPPED"],
        "reached": ["FAILED", "PASSED"],
        "silent": ["ERROR", "SKIPPED"],
    }
    for name in ("below/task.toml::oracle::round-3", "named/task.toml::oracle::round-2"):
        session.has(f"*{name} SKIPPED (not reached: round-1 stayed below its min_reward)*")
    assert not (session.attempt("below") / "steps/round-2").exists()


def test_workdir_setup_healthcheck_and_variables_are_there_for_agent_and_suite(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVOCODE_TEST_WORD", "line")
    write_task(
        "workdir",
        2,
        workdir={2: {"log.txt": "line-1\n", "given/deep.txt": "line-2\n"}},
        solve={1: "echo lost > log.txt; echo line-1 >> log.txt", 2: "cat given/deep.txt >> log.txt"},
        test={2: "[ \"$(cat log.txt)\" = $'line-1\\nline-2' ] && echo 1 > /logs/verifier/reward.txt"},
    )
    write_task(
        "setup",
        1,
        workdir={1: {"setup.sh": "pwd > made-by-setup"}},
        solve={1: "grep -qx /app made-by-setup && echo line-1 > log.txt"},
    )
    # It is tried again until it succeeds.
    check = 'healthcheck = { command = "echo x >> tries; [ $(wc -l < tries) = 3 ]", interval_sec = 0, retries = 3 }'
    write_task("healthcheck", 1, step={1: check})
    write_task(
        "variables",
        1,
        toml='[environment]\nenv = { WORD = "${EVOCODE_TEST_WORD}" }\n[solution]\nenv = { NUMBER = "${NO:-1}" }\n'
        '[verifier]\nenv = { WANTED = "line-1" }',
        solve={1: "echo $WORD-$NUMBER$WANTED > log.txt"},
        test={1: 'grep -qx "$WANTED$NUMBER" log.txt && echo 1 > /logs/verifier/reward.txt'},
    )
    assert run_tasks("tasks").outcomes == {"passed": 5}


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


def test_an_attempt_whose_environment_does_not_start_is_in_no_score(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    write_task("broken", 2, dockerfile=f"{DOCKERFILE}RUN no-such-program\n")
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 2, "errors": 1, "skipped": 1}
    assert session.run.scores["oracle"]["dataset_score"] == 100.0
    assert [each.unscored for each in session.record("broken").rounds] == ["never started"] * 2
    session.has("not scored, never started: broken oracle: what its error says came before the agent's first turn")
    (apart,) = score_table(load_results([session.results])).apart
    assert "'no-such-program' ended with exit code 127" in apart.why


def test_an_agent_that_breaks_down_in_its_first_turn_is_scored(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        from pytest_evocode.errors import EnvironmentFault

        class Gone:
            name = "gone"

            def run_round(self, context):
                context.environment.stop()
                raise EnvironmentFault("the environment did not start")

        def pytest_evocode_make_agent(name):
            return Gone() if name == "gone" else None
        """
    )
    write_task("a", 2)
    session = run_tasks("tasks", agent="gone")
    assert session.run.scores["gone"]["dataset_score"] == 0.0
    assert [each.unscored for each in session.record("a", "gone").rounds] == [None, None]
