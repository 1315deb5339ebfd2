"""What CLIs write to logs of their own, and say too late or not at all in their events."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from pytest_evocode.agents.installed.codex import CodexAgent, CodexOptions
from pytest_evocode.agents.installed.event_reader import SessionLog
from pytest_evocode.agents.installed.gemini_cli import GeminiCliAgent, GeminiCliOptions
from pytest_evocode.agents.installed.program_run import run_program
from pytest_evocode.environments import Engine, Environment, Installation
from pytest_evocode.errors import RunLimitReached
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from tests import atif
from tests.agents.installed.conftest import PASS, Attempt, MakeTask

GEMINI = r"""
import json, os, sys, time
pause = 0.5 if "Slowly." in sys.stdin.read() else 0
session = "48a20d67-cc45-49cc"
log = os.path.expanduser(f"~/.gemini/tmp/app/chats/session-1-{session[:8]}.jsonl")
os.makedirs(os.path.dirname(log), exist_ok=True)
settings = open(os.path.expanduser("~/.gemini/settings.json")).read()
tell = lambda **event: print(json.dumps(event), flush=True)
def write(entry):
    with open(log, "a") as file:
        print(json.dumps(entry), file=file)
tokens = {"input": 100, "output": 20, "cached": 10, "thoughts": 5}
first = len(open(log).readlines()) if os.path.exists(log) else 0
tell(type="init", session_id=session, model="gemini-x")
tell(type="message", role="assistant", content=" ".join(sys.argv[1:]), delta=True)
for number in (1, 2, 3):
    entry = {"id": f"m{first}-{number}", "type": "gemini", "tokens": tokens}
    call, name = f"c{number}", "run_shell_command"
    write(entry)
    tell(type="tool_use", tool_name=name, tool_id=call, parameters={"command": "x"})
    output = "Output: 1\nExit Code: 3" if number == 2 else "Output: 1"
    result = [{"functionResponse": {"response": {"output": output}}}]
    write({**entry, "toolCalls": [{"id": call, "name": name, "result": result}]})
    tell(type="tool_result", tool_id=call, status="success", output="1")
    time.sleep(pause)
write({"id": f"m{first}-4", "type": "gemini", "tokens": tokens})
tell(type="message", role="assistant", content=json.loads(settings)["security"]["auth"]["selectedType"])
tell(type="result", status="success", stats={"total_tokens": 500, "input_tokens": 400, "cached": 40})
"""
CODEX = r"""
import json, os, time
thread = "01a202f2"
log = os.path.expanduser(f"~/.codex/sessions/2026/11/22/rollout-2026-{thread}.jsonl")
os.makedirs(os.path.dirname(log), exist_ok=True)
tell = lambda **event: print(json.dumps(event), flush=True)
def count():
    usage = {"input_tokens": 100, "cached_input_tokens": 60, "output_tokens": 20}
    with open(log, "a") as file:
        print(json.dumps({"payload": {"type": "token_count", "info": {"last_token_usage": usage}}}), file=file)
tell(type="thread.started", thread_id=thread)
for number in (1, 2, 3):
    item = {"id": f"item_{number}", "type": "command_execution", "command": "x", "exit_code": 0}
    tell(type="item.started", item=item)
    count()
    tell(type="item.completed", item=item)
    time.sleep(0.5)
count()
tell(type="item.completed", item={"id": "item_9", "type": "agent_message", "text": "Done."})
tell(type="turn.completed", usage={"input_tokens": 9999, "output_tokens": 999})
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


class FakeCodex(CodexAgent):
    """The agent with another program."""

    @property
    def installation(self) -> Installation:
        """See :data:`CODEX`."""
        return python(self.npm.path, CODEX)


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("GEMINI_API_KEY", "CODEX_API_KEY"):
        monkeypatch.setenv(name, "sk-of-this-test-0123456789")


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


def test_gemini_clis_tokens_and_exit_codes_are_those_of_its_log(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory
) -> None:
    records = attempt(FakeGemini("gemini-x", GeminiCliOptions()), make_task("One.\n", "Two.\n"))
    for record in records:
        assert record.usage is not None
        assert (record.usage.prompt_tokens, record.usage.completion_tokens, record.usage.requests) == (400, 100, 4)
        steps = atif.read(directory.path / "steps" / record.round / "agent/trajectory.json")["steps"]
        actions = [each for step in steps for each in step.get("extra", {}).get("evocode", {}).get("actions", [])]
        assert [action["exit_code"] for action in actions] == [0, 3, 0]
        assert steps[-1]["message"] == "gemini-api-key"
        assert ("--resume 48a20d67-cc45-49cc" in steps[1]["message"]) == (record.index > 1)


def test_gemini_cli_and_codex_are_ended_at_a_budget_of_tokens(make_task: MakeTask, attempt: Attempt) -> None:
    for agent in (FakeGemini("gemini-x", GeminiCliOptions()), FakeCodex("gpt-5.2", CodexOptions())):
        (record,) = attempt(agent, make_task("Slowly.\n"), budget=Budget(tokens=200))
        assert record.stopped in ("budget: tokens 250 of 200 used", "budget: tokens 240 of 200 used")
        assert record.tool_calls == 2


def test_the_log_is_read_to_its_end_where_the_run_may_cost_no_more(environment: Environment) -> None:
    told: list[str] = []

    class Reader:
        used = None

        def read(self, line: bytes) -> None:
            raise RunLimitReached("budget: total-cost used by the run")

        def close(self) -> None:
            told.append("closed")

    context: Any = SimpleNamespace(
        spending=SimpleNamespace(exhausted=""),
        task=SimpleNamespace(name="t"),
        round=SimpleNamespace(name="round-1", agent_user=None),
        recorder=SimpleNamespace(break_off=lambda used: told.append("broken off")),
        environment=environment,
        timeout=60.0,
    )
    reader: Any = Reader()
    with pytest.raises(RunLimitReached):
        run_program(context, "echo event", env={}, reader=reader)
    assert told == ["closed", "broken off"]


@pytest.mark.nightly
def test_codexs_tokens_are_those_of_its_log_in_later_rounds_too(make_task: MakeTask, attempt: Attempt) -> None:
    for record in attempt(FakeCodex("gpt-5.2", CodexOptions()), make_task("One.\n", "Two.\n", check=PASS)):
        assert record.usage is not None
        assert (record.usage.prompt_tokens, record.usage.completion_tokens, record.usage.requests) == (400, 80, 4)
