"""A container's files by the engine's archive calls, which need no tool in it, and whether it was killed from outside.

No signal from inside can end its PID 1.
"""

from __future__ import annotations

import base64
import contextlib
import io
import json
import logging
import os
import posixpath
import shlex
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.archive import Source, add_directories, add_files, lay_over, pack, unpack
from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.environments.docker.channel import Channel
from pytest_evocode.environments.docker.execs import KILLED, USER_FILES
from pytest_evocode.environments.overlay import is_below
from pytest_evocode.environments.programs import CappedOutput
from pytest_evocode.environments.protocol import FileContents
from pytest_evocode.environments.tree_archives import CHUNK, END, filter_tar
from pytest_evocode.errors import EnvironmentFault, KilledFromOutside, UnreadableFile

if TYPE_CHECKING:
    from docker import APIClient

#: Bits of Go's modes, which the engine describes files with.
DIRECTORY = 1 << 31
SYMLINK = 1 << 27
SPECIAL = 1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19

logger = logging.getLogger(__name__)

_UNTOUCHED = "1970-01-01T00:00:00Z"
# Stands for a path where the engine answers 500: symlinks that lead to each other.
LOOP: Mapping[str, Any] = {"mode": SYMLINK, "size": 0, "mtime": _UNTOUCHED, "linkTarget": ""}
_SMALL = 2**14  # bytes that go over the channel
_PAUSING = 3.0  # seconds for the processes of a container to stop
_USERS = 2**20  # bytes; of 300 MB the engine makes objects that fill 24 GB of memory
_BATCH = 2**14  # bytes of arguments that no kernel refuses; more than a path has


