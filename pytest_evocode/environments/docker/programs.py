"""The part of a container that runs programs beside one another, and kills what they leave behind."""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from signal import SIGKILL
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.docker.exec_program import DockerProgram
from pytest_evocode.environments.docker.execs import EngineCommand
from pytest_evocode.environments.docker.files import ContainerFiles
from pytest_evocode.environments.docker.killed import KILLED, naming_kills
from pytest_evocode.environments.docker.program_files import list_names, status_of, write_files
from pytest_evocode.environments.docker.relay import Relay, relay_argv
from pytest_evocode.environments.entry_points import EntryPointEnvironment
from pytest_evocode.environments.programs import FileStatus, Program, ProgramResult, Stream, TakeOutput
from pytest_evocode.environments.protocol import Command, User
from pytest_evocode.errors import ChannelClosed

if TYPE_CHECKING:
    from docker import APIClient

_STARTING = 30.0  # seconds for a program to start, in a container that is busy with a fork bomb
_ROOT = ("0", "root")
_PRINTING = 30.0  # seconds for a command of ours
_LONGEST_ID = 10  # digits
_PASSWD = 2**20  # bytes of /etc/passwd at most
_PROCESSES = "for process in /proc/[1-9]*; do printf '%s\\n' \"${process##*/}\"; done"
_ENDING = 10.0  # seconds for the engine to tell of a killed program's end


