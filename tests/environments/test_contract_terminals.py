"""What every environment promises about commands on a terminal."""

from __future__ import annotations

import os
import termios
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from pytest_evocode.environments import Command, Environment
from tests.environments.test_contract_processes import processes
from tests.terminals import HANGS, Person

pytestmark = [pytest.mark.turns(2), pytest.mark.matrix]

SHELL = Command(("bash", "--norc"), env={"PS1": "ready> "})
PROMPT = "ready> "
Start = Callable[[Environment, Command], Future[int]]


@pytest.fixture
def person() -> Iterator[Person]:
    with Person() as somebody:
        yield somebody


@pytest.fixture
def start(person: Person) -> Iterator[Start]:
    """Runs a command on the person's terminal."""
    with ThreadPoolExecutor(1) as pool:

        def start(environment: Environment, command: Command) -> Future[int]:
            return pool.submit(environment.interact, command, person.terminal)

        yield start
        person.leave()  # Or what a failed test has started would be waited for.


def test_a_shell_does_what_is_typed(shared: Environment, person: Person, start: Start) -> None:
    ended = start(shared, SHELL)
    person.sees(PROMPT)
    person.type("cat /app/from-image; exit 3\n")
    person.sees("original")
    assert ended.result(HANGS) == 3


def test_a_command_gets_user_variables_and_directory(shared: Environment, person: Person, start: Start) -> None:
    script = 'echo "[$(id -u) $MINE $FROM_TASK $PWD]"'
    command = Command(("bash", "-c", script), user="nobody", env={"MINE": "my own"}, cwd="/app/tree")
    assert start(shared, command).result(HANGS) == 0
    person.sees("[65534 my own yes /app/tree]")


def test_without_saying_so_they_are_those_of_any_command(shared: Environment, person: Person, start: Start) -> None:
    start(shared, Command(("bash", "-c", 'echo "[$(id -u) $WHO $PWD]"'))).result(HANGS)
    person.sees("[0 task /app]")


def test_it_is_a_terminal_with_the_persons_kind_and_size(
    shared: Environment, person: Person, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "vt220")
    person.resize(33, 99)
    ended = start(shared, SHELL)
    person.sees(PROMPT)
    person.type("[ -t 0 ] && [ -t 1 ] && [ -t 2 ] && echo yes=$TERM > /dev/tty\n")
    person.sees("yes=vt220")
    person.type("until [ \"$(stty size)\" = '33 99' ]; do sleep 0.1; done; echo fir''st\n")
    person.sees("first")
    person.resize(44, 111)
    person.type("until [ \"$(stty size)\" = '44 111' ]; do sleep 0.1; done; echo sec''ond\n")
    person.sees("second")
    person.type("exit\n")
    assert ended.result(HANGS) == 0


def test_control_c_is_for_the_command_under_way(shared: Environment, person: Person, start: Start) -> None:
    ended = start(shared, SHELL)
    person.sees(PROMPT)
    person.type("bash -c \"echo be''gun; exec sleep 300\"\n")
    person.sees("begun")
    person.type("\x03")
    person.sees(PROMPT)
    person.type("echo code=$?; exit\n")
    person.sees("code=130")
    ended.result(HANGS)


def test_much_is_typed_at_once(shared: Environment, person: Person, start: Start) -> None:
    ended = start(shared, Command(("bash", "-c", "echo begun; exec wc -c")))
    person.sees("begun")
    person.type(2000 * (49 * "x" + "\n") + "\x04")
    person.sees("100000")  # Not on a line of its own: of so much the kernel leaves some of the echo out.
    assert ended.result(HANGS) == 0


@pytest.mark.parametrize("left", ["nohup sleep 300", "sleep 300"], ids=["nohup", "on-the-terminal"])
def test_what_a_shell_left_in_the_background_keeps_nobody_waiting(
    environment: Environment, person: Person, start: Start, left: str
) -> None:
    ended = start(environment, SHELL)
    person.sees(PROMPT)
    person.type(f"{left} & exit\n")
    assert ended.result(HANGS) == 0


def test_the_terminal_gets_its_mode_back(shared: Environment, person: Person, start: Start) -> None:
    before = termios.tcgetattr(person.terminal)
    ended = start(shared, SHELL)
    person.sees(PROMPT)
    assert termios.tcgetattr(person.terminal) != before
    person.type("exit\n")
    ended.result(HANGS)
    assert termios.tcgetattr(person.terminal) == before


def test_a_terminal_that_is_closed_ends_the_command(environment: Environment, person: Person, start: Start) -> None:
    ended = start(environment, SHELL)
    person.sees(PROMPT)
    person.type("trap '' HUP; echo deaf''ened; sleep 300\n")
    person.sees("deafened")
    person.leave()
    assert ended.result(HANGS) != 0
    assert processes(environment) == []


def test_a_program_that_is_not_there_is_no_fault(shared: Environment, person: Person, start: Start) -> None:
    assert start(shared, Command(("no-such-program",))).result(HANGS) in (126, 127)
    person.sees("no-such-program")


def test_commands_run_beside_it(environment: Environment, person: Person, start: Start) -> None:
    ended = start(environment, SHELL)
    person.sees(PROMPT)
    assert environment.exec("echo from-beside > /app/note").ok
    person.type("cat /app/note; exit\n")
    person.sees("from-beside")
    assert ended.result(HANGS) == 0
    assert os.isatty(person.terminal)
