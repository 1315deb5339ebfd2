"""What goes between the driver and the nodes: orders of attempts, with tasks' archives, and messages, with files."""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pytest_evocode.tasks.atomic_write import replacing
from pytest_evocode.tasks.content_hash import is_dropping

if TYPE_CHECKING:
    from pytest_evocode.agents.declarations import Declarations
    from pytest_evocode.plugin.session_agents import SessionAgent
    from pytest_evocode.tasks import Verify
    from pytest_evocode.tasks.task import RoundSelection

Message = tuple[Any, ...]
"""What an attempt sends: a kind, one of the constants of this module, and what belongs to it."""
BEGUN = "begun"
"""The index of the first round that is run."""
RECORD = "record"
"""A round's record as JSON's built-ins, without what has its default."""
PROGRESS = "progress"
"""The progress, as a dictionary, or None."""
FILE = "file"
"""A path in the attempt's directory, a part of the file's contents, and whether it is the last part."""
REMOVED = "removed"
"""A path in the attempt's directory at which there is no file any more."""
SPENT = "spent"
"""US dollars."""
ASK = "ask"
"""A number, which comes back with the answer, what is asked, ``spent`` or an operation on limits, and its arguments."""
NOTE = "note"
"""What people should know of the attempt."""
MEMORY = "memory"
"""Bytes of memory that the node has left, and has in all; sent by Ray's process there."""
ENDED = "ended"
"""A fault of the environment, if any; nothing follows."""
FAILED = "failed"
"""Why the attempt could not be made; nothing follows."""


@dataclass(frozen=True, slots=True)
class AttemptOrder:
    """An attempt that a node is to make, in types that any process can read."""

    name: str
    """Tells it from all other attempts of the run, and from no earlier try at it."""
    run: str
    task: str
    task_hash: str
    """The content hash of the task's directory."""
    directory_name: str
    """What the task's directory is called."""
    agent: SessionAgent
    declarations: Declarations
    number: int
    """The attempt's number, from 1."""
    rounds: RoundSelection
    only_round: str
    """The name of the round that is run by itself; empty for a chain."""
    engine: str
    verify: Verify | None
    options: Mapping[str, Any]
    """Of :class:`~pytest_evocode.trial.context.TrialOptions`, those that the session sets."""
    environ: Mapping[str, str] = field(repr=False)
    """The driver's variables that the attempt needs, secrets among them."""
    search_path: tuple[str, ...]
    """The driver's ``sys.path``, for agents in modules that are not installed."""
    max_connections: int
    """Requests under way at once for each provider and key, over all nodes."""
    spent: float = 0.0
    """US dollars that the run has cost so far."""
    resume: bool = False
    """Whether ``files`` are what an earlier session or node left of the attempt, to go on from."""
    files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """The files of the attempt's directory by path."""
    made_agent: bytes = field(default=b"", repr=False)
    """The agent that a hook of the project made, pickled; empty where the node makes it."""


_PART = 4 * 2**20  # bytes


class FileChanges:
    """The files of a directory that were made, changed or removed since they were last looked at."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._known: dict[str, tuple[int, int, int]] = {}

    def messages(self) -> Iterator[Message]:
        """Yield what has changed. A file that changes while it is read is sent again by the next call."""
        found = dict(self._look())
        for path, state in found.items():
            if self._known.get(path) != state:
                with contextlib.suppress(OSError):  # It was removed, or belongs to somebody else.
                    yield from self._parts(path)
                    self._known[path] = state
        for path in self._known.keys() - found.keys():
            del self._known[path]
            yield REMOVED, path

    def _parts(self, path: str) -> Iterator[Message]:
        with (self._directory / path).open("rb") as file:
            part = file.read(_PART)
            while len(part) == _PART:
                following = file.read(_PART)
                yield FILE, path, part, not following
                if not following:
                    return
                part = following
            yield FILE, path, part, True

    def _look(self) -> Iterator[tuple[str, tuple[int, int, int]]]:
        for parent, _, names in os.walk(self._directory):
            for name in names:
                path = Path(parent, name)
                relative = path.relative_to(self._directory)
                # What is being written or gathered has such a name until it is whole.
                is_unready = any(part.startswith(".") for part in relative.parts) and "artifacts" not in relative.parts
                if is_unready or path.is_symlink() or not path.is_file():
                    continue
                with contextlib.suppress(FileNotFoundError):
                    state = path.stat()
                    yield relative.as_posix(), (state.st_ino, state.st_mtime_ns, state.st_size)


class FileCopies:
    """Writes the files that :class:`FileChanges` sends below another directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._begun: dict[str, list[bytes]] = {}

    def take(self, message: Message) -> None:
        """Take a message about a file; a path that leads out of the directory raises ValueError."""
        target = self._directory / message[1]
        if not target.resolve().is_relative_to(self._directory.resolve()):
            raise ValueError(f"{message[1]} is not in {self._directory}")
        if message[0] == REMOVED:
            target.unlink(missing_ok=True)
            return
        _, path, part, is_last = message
        parts = self._begun.setdefault(path, [])
        parts.append(part)
        if is_last:
            del self._begun[path]
            target.parent.mkdir(parents=True, exist_ok=True)
            with replacing(target) as file:
                file.writelines(parts)


def read_tree(directory: Path) -> dict[str, bytes]:
    """Return the contents of all files below a directory, by path; empty where there is none."""
    found: dict[str, bytes] = {}
    for _, path, part, _ in FileChanges(directory).messages():
        found[path] = found.get(path, b"") + part
    return found


def write_tree(directory: Path, files: Mapping[str, bytes]) -> None:
    """Make a directory that has these files and nothing else."""
    shutil.rmtree(directory, ignore_errors=True)
    copies = FileCopies(directory)
    for path, contents in files.items():
        copies.take((FILE, path, contents, True))


def pack_task(directory: Path) -> bytes:
    """Return a task's directory as a compressed archive, without what tools leave behind."""
    stream = io.BytesIO()

    def kept(info: tarfile.TarInfo) -> tarfile.TarInfo | None:
        if is_dropping(info.name.rpartition("/")[2]):
            return None
        info.uid = info.gid = 0
        info.uname = info.gname = ""
        return info

    with tarfile.open(fileobj=stream, mode="w:gz", compresslevel=3) as archive:
        archive.add(directory, directory.name, filter=kept)
    return stream.getvalue()
