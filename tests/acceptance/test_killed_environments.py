"""A container or sandbox that somebody kills is an error that says so, no failed round, and the attempt can go on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

# In round 2, and once for all sessions, it has its environment killed, or the fork of its suite.
AGENT = """
import os, pathlib, signal, threading, time
from pytest_evocode.agents import RoundTranscript

MARK = pathlib.Path(__file__).with_name("killed")

def kill(environment):
    time.sleep(1)
    if hasattr(environment, "_client"):
        environment._client.kill(environment._id)
    else:
        info = pathlib.Path(f"/proc/self/fdinfo/{environment._pidfd}").read_text()
        os.kill(int(info.split("Pid:")[1].split()[0]), signal.SIGKILL)

def kill_soon(environment):
    MARK.touch()
    threading.Thread(target=kill, args=[environment]).start()

class Agent:
    name = "unlucky"

    def run_round(self, context):
        index, environment = context.round.index, context.environment
        if index == 2 and not MARK.exists():
            if WHERE == "turn":
                kill_soon(environment)
                environment.exec("sleep 60", user=USER)
            make, environment.fork = environment.fork, lambda *a, **k: self.unlucky(make(*a, **k))
        environment.exec(f"echo line-{index} >> log.txt")
        return RoundTranscript()

    def unlucky(self, fork):
        start = fork.start
        fork.start = lambda: (start(), kill_soon(fork)) if not MARK.exists() else start()
        return fork

    def save_state(self):
        return {}

    def load_state(self, state):
        pass

def pytest_evocode_make_agent(name):
    return Agent() if name == "unlucky" else None
"""
# Slow, so that it is killed before its end, and pinned: what the suite fails to say would count against the agent.
SCRIPT = "sleep 4; grep -qx line-2 log.txt && echo 1 > /logs/verifier/reward.txt"
NATIVE = """
def test_line(workspace):
    assert workspace.run("sleep 4; grep -qx line-2 log.txt", user="USER").exit_code == 0
"""


@pytest.mark.parametrize(("env", "where", "user"), [("sandbox", "turn", "root")])
@pytest.mark.nightly
def test_a_killed_environment_is_an_error_and_the_attempt_goes_on(
    write_task: WriteTask,
    run_tasks: RunTasks,
    pytester: pytest.Pytester,
    env: str,
    where: str,
    user: str,
) -> None:
    pytester.makeconftest(AGENT.replace("WHERE", repr(where)).replace("USER", repr(user)))
    write_task(
        "a",
        3,
        test={2: SCRIPT} if where == "script" else {},
        native={2: NATIVE.replace("USER", user)} if where == "native" else {},
        toml='[metadata.evocode]\nverify_in = "separate"\n' if where == "native" else "",
        # Not before round 1 has its fork, which is made of the same environment.
        step={1: "min_reward = 1", 2: f'verifier.user = "{user}"' if where == "script" else ""},
        dockerfile="FROM python:3.11-slim-bookworm\nWORKDIR /app\nRUN chmod 777 /app\n",
    )
    session = run_tasks("tasks", agent="unlucky", env=env)
    records = session.record("a", "unlucky").rounds
    assert (pytester.path / "killed").exists()
    assert [record.outcome for record in records][:2] == ["passed", "error"], session.text
    assert (records[1].verdict, records[1].fault) == (None, "infrastructure")
    assert "killed from outside" in records[1].cause
    session.has("*killed from outside*--evocode-resume*")
    again = run_tasks("--evocode-resume", "tasks", agent="unlucky", env=env)
    assert [record.outcome for record in again.record("a", "unlucky").rounds] == ["passed"] * 3, again.text


@pytest.mark.nightly
@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.parametrize("where", ["turn", "script", "native"])
@pytest.mark.parametrize("user", ["root", "nobody"])
def test_whatever_ran_in_it_and_as_whom_the_attempt_goes_on(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester, env: str, where: str, user: str
) -> None:
    test_a_killed_environment_is_an_error_and_the_attempt_goes_on(write_task, run_tasks, pytester, env, where, user)
