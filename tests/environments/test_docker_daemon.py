"""Nothing that an agent makes of the files which the Docker daemon itself reads keeps it from its work.

The daemon opens a container's /etc/passwd and /etc/group whenever it starts something there, and waits with the
container locked where that is a FIFO; of one with millions of lines it makes objects until memory is full.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from tests.environments.conftest import MakeEnvironment

pytestmark = pytest.mark.docker

#: What is made at a path, which is $1; the directory that it is in is the working directory.
PLANTED = {
    "FIFO": 'rm -rf "$1"; mkfifo "$1"',
    "FIFO that comes back": 'while :; do [ -p "$1" ] || { rm -rf "$1"; mkfifo "$1"; }; done >/dev/null 2>&1 &',
    "link to a FIFO": 'rm -rf "$1"; mkfifo /tmp/fifo; ln -s /tmp/fifo "$1"',
    "socket": 'rm -rf "$1"; python3 -c "import socket, sys; socket.socket(socket.AF_UNIX).bind(sys.argv[1])" "$1"',
    "loop of links": 'rm -rf "$1"; ln -s "$1" "$1"',
    "directory": 'rm -rf "$1"; mkdir "$1"',
    "a terabyte of nothing": 'rm -rf "$1"; truncate -s 1T "$1"',
    "millions of lines": 'rm -rf "$1"; yes x:y:z | head -c 300000000 > "$1"',
}
PLACES = ("/etc/passwd", "/etc/group", "/app", "/app/.wh.file")
_SOON = 60.0  # seconds for all of it, on a machine that does much else; a daemon that waits does so for ever


def within(seconds: float, work: Callable[[], object]) -> None:
    """Do something that may never end."""
    failures: list[BaseException] = []

    def attempt() -> None:
        try:
            work()
        except BaseException as error:
            failures.append(error)

    thread = threading.Thread(target=attempt, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "the engine still waits"
    if failures:
        raise failures[0]


@pytest.mark.parametrize("engine", ["docker"], indirect=True)
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("what", PLANTED)
@pytest.mark.matrix
def test_an_environment_goes_on_and_ends_whatever_an_agent_makes_of_what_the_daemon_reads(
    make_environment: MakeEnvironment, what: str, place: str
) -> None:
    environment = make_environment()
    assert environment.exec(["bash", "-c", PLANTED[what], "bash", place], user="0", cwd="/").ok

    def play() -> None:
        for user in ("65534", "nobody", "0"):
            with contextlib.suppress(Exception):  # A user or directory that there is no more is the agent's own.
                environment.exec(["true"], user=user, timeout=30)
        environment.kill_processes()
        assert environment.exec(["echo", "on"], user="0", cwd="/", timeout=30).output == "on\n"
        if what == "a terabyte of nothing":
            with pytest.raises(EnvironmentFault, match="more than 32 GiB"):
                environment.snapshot()
            return
        snapshot = environment.snapshot()
        fork = environment.fork(snapshot, network=None, only=["/app"])
        try:
            fork.start()
            assert fork.exec(["id", "-un", "65534"], cwd="/").output == "nobody\n"
        finally:
            fork.stop()
        snapshot.discard()

    within(_SOON, play)
    within(_SOON, environment.stop)
