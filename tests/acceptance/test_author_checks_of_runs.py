"""``pytest --evocode-check``: what shows when a suite is run again in another manner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.tasks import DOCKERFILE, native_test, suite_up_to

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks
    from tests.acceptance.tasks import WriteNative, WriteTask

pytestmark = pytest.mark.slow

# A date that a solution writes down is the one that a suite of the same day finds.
DATED = {1: "echo line-1 > log.txt; date +%F > day.txt"}


@pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
@pytest.mark.matrix
def test_cases_that_need_another_one_before_them_or_a_date_are_not_deterministic(
    write_native: WriteNative, check_tasks: CheckTasks, env: str
) -> None:
    others = """
def test_dependent():
    assert Path("/tmp/made").exists()

def test_of_a_program():
    assert subprocess.check_output(["date", "+%F"]) == open("day.txt", "rb").read()

def test_of_this_process():
    assert open("day.txt").read().strip() == str(date.today())
"""
    imports = "from datetime import date\nfrom pathlib import Path\nimport subprocess\n"
    first = native_test(1).replace("    with", "    Path('/tmp/made').touch()\n    with")
    write_native("a", solve=DATED, test={1: imports + first + others})
    checked = check_tasks("-kdeterministic", env=env)
    (message,) = checked.messages.values()
    assert message.splitlines() == [
        f"round-1/test_line_1.py::{case}: passed at first, failed {manner}"
        for case, manner in (
            ("test_dependent", "in reverse order"),
            ("test_of_a_program", "one day later"),
            ("test_of_this_process", "one day later"),
        )
    ]
    assert checked.warnings == []


@pytest.mark.nightly
def test_what_shows_only_backwards_and_later_together_is_said_so(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    dependent = """
from datetime import date
from pathlib import Path

def test_dependent():
    assert Path("/tmp/made").exists() or Path("day.txt").read_text().strip() == str(date.today())
"""
    first = native_test(1).replace("    with", "    open('/tmp/made', 'w')\n    with")
    write_native("a", solve=DATED, test={1: first + dependent})
    assert check_tasks("-kdeterministic").messages == {
        "deterministic[round-1]": "round-1/test_line_1.py::test_dependent: "
        "passed at first, failed in reverse order and one day later"
    }


WAITS = """
import ctypes, time

class Moment(ctypes.Structure):
    _fields_ = [("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long)]

def test_wait():
    clock, threads = time.CLOCK_MONOTONIC, ctypes.CDLL(None)
    attributes, condition, mutex = (ctypes.create_string_buffer(64) for _ in range(3))
    threads.pthread_condattr_init(attributes)
    threads.pthread_condattr_setclock(attributes, clock)
    threads.pthread_cond_init(condition, attributes)
    threads.pthread_mutex_init(mutex, None)
    threads.pthread_mutex_lock(mutex)
    end = time.clock_gettime_ns(clock) + 300_000_000
    moment = Moment(*divmod(end, 1_000_000_000))
    threads.pthread_cond_timedwait(condition, mutex, ctypes.byref(moment))
    assert time.clock_gettime_ns(clock) >= end
"""


def test_what_waits_for_a_moment_of_the_monotonic_clock_waits_as_long_on_another_day(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    """As Python's threads do, which else ask the clock without end."""
    write_native("a", test={1: native_test(1) + WAITS})
    checked = check_tasks("-kdeterministic")
    assert (checked.messages, checked.warnings) == ({}, [])
    assert checked.session.outcomes == {"passed": 1, "deselected": checked.session.outcomes["deselected"]}


@pytest.mark.nightly
def test_suites_that_are_other_ones_on_another_day_or_when_run_again_are_not_deterministic(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    is_today = '[ "$(date +%F)" = "$(< day.txt)" ]'
    write_task("dated", 1, solve=DATED, test={1: f"{is_today}; echo $((! $?)) > /logs/verifier/reward.txt"})
    hangs = f"{is_today} || sleep 60\n{suite_up_to(1)}"
    write_task("hangs", 1, solve=DATED, test={1: hangs}, step={1: "verifier.timeout_sec = 2"})
    case = "echo CASE_RESULT case_id=case-$RANDOM$RANDOM$RANDOM status=success\n"
    write_task("random", 1, test={1: case + suite_up_to(1)})
    write_task("fails", 1, solve={1: "true"})
    write_task("online", 2, step={2: 'verifier.network_mode = "public"'})
    # As a program that is linked statically.
    date = r"RUN cd /usr/local/bin; printf '#!/bin/bash\nenv -u LD_PRELOAD /bin/date $@' > date; chmod +x date"
    moved = f'[ -z "$FAKETIME" ] || echo CASE_RESULT case_id=moved status=success\n{suite_up_to(1)}'
    write_task("stuck-clock", 1, dockerfile=DOCKERFILE + date, test={1: moved})

    both = ("dated", "random", "online")
    checked = check_tasks(
        *(f"tasks/{task}/task.toml::check::hermetic" for task in both[1:]),
        *(f"tasks/{task}/task.toml::check::deterministic" for task in (*both, "hangs", "fails", "stuck-clock")),
    )
    tests = {test["nodeid"].removeprefix("tasks/"): test for test in checked.session.json_report()["tests"]}
    said = {
        name.partition("/")[0]: test["call"]["longrepr"] for name, test in tests.items() if test["outcome"] == "failed"
    }
    first, second = said.pop("random").splitlines()
    assert {first.partition(": ")[2], second.partition(": ")[2]} == {
        "passed at first, not there when run again",
        "not there at first, passed when run again",
    }
    assert said == {
        "dated": "the reward: 1 at first, 0 one day later",
        "hangs": "the suite did not end within its limit one day later",
    }
    # Cases that fail every time are deterministic, and a round that asks for a network need not be hermetic.
    assert sorted(name for name, test in tests.items() if test["outcome"] == "passed") == [
        "fails/task.toml::check::deterministic[round-1]",
        "online/task.toml::check::deterministic[round-1]",
        "online/task.toml::check::deterministic[round-2]",
        "online/task.toml::check::hermetic[round-1]",
        "random/task.toml::check::hermetic[round-1]",
        "stuck-clock/task.toml::check::deterministic[round-1]",
    ]
    assert len(tests) == 9
    assert checked.warnings == ["the image's clock cannot be set, so the suite of round-1 was not run on another day"]


@pytest.mark.docker
@pytest.mark.nightly
def test_a_suite_that_needs_a_network_and_does_not_say_so_is_not_hermetic(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    connected = "ls /sys/class/net | grep -qvx lo && status=success || { status=fail; reward=0; }\n"
    case = "echo CASE_RESULT case_id=connected status=$status failure_reason=offline\n"
    test = suite_up_to(1).replace("done\n", f"done\n{connected}{case}")
    write_task("a", 1, test={1: test})
    checked = check_tasks("-khermetic or deterministic", env="docker")
    assert checked.messages == {
        "hermetic[round-1]": "without a network 1 of 2 cases failed\n  connected: offline\n"
        'Have it need none, or ask for one with network_mode = "public" in [verifier].'
    }
    assert checked.outcomes["deterministic[round-1]"] == "passed"
