"""What coding CLIs are told of a task's and a harness' MCP servers, each by its own configuration."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.agents.installed.base import CliOptions, InstalledAgent
from pytest_evocode.agents.installed.codex import CodexAgent
from pytest_evocode.agents.installed.gemini_cli import GeminiCliAgent
from pytest_evocode.agents.installed.opencode import OpenCodeAgent
from pytest_evocode.agents.mcp.servers import ToolServer, servers_of_file
from pytest_evocode.agents.protocol import check_task
from pytest_evocode.errors import UsageError
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from tests.agents.installed.conftest import Attempt, FakeClaude, MakeTask

SERVERS = (
    ToolServer("notes", "stdio", command="python3", args=("/srv/server.py", "-v"), env={"A": "b"}),
    ToolServer("my docs", "http", url="http://docs:80/mcp", headers={"X-Key": 'a"b'}),
    ToolServer("old", "sse", url="http://old/sse"),
)
TOML = """
[environment]
network_mode = "public"
skills_dir = "skills"
[[environment.mcp_servers]]
name = "notes"
transport = "stdio"
command = "python3"
args = ["/srv/server.py"]
"""
OLD = '[environment]\nnetwork_mode = "public"\n[[environment.mcp_servers]]\nname = "old"\nurl = "http://old/sse"\n'


def with_servers(agent: InstalledAgent, servers: tuple[ToolServer, ...] = SERVERS) -> Any:
    agent.mcp_servers = servers
    return agent


@pytest.mark.usefixtures("model")
def test_claude_code_reads_servers_and_skills_in_every_round(
    make_task: MakeTask, attempt: Attempt, directory: AttemptDirectory, tmp_path: Path
) -> None:
    (tmp_path / "mine.json").write_text('{"mcpServers": {"mine": {"type": "http", "url": "http://mine/mcp"}}}')
    look = "run: cp /var/lib/evocode/servers.json ~/.claude/skills/log/SKILL.md /logs/artifacts"
    skill = {"skills/log/SKILL.md": "---\ndescription: How to log.\n---\n"}
    task = make_task(look, look, toml=TOML, files=skill)
    agent = FakeClaude("claude-fake-1", FakeClaude.options_type(mcp=tmp_path / "mine.json"))
    assert [record.outcome for record in attempt(agent, task)] == ["passed", "passed"]
    found = directory.artifacts("round-2")
    assert json.loads((found / "servers.json").read_text())["mcpServers"] == {
        "notes": {"command": "python3", "args": ["/srv/server.py"], "env": {}},
        "mine": {"type": "http", "url": "http://mine/mcp", "headers": {}},
    }
    assert (found / "SKILL.md").read_text() == skill["skills/log/SKILL.md"]
    assert "--mcp-config" in agent.arguments("")
    assert agent.hosts == ("mine",)


def test_codex_is_told_by_its_options() -> None:
    line = with_servers(CodexAgent("gpt-5", CodexAgent.options_type()), SERVERS[:2]).arguments("http://here/v1")
    settings = [line[place + 1] for place, word in enumerate(line) if word == "--config"]
    assert tomllib.loads("\n".join(settings))["mcp_servers"] == {
        "notes": {"command": "python3", "args": ["/srv/server.py", "-v"], "env": {"A": "b"}},
        "my_docs": {"url": "http://docs:80/mcp", "http_headers": {"X-Key": 'a"b'}},
    }


def test_gemini_cli_reads_a_file_beside_its_users_settings() -> None:
    agent = with_servers(GeminiCliAgent("gemini-3-pro", GeminiCliAgent.options_type()))
    written: list[Any] = []

    class Stage:
        add_servers = staticmethod(written.append)

    agent.stage_servers(Stage())
    assert written[0]["mcpServers"]["notes"]["command"] == "python3"
    assert written[0]["mcpServers"]["my_docs"]["httpUrl"] == "http://docs:80/mcp"
    assert written[0]["mcpServers"]["old"]["url"] == "http://old/sse"
    variables = agent.variables("GEMINI_API_KEY", "k", "http://here")
    assert variables["GEMINI_CLI_SYSTEM_SETTINGS_PATH"] == "/var/lib/evocode/servers.json"


def test_opencode_is_told_by_its_configuration() -> None:
    agent = with_servers(OpenCodeAgent("openai/gpt-5", OpenCodeAgent.options_type()))
    config = json.loads(agent.variables("OPENAI_API_KEY", "k", "http://here/v1")["OPENCODE_CONFIG_CONTENT"])
    assert config["mcp"]["notes"]["command"] == ["python3", "/srv/server.py", "-v"]
    assert config["mcp"]["my_docs"] | {"enabled": True} == config["mcp"]["my_docs"]
    assert config["mcp"]["my_docs"]["headers"] == {"X-Key": 'a"b'}


def test_codex_refuses_a_task_with_a_server_that_it_does_not_speak_to(make_task: MakeTask) -> None:
    task = make_task("say: x", toml=OLD)
    with pytest.raises(UsageError, match=r"task.toml: the MCP server 'old' is reached by sse, which codex"):
        check_task(CodexAgent("gpt-5", CodexAgent.options_type()), task, "docker")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Expecting property name"),
        ('{"mcpServers": {}}', "at least 1 item"),
        ('{"mcpServers": {"a": {"args": []}}}', "mcpServers.a: Value error, it has to have either a command or a url"),
        ('{"mcpServers": {"a": {"type": "http", "command": "x"}}}', "a server of type http has a url"),
        (
            '{"mcpServers": {"a": {"url": "http://a/", "headers": {"Authorization": "Bearer abcdefgh"}}}}',
            r"Authorization holds a secret, which would be recorded; write \$\{AUTHORIZATION\}",
        ),
        (
            '{"mcpServers": {"a": {"command": "a", "env": {"A_TOKEN": "${SOMETHING}"}}}}',
            "the variable SOMETHING does not count as a secret",
        ),
        ('{"mcpServers": {"a": {"url": "http://${NO_SUCH_THING}/"}}}', r"\$\{NO_SUCH_THING\} is not set"),
    ],
)
def test_a_file_that_declares_no_servers_is_refused_by_name(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "servers.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=f"servers.json: .*{words}"):
        servers_of_file(path, {})


def test_a_harness_server_that_an_agent_cannot_use_is_refused_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text('{"mcpServers": {"old": {"type": "sse", "url": "http://old"}}}')
    options: CliOptions = CodexAgent.options_type(mcp=path)
    with pytest.raises(UsageError, match="reached by sse, which codex does not speak; it takes http, stdio"):
        CodexAgent("gpt-5", options).check({"OPENAI_API_KEY": "k"}, Budget())


def test_one_name_for_two_servers_is_refused(make_task: MakeTask, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text('{"mcpServers": {"notes": {"command": "x"}}}')
    agent = OpenCodeAgent("openai/gpt-5", OpenCodeAgent.options_type(mcp=path))
    with pytest.raises(UsageError, match="has an MCP server 'notes', too; give this one another name"):
        check_task(agent, make_task("say: x", toml=TOML), "docker")


def test_an_address_is_shown_without_what_may_be_secret() -> None:
    assert ToolServer("a", "http", url="http://me:pass@a:80/mcp?token=x#y").shown == "http://a:80/mcp"
    assert ToolServer("a", "stdio", command="a-server").shown == "a-server"
