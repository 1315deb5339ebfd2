"""Servers of the MCP SDK outside of the container, which a model reaches by the task's allowlist or not at all."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.acceptance.models import at, in_rounds
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.acceptance.test_viewed_images import DATA, png
from tests.environments.egress.outside import LISTED
from tests.model_scripts import Run, Step, Use
from tests.model_server import ModelServer

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("model_sdks", "mcp_sdks")]

APPEND: list[Step] = [Run("echo line-1 >> log.txt"), Use("mcp__pictures__draw", {"what": "a dot"})]


@pytest.fixture(scope="session")
def mcp_sdks() -> None:
    """The SDK with its servers, imported once: pytester forgets what a test imports."""
    import uvicorn  # noqa: F401

    import pytest_evocode.agents.mcp.sessions  # noqa: F401


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")


@contextmanager
def pictures(transport: str) -> Iterator[int]:
    """A server with a tool that gives an image, at an address that a list may have; yields its port."""
    import uvicorn
    from mcp.server.mcpserver import Image, MCPServer

    server = MCPServer("pictures")

    @server.tool(structured_output=False)
    def draw(what: str) -> list[Any]:
        return [f"Here is {what}.", Image(data=png(), format="png")]

    app = server.sse_app(host=LISTED) if transport == "sse" else server.streamable_http_app(host=LISTED)
    with socket.create_server((LISTED, 0)) as listener:
        running = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
        thread = threading.Thread(target=running.run, kwargs={"sockets": [listener]}, daemon=True)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            running.should_exit = True
            thread.join()


def toml(transport: str, port: int, *hosts: str) -> str:
    url = f"http://{LISTED}:{port}/{'sse' if transport == 'sse' else 'mcp'}"
    listed = f'[environment]\nnetwork_mode = "allowlist"\nallowed_hosts = {json.dumps(hosts)}\n'
    return f'{listed}[[environment.mcp_servers]]\nname = "pictures"\ntransport = "{transport}"\nurl = "{url}"\n'


@pytest.mark.parametrize("transport", ["streamable-http"])
def test_only_a_listed_server_is_used_its_images_are_seen_and_of_others_the_error_says_why(
    write_task: WriteTask, run_tasks: RunTasks, transport: str
) -> None:
    with pictures(transport) as port, ModelServer(in_rounds(APPEND)) as server:
        write_task("a", 1, toml=toml(transport, port, LISTED))
        write_task("unlisted", 1, toml=toml("streamable-http", port))
        options = [*at(server, "openai/gpt-5"), "--evocode-agent-option=view_image=true"]
        session = run_tasks(*options, "tasks", agent=None)
        assert session.outcomes == {"passed": 1, "errors": 1}
        assert len(server.asked) == 3
        assert server.asked[2].last_result.startswith("Here is a dot.\n[image: image/png]")
        assert f"data:image/png;base64,{DATA}" in json.dumps(server.asked[2].body)
    session.has("*the MCP server 'pictures' (http://*) could not be started: *")
    (record,) = session.record("unlisted", "gpt-5").rounds
    assert [(each.phase, each.host, each.count) for each in record.denied or ()] == [("agent", LISTED, 1)]


@pytest.mark.nightly
def test_a_listed_server_is_used_by_the_older_transport_as_well(write_task: WriteTask, run_tasks: RunTasks) -> None:
    test_only_a_listed_server_is_used_its_images_are_seen_and_of_others_the_error_says_why(write_task, run_tasks, "sse")
