"""One container: driven through the engine's API, graded in containers started from its commits."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
import tempfile
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING

from pytest_evocode.environments.archive import add_directories, lay_over, pack, unpack
from pytest_evocode.environments.base import CappedOutput, Environment, ExecResult, Snapshot, Unreadable, User
from pytest_evocode.environments.docker.files import ChunkReader, is_directory, is_link, look_up, refusal
from pytest_evocode.environments.docker.stream import ExecStream
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
    volumes: tuple[str, ...] = ()
    """What the image declares as VOLUME: the engine keeps it apart from the container's files."""


@dataclass(frozen=True, slots=True)
class DockerSnapshot:
    """An image committed from a container, and tars of the volumes, which no commit holds."""

    settings: ContainerSettings
    image: str
    volumes: Mapping[str, IO[bytes]]

    def discard(self) -> None:
        """Remove the image."""
        for contents in self.volumes.values():
            contents.close()
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
        volumes: Mapping[str, IO[bytes]] | None = None,
    ) -> None:
        self.workdir = workdir
        self._volumes = volumes or {}
        self._settings = settings
        self._client = settings.client
        self._image = image
        self._network = network
        self._fresh = tuple(fresh)
        self._container: str | None = None
        self._own_image: str | None = None
        self._killing = threading.Lock()  # Or each of two kills would wait for the other's process to go.
        # Every transfer costs the engine a process of 50 ms, so directories to be made wait for the next one.
        self._pending: list[str] = []

    def start(self) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        try:
            self._start()
            with faults("looking at the mounts"):
                planted = any(is_link(self._client, self._id, path) for path in self._fresh)
        except EnvironmentFault:
            if not self._fresh:
                raise
            planted = True  # A volume cannot be mounted over a file.
        if planted:
            self._remove_container()
            self._clear_way()
            self._start()
        self._pending = ["/logs/agent", "/logs/artifacts", *self._fresh]

    def _clear_way(self) -> None:
        """Take a copy of the image in which only directories are where the fresh ones go, and above them."""
        with faults("preparing fresh directories"):
            created = self._client.create_container(self._image, command=["true"], labels=dict(self._settings.labels))
            self._container = created["Id"]
            self.make_directories(self._fresh)
            tag = uuid.uuid4().hex[:12]
            self._client.commit(self._container, repository=SNAPSHOT_REPOSITORY, tag=tag)
            self._image = self._own_image = f"{SNAPSHOT_REPOSITORY}:{tag}"
        self._remove_container()

    def _start(self) -> None:
        from docker.types import Mount

        settings = self._settings
        # Anonymous volumes are empty whatever the image holds there, and making them runs nothing in the container.
        mounts = [Mount(path, None, type="volume", no_copy=True) for path in (*self._fresh, *self._volumes)]
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
            for path, contents in self._volumes.items():
                # Opened anew, because several forks may read it at once.
                with open(f"/proc/self/fd/{contents.fileno()}", "rb") as stream:
                    self._client.put_archive(self._container, os.path.dirname(path), stream)

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
            with ExecStream(self._client.exec_start(created["Id"], socket=True), output) as stream:
                timed_out = not stream.collect(None if timeout is None else started + timeout)
            # Killed after the stream is closed: one that floods and is not read keeps the engine from stopping.
            if timed_out:
                self.kill_processes()
            exit_code = None if timed_out else self._exit_code(created["Id"])
        if self._container is None:
            raise EnvironmentFault("the container was stopped while a command ran")
        if exit_code == 126 and "executable file not found in $PATH" in output.text():
            exit_code = 127  # What newer engines say.
        return ExecResult(exit_code, output.text(), timed_out, time.monotonic() - started)

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
        members = lay_over(sources)
        with tempfile.TemporaryFile() as stream, faults(f"uploading to {target}"):
            present = set() if writable else self._present_directories(target, members)
            pending, self._pending = self._pending, []
            pack(members, target, stream, writable=writable, directories=pending, present=present)
            stream.seek(0)
            self._client.put_archive(self._id, "/", stream)

    def _present_directories(self, target: str, members: Mapping[str, Path]) -> set[str]:
        """Which of the directories to upload are there already: the engine would give them a new owner and mode."""
        present: set[str] = set()
        directories = sorted(name for name, path in members.items() if path.is_dir() and not path.is_symlink())
        for name in (".", *directories):
            parent_is_present = name == "." or (os.path.dirname(name) or ".") in present
            if parent_is_present and is_directory(self._client, self._id, os.path.join(target, name)):
                present.add(name)
        return present

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        from docker.errors import APIError, NotFound

        with faults(f"downloading {source}"):
            try:
                chunks, _ = self._client.get_archive(self._id, source)
            except APIError as error:
                if isinstance(error, NotFound) or look_up(self._client, self._id, source) is None:
                    return ()
                raise
            return unpack(io.BufferedReader(ChunkReader(chunks)), target, exclude=exclude)

    def read(self, path: str, limit: int) -> bytes | None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        from docker.errors import APIError, NotFound

        with faults(f"reading {path}"):
            try:
                chunks, info = self._client.get_archive(self._id, path)
            except APIError as error:
                if isinstance(error, NotFound) or look_up(self._client, self._id, path) is None:
                    return None
                raise
            with contextlib.closing(chunks):
                if why := refusal(info, limit):
                    raise Unreadable(f"{path} is {why}")
                with tarfile.open(fileobj=io.BufferedReader(ChunkReader(chunks)), mode="r|") as archive:
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
        with faults(f"looking for {path}"):
            return look_up(self._client, self._id, path) is not None

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        with faults("making directories"):
            above = sorted({parent.as_posix() for path in paths for parent in PurePosixPath(path).parents[:-1]})
            in_the_way = [path for path in above if not is_directory(self._client, self._id, path)]
        self._make_pending()
        self._put_directories([(path, 0o755) for path in in_the_way] + [(path, 0o777) for path in paths])

    def _make_pending(self) -> None:
        pending, self._pending = self._pending, []
        if pending:
            self._put_directories([(path, 0o777) for path in pending])

    def _put_directories(self, directories: Sequence[tuple[str, int]]) -> None:
        """Make directories of a mode; anything else of that name makes way."""
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w") as archive:
            for path, mode in directories:
                add_directories(archive, [path], mode=mode)
        with faults("making directories"):
            self._client.put_archive(self._id, "/", stream.getvalue())

    def kill_processes(self) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        with self._killing, faults("killing the container's processes"):
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
            volumes = {path: self._copy_volume(path) for path in self._settings.volumes}
        return DockerSnapshot(self._settings, f"{SNAPSHOT_REPOSITORY}:{tag}", volumes)

    def _copy_volume(self, path: str) -> IO[bytes]:
        contents = tempfile.TemporaryFile()  # noqa: SIM115 - the snapshot keeps it
        for chunk in self._client.get_archive(self._id, path)[0]:
            contents.write(chunk)
        contents.flush()
        return contents

    def fork(self, snapshot: Snapshot, *, network: Network | None, fresh: Sequence[str] = ()) -> Environment:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        assert isinstance(snapshot, DockerSnapshot)
        return DockerEnvironment(
            self._settings,
            snapshot.image,
            workdir=self.workdir,
            network=network,
            fresh=fresh,
            volumes=snapshot.volumes,
        )

    def stop(self) -> None:
        """See :class:`~pytest_evocode.environments.base.Environment`."""
        self._remove_container()
        image, self._own_image = self._own_image, None
        if image is not None:
            with faults("removing an image"):
                self._client.remove_image(image, force=True)

    def _remove_container(self) -> None:
        from docker.errors import NotFound

        container, self._container = self._container, None
        if container is not None:
            with faults("removing a container"), contextlib.suppress(NotFound):
                self._client.remove_container(container, v=True, force=True)
