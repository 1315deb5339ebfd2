"""What every environment promises about programs that an agent made to harm whoever runs them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.environments import Command, Engine, Environment
from pytest_evocode.environments.limits import ResourceLimits
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.errors import EnvironmentFault, EnvironmentUnavailable
from pytest_evocode.tasks import Task
from tests.environments.test_contract_programs import WAIT, bash, opened, processes

pytestmark = [pytest.mark.turns(2), pytest.mark.slow, pytest.mark.matrix]

BOMB = "bomb() { bomb | bomb & }; bomb; "
FULL = """
import os, time
try:
    while True:
        os.fork() or time.sleep(300)
except OSError:
    print("full", flush=True)
    time.sleep(300)
"""
IN_PYTHON = ("python3", "-c")


@pytest.fixture
def hostile(environment: Environment) -> Environment:
    """A started environment of the plain task."""
    return environment


@pytest.fixture(scope="module", params=["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
def limited(request: pytest.FixtureRequest, cache: Path) -> Iterator[Engine]:
    """Engines whose environments have room for 60 processes."""
    from pytest_evocode.environments.docker.engine import DockerEngine

    limits = ResourceLimits(processes=60)
    try:
        engine: Engine = DockerEngine(limits) if request.param == "docker" else SandboxEngine(limits=limits)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    yield engine
    engine.close()


@pytest.fixture
def small(limited: Engine, plain_task: Task) -> Iterator[Environment]:
    """An environment with room for 60 processes."""
    environment = limited.create(plain_task, env={}, network=None)
    environment.start()
    yield environment
    environment.stop()


def works(environment: Environment) -> bool:
    """Whether nothing runs there, and the next program does as if nothing had been."""
    result = environment.run_program(bash("echo as ever"), timeout=WAIT)
    return processes(environment) == [] and (result.exit_code, result.stdout) == (0, b"as ever\n")


@pytest.mark.nightly  # By day test_contract_limits.py has a fork bomb.
def test_a_fork_bomb_ends_with_the_run_that_waits_for_it(small: Environment) -> None:
    result = small.run_program(bash(f"{BOMB} sleep 300"), timeout=2, limit=2**16)
    assert result.exit_code != 0
    assert result.seconds < WAIT
    assert works(small)


def test_a_fork_bomb_that_a_run_leaves_behind_ends_and_a_server_beside_it_does_not(small: Environment) -> None:
    server, taken = opened(small, "cat")
    result = small.run_program(bash(f"{BOMB} exit 3"), timeout=WAIT, limit=2**16, alongside=[server])
    assert result.seconds < WAIT
    server.write(b"here")
    taken.wait_for(b"here")
    assert processes(small) == ["cat"]
    small.end_programs()
    assert works(small)


def test_where_no_process_can_be_started_a_run_is_a_failure_of_its_own(small: Environment) -> None:
    full, taken = opened(small, *IN_PYTHON, FULL)
    taken.wait_for(b"full")
    result = small.run_program(Command(("true",)), timeout=WAIT, alongside=[full])
    assert result.exit_code != 0
    small.end_programs()
    assert works(small)


@pytest.mark.parametrize(
    "script",
    [
        "setsid sleep 300 & kill -STOP $!; kill -STOP $$",
        "sleep 300 & kill -STOP -1; exec >&- 2>&-; sleep 300",
        "exec <&- >&- 2>&-; trap '' TERM HUP INT; while :; do sleep 300; done",
        "while :; do kill -STOP -1 2>/dev/null; done",
        "yes & yes >&2 & setsid yes & wait",
        "(trap '' HUP TERM; setsid bash -c 'while :; do echo late; echo late >&2; sleep 0.05; done' &); sleep 300",
    ],
    ids=["stopped", "stops all", "closed streams", "stops whoever comes", "floods", "goes on printing"],
)
def test_a_run_ends_at_its_timeout_whatever_it_does(hostile: Environment, script: str) -> None:
    result = hostile.run_program(bash(script), timeout=2, limit=1000)
    assert result.exit_code is None
    assert result.seconds < WAIT
    assert max(len(result.stdout), len(result.stderr)) < 1200
    assert works(hostile)


def test_a_program_that_kills_all_it_can_has_its_own_exit_code(hostile: Environment) -> None:
    result = hostile.run_program(bash("kill -9 -1; exit 5"), timeout=WAIT)
    assert result.exit_code == 5
    assert works(hostile)


# It traces every process that it finds, and stops it so.
TRACE = """
import ctypes, os
libc = ctypes.CDLL(None)
print("begun", flush=True)
while True:
    for name in os.listdir("/proc"):
        if name.isdigit() and name not in ("1", str(os.getpid())):
            libc.ptrace(16, int(name), 0, 0)
