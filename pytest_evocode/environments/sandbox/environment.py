"""One sandbox as an environment: bubblewrap namespaces over layers of files, entered through the launcher."""

from __future__ import annotations

import contextlib
import logging
import os
import re
import select
import signal
import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pytest_evocode.environments.archive import ALL_THAT_FOLLOWS, Source, lay_over, pack, unpack
from pytest_evocode.environments.command_environment import CappedOutput
from pytest_evocode.environments.egress import EgressGate
from pytest_evocode.environments.own_shell import MendableEnvironment
from pytest_evocode.environments.protocol import Command, Environment, FileContents, Snapshot, User
from pytest_evocode.environments.sandbox import launcher as namespaces
from pytest_evocode.environments.sandbox.bubblewrap import Layers, SandboxSettings, sandbox_argv
from pytest_evocode.environments.sandbox.first_process import end_first_process, receive_from, refuse_if_killed
from pytest_evocode.environments.sandbox.identity import CLONE_NEWUSER, CLONE_NEWUTS
from pytest_evocode.environments.sandbox.kept import KeptSandbox, enter_line, keep_files
from pytest_evocode.environments.sandbox.launcher_client import PooledLauncher, check_host_command, receive, send_tar
from pytest_evocode.environments.sandbox.mounts import CLONE_NEWNS
from pytest_evocode.environments.sandbox.networks import SandboxNetwork
from pytest_evocode.environments.sandbox.output import LimitNotes, PseudoTerminal, collect, leave_open
from pytest_evocode.environments.sandbox.programs import SandboxPrograms
from pytest_evocode.environments.sandbox.snapshots import (
    PartOfLayer,
    SandboxSnapshot,
    copy_top_layer,
    is_empty,
    remove_tree,
)
from pytest_evocode.environments.sandbox.trees import SandboxTrees
from pytest_evocode.environments.terminal import kind_of_terminal, relay, write_all
from pytest_evocode.errors import EnvironmentFault, SnapshotGone, UnreadableFile
from pytest_evocode.tasks import Network

logger = logging.getLogger(__name__)

PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
_TAKING_PENDING = ("make_directories", "unpack", "remove")
_KILL_GRACE = 0.5  # seconds for the killed tree to be reaped before it is killed once more
_KILLS = 10  # after which the sandbox counts as broken


