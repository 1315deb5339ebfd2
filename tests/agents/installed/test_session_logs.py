"""What Gemini CLI writes to a log of its own, and says too late or not at all in its events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.agents.installed.event_reader import SessionLog
from pytest_evocode.agents.installed.gemini_cli import GeminiCliAgent, GeminiCliOptions
from pytest_evocode.environments import Engine, Environment, Installation
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from tests import atif
from tests.agents.installed.conftest import KEY, Attempt, MakeTask
from tests.model_scripts import Say, Tokens
from tests.model_server import ModelServer

GEMINI = r"""
import json, os, sys, urllib.request
def ask():
    url = os.environ["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/gemini-x:generateContent"
    headers = {"x-goog-api-key": os.environ["GEMINI_API_KEY"], "Content-Type": "application/json"}
    body = json.dumps({"contents": [{"role": "user", "parts": [{"text": "Go on."}]}]}).encode()
    urllib.request.urlopen(urllib.request.Request(url, body, headers)).read()
session = "48a20d67-cc45-49cc"
log = os.path.expanduser(f"~/.gemini/tmp/app/chats/session-1-{session[:8]}.jsonl")
os.makedirs(os.path.dirname(log), exist_ok=True)
settings = open(os.path.expanduser("~/.gemini/settings.json")).read()
tell = lambda **event: print(json.dumps(event), flush=True)
def write(entry):
    with open(log, "a") as file:
        print(json.dumps(entry), file=file)
first = len(open(log).readlines()) if os.path.exists(log) else 0
tell(type="init", session_id=session, model="gemini-x")
tell(type="message", role="assistant", content=" ".join(sys.argv[1:]), delta=True)
for number in (1, 2, 3):
    ask()
    entry = {"id": f"m{first}-{number}", "type": "gemini"}
    call, name = f"c{number}", "run_shell_command"
    write(entry)
    tell(type="tool_use", tool_name=name, tool_id=call, parameters={"command": "x"})
    output = "Output: 1\nExit Code: 3" if number == 2 else "Output: 1"
    result = [{"functionResponse": {"response": {"output": output}}}]
    write({**entry, "toolCalls": [{"id": call, "name": name, "result": result}]})
    tell(type="tool_result", tool_id=call, status="success", output="1")
ask()
tell(type="message", role="assistant", content=json.loads(settings)["security"]["auth"]["selectedType"])
tell(type="result", status="success", stats={"total_tokens": 9999, "input_tokens": 999})
"""


def python(path: str, program: str) -> Installation:
    directory = Path(path).parent
    script = f"mkdir -p {directory}\n{{ echo '#!/usr/bin/env python3'; cat <<'END'\n{program}END\n}} >{path}\n"
    return Installation("a fake", f"{script}chmod 755 {path}")


class FakeGemini(GeminiCliAgent):
    """The agent with another program."""

    @property
    def installation(self) -> Installation:
        """See :data:`GEMINI`."""
        return python(self.npm.path, GEMINI)


@pytest.fixture
def agent(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGemini]:
    """One whose model counts 125 tokens for each answer."""
    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with ModelServer(lambda asked: Say("Yes."), key=KEY, tokens=Tokens(prompt=100, completion=25)) as server:
        yield FakeGemini("gemini-x", GeminiCliOptions(base_url=server.url))


@pytest.fixture
def environment(engine: Engine, make_task: MakeTask) -> Iterator[Environment]:
    started = engine.create(make_task("One.\n"), env={}, network="no-network")
    started.start()
    yield started
    started.stop()


def test_a_log_is_read_as_it_grows_in_whole_lines(environment: Environment) -> None:
    log = SessionLog(environment, None, "~/logs/*-x.jsonl")
    assert log.new() == []
    environment.exec("""mkdir ~/logs; printf '{"a": 1}\\n{"b"' >~/logs/1-x.jsonl""")
    assert log.new() == [{"a": 1}]
    environment.exec("""printf ': 2}\\nno event\\n[1]\\n{"c": "é"}\\n' >>~/logs/1-x.jsonl""")
    assert log.new() == [{"b": 2}, {"c": "é"}]
    assert log.new() == []


def test_gemini_clis_exit_codes_are_those_of_its_log_and_its_tokens_those_of_the_gateway(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, agent: FakeGemini
) -> None:
    for record in attempt(agent, make_task("One.\n", "Two.\n", toml="")):
        assert record.usage is not None
        assert (record.usage.prompt_tokens, record.usage.completion_tokens, record.usage.requests) == (400, 100, 4)
        steps = atif.read(directory.path / "steps" / record.round / "agent/trajectory.json")["steps"]
        actions = [each for step in steps for each in step.get("extra", {}).get("evocode", {}).get("actions", [])]
        assert [action["exit_code"] for action in actions] == [0, 3, 0]
        assert steps[-1]["message"] == "gemini-api-key"
        assert ("--resume 48a20d67-cc45-49cc" in steps[1]["message"]) == (record.index > 1)


def test_gemini_cli_is_ended_at_a_budget_of_tokens(make_task: MakeTask, attempt: Attempt, agent: FakeGemini) -> None:
    (record,) = attempt(agent, make_task("One.\n"), budget=Budget(tokens=200))
    assert record.stopped == "budget: tokens 250 of 200 used"
    assert record.tool_calls == 2
