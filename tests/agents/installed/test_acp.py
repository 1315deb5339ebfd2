"""Agents that speak the Agent Client Protocol, with a program in the sandbox."""

from __future__ import annotations

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_evocode.agents.acp.agent import AcpAgent, AcpOptions
from pytest_evocode.agents.acp.updates import AcpReader, usage_told
from pytest_evocode.agents.specs import Option, make_agent
from pytest_evocode.environments import Environment, Installation
from pytest_evocode.errors import EnvironmentFault, UsageError
from pytest_evocode.llm.budget import parse_budget
from pytest_evocode.trajectories.atif import AgentInfo, actions_of
from pytest_evocode.trajectories.recorder import Recorder
from tests.agents.installed.conftest import Attempt, MakeTask

PROGRAM = Path(__file__).parents[2] / "acceptance" / "acp_program.py"
FILES = {"agent.py": PROGRAM.read_text()}


def agent() -> AcpAgent:
    return AcpAgent("python3 agent.py", AcpOptions())


@pytest.mark.parametrize("limit", ["turns=30/round", "tokens=100/round", "turns=30", "cost=1/round"])
def test_a_limit_that_cannot_be_kept_to_is_refused(limit: str) -> None:
    with pytest.raises(UsageError, match="limit minutes only"):
        agent().check({}, parse_budget(limit))
    agent().check({}, parse_budget("minutes=5/round"))


def test_variables_are_given_as_json() -> None:
    made: Any = make_agent("acp:agent", {"env": Option('{"A": "b"}', "--evocode-agent-option", Path())})
    assert made._options.env == {"A": "b"}


def told(*updates: Any) -> AcpReader:
    """A reader that was told some updates, and then that there are no more."""
    reader = AcpReader(Recorder(AgentInfo(name="a", version="0"), "session"))
    for update in updates:
        reader.read(update)
    reader.close()
    return reader


def test_what_comes_of_a_call_after_its_end_is_no_second_call() -> None:
    begun = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls", "kind": "execute"}
    ended = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed"}
    assert told(begun, ended, ended).recorder.trajectory().tool_call_count == 1
    assert told(begun, ended, begun, ended).recorder.trajectory().tool_call_count == 2


def test_how_commands_ended_is_known_by_call() -> None:
    begun = {"sessionUpdate": "tool_call", "toolCallId": "1", "title": "ls", "kind": "execute"}
    ended = {"sessionUpdate": "tool_call_update", "toolCallId": "1", "status": "completed", "rawOutput": {"exit": 3}}
    assert told(begun, ended, {**begun, "toolCallId": "2"}).exit_codes == {"1": 3}


@pytest.mark.parametrize(
    ("content", "is_told"),
    [
        ([{"type": "terminal", "terminalId": "t"}], False),
        ([{"type": "content", "content": {"text": "1 passed"}}], True),
        ([{"type": "terminal", "terminalId": "t"}, {"type": "content", "content": {"text": "1 passed"}}], True),
        ([{"type": "terminal", "terminalId": "another"}], True),
        ([], True),
    ],
)
def test_a_result_that_no_terminal_of_ours_has_shown_is_marked_as_told(content: list[Any], is_told: bool) -> None:
    terminal = SimpleNamespace(text=lambda: "1 passed", exit_code=0)
    reader = AcpReader(Recorder(AgentInfo(name="a", version="0"), "session"), {"t": terminal})
    ended = {"toolCallId": "1", "kind": "execute", "status": "completed", "content": content}
    reader.read({"sessionUpdate": "tool_call", **ended})
    (action,) = (action for step in reader.recorder.trajectory().steps for action in actions_of(step))
    assert action.get("told", False) is is_told


@pytest.mark.parametrize("update", [None, 7, {}, {"sessionUpdate": "tool_call"}, {"sessionUpdate": "plan"}])
def test_an_update_of_unknown_form_is_left_out_and_said(update: Any) -> None:
    reader = told(update, {"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hi."}})
    first, second = reader.recorder.trajectory().steps
    assert str(first.message).startswith("An event of unknown form was left out")
    assert second.message == reader.final == "Hi."


def test_a_cost_that_is_no_amount_is_left_out() -> None:
    def says(amount: float) -> dict[str, Any]:
        return {"sessionUpdate": "usage_update", "cost": {"amount": amount, "currency": "USD"}}

    odd = (float("nan"), float("inf"), -1.0, 10**400)
    assert told(says(0.25), *map(says, odd)).cost == 0.25


def test_a_secret_among_the_variables_is_refused() -> None:
    with pytest.raises(ValueError, match=r"write \$\{MY_API_KEY\}"):
        AcpOptions(env={"MY_API_KEY": "sk-0123456789"})


