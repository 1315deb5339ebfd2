"""One sandbox as an environment: bubblewrap namespaces over layers of files, entered through the launcher."""

from __future__ import annotations

import contextlib
import logging
import os
import posixpath
import re
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, MutableSet, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import BinaryIO

from pytest_evocode.environments.archive import Source, lay_over, pack, unpack
from pytest_evocode.environments.command_environment import CommandEnvironment
from pytest_evocode.environments.egress import PROXY_VARIABLES
from pytest_evocode.environments.owners import Owner
from pytest_evocode.environments.programs import (
    CappedOutput,
    Command,
    FileStatus,
    Program,
    ProgramResult,
    Stream,
    TakeOutput,
    User,
)
from pytest_evocode.environments.protocol import Environment, FileContents, Snapshot
from pytest_evocode.environments.sandbox.bubblewrap import Layers, SandboxSettings, host_below
from pytest_evocode.environments.sandbox.launcher_client import feed, receive
from pytest_evocode.environments.sandbox.leftovers import KeptSandbox, enter_line, keep_files
from pytest_evocode.environments.sandbox.programs import PseudoTerminal, SandboxProgram
from pytest_evocode.environments.sandbox.running import RunningSandbox
from pytest_evocode.environments.sandbox.snapshots import SandboxSnapshot, copy_top_layer, remove_tree
from pytest_evocode.environments.terminal import kind_of_terminal, relay, write_all
from pytest_evocode.environments.tree_archives import CHUNK, END, DirectoryAbove, filter_tar
from pytest_evocode.errors import AgentFault, EnvironmentFault, SnapshotGone, UnreadableFile
from pytest_evocode.tasks import Network

logger = logging.getLogger(__name__)

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_FILES = 120.0  # seconds that reading or writing files may take
_GRACE = 20.0  # seconds beyond a deadline in which a worker has to have done what it was asked for
_KILL_GRACE = 0.5  # seconds for the killed tree to be reaped before it is killed once more
_KILLS = 10  # after which the sandbox counts as broken


