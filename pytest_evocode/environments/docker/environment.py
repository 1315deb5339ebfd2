"""One Docker container as an environment, with commits as snapshots and containers of them as forks."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, Any

from pytest_evocode.environments.archive import Source
from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.docker.carry_over import CarriedFiles
from pytest_evocode.environments.docker.channel import KEEPER, Channel
from pytest_evocode.environments.docker.container_settings import ContainerSettings
from pytest_evocode.environments.docker.execs import EngineCommand, run_by_engine, run_on_terminal
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.files import ContainerFiles, batches
from pytest_evocode.environments.docker.gpus import gpu_requests
from pytest_evocode.environments.docker.killed import KILLED, naming_kills, refuse_if_killed
from pytest_evocode.environments.docker.networks import ContainerNetwork
from pytest_evocode.environments.docker.programs import ProgramContainer
from pytest_evocode.environments.docker.removal import discard
from pytest_evocode.environments.docker.snapshot_chain import SnapshotChain
from pytest_evocode.environments.docker.snapshots import (
    DockerSnapshot,
    docker_exec_line,
    keep_container,
)
from pytest_evocode.environments.docker.trees import ContainerTrees
from pytest_evocode.environments.egress import EgressGate
from pytest_evocode.environments.own_shell import MendableEnvironment
from pytest_evocode.environments.protocol import Command, Environment, FileContents, Snapshot
from pytest_evocode.errors import ChannelClosed, EnvironmentFault
from pytest_evocode.tasks import Network

logger = logging.getLogger(__name__)

_HOSTS = b"127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n"
_LOGS = ("/logs/agent", "/logs/artifacts")
_ROOT = ("0", "root")
_LONG = 300.0  # seconds
_KILLING = 1.0  # seconds for killed processes to end
_LOOKED_AT = (
    32  # paths to be removed that the engine looks at, which takes 2 ms each; of more, rm tells whether it could
)
_BATCH = 2**14  # bytes of paths in one command: no kernel refuses it, and the channel takes it


class DockerEnvironment(MendableEnvironment, ContainerTrees, ProgramContainer):
    """An :class:`~pytest_evocode.environments.protocol.InteractiveEnvironment` in a Docker container.

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
        image: str | DockerSnapshot,
        *,
        workdir: str,
        network: Network | None,
        volumes: Mapping[str, IO[bytes]] | None = None,
        part: CarriedFiles | None = None,
        own_network: ContainerNetwork | None = None,
    ) -> None:
        super().__init__()
        self.workdir = workdir
        self._volumes = volumes or {}
        self._part = part
        self._settings = settings
        self._client = settings.client
        self.entry_point = settings.entry_point
        self._image = image
        self._network = own_network or ContainerNetwork(settings.networks, network)
        self._running: ContainerFiles | None = None
        self._snapshots = SnapshotChain(settings.client, settings.labels, settings.image_layers, settings.volumes)
        self._killing = threading.Lock()  # Each of two kills at once would wait for the other's process to end.

    @property
    def egress(self) -> EgressGate | None:
        """See :class:`~pytest_evocode.environments.protocol.GuardedEnvironment`."""
        return self._network.gate

    def start(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._start()
        # A fork has those of its attempt; a modification time of 1970 shows that nothing was written there.
        is_fork = self._part is not None or isinstance(self._image, DockerSnapshot)
        self.make_directories([path for path in _LOGS if not (is_fork and self._files.is_directory(path))])
        if not self._network.has_hosts:
            self._files.pending_files = {"/etc/hosts": _HOSTS}  # Without a network, the engine leaves it empty.

    def _start(self) -> None:
        from docker.types import LogConfig, Mount

        settings, image = self._settings, self._image_name()
        # An anonymous volume is empty whatever the image has there, and making it runs nothing in the container.
        mounts: list[Any] = [Mount(path, None, type="volume", no_copy=True) for path in self._volumes]
        with faults("starting a container"):
            network_mode = self._network.open(settings.image, settings.labels)  # Before it is asked for more.
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
                device_requests=gpu_requests(settings.gpus),
                log_config=LogConfig(type="none"),
                **self._network.host_options,
            )
            created = self._client.create_container(
                image,
                entrypoint=KEEPER,
                command=[],
                user="0",
                working_dir="/",
                environment=dict(settings.env),
                labels=dict(settings.labels),
                host_config=host_config,
                stdin_open=True,
                # The runtime then makes an empty network, in less than half the time of the engine's "none".
                network_disabled=self._network.is_none,
                networking_config=self._network.endpoints,
            )
            container = created["Id"]
            # Set before it is started, so that a stop meanwhile finds it.
            self._running = ContainerFiles(self._client, container, None)
            self._network.join(container)
            channel = Channel(self._client, container)
            self._running = ContainerFiles(self._client, container, channel)
            is_laid = self._part is None or self._part.lay(container)
            self._client.start(container)
            logger.debug("started container %.12s from %s", container, image)
            if self._part is not None and not is_laid:
                # By the image's own rm, because until now nothing of the agent is here.
                self._part.bring(self._files, lambda paths: self.exec(["rm", "-rf", "--", *paths], user="0", cwd="/"))
            for path, contents in self._volumes.items():
                # Opened anew, because several forks may read it at the same time.
                with open(f"/proc/self/fd/{contents.fileno()}", "rb") as stream:
                    self._files.put(stream, os.path.dirname(path))

    def _image_name(self) -> str:
        return self._image.image if isinstance(self._image, DockerSnapshot) else self._image

    @property
    def _files(self) -> ContainerFiles:
        running = self._running
        if running is None:
            raise EnvironmentFault("the container is not running")
        return running

    @property
    def _mounted(self) -> Sequence[str]:
        return (*self._volumes, *self._settings.volumes)

    @property
    def _id(self) -> str:
        return self._files.container

    def run(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Implement :meth:`~pytest_evocode.environments.command_environment.CommandEnvironment.run`."""
        self._files.make_pending()
        whole = self._filled_in(command, deadline)
        with naming_kills(self._client, self._running):
            exit_code, timed_out = self._exec_by_channel(whole, output) or run_by_engine(
                self._client, self._id, whole, output, self._kill_by_engine
            )
        if self._running is None:
            raise EnvironmentFault("the container was stopped while a command ran")
        if exit_code == KILLED and not timed_out:
            with self._killing:  # Not while another command's deadline starts the container anew, which kills it, too.
                self._refuse_if_killed()
        return None if timed_out else exit_code

    def _filled_in(self, command: Command, deadline: float | None = None) -> EngineCommand:
        user = self._settings.user if command.user is None else str(command.user)
        env = {**self._network.variables, **command.env}
        return EngineCommand(command.argv, user, env, command.cwd or self.workdir, deadline, command.input)

    def interact(self, command: Command, terminal: int) -> int:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.make_pending()
        return run_on_terminal(self._client, self._id, self._filled_in(command), terminal, self.kill_processes)

    def _exec_by_channel(self, command: EngineCommand, output: CappedOutput) -> tuple[int, bool] | None:
        """Run a command of root by the channel; None, and nothing has run, when the engine has to run it."""
        channel = self._files.channel
        if channel is None or command.user not in _ROOT or command.input or self._may_be_long(command):
            return None
        try:
            return channel.run(command, lambda _, chunk: output.add(chunk), merge=True, kill=self._kill_by_engine)
        except ChannelClosed:
            self._start_again()
            return KILLED, False

    def _may_be_long(self, command: EngineCommand) -> bool:
        """Tell whether a command may take long where an agent works: PID 1 has to be free to see the session's end."""
        deadline = command.deadline
        return self._part is None and deadline is not None and deadline - time.monotonic() > _LONG

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        # Beside files of an agent only the engine brings the tests: any tool may be among them.
        self._files.upload(sources, target, writable=writable, by_channel=self._part is None)

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
            paths = [path for path in paths if self._files.look_up(path) is not None]
        for batch in batches(paths):
            result = self.exec(["rm", "-rf", "--", *batch], user="0", cwd="/", timeout=60)
            if not result.ok:
                raise EnvironmentFault(f"could not be removed from the container: {result.tail(3)}")
        self._files.require_gone(paths[:_LOOKED_AT])

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.make_directories(paths)

    def kill_processes(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        channel = self._files.channel
        with self._killing, faults("killing the container's processes"):
            logger.debug("killing all processes of container %.12s", self._id)
            if channel is None or not channel.kill_all() or not self._is_empty_soon():
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

    def _kill_by_engine(self) -> None:
        """Kill everything while a command runs, by starting PID 1 anew.

        A command of ours that kills could itself be stopped inside by a like command of an agent, and the engine would
        wait for it for ever with the container locked.
        """
        with self._killing, faults("killing the container's processes"):
            self._restart()

    def _start_again(self) -> None:
        """Start the container anew after root inside made its PID 1 end; its files are still there."""
        here = self._running
        if here is None or here.channel is None:
            raise EnvironmentFault("the container was stopped while a command ran")
        with self._killing:  # By starting PID 1 anew, perhaps: another thread may have killed the command.
            if not here.channel.closed:
                return
            logger.info("PID 1 of a container has ended under a command; starting the container again")
            self._refuse_if_killed()
            with faults("starting a container again after it stopped under a command"):
                self._start_anew(here.container, here.channel, self._client.start)

    def _refuse_if_killed(self) -> None:
        refuse_if_killed(self._client, self._running)

    def _restart(self) -> None:
        here = self._files
        if here.channel is not None and here.channel.closed:
            self._refuse_if_killed()
        logger.info("restarting container %.12s to kill its processes", here.container)
        self._start_anew(here.container, here.channel, partial(self._client.restart, timeout=0))

    def _start_anew(self, container: str, channel: Channel | None, start: Callable[[str], object]) -> None:
        """Start PID 1 anew, in an agent's turn with the image's own shell where the agent has left none for it."""
        from docker.errors import APIError

        with contextlib.suppress(*([APIError] if self._mending else [])):
            start(container)
            if channel is not None:
                channel.attach_again()
            if not self._mending or channel is None or channel.ask(":", CappedOutput()):
                return
        logger.info("container %.12s has no shell to start with; the image's own is put back", container)
        self._own_shell().put_back()
        self._client.start(container)
        if channel is not None:
            channel.attach_again()

    def snapshot(self, *, keep_for: Path | None = None) -> Snapshot:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._files.make_pending()
        with self._network.held():
            return self._network.complete(self._snapshots.take(self._id, keep_for))

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
            snapshot if part is None else settings.image,  # It may still be on the way; start() waits for it.
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
        self._remove_container()

    def keep(self, name: str, command: Command, conceal: Callable[[str], str]) -> str:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self.kill_processes()
        self._snapshots.settle()
        here = self._files
        kept = keep_container(self._client, here.container, name, self._network.public)
        self._network.close()
        logger.info("kept container %.12s as %s", here.container, kept)
        self._running = None
        if here.channel is not None:
            here.channel.stay()
            here.channel.close()
        return docker_exec_line(kept, self._filled_in(command), conceal)

    def _remove_container(self) -> None:
        running, self._running = self._running, None
        if running is None:
            self._network.close()
            return
        if running.channel is not None:
            running.channel.end()
        self._snapshots.settle()  # What they have copied goes with the container.
        logger.debug("removing container %.12s", running.container)
        discard(self._client, "container", running.container)
        self._network.close()
        if running.channel is not None:
            running.channel.close()
