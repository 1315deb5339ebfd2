"""A task as a server of OpenEnv, asked over HTTP by its own client."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import uvicorn
from openenv.core.generic_client import GenericEnvClient

from pytest_evocode.bridges.openenv import create_app


@pytest.fixture
def address(task: Path) -> Iterator[str]:
    """A server of the task."""
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(create_app(task, "sandbox"), log_level="warning"))
    thread = threading.Thread(target=server.run, args=([listening],))
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.should_exit = True
    thread.join()


def test_a_client_plays_an_episode(address: str) -> None:
    with GenericEnvClient(base_url=address).sync() as client:
        begun = client.reset()
        assert (begun.observation["round"], begun.observation["instruction"]) == ("one", "Add one.\n")
        done = client.step({"command": "echo one > work; cat work"})
        assert (done.observation["output"], done.observation["exit_code"], done.reward) == ("one\n", 0, None)
        finished = client.step({"finish": True})
        assert (finished.reward, finished.done, finished.observation["instruction"]) == (1.0, False, "Add two.\n")
        assert finished.observation["case_rewards"] == {"one": 1.0}
        assert client.state()["step_count"] == 2
        last = client.step({"command": "true", "finish": True})
        assert (last.reward, last.done) == (0.0, True)
        state: dict[str, Any] = client.state()
        assert (state["round"], state["rewards"]) == ("two", {"reward": 0.5})


def test_clients_have_sandboxes_of_their_own(address: str) -> None:
    with GenericEnvClient(base_url=address).sync() as first, GenericEnvClient(base_url=address).sync() as second:
        first.reset()
        second.reset()
        first.step({"command": "echo one > work"})
        assert first.step({"finish": True}).reward == 1.0
        assert second.step({"finish": True}).reward == 0.0
