"""A running sandbox: its PID 1, its network, the requests of its workers, and the signals it gets.

No process inside can kill or trace PID 1. Its session has it by a descriptor.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import socket
import threading
import weakref
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.egress import PROXY_PORT, EgressGate
from pytest_evocode.environments.sandbox import launcher as namespaces
from pytest_evocode.environments.sandbox.bubblewrap import Layers, SandboxSettings, host_below, sandbox_argv
from pytest_evocode.environments.sandbox.cgroups import Cgroup
from pytest_evocode.environments.sandbox.identity import CLONE_NEWUSER, CLONE_NEWUTS
from pytest_evocode.environments.sandbox.launcher_client import receive
from pytest_evocode.environments.sandbox.mounts import CLONE_NEWNS
from pytest_evocode.environments.sandbox.processes import is_readable, lock
from pytest_evocode.environments.sandbox.programs import KILLED, SandboxProgram
from pytest_evocode.environments.sandbox.watch import killed_for_memory, refused_processes
from pytest_evocode.errors import AgentFault, EnvironmentFault, KilledFromOutside
from pytest_evocode.tasks import Allowlist, Network

if TYPE_CHECKING:
    from pytest_evocode.environments.egress.exchange import ServedEnvironment
    from pytest_evocode.environments.egress.session_server import SessionServer

logger = logging.getLogger(__name__)

_DYING = 0.3  # seconds in which whatever kills every process of a sandbox gets from a program to PID 1
_EXITING = 4  # the kernel's PF_EXITING
_LISTENING = 30.0  # seconds for a worker to make a socket
_KILL_GRACE = 5.0  # seconds for the killed tree to be reaped


class _LimitNotes:
    """The limits that one sandbox has passed; ``memory`` is in bytes."""

    def __init__(self, memory: int, processes: int) -> None:
        self.fd = -1
        """The file that the launcher writes to, and that is locked while the sandbox's processes are signalled."""
        self._memory = memory
        self._processes = processes
        self._cgroup: Cgroup | None = None
        self._noted = (0, 0, 0)  # bytes of notes, processes refused, processes killed for memory
        self._begun = 0  # processes killed for memory before the sandbox began
        self._lock = threading.Lock()

    def open(self, cgroup: Cgroup | None) -> None:
        """Start for a sandbox that has just got its cgroup."""
        self.fd = os.memfd_create("notes")
        self._cgroup = cgroup
        self._noted = (0, *self._counted())  # Another sandbox may have had the cgroup.
        self._begun = self._noted[2]

    def new_lines(self) -> str:
        """Return lines about the limits that were passed since the last call."""
        with self._lock:
            if self.fd < 0:
                return ""
            size, refused, killed = self._noted
            lines = os.pread(self.fd, 2**16, size)
            seen = self._counted()
            self._noted = (size + len(lines), *seen)
            if lines:
                os.close(lock(self.fd))  # Wait for the kill to end, or it would hit the next command.
        found = lines.decode().splitlines()
        if seen[0] > refused:
            found.append(refused_processes(self._processes))
        if seen[1] > killed:
            found.append(killed_for_memory(self._memory))
        return "".join(f"{line}\n" for line in dict.fromkeys(found))

    @property
    def memory_ran_out(self) -> bool:
        """Whether the kernel has killed something here because the sandbox had used up its memory."""
        return self._counted()[1] > self._begun

    def _counted(self) -> tuple[int, int]:
        """Return how often the kernel has refused a process and killed one for memory."""
        cgroup = self._cgroup
        return (0, 0) if cgroup is None else (cgroup.refused_processes(), cgroup.killed_for_memory())

    def close(self) -> None:
        """Close the file of notes."""
        with self._lock:
            fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)


