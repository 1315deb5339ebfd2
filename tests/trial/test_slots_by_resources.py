"""Suites that declare CPUs or memory take as many slots as that is of the machine."""

from __future__ import annotations

import contextlib
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.cache import cache_directory, is_locked, try_lock
from pytest_evocode.errors import Cancelled
from pytest_evocode.results.phases import Phases, Stopwatch
from pytest_evocode.tasks.model import EnvironmentConfig
from pytest_evocode.trial.context import Machine, TrialContext, TrialOptions, VerifierSlots, suite_resources

if TYPE_CHECKING:
    from tests.trial.conftest import MakeTask

GIB = 2**30
BIG = Machine(cores=64, memory=256 * GIB)


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, engine: Engine) -> Path:
    """Slots that no other test takes."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    return cache_directory()


def at_once() -> threading.Event:
    """For taking slots only if they are there, without waiting."""
    event = threading.Event()
    event.set()
    return event


@pytest.mark.parametrize(
    ("machine", "count", "cpus", "memory", "needed"),
    [
        (BIG, None, None, None, 1),
        (BIG, None, 0.25, GIB // 4, 1),
        (BIG, None, 7.5, None, 8),
        (BIG, None, 1, 128 * GIB, 32),
        (BIG, None, 64, None, 64),
        (BIG, None, 65, None, 64),
        (BIG, None, None, 999 * GIB, 64),
        (Machine(cores=2, memory=int(7.8 * GIB)), None, 1, 4 * GIB, 1),
        (Machine(cores=2, memory=None), None, None, 999 * GIB, 1),
        # Four suites at once have sixteen cores each,
        (BIG, 4, 16, None, 1),
        (BIG, 4, 17, None, 2),
        # and four on two cores are what the user wanted, up to those that the machine is too small for.
        (Machine(cores=2, memory=4 * GIB), 4, 1, 2 * GIB, 1),
        (Machine(cores=2, memory=4 * GIB), 4, 2, None, 2),
        (Machine(cores=2, memory=4 * GIB), 4, 3, None, 4),
        (Machine(cores=1), 1, 8, None, 1),
    ],
)
def test_a_suite_takes_its_part_of_the_machine(
    machine: Machine, count: int | None, cpus: float | None, memory: int | None, needed: int
) -> None:
    assert VerifierSlots(count, machine).needed(cpus, memory) == needed


@pytest.mark.parametrize(("cpus", "together"), [(None, 64), (8, 8), (64, 1)])
def test_a_machine_of_64_cores_runs_so_many_together_and_no_more(cpus: float | None, together: int) -> None:
    slots = VerifierSlots(machine=BIG)
    needed = slots.needed(cpus)
    with contextlib.ExitStack() as held:
        for _ in range(together):
            held.enter_context(slots.take(at_once(), slots=needed))
        with pytest.raises(Cancelled), slots.take(at_once(), slots=needed):
            pass
    with slots.take(at_once(), slots=64):
        pass


def test_who_stops_waiting_for_several_has_none_of_them() -> None:
    slots = VerifierSlots(4)
    with slots.take(at_once()):
        with pytest.raises(Cancelled), slots.take(at_once(), slots=4):
            pass
        with slots.take(at_once(), slots=3):
            pass


WAIT_FOR_ALL = """
import threading
from pytest_evocode.trial.context import VerifierSlots
with VerifierSlots(3).take(threading.Event(), slots=3):
    print("taken", flush=True)
    input()
"""


@pytest.fixture
def other() -> Iterator[subprocess.Popen[str]]:
    """A process that waits for all of three slots, says that it has them, and keeps them until it is killed."""
    command = [sys.executable, "-c", WAIT_FOR_ALL]
    with subprocess.Popen(command, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield process
        process.kill()


def said(process: subprocess.Popen[str]) -> str:
    """Return the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline()


def test_nobody_who_comes_later_passes_a_suite_that_waits_for_several_slots(
    cache: Path, request: pytest.FixtureRequest
) -> None:
    slots = VerifierSlots(3)
    with slots.take(at_once()):
        other = request.getfixturevalue("other")
        while not is_locked(cache / "verifiers/line-3.lock"):
            time.sleep(0.01)
        with pytest.raises(Cancelled), slots.take(at_once()):
            pass
    assert said(other) == "taken\n"


class Looks(threading.Event):
    """What a thread waits for between two looks at the slots: counts them, and ends the waiting after some."""

    def __init__(self, cache: Path, most: int = 1000) -> None:
        super().__init__()
        self.held: list[int] = []
        self._cache = cache
        self._most = most

    def wait(self, timeout: float | None = None) -> bool:
        """Note how many of three slots are held meanwhile."""
        self.held.append(sum(is_locked(self._cache / f"verifiers/slot-{number}.lock") for number in range(3)))
        return len(self.held) == self._most


