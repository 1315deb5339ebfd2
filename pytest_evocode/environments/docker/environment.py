"""One container: driven through the engine's API, graded in containers started from its commits."""

from __future__ import annotations

import contextlib
import io
import socket
import struct
import tarfile
import tempfile
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.environments.archive import add_directories, pack, unpack
from pytest_evocode.environments.base import CappedOutput, Environment, ExecResult, Snapshot, Unreadable, User
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Network

if TYPE_CHECKING:
    from docker import APIClient

# PID 1 ignores SIGCHLD, so that the kernel reaps every orphan, and no signal from inside can end it. Docker's own
# --init would end with its child, and `kill -9 -1` by an agent would take the container down.
KEEPER = ["bash", "-c", "trap '' CHLD; exec tail -f /dev/null"]
SNAPSHOT_REPOSITORY = "evocode-snapshot"
_KILL_GRACE = 10.0  # seconds for an exec stream to end after its processes were killed


@contextlib.contextmanager
def faults(doing: str) -> Iterator[None]:
    """Turn what the SDK raises into an :class:`~pytest_evocode.errors.EnvironmentFault` that says what was tried."""
    from docker.errors import DockerException
    from requests.exceptions import RequestException

    try:
        yield
    except (DockerException, RequestException, OSError) as error:
        said = getattr(error, "explanation", None) or str(error)
        raise EnvironmentFault(f"Docker failed while {doing}: {said}") from error


@dataclass(frozen=True, slots=True)
class ContainerSettings:
    """What a container and its forks have in common."""

    client: APIClient
    labels: Mapping[str, str]
    user: str = "0"
    """Who commands run as unless they say otherwise: the image's USER."""
    env: Mapping[str, str] = field(default_factory=dict)
    cpus: float | None = None
    memory_mb: int | None = None


@dataclass(frozen=True, slots=True)
class DockerSnapshot:
    """An image committed from a container."""

    settings: ContainerSettings
    image: str

    def discard(self) -> None:
        """Remove the image."""
        with faults("removing a snapshot"):
            self.settings.client.remove_image(self.image, force=True)


