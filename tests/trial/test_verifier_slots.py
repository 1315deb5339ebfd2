"""How many suites run at once: a bound of the machine's, whoever runs them."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.nop import NopAgent
from pytest_evocode.environments import Engine
from pytest_evocode.environments.cache import cache_directory, take_lock
from pytest_evocode.errors import Cancelled
from pytest_evocode.slots import VerifierSlots
from pytest_evocode.trial import Trial, TrialOptions

if TYPE_CHECKING:
    from tests.trial.conftest import MakeTask

PASS = "echo 1 > /logs/verifier/reward.txt"


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Path:
    """Slots that no other test takes."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def most_at_once(slots: VerifierSlots, threads: int) -> int:
    """How many of so many threads held a slot at the same time; each waits a little for others to come in."""
    inside, most = 0, 0
    counting = threading.Lock()

    def work() -> None:
        nonlocal inside, most
        with slots.take(threading.Event()):
            with counting:
                inside += 1
                most = max(most, inside)
            time.sleep(0.1)
            with counting:
                inside -= 1

    started = [threading.Thread(target=work) for _ in range(threads)]
    for thread in started:
        thread.start()
    for thread in started:
        thread.join()
    return most


@pytest.mark.parametrize("count", [1, 2, 3])
def test_no_more_than_the_slots_are_taken_and_all_of_them_are(count: int) -> None:
    assert most_at_once(VerifierSlots(count), 6) == count


def test_there_is_a_slot_for_every_core_unless_told_otherwise() -> None:
    assert VerifierSlots().count == os.cpu_count()


def test_a_slot_of_another_process_counts_until_it_dies() -> None:
    program = (
        "import threading, time\n"
        "from pytest_evocode.slots import VerifierSlots\n"
        "with VerifierSlots(1).take(threading.Event()):\n"
        "    print('taken', flush=True)\n"
        "    time.sleep(60)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE)
    with other:
        assert other.stdout is not None
        other.stdout.readline()
        cancelled = threading.Event()
        threading.Timer(0.3, cancelled.set).start()
        with pytest.raises(Cancelled), VerifierSlots(1).take(cancelled):
            pass
        other.kill()
        with VerifierSlots(1).take(threading.Event()):
            pass


def test_closing_ends_a_suite_that_waits_for_a_slot(engine: Engine, make_task: MakeTask) -> None:
    (cache_directory() / "verifiers").mkdir()
    lock = take_lock(cache_directory() / "verifiers/slot-0.lock")
    assert lock is not None
    try:
        with Trial(make_task(PASS), NopAgent(), engine, options=TrialOptions(verifiers=1)) as trial:
            trial.wait_environment()
        assert trial.wait(1).outcome == "not reached"
    finally:
        os.close(lock)
