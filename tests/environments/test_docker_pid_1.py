"""The program that is PID 1 of containers, run without an engine as PID 1 of a namespace."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from typing import IO

import pytest

from pytest_evocode.environments.docker.channel import KEEPER
from pytest_evocode.environments.sandbox.bubblewrap import find_bubblewrap
from pytest_evocode.errors import EnvironmentUnavailable

SIGNALS = range(1, 65)
#: What makes bash have handlers for more signals than before: a read with a timeout, as between looks at a program.
PAUSE = "read -t 0.001 -u 4"
#: Lets a program wait until PID 1 does nothing.
ASLEEP = "until read -r line < /proc/1/stat; [[ $line == *') S '* ]]; do :; done"


class Keeper:
    """PID 1, which does as requests say."""

    def __init__(self, bwrap: str) -> None:
        argv = [bwrap, "--unshare-user", "--unshare-pid", "--as-pid-1", "--die-with-parent"]
        argv += ["--dev-bind", "/", "/", "--proc", "/proc", *KEEPER]
        self._process = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def send(self, script: str) -> None:
        """Have it run a script."""
        stdin = self._stream(self._process.stdin)
        stdin.write(f"{script}\0")
        stdin.flush()

    def says(self) -> str:
        """Return the next line of what was printed; empty where it has ended."""
        return self._stream(self._process.stdout).readline().rstrip("\n")

    def hears_no_more(self) -> None:
        """End its input, as the end of a connection does."""
        self._stream(self._process.stdin).close()

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            self._stream(stream).close()

    @staticmethod
    def _stream(stream: IO[str] | None) -> IO[str]:
        assert stream is not None
        return stream


@pytest.fixture
def keeper() -> Iterator[Keeper]:
    """PID 1 that has taken its first request."""
    try:
        found = Keeper(find_bubblewrap())
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    try:
        found.send("echo $$")
        if not (number := found.says()):
            pytest.skip("bubblewrap cannot make a namespace here")
        assert number == "1"
        yield found
    finally:
        found.close()


@pytest.mark.parametrize("first", [":", PAUSE], ids=["at first", "after a pause"])
@pytest.mark.matrix
def test_no_signal_from_inside_ends_it_while_it_waits_for_a_request(keeper: Keeper, first: str) -> None:
    keeper.send(first)
    for number in SIGNALS:
        keeper.send(f"({ASLEEP}; kill -{number} 1; echo sent {number}) &")
        assert keeper.says() == f"sent {number}"
        keeper.send(f"wait; echo on {number}")
        assert keeper.says() == f"on {number}"


@pytest.mark.parametrize("first", [":", PAUSE], ids=["at first", "after a pause"])
@pytest.mark.matrix
def test_no_signal_from_inside_ends_it_while_it_waits_for_a_program(keeper: Keeper, first: str) -> None:
    keeper.send(first)
    for number in SIGNALS:
        keeper.send(
            f"({ASLEEP}; kill -{number} 1; {ASLEEP}; exit 7) & "
            "while wait $!; status=$?; ((status > 128)); do :; done; echo $status"
        )
        assert keeper.says() == "7", number


def test_no_flood_of_signals_ends_it(keeper: Keeper) -> None:
    keeper.send(PAUSE)
    flood = "for ((times = 0; times < 200; times++)); do for number in {1..64}; do kill -$number 1; done; done"
    keeper.send(f"({flood}; echo sent) &")
    assert keeper.says() == "sent"
    keeper.send("wait; echo on")
    assert keeper.says() == "on"


def test_it_ends_with_its_input(keeper: Keeper) -> None:
    keeper.send("echo on")
    keeper.hears_no_more()
    assert [keeper.says(), keeper.says()] == ["on", ""]
