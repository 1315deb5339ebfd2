"""Turns of Gemini CLI, whose API needs no ids of calls, with a program that does as it does."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.agents.installed.gemini_cli import GeminiCliAgent, GeminiCliOptions
from pytest_evocode.environments import Installation
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from tests import atif
from tests.agents.installed.conftest import KEY, Attempt, MakeTask
from tests.model_scripts import Asked, Run, Say, Step, Tokens
from tests.model_server import ModelServer

GEMINI = r"""
import json, os, sys, urllib.request
SHELL = {"name": "run_shell_command", "parametersJsonSchema": {"type": "object", "properties": {"command": {}}}}
settings = open(os.path.expanduser("~/.gemini/settings.json")).read()
told = " ".join([*sys.argv[1:], json.loads(settings)["security"]["auth"]["selectedType"]])
contents = [{"role": "user", "parts": [{"text": told}]}]
def ask():
    url = os.environ["GOOGLE_GEMINI_BASE_URL"] + "/v1beta/models/gemini-x:generateContent"
    headers = {"x-goog-api-key": os.environ["GEMINI_API_KEY"], "Content-Type": "application/json"}
    body = json.dumps({"contents": contents, "tools": [{"functionDeclarations": [SHELL]}]}).encode()
    answer = json.load(urllib.request.urlopen(urllib.request.Request(url, body, headers)))
    contents.append(answer["candidates"][0]["content"])
    return [part["functionCall"] for part in contents[-1]["parts"] if "functionCall" in part]
print(json.dumps({"type": "init", "session_id": "48a20d67-cc45-49cc"}), flush=True)
for number in range(3):
    results = []
    for call in ask():
        output = "Output: 1\nExit Code: 3" if number == 1 else "Output: 1"
        response = {"id": f"made-up-{number}", "name": call["name"], "response": {"output": output}}
        results.append({"functionResponse": response})
    contents.append({"role": "user", "parts": results})
ask()
print(json.dumps({"type": "result", "status": "success", "stats": {"total_tokens": 9999}}))
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
    """One whose model counts 125 tokens for each answer, and says last what it was told first."""

    def script(asked: Asked) -> Step:
        return Run("x") if asked.replies < 3 else Say(asked.said[0])

    monkeypatch.setenv("GEMINI_API_KEY", KEY)
    with ModelServer(script, key=KEY, tokens=Tokens(prompt=100, completion=25)) as server:
        yield FakeGemini("gemini-x", GeminiCliOptions(base_url=server.url))


def test_its_steps_and_tokens_are_those_of_the_gateway_with_exit_codes_from_results(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, agent: FakeGemini
) -> None:
    for record in attempt(agent, make_task("One.\n", "Two.\n", toml="")):
        assert record.usage is not None
        assert (record.usage.prompt_tokens, record.usage.completion_tokens, record.usage.requests) == (400, 100, 4)
        steps = atif.read(directory.path / "steps" / record.round / "agent/trajectory.json")["steps"]
        actions = [each for step in steps for each in step.get("extra", {}).get("evocode", {}).get("actions", [])]
        assert [action["exit_code"] for action in actions] == [0, 3, 0]
        assert steps[-1]["message"].endswith(" gemini-api-key")
        assert ("--resume 48a20d67-cc45-49cc" in steps[-1]["message"]) == (record.index > 1)


def test_it_is_ended_at_a_budget_of_tokens(make_task: MakeTask, attempt: Attempt, agent: FakeGemini) -> None:
    (record,) = attempt(agent, make_task("One.\n"), budget=Budget(tokens=200))
    assert record.stopped == "budget: tokens 250 of 200 used"
    assert record.tool_calls == 2
