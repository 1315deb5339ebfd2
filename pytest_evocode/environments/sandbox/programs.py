"""Programs with their streams apart in a sandbox, its ports and its files: the verbs of ``ProgramEnvironment``."""

from __future__ import annotations

import logging
import os
import socket
import threading
import time
import weakref
from abc import abstractmethod
from collections.abc import Mapping, Sequence, Set
from typing import Any

from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.entry_points import EntryPointEnvironment
from pytest_evocode.environments.programs import FileStatus, Program, ProgramResult, Stream, TakeOutput
from pytest_evocode.environments.protocol import Command, User
from pytest_evocode.environments.sandbox.bubblewrap import SandboxSettings
from pytest_evocode.environments.sandbox.output import LimitNotes
from pytest_evocode.environments.sandbox.running_program import SandboxProgram, read_answer
from pytest_evocode.errors import EnvironmentFault

logger = logging.getLogger(__name__)

_GRACE = 20.0  # seconds beyond a deadline in which a worker has to have done what it was asked for
_FILES = 120.0  # seconds that reading or writing files may take


class SandboxPrograms(EntryPointEnvironment):
    """A base class with :class:`~pytest_evocode.environments.programs.ProgramEnvironment`'s verbs for sandboxes."""

    _user: User
    _settings: SandboxSettings

    def __init__(self, notes: LimitNotes) -> None:
        self._notes = notes
        self._signalling = threading.Lock()  # Two kills at once would kill each other.
        self._starting = threading.Lock()
        """Held while a program gets its mark, and while all without one of the known marks are killed."""
        self._runs: set[SandboxProgram] = set()
        self._opened: weakref.WeakSet[SandboxProgram] = weakref.WeakSet()

    @abstractmethod
    def _begin(self, operation: str, fds: Sequence[int] = (), *, control: int | None = None, **arguments: Any) -> int:
        """Send a request, and return the descriptor that the reply comes from unless ``control`` is to take it."""

    @abstractmethod
    def _ask(
        self, operation: str, fds: Sequence[int] = (), *, timeout: float | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Send a request and return the reply, which has to come within ``timeout`` seconds."""

    @abstractmethod
    def _describe(self, command: Command) -> dict[str, Any]:
        """Return the fields of a request that runs a command."""

    @abstractmethod
    def _require_running(self, exit_code: int) -> None:
        """Raise EnvironmentFault where a program has ended, with this exit code, because the sandbox has."""

    @abstractmethod
    def _relaunch(self) -> None:
        """End every process and keep the files."""

    @abstractmethod
    def kill_processes(self) -> None:
        """Kill every process but PID 1."""

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
        outputs = {1: CappedOutput(limit // 2), 2: CappedOutput(limit // 2)}

        def take(stream: Stream, piece: bytes) -> None:
            outputs[stream].add(piece)

        spared = _marks(alongside) | self._entered_mark()
        with self._starting:
            known = {*self._opened}
        program = self._begin_program(command, spared, input)
        try:
            in_time = program.exchange(take, None if timeout is None else started + timeout, input)
            self._runs.discard(program)
            if not in_time or program.left_others:
                self._sweep(spared, known)
            if not in_time and not program.exchange(take, time.monotonic() + _GRACE):
                raise EnvironmentFault("a program in the sandbox could not be killed")
            program.drain(take)
            if in_time:
                self._require_running(program.exit_code)
        finally:
            self._runs.discard(program)
            program.close()
        failed = not in_time or program.exit_code != 0
        if failed or program.left_others:
            lines = self._notes.new_lines().encode()
            outputs[2].add(lines if failed else b"")
        return ProgramResult(
            exit_code=program.exit_code if in_time else None,
            stdout=outputs[1].bytes(),
            stderr=outputs[2].bytes(),
            left_out=(outputs[1].left_out, outputs[2].left_out),
            seconds=time.monotonic() - started,
        )

    def open_program(self, command: Command, take: TakeOutput) -> Program:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        program = self._begin_program(command, None, None)
        program.require_running = self._require_running
        threading.Thread(target=program.serve, args=[take], daemon=True, name="evocode-program").start()
        return program

    def end_programs(self, alongside: Sequence[Program] = ()) -> None:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        with self._starting:
            self._kill_without(_marks(alongside) | self._entered_mark())

    def _entered_mark(self) -> set[int]:
        """Return the mark of the image's ENTRYPOINT, which all that it starts has, as a set."""
        program = None if self._entered is None else self._entered.program
        return {program.mark} if isinstance(program, SandboxProgram) else set()

    def _begin_program(self, command: Command, spared: set[int] | None, input: bytes | None) -> SandboxProgram:
        """Start a program; with an ``input`` of nothing it gets no pipe for it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        pipes = [os.pipe() for _ in range(2 if input == b"" else 3)]
        inner = [pipes[0][1], pipes[1][1], *(pipe[0] for pipe in pipes[2:])]
        outer = [pipes[0][0], pipes[1][0], *(pipe[1] for pipe in pipes[2:])]
        program = SandboxProgram(ours, *outer)
        marks = None if spared is None else sorted(spared)
        try:
            with self._starting, theirs:
                fds = [theirs.fileno(), *inner]
                self._begin("program", fds, control=theirs.fileno(), marks=marks, **self._describe(command))
                theirs.close()
                program.receive_mark()
                if spared is None:
                    self._opened.add(program)
                else:
                    self._runs.add(program)
        except BaseException:
            program.close()
            raise
        finally:
            for fd in inner:
                os.close(fd)
        return program

    def connect(self, port: int, timeout: float) -> socket.socket:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`.

        In a sandbox that shares the host's network it is a port of the host's.
        """
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours:
            with theirs:
                control = theirs.fileno()
                self._begin("connect", [control], control=control, port=port, timeout=timeout)
            ours.settimeout(timeout + _GRACE)
            try:
                message, fds, _, _ = socket.recv_fds(ours, 2**16, 1)
            except TimeoutError:
                raise EnvironmentFault(f"a sandbox could not be asked for its port {port}") from None
        if fds:
            return socket.socket(fileno=fds[0])
        refused = read_answer(message)["refused"]
        if refused == "timeout":
            raise TimeoutError(f"port {port} did not answer within {timeout} s")
        raise ConnectionRefusedError(f"port {port}: {refused}")

    def write_files(self, directory: str, files: Mapping[str, bytes], *, user: User | None = None) -> None:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        for path in files:
            if {"", ".", ".."} & {*path.split("/")} or not directory.startswith("/"):
                raise ValueError(f"no path of a file to be written: {path!r} below {directory!r}")
        with open(os.memfd_create("contents"), "w+b", buffering=0) as contents:
            contents.writelines(files.values())
            answer = self._ask(
                "write",
                [contents.fileno()],
                timeout=_FILES,
                directory=directory,
                files=[(path, len(content)) for path, content in files.items()],
                user=self._user if user is None else user,
                rootless=self._settings.rootless,
            )
        if "errno" in answer:
            raise OSError(answer["errno"], answer["why"], answer["path"])

    def file_status(self, path: str) -> FileStatus | None:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        answer = self._ask("status", timeout=_FILES, path=path)
        return FileStatus(**answer["status"]) if answer else None

    def list_directory(self, path: str, limit: int = 100_000) -> list[str]:
        """See :class:`~pytest_evocode.environments.programs.ProgramEnvironment`."""
        with open(os.memfd_create("names"), "w+b", buffering=0) as names:
            answer = self._ask("list", [names.fileno()], timeout=_FILES, path=path, limit=limit)
            if "missing" in answer:
                raise NotADirectoryError(f"there is no directory at {path}")
            if "more" in answer:
                raise OverflowError(f"{path} has more than {limit} names")
            names.seek(0)
            return sorted(os.fsdecode(name) for name in names.read().split(b"\0")[:-1])

    def _sweep(self, spared: set[int], known: Set[SandboxProgram]) -> None:
        """Kill what is left of a program, and spare what runs at the same time or is not among the known programs."""
        with self._starting:
            others = self._runs | ({*self._opened} - known)
            self._kill_without(spared | {other.mark for other in others})

    def _kill_without(self, marks: set[int]) -> None:
        if not marks:
            self.kill_processes()
            return
        with self._signalling:
            if not self._ask("sweep", [self._notes.fd], timeout=_GRACE, marks=sorted(marks))["done"]:
                self._relaunch()


def _marks(programs: Sequence[Program]) -> set[int]:
    marks = set()
    for program in programs:
        assert isinstance(program, SandboxProgram)
        marks.add(program.mark)
    return marks
