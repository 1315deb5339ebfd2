"""How many suites run at once: a bound of the machine's, whoever runs them."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import NopAgent
from pytest_evocode.environments import Engine
from pytest_evocode.environments.cache import cache_directory, try_lock
from pytest_evocode.errors import Cancelled
from pytest_evocode.trial.context import TrialOptions, VerifierSlots
from pytest_evocode.trial.trial import Trial

if TYPE_CHECKING:
    from tests.trial.conftest import MakeTask

PASS = "echo 1 > /logs/verifier/reward.txt"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Path:
    """Slots that no other test takes."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def at_once() -> threading.Event:
    """For taking a slot only if there is one, without waiting."""
    event = threading.Event()
    event.set()
    return event


@pytest.mark.parametrize("count", [1, 2, 3])
def test_so_many_slots_can_be_held_together_and_no_more(count: int) -> None:
    slots = VerifierSlots(count)
    with contextlib.ExitStack() as held:
        for _ in range(count):
            held.enter_context(slots.take(at_once()))
        with pytest.raises(Cancelled), slots.take(at_once()):
            pass
    with slots.take(at_once()):
        pass


def test_threads_that_wait_for_slots_come_in_together_as_they_are_freed() -> None:
    slots, together = VerifierSlots(2), threading.Barrier(2)

    def work() -> int:
        with slots.take(threading.Event()):
            return together.wait(300)

    with ThreadPoolExecutor(6) as pool:
        numbers = [future.result() for future in [pool.submit(work) for _ in range(6)]]
    assert sorted(numbers) == [0, 0, 0, 1, 1, 1]


def test_one_of_the_threads_that_wait_looks_for_a_free_slot(monkeypatch: pytest.MonkeyPatch) -> None:
    looks: list[int] = []
    enough, stop, together = threading.Event(), threading.Event(), threading.Barrier(4)

    def look(path: Path) -> None:
        looks.append(threading.get_ident())
        if len(looks) == 20:
            enough.set()

    def wait() -> None:
        together.wait(300)
        with pytest.raises(Cancelled), VerifierSlots(1).take(stop):
            pass

    monkeypatch.setattr("pytest_evocode.trial.context.try_lock", look)
    with ThreadPoolExecutor(4) as pool:
        waiting = [pool.submit(wait) for _ in range(4)]
        enough.wait(300)
        stop.set()
        for each in waiting:
            each.result()
    assert len(looks) >= 20
    assert len(set(looks[:20])) == 1


def test_there_is_a_slot_for_every_core_unless_told_otherwise() -> None:
    assert VerifierSlots().count == os.cpu_count()


@pytest.mark.nightly
def test_a_slot_of_another_process_counts_until_it_dies() -> None:
    program = (
        "import threading, time\n"
        "from pytest_evocode.trial.context import VerifierSlots\n"
        "with VerifierSlots(1).take(threading.Event()):\n"
        "    print('taken', flush=True)\n"
        "    time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    with other:
        assert other.stdout is not None
        other.stdout.readline()
        with pytest.raises(Cancelled), VerifierSlots(1).take(at_once()):
            pass
        other.kill()
        with VerifierSlots(1).take(threading.Event()):
            pass


def test_closing_ends_a_suite_that_waits_for_a_slot(engine: Engine, make_task: MakeTask) -> None:
    (cache_directory() / "verifiers").mkdir()
    lock = try_lock(cache_directory() / "verifiers/slot-0.lock")
    assert lock is not None
    try:
        with Trial(make_task(PASS), NopAgent(), engine, options=TrialOptions(verifiers=1)) as trial:
            trial.wait_environment()
        assert trial.wait(1).outcome == "not reached"
    finally:
        lock.release()
