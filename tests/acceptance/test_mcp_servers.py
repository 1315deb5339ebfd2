"""MCP servers and skills of a task, for a model that is asked over HTTP: whole sessions with real servers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.models import at, in_rounds, steps_of
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import DOCKERFILE, WriteTask
from tests.model_scripts import Run, Use
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("model_sdks", "mcp_sdk")]

GPT = "openai/gpt-5"
SERVER = (Path(__file__).parent / "tool_server.py").read_text()
IMAGE = DOCKERFILE + "COPY server.py /srv/server.py\nRUN useradd -m worker && chown worker /app\n"
WORKER = '[agent]\nuser = "worker"\n'
STDIO = """
[[environment.mcp_servers]]
name = "notes"
transport = "stdio"
command = "python3"
args = ["/srv/server.py"]
"""
FILES = {"environment/server.py": SERVER}
IN_BOTH = pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])


@pytest.fixture(scope="session")
def mcp_sdk() -> None:
    """The SDK, imported once: pytester forgets what a test imports, and the next had a second copy."""
    import pytest_evocode.agents.mcp.sessions  # noqa: F401


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")


def note(text: str) -> Use:
    return Use("mcp__notes__note", {"text": text})


def action(step: dict[str, Any]) -> dict[str, Any]:
    (found,) = step["extra"]["evocode"]["actions"]
    return dict(found)


@IN_BOTH
@pytest.mark.matrix
def test_a_stdio_server_runs_beside_the_workspace_in_every_round_and_what_its_tools_changed_is_replayed(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    """And a model is told of the task's skills."""
    skill = "---\nname: logging\ndescription: How to write a log.\n---\nLine by line.\n"
    write_task(
        "a",
        2,
        toml=WORKER + '[environment]\nskills_dir = "/srv/skills"\n' + STDIO,
        dockerfile=f"{IMAGE}COPY skills /srv/skills\n",
        files={**FILES, "environment/skills/log/SKILL.md": skill},
    )
    read = Run("id -u; cat /srv/skills/log/SKILL.md")
    with ModelServer(in_rounds([note("line-1")], [note("line-2"), read])) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None, env=env)
        first, second = server.asked[1], server.asked[4]
    assert session.outcomes == {"passed": 2}
    assert set(first.tools) == {"bash", "mcp__notes__note", "mcp__notes__die"}
    user, _, skill_read = second.last_result.partition("\n")
    assert first.last_result == f"noted line-1 as {user}"
    assert "- logging: How to write a log. (/srv/skills/log/SKILL.md)" in first.system
    assert "Line by line." in skill_read
    (called,) = [step for step in steps_of(session, "round-1", "gpt-5") if step.get("tool_calls")]
    assert called["tool_calls"][0]["function_name"] == "mcp__notes__note"
    assert called["observation"]["results"][0]["content"] == first.last_result
    assert action(called)["mcp"] == {"server": "notes", "tool": "note", "failed": False}
    assert [change["path"] for change in action(called)["changes"]] == ["log.txt"]
    recorded = session.attempt("a", "gpt-5")
    assert run_tasks("tasks", agent=f"replay:{recorded}", env=env).outcomes == {"passed": 2}


@pytest.mark.nightly
def test_a_server_that_answers_badly_or_ends_is_reported_and_is_there_again_in_the_next_round(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, toml=STDIO, dockerfile=IMAGE, files=FILES)
    die = Use("mcp__notes__die", {"text": ""})
    steps = [note("malformed"), note("line-1"), die, note("again")]
    with ModelServer(in_rounds(steps, [note("line-2")])) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
        told = server.asked[4]
    assert session.outcomes == {"passed": 2}
    malformed, _, *ended = told.results.values()
    assert malformed.startswith("[MCP server notes: the server's answer is of no known form: ")
    ending = "[MCP server notes: the server has ended with exit code 3. Its last lines:\nI was told to end.]"
    assert ended == [ending, ending]
    called = [step for step in steps_of(session, "round-1", "gpt-5") if step.get("tool_calls")]
    assert [action(step)["mcp"]["failed"] for step in called[1:]] == [False, True, True]