class ContainerFiles:
    """The files of one container that exists, and the channel to it, be it attached or not.

    Every transfer costs the engine a process of 80 ms, where a look costs 2 ms. So directories to be made wait for the
    next transfer (:attr:`pending`), and what is small and need not be trusted goes through the channel to the
    container's bash.
    """

    def __init__(self, client: APIClient, container: str) -> None:
        self._client = client
        self.container = container
        self.channel = Channel(client, container)
        self.pending: dict[str, int] = {}
        """Modes of directories to make, by path; anything else that stands there is replaced."""
        self.pending_files: dict[str, bytes] = {}
        """Files to write, by path."""

    def look_up(self, path: str) -> Mapping[str, Any] | None:
        """Return the engine's description of a path, symlinks not followed; None where there is nothing."""
        url = f"{self._client.base_url}/v{self._client.api_version}/containers/{self.container}/archive"
        with faults(f"looking at {path}"):
            response = self._client.head(url, params={"path": path.encode("utf-8", "surrogateescape")})
            if response.status_code == 404:
                return None
            # Below a file, and for a loop of symlinks, an engine answers 500 without a reason.
            if response.status_code == 500 and path.strip("/"):
                parent = self.look_up(posixpath.dirname(path.rstrip("/")))
                if parent is None or not int(parent["mode"]) & DIRECTORY:
                    return None
                return LOOP
            response.raise_for_status()
        found: dict[str, Any] = json.loads(base64.b64decode(response.headers["X-Docker-Container-Path-Stat"]))
        return found

    def is_link(self, path: str) -> bool:
        """Tell whether a path is a symlink."""
        found = self.look_up(path)
        return found is not None and bool(int(found["mode"]) & SYMLINK)

    def is_directory(self, path: str) -> bool:
        """Whether a path is a directory or a symlink to one."""
        found = self.look_up(path)
        if found is not None and int(found["mode"]) & SYMLINK:
            found = self.look_up(found["linkTarget"]) if found["linkTarget"] else None
        return found is not None and bool(int(found["mode"]) & DIRECTORY)

    def put(self, stream: IO[bytes] | bytes, target: str = "/") -> None:
        """Make the engine unpack a tar."""
        self._client.put_archive(self.container, target, stream)

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool, by_channel: bool) -> None:
        """Upload as :meth:`~pytest_evocode.environments.protocol.Environment.upload` does.

        ``by_channel`` allows the container's own tar, which is used for a few bytes in a directory that does not exist
        yet.
        """
        members = lay_over(sources)
        with tempfile.TemporaryFile() as stream, faults(f"uploading to {target}"):
            if by_channel and not writable and self.look_up(target) is None:
                pack(members, target, stream)
                if self._upload_by_channel(stream):
                    return
                stream.seek(0)
                stream.truncate()
            present = set() if writable else self._present_directories(target, members)
            directories, self.pending = self.pending, {}
            files, self.pending_files = self.pending_files, {}
            pack(members, target, stream, writable=writable, directories=directories, files=files, present=present)
            stream.seek(0)
            self.put(stream)

    def _upload_by_channel(self, stream: IO[bytes]) -> bool:
        if stream.tell() > _SMALL + tarfile.RECORDSIZE:
            return False
        stream.seek(0)
        archive = stream.read().rstrip(b"\0")
        # A tar ends with two blocks of zeros; Python's pads with some more.
        archive += bytes(-len(archive) % tarfile.BLOCKSIZE + 2 * tarfile.BLOCKSIZE)
        if len(archive) > _SMALL:
            return False
        encoded = base64.b64encode(archive).decode()
        return self._ask(f"base64 -d <<< {encoded} | tar -xf - -C /") is not None

    def _ask(self, script: str) -> bytes | None:
        output = CappedOutput()
        return output.bytes() if self.channel.ask(script, output) else None

    def _present_directories(self, target: str, members: Mapping[str, Path]) -> set[str]:
        """Return the directories to upload that exist already, as relative paths.

        The engine would give them a new owner and mode.
        """
        present: set[str] = set()
        directories = sorted(name for name, path in members.items() if path.is_dir() and not path.is_symlink())
        for name in (".", *directories):
            parent_is_present = name == "." or (os.path.dirname(name) or ".") in present
            if parent_is_present and self.is_directory(os.path.join(target, name)):
                present.add(name)
        return present

    def download(self, source: str, target: Path, *, exclude: Sequence[str] = ()) -> tuple[str, ...]:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        from docker.errors import APIError, NotFound

        found = self.look_up(source)
        if found is None or (int(found["mode"]) & DIRECTORY and found["mtime"] == _UNTOUCHED):
            return ()
        with faults(f"downloading {source}"):
            try:
                chunks, _ = self._client.get_archive(self.container, source)
            except APIError as error:
                if isinstance(error, NotFound) or self.look_up(source) is None:
                    return ()
                raise
            with streamed(chunks) as stream:
                return unpack(stream, target, exclude=exclude)

    def pack_trees(self, paths: Sequence[str], archive: IO[bytes], *, files: bool = False) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`."""
        for path in paths:
            found = self.look_up(path)
            wanted = found is not None and (
                int(found["mode"]) & DIRECTORY or (files and not int(found["mode"]) & (SYMLINK | SPECIAL))
            )
            if not wanted:
                continue
            with faults(f"reading {path}"):
                chunks, _ = self._client.get_archive(self.container, path)
                with streamed(chunks) as stream:
                    archive.writelines(filter_tar(stream, posixpath.dirname(path)))
        archive.write(END)

    def read(self, path: str, limit: int) -> FileContents:
        """Read a file as :meth:`~pytest_evocode.environments.protocol.Environment.read_files` does."""
        found = self.look_up(path)
        if found is None:
            return None
        if why := refusal(found, limit):
            return UnreadableFile(f"{path} is {why}")
        # Read by bash itself, with no other tool: a tampered bash could as well have falsified the suite.
        if int(found["size"]) <= _SMALL:
            contents = self._ask(
                f"unset data; LC_ALL=C IFS= read -r -d '' -n {_SMALL} data < {shlex.quote(path)} || "
                """printf '%s' "$data" """
            )
            if contents is not None and len(contents) == int(found["size"]):
                return contents
        return self._read_by_engine(path, limit)

    def _read_by_engine(self, path: str, limit: int) -> FileContents:
        from docker.errors import NotFound

        with faults(f"reading {path}"):
            try:
                chunks, info = self._client.get_archive(self.container, path)
            except NotFound:
                return None
            with streamed(chunks) as stream:
                if why := refusal(info, limit):
                    return UnreadableFile(f"{path} is {why}")
                with tarfile.open(fileobj=stream, mode="r|") as archive:
                    member = archive.next()
                    contents = archive.extractfile(member) if member is not None and member.isreg() else None
                    if contents is None:
                        return UnreadableFile(f"{path} is not a regular file")
                    return contents.read(limit)

    def make_directories(self, paths: Sequence[str]) -> None:
        """See :class:`~pytest_evocode.environments.protocol.Environment`; they are made with the next transfer."""
        above = sorted({parent.as_posix() for path in paths for parent in PurePosixPath(path).parents[:-1]})
        for path in above:
            if path not in self.pending and not self.is_directory(path):
                self.pending[path] = 0o755
        self.pending |= dict.fromkeys(paths, 0o777)

    def forget_pending(self, removed: Sequence[str]) -> None:
        """Do not make directories at paths that are being removed, or below them."""
        self.pending = {path: mode for path, mode in self.pending.items() if not is_below(path, removed)}

    def make_pending(self) -> None:
        """Make the directories and files that wait for a transfer."""
        if self.pending or self.pending_files:
            directories, self.pending = self.pending, {}
            files, self.pending_files = self.pending_files, {}
            stream = io.BytesIO()
            with tarfile.open(fileobj=stream, mode="w") as archive:
                add_directories(archive, directories)
                add_files(archive, files)
            with faults("making directories"):
                self.put(stream.getvalue())

    def mend_user_files(self) -> None:
        """Replace files that say who users are where the engine, which reads them, would wait or need all memory."""
        for path, contents in USER_FILES.items():
            found = self.look_up(path)
            if found is not None and int(found["mode"]) & SYMLINK:
                found = self.look_up(found["linkTarget"]) if found["linkTarget"] else None
            if found is not None and (int(found["mode"]) & SPECIAL or int(found["size"]) > _USERS):
                self.pending_files[path] = contents
        self.make_pending()

    def require_gone(self, paths: Sequence[str]) -> None:
        """Raise :class:`~pytest_evocode.errors.EnvironmentFault` when one of the paths exists."""
        if left := [path for path in paths if self.look_up(path) is not None]:
            raise EnvironmentFault(f"could not be removed from the container: {', '.join(left)}")


def batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """Yield paths in parts that are short enough for a command line each."""
    batch: list[str] = []
    size = 0
    for path in paths:
        size += len(os.fsencode(path)) + 1
        if batch and size > _BATCH:
            yield batch
            batch, size = [], len(os.fsencode(path)) + 1
        batch.append(path)
    if batch:
        yield batch


def refusal(info: Mapping[str, Any], limit: int) -> str | None:
    """Return why a file is not read, from the engine's description of it; None when it can be."""
    mode = int(info["mode"])
    if mode & SYMLINK:
        return "a symlink"
    if mode & DIRECTORY:
        return "a directory"
    if mode & SPECIAL:
        return "not a regular file"
    if int(info["size"]) > limit:
        return f"{info['size']} bytes long, over the limit of {limit}"
    return None


@contextlib.contextmanager
def streamed(chunks: Iterator[bytes]) -> Iterator[IO[bytes]]:
    """Yield a readable file made of the chunks of a response, of which nothing more comes afterwards."""
    with contextlib.closing(chunks):  # type: ignore[type-var]
        yield io.BufferedReader(_ChunkReader(chunks), CHUNK)


class _ChunkReader(io.RawIOBase):
    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._rest = b""

    def readable(self) -> bool:
        """Return True."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read the next bytes into a buffer, and return how many they are."""
        if not self._rest:
            self._rest = next(self._chunks, b"")
        part = self._rest[: len(buffer)]
        self._rest = self._rest[len(part) :]
        buffer[: len(part)] = part
        return len(part)


_DEADLY = {"9", "15", "KILL", "TERM", "SIGKILL", "SIGTERM"}
_DYING = 5.0  # seconds in which even a busy engine notices the end of a container


def refuse_if_killed(client: APIClient, files: ContainerFiles | None) -> None:
    """Raise :class:`~pytest_evocode.errors.KilledFromOutside` where a container has been killed or removed.

    Not where memory ran out, or where root inside made PID 1 end, with whatever exit code: no program under test
    is to get a fault in place of a verdict. So the engine is asked whether it was told to kill.
    """
    from docker.errors import NotFound

    if files is None or files.channel.control(":"):
        return
    deadline = time.monotonic() + _DYING
    with faults("looking whether a container still runs"):
        try:
            while (state := client.inspect_container(files.container)["State"])["Running"]:
                if time.monotonic() > deadline:
                    return
                time.sleep(0.02)
        except NotFound:
            raise KilledFromOutside(f"the container {files.container:.12}") from None
    if state["ExitCode"] == KILLED and not state["OOMKilled"] and _was_told_to_kill(client, files.container, state):
        raise KilledFromOutside(f"the container {files.container:.12}")


def _was_told_to_kill(client: APIClient, container: str, state: Mapping[str, Any]) -> bool:
    """Tell whether the engine was told to kill a container since it was last started."""
    started, ended = nanoseconds(state["StartedAt"]), nanoseconds(state["FinishedAt"])
    wanted = {"container": container, "event": "kill"}
    with faults("asking why a container has ended"):
        events = client.events(since=started // 10**9, until=ended // 10**9 + 1, filters=wanted, decode=True)
        return any(
            event["timeNano"] > started and event["Actor"]["Attributes"].get("signal") in _DEADLY for event in events
        )


@contextlib.contextmanager
def paused(client: APIClient, container: str) -> Iterator[None]:
    """Pause a container, unless something in it that cannot be paused keeps the engine from doing so.

    The engine tries only once, which fails where the machine is so busy that processes take a while to stop.
    """
    from docker.errors import APIError

    deadline = time.monotonic() + _PAUSING
    is_paused = False
    while not is_paused:
        try:
            client.pause(container)
            is_paused = True
        except APIError as error:
            if "unable to freeze" not in str(error) or time.monotonic() > deadline:
                logger.info("container %.12s cannot be paused: %s", container, error)
                break
    try:
        yield
    finally:
        if is_paused:
            client.unpause(container)


def nanoseconds(moment: str) -> int:
    """Return the nanoseconds since the epoch of a moment as the engine writes it, with up to nine digits."""
    whole, _, fraction = moment.removesuffix("Z").partition(".")
    return int(datetime.fromisoformat(f"{whole}+00:00").timestamp()) * 10**9 + int(f"{fraction:0<9}")


@contextlib.contextmanager
def naming_kills(client: APIClient, files: ContainerFiles | None) -> Iterator[None]:
    """Raise :class:`~pytest_evocode.errors.KilledFromOutside` in place of what an engine says of a killed container."""
    try:
        yield
    except EnvironmentFault:
        refuse_if_killed(client, files)
        raise
