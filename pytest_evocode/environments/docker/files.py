"""A container's files by the engine's archive calls, which need no tool in it, and whether it was killed from outside.

No signal from inside can end its PID 1.
"""

from __future__ import annotations

import base64
import contextlib
import errno
import io
import json
import logging
import os
import posixpath
import shlex
import stat
import tarfile
import tempfile
import time
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path, PurePosixPath
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.archive import Source, add_entry, lay_over, pack, unpack
from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.environments.docker.channel import REQUEST_LIMIT, Channel, as_printf_format
from pytest_evocode.environments.docker.execs import KILLED, USER_FILES
from pytest_evocode.environments.overlay import is_below
from pytest_evocode.environments.programs import CappedOutput, FileKind, FileStatus
from pytest_evocode.environments.protocol import FileContents
from pytest_evocode.environments.tree_archives import CHUNK, END, filter_tar
from pytest_evocode.errors import EnvironmentFault, KilledFromOutside, UnreadableFile

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

LOG_DIRECTORIES = ("/logs/agent", "/logs/artifacts")
"""Made in each container."""
_UNTOUCHED = "1970-01-01T00:00:00Z"
"""When the log directories were changed last, as long as nothing was put into them; others may have it from uploads."""
_SMALL = 2**14  # bytes that are read over the channel
_PAUSING = 3.0  # seconds for the processes of a container to stop
_USERS = 2**20  # bytes; of 300 MB the engine makes objects that fill 24 GB of memory
_BATCH = 2**14  # bytes of arguments that no kernel refuses; more than a path has


# Go's mode bits, and what they are to everybody else.
_KINDS: tuple[tuple[int, FileKind], ...] = (
    (1 << 31, "directory"),
    (1 << 27, "link"),
    (1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19, "other"),
)
_SPECIAL_BITS = ((1 << 23, stat.S_ISUID), (1 << 22, stat.S_ISGID), (1 << 20, stat.S_ISVTX))


@dataclass(frozen=True, slots=True)
class Look:
    """What the engine says of a path, a link there not followed."""

    kind: FileKind
    size: int
    mode: int
    """Permission bits, setuid, setgid and sticky bit among them."""
    modified: str
    leads_to: str
    """Where a link leads to, all links followed; empty where that is nowhere."""

    @classmethod
    def of(cls, info: Mapping[str, Any]) -> Look:
        """Return what a description says."""
        mode = int(info["mode"])
        kind: FileKind = next((kind for bits, kind in _KINDS if mode & bits), "file")
        bits = mode & 0o777 | sum(bit for go, bit in _SPECIAL_BITS if mode & go)
        return cls(kind, int(info["size"]), bits, info["mtime"], info["linkTarget"])

    def refusal(self, limit: int) -> str | None:
        """Return why a file is not read; None when it can be."""
        if self.kind != "file":
            return {"link": "a symlink", "directory": "a directory"}.get(self.kind, "not a regular file")
        return f"{self.size} bytes long, over the limit of {limit}" if self.size > limit else None


_LOOP = Look("link", 0, 0, _UNTOUCHED, "")
"""Stands for a path where the engine answers 500: symlinks that lead to each other."""

# For a subshell of PID 1. Descriptor 5 is the directory above, so that no link that is put in the way meanwhile leads
# elsewhere; noclobber makes files where there is none, and neither follows links nor writes to what others have open.
_WRITER = """
umask 022; set -C
make() { mkdir -- "$1" && own "$1" || exit 9; }
own() { [[ ! $owner ]] || chown -h -- "$owner" "$@" || exit 9; }
replace() { [[ ! -e $1 && ! -L $1 ]] || rm -rf -- "./$1" || exit 9; }
way() { [[ -e $1 || -L $1 ]] || make "$1"; cd -- "./$1" || exit 9; }
down() {
  exec 5<.
  [[ -d $1 && ! -L $1 ]] || { replace "$1"; make "$1"; }
  cd -- "./$1" && [[ ! -L ../$1 && .. -ef /proc/self/fd/5 ]] || exit 9
}
put() { replace "$1"; printf -- "$2" > "./$1" || exit 9; }
"""


# Bash's own globbing, which needs no other program. What is printed first says what follows.
_LIST = """[[ -d $1 && ! -L $1 ]] && cd -P -- "$1" || { printf no; exit; }
shopt -s nullglob dotglob; set -- "$2" *
(($# - 1 > $1)) && { printf more; exit; }
shift; printf names; (($# == 0)) || printf '%s\\0' "$@" """
_NAME = 256  # bytes of a file's name at most, with a NUL behind it


