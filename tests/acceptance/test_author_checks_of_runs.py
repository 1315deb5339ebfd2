"""``pytest --evocode-check``: what shows when a suite is run again in another manner."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.tasks import DOCKERFILE, native_test, suite_up_to

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks
    from tests.acceptance.tasks import WriteNative, WriteTask

pytestmark = pytest.mark.slow

EITHER = pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
# A date that a solution writes down is the one that a suite of the same day finds.
DATED = {1: "echo line-1 > log.txt; date +%F > day.txt"}


def test_a_case_that_needs_another_one_before_it_is_not_deterministic(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    dependent = "\ndef test_dependent():\n    assert Path('/tmp/made').exists()\n"
    first = native_test(1).replace("    with", "    Path('/tmp/made').touch()\n    with")
    write_native("a", test={1: "from pathlib import Path\n" + first + dependent})
    assert check_tasks("-kdeterministic").messages == {
        "deterministic[round-1]": "round-1/test_line_1.py::test_dependent: passed at first, failed in reverse order"
    }


@EITHER
@pytest.mark.matrix
def test_a_case_that_depends_on_the_date_is_not_deterministic(
    write_native: WriteNative, check_tasks: CheckTasks, env: str
) -> None:
    dated = """
from datetime import date
import subprocess

def test_of_this_process():
    assert open("day.txt").read().strip() == str(date.today())

def test_of_a_program():
    assert subprocess.check_output(["date", "+%F"]) == open("day.txt", "rb").read()
"""
    write_native("a", solve=DATED, test={1: native_test(1) + dated})
    checked = check_tasks("-kdeterministic", env=env)
    assert checked.messages == {
        "deterministic[round-1]": "round-1/test_line_1.py::test_of_a_program: passed at first, failed one day later\n"
        "round-1/test_line_1.py::test_of_this_process: passed at first, failed one day later"
    }
    assert checked.warnings == []


def test_a_script_that_depends_on_the_date_is_not_deterministic(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    test = '[ "$(date +%F)" = "$(< day.txt)" ]; echo $((! $?)) > /logs/verifier/reward.txt'
    write_task("a", 1, solve=DATED, test={1: test})
    assert check_tasks("-kdeterministic").messages == {
        "deterministic[round-1]": "the reward: 1 at first, 0 one day later"
    }


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


def test_a_suite_that_fails_now_and_then_is_not_deterministic(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    """Each run has other cases."""
    case = "echo CASE_RESULT case_id=case-$RANDOM$RANDOM$RANDOM status=success\n"
    write_task("a", 1, test={1: case + suite_up_to(1)})
    checked = check_tasks("-kdeterministic or hermetic")
    assert checked.outcomes["hermetic[round-1]"] == "passed"
    first, second = checked.messages["deterministic[round-1]"].splitlines()
    assert {first.partition(": ")[2], second.partition(": ")[2]} == {
        "passed at first, not there when run again",
        "not there at first, passed when run again",
    }


def test_a_suite_that_hangs_on_another_day_is_not_deterministic(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    hangs = '[ "$(date +%F)" = "$(< day.txt)" ] || sleep 60\n'
    write_task("a", 1, solve=DATED, test={1: hangs + suite_up_to(1)}, step={1: "verifier.timeout_sec = 2"})
    assert check_tasks("-kdeterministic").messages == {
        "deterministic[round-1]": "the suite did not end within its limit one day later"
    }


def test_cases_that_fail_every_time_are_deterministic(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 1, solve={1: "true"})
    assert check_tasks("-kdeterministic").outcomes == {"deterministic[round-1]": "passed"}


def test_where_the_clock_cannot_be_set_the_suite_is_not_run_on_another_day_and_a_warning_says_so(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    # As a program that is linked statically.
    date = r"RUN cd /usr/local/bin; printf '#!/bin/bash\nenv -u LD_PRELOAD /bin/date $@' > date; chmod +x date"
    test = f'[ -z "$FAKETIME" ] || echo CASE_RESULT case_id=moved status=success\n{suite_up_to(1)}'
    write_task("a", 1, dockerfile=DOCKERFILE + date, test={1: test})
    checked = check_tasks("-kdeterministic")
    assert checked.outcomes == {"deterministic[round-1]": "passed"}
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


def test_a_round_that_asks_for_a_network_need_not_be_hermetic(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task("a", 2, step={2: 'verifier.network_mode = "public"'})
    checked = check_tasks("-khermetic or deterministic")
    assert checked.outcomes == dict.fromkeys(
        ["deterministic[round-1]", "deterministic[round-2]", "hermetic[round-1]"], "passed"
    )
