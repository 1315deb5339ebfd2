"""Real CLIs, from their registry, with a task's MCP server; and one that is driven by the Agent Client Protocol."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pytest_evocode.agents import Agent
from pytest_evocode.agents.acp.agent import AcpAgent, AcpOptions
from pytest_evocode.agents.installed.base import InstalledAgent
from pytest_evocode.agents.installed.opencode import OpenCodeAgent
from pytest_evocode.environments.docker.engine import DockerEngine
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests import atif
from tests.agents.installed.test_real_programs import AGENTS, KEY, WORD, engine, steps
from tests.agents.installed.test_real_programs import task as without_servers
from tests.model_scripts import Asked, Run, Say, Step, Use
from tests.model_server import ModelServer

__all__ = ["engine", "without_servers"]

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.nightly]

SERVER = Path(__file__).parents[2] / "acceptance/tool_server.py"
SERVERS = """
[[environment.mcp_servers]]
name = "notes"
transport = "stdio"
command = "python3"
args = ["/srv/server.py"]
"""


@pytest.fixture
def task(without_servers: Task, tmp_path: Path) -> Task:
    """Two rounds with a line each that is to be in log.txt by way of the server; the second asks for a word, too."""
    directory = tmp_path / "notes"
    assert without_servers.dockerfile is not None
    image = without_servers.dockerfile.read_text() + "COPY server.py /srv/server.py\n"
    certificates = without_servers.dockerfile.with_name("certificates.pem").read_text()
    files = {"environment/Dockerfile": image, "environment/certificates.pem": certificates}
    files["environment/server.py"] = SERVER.read_text()
    files["task.toml"] = f'[agent]\nuser = "worker"\ntimeout_sec = 300\n{SERVERS}'
    for number, instruction in ((1, f"The word is {WORD}. Note line-1.\n"), (2, "Note line-2 and the word.\n")):
        files["task.toml"] += f'[[steps]]\nname = "round-{number}"\n'
        files[f"steps/round-{number}/instruction.md"] = instruction
        check = f"grep -qx line-{number} log.txt" + (f" && grep -qx {WORD} log.txt" if number == 2 else "")
        files[f"steps/round-{number}/tests/test.sh"] = f"{check}; echo $((1 - $?)) > /logs/verifier/reward.txt\n"
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return load_task(directory)


def notes(asked: Asked) -> Step:
    """What a model does that knows of earlier rounds only what it is told again."""
    # Claude Code lists the tools of servers only when it is asked for them.
    tool = next((name for name in asked.tools if name.endswith("note")), "mcp__notes__note")
    done = sum("noted" in result for result in asked.results.values())
    waited = len(asked.results) - done
    if "bash" in asked.tools and tool not in asked.tools and waited < 5:
        return Run("sleep 3")  # OpenCode asks its model while its servers are starting.
    word = WORD if any(WORD in text for text in asked.said) else "forgotten"
    second = any("line-2" in text for text in asked.said)
    wanted = ["line-1", *(["line-2", word] if second else [])]
    if done < len(wanted):
        return Use(tool, {"text": wanted[done]})
    return Say("Done.")


def play(agent: Agent, task: Task, engine: DockerEngine, directory: AttemptDirectory) -> list[tuple[str, str]]:
    trial = Trial(task, agent, engine, directory=directory, options=TrialOptions(strict=True))
    return [(record.outcome, record.cause) for record in trial.run()]


@pytest.mark.parametrize("name", ["claude-code", "codex"])
def test_a_real_cli_uses_a_tasks_server(
    name: str, engine: DockerEngine, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TEST_KEY", KEY)
    directory = AttemptDirectory(tmp_path / "attempt")
    kind, model, path = AGENTS[name]
    with ModelServer(notes, key=KEY) as server:
        options = kind.options_type(base_url=f"{server.url}{path}", key_env="SOME_TEST_KEY")
        agent: InstalledAgent = kind(model, options)
        assert play(agent, task, engine, directory) == [("passed", "")] * 2
    called = [call for step in steps(directory, "round-2") for call in step.get("tool_calls", ())]
    assert [call["arguments"] for call in called] == [{"text": "line-2"}, {"text": WORD}]


def test_a_real_agent_is_driven_by_the_protocol_for_two_rounds(
    engine: DockerEngine, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    directory = AttemptDirectory(tmp_path / "attempt")
    asked_for = Run("echo line-1 >> log.txt; id -un")

    def script(asked: Asked) -> Step:
        if not asked.tools:  # A title for the conversation.
            return Say("Notes.")
        return asked_for if not asked.results else notes(asked)

    with ModelServer(script, key=KEY) as server:
        provider = {
            "npm": "@ai-sdk/openai-compatible",
            "name": "local",
            "options": {"apiKey": "{env:OPENAI_API_KEY}", "baseURL": "{env:OPENAI_BASE_URL}"},
            "models": {"gpt-5.2": {}},
        }
        config = {"provider": {"local": provider}, "model": "local/gpt-5.2", "autoupdate": False, "share": "disabled"}
        options = AcpOptions(
            api="openai",
            base_url=f"{server.url}/v1",
            install=OpenCodeAgent.npm.installation("latest").script,
            env={"OPENCODE_CONFIG_CONTENT": json.dumps(config), "OPENCODE_DISABLE_AUTOUPDATE": "1"},
        )
        agent = AcpAgent(f"{OpenCodeAgent.npm.path} acp", options)
        assert play(agent, task, engine, directory) == [("passed", "")] * 2
    first = steps(directory, "round-1")
    ran = next(step for step in first if step.get("tool_calls"))
    assert ran["tool_calls"][0]["arguments"]["command"] == asked_for.command
    assert "worker" in ran["observation"]["results"][0]["content"]
    assert first[-1]["message"] == "Done."
    for name in ("round-1", "round-2"):
        assert atif.violations(atif.read(directory.path / "steps" / name / "agent/trajectory.json")) == []
