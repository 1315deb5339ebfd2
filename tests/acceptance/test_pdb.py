"""``--pdb``: the failing cases of a round again in its fork; pytest's own for everything else."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.tasks import FORK

if TYPE_CHECKING:
    from tests.acceptance.sessions import AtTerminal, RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

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


def write_logging(write_task: WriteTask, name: str) -> None:
    """Write a task of one round with :data:`NATIVE` tests, of which one fails."""
    task = write_task(
        name, 1, solve={1: "echo line-1 > log.txt"}, toml=FORK, files={"steps/round-1/tests/test_log.py": NATIVE}
    )
    (task / "steps/round-1/tests/test.sh").unlink()


@pytest.fixture
def no_terminal() -> Iterator[None]:
    """Standard input of the tests' own process is no terminal, also for whoever runs them with ``-s``."""
    kept, nothing = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    yield
    os.dup2(kept, 0)
    os.close(kept)
    os.close(nothing)


def test_pdb_opens_what_belongs_to_each_failure_and_nothing_where_there_is_no_verdict(
    pytester: pytest.Pytester, write_task: WriteTask, person: AtTerminal
) -> None:
    look_at_each_failure(pytester, write_task, person, "sandbox")


@pytest.mark.docker
@pytest.mark.nightly
def test_pdb_opens_the_same_in_docker(pytester: pytest.Pytester, write_task: WriteTask, person: AtTerminal) -> None:
    look_at_each_failure(pytester, write_task, person, "docker")


def look_at_each_failure(pytester: pytest.Pytester, write_task: WriteTask, person: AtTerminal, env: str) -> None:
    write_task("a-no-verdict", 1, test={1: "true"})
    (write_task("b-broken", 1) / "task.toml").write_text("no toml")
    write_logging(write_task, "c-native")
    write_task("d-script", 1, test={1: FAIL})
    write_task("e-fixture", 1)
    pytester.makeconftest(
        "import pytest\n"
        "@pytest.fixture(autouse=True)\n"
        "def broken(request):\n"
        "    in_a_fixture = 'seen'\n"
        "    assert 'e-fixture' not in request.node.nodeid\n"
    )
    pytester.makepyfile("def test_ordinary():\n    in_a_test = 'seen'\n    assert not in_a_test\n")
    person.pytest("--pdb", ".", env=env)
    # Nothing for the round and the task without a verdict. Native tests are run again in the fork.
    shown = person.sees("the failing cases of round-1 again, with --pdb")
    assert "Pdb" not in shown
    assert "round-1 failed: 1 of 3 cases failed" in shown
    shown = person.sees("(Pdb)")
    assert "/tests/round-1/test_log.py" in shown
    assert "sound" not in shown
    person.type("p 'found', found, line\n")
    person.sees("('found', ['line-1'], 'line-2')")
    person.type("import os; os.listdir('/tests')\n")
    person.sees("'round-1'")
    person.type("continue\n")
    person.sees("the session goes on")
    # A shell where the suite is a script.
    assert person.asks("cat /logs/verifier/reward.txt") == "0\n"
    person.type("exit\n")
    assert "(Pdb)" not in person.sees("the session goes on")
    # Pytest's own for fixtures of rounds and for ordinary tests.
    for name in ("in_a_fixture", "in_a_test"):
        person.sees("(Pdb)")
        person.type(f"p '{name}', {name}\n")
        person.sees(f"('{name}', 'seen')")
        person.type("continue\n")
    code, rest = person.ends()
    assert code == 1
    assert "3 failed, 3 errors in" in rest


@pytest.mark.nightly
def test_pdb_and_a_shell_come_one_after_the_other(write_task: WriteTask, person: AtTerminal) -> None:
    write_logging(write_task, "a")
    person.pytest("--pdb", "--evocode-shell", "tasks")
    person.sees("(Pdb)")
    person.type("quit\n")
    assert person.asks("cat log.txt") == "line-1\n"
    person.type("exit\n")
    assert person.ends()[0] == 1


@pytest.mark.nightly
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


@pytest.mark.usefixtures("no_terminal")
def test_pdb_without_a_terminal_says_so_and_goes_on(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, test={1: FAIL})
    session = run_tasks("--pdb", "tasks")
    assert session.exit_status == 1
    session.has("*::round-1: standard input is no terminal to enter the fork from", "round-1 failed*")
