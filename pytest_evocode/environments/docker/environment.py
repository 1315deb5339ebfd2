"""One Docker container as an environment, with commits as snapshots and containers of them as forks."""

from __future__ import annotations

import contextlib
import errno
import itertools
import logging
import os
import re
import socket
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from pathlib import Path
from signal import SIGKILL
from typing import IO, Any, BinaryIO

from pytest_evocode.environments.archive import Source
from pytest_evocode.environments.command_environment import CommandEnvironment
from pytest_evocode.environments.docker.calls import discard, faults
from pytest_evocode.environments.docker.carry_over import CarriedFiles
from pytest_evocode.environments.docker.channel import KEEPER
from pytest_evocode.environments.docker.container_settings import ContainerSettings
from pytest_evocode.environments.docker.execs import (
    KILLED,
    DockerProgram,
    EngineCommand,
    run_by_engine,
    run_on_terminal,
)
from pytest_evocode.environments.docker.files import (
    LOG_DIRECTORIES,
    ContainerFiles,
    batches,
    naming_kills,
    refuse_if_killed,
)
from pytest_evocode.environments.docker.increments import Increments
from pytest_evocode.environments.docker.loopback import ContainerLoopback
from pytest_evocode.environments.docker.networks import ContainerNetwork
from pytest_evocode.environments.docker.relay import Relay
from pytest_evocode.environments.docker.snapshots import (
    DockerSnapshot,
    commit_container,
    docker_exec_line,
    keep_container,
)
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
from pytest_evocode.environments.tree_archives import CHUNK, DirectoryAbove, is_in
from pytest_evocode.errors import ChannelClosed, EnvironmentFault
from pytest_evocode.tasks import Network

logger = logging.getLogger(__name__)

_HOSTS = b"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
_LONG = 300.0  # seconds
_KILLING = 2.0  # seconds for killed processes to end
_STARTING = 30.0  # seconds for a program to start, in a container that is busy with a fork bomb
_ROOT = ("0", "root")
_PRINTING = 30.0  # seconds for a command of ours
_LONGEST_ID = 10  # digits
_PASSWD = 2**20  # bytes of /etc/passwd at most
_PROCESSES = "for process in /proc/[1-9]*; do printf '%s\\n' \"${process##*/}\"; done"
_ENDING = 10.0  # seconds for the engine to tell of a killed program's end
# Paths to be removed that the engine looks at, which takes 2 ms each; of more, rm tells whether it could.
_LOOKED_AT = 32


