"""Commands that the engine runs in a container, and the streams that their output comes by.

They are slower than those of a channel, but run as any user and on a terminal. The SDK's
``docker.utils.socket.frames_iter`` does not serve here: it waits without a deadline, and misses what came in one piece
with the header of the engine's response.
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.environments.programs import CappedOutput, Stream, TakeOutput
from pytest_evocode.environments.terminal import kind_of_terminal, relay, write_all
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

_PIECE = 2**18  # bytes sent at once
_ENDING = 10.0  # seconds for the engine to give an exit code after the output has ended
KILLED = 137
"""The exit code that a shell gives a killed command, and the engine a killed PID 1."""
# The engine does not tell a program's number inside the container. This does, before anything of the program's runs.
# `cd` here instead of the engine's working directory: bash says on stderr what is wrong with one.
_STARTER = ("bash", "-c", r'printf "%s\n" $$; cd -- "$1" || exit 126; shift; exec -- "$@"', "bash")
_NUMBER_LENGTH = 20  # bytes of a process number's line at most
_GRACE = 0.1  # seconds without output after which no more is awaited of a program that has ended
_POLLS = (0.005, 1.0)  # seconds between two looks whether a program has ended: at first, and at most
_BLOCKED = 0.2  # seconds without progress of a write after which to look whether the program has ended


# The engine opens these to start something as a user, and where one is a FIFO it waits for somebody who writes to it.
USER_FILES = {"/etc/passwd": b"root:x:0:0:root:/root:/bin/bash\n", "/etc/group": b"root:x:0:\n"}
_READING = 1.0  # seconds for the engine to read them
#: For PID 1: opening a FIFO for both directions never waits, and lets go who waits at it.
_LET_GO = f'for file in {" ".join(USER_FILES)}; do [[ -p $file ]] && : <> "$file"; done; true'


@dataclass(frozen=True, slots=True)
class EngineCommand:
    """A command with user, directory and deadline filled in."""

    argv: Sequence[str]
    user: str
    env: Mapping[str, str]
    cwd: str
    deadline: float | None = None
    """By ``time.monotonic``."""
    input: bytes = b""
    """Its stdin, but for a :class:`DockerProgram`, which is written to."""


Control = Callable[[str], object]
"""Has a container's PID 1 run a script."""


@contextlib.contextmanager
def _let_go(client: APIClient, command: str, control: Control) -> Iterator[None]:
    """Have the engine start a command whatever an agent makes, and makes again, of the files that it reads for that."""
    ended = threading.Event()

    def watch() -> None:
        with contextlib.suppress(Exception):  # Of a container that has just ended.
            while not ended.wait(_READING) and not client.exec_inspect(command)["Pid"]:
                control(_LET_GO)

    threading.Thread(target=watch, name="command-start", daemon=True).start()
    try:
        yield
    finally:
        ended.set()


def _create(client: APIClient, container: str, command: EngineCommand, *, stdin: bool, tty: bool = False) -> str:
    """Have the engine make ready to run a command, and return what it calls that."""
    created = client.exec_create(
        container,
        command.argv,
        user=command.user,
        environment=dict(command.env),
        workdir=command.cwd,
        stdin=stdin,
        tty=tty,
    )
    return str(created["Id"])


def run_by_engine(
    client: APIClient,
    container: str,
    command: EngineCommand,
    output: CappedOutput,
    kill: Callable[[], None],
    control: Control = lambda script: None,
) -> tuple[int | None, bool]:
    """Run a command, and call ``kill`` when its deadline comes.

    Returns:
        The exit code, None when it was killed, and whether its deadline came.
    """
    with faults("running a command"):
        created = _create(client, container, command, stdin=bool(command.input))
        with (
            _let_go(client, created, control),
            FramedStream(client.exec_start(created, socket=True), lambda _, chunk: output.add(chunk)) as stream,
        ):
            if command.input:
                threading.Thread(target=stream.feed, args=[command.input], name="command-input", daemon=True).start()
            timed_out = not stream.collect(command.deadline)
        # After the stream is closed: a flood of output that nobody reads keeps the engine from killing.
        if timed_out:
            kill()
        exit_code = None if timed_out else _exit_code(client, created)
    if exit_code == 126 and "executable file not found in $PATH" in output.text():
        exit_code = 127  # As newer engines do.
    return exit_code, timed_out


