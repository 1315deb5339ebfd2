"""``--pdb``: the failing cases of a round again in its fork; pytest's own for everything else."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.tasks import FORK

if TYPE_CHECKING:
    from tests.acceptance.sessions import AtTerminal, RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
EITHER = pytest.mark.parametrize("env", ENVIRONMENTS)
FAIL = "echo 0 > /logs/verifier/reward.txt"

NATIVE = """
import pathlib
import pytest

@pytest.fixture
def log():
    return pathlib.Path("log.txt").read_text()

@pytest.mark.requirement("sound")
def test_sound():
    print("this one is sound")

@pytest.mark.requirement("kept")
@pytest.mark.parametrize("line", ["line-1", "line-2"])
def test_kept(log, line):
    found = log.split()
    assert line in found
"""


@pytest.fixture
def write_native(write_task: WriteTask) -> Callable[[str], None]:
    """Writes a task of one round with :data:`NATIVE` tests."""

    def write(solve: str) -> None:
        task = write_task("a", 1, solve={1: solve}, toml=FORK, files={"steps/round-1/tests/test_log.py": NATIVE})
        (task / "steps/round-1/tests/test.sh").unlink()

    return write


@EITHER
@pytest.mark.matrix
def test_pdb_runs_the_failing_cases_again_in_the_fork(
    write_native: Callable[[str], None], person: AtTerminal, env: str
) -> None:
    write_native("echo line-1 > log.txt")
    person.pytest("--pdb", "tasks", env=env)
    shown = person.sees("the failing cases of round-1 again, with --pdb")
    assert "round-1 failed: 1 of 3 cases failed" in shown
    shown = person.sees("(Pdb)")
    assert "/tests/round-1/test_log.py" in shown
    assert "sound" not in shown
    person.type("p 'found', found, line\n")
    person.sees("('found', ['line-1'], 'line-2')")
    person.type("import os; os.listdir('/logs/verifier'), open('/logs/verifier/report.json').read().count('nodeid')\n")
    person.sees("3)")  # The suite's own report is still there.
    person.type("continue\n")
    person.sees("the session goes on")
    code, rest = person.ends()
    assert code == 1
    assert "1 failed in" in rest


@pytest.mark.nightly
def test_pdb_and_a_shell_come_one_after_the_other(write_native: Callable[[str], None], person: AtTerminal) -> None:
    write_native("echo line-1 > log.txt")
    person.pytest("--pdb", "--evocode-shell", "tasks")
    person.sees("(Pdb)")
    person.type("quit\n")
    assert person.asks("cat log.txt") == "line-1\n"
    person.type("exit\n")
    assert person.ends()[0] == 1


def test_pdb_opens_a_shell_where_the_suite_is_a_script(write_task: WriteTask, person: AtTerminal) -> None:
    write_task("a", 1, test={1: FAIL})
    person.pytest("--pdb", "tasks")
    assert person.asks("cat /logs/verifier/reward.txt") == "0\n"
    person.type("exit\n")
    code, rest = person.ends()
    assert code == 1
    assert "(Pdb)" not in rest


def test_pdb_is_pytests_own_for_ordinary_tests_and_fixtures_of_rounds(
    pytester: pytest.Pytester, write_task: WriteTask, person: AtTerminal
) -> None:
    write_task("a", 1)
    pytester.makeconftest(
        "import pytest\n"
        "@pytest.fixture(autouse=True)\n"
        "def broken(request):\n"
        "    in_a_fixture = 'seen'\n"
        "    assert 'round' not in request.node.name\n"
    )
    pytester.makepyfile("def test_ordinary():\n    in_a_test = 'seen'\n    assert not in_a_test\n")
    person.pytest("--pdb", ".")
    for name in ("in_a_fixture", "in_a_test"):
        person.sees("(Pdb)")
        person.type(f"p '{name}', {name}\n")
        person.sees(f"('{name}', 'seen')")
        person.type("continue\n")
    assert person.ends()[0] == 1


def test_pdb_opens_nothing_for_rounds_and_tasks_without_a_verdict(
    pytester: pytest.Pytester, write_task: WriteTask, person: AtTerminal
) -> None:
    write_task("a", 1, test={1: "true"})
    (write_task("b", 1) / "task.toml").write_text("no toml")
    person.pytest("--pdb", "tasks")
    code, shown = person.ends()
    assert code == 1
    assert "2 errors" in shown
    assert "Pdb" not in shown


def test_control_c_ends_a_session_with_pdb(write_task: WriteTask, person: AtTerminal) -> None:
    write_task("a", 2, solve={1: "touch /logs/agent/began; sleep 4321"})
    person.pytest("--pdb", "-v", "tasks")
    person.sees("oracle::round-1")
    time.sleep(0.5)
    assert person.session is not None
    person.session.send_signal(signal.SIGINT)
    code, shown = person.ends()
    assert code == pytest.ExitCode.INTERRUPTED
    assert "Pdb" not in shown


def test_pdb_without_a_terminal_says_so_and_goes_on(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, test={1: FAIL})
    session = run_tasks("--pdb", "tasks", subprocess=True)
    assert session.exit_status == 1
    session.has("*::round-1: standard input is no terminal to enter the fork from", "round-1 failed*")