class DockerEnvironment(CommandEnvironment):
    """An :class:`~pytest_evocode.environments.protocol.Environment` in a Docker container.

    Short commands of root run through the container's PID 1.
    """

    # The engine's words, and those of PID 1's bash for what it starts itself.
    _start_failures = re.compile(
        r"OCI runtime |crun: |runc: |unable to find user root|"
        r"bash: (line \d+: (cd|exec|/\S+): |error while loading shared )"
    )

    def __init__(
        self,
        settings: ContainerSettings,
        image: str,
        *,
        workdir: str,
        network: Network | None,
        volumes: Mapping[str, IO[bytes]] | None = None,
        part: CarriedFiles | None = None,
        own_network: ContainerNetwork | None = None,
    ) -> None:
        self.workdir = workdir
        self._volumes = volumes or {}
        self._part = part
        self._settings = settings
        self._client = settings.client
        self.entry_point = settings.entry_point
        self.healthcheck = settings.healthcheck
        self._image = image
        self._network = own_network or ContainerNetwork(settings, network)
        self.egress = self._network.gate
        self._running: ContainerFiles | None = None
        self._increments = Increments(settings.client, settings.labels)
        self._changing = threading.Lock()
        """Held while a program is started, and while others are killed, which must not hit the one that starts."""
        self._runs: set[DockerProgram] = set()
        self._opened: weakref.WeakSet[DockerProgram] = weakref.WeakSet()
        self._relays: set[Relay] = set()
        self._loopback: ContainerLoopback | None = None
        self._killing = threading.Lock()  # Each of two kills at once would wait for the other's process to end.

    def start(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._start()
        # A fork has those of its attempt; a modification time of 1970 shows that nothing was written there.
        is_fork = self._part is not None or self._image != self._settings.image
        self.make_directories([path for path in LOG_DIRECTORIES if not (is_fork and self._files.is_directory(path))])
        if not self._network.has_hosts:
            self._files.pending_files = {"/etc/hosts": _HOSTS}  # Without a network, the engine leaves it empty.

    def _start(self) -> None:
        from docker.types import DeviceRequest, LogConfig, Mount

        settings = self._settings
        # An anonymous volume is empty whatever the image has there, and making it runs nothing in the container.
        mounts: list[Any] = [Mount(path, None, type="volume", no_copy=True) for path in self._volumes]
        with faults("starting a container"):
            network_mode = self._network.open()  # Before it is asked for more.
            mounts += self._network.mounts
            host_config = self._client.create_host_config(
                network_mode=network_mode,
                nano_cpus=None if settings.cpus is None else int(settings.cpus * 1e9),
                mem_limit=settings.memory,
                memswap_limit=settings.memory,  # Memory and swap together, so no swap.
                pids_limit=settings.processes,
                # Less than the memory: for files the kernel finds no process to blame, and would kill PID 1 in the end.
                shm_size=None if settings.memory is None else settings.memory // 2,
                mounts=mounts,
                # The engine would open a device in place of one of its files, with the rights of the host's root.
                cap_drop=["MKNOD"],
                device_requests=[DeviceRequest(count=settings.gpus, capabilities=[["gpu"]])] if settings.gpus else None,
                log_config=LogConfig(type="none"),
                **self._network.host_options,
            )
            created = self._client.create_container(
                self._image,
                entrypoint=KEEPER,
                command=[],
                user="0",
                working_dir="/",
                environment=dict(settings.env),
                labels=dict(settings.labels),
                host_config=host_config,
                healthcheck={"test": ["NONE"]},
                stdin_open=True,
                # The runtime then makes an empty network, in less than half the time of the engine's "none".
                network_disabled=self._network.is_none,
                networking_config=self._network.endpoints,
            )
            container = created["Id"]
            # Set before it is started, so that a stop meanwhile finds it.
            self._running = files = ContainerFiles(self._client, container)
            self._network.join(container)
            is_laid = self._part is None or self._part.lay(container)
            if self._mending:
                self._start_first_process(files)
            else:
                files.channel.attach()
                if self._part is None and self._image != settings.image:  # It has all that an agent made.
                    files.mend_user_files()
                self._client.start(container)
            logger.debug("started container %.12s from %s", container, self._image)
            if self._part is not None and not is_laid:
                # By the image's own rm, because until now nothing of the agent is here.
                self._part.bring(self._files, lambda words: self.exec(["rm", "-rf", *words], user="0", cwd="/"))
            for path, contents in self._volumes.items():
                # Opened anew, because several forks may read it at the same time.
                with open(f"/proc/self/fd/{contents.fileno()}", "rb") as stream:
                    self._files.put(stream, os.path.dirname(path))

    @property
    def _files(self) -> ContainerFiles:
        running = self._running
        if running is None:
            raise EnvironmentFault("the container is not running")
        return running

    @property
    def _id(self) -> str:
        return self._files.container

    def run(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Implement :meth:`~pytest_evocode.environments.command_environment.CommandEnvironment.run`."""
        self._files.make_pending()
        whole = self._filled_in(command, deadline)
        with naming_kills(self._client, self._running):
            ended = None
            # Where an agent works, PID 1 has to be free to see the session's end.
            may_be_long = deadline is not None and deadline - time.monotonic() > _LONG
            if not may_be_long or self._part is not None:
                ended = self._by_channel(
                    whole, lambda _, chunk: output.add(chunk), merge=True, kill=self.kill_processes
                )
            exit_code, timed_out = ended or self._exec(whole, output)
        if self._running is None:
            raise EnvironmentFault("the container was stopped while a command ran")
        if exit_code == KILLED and not timed_out:
            with self._killing:  # Not while another command's deadline starts the container anew, which kills it, too.
                self._refuse_if_killed()
        return None if timed_out else exit_code

    def _exec(self, command: EngineCommand, output: CappedOutput) -> tuple[int | None, bool]:
        self._files.mend_user_files()
        control = self._files.channel.control
        return run_by_engine(self._client, self._id, command, output, self.kill_processes, control)

    def _filled_in(self, command: Command, deadline: float | None = None) -> EngineCommand:
        user = self._settings.user if command.user is None else str(command.user)
        env = {**self._network.variables, **command.env}
        return EngineCommand(command.argv, user, env, command.cwd or self.workdir, deadline, command.input)

    def interact(self, command: Command, terminal: int) -> int:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.mend_user_files()
        whole, control = self._filled_in(command), self._files.channel.control
        return run_on_terminal(self._client, self._id, whole, terminal, self.kill_processes, control)

    def _by_channel(self, command: EngineCommand, take: TakeOutput, **options: Any) -> tuple[int, bool] | None:
        """Run a program of root as the channel does; None, and nothing has run, when the engine has to run it."""
        if command.user not in _ROOT:
            return None
        try:
            return self._files.channel.run(command, take, **options)
        except ChannelClosed:
            self._start_again()
            return KILLED, False

    # Programs beside one another, and what they leave behind.

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
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        started = time.monotonic()
        deadline = None if timeout is None else started + timeout
        outputs = {1: CappedOutput(limit // 2), 2: CappedOutput(limit // 2)}
        whole = self._filled_in(replace(command, input=input), deadline)
        with self._changing:
            known = {*self._opened}

        def end_others() -> None:
            with self._changing:
                meanwhile = {*self._opened} - known
            self.end_programs([*alongside, *meanwhile])

        def take(stream: Stream, chunk: bytes) -> None:
            outputs[stream].add(chunk)

        self._ready()
        ended = self._by_channel(whole, take)
        if ended is None:
            ended = self._run_by_engine(whole, take, end_others)
        else:
            end_others()
        exit_code, timed_out = ended
        return ProgramResult(
            None if timed_out else exit_code,
            outputs[1].bytes(),
            outputs[2].bytes(),
            (outputs[1].left_out, outputs[2].left_out),
            time.monotonic() - started,
        )

    def _run_by_engine(
        self, command: EngineCommand, take: TakeOutput, end_others: Callable[[], None]
    ) -> tuple[int, bool]:
        def feed() -> None:
            with contextlib.suppress(BrokenPipeError):
                program.write(command.input)
            program.close_input()

        exit_code = None
        with self._changing:
            program = self._start_program(command, take)
            self._runs.add(program)
        try:
            threading.Thread(target=feed, name="program-input", daemon=True).start()
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
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        with self._changing:
            program = self._start_program(self._filled_in(command), take)
            self._opened.add(program)
            return program

    def _start_program(self, command: EngineCommand, take: TakeOutput) -> DockerProgram:
        here = self._ready()
        here.mend_user_files()
        with naming_kills(self._client, here):
            program = DockerProgram(
                self._client,
                here.container,
                command,
                take,
                self._send_signal,
                self._refuse_if_killed,
                here.channel.control,
            )
        if not program.wait_for_start(_STARTING):
            self.kill_processes()  # Something inside stops whatever starts.
        return program

    def end_programs(self, alongside: Sequence[Program] = ()) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        with self._changing:
            live = (*alongside, *self._runs, *(relay.program for relay in self._relays))
            spared = [program.pid for program in live if isinstance(program, DockerProgram) and program.pid is not None]
            spared += self._entered_processes()
            # What PID 1 runs for another thread lives on, too.
            if not self._files.channel.control(f"evocode_sweep {' '.join(map(str, spared))} $running"):
                self.kill_processes()

    def entry_point_settled(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        output = CappedOutput()
        if self.entered is not None and self._files.channel.control(_PROCESSES, output=output):
            self.entered.services = tuple(int(word) for word in output.text().split() if _is_id(word) and word != "1")

    def _entered_processes(self) -> Sequence[int]:
        """Return the processes of the ENTRYPOINT: what had left its session by the time that it was ready, too."""
        program = None if self.entered is None else self.entered.program
        first = program.pid if isinstance(program, DockerProgram) else None
        return () if self.entered is None or first is None else (first, *self.entered.services)

    def connect(self, port: int, timeout: float) -> socket.socket:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        if self._loopback is None:
            self._loopback = ContainerLoopback(self._id, self._pid)
        if (connection := self._loopback.connect(port, timeout)) is not None:
            return connection
        relay = Relay(port, self.open_program)
        self._relays.add(relay)
        return relay.connect(timeout, lambda: self._relays.discard(relay))

    def _pid(self) -> int:
        """Return the process id of the container's PID 1 on the engine's machine; 0 where it does not run."""
        with faults("looking at a container"):
            pid: int = self._client.inspect_container(self._id)["State"]["Pid"]
        return pid

    def serve(self, path: Path) -> AbstractContextManager[str]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return self._network.serve(path, self._id)

    def write_files(self, directory: str, files: Mapping[str, bytes], *, user: User | None = None) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._ready().write_files(directory, files, self._ids(user))

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
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return self._ready().file_status(path)

    def list_directory(self, path: str, limit: int = 100_000) -> list[str]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return self._ready().list_names(path, limit, self._print)

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
            self.kill_processes()

    # Files.

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.upload(sources, target, writable=writable)

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return self._files.download(source, target, exclude=exclude)

    def read_files(self, limits: Mapping[str, int]) -> dict[str, FileContents]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        return {path: self._files.read(path, limit) for path, limit in limits.items()}

    def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.forget_pending(paths)
        if len(paths) <= _LOOKED_AT:
            paths = [path for path in paths if self._files.kind(path) is not None]
        for batch in batches(paths):
            result = self.exec(["rm", "-rf", "--", *batch], user="0", cwd="/", timeout=60)
            if not result.ok:
                raise EnvironmentFault(f"could not be removed from the container: {result.tail(3)}")
        if left := [path for path in paths[:_LOOKED_AT] if self._files.kind(path) is not None]:
            raise EnvironmentFault(f"could not be removed from the container: {', '.join(left)}")

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.make_directories(paths)

    def pack_trees(self, paths: Sequence[str], archive: BinaryIO, *, files: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.pack_trees(paths, archive, files=files)

    def put_trees(self, paths: Sequence[str], above: Sequence[DirectoryAbove], archive: BinaryIO) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.make_pending()
        links = [each.path for each in above if self._files.kind(each.path) == "link"]
        self.remove(links)
        mounts = (*self._volumes, *self._settings.volumes)
        # A mount cannot be removed, and a fork has those of its image, such as a VOLUME. What is there stays beside.
        self.remove([path for path in paths if not any(is_in(mount, path) for mount in mounts)])
        # The engine would give those that are there another owner.
        missing = [directory for directory in above if not self._files.is_directory(directory.path)]
        parts = (directory.entry() for directory in missing)
        chunks = iter(lambda: archive.read(CHUNK), b"")
        with faults("putting directories into a container"):
            self._client.put_archive(self._files.container, "/", itertools.chain(parts, chunks))

    # Killing.

    def kill_processes(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        with self._killing, faults("killing the container's processes"):
            logger.debug("killing all processes of container %.12s", self._id)
            # By PID 1, which nothing inside can kill or stop; but root inside may have told it what "kill" is.
            if not self._files.channel.control("evocode_sweep", _KILLING) or not self._is_empty_soon():
                self._restart()

    def _is_empty_soon(self) -> bool:
        """Tell whether nothing but PID 1 is left, or will be in the time that killed processes take to end."""
        deadline = time.monotonic() + _KILLING
        with contextlib.suppress(EnvironmentFault), faults("listing processes"):
            while time.monotonic() < deadline:
                if len(self._client.top(self._id)["Processes"]) <= 1:
                    return True
                time.sleep(0.02)
        return False

    def _start_again(self) -> None:
        """Start the container anew after root inside made its PID 1 end; its files are still there."""
        here = self._running
        if here is None:
            raise EnvironmentFault("the container was stopped while a command ran")
        with self._killing:  # By starting PID 1 anew, perhaps: another thread may have killed the command.
            if not here.channel.closed:
                return
            logger.info("PID 1 of a container has ended under a command; starting the container again")
            self._refuse_if_killed()
            with faults("starting a container again after it stopped under a command"):
                self._start_anew(here)

    def _refuse_if_killed(self) -> None:
        refuse_if_killed(self._client, self._running)

    def _restart(self) -> None:
        here = self._files
        if here.channel.closed:
            self._refuse_if_killed()
        logger.info("restarting container %.12s to kill its processes", here.container)
        self._client.stop(here.container, timeout=0)
        self._start_anew(here)

    def _start_anew(self, here: ContainerFiles) -> None:
        self._start_first_process(here)
        self._network.begun_anew(here.container)

    def _start_first_process(self, here: ContainerFiles) -> None:
        """Start PID 1 anew, in an agent's turn with the image's own shell where the agent has left none for it."""
        from docker.errors import APIError

        here.mend_user_files()
        with contextlib.suppress(*([APIError] if self._mending else [])):
            self._client.start(here.container)
            here.channel.attach()
            if not self._mending or here.channel.control(":"):
                return
        logger.info("container %.12s has no shell to start with; the image's own is put back", here.container)
        self._own_shell().put_back()
        self._client.start(here.container)
        here.channel.attach()

    # Snapshots and forks.

    def snapshot(self, *, keep_for: Path | None = None) -> Snapshot:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.make_pending()
        settings = self._settings
        with self._network.held():
            snapshot = commit_container(
                self._client,
                self._id,
                image_layers=settings.image_layers,
                volumes=settings.volumes,
                keep_for=keep_for,
                increments=self._increments,
            )
            return self._network.complete(snapshot)

    def fork(
        self,
        snapshot: Snapshot,
        *,
        network: Network | None,
        only: Sequence[str] | None = None,
        exact: Sequence[str] = (),
    ) -> Environment:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        assert isinstance(snapshot, DockerSnapshot)
        settings = self._settings
        part = None
        if only is not None:
            part = CarriedFiles(self._client, snapshot, tuple(only), tuple(exact), settings.labels)
        return type(self)(
            settings,
            snapshot.image if part is None else settings.image,
            workdir=self.workdir,
            network=network,
            volumes=snapshot.volumes if part is None else None,
            part=part,
            own_network=self._network.of_fork(network, snapshot, anew=part is not None),
        )

    def _as_built(self) -> Environment:
        """Return an environment of the image, not started, with nothing of the agent."""
        return DockerEnvironment(self._settings, self._settings.image, workdir="/", network="no-network")

    def stop(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        running, self._running = self._running, None
        self._increments.close()
        if running is None:
            self._network.close()
            return
        running.channel.end()
        logger.debug("removing container %.12s", running.container)
        self._network.close_server()
        discard(self._client, "container", running.container)
        self._network.close()
        running.channel.close()

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.kill_processes()
        here = self._files
        self._network.close_server()
        self._increments.close()
        kept = keep_container(self._client, here.container, name, self._network.public)
        self._network.close()
        logger.info("kept container %.12s as %s", here.container, kept)
        self._running = None
        here.channel.stay()
        here.channel.close()
        return docker_exec_line(kept, self._filled_in(command), conceal)


def _is_id(text: str) -> bool:
    """Tell whether a text is the number of a user or group; an agent may have written other digits there."""
    return text.isascii() and text.isdigit() and len(text) <= _LONGEST_ID