class ContainerFiles:
    """The files of one container that exists, and the channel to it, be it attached or not.

    Every transfer costs the engine a process of 80 ms, where a look costs 2 ms. So directories to be made wait for the
    next transfer (:attr:`pending`), and what is small is read and written by the container's bash, over the channel.
    """

    def __init__(self, client: APIClient, container: str) -> None:
        self._client = client
        self.container = container
        self.channel = Channel(client, container)
        self.pending: dict[str, int] = {}
        """Modes of directories to make, by path; anything else that stands there is replaced."""
        self.pending_files: dict[str, bytes] = {}
        """Files to write, by path."""

    def look_up(self, path: str) -> Look | None:
        """Return what stands at a path; None where there is nothing."""
        url = f"{self._client.base_url}/v{self._client.api_version}/containers/{self.container}/archive"
        with faults(f"looking at {path}"):
            response = self._client.head(url, params={"path": path.encode("utf-8", "surrogateescape")})
            if response.status_code == 404:
                return None
            # Below a file, and for a loop of symlinks, an engine answers 500 without a reason.
            if response.status_code == 500 and path.strip("/"):
                parent = self.look_up(posixpath.dirname(path.rstrip("/")))
                return _LOOP if parent is not None and parent.kind == "directory" else None
            response.raise_for_status()
        return Look.of(json.loads(base64.b64decode(response.headers["X-Docker-Container-Path-Stat"])))

    def kind(self, path: str) -> FileKind | None:
        """Return the kind of what stands at a path, a link there not followed; None where there is nothing."""
        found = self.look_up(path)
        return None if found is None else found.kind

    def is_directory(self, path: str) -> bool:
        """Tell whether a path is a directory or a symlink to one."""
        found = self._follow(path)
        return found is not None and found.kind == "directory"

    def _follow(self, path: str) -> Look | None:
        """Return what a path leads to; None where there is nothing."""
        found = self.look_up(path)
        if found is not None and found.kind == "link":
            return self.look_up(found.leads_to) if found.leads_to else None
        return found

    def put(self, stream: IO[bytes] | bytes, target: str = "/") -> None:
        """Make the engine unpack a tar."""
        self._client.put_archive(self.container, target, stream)

    def upload(self, sources: Sequence[Source], target: str, *, writable: bool) -> None:
        """Upload as :meth:`~pytest_evocode.environments.protocol.Environment.upload` does."""
        members = lay_over(sources)
        with faults(f"uploading to {target}"):
            present = set() if writable else self._present_directories(target, members)
            self._transfer(members, target, present, writable=writable)

    def _transfer(
        self, members: Mapping[str, Path], target: str, present: Container[str], *, writable: bool = False
    ) -> None:
        """Put files below a directory, and with them all that waits for a transfer."""
        directories, self.pending = self.pending, {}
        files, self.pending_files = self.pending_files, {}
        with tempfile.TemporaryFile() as stream:
            pack(members, target, stream, writable=writable, directories=directories, files=files, present=present)
            stream.seek(0)
            self.put(stream)

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
        if found is None or (found.modified == _UNTOUCHED and source in LOG_DIRECTORIES):
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
            if self.kind(path) not in (("directory", "file") if files else ("directory",)):
                continue
            with faults(f"reading {path}"):
                chunks, _ = self._client.get_archive(self.container, path)
                with streamed(chunks) as stream:
                    archive.writelines(filter_tar(stream, posixpath.dirname(path)))
        archive.write(END)

    def file_status(self, path: str) -> FileStatus | None:
        """See :class:`~pytest_evocode.environments.protocol.Files`."""
        found = self.look_up(path.rstrip("/") or "/")
        if found is None:
            return None
        return FileStatus(
            kind=found.kind,
            size=found.size if found.kind == "file" else 0,
            mode=found.mode,
            modified=nanoseconds(found.modified) / 10**9,
            # The engine gives no archive of symlinks that lead to each other.
            target=self._target(path) if found.kind == "link" and found is not _LOOP else "",
        )

    def _target(self, path: str) -> str:
        """Return where a link points to; the engine's description has that resolved, only its archive as it is."""
        from docker.errors import NotFound

        with faults(f"reading the link {path}"):
            try:
                chunks, _ = self._client.get_archive(self.container, path.encode("utf-8", "surrogateescape"))
            except NotFound:
                return ""
            with streamed(chunks) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
                member = archive.next()
                return member.linkname if member is not None and member.issym() else ""

    def list_names(self, path: str, limit: int, run: Callable[[tuple[str, ...], CappedOutput], None]) -> list[str]:
        """List a directory as :meth:`Environment.list_directory` does.

        ``run`` runs a command for the case that the channel is not free.
        """
        directory = path.rstrip("/") or "/"
        output = CappedOutput((limit + 1) * _NAME)
        script = f"(LC_ALL=C; set -- {shlex.quote(directory)} {limit}\n{_LIST}) 3>&- 4>&-"
        if not self.channel.control(script, output=output):
            output = CappedOutput((limit + 1) * _NAME)
            run(("bash", "-c", _LIST, "bash", directory, str(limit)), output)
        printed = output.bytes()
        if not printed.startswith(b"names"):
            if printed == b"more":
                raise OverflowError(f"{path} has more than {limit} names")
            raise NotADirectoryError(f"{path} is not a directory that can be listed")
        names = sorted(name.decode("utf-8", "surrogateescape") for name in printed[len("names") :].split(b"\0")[:-1])
        if len(names) > limit:
            raise OverflowError(f"{path} has more than {limit} names")
        return names

    def write_files(self, directory: str, files: Mapping[str, bytes], owner: tuple[int, int]) -> None:
        """Write files as :meth:`Environment.write_files` does, for an owner and a group given by number."""
        directory = directory.rstrip("/") or "/"
        small = sum(map(len, files.values())) <= REQUEST_LIMIT
        if small and self.channel.control(_writing_script(directory, files, owner)):
            return
        # The engine follows links, and so nothing may be put in the way between what is looked at and what is written.
        with paused(self._client, self.container):
            self._write_by_engine(directory, files, owner)

    def _write_by_engine(self, directory: str, files: Mapping[str, bytes], owner: tuple[int, int]) -> None:
        from docker.errors import APIError

        made = [] if self.is_directory(directory) else [directory]
        while made and (above := posixpath.dirname(made[-1])) != "/" and not self.is_directory(above):
            made.append(above)
        made.reverse()
        if made and self.look_up(made[0]) is not None:
            raise NotADirectoryError(f"nothing can be written to {directory}: there is no directory at {made[0]}")
        present = {directory} - set(made)
        wanted = {parent for name in files for parent in PurePosixPath(directory, name).parents}
        for path in sorted(str(path) for path in wanted if path.is_relative_to(directory) and str(path) != directory):
            if posixpath.dirname(path) in present and self.kind(path) == "directory":
                present.add(path)
            else:
                made.append(path)
        stream = io.BytesIO()
        with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
            for path in made:
                add_entry(archive, path, None, 0o755, owner=owner, modified=time.time())
            for name, contents in files.items():
                add_entry(archive, posixpath.join(directory, name), contents, owner=owner, modified=time.time())
        refusal = None
        with faults(f"writing files to {directory}"):
            try:
                self.put(stream.getvalue())
            except APIError as error:
                if self.look_up("/") is None:  # There is no such container any more.
                    raise
                refusal = error.explanation or str(error)
        if refusal is not None:  # What the agent made is in the way, or has left no space: no fault of the engine's.
            raise OSError(errno.EIO, f"files cannot be written to {directory}: {refusal}")

    def read(self, path: str, limit: int) -> FileContents:
        """Read a file as :meth:`~pytest_evocode.environments.protocol.Environment.read_files` does."""
        found = self.look_up(path)
        if found is None:
            return None
        if why := found.refusal(limit):
            return UnreadableFile(f"{path} is {why}")
        # Read by bash itself, with no other tool: a tampered bash could as well have falsified the suite.
        if found.size <= _SMALL:
            script = f"unset data; LC_ALL=C IFS= read -r -d '' -n {_SMALL} data < {shlex.quote(path)} || "
            output = CappedOutput()
            if self.channel.control(f"""{script}printf '%s' "$data" """, output=output):
                contents = output.bytes()
                if len(contents) == found.size:
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
                if why := Look.of(info).refusal(limit):
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
            with faults("making directories"):
                self._transfer({}, "/", ["."])

    def mend_user_files(self) -> None:
        """Replace files that say who users are where the engine, which reads them, would wait or need all memory."""
        for path, contents in USER_FILES.items():
            found = self._follow(path)
            if found is not None and (found.kind == "other" or found.size > _USERS):
                self.pending_files[path] = contents
        self.make_pending()


