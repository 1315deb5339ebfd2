"""Places and paces that clients share, in one process and over several."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.llm.connection_limits import (
    LOOK,
    ConnectionLimits,
    LocalConnections,
    SharedConnections,
    async_place_for_request,
    connections_shared_by,
    place_for_request,
)
from tests.llm.conftest import ASK, BASH, client_for
from tests.model_scripts import Asked, Say
from tests.model_server import ModelServer

HOLDER = """
import sys
from pathlib import Path
from pytest_evocode.llm.connection_limits import SharedConnections
limits = SharedConnections(Path(sys.argv[1]))
assert limits.take("openai-a", 2) is not None
at = limits.reserve("openai-a")[1]
limits.refused("openai-a", at, 50.0)
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture(params=["local", "shared"])
def limits(request: pytest.FixtureRequest, tmp_path: Path) -> ConnectionLimits:
    clock = Clock()
    return LocalConnections(2, clock=clock) if request.param == "local" else SharedConnections(tmp_path, 2, clock=clock)


class Clock:
    """A clock that stands still until somebody waits."""

    now = 1000.0

    def __call__(self) -> float:
        return Clock.now


@pytest.fixture
def pauses(monkeypatch: pytest.MonkeyPatch) -> list[tuple[float, str]]:
    monkeypatch.setattr(Clock, "now", 1000.0)
    return []


@pytest.fixture
def pause(pauses: list[tuple[float, str]]) -> Callable[[float, str], None]:
    def wait(seconds: float, cause: str) -> None:
        pauses.append((seconds, cause))
        Clock.now += seconds

    return wait


def test_an_account_has_so_many_places(limits: ConnectionLimits) -> None:
    first, second = limits.take("a", 2), limits.take("a", 2)
    assert first is not None
    assert second is not None
    assert limits.take("a", 2) is None
    assert limits.take("b", 2) is not None
    limits.give_back("a", first)
    assert limits.take("a", 2) is not None


def test_a_refusal_slows_all_requests_of_the_account_down(
    limits: ConnectionLimits, pauses: list[tuple[float, str]], pause: Callable[[float, str], None]
) -> None:
    with place_for_request("a", None, pause, limits) as place:
        place.refused(13.0)
    assert pauses == []
    for _ in range(2):
        with place_for_request("a", None, pause, limits) as place:
            place.answered()
    with place_for_request("b", None, pause, limits):
        pass
    assert pauses == [(13.0, "rate limit"), (pytest.approx(0.71, abs=0.01), "rate limit")]


def test_an_event_loop_waits_for_the_same_places(limits: ConnectionLimits, pauses: list[tuple[float, str]]) -> None:
    held = [limits.take("a", 2), limits.take("a", 2)]

    async def pause(seconds: float, cause: str) -> None:
        pauses.append((seconds, cause))
        Clock.now += seconds
        while held:
            limits.give_back("a", held.pop())

    async def ask(retry_after: float | None) -> None:
        async with async_place_for_request("a", None, pause, limits) as place:
            place.answered() if retry_after is None else place.refused(retry_after)

    asyncio.run(ask(13.0))
    asyncio.run(ask(None))
    assert pauses == [(LOOK, "connections"), (13.0, "rate limit")]
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(interrupted(limits))
    assert [limits.take("a", 2) is None for _ in range(3)] == [False, False, True]


async def interrupted(limits: ConnectionLimits) -> None:
    async def pause(seconds: float, cause: str) -> None:
        raise KeyboardInterrupt

    async with async_place_for_request("a", None, pause, limits):
        raise KeyboardInterrupt


def test_who_waits_looks_again_after_a_refusal(
    limits: ConnectionLimits, pauses: list[tuple[float, str]], pause: Callable[[float, str], None]
) -> None:
    with place_for_request("a", 9, pause, limits) as place:
        place.refused(4.0)

    def refused_meanwhile(seconds: float, cause: str) -> None:
        pause(seconds, cause)
        if len(pauses) == 1:
            limits.refused("a", 1, 30.0)

    with place_for_request("a", 9, refused_meanwhile, limits):
        pass
    assert pauses == [(4.0, "rate limit"), (30.0, "rate limit")]


def test_a_process_that_is_killed_gives_its_place_back_and_its_refusal_holds(tmp_path: Path) -> None:
    limits = SharedConnections(tmp_path, 2)
    with subprocess.Popen([sys.executable, "-c", HOLDER, str(tmp_path)], stdin=-1, stdout=-1, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        assert limits.take("openai-a", 2) is not None
        assert limits.take("openai-a", 2) is None
        holder.kill()
        holder.wait()
        assert limits.take("openai-a", 2) is not None
    assert limits.reserve("openai-a")[0] > 30


def test_a_pace_that_was_cut_off_in_writing_begins_anew(tmp_path: Path) -> None:
    limits = SharedConnections(tmp_path)
    limits.refused("a", limits.reserve("a")[1], 50.0)
    (tmp_path / "a" / "pace.json").write_text('{"per_second": ')
    assert limits.reserve("a")[0] == 0


def test_a_pace_from_before_the_machine_was_started_again_does_not_hold(tmp_path: Path) -> None:
    before = SharedConnections(tmp_path, clock=lambda: 1_000_000.0)
    before.refused("openai-a", before.reserve("openai-a")[1], 50.0)
    assert before.reserve("openai-a")[0] == pytest.approx(50.0)
    after = SharedConnections(tmp_path, clock=lambda: 100.0)
    assert after.reserve("openai-a") == (0.0, 1)


def test_clients_ask_a_provider_no_more_at_once_than_they_may() -> None:
    at_once, most = 0, 0
    lock, release = threading.Condition(), threading.Event()

    def script(asked: Asked) -> Say:
        return Say("Done.")

    class Counting(LocalConnections):
        def take(self, account: str, most_places: int) -> object | None:
            nonlocal at_once, most
            place = super().take(account, most_places)
            with lock:
                at_once += place is not None
                most = max(most, at_once)
                lock.notify_all()
            if place is not None and not release.is_set():
                with lock:
                    lock.wait_for(lambda: at_once >= 2, timeout=30)
                release.set()
            return place

        def give_back(self, account: str, place: object) -> None:
            nonlocal at_once
            with lock:
                at_once -= 1
            super().give_back(account, place)

    with ModelServer(script) as server, connections_shared_by(Counting()):
        clients = [client_for("chat", server, max_connections=2) for _ in range(6)]
        threads = [
            threading.Thread(target=lambda client=client: client.complete(ASK, [BASH], timeout=30))
            for client in clients
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(server.asked) == 6
    assert most == 2