class SandboxEnvironment(RunningSandbox, CommandEnvironment):
    """An :class:`~pytest_evocode.environments.protocol.Environment` that needs neither Docker nor root."""

    _start_failures = re.compile(r"\[Errno \d+\] |no user 'root'|bash: error while loading shared ")

    def __init__(
        self,
        settings: SandboxSettings,
        below: Sequence[Path],
        *,
        workdir: str,
        user: User,
        env: Mapping[str, str],
        network: Network | None,
        fill: Callable[[Path], object] | None = None,
        cpus: float | None = None,
        memory_mb: int | None = None,
        top: Path | None = None,
        is_build: bool = False,
    ) -> None:
        """Make a sandbox, not started.

        Args:
            settings: What all sandboxes of the session share.
            below: The layers of its image and snapshot, the lowest first.
            workdir: The directory that commands start in.
            user: The user of commands that name none.
            env: The variables of image and task.
            network: As in ``task.toml``; None for none.
            fill: Puts files into the top layer, which is empty, before it starts.
            cpus: How many CPUs it may use, None for all.
            memory_mb: MiB of memory that it may use, None for the session's default.
            top: The top layer of an earlier sandbox, to continue with and to leave behind again.
            is_build: An image is made in it, so that files may be given to users who are not there.
        """
        layers = Layers(tuple(below), top or settings.state / f"sandbox-{uuid.uuid4().hex[:12]}")
        super().__init__(settings, layers, network, cpus, memory_mb)
        self.workdir = workdir
        self._user = user
        # An image that has a system of its own says what it is to have, as in Docker.
        self._env = {"PATH": PATH, **({"LANG": "C.UTF-8"} if host_below(below) else {}), **env}
        self._fill = fill
        self._stays = top is not None
        self._pretends_owners = is_build and settings.rootless
        self._is_build = is_build

    @property
    def _first_shells(self) -> Sequence[str]:
        if self._is_build:  # In which bash may be installed.
            return ("sh",)
        return ("bash", "sh") if self._mending else ("bash",)

    def start(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        for name in ("root", "root-work", "usr", "usr-work"):
            (self.layers.top / name).mkdir(parents=True, exist_ok=self._stays)
            if not self._stays:
                (self.layers.top / name).chmod(0o755)  # Whatever the session's umask is.
        try:
            if self._fill is not None:
                self._fill(self.layers.top)
            self._acquire_launcher()
            self._pidfd = self._launch()
            logger.debug("started a sandbox with its files in %s", self.layers.top)
        except EnvironmentFault:
            self._release_launcher()
            if not self._stays:
                self._remove_files()
            raise
        self._serve_proxy()
        self.make_directories(["/logs/agent", "/logs/artifacts"])

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.put(lay_over(sources), target, writable=writable)

    def put(self, members: Mapping[str, Path], target: str, *, writable: bool = False) -> None:
        """Do as :meth:`upload` with files and directories of the host, by their paths in the target."""
        self._unpack(lambda stream: pack(members, target, stream, writable=writable), writable=writable)

    def _unpack(self, write: Callable[[BinaryIO], object], *, writable: bool = False) -> None:
        """Have a worker unpack a tar, which is written into a pipe; with ``writable``, open its directories to all."""
        feed(lambda pipe: self._begin("unpack", [pipe], writable=writable), write)

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        with self._packed(source) as stream:
            return unpack(stream, target, exclude=exclude)

    @contextlib.contextmanager
    def _packed(self, path: str) -> Iterator[BinaryIO]:
        """Have a worker pack a file or a tree, and yield the tar, which need not be read to its end."""
        read, write = os.pipe()
        with os.fdopen(read, "rb") as stream:
            try:
                reply = self._begin("pack", [write], path=path)
            finally:
                os.close(write)
            with reply:
                yield stream
                if not stream.read(1):
                    receive(reply)

    def read_files(self, limits: Mapping[str, int]) -> dict[str, FileContents]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        found: dict[str, FileContents] = {}
        with open(os.memfd_create("contents"), "w+b") as contents:
            answer = self._ask("read", [contents.fileno()], files=list(limits.items()))
            contents.seek(0)
            for path, file in zip(limits, answer["files"], strict=True):
                if isinstance(file, str):
                    found[path] = UnreadableFile(f"{path} is {file}")
                else:
                    found[path] = None if file is None else contents.read(file)
        return found

    def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        left = self._ask("remove", paths=list(paths))["left"]
        if left:
            raise EnvironmentFault(f"could not be removed from the sandbox: {', '.join(left)}")

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._ask("make_directories", paths=list(paths))

    def write_files(self, directory: str, files: Mapping[str, bytes], *, user: User | None = None) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
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
            )
        if "errno" in answer:
            raise OSError(answer["errno"], answer["why"], answer["path"])

    def file_status(self, path: str) -> FileStatus | None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        answer = self._ask("status", timeout=_FILES, path=path)
        return FileStatus(**answer["status"]) if answer else None

    def list_directory(self, path: str, limit: int = 100_000) -> list[str]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        answer = self._ask("list", timeout=_FILES, path=path, limit=limit)
        if "missing" in answer:
            raise NotADirectoryError(f"there is no directory at {path}")
        if "more" in answer:
            raise OverflowError(f"{path} has more than {limit} names")
        return sorted(answer["names"])

    def pack_trees(self, paths: Sequence[str], archive: BinaryIO, *, files: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        for path in paths:
            if self._kind(path) not in (("directory", "file") if files else ("directory",)):
                continue
            with self._packed(path) as stream:
                archive.writelines(filter_tar(stream, posixpath.dirname(path)))
        archive.write(END)

    def put_trees(self, paths: Sequence[str], above: Sequence[DirectoryAbove], archive: BinaryIO) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.remove([each.path for each in above if self._kind(each.path) == "link"])
        self.remove(paths)

        def write(stream: BinaryIO) -> None:
            stream.writelines(directory.entry() for directory in above)
            shutil.copyfileobj(archive, stream, CHUNK)

        self._unpack(write)

    def _kind(self, path: str) -> object:
        """Return what stands at a path, a link not followed; None where there is nothing."""
        return self._ask("status", path=path).get("status", {}).get("kind")

    def snapshot(self, *, keep_for: Path | None = None) -> Snapshot:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        directory = self._settings.state if keep_for is None else self._settings.kept
        snapshot = copy_top_layer(self._settings.launcher, directory, keep_for, self._run_stopped, self.layers)
        logger.debug("copied the files of the sandbox in %s to %s", self.layers.top, snapshot.layer)
        return snapshot

    def fork(
        self,
        snapshot: Snapshot,
        *,
        network: Network | None,
        only: Sequence[str] | None = None,
        exact: Sequence[str] = (),
    ) -> Environment:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        assert isinstance(snapshot, SandboxSnapshot)
        if not snapshot.layer.is_dir():
            raise SnapshotGone(f"the snapshot {snapshot.layer} is gone")
        image = self.layers.below
        fork = SandboxEnvironment(
            self._settings,
            [*image, snapshot.layer] if only is None else image,
            workdir=self.workdir,
            user=self._user,
            env=self._env,
            network=network,
            fill=None if only is None else partial(snapshot.carry_into, image, list(only), list(exact)),
            cpus=self._cpus,
            memory_mb=self._memory_mb,
        )
        fork.entry_point, fork.healthcheck = self.entry_point, self.healthcheck
        return fork

    def _as_built(self) -> Environment:
        """Return a sandbox with the system that is below the image, and nothing else."""
        below = self.layers.below[:1]
        return SandboxEnvironment(self._settings, below, workdir="/", user="0", env={}, network=None)

    def _blame(self, why: str) -> AgentFault | EnvironmentFault:
        """Return AgentFault where one that no program has been in can be started."""
        try:
            untouched = self._as_built()
            untouched.start()
            untouched.stop()
        except EnvironmentFault:
            return EnvironmentFault(why)
        return AgentFault(f"{why}. One that nothing was done in can be, so what ran in it is to blame")

    # What is run there.

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
        with PseudoTerminal() as pseudo:
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

    # The end.

    def stop(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.end(keep_files=self._stays)

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        if self._pidfd < 0:
            raise EnvironmentFault("the sandbox is not running")
        self.end(keep_files=True)
        sandbox = KeptSandbox(
            rootless=self._settings.rootless,
            public_network=self._shares_network,
            memory_mb=self._memory_mb,
            user=self._user if command.user is None else command.user,
            env={name: conceal(value) for name, value in {**self._env, **command.env}.items()},
            cwd=command.cwd or self.workdir,
            argv=tuple(command.argv),
            owner=Owner.this(),
        )
        line = enter_line(keep_files(self._settings, self.layers, name, sandbox))
        self._remove_files()
        return line

    def end(self, *, keep_files: bool) -> None:
        """Stop, and leave the top layer behind if ``keep_files``, for an image to be made of it."""
        if self._end() and not keep_files:
            self._remove_files()

    def _remove_files(self) -> None:
        with contextlib.suppress(EnvironmentFault):  # They go with the session's directory.
            remove_tree(self._settings.launcher, self.layers.top)


def _marks(programs: Sequence[Program]) -> set[int]:
    marks = set()
    for program in programs:
        assert isinstance(program, SandboxProgram)
        marks.add(program.mark)
    return marks


def _until(deadline: float | None) -> float | None:
    return None if deadline is None else deadline - time.monotonic()