@pytest.mark.nightly
def test_a_server_that_an_agent_broke_is_recorded_and_its_tools_say_so(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    toml = STDIO.replace("/srv/server.py", "server.py")
    write_task("a", 2, toml=toml, workdir={1: {"server.py": SERVER}})
    breaks = Run("echo 'raise SystemExit(4)' > server.py")
    with ModelServer(in_rounds([note("line-1"), breaks], [note("x"), Run("echo line-2 >> log.txt")])) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
        told = server.asked[4]
    assert session.outcomes == {"passed": 2}
    why = "the server has ended with exit code 4"
    assert told.last_result == f"[the MCP server notes is not there: {why}]"
    said = [step["message"] for step in steps_of(session, "round-2", "gpt-5") if step["source"] == "system"]
    assert said == [f"The MCP server 'notes' could not be started: {why}"]


def test_a_server_that_was_never_there_is_an_error(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, toml=STDIO.replace("python3", "no-such-program"))
    with ModelServer([]) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
    assert session.outcomes == {"errors": 1}
    session.has(
        "*the MCP server 'notes' (no-such-program) could not be started: the server has ended with exit code 127*"
    )


@IN_BOTH
@pytest.mark.nightly  # By day test_servers_outside.py has one over HTTP.
def test_a_server_over_http_is_reached_from_the_container_with_its_headers(
    write_task: WriteTask, run_tasks: RunTasks, env: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESAME", "sesame")
    toml = '[environment]\nnetwork_mode = "no-network"\n[[environment.mcp_servers]]\nname = "notes"\n'
    toml += 'transport = "streamable-http"\nurl = "http://127.0.0.1:8077/mcp"\nheaders = { X-Key = "${SESAME}" }\n'
    start = "cd /app && rm -f setup.sh && (python3 /srv/server.py 8077 >/tmp/server.log 2>&1 &)\n"
    write_task("a", 2, toml=toml, dockerfile=IMAGE, files=FILES, workdir={1: {"setup.sh": start}})
    with ModelServer(in_rounds([note("line-1")], [note("line-2")])) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None, env=env)
    assert session.outcomes == {"passed": 2}


@pytest.mark.nightly
def test_a_server_that_does_not_answer_at_the_turns_end_is_not_waited_for(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SESAME", "sesame")
    toml = '[[environment.mcp_servers]]\nname = "notes"\n'
    toml += 'transport = "streamable-http"\nurl = "http://127.0.0.1:8078/mcp"\nheaders = { X-Key = "${SESAME}" }\n'
    start = "cd /app && rm -f setup.sh && (python3 /srv/server.py 8078 sessions >/tmp/server.log 2>&1 &)\n"
    write_task("a", 1, toml=toml, dockerfile=IMAGE, files=FILES, workdir={1: {"setup.sh": start}})
    with ModelServer(in_rounds([note("line-1")])) as server:
        session = run_tasks(*at(server, GPT), "tasks", agent=None)
    assert session.outcomes == {"passed": 1}
    seconds = session.record(agent="gpt-5").rounds[0].agent_seconds
    assert seconds is not None
    assert seconds < 30


def test_a_harness_may_have_servers_of_its_own(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, dockerfile=IMAGE, files=FILES)
    servers = {"mcpServers": {"my notes": {"command": "python3", "args": ["/srv/server.py"]}}}
    (pytester.path / "servers.json").write_text(json.dumps(servers))
    with ModelServer(in_rounds([Use("mcp__my_notes__note", {"text": "line-1"})])) as server:
        session = run_tasks(*at(server, GPT), "--evocode-agent-option=mcp=servers.json", "tasks", agent=None)
    assert session.outcomes == {"passed": 1}


@pytest.mark.parametrize(
    ("toml", "words"),
    [
        (STDIO, "the MCP server 'notes' is for the agent, and somebody takes none"),
        (
            'environment.skills_dir = "/srv/skills"\n',
            "the task has skills for the agent (skills_dir), and somebody",
        ),
    ],
)
def test_an_agent_that_uses_none_refuses_the_task_before_anything_starts(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, toml: str, words: str
) -> None:
    write_task("a", 1, toml=toml)
    pytester.makepyprojecttoml('[tool.pytest-evocode.commands.somebody]\nstart = "true"\n')
    session = run_tasks("tasks", agent="cmd:somebody")
    assert session.outcomes == {"errors": 1}
    session.has(f"*{words}*")


@pytest.mark.nightly
def test_a_declared_command_is_told_of_servers_and_skills(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    files = {"environment/skills/log/SKILL.md": "---\ndescription: x\n---\n"}
    toml = '[environment]\nskills_dir = "skills"\n' + STDIO
    write_task("a", 1, toml=toml, dockerfile=DOCKERFILE + "COPY skills skills\n", files=files)
    start = 'grep -q /srv/server.py "$EVOCODE_MCP_SERVERS" && test -f ~/.mine/log/SKILL.md && echo line-1 >> log.txt'
    declaration = f"start = '''{start}'''\nskills_directory = '~/.mine'\nmcp = true\n"
    pytester.makepyprojecttoml(f"[tool.pytest-evocode.commands.somebody]\n{declaration}")
    assert run_tasks("tasks", agent="cmd:somebody").outcomes == {"passed": 1}