def _writing_script(directory: str, files: Mapping[str, bytes], owner: tuple[int, int]) -> str:
    """Return the script that writes files; it fails, maybe half done, where it does not know what to do."""
    ways = "; ".join(f"way {shlex.quote(part)}" for part in PurePosixPath(directory).parts[1:])
    chown = f"{owner[0]}:{owner[1]}" if any(owner) else ""
    lines = [f"owner={chown}", f"cd -- {shlex.quote(directory)} || {{ cd /; {ways}; }}", "exec 6<."]
    places: dict[PurePosixPath, list[str]] = {}
    for name in files:
        places.setdefault(PurePosixPath(name).parent, []).append(name)
    for place, names in places.items():
        lines += ["cd /proc/self/fd/6 || exit 9", *(f"down {shlex.quote(part)}" for part in place.parts)]
        own = [shlex.quote(posixpath.basename(name)) for name in names]
        lines += [f"put {base} '{as_printf_format(files[name])}'" for name, base in zip(names, own, strict=True)]
        lines.append(f"own {' '.join(own)}")
    return f"({_WRITER}{chr(10).join(lines)}\n) 3>&- 4>&-"


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
def paused(client: APIClient, container: str) -> Iterator[bool]:
    """Pause a container, and yield whether it is: something in it that cannot be paused keeps the engine from doing so.

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
        yield is_paused
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
