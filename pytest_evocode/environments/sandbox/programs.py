"""Commands and programs in a sandbox, and its ports: all that is run there."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import termios
import threading
import time
from collections.abc import Callable, Mapping, MutableSet, Sequence
from dataclasses import replace

from pytest_evocode.environments.command_environment import CommandEnvironment
from pytest_evocode.environments.egress import PROXY_VARIABLES
from pytest_evocode.environments.programs import CappedOutput, Command, Program, ProgramResult, Stream, TakeOutput, User
from pytest_evocode.environments.sandbox.running import RunningSandbox, SandboxProgram
from pytest_evocode.environments.terminal import kind_of_terminal, relay, write_all
from pytest_evocode.errors import EnvironmentFault

_GRACE = 20.0  # seconds beyond a deadline in which a worker has to have done what it was asked for
_KILL_GRACE = 0.5  # seconds for the killed tree to be reaped before it is killed once more
_KILLS = 10  # after which the sandbox counts as broken


class SandboxPrograms(RunningSandbox, CommandEnvironment):
    """A base class with what runs in a sandbox."""

    workdir: str
    _user: User
    """That of commands that name none."""
    _env: Mapping[str, str]
    """The variables of image and task."""
    _pretends_owners: bool
    """Whether files may be given to users whom a sandbox without root has not."""

    def run(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Implement :meth:`~pytest_evocode.environments.command_environment.CommandEnvironment.run`."""
        program = self._start(command, lambda stream, piece: output.add(piece), input=bool(command.input))
        return program.exit_code if self._finish(program, command.input, deadline, self.kill_processes) else None

    def run_program(
        self,
        command: Command,
        *,
        input: bytes = b"",
        timeout: float | None = None,
        limit: int = 2**20,
        alongside: Sequence[Program] = (),
    ) -> ProgramResult:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        started = time.monotonic()
        outputs: dict[Stream, CappedOutput] = {1: CappedOutput(limit // 2), 2: CappedOutput(limit // 2)}
        spared = _marks(alongside) | self._entered_mark()
        with self._starting:
            known = {*self._opened}

        def sweep() -> None:
            """Kill what is left of it, and spare what runs at the same time or was opened meanwhile."""
            self._runs.discard(program)
            with self._starting:
                others = self._runs | ({*self._opened} - known)
                self._kill_without(spared | {other.mark for other in others})

        program = self._start(
            command,
            lambda stream, piece: outputs[stream].add(piece),
            input=bool(input),
            apart=True,
            among=self._runs,
            spared=spared,
        )
        try:
            in_time = self._finish(program, input, None if timeout is None else started + timeout, sweep)
            if in_time and program.left_others:
                sweep()
        finally:
            self._runs.discard(program)
        if program.left_others:
            self._notes.new_lines()  # They are about what was left, and no matter of the next program.
        return ProgramResult(
            exit_code=program.exit_code if in_time else None,
            stdout=outputs[1].bytes(),
            stderr=outputs[2].bytes(),
            left_out=(outputs[1].left_out, outputs[2].left_out),
            seconds=time.monotonic() - started,
        )

    def open_program(self, command: Command, take: TakeOutput) -> Program:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return self._start(command, take, input=True, apart=True, among=self._opened)

    def end_programs(self, alongside: Sequence[Program] = ()) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        with self._starting:
            self._kill_without(_marks(alongside) | self._entered_mark())

    def interact(self, command: Command, terminal: int) -> int:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        command = replace(command, env={**kind_of_terminal(), **command.env})
        complaint = bytearray()
        with _PseudoTerminal() as pseudo:
            program = self._start(command, lambda stream, piece: complaint.extend(piece), terminal=pseudo.inner)
            if not relay(terminal, pseudo, pseudo.resize, lambda: program.has_ended(0)):
                self.kill_processes()
            program.has_ended()  # Before the terminal is closed: a program may close its end and run on.
        write_all(terminal, bytes(complaint).replace(b"\n", b"\r\n"))
        return program.exit_code

    def _start(
        self,
        command: Command,
        take: TakeOutput,
        *,
        input: bool = False,
        apart: bool = False,
        terminal: int = -1,
        among: MutableSet[SandboxProgram] | None = None,
        spared: set[int] | None = None,
    ) -> SandboxProgram:
        """Start a program.

        Args:
            command: What to run.
            take: Takes what it prints, in a thread, and why it could not be started.
            input: Whether it gets a pipe for its stdin.
            apart: Whether stdout and stderr are two streams.
            terminal: The end of a terminal that is all of its streams, and is closed here.
            among: A set of programs to which it is added.
            spared: The marks of processes that are not counted as left by it; None for not counting at all.
        """
        outputs: dict[int, Stream] = {}
        stdin, inner, streams = -1, [], [0, 0, 0]
        if terminal >= 0:
            inner = [terminal]
        else:
            each: Stream
            for each in (1, 2) if apart else (1,):
                read, write = os.pipe()
                outputs[read] = each
                inner.append(write)
            if input:
                read, stdin = os.pipe()
                inner.append(read)
            streams = [len(outputs) if input else -1, 0, int(apart)]
        program = SandboxProgram(outputs, stdin, self._require_running, self._notes.new_lines)
        request = {
            "argv": command.argv,
            "user": self._user if command.user is None else command.user,
            "processes": self._uncounted_processes if self._settings.rootless else None,
            "env": {**self._env, **({} if self.egress is None else PROXY_VARIABLES), **command.env},
            "cwd": command.cwd or self.workdir,
            "streams": streams,
            "terminal": terminal >= 0,
            "marks": None if spared is None else sorted(spared),
        }
        try:
            with self._starting, self._saying_if_killed():
                program.begun(self._begin("program", inner, pretends_owners=self._pretends_owners, **request))
                if among is not None:
                    among.add(program)
        except BaseException:
            program.close()
            raise
        finally:
            for fd in inner:
                os.close(fd)
        threading.Thread(target=program.serve, args=[take], daemon=True, name="evocode-program").start()
        return program

    def _finish(self, program: SandboxProgram, input: bytes, deadline: float | None, kill: Callable[[], None]) -> bool:
        """Give a program its input and wait for its end, or kill it at the deadline; tell whether it ended in time."""
        with contextlib.suppress(BrokenPipeError, TimeoutError):
            program.write(input, _until(deadline))
        program.close_input()
        if program.wait(_until(deadline)) is not None:
            return True
        for _ in range(_KILLS):  # Again, because it may have been only just started.
            kill()
            if program.has_ended(_KILL_GRACE):
                return False
        raise EnvironmentFault("a program in the sandbox could not be killed")

    def _entered_mark(self) -> set[int]:
        """Return the mark of the image's ENTRYPOINT, which all that it starts has, as a set."""
        program = None if self.entered is None else self.entered.program
        return {program.mark} if isinstance(program, SandboxProgram) else set()

    def _kill_without(self, marks: set[int]) -> None:
        if not marks:
            self.kill_processes()
            return
        with self._signalling:
            if not self._ask("sweep", [self._notes.fd], timeout=_GRACE, marks=sorted(marks))["done"]:
                self._relaunch()

    def connect(self, port: int, timeout: float) -> socket.socket:
        """See :class:`~pytest_evocode.environments.protocol.Environment`.

        In a sandbox that shares the host's network it is a port of the host's.
        """
        answer = self._ask("connect", timeout=timeout + _GRACE, port=port, seconds=timeout)
        if "fd" in answer:
            return socket.socket(fileno=answer["fd"])
        if answer["refused"] == "timeout":
            raise TimeoutError(f"port {port} did not answer within {timeout} s")
        raise ConnectionRefusedError(f"port {port}: {answer['refused']}")


class _PseudoTerminal:
    """Two connected ends of a terminal, as a context that closes the outer one.

    It is a :class:`~pytest_evocode.environments.terminal.Remote`, by its outer end. The inner end is to be closed once
    a program has it, so that the outer one ends when the program does.
    """

    def __init__(self) -> None:
        self._outer, self.inner = os.openpty()
        os.set_blocking(self._outer, False)

    def __enter__(self) -> _PseudoTerminal:
        return self

    def __exit__(self, *error: object) -> None:
        os.close(self._outer)

    def fileno(self) -> int:
        """Return the file descriptor of the outer end."""
        return self._outer

    def recv(self, size: int, /) -> bytes:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.read(self._outer, size)
        except OSError as error:
            if error.errno != errno.EIO:
                raise
            return b""  # No process has the inner end open any more.

    def send(self, data: bytes, /) -> int:
        """See :class:`~pytest_evocode.environments.terminal.Remote`."""
        try:
            return os.write(self._outer, data)
        except BlockingIOError:
            return 0

    def resize(self, size: os.terminal_size) -> bool:
        """Set the size of the program's terminal, and return True."""
        termios.tcsetwinsize(self._outer, (size.lines, size.columns))
        return True


def _marks(programs: Sequence[Program]) -> set[int]:
    marks = set()
    for program in programs:
        assert isinstance(program, SandboxProgram)
        marks.add(program.mark)
    return marks


def _until(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()