class DockerEnvironment:
    """An :class:`~pytest_evocode.environments.base.Environment` in a Docker container."""

    def __init__(
        self,
        settings: ContainerSettings,
        image: str,
        *,
        workdir: str,
        network: Network | None,
        fresh: Sequence[str] = (),
    ) -> None:
        self.workdir = workdir
        self._settings = settings
        self._client = settings.client
        self._image = image
        self._network = network
        self._fresh = tuple(fresh)
        self._container: str | None = None
        # Every transfer costs the engine a process of 50 ms, so directories to be made wait for the next one.
        self._pending: list[str] = []

    def start(self) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        from docker.types import Mount

        settings = self._settings
        # Anonymous volumes are empty whatever the image holds there, and making them runs nothing in the container.
        mounts = [Mount(path, None, type="volume", no_copy=True) for path in self._fresh]
        with faults("starting a container"):
            host_config = self._client.create_host_config(
                network_mode="none" if self._network == "no-network" else "bridge",
                nano_cpus=None if settings.cpus is None else int(settings.cpus * 1e9),
                mem_limit=None if settings.memory_mb is None else settings.memory_mb * 2**20,
                mounts=mounts,
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
            )
            self._container = created["Id"]
            self._client.start(self._container)
        self._pending = ["/logs/agent", "/logs/artifacts", *self._fresh]

    @property
    def _id(self) -> str:
        if self._container is None:
            raise EnvironmentFault("the container is not running")
        return self._container

    def exec(
        self,
        command: str | Sequence[str],
        *,
        user: User | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        timeout: float | None = None,
    ) -> ExecResult:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        started = time.monotonic()
        self._make_pending()
        output = CappedOutput()
        with faults("running a command"):
            created = self._client.exec_create(
                self._id,
                ["bash", "-c", command] if isinstance(command, str) else list(command),
                user=self._settings.user if user is None else str(user),
                environment=dict(env or {}),
                workdir=cwd or self.workdir,
            )
            stream: Any = self._client.exec_start(created["Id"], socket=True)
            connection: socket.socket = getattr(stream, "_sock", stream)  # With TLS it is the socket itself.
            with contextlib.closing(connection), contextlib.closing(stream._response):
                timed_out = not _collect(connection, output, None if timeout is None else started + timeout)
                if timed_out:
                    self.kill_processes()
                    _collect(connection, output, time.monotonic() + _KILL_GRACE)
            exit_code = self._exit_code(created["Id"])
        if self._container is None:
            raise EnvironmentFault("the container was stopped while a command ran")
        if exit_code == 126 and "executable file not found in $PATH" in output.text():
            exit_code = 127  # What newer engines say.
        return ExecResult(None if timed_out else exit_code, output.text(), timed_out, time.monotonic() - started)

    def _exit_code(self, exec_id: str) -> int:
        """The exit code, for which the engine may need a moment after the stream has ended."""
        deadline = time.monotonic() + _KILL_GRACE
        while time.monotonic() < deadline:
            state = self._client.exec_inspect(exec_id)
            if not state["Running"] and state["ExitCode"] is not None:
                return int(state["ExitCode"])
            time.sleep(0.01)
        raise EnvironmentFault("a command's output has ended but the engine gives no exit code")

    def upload(self, sources: Sequence[Path], target: str, *, writable: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        with tempfile.TemporaryFile() as stream:
            pending, self._pending = self._pending, []
            pack(sources, target, stream, writable=writable, directories=pending)
            stream.seek(0)
            with faults(f"uploading to {target}"):
                self._client.put_archive(self._id, "/", stream)

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        from docker.errors import NotFound

        with faults(f"downloading {source}"):
            try:
                chunks, _ = self._client.get_archive(self._id, source)
            except NotFound:
                return ()
            return unpack(io.BufferedReader(_ChunkReader(chunks)), target, exclude=exclude)

    def read(self, path: str, limit: int) -> bytes | None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        from docker.errors import NotFound

        with faults(f"reading {path}"):
            try:
                chunks, info = self._client.get_archive(self._id, path)
            except NotFound:
                return None
            with contextlib.closing(chunks):
                if refusal := _refusal(info, limit):
                    raise Unreadable(f"{path} is {refusal}")
                with tarfile.open(fileobj=io.BufferedReader(_ChunkReader(chunks)), mode="r|") as archive:
                    member = archive.next()
                    contents = archive.extractfile(member) if member is not None and member.isreg() else None
                    if contents is None:
                        raise Unreadable(f"{path} is not a regular file")
                    return contents.read(limit)

    def remove(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        left = [path for path in paths if self._exists(path)]
        if left:
            self.exec(["rm", "-rf", "--", *left], user="0", cwd="/", timeout=60)
            left = [path for path in left if self._exists(path)]
        if left:
            raise EnvironmentFault(f"could not be removed from the container: {', '.join(left)}")

    def _exists(self, path: str) -> bool:
        """Ask the engine, not the container's own tools, which the agent may have changed."""
        url = self._client._url("/containers/{0}/archive", self._id)  # type: ignore[attr-defined]
        with faults(f"looking for {path}"):
            response = self._client.head(url, params={"path": path})
            if response.status_code not in (200, 404):
                response.raise_for_status()
        return bool(response.status_code == 200)

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        self._pending += paths
        self._make_pending()

    def _make_pending(self) -> None:
        if not self._pending:
            return
        stream = io.BytesIO()
        pending, self._pending = self._pending, []
        with tarfile.open(fileobj=stream, mode="w") as archive:
            add_directories(archive, pending, mode=0o777)
        with faults("making directories"):
            self._client.put_archive(self._id, "/", stream.getvalue())

    def kill_processes(self) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        with faults("killing the container's processes"):
            created = self._client.exec_create(self._id, ["bash", "-c", "kill -9 -1"], user="0", workdir="/")
            self._client.exec_start(created["Id"])
            # The container's bash may be the agent's; the engine's own kill is slower and asks nobody.
            deadline = time.monotonic() + 0.5
            while len(self._client.top(self._id)["Processes"]) > 1:
                if time.monotonic() > deadline:
                    self._client.restart(self._id, timeout=0)
                    break
                time.sleep(0.02)

    def snapshot(self) -> Snapshot:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        self._make_pending()
        tag = uuid.uuid4().hex[:12]
        with faults("taking a snapshot"):  # The engine pauses the container meanwhile.
            self._client.commit(self._id, repository=SNAPSHOT_REPOSITORY, tag=tag)
        return DockerSnapshot(self._settings, f"{SNAPSHOT_REPOSITORY}:{tag}")

    def fork(self, snapshot: Snapshot, *, network: Network | None, fresh: Sequence[str] = ()) -> Environment:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        assert isinstance(snapshot, DockerSnapshot)
        return DockerEnvironment(self._settings, snapshot.image, workdir=self.workdir, network=network, fresh=fresh)

    def stop(self) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        from docker.errors import NotFound

        container, self._container = self._container, None
        if container is not None:
            with faults("removing a container"), contextlib.suppress(NotFound):
                self._client.remove_container(container, v=True, force=True)


class _ChunkReader(io.RawIOBase):
    """A file over the chunks of a streamed response."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        if not self._rest:
            self._rest = next(self._chunks, b"")
        part = self._rest[: len(buffer)]
        self._rest = self._rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)


def _refusal(info: Mapping[str, Any], limit: int) -> str | None:
    """Why a file is not read, from the engine's own look at it; Go's mode bits tell its type."""
    mode = int(info["mode"])
    if mode & 1 << 27:
        return "a symlink"
    if mode & 1 << 31:
        return "a directory"
    if mode & (1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19):
        return "not a regular file"
    if int(info["size"]) > limit:
        return f"{info['size']} bytes long, over the limit of {limit}"
    return None


def _collect(stream: socket.socket, output: CappedOutput, deadline: float | None) -> bool:
    """Take the frames of an exec stream until it ends; False at the deadline."""
    buffer = bytearray()
    frame_left = 0
    while True:
        if deadline is not None:
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            stream.settimeout(left)
        try:
            chunk = stream.recv(2**18)
        except TimeoutError:
            return False
        if not chunk:
            return True
        buffer += chunk
        # A frame is eight bytes, the last four of them its length, and its payload; stdout and stderr are kept as one.
        while buffer and (frame_left or len(buffer) >= 8):
            if not frame_left:
                frame_left = struct.unpack(">I", buffer[4:8])[0]
                del buffer[:8]
            output.add(bytes(buffer[:frame_left]))
            taken = min(frame_left, len(buffer))
            del buffer[:taken]
            frame_left -= taken
