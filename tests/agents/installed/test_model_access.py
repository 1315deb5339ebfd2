"""What becomes of a program's turn by way of the gateway: faults of its model's provider, waits, limits, steps."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.agents import Agent
from pytest_evocode.agents.acp.agent import AcpAgent, AcpOptions
from pytest_evocode.agents.installed.claude_code import ClaudeCodeOptions
from pytest_evocode.agents.installed.declared_command import CommandAgent, CommandDeclaration
from pytest_evocode.agents.installed.exchange_reader import ExchangeReader
from pytest_evocode.environments import Engine
from pytest_evocode.errors import UsageError
from pytest_evocode.gateway import Exchange
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord, Usage
from pytest_evocode.tasks import Task
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests import atif
from tests.agents.installed.conftest import KEY, PASS, Attempt, FakeClaude, MakeTask, answer
from tests.model_scripts import Asked, Fail, HangUp, Run, Say, Step, Tokens
from tests.model_server import ModelServer

pytestmark = pytest.mark.turns(3)

NOWHERE = '[environment]\nnetwork_mode = "no-network"\n'
BUSY = Fail(529, retry_after=0.02)
Play = Callable[..., list[RoundRecord]]


@pytest.fixture
def play(engine: Engine, directory: AttemptDirectory) -> Play:
    """Run an agent through a task."""

    def run(agent: Agent, task: Task, **options: Any) -> list[RoundRecord]:
        return list(Trial(task, agent, engine, directory=directory, options=TrialOptions(**options)).run())

    return run


def fake(server: ModelServer) -> FakeClaude:
    return FakeClaude("claude-sonnet-4-5", ClaudeCodeOptions(base_url=server.url))


def in_weather(*weather: Step, at: int) -> ModelServer:
    """The model of :class:`FakeClaude`, whose provider fails for a while from one request on."""
    coming = [*weather]
    asked_for: list[Asked] = []

    def script(asked: Asked) -> Step:
        asked_for.append(asked)
        return coming.pop(0) if len(asked_for) >= at and coming else answer(asked)

    return ModelServer(script, key=KEY, tokens=Tokens(prompt=80, completion=20))


def steps(directory: AttemptDirectory, round_name: str = "round-1") -> list[Any]:
    found: list[Any] = atif.read(directory.path / "steps" / round_name / "agent/trajectory.json")["steps"]
    return [step for step in found if step["source"] == "agent"]


WEATHER: dict[str, list[Step]] = {
    "a storm of 529": [BUSY] * 5,
    "rate limits": [Fail(429, retry_after=0.02)] * 5,
    "errors of the server": [Fail(500, retry_after=0.02), Fail(503, retry_after=0.02), Fail(502, retry_after=0.02)],
    "lost connections": [HangUp()],
}


@pytest.mark.parametrize("weather", WEATHER)
@pytest.mark.parametrize("at", [4, 1])
@pytest.mark.matrix
def test_an_attempt_scores_as_without_its_providers_weather(
    make_task: MakeTask, play: Play, weather: str, at: int
) -> None:
    task = make_task("run: touch a\nsay: one\n", "run: touch b\n", "run: ls a b\n", check=f"[ -e a ] && {PASS}")
    with in_weather(*WEATHER[weather], at=at) as server:
        records = play(fake(server), task)
    assert [(record.outcome, record.cause, record.stopped) for record in records] == [("passed", "", "")] * 3
    assert [record.usage and record.usage.tokens for record in records] == [200, 100, 100]
    waits = [record.provider_waits.retries if record.provider_waits else 0 for record in records]
    assert waits == ([len(WEATHER[weather]), 0, 0] if at == 1 else [0, 0, len(WEATHER[weather])])


def test_a_storm_that_does_not_end_is_nobodys_score(make_task: MakeTask, play: Play) -> None:
    task = make_task("run: touch a\n", "run: touch b\n", "run: touch c\n")
    with in_weather(*[Fail(529, retry_after=5)] * 99, at=2) as server:
        first, second, third = play(fake(server), task, waiting_limit=2)
    assert (first.outcome, second.outcome, third.outcome) == ("passed", "error", "not reached")
    assert second.fault == "infrastructure"
    assert "529" in second.cause or "may wait" in second.cause


def test_a_key_that_is_refused_is_not_tried_for_minutes(
    make_task: MakeTask, play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-of-somebody-else-0123456789")
    with in_weather(at=99) as server:
        (record,) = play(fake(server), make_task("run: touch a\n"))
    assert (record.outcome, record.fault) == ("error", "infrastructure")
    assert "401" in record.cause
    assert len(server.asked) < 10


def test_a_server_that_is_not_there_is_nobodys_score(make_task: MakeTask, play: Play) -> None:
    with in_weather(at=1) as server:
        gone = fake(server)
    (record,) = play(gone, make_task("run: touch a\n"))
    assert (record.outcome, record.fault) == ("error", "infrastructure")
    assert "Cannot connect to host 127.0.0.1" in record.cause


def test_what_is_waited_for_is_off_the_turns_clock(make_task: MakeTask, play: Play) -> None:
    with in_weather(*[Fail(529, retry_after=2)] * 2, at=1) as server:
        (record,) = play(fake(server), make_task("run: touch a\n", timeout=3))
    assert (record.outcome, record.timed_out) == ("passed", None)
    assert record.provider_waits is not None
    assert sum(record.provider_waits.seconds.values()) >= 4
    assert record.agent_seconds is not None
    assert record.agent_seconds < 3


def test_a_conversation_that_is_too_long_ends_the_turn_and_is_no_error(make_task: MakeTask, play: Play) -> None:
    too_long = Fail(400, "prompt is too long: 250000 tokens > 200000 maximum")
    with in_weather(*[too_long] * 99, at=2) as server:
        (record,) = play(fake(server), make_task("run: touch a\nsay: two\n", check=f"[ -e a ] && {PASS}"))
    assert record.outcome == "passed"
    assert record.stopped.startswith("context: the conversation is longer than the model takes (prompt is too long: ")


def test_what_the_program_asks_for_and_no_provider_takes_is_the_agents_fault(make_task: MakeTask, play: Play) -> None:
    with in_weather(*[Fail(400, "messages: text content blocks must be non-empty")] * 99, at=1) as server:
        (record,) = play(fake(server), make_task("run: touch a\n"))
    assert (record.outcome, record.fault) == ("error", "agent")
    assert "must be non-empty" in record.cause


# Programs that only say which APIs they ask.

COMMAND = """
import json, os, subprocess, sys, urllib.request
messages = [{"role": "user", "content": open(os.environ["EVOCODE_INSTRUCTION_FILE"]).read()}]
while True:
    tool = {"name": "bash", "parameters": {"type": "object", "properties": {"command": {"type": "string"}}}}
    body = {"model": os.environ["EVOCODE_MODEL"], "messages": messages}
    body["tools"] = [{"type": "function", "function": tool}]
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}", "Content-Type": "application/json"}
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    reply = json.load(urllib.request.urlopen(urllib.request.Request(url, json.dumps(body).encode(), headers)))
    message = reply["choices"][0]["message"]
    messages.append(message)
    for call in message.get("tool_calls") or sys.exit():
        done = subprocess.run(json.loads(call["function"]["arguments"])["command"], shell=True, capture_output=True)
        messages.append({"role": "tool", "tool_call_id": call["id"], "content": done.stdout.decode()})