def run_on_terminal(
    client: APIClient,
    container: str,
    command: EngineCommand,
    terminal: int,
    kill: Callable[[], None],
    control: Control,
) -> int:
    """Run a command on a terminal and return its exit code; call ``kill`` if the terminal is closed before."""
    from docker.errors import APIError

    def resize(size: os.terminal_size) -> bool:
        try:
            client.exec_resize(created, height=size.lines, width=size.columns)
        except APIError:  # The command is just starting, or has just ended.
            return False
        return True

    with faults("running a command on a terminal"):
        command = replace(command, env={**kind_of_terminal(), **command.env})
        created = _create(client, container, command, stdin=True, tty=True)
        with (
            _let_go(client, created, control),
            EngineConnection(client.exec_start(created, tty=True, socket=True)) as stream,
        ):
            write_all(terminal, stream.early)
            if not relay(terminal, stream.connection, resize):
                kill()
        return _exit_code(client, created)


def _exit_code(client: APIClient, exec_id: str) -> int:
    """Return the exit code, which the engine may know only some time after the output has ended."""
    deadline = time.monotonic() + _ENDING
    while time.monotonic() < deadline:
        state = client.exec_inspect(exec_id)
        if not state["Running"] and state["ExitCode"] is not None:
            return int(state["ExitCode"])
        time.sleep(0.01)
    raise EnvironmentFault("a command's output has ended, but the engine gives no exit code")


class EngineConnection:
    """A connection to a command or container, as a context that closes the connection and its response.

    ``stream`` is what the SDK's ``exec_start(socket=True)`` and ``attach_socket`` return.
    """

    def __init__(self, stream: Any) -> None:
        # Private parts of the SDK that there is no public way around, seen to work with docker 7.1.0 and 7.2.0. The
        # connection goes back to nobody's pool unless the response is closed, too; Python warns of an unclosed socket.
        self._response = stream._response
        # What is below a stream has `settimeout` and `shutdown`; with TLS the stream is that socket.
        self.connection: socket.socket = getattr(stream, "_sock", stream)
        self.early = b""
        """The first bytes of output, which came in one piece with the response's header."""

    def __enter__(self) -> Self:
        # They are in the buffer the header was read through, where the SDK's own readers do not look.
        with contextlib.suppress(AttributeError):
            buffered = self._response.raw._fp.fp
            self.connection.settimeout(0)
            self.early = bytes(buffered.peek())
        self.connection.settimeout(None)
        return self

    def __exit__(self, *error: object) -> None:
        self._response.close()
        self.connection.close()