"""


@pytest.mark.nightly
def test_who_traces_the_others_delays_them_and_ends(hostile: Environment) -> None:
    tracer, taken = opened(hostile, *IN_PYTHON, TRACE)
    taken.wait_for(b"begun")
    for _ in range(5):
        result = hostile.run_program(bash("echo one; echo two"), timeout=2, alongside=[tracer])
        assert result.exit_code in (None, 0, 137)  # What is traced and ends is not seen to end.
        assert result.seconds < WAIT
    hostile.end_programs()
    assert works(hostile)


# It exchanges a directory for a link again and again.
RACE = """
import os
os.makedirs("/opt/real/sub", exist_ok=True)
os.makedirs("/opt/place", exist_ok=True)
print("begun", flush=True)
while True:
    for make in (lambda: os.symlink("/opt/real", "/opt/place/way"), lambda: os.mkdir("/opt/place/way")):
        try:
            make()
        except OSError:
            pass
        for end in (os.unlink, os.rmdir):
            try:
                end("/opt/place/way")
            except OSError:
                pass
"""


def test_a_link_that_comes_and_goes_is_not_followed(hostile: Environment) -> None:
    racer, taken = opened(hostile, *IN_PYTHON, RACE)
    taken.wait_for(b"begun")
    for number in range(50):
        large = b"nor there" * (10_000 if number % 10 == 0 else 1)  # Engines have another way for what is large.
        with contextlib.suppress(OSError):
            hostile.write_files("/opt/place", {f"way/sub/{number}": b"not for there", f"way/{number}": large})
    racer.signal(9)
    assert racer.wait(WAIT) == 137
    assert hostile.list_directory("/opt/real") == ["sub"]
    assert hostile.list_directory("/opt/real/sub") == []


# It moves what is to be removed, and puts it back.
MOVER = """
import os
print("begun", flush=True)
while True:
    for move in (("/opt/tree/a", "/opt/tree/b"), ("/opt/tree/b", "/opt/tree/a")):
        try:
            os.makedirs("/opt/tree/a/deep/er", exist_ok=True)
            os.rename(*move)
        except OSError:
            pass
"""


def test_what_moves_while_it_is_removed_is_gone_or_said_to_be_left(hostile: Environment) -> None:
    mover, taken = opened(hostile, *IN_PYTHON, MOVER)
    taken.wait_for(b"begun")
    for _ in range(20):
        try:
            hostile.remove(["/opt/tree"])
        except EnvironmentFault as fault:
            assert "/opt/tree" in str(fault)  # noqa: PT017 - either will do
    mover.signal(9)
    assert mover.wait(WAIT) == 137
    hostile.remove(["/opt/tree"])
    assert hostile.file_status("/opt/tree") is None


def test_a_port_that_accepts_and_never_answers_keeps_nobody_waiting(hostile: Environment) -> None:
    script = "import socket, time; s = socket.create_server(('127.0.0.1', 8123), backlog=1); print('up', flush=True)"
    server, taken = opened(hostile, *IN_PYTHON, f"{script}; time.sleep(300)")
    taken.wait_for(b"up")
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(TimeoutError):  # Once the kernel takes no more connections for it.
            for _ in range(5):
                connection = stack.enter_context(hostile.connect(8123, 1))
                connection.settimeout(0.1)
                with pytest.raises(TimeoutError):
                    connection.recv(1)
        server.signal(9)
        assert server.wait(WAIT) == 137
    with pytest.raises((ConnectionRefusedError, TimeoutError)):
        hostile.connect(8123, 5)


# It changes its name, session and group, and is deaf to all that one can be deaf to.
DAEMON = (
    "(setsid bash -c 'trap \"\" HUP INT QUIT TERM USR1 USR2 PIPE; exec -a nothing sleep 300' >/dev/null 2>&1 &); true"
)


def test_no_daemon_survives_its_run(hostile: Environment) -> None:
    for _ in range(3):
        assert hostile.run_program(bash(DAEMON), timeout=WAIT).exit_code == 0
        assert works(hostile)
    server, _ = opened(hostile, "sleep", "300")
    hostile.run_program(bash(DAEMON), timeout=WAIT, alongside=[server])
    daemons = bash("grep -lsz '^nothing$' /proc/[0-9]*/cmdline")
    assert hostile.run_program(daemons, timeout=WAIT, alongside=[server]).stdout == b""
    assert server.wait(0) is None


def test_no_signal_to_pid_1_changes_how_a_run_ends(hostile: Environment) -> None:
    # With a pause behind each, in which PID 1 goes on with what the signal has made it look at.
    script = "for number in $(seq 64); do kill -$number 1; sleep 0.02; done 2>/dev/null; echo on; exit 7"
    result = hostile.run_program(bash(script), timeout=WAIT)
    assert (result.exit_code, result.stdout) == (7, b"on\n")
    assert works(hostile)


def test_names_that_look_like_options_or_scripts_are_names(hostile: Environment) -> None:
    names = ["-rf", "$(touch x)", "`id`", "a'b\"c", "*", "new\nline", "%s%n", "\\000", "~"]
    place = "/opt/$(odd) 'place'\n/-n"
    hostile.write_files(place, {name: name.encode() for name in names})
    assert hostile.list_directory(place) == sorted(names)
    assert list(hostile.read_files({f"{place}/{name}": 100 for name in names}).values()) == [
        name.encode() for name in names
    ]
    status = hostile.file_status(f"{place}/-rf")
    assert status is not None
    assert status.size == 3