@pytest.mark.parametrize("slots", [1, 2])
def test_a_process_that_is_halted_in_front_of_the_line_is_passed(
    cache: Path, slots: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (cache / "verifiers").mkdir()
    halted = try_lock(cache / "verifiers/line-3.lock")
    assert halted is not None
    looks = Looks(cache)
    # A second passes with each look.
    clock = SimpleNamespace(monotonic=lambda: float(len(looks.held)))
    monkeypatch.setattr("pytest_evocode.trial.context.time", clock)
    with VerifierSlots(3).take(looks, slots=slots):
        assert looks.held == [0] * 16
    halted.release()


def test_the_first_in_line_shows_that_it_lives_and_holds_nothing_while_it_waits(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_evocode.trial.context._BEAT", 0.0)
    looks = Looks(cache, 5)
    with VerifierSlots(3).take(at_once()), pytest.raises(Cancelled), VerifierSlots(3).take(looks, slots=3):
        pass
    assert looks.held == [1] * 5
    assert [path.name for path in (cache / "verifiers").glob("*.pulse")] == ["line-3.pulse"]


def test_all_slots_of_a_process_that_dies_are_free_again(other: subprocess.Popen[str]) -> None:
    assert said(other) == "taken\n"
    with pytest.raises(Cancelled), VerifierSlots(3).take(at_once()):
        pass
    other.kill()
    with VerifierSlots(3).take(threading.Event(), slots=3):
        pass


TAKE_MANY = """
import os, random, sys, threading, time
from concurrent.futures import ThreadPoolExecutor
from pytest_evocode.trial.context import VerifierSlots

count, wanted, log = int(sys.argv[1]), sys.argv[2].split(","), os.open(sys.argv[3], os.O_WRONLY | os.O_APPEND)

def take(slots):
    with VerifierSlots(count).take(threading.Event(), slots=slots):
        os.write(log, f"{slots}\\n".encode())
        time.sleep(0.01)
        os.write(log, f"-{slots}\\n".encode())

with ThreadPoolExecutor(4) as pool:
    list(pool.map(take, map(int, wanted)))
"""


@pytest.mark.nightly
def test_processes_never_hold_more_slots_together_than_there_are_and_all_get_theirs(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.touch()
    # The third has fewer slots of its own, as a session with evocode_verifiers has.
    sessions = [(8, "1,8,3,1,5,1,2"), (8, "5,1,1,8,1,7,1"), (4, "1,4,1,2,4,3,1")]
    commands = [[sys.executable, "-c", TAKE_MANY, str(count), wanted, str(log)] for count, wanted in sessions]
    for process in [subprocess.Popen(command) for command in commands]:
        assert process.wait() == 0
    held = list(accumulate(map(int, log.read_text().split())))
    assert len(held) == 2 * 21
    assert max(held) == 8
    assert held[-1] == 0


def test_a_stopwatch_measures_waiting_and_how_long_slots_were_held() -> None:
    moments = iter([10.0, 13.0, 13.0, 20.0, 20.0])
    stopwatch = Stopwatch(lambda: next(moments))
    with VerifierSlots(3).take(at_once(), stopwatch, slots=2):
        pass
    assert stopwatch.phases == Phases(waiting=3.0, fork=7.0, slot_seconds=14.0)


@pytest.mark.parametrize(
    ("toml", "expected"),
    [
        ("", (None, None)),
        ("[environment]\ncpus = 2.5\nmemory_mb = 512\n", (2.5, 512 * 2**20)),
        ("[environment]\nmemory = '2G'\n", (None, 2 * GIB)),
    ],
)
def test_what_a_suite_in_a_fork_may_use_is_what_its_task_declares(
    make_task: MakeTask, toml: str, expected: tuple[float | None, int | None]
) -> None:
    task = make_task("true", toml=toml)
    assert suite_resources(task, task.rounds[0]) == expected


def test_a_suite_apart_may_use_what_the_larger_of_its_two_environments_may(make_task: MakeTask) -> None:
    task = make_task("true", toml="[environment]\ncpus = 2\nmemory_mb = 1024\n")
    verifier = task.config.verifier.model_copy(update={"environment": EnvironmentConfig(cpus=4)})
    task = replace(task, config=task.config.model_copy(update={"verifier": verifier}))
    assert suite_resources(task, task.rounds[0]) == (2, GIB)
    assert suite_resources(task, replace(task.rounds[0], verify_in="separate")) == (4, GIB)


def test_a_suite_larger_than_the_machine_waits_until_it_is_alone(engine: Engine, make_task: MakeTask) -> None:
    task = make_task("echo 1 > /logs/verifier/reward.txt", toml="[environment]\ncpus = 9999\n")
    context = TrialContext.of(task, engine, TrialOptions(verifiers=2))
    round_, slots = task.rounds[0], VerifierSlots(2)
    with slots.take(at_once()), pytest.raises(Cancelled), context.take_slots(round_, at_once(), Stopwatch()):
        pass
    with context.take_slots(round_, at_once(), Stopwatch()), pytest.raises(Cancelled), slots.take(at_once()):
        pass