"""


START = f"cat >/tmp/mine.py <<'END'\n{COMMAND}END\nexec python3 /tmp/mine.py"


def mine(server: ModelServer, **declared: Any) -> CommandAgent:
    values = {"start": START, "api": "openai", "base_url": f"{server.url}/v1", **declared}
    return CommandAgent("mine", CommandDeclaration.model_validate(values), model="gpt-5.2")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """A model that writes a file, tells what is there, and is done."""

    def script(asked: Asked) -> Step:
        commands = ["echo new > file; echo made", "ls"]
        done = len(asked.results)
        return [Say("I look."), Run(commands[done])] if done < 2 and asked.tools else Say("Done.")

    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ModelServer(script, key=KEY) as started:
        yield started


def test_the_steps_and_tokens_of_a_command_are_what_it_asked(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, server: ModelServer
) -> None:
    agent = mine(server)
    agent.check({"OPENAI_API_KEY": KEY}, Budget(tokens=1, turns=1))
    (record,) = attempt(agent, make_task("Do it.\n", toml=NOWHERE))
    assert (record.outcome, record.cause, record.tool_calls) == ("passed", "", 2)
    assert record.usage is not None
    assert (record.usage.prompt_tokens, record.usage.completion_tokens, record.usage.requests) == (3000, 150, 3)
    first, second, last = steps(directory)
    assert [step["message"] for step in (first, second, last)] == ["I look.", "I look.", "Done."]
    assert [step["metrics"]["prompt_tokens"] for step in (first, second, last)] == [1000] * 3
    assert first["observation"]["results"][0]["content"] == "made\n"
    assert [change["path"] for change in first["extra"]["evocode"]["actions"][0]["changes"]] == ["file"]
    assert "file" in second["observation"]["results"][0]["content"]


def test_a_command_ends_at_a_budget_of_tokens(make_task: MakeTask, attempt: Attempt, server: ModelServer) -> None:
    (record,) = attempt(mine(server), make_task("Do it.\n"), budget=Budget(tokens=2000))
    assert (record.outcome, record.stopped) == ("passed", "budget: tokens 2,100 of 2,000 used")
    assert len(server.counted) == 2


def test_a_round_that_begins_with_the_budget_used_up_used_nothing(
    make_task: MakeTask, attempt: Attempt, server: ModelServer
) -> None:
    program = Path(__file__).parents[2] / "acceptance" / "acp_program.py"
    of_protocol = AcpAgent("python3 agent.py", AcpOptions(api="openai", base_url=f"{server.url}/v1"))
    task = make_task("model: one\n", "model: two\n", files={"agent.py": program.read_text()}, toml=NOWHERE)
    first, second = attempt(of_protocol, task, budget=Budget(tokens=1000))
    assert [each.usage and (each.usage.tokens, each.usage.requests) for each in (first, second)] == [(1050, 1), (0, 0)]


def test_a_program_whose_first_request_the_budget_refuses_used_nothing(
    make_task: MakeTask, attempt: Attempt, server: ModelServer
) -> None:
    waits = CommandDeclaration.model_validate(
        {"start": f"sleep 2; {START}", "api": "openai", "base_url": f"{server.url}/v1"}
    )
    agent = CommandAgent("mine", waits, model="model-of-mine")
    (record,) = attempt(agent, make_task("Do it.\n"), budget=Budget(minutes=1 / 60))
    assert "budget: minutes" in record.stopped
    assert not server.counted
    assert record.usage is not None
    assert (record.usage.tokens, record.usage.cost_usd, record.usage.requests) == (0, 0, 0)


def test_what_a_program_used_that_asks_nowhere_we_know_stays_unknown(make_task: MakeTask, attempt: Attempt) -> None:
    declared = CommandDeclaration.model_validate({"start": "true"})
    (record,) = attempt(CommandAgent("mine", declared, model="model-of-mine"), make_task("Do it.\n"))
    assert record.usage is None


def test_a_limit_of_cost_ends_with_the_first_reply_whose_price_nobody_knows(
    make_task: MakeTask, attempt: Attempt, server: ModelServer, tmp_path: Path
) -> None:
    task = make_task("Do it.\n")
    unknown = CommandDeclaration.model_validate({"start": START, "api": "openai", "base_url": f"{server.url}/v1"})
    (record,) = attempt(CommandAgent("mine", unknown, model="model-of-mine"), task, budget=Budget(cost=1))
    assert (record.outcome, record.fault) == ("error", "agent")
    assert "what model-of-mine costs is not known" in record.cause
    assert len(server.counted) == 1
    (tmp_path / "prices.json").write_text('{"models": {"model-of-mine": {"input": 400, "output": 0}}}')
    known = unknown.model_copy(update={"prices": tmp_path / "prices.json"})
    (record,) = attempt(CommandAgent("mine", known, model="model-of-mine"), task, budget=Budget(cost=0.5))
    assert (record.outcome, record.stopped) == ("passed", "budget: cost $0.8 of $0.5 used")


def test_the_trajectory_that_a_command_writes_has_its_steps_and_the_gateway_its_tokens(
    make_task: MakeTask, attempt: Attempt, server: ModelServer
) -> None:
    step = {"step_id": 1, "source": "agent", "message": "Done.", "metrics": {"prompt_tokens": 1}}
    agent = {"name": "mine", "version": "1"}
    told = {"schema_version": "ATIF-v1.7", "session_id": "x", "agent": agent, "steps": [step]}
    start = f"cat >/tmp/mine.py <<'END'\n{COMMAND}END\necho '{json.dumps(told)}' >t.json; python3 /tmp/mine.py"
    (record,) = attempt(mine(server, start=start, trajectory="t.json"), make_task("Do it.\n"))
    assert (record.outcome, record.tool_calls) == ("passed", 0)
    assert record.usage is not None
    assert record.usage.prompt_tokens == 3000


@pytest.mark.parametrize("arguments", ["", " loads"])
def test_an_agent_of_the_protocol_asks_by_the_gateway_in_all_its_turns(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, server: ModelServer, arguments: str
) -> None:
    program = Path(__file__).parents[2] / "acceptance" / "acp_program.py"
    options = AcpOptions(api="openai", base_url=f"{server.url}/v1", env={"COPY": "${OPENAI_API_KEY}"})
    agent = AcpAgent(f"python3 agent.py{arguments}", options)
    agent.check({"OPENAI_API_KEY": KEY}, Budget(tokens=1))
    lines = ("remember: x\nmodel: one\nrun: env | grep -c API_KEY; true\n", "recall: w\nmodel: two\nmodel: three\n")
    task = make_task(*lines, toml=NOWHERE, files={"agent.py": program.read_text()}, check=PASS)
    first, second = attempt(agent, task)
    assert [(record.outcome, record.cause) for record in (first, second)] == [("passed", "")] * 2
    assert [record.usage and record.usage.tokens for record in (first, second)] == [1050, 2100]
    assert sum(step.get("metrics", {}).get("prompt_tokens") or 0 for step in steps(directory, "round-2")) == 2000
    assert not any(KEY.encode() in path.read_bytes() for path in directory.path.rglob("*") if path.is_file())


def test_an_agent_of_the_protocol_ends_at_a_budget_of_tokens(
    make_task: MakeTask, attempt: Attempt, server: ModelServer
) -> None:
    program = Path(__file__).parents[2] / "acceptance" / "acp_program.py"
    agent = AcpAgent("python3 agent.py", AcpOptions(api="openai", base_url=f"{server.url}/v1"))
    task = make_task("model: one\nmodel: two\nmodel: three\n", files={"agent.py": program.read_text()}, toml=NOWHERE)
    (record,) = attempt(agent, task, budget=Budget(tokens=2000))
    assert (record.outcome, record.stopped) == ("passed", "budget: tokens 2,100 of 2,000 used")


def test_a_program_that_asks_by_the_gateway_needs_its_key_on_this_machine(server: ModelServer) -> None:
    with pytest.raises(UsageError, match="api = 'openai' needs a key and OPENAI_API_KEY is not set"):
        mine(server).check({}, Budget())
    with pytest.raises(UsageError, match="MY_API_KEY is not set"):
        AcpAgent("agent", AcpOptions(api="google", key_env="MY_API_KEY")).check({"GEMINI_API_KEY": KEY}, Budget())


def test_a_step_has_what_the_server_says_of_single_tokens() -> None:
    choice = {"message": {"role": "assistant", "content": "Hi"}, "finish_reason": "stop", "token_ids": [7, 8]}
    logprobs = {"content": [{"token": "H", "logprob": -0.5}, {"token": "i", "logprob": -0.25}]}
    exchange = Exchange(
        number=1,
        api="chat",
        method="POST",
        path="/openai/v1/chat/completions",
        began="",
        seconds=0.1,
        status=200,
        usage=Usage(prompt_tokens=3, completion_tokens=2),
        response=json.dumps({"prompt_token_ids": [1, 2, 3], "choices": [choice | {"logprobs": logprobs}]}),
    )
    recorder = Recorder(AgentInfo(name="a", version="0"), "session")
    reader = ExchangeReader(recorder)
    reader.take(exchange)
    reader.settle()
    (step,) = recorder.trajectory().steps
    assert step.metrics is not None
    assert (step.metrics.prompt_tokens, step.metrics.prompt_token_ids) == (3, (1, 2, 3))
    assert (step.metrics.completion_token_ids, step.metrics.logprobs) == ((7, 8), (-0.5, -0.25))