def test_no_thread_is_left_where_a_program_cannot_be_started(
    make_task: MakeTask, attempt: Attempt, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_evocode.environments.sandbox.environment import SandboxEnvironment

    def fail(self: Environment, *given: Any) -> None:
        raise EnvironmentFault("the engine is down")

    monkeypatch.setattr(SandboxEnvironment, "open_program", fail)
    before = set(threading.enumerate())
    (record,) = attempt(agent(), make_task("say: x\n", files=FILES))
    assert record.outcome == "error"
    # Others may end meanwhile, such as those that remove what other tests left.
    assert set(threading.enumerate()) <= before


class Installed(AcpAgent):
    """An agent whose npm package has the program of the tests."""

    @property
    def installation(self) -> Installation:
        """Only this differs."""
        path = "/opt/evocode/agent/program"
        program = f"{{ echo '#!/usr/bin/env python3'; cat <<'END'\n{FILES['agent.py']}END\n}}"
        return Installation("a fake", f"mkdir -p {Path(path).parent}\n{program} >{path}\nchmod 755 {path}")


def test_the_program_of_an_npm_package_is_started_from_where_it_is_installed_and_may_refuse(
    make_task: MakeTask, attempt: Attempt
) -> None:
    task = make_task("remember: x\n", "recall: x.txt\nrun: cat x.txt; grep -qx x x.txt\nstop: refusal\n")
    records = attempt(Installed("agent loads", AcpOptions(npm="an-agent@1.2")), task)
    assert [(record.outcome, record.cause) for record in records] == [("passed", "")] * 2
    # A refusal counts as one.
    assert [record.refused for record in records] == [False, True]
    assert "refused to go on" in records[1].stopped


def test_an_npm_package_is_what_the_record_says_drove_the_model_and_is_installed_after_the_script() -> None:
    made: Any = make_agent(
        "acp:qwen --acp", {"npm": Option("@a/b@1.2", "here", Path()), "install": Option("false", "here", Path())}
    )
    assert made.harness == ("@a/b", "1.2")
    assert made.installation.name == "@a/b@1.2"
    assert made.installation.script.startswith("bash -c false || exit\n")
    assert "package=@a/b@1.2" in made.installation.script


@pytest.mark.parametrize("options", [{"npm": "a@1"}, {"install": "true"}])
def test_certificates_are_trusted_while_a_program_is_installed(options: dict[str, Any]) -> None:
    made = AcpAgent("agent", AcpOptions(ca=Path("ca.pem"), **options)).installation
    assert made is not None
    assert made.ca == Path("ca.pem")


@pytest.mark.parametrize(("npm", "command"), [("a@1", "KEY=b agent"), ("a@1", "/usr/bin/agent")])
def test_a_command_that_does_not_begin_with_the_packages_program_is_refused(npm: str, command: str) -> None:
    with pytest.raises(UsageError, match="has to begin with the package's program"):
        AcpAgent(command, AcpOptions(npm=npm)).check({}, parse_budget("minutes=5"))


@pytest.mark.parametrize("npm", ["a; rm -rf /", "@a", "a@", "../a", ""])
def test_what_is_no_npm_package_is_refused(npm: str) -> None:
    with pytest.raises(ValueError, match="npm"):
        AcpOptions(npm=npm)


@pytest.mark.parametrize(
    ("told", "prompt", "completion"),
    [
        ({"inputTokens": 2000, "outputTokens": 100, "cachedReadTokens": 1200, "totalTokens": 2100}, 2000, 100),
        ({"inputTokens": 800, "outputTokens": 100, "cachedReadTokens": 1200, "totalTokens": 2100}, 2000, 100),
        ({"inputTokens": 800, "outputTokens": 100, "cachedReadTokens": 1000, "cachedWriteTokens": 200}, 2000, 100),
        ({"inputTokens": 2000, "outputTokens": 70, "cachedReadTokens": 9, "thoughtTokens": 30, "totalTokens": 2100},
         2000, 100),
        ({"inputTokens": 1991, "outputTokens": 100, "cachedReadTokens": 9, "thoughtTokens": 30, "totalTokens": 2100},
         2000, 100),
        ({"outputTokens": 100}, None, 100),
        ({"inputTokens": "many", "outputTokens": -1, "totalTokens": None}, None, None),
        ("nothing", None, None),
    ],
)  # fmt: skip
def test_tokens_count_once_whichever_way_an_agent_counts_those_of_the_cache_and_of_thoughts(
    told: Any, prompt: int | None, completion: int | None
) -> None:
    usage = usage_told(told, cost=0.5, requests=2)
    assert usage is not None
    assert (usage.prompt_tokens, usage.completion_tokens) == (prompt, completion)
    assert (usage.cost_usd, usage.requests) == (0.5, 2)


def test_a_cost_that_begins_anew_when_a_session_is_loaded_counts_whole() -> None:
    recorder = Recorder(AgentInfo(name="a", version="0"), "session")
    agent, costs = AcpAgent("agent", AcpOptions()), []
    for told in (0.5, 0.75, 0.25):
        reader = AcpReader(recorder)
        reader.cost = told
        agent._count(reader, None)
        costs.append(recorder.spending.spent.cost_usd)
    assert costs == [0.5, 0.75, 1.0]


def test_tokens_of_thoughts_and_those_written_to_the_cache_are_told() -> None:
    told = {"inputTokens": 10, "outputTokens": 5, "cachedWriteTokens": 4, "thoughtTokens": 3}
    usage = usage_told(told, cost=None, requests=1)
    assert usage is not None
    assert (usage.cache_write_tokens, usage.reasoning_tokens) == (4, 3)
    assert usage_told(None, cost=None, requests=1) is None