class ProgramContainer(EntryPointEnvironment):
    """A base class with the :class:`~pytest_evocode.environments.programs.ProgramEnvironment` part of a container."""

    _client: APIClient

    def __init__(self) -> None:
        self._changing = threading.Lock()
        """Held while a program is started, and while others are killed, which must not hit the one that starts."""
        self._runs: set[DockerProgram] = set()
        self._opened: weakref.WeakSet[DockerProgram] = weakref.WeakSet()
        self._relays: set[Relay] = set()

    @property
    @abstractmethod
    def _files(self) -> ContainerFiles:
        """The files of the running container."""

    @abstractmethod
    def _filled_in(self, command: Command, deadline: float | None = None) -> EngineCommand:
        """Return a command with user and directory filled in."""

    @abstractmethod
    def _start_again(self) -> None:
        """Start the container anew after its PID 1 has ended."""

    @abstractmethod
    def _refuse_if_killed(self) -> None:
        """Raise KilledFromOutside where somebody has killed the container."""

    @abstractmethod
    def _kill_by_engine(self) -> None:
        """Kill everything by starting the container anew."""

    def _ready(self) -> ContainerFiles:
        """Return the files of the container, which is started again where root inside has ended its PID 1."""
        here = self._files
        if here.channel.closed:
            self._start_again()
        here.make_pending()
        return here

    def run_program(
        self,
        command: Command,
        *,
        input: bytes = b"",
        timeout: float | None = None,
        limit: int = 2**20,
        alongside: Sequence[Program] = (),
    ) -> ProgramResult:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        started = time.monotonic()
        deadline = None if timeout is None else started + timeout
        outputs = {1: CappedOutput(limit // 2), 2: CappedOutput(limit // 2)}
        whole = self._filled_in(command, deadline)
        with self._changing:
            known = {*self._opened}

        def end_others() -> None:
            with self._changing:
                meanwhile = {*self._opened} - known
            self.end_programs([*alongside, *meanwhile])

        def take(stream: Stream, chunk: bytes) -> None:
            outputs[stream].add(chunk)

        exit_code, timed_out = self._run_by_channel(whole, input, take, end_others) or self._run_by_engine(
            whole, input, take, end_others
        )
        return ProgramResult(
            None if timed_out else exit_code,
            outputs[1].bytes(),
            outputs[2].bytes(),
            (outputs[1].left_out, outputs[2].left_out),
            time.monotonic() - started,
        )

    def _run_by_channel(
        self, command: EngineCommand, input: bytes, take: TakeOutput, end_others: Callable[[], None]
    ) -> tuple[int, bool] | None:
        self._ready()
        ended = self._by_channel(command, take, input=input)
        if ended is not None:
            end_others()
        return ended

    def _by_channel(self, command: EngineCommand, take: TakeOutput, **options: Any) -> tuple[int, bool] | None:
        """Run a program of root as the channel does; None, and nothing has run, when the engine has to run it."""
        if command.user not in _ROOT:
            return None
        try:
            return self._files.channel.run(command, take, **options)
        except ChannelClosed:
            self._start_again()
            return KILLED, False

    def _run_by_engine(
        self, command: EngineCommand, input: bytes, take: TakeOutput, end_others: Callable[[], None]
    ) -> tuple[int, bool]:
        def feed() -> None:
            with contextlib.suppress(BrokenPipeError):
                program.write(input)
            program.close_input()

        exit_code = None
        with self._changing:
            program = self._start_program(command, take)
            self._runs.add(program)
        try:
            if input:
                threading.Thread(target=feed, name="program-input", daemon=True).start()
            else:
                program.close_input()
            left = None if command.deadline is None else max(0.0, command.deadline - time.monotonic())
            exit_code = program.wait(left)
        finally:
            self._runs.discard(program)
            end_others()
        if exit_code is None:
            program.wait(_ENDING)
            return KILLED, True
        return exit_code, False

    def open_program(self, command: Command, take: TakeOutput) -> DockerProgram:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        with self._changing:
            program = self._start_program(self._filled_in(command), take)
            self._opened.add(program)
            return program

    def _start_program(self, command: EngineCommand, take: TakeOutput) -> DockerProgram:
        here = self._ready()
        with naming_kills(self._client, here):
            program = DockerProgram(
                self._client, here.container, command, take, self._send_signal, self._refuse_if_killed
            )
        if not program.wait_for_start(_STARTING):
            self._kill_by_engine()  # Something inside stops whatever starts.
        return program

    def end_programs(self, alongside: Sequence[Program] = ()) -> None:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        with self._changing:
            live = (*alongside, *self._runs, *(relay.program for relay in self._relays))
            spared = [program.pid for program in live if isinstance(program, DockerProgram) and program.pid is not None]
            spared += self._entered_processes()
            # What PID 1 runs for another thread lives on, too.
            if not self._files.channel.control(f"evocode_sweep {' '.join(map(str, spared))} $running"):
                self._kill_by_engine()

    def entry_point_settled(self) -> None:
        """See :class:`~pytest_evocode.environments.entry_points.EnterableEnvironment`."""
        output = CappedOutput()
        if self._entered is not None and self._files.channel.ask(_PROCESSES, output):
            self._entered.services = tuple(int(word) for word in output.text().split() if _is_id(word) and word != "1")

    def _entered_processes(self) -> Sequence[int]:
        """Return the processes of the ENTRYPOINT: what had left its session by the time that it was ready, too."""
        program = None if self._entered is None else self._entered.program
        first = program.pid if isinstance(program, DockerProgram) else None
        return () if self._entered is None or first is None else (first, *self._entered.services)

    def connect(self, port: int, timeout: float) -> socket.socket:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        deadline = time.monotonic() + timeout
        command = Command(relay_argv(port), user="0", cwd="/")
        relay = Relay(lambda take: self.open_program(command, take))
        self._relays.add(relay)
        connected = relay.connect(deadline, lambda: self._relays.discard(relay))
        if connected:
            return relay.socket
        if connected is None:
            relay.program.signal(SIGKILL)
            raise TimeoutError(f"port {port} did not take a connection within {timeout} s")
        raise ConnectionRefusedError(f"nobody listens at port {port}")

    def write_files(self, directory: str, files: Mapping[str, bytes], *, user: User | None = None) -> None:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        write_files(self._ready(), directory, files, *self._ids(user))

    def _ids(self, user: User | None) -> tuple[int, int]:
        """Return the numbers of a user and of the user's group."""
        wanted = self._filled_in(Command((), user)).user
        name, _, group = wanted.partition(":")
        if wanted in _ROOT:
            return 0, 0
        passwd = self._files.read("/etc/passwd", _PASSWD)
        for line in (passwd if isinstance(passwd, bytes) else b"").decode("utf-8", "replace").splitlines():
            fields = line.split(":")
            if len(fields) > 3 and name in (fields[0], fields[2]) and _is_id(fields[2]) and _is_id(fields[3]):
                return int(fields[2]), int(group) if _is_id(group) else int(fields[3])
        if _is_id(name):
            return int(name), int(group) if _is_id(group) else 0
        raise OSError(errno.EINVAL, f"the container's /etc/passwd has no user {name}, who is to own files there")

    def file_status(self, path: str) -> FileStatus | None:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        return status_of(self._client, self._ready(), path)

    def list_directory(self, path: str, limit: int = 100_000) -> list[str]:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        return list_names(self._ready(), path, limit, self._print)

    def _print(self, argv: tuple[str, ...], output: CappedOutput) -> None:
        """Run a command of root's by the engine, beside whatever runs, for its output."""

        def take(stream: Stream, chunk: bytes) -> None:
            if stream == 1:
                output.add(chunk)

        program = self.open_program(Command(argv, user="0", cwd="/", env={"LC_ALL": "C"}), take)
        program.close_input()
        if program.wait(_PRINTING) is None:
            program.signal(SIGKILL)

    def _send_signal(self, group: int, number: int) -> None:
        if not self._files.channel.control(f"kill -{number} -- -{group}; true"):
            self._kill_by_engine()


def _is_id(text: str) -> bool:
    """Tell whether a text is the number of a user or group; an agent may have written other digits there."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID
