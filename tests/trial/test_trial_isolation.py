"""What is in whose reach: tests, rewards, solutions and processes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask, Scripted

PASS = "echo 1 > /logs/verifier/reward.txt"
LOOK = "for path in /tests /logs/verifier /solution; do [ -e $path ] && echo $path; done; true"


def seen(context: RoundContext) -> list[str]:
    return context.environment.exec(LOOK).output.split()


def test_an_agent_never_has_tests_rewards_or_solutions_in_reach(
    engine: Engine, make_task: MakeTask, scripted: type[Scripted]
) -> None:
    found: list[list[str]] = []
    # A min_reward makes the second turn come after the first suite.
    task = make_task(PASS, PASS, steps={1: "min_reward = 1"}, files={"steps/round-1/solution/solve.sh": "true"})
    with Trial(task, scripted(*[lambda context: found.append(seen(context))] * 2), engine) as trial:
        environment = trial.wait_environment()
        assert [trial.wait(1).outcome, trial.wait(2).outcome] == ["passed", "passed"]
        assert found == [[], []]
        assert environment.exec(LOOK).output == ""


def test_an_agent_finds_its_own_logs_and_a_place_for_artifacts(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    agent = scripted("touch /logs/agent/log.txt /logs/artifacts/file.txt")
    assert finish(Trial(make_task(PASS), agent, engine))[0].passed


def test_the_oracle_has_its_rounds_solution_during_its_turn_only_and_no_suite_sees_one(
    engine: Engine, make_task: MakeTask
) -> None:
    look = f"{{ {LOOK}; }} >> /app/seen.txt; ls /solution >> /app/seen.txt"
    suite = f"[ -e /solution ] && exit; {PASS}"
    files = {
        "steps/round-1/solution/solve.sh": look,
        "steps/round-1/solution/one.txt": "",
        "steps/round-2/solution/solve.sh": f"{look}; sleep 600",
        "steps/round-2/solution/two.txt": "",
    }
    task = make_task(suite, suite, files=files, steps={2: "agent = { timeout_sec = 0.5 }"})
    with Trial(task, OracleAgent(), engine) as trial:
        environment = trial.wait_environment()
        assert [trial.wait(1).outcome, trial.wait(2).outcome] == ["passed", "passed"]
        assert trial.wait(2).timed_out == "agent"
        assert environment.exec(LOOK).output == ""
        assert environment.exec("cat seen.txt").output.split() == [
            *("/solution", "one.txt", "solve.sh"),
            *("/solution", "solve.sh", "two.txt"),
        ]


def test_a_solution_that_fails_is_gone_all_the_same(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(PASS, PASS, files={"steps/round-1/solution/solve.sh": "echo broken; exit 3"})
    with Trial(task, OracleAgent(), engine) as trial:
        record = trial.wait(1)
        assert record.outcome == "error"
        assert "solution/solve.sh: the reference solution ended with exit code 3" in record.cause
        assert record.cause.endswith("broken")
        assert trial.wait_environment().exec(LOOK).output == ""
        assert trial.wait(2).outcome == "not reached"


def test_a_task_without_a_solution_is_the_oracles_error(engine: Engine, make_task: MakeTask, finish: Finish) -> None:
    (record,) = finish(Trial(make_task(PASS), OracleAgent(), engine))
    assert record.outcome == "error"
    assert "steps/round-1/solution/solve.sh: the oracle runs this file, which does not exist" in record.cause


def test_what_an_agent_plants_for_the_verifier_is_not_there(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    plant = "mkdir -p /tests /logs/verifier; echo 1 > /logs/verifier/reward.txt; echo exit > /tests/lib.sh"
    link = "rm -rf /tests /logs/verifier; ln -s /app /tests; ln -s /app /logs/verifier; echo 1 > reward.txt"
    records = finish(Trial(make_task("ls /tests", "ls /tests"), scripted(plant, link), engine))
    assert [record.outcome for record in records] == ["error", "error"]
    assert all("wrote no reward" in record.cause and record.cause.endswith("\ntest.sh") for record in records)


def test_a_service_of_the_agent_lives_on_and_no_suite_sees_it(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], moment: str
) -> None:
    find = "grep -lax '[s]leep' /proc/[0-9]*/comm 2>/dev/null | wc -l"
    alive: list[str] = []
    agent = scripted(
        f"sleep {moment} >/dev/null 2>&1 &",
        lambda context: alive.append(context.environment.exec(find).output.strip()),
    )
    suite = f'[ "$({find})" = 0 ] && {PASS}'
    task = make_task(suite, suite, steps={1: "min_reward = 0"})
    records = finish(Trial(task, agent, engine))
    assert alive == ["1"]
    assert [record.outcome for record in records] == ["passed", "passed"]


def test_what_a_suite_does_never_reaches_the_agent(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    task = make_task(f"rm -rf /app/*; touch /app/from-suite /tmp/from-suite; {PASS}", PASS, steps={1: "min_reward = 1"})
    listed: list[str] = []
    agent = scripted("touch kept", lambda context: listed.append(context.environment.exec("ls /app /tmp").output))
    assert all(record.passed for record in finish(Trial(task, agent, engine)))
    assert listed == ["/app:\nkept\n\n/tmp:\n"]


def test_every_phase_runs_as_the_user_that_the_task_names(engine: Engine, make_task: MakeTask) -> None:
    task = make_task(
        f'[ "$(id -u)" = 1 ] && touch /tests/new && {PASS}',
        f'[ "$(id -u)" = 0 ] && {PASS}',
        toml='[agent]\nuser = "nobody"\n[verifier]\nuser = 1',
        steps={2: "agent = { user = 4321 }\nverifier = { user = 'root' }"},
        files={
            "steps/round-1/workdir/given.txt": "given\n",
            "steps/round-1/solution/solve.sh": "id -u > /tmp/agent-1; echo more >> given.txt",
            "steps/round-2/solution/solve.sh": "id -u > /tmp/agent-2",
        },
    )
    with Trial(task, OracleAgent(), engine) as trial:
        assert [(trial.wait(index).outcome, trial.wait(index).cause) for index in (1, 2)] == [("passed", "")] * 2
        assert trial.wait_environment().exec("cat /tmp/agent-* given.txt").output == "65534\n4321\ngiven\nmore\n"


def test_an_agent_of_the_images_own_user_can_edit_what_a_round_brings(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    task = make_task(
        f"cat /app/given/file.txt; {PASS}",
        dockerfile="FROM debian:bookworm-slim\nWORKDIR /app\nRUN chmod 777 /app\nUSER nobody\n",
        files={"steps/round-1/workdir/given/file.txt": "given\n"},
    )
    agent = scripted("[ $(id -u) = 65534 ] && echo more >> given/file.txt && touch given/new")
    (record,) = finish(Trial(task, agent, engine))
    assert record.outcome == "passed", record.cause


def test_an_agents_timeout_kills_all_that_it_left_running_and_its_work_counts(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted], moment: str
) -> None:
    left: list[str] = []

    def look(context: RoundContext) -> None:
        left.append(context.environment.exec("cat /proc/[0-9]*/comm | grep -c sleep").output.strip())

    def run_out_of_its_own_time(context: RoundContext) -> RoundTranscript:
        look(context)
        context.environment.exec(f"setsid sleep {moment} >/dev/null 2>&1 &")
        return RoundTranscript(timed_out=True)

    killed = f"echo done > work.txt; sleep {moment} & setsid sleep {moment} & sleep {moment}"
    suite = f"grep -q done work.txt && {PASS}"
    steps = {1: "agent = { timeout_sec = 0.5 }", 2: "agent = { timeout_sec = 600 }"}
    task = make_task(suite, PASS, PASS, steps=steps)
    first, second, third = finish(Trial(task, scripted(killed, run_out_of_its_own_time, look), engine))
    assert (first.outcome, first.timed_out) == ("passed", "agent")
    assert first.cause == "the agent was stopped at its timeout of 0.5 s"
    assert (second.outcome, second.timed_out) == ("passed", "agent")
    assert (third.outcome, third.timed_out, left) == ("passed", None, ["0", "0"])


def test_an_agent_that_gave_up_without_a_deadline_is_no_reason_to_fail(
    engine: Engine, make_task: MakeTask, finish: Finish, scripted: type[Scripted]
) -> None:
    """A model client may run out of its own time where the task sets none."""
    (record,) = finish(Trial(make_task(PASS), scripted(lambda context: RoundTranscript(timed_out=True)), engine))
    assert (record.outcome, record.timed_out, record.cause) == ("passed", "agent", "the agent ran out of time")
