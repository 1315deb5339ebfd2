"""Sessions that are killed while a reply of the model comes in, and go on in the next one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from tests.inner_sessions import UNUSED
from tests.providers.faults import Silent
from tests.providers.server import KEY, ProviderServer
from tests.providers.three_rounds import FILES, REQUESTS, ROUNDS, SUITES, solve
from tests.terminals import HANGS

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.usefixtures("model_sdks")

SPECS = {
    "messages": "anthropic/claude-opus-4-8",
    "chat": "openai/gpt-5",
    "responses": "openai/gpt-5",
    "gemini": "google/gemini-3-pro-preview",
}


@pytest.fixture(autouse=True)
def _keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)


@pytest.mark.slow("two sessions of three rounds, the first a process of its own")
@pytest.mark.parametrize("number", [2, 1, 3, 4, 7])
@pytest.mark.parametrize("api", SPECS)
@pytest.mark.matrix
def test_a_session_killed_in_mid_reply_goes_on_and_asks_for_that_reply_alone_again(
    api: str, number: int, write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    instructions = {f"steps/round-{each}/instruction.md": f"Do round {each}." for each in ROUNDS}
    write_task("a", len(ROUNDS), test=dict(enumerate(SUITES, 1)), files=FILES | instructions)
    with ProviderServer(solve, faults={number: Silent(after=2)}) as server:
        options = [f"--evocode-agent={SPECS[api]}", f"--evocode-agent-option=base_url={server.url_for(api)}"]
        if api in ("chat", "responses"):
            options.append(f"--evocode-agent-option=api={api}")
        kill_when_it_comes(server, number, [*options, "--evocode-env=sandbox", "tasks"], pytester)
        assert [exchange.delivered for exchange in server.exchanges] == [True] * (number - 1) + [False]
        session = run_tasks(*options, "--evocode-resume", "tasks", agent=None)
        assert session.outcomes == {"passed": len(ROUNDS)}
    assert [exchange.refused for exchange in server.exchanges if exchange.refused] == []
    assert len(server.exchanges) == sum(REQUESTS) + 1
    paid = [(exchange.asked.said, exchange.asked.results) for exchange in server.exchanges if exchange.delivered]
    assert len(paid) == sum(REQUESTS)
    assert all(each not in paid[:at] for at, each in enumerate(paid))


def kill_when_it_comes(server: ProviderServer, number: int, arguments: list[str], pytester: pytest.Pytester) -> None:
    """Run a session until a reply has begun to come in, and kill it with all that it has started."""
    argv = [sys.executable, "-m", "pytest", *UNUSED, *arguments]
    with (pytester.path / "killed.txt").open("w") as output:
        running = subprocess.Popen(argv, cwd=pytester.path, stdout=output, stderr=output, start_new_session=True)
    try:
        until = time.monotonic() + HANGS
        while len(server.exchanges) < number or server.exchanges[number - 1].billed is None:
            assert running.poll() is None, (pytester.path / "killed.txt").read_text()
            assert time.monotonic() < until
            time.sleep(0.02)
        time.sleep(0.3)  # Some of it is on its way.
    finally:
        os.killpg(running.pid, signal.SIGKILL)
        running.wait()