class RunningSandbox:
    """A base class with what there is of a sandbox once it has started.

    Args:
        settings: What all sandboxes of the session share.
        layers: Its files.
        network: As in ``task.toml``; None for none.
        cpus: How many CPUs it may use, None for all.
        memory_mb: MiB of memory that it may use, None for the session's default.
    """

    @property
    def _first_shells(self) -> Sequence[str]:
        """The programs that PID 1 may begin as: each where the one before it cannot be started."""
        return ("bash",)

    def __init__(
        self,
        settings: SandboxSettings,
        layers: Layers,
        network: Network | None,
        cpus: float | None,
        memory_mb: int | None,
    ) -> None:
        self.layers = layers
        self._settings = settings
        self.egress = EgressGate(network, default="no-network") if isinstance(network, Allowlist) else None
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        # The host's network includes its loopback services, so only a task that asks for it gets it.
        self._shares_network = network == "public"
        self._served: ServedEnvironment | None = None
        self._server: SessionServer | None = None
        self._server_port = 0
        self._cpus = cpus
        self._memory_mb = memory_mb
        self._memory = memory = settings.limits.memory(memory_mb, settings.machine)
        self._pidfd = -1
        self._relaunches = 0
        self._unstartable: AgentFault | EnvironmentFault | None = None
        """Why it could not be started again on what its programs have left; then nothing runs, and the files stay."""
        self._launcher = settings.launcher
        self._notes = _LimitNotes(memory, settings.limits.processes)
        self._lock = threading.RLock()
        self._signalling = threading.RLock()  # Two kills at once would kill each other.
        self._starting = threading.Lock()
        """Held while a program gets its mark, and while all without one of the known marks are killed."""
        self._runs: set[SandboxProgram] = set()
        self._opened: weakref.WeakSet[SandboxProgram] = weakref.WeakSet()

    def _start_first_process(self, shells: Sequence[str]) -> tuple[int, int]:
        """Start PID 1, and return its number and a pidfd."""
        shell, *others = shells
        argv = sandbox_argv(
            self._settings, self.layers, network=self._shares_network, shm=self._memory // 2, shell=shell
        )
        try:
            return self._launcher.start_sandbox(argv)
        except EnvironmentFault as error:
            if others:
                with contextlib.suppress(EnvironmentFault):  # What is told is why the first one did not start.
                    return self._start_first_process(others)
            if f"execvp {shell}:" in str(error) and not host_below(self.layers.below):
                raise EnvironmentFault(
                    f"a sandbox needs {shell} and finds none; if the task's image has none, install it in its "
                    "environment/Dockerfile"
                ) from None
            raise

    def _launch(self) -> int:
        pid, pidfd = self._start_first_process(self._first_shells)
        covering = {"operation": "cover", "namespaces": self._namespaces, "rootless": self._settings.rootless}
        try:
            receive(self._launcher.begin(covering, [pidfd]))
        except EnvironmentFault:
            _end_first_process(pidfd)
            raise
        request = {
            "operation": "watch",
            "pid": pid,
            "namespaces": self._namespaces,
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
        return None if self._launcher.cgroup is not None else self._settings.limits.processes

    def _relaunch(self) -> None:
        """End every process and keep the files, by killing PID 1, which no process inside can prevent."""
        with self._lock:
            self._require_started()
            logger.info("starting the sandbox in %s again to be rid of its processes", self.layers.top)
            pidfd, self._pidfd = self._pidfd, -1
            _end_first_process(pidfd)
            if self._notes.memory_ran_out:  # The launcher may be among what was killed.
                self._release_launcher()
                self._acquire_launcher()
            try:
                self._pidfd = self._launch()
                self._relaunches += 1
            except EnvironmentFault as error:
                self._unstartable = self._blame(f"the sandbox cannot be started again: {error}")
                raise self._unstartable from error
        self._serve_proxy()  # It is a new network.
        if self._server is not None and not self._shares_network:
            self._server.listen(self._listener(self._server_port))

    def _serve_proxy(self) -> None:
        """Serve the proxy's port where there is an allowlist.

        It is a socket of the session itself, made in the sandbox's network: nothing inside takes part, and nothing
        inside can end it.
        """
        if self.egress is None:
            return
        assert self._settings.proxy is not None  # Kept sandboxes have none, and no allowlist.
        from pytest_evocode.environments.egress.exchange import ServedEnvironment

        listener = self._listener(PROXY_PORT)
        self._served = self._served or ServedEnvironment(self._settings.proxy(), self.egress)
        self._served.listen(listener)

    def _listener(self, port: int) -> socket.socket:
        """Return a socket that listens in the sandbox's network, or the host's where that is shared; 0 is any port."""
        return socket.socket(fileno=self._ask("listen", timeout=_LISTENING, port=port)["fd"])

    @contextlib.contextmanager
    def serve(self, path: Path) -> Iterator[str]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        if self._server is None:
            assert self._settings.proxy is not None  # Only kept sandboxes have none.
            from pytest_evocode.environments.egress.session_server import SessionServer

            listener = self._listener(0)
            self._server_port = listener.getsockname()[1]
            self._server = SessionServer(self._settings.proxy().loop)
            self._server.listen(listener)
        with self._server.open(path):
            yield f"http://127.0.0.1:{self._server_port}"

    @property
    def _namespaces(self) -> int:
        flags = CLONE_NEWNS | namespaces.CLONE_NEWPID | namespaces.CLONE_NEWIPC | CLONE_NEWUTS
        if self._settings.rootless:
            flags |= CLONE_NEWUSER
        if not self._shares_network:
            flags |= namespaces.CLONE_NEWNET
        return flags

    def _begin(self, operation: str, fds: Sequence[int] = (), **arguments: Any) -> socket.socket:
        """Send a request, and return the socket that the reply comes from."""
        with self._lock:
            self._require_started()
            self._start_again_if_killed()
            request = {"operation": operation, "namespaces": self._namespaces, "rootless": self._settings.rootless}
            # File operations stay out of the sandbox's cgroup, or a full one could not be emptied.
            launcher = self._launcher if operation == "program" else self._settings.launcher
            return launcher.begin({**request, **arguments}, [self._pidfd, *fds])

    def _require_started(self) -> None:
        if self._pidfd < 0:
            why = self._unstartable
            raise EnvironmentFault("the sandbox is not running") if why is None else type(why)(str(why))

    def _blame(self, why: str) -> AgentFault | EnvironmentFault:
        """Return whose fault it is that a sandbox cannot be started again."""
        return EnvironmentFault(why)

    def _ask(
        self, operation: str, fds: Sequence[int] = (), *, timeout: float | None = None, **arguments: Any
    ) -> dict[str, Any]:
        """Send a request and return the reply, which has to come within ``timeout`` seconds."""
        reply = self._begin(operation, fds, **arguments)
        with self._saying_if_killed():
            return receive(reply, timeout)

    @contextlib.contextmanager
    def _saying_if_killed(self) -> Iterator[None]:
        """Raise KilledFromOutside in place of a fault that comes of it."""
        try:
            yield
        except EnvironmentFault:
            self._start_again_if_killed(KILLED)
            raise

    def _require_running(self, exit_code: int) -> None:
        """Raise EnvironmentFault where a program has ended, with this exit code, because the sandbox has."""
        with self._lock:
            if self._pidfd < 0:
                raise EnvironmentFault("the sandbox was stopped while a command ran")
            self._start_again_if_killed(exit_code)

    def _start_again_if_killed(self, exit_code: int | None = None) -> None:
        """Start the sandbox again, with its files, where its own programs have used up its memory and PID 1 with it.

        They could make a fault of their failure by that. Raises :class:`~pytest_evocode.errors.KilledFromOutside` for
        any other end of PID 1 that is not our doing; ``exit_code`` is that of a program that has ended.
        """
        with self._lock:
            if not _was_killed(self._pidfd, exit_code):
                return
            if not self._notes.memory_ran_out:
                raise KilledFromOutside("the sandbox")
            self._relaunch()

    def kill_processes(self) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        logger.debug("killing all processes of the sandbox in %s", self.layers.top)
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with self._signalling:
            if self._unstartable is not None:
                return
            before = self._relaunches
            try:
                done = self._ask("signal", [self._notes.fd], signal=number)["done"]
            except EnvironmentFault:
                if self._relaunches == before:
                    raise
                return  # It was started again meanwhile, and nothing of before runs.
            if not done:
                self._relaunch()

    def _run_stopped(self, argv: Sequence[str]) -> None:
        """Run a command on the host's files while everything in the sandbox is stopped."""
        with self._signalling:
            self._signal(signal.SIGSTOP)
            try:
                self._settings.launcher.host_command(argv)
            finally:
                self._signal(signal.SIGCONT)

    def _end(self) -> bool:
        """Kill everything; False where there was nothing to be killed."""
        with self._lock:
            pidfd, self._pidfd = self._pidfd, -1
            unstartable, self._unstartable = self._unstartable, None
        if pidfd < 0 and unstartable is None:
            return False
        logger.debug("stopping the sandbox in %s", self.layers.top)
        if pidfd >= 0:
            _end_first_process(pidfd)
        for served in (self._served, self._server):
            if served is not None:
                served.close()
        self._served = self._server = None
        self._release_launcher()
        return True

    def _acquire_launcher(self) -> None:
        self._launcher = self._settings.launchers.acquire(
            processes=self._settings.limits.processes, memory=self._memory, cpus=self._cpus
        )
        self._notes.open(self._launcher.cgroup)

    def _release_launcher(self) -> None:
        with self._lock:
            launcher, self._launcher = self._launcher, self._settings.launcher
        self._settings.launchers.release(launcher)
        self._notes.close()


def _end_first_process(pidfd: int) -> None:
    """Kill a PID 1, and with it every process of its namespace; the descriptor is closed."""
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    is_readable(pidfd, _KILL_GRACE)
    os.close(pidfd)


def _was_killed(pidfd: int, exit_code: int | None) -> bool:
    """Tell whether PID 1 has ended without our doing.

    With the ``exit_code`` of a program that was killed, there is some time for that, and it is enough that PID 1 has
    begun to end: the kernel kills every other process of a sandbox from within the end of PID 1, which on a busy
    machine is complete much later.
    """
    if pidfd < 0:  # It was ended by us.
        return False
    was_killed = exit_code == KILLED
    return is_readable(pidfd, _DYING if was_killed else 0.0) or (was_killed and _is_exiting(pidfd))


def _is_exiting(pidfd: int) -> bool:
    """Tell whether a process has begun to end, or has ended."""
    try:
        with open(f"/proc/self/fdinfo/{pidfd}") as lines:
            pid = next(int(line.split()[1]) for line in lines if line.startswith("Pid:"))
        with open(f"/proc/{pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()  # Its name, in parentheses, may hold anything.
    except (FileNotFoundError, ProcessLookupError):
        return True
    return bool(int(fields[6]) & _EXITING)