class FramedStream(EngineConnection):
    """The stream of a command or container without a terminal.

    It is a sequence of frames. A frame is a header of eight bytes, the first of them 1 for stdout and 2 for stderr, the
    last four the length of the payload, and the payload. ``take`` is called with the payloads in order, each with the
    stream it is of, in pieces as they come.
    """

    def __init__(self, stream: Any, take: TakeOutput) -> None:
        super().__init__(stream)
        self._deliver = take
        self._buffer = bytearray()
        self._frame_left = 0
        self._frame_stream: Stream = 1

    def __enter__(self) -> Self:
        try:
            super().__enter__()
            self._take(self.early)
        except BaseException:  # Else nobody would close it.
            self.__exit__()
            raise
        return self

    def collect(self, deadline: float | None) -> bool:
        """Read output until it ends.

        Args:
            deadline: By ``time.monotonic``; None for no limit.

        Returns:
            Whether the output has ended; False at the deadline, after which a second call goes on.
        """
        while True:
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            self.connection.settimeout(left)
            try:
                chunk = self.connection.recv(2**18)
            except TimeoutError:
                return False
            if not chunk:
                return True
            self._take(chunk)

    def send(self, data: bytes) -> None:
        """Write to the command's stdin."""
        self.connection.sendall(data)

    def send_some(self, data: memoryview, seconds: float) -> int:
        """Write to the command's stdin while another thread collects, and return how many bytes were taken.

        0 are when none could be taken for so many seconds. Raises OSError or ValueError when the connection has ended.
        """
        poll = select.poll()  # Not the socket's own timeout, which is the collecting thread's too.
        poll.register(self.connection, select.POLLOUT)
        if not poll.poll(seconds * 1000):
            return 0
        try:
            if isinstance(self.connection, ssl.SSLSocket):  # It takes no flags.
                return self.connection.send(data[:_PIECE])
            return self.connection.send(data[:_PIECE], socket.MSG_DONTWAIT)
        except (BlockingIOError, ssl.SSLWantWriteError):
            return 0

    def feed(self, data: bytes) -> None:
        """Write all of the command's stdin and close it, beside a thread that collects, unless the connection ends."""
        left = memoryview(data)
        with contextlib.suppress(OSError, ValueError):
            while left:
                left = left[self.send_some(left, 1.0) :]
            self.close_input()

    def close_input(self) -> None:
        """Close the command's stdin, and go on collecting."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_WR)

    def shutdown(self) -> None:
        """End a :meth:`collect` that runs in another thread."""
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def _take(self, chunk: bytes) -> None:
        buffer = self._buffer
        buffer += chunk
        while buffer and (self._frame_left or len(buffer) >= 8):
            if not self._frame_left:
                self._frame_stream = 2 if buffer[0] == 2 else 1
                self._frame_left = struct.unpack(">I", buffer[4:8])[0]
                del buffer[:8]
            self._deliver(self._frame_stream, bytes(buffer[: self._frame_left]))
            taken = min(self._frame_left, len(buffer))
            del buffer[:taken]
            self._frame_left -= taken


class DockerProgram:
    """A :class:`~pytest_evocode.environments.programs.Program` that the engine runs in a container."""

    def __init__(
        self,
        client: APIClient,
        container: str,
        command: EngineCommand,
        take: TakeOutput,
        send_signal: Callable[[int, int], None],
        refuse_if_killed: Callable[[], None],
        control: Control,
    ) -> None:
        """Start a program; :meth:`wait_for_start` has to follow.

        Args:
            client: A client of the engine.
            container: Its identifier.
            command: What to run; its deadline is not used.
            take: Gets what the program prints.
            send_signal: Sends a process group, given as its number, a signal.
            refuse_if_killed: Raises KilledFromOutside where somebody has killed the container.
            control: Has PID 1 run a script.
        """
        self._client = client
        self._control = control
        self._take = take
        self._send_signal = send_signal
        self._refuse_if_killed = refuse_if_killed
        self._first_line: bytearray | None = bytearray()
        self._started = threading.Event()
        self._drained = threading.Event()
        self._begun = time.monotonic()
        self._drained_at = 0.0
        self._quiet_since: float | None = time.monotonic()
        self._failure: BaseException | None = None
        self._exit_code: int | None = None
        self._polling = threading.Lock()
        self.pid: int | None = None
        """Its number in the container; None while it has none, because it is just starting or could not be started."""
        with faults("starting a program"):
            starter = replace(command, argv=[*_STARTER, command.cwd, *command.argv], cwd="/")
            self._exec = _create(client, container, starter, stdin=True)
            self._stream = FramedStream(client.exec_start(self._exec, socket=True), self._take_chunk)
        threading.Thread(target=self._read, name=f"program-{self._exec[:12]}", daemon=True).start()

    def wait_for_start(self, timeout: float) -> bool:
        """Wait until the program's number is known, or it has ended; False at the timeout."""
        with _let_go(self._client, self._exec, self._control):
            return self._started.wait(timeout)

    def _read(self) -> None:
        try:
            with contextlib.suppress(OSError), self._stream:
                self._stream.collect(None)
                self._stream.shutdown()  # Wakes up whoever writes.
            if self._first_line:  # The engine's reason why there is no such user or no bash.
                self._take(2, bytes(self._first_line))
        except BaseException as error:  # Of `take`; whoever waits has to know.
            self._failure = error
        finally:
            self._started.set()
            self._drained_at = time.monotonic()
            self._drained.set()

    def _take_chunk(self, stream: Stream, chunk: bytes) -> None:
        self._quiet_since = None
        self._pass_on(stream, chunk)
        self._quiet_since = time.monotonic()

    def _pass_on(self, stream: Stream, chunk: bytes) -> None:
        if self._first_line is None or stream == 2:
            self._take(stream, chunk)
            return
        self._first_line += chunk
        number, end, rest = self._first_line.partition(b"\n")
        if end and number.isdigit() and len(number) < _NUMBER_LENGTH:
            self.pid = int(number)
            self._first_line = None
            self._started.set()
            if rest:
                self._take(1, bytes(rest))
        elif end or len(number) >= _NUMBER_LENGTH:
            self._first_line = None
            self._take(2, bytes(number + end + rest))

    def write(self, data: bytes, timeout: float | None = None) -> None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        deadline = math.inf if timeout is None else time.monotonic() + timeout
        left = memoryview(data)
        while left:
            try:
                if self._drained.is_set():
                    raise BrokenPipeError
                taken = self._stream.send_some(left, min(_BLOCKED, max(0.0, deadline - time.monotonic())))
                # Of a program that has ended the engine takes nothing, and says nothing.
                if not taken and self.has_ended():
                    raise BrokenPipeError
            except (OSError, ValueError):
                raise BrokenPipeError("nobody reads what is written to a program that has ended") from None
            left = left[taken:]
            if left and time.monotonic() >= deadline:
                raise TimeoutError(f"a program did not take its input within {timeout} s")

    def close_input(self) -> None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        self._stream.close_input()

    def signal(self, number: int) -> None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        if self.pid is not None and not self.has_ended():
            self._send_signal(self.pid, number)

    def has_ended(self) -> bool:
        """Tell whether the program itself has ended, be its output taken or not."""
        from docker.errors import APIError

        with self._polling:
            if self._exit_code is None:
                with faults("looking whether a program has ended"):
                    try:
                        state = self._client.exec_inspect(self._exec)
                    except APIError:  # Forgotten by the engine with all that ran in a container that has ended.
                        state = {"Running": False, "ExitCode": KILLED}
                if not state["Running"] and state["ExitCode"] is not None:
                    self._exit_code = int(state["ExitCode"])
            return self._exit_code is not None

    def wait(self, timeout: float | None = None) -> int | None:
        """See :class:`~pytest_evocode.environments.programs.Program`."""
        deadline = None if timeout is None else time.monotonic() + timeout
        shortest, longest = _POLLS
        while not self.has_ended():
            now = time.monotonic()
            left = longest if deadline is None else deadline - now
            if left <= 0:
                return None
            # Only for one whose descendants hold its output open, or which closed it itself: a tenth of its time late.
            pause = min(longest, left, max(shortest, (now - self._begun) / 10))
            if self._drained.is_set():  # The engine knows the exit code some time after.
                time.sleep(min(pause, shortest) if now - self._drained_at < longest else pause)
            else:
                self._drained.wait(pause)
        while not self._drained.wait(_GRACE):
            if self._is_quiet():  # Descendants hold it open.
                self._stream.shutdown()
        if self._failure is not None:
            raise self._failure
        if self._exit_code == KILLED:
            self._refuse_if_killed()
        return self._exit_code

    def _is_quiet(self) -> bool:
        """Tell whether all that has come is taken, and nothing has come for some time."""
        return self._quiet_since is not None and time.monotonic() - self._quiet_since >= _GRACE