class SandboxEnvironment(MendableEnvironment, SandboxTrees, SandboxPrograms):
    """An :class:`~pytest_evocode.environments.protocol.InteractiveEnvironment` that needs neither Docker nor root."""

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
        snapshot: SandboxSnapshot | PartOfLayer | None = None,
        cpus: float | None = None,
        memory_mb: int | None = None,
        top: Path | None = None,
    ) -> None:
        """Make a sandbox, not started.

        Args:
            settings: What all sandboxes of the session share.
            below: The layers of its image and snapshot, the lowest first.
            workdir: The directory that commands start in.
            user: The user of commands that name none.
            env: The variables of image and task.
            network: As in ``task.toml``; None for none.
            snapshot: A snapshot to start from.
            cpus: How many CPUs it may use, None for all.
            memory_mb: MiB of memory that it may use, None for the session's default.
            top: The top layer of an earlier sandbox, to continue with and to leave behind again.
        """
        self.workdir = workdir
        self._cpus = cpus
        self._memory_mb = memory_mb
        self._memory = settings.limits.memory(memory_mb, settings.machine)
        self._settings = settings
        self._user = user
        self._env = {"PATH": PATH, "LANG": "C.UTF-8", **env}
        self._network = SandboxNetwork(settings.proxy, network)
        self._snapshot = snapshot
        self._pidfd = -1
        self._pooled = PooledLauncher(settings.launcher)
        self._pending: list[str] = []
        """Directories to be made along with what is done next."""
        super().__init__(LimitNotes(self._memory, settings.limits.processes))
        self._lock = threading.Lock()
        self._stays = top is not None
        self._carried: tuple[Path, ...] = ()
        """A layer of its own that has what was carried over."""
        self.layers = Layers(tuple(below), top or settings.state / f"sandbox-{uuid.uuid4().hex[:12]}")

    def start(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        for name in ("root", "root-work", "usr", "usr-work"):
            (self.layers.top / name).mkdir(parents=True, mode=0o755, exist_ok=self._stays)
        limits = self._settings.limits
        try:
            if isinstance(self._snapshot, PartOfLayer):
                self._carried = (self._settings.state / f"carried-{uuid.uuid4().hex[:12]}",)
                self.layers = Layers((*self.layers.below, *self._carried), self.layers.top)
                self._snapshot.carry_into(*self._carried)
            elif self._snapshot is not None:
                # Copied and not used as a layer below, or later snapshots would depend on this one.
                self._snapshot.copy_into(self.layers.top)
            self._pooled = self._settings.launchers.acquire(
                processes=limits.processes, memory=self._memory, cpus=self._cpus
            )
            self._notes.open(self._pooled.cgroup)
            self._pidfd = self._launch()
            logger.debug("started a sandbox with its files in %s", self.layers.top)
        except EnvironmentFault:
            self._release_launcher()
            if not self._stays:
                self._remove_files()
            raise
        self._network.open(self._begin)
        self.make_directories(["/logs/agent", "/logs/artifacts"])

    def _launch(self) -> int:
        argv = sandbox_argv(self._settings, self.layers, network=self._network.is_shared, shm=self._memory // 2)
        launcher = self._pooled.launcher
        pid, pidfd = launcher.start_sandbox(argv)
        covering = {"operation": "cover", "namespaces": self._namespaces, "rootless": self._settings.rootless}
        try:
            receive(launcher.begin(covering, [pidfd]))
        except EnvironmentFault:
            end_first_process(pidfd)
            raise
        request = {
            "operation": "watch",
            "pid": pid,
            "namespaces": self._namespaces,
            "signal": signal.SIGKILL,
            "top": str(self.layers.top),
            "free_disk": self._settings.limits.free_disk,
            "processes": self._uncounted_processes,
            "memory": self._memory,
        }
        self._settings.launcher.send(request, [pidfd, self._notes.fd])
        return pidfd

    @property
    def _uncounted_processes(self) -> int | None:
        """The limit of processes where no cgroup enforces it, else None."""
        return None if self._pooled.cgroup is not None else self._settings.limits.processes

    def _relaunch(self) -> None:
        """End every process and keep the files, by killing PID 1, which no process inside can prevent."""
        with self._lock:
            if self._pidfd < 0:
                raise EnvironmentFault("the sandbox is not running")
            logger.info("starting the sandbox in %s again to be rid of its processes", self.layers.top)
            end_first_process(self._pidfd)
            self._pidfd = self._launch()
        self._network.open(self._begin)  # It is a new network.

    @property
    def egress(self) -> EgressGate | None:
        """See :class:`~pytest_evocode.environments.protocol.GuardedEnvironment`."""
        return self._network.gate

    @property
    def _namespaces(self) -> int:
        flags = CLONE_NEWNS | namespaces.CLONE_NEWPID | namespaces.CLONE_NEWIPC | CLONE_NEWUTS
        if self._settings.rootless:
            flags |= CLONE_NEWUSER
        if not self._network.is_shared:
            flags |= namespaces.CLONE_NEWNET
        return flags

    def _begin(self, operation: str, fds: Sequence[int] = (), *, control: int | None = None, **arguments: Any) -> int:
        """Send a request, and return the descriptor that the reply comes from unless ``control`` is to take it."""
        if operation not in _TAKING_PENDING and self._pending:
            self._ask("make_directories")
        with self._lock:
            if self._pidfd < 0:
                raise EnvironmentFault("the sandbox is not running")
            refuse_if_killed(self._pidfd)
            if operation in _TAKING_PENDING:
                arguments["pending"], self._pending = self._pending, []
            request = {"operation": operation, "namespaces": self._namespaces, "rootless": self._settings.rootless}
            request |= arguments
            # File operations stay out of the sandbox's cgroup, or a full one could not be emptied.
            launcher = self._pooled.launcher if operation in ("exec", "program") else self._settings.launcher
            if control is not None:
                launcher.send(request, [control, self._pidfd, *fds])
                return control
            return launcher.begin(request, [self._pidfd, *fds])

    def _ask(
        self, operation: str, fds: Sequence[int] = (), *, timeout: float | None = None, **arguments: Any
    ) -> dict[str, Any]:
        return receive_from(self._pidfd, self._begin(operation, fds, **arguments), timeout)

    def run(self, command: Command, output: CappedOutput, deadline: float | None) -> int | None:
        """Implement :meth:`~pytest_evocode.environments.command_environment.CommandEnvironment.run`."""
        output_read, output_write = os.pipe()
        try:
            reply = self._begin_command(command, output_write, terminal=False)
        except BaseException:
            os.close(output_read)
            raise
        finally:
            os.close(output_write)
        timed_out = not collect(output_read, reply, output, deadline)
        if timed_out and not self._kill_command(output_read, reply, output):
            os.close(output_read)
            os.close(reply)
            raise EnvironmentFault("a command in the sandbox could not be killed")
        leave_open(output_read)
        answer = receive_from(self._pidfd, reply)
        self._require_running(int(answer["exit_code"]))
        if answer["complaint"]:
            output.add(f"{answer['complaint']}\n".encode())
        if timed_out or answer["exit_code"] != 0:
            output.add(self._notes.new_lines().encode())
        return None if timed_out else int(answer["exit_code"])

    def _kill_command(self, output_read: int, reply: int, output: CappedOutput) -> bool:
        """Kill everything, again as long as the command was only just being started, and tell whether it has ended."""
        for _ in range(_KILLS):
            self.kill_processes()
            if collect(output_read, reply, output, time.monotonic() + _KILL_GRACE):
                return True
        return False

    def _require_running(self, exit_code: int) -> None:
        with self._lock:
            if self._pidfd < 0:
                raise EnvironmentFault("the sandbox was stopped while a command ran")
            refuse_if_killed(self._pidfd, exit_code)

    def _begin_command(self, command: Command, output: int, *, terminal: bool) -> int:
        with open(os.memfd_create("input"), "w+b", buffering=0) as stdin:
            stdin.write(command.input)
            stdin.seek(0)
            fds = [output, stdin.fileno()] if command.input else [output]
            return self._begin("exec", fds, terminal=terminal, **self._describe(command))

    def _describe(self, command: Command) -> dict[str, Any]:
        return {
            "argv": command.argv,
            "user": self._user if command.user is None else command.user,
            "rootless": self._settings.rootless,
            "processes": self._uncounted_processes if self._settings.rootless else None,
            "env": {**self._env, **self._network.variables, **command.env},
            "cwd": command.cwd or self.workdir,
        }

    def interact(self, command: Command, terminal: int) -> int:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        command = replace(command, env={**kind_of_terminal(), **command.env})
        with PseudoTerminal() as pseudo:
            reply = self._begin_command(command, pseudo.inner, terminal=True)
            pseudo.release()
            if not relay(terminal, pseudo, pseudo.resize, lambda: bool(select.select([reply], [], [], 0)[0])):
                self.kill_processes()
            answer = receive(reply)  # Before the terminal is closed: a program may close its end and run on.
        if answer["complaint"]:
            write_all(terminal, f"{answer['complaint']}\r\n".encode())
        return int(answer["exit_code"])

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        packed = lay_over(sources)
        send_tar(self._begin, lambda stream: pack(packed, target, stream, writable=writable), writable=writable)

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        if source == "/logs/artifacts" and self._has_nothing_in(source):  # Nothing is mounted there.
            return ()
        read, write = os.pipe()
        with os.fdopen(read, "rb") as stream:
            try:
                reply = self._begin("pack", [write], path=source)
            finally:
                os.close(write)
            left_out = unpack(stream, target, exclude=exclude)
        # At the limit the pipe was closed, and the packer has failed.
        if not any(reason.endswith(ALL_THAT_FOLLOWS) for reason in left_out):
            receive(reply)
        else:
            os.close(reply)
        return left_out

    def _has_nothing_in(self, directory: str) -> bool:
        """Tell whether a directory is empty in every layer, as far as the host can tell without following links."""
        tops = [self.layers.top, *self.layers.below]
        return all(is_empty(top / "root", directory) for top in tops)

    def read_files(self, limits: Mapping[str, int]) -> dict[str, FileContents]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        found: dict[str, FileContents] = {}
        with open(os.memfd_create("contents"), "w+b") as contents:
            answer = self._ask("read", [contents.fileno()], files=list(limits.items()))
            contents.seek(0)
            for path, file in zip(limits, answer["files"], strict=True):
                refused = file.get("refused")
                found[path] = contents.read(file["size"]) if "size" in file else None
                if refused is not None:
                    found[path] = UnreadableFile(f"{path} is {refused}")
        return found

    def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        left = self._ask("remove", paths=list(paths))["left"]
        if left:
            raise EnvironmentFault(f"could not be removed from the sandbox: {', '.join(left)}")

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        self._pending += paths

    def kill_processes(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        logger.debug("killing all processes of the sandbox in %s", self.layers.top)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with self._signalling:
            if not self._ask("signal", [self._notes.fd], signal=number)["done"]:
                self._relaunch()

    def snapshot(self, *, keep_for: Path | None = None) -> Snapshot:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        directory = self._settings.state if keep_for is None else self._settings.kept
        snapshot = copy_top_layer(self._settings.launcher, directory, keep_for, self._run_stopped, self.layers)
        logger.debug("copied the files of the sandbox in %s to %s", self.layers.top, snapshot.layer)
        return snapshot

    def _run_stopped(self, argv: list[str]) -> None:
        """Run a command on the host's files while everything in the sandbox is stopped."""
        with open(os.memfd_create("errors"), "w+b", buffering=0) as errors, self._signalling:
            answer = self._ask("copy_stopped", [self._notes.fd, errors.fileno()], argv=argv)
            if not (answer["stopped"] and answer["continued"]):
                self._relaunch()
            if not answer["stopped"]:  # The sandbox was started again, so nothing is left to be stopped.
                answer = self._ask("copy_stopped", [self._notes.fd, errors.fileno()], argv=argv)
            check_host_command(argv, answer["exit_code"], errors)

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
        part = None if only is None else PartOfLayer(snapshot, tuple(only), tuple(exact), image)
        fork = SandboxEnvironment(
            self._settings,
            [*image, snapshot.layer] if part is None else image,
            workdir=self.workdir,
            user=self._user,
            env=self._env,
            network=network,
            snapshot=part,
            cpus=self._cpus,
            memory_mb=self._memory_mb,
        )
        fork.entry_point = self.entry_point
        return fork

    def _as_built(self) -> Environment:
        """Return a sandbox with the host's system, which is below every image, and nothing else."""
        below = self.layers.below[:1]
        return SandboxEnvironment(self._settings, below, workdir="/", user="0", env={}, network=None)

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
            public_network=self._network.is_shared,
            memory_mb=self._memory_mb,
            user=self._user if command.user is None else command.user,
            env={name: conceal(value) for name, value in {**self._env, **command.env}.items()},
            cwd=command.cwd or self.workdir,
            argv=command.argv,
        )
        line = enter_line(keep_files(self._settings, self.layers, name, sandbox))
        self._remove_files()
        return line

    def end(self, *, keep_files: bool) -> None:
        """Stop, and leave the top layer behind if ``keep_files``, for an image to be made of it."""
        with self._lock:
            pidfd, self._pidfd = self._pidfd, -1
        if pidfd < 0:
            return
        logger.debug("stopping the sandbox in %s", self.layers.top)
        end_first_process(pidfd)
        self._network.close()
        self._release_launcher()
        if not keep_files:
            self._remove_files()

    def _remove_files(self) -> None:
        with contextlib.suppress(EnvironmentFault):  # They go with the session's directory.
            remove_tree(self._settings.launcher, self.layers.top, *self._carried)

    def _release_launcher(self) -> None:
        with self._lock:
            pooled, self._pooled = self._pooled, PooledLauncher(self._settings.launcher)
        self._settings.launchers.release(pooled)
        self._notes.close()
