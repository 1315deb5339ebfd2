"""The directory of a report: claimed, locked, and changed only where something is new; its data packed as scripts."""

from __future__ import annotations

import base64
import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

from pydantic_core import to_json

from pytest_evocode.errors import UsageError
from pytest_evocode.tasks.atomic_write import replacing

#: Directories of an attempt of which a report has no more than the names that they hold.
_ONLY_LISTED = frozenset({"artifacts", "earlier", ".artifacts"})


def stamp(directory: Path) -> str:
    """Return a text that changes when a file in a directory or below does; "" where there is no such directory.

    What lies in directories of artifacts counts by its name.
    """
    digest = hashlib.sha256()
    found = False
    for line in _lines(os.fspath(directory)):
        digest.update(line.encode("utf-8", "surrogateescape"))
        found = True
    return digest.hexdigest()[:24] if found else ""


def _lines(top: str) -> Iterator[str]:
    # No recursion: agents may make directories of any depth.
    waiting = [(top, False)]
    while waiting:
        directory, is_listed = waiting.pop()
        try:
            with os.scandir(directory) as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            continue
        yield f"{directory}\n"
        for entry in found:
            if entry.name == "__pycache__":
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append((entry.path, is_listed or entry.name in _ONLY_LISTED))
            elif is_listed:
                yield f"{entry.name}\n"
            else:
                try:
                    status = entry.stat()
                except OSError:
                    continue  # It has just been removed, or points nowhere.
                yield f"{entry.name}\0{status.st_size}\0{status.st_mtime_ns}\0{status.st_ino}\n"


def text_stamp(text: str) -> str:
    """Return what changes with a text and does not tell it, as the path of a task's directory."""
    return hashlib.sha256(text.encode("utf-8", "surrogateescape")).hexdigest()[:24]


@cache
def own_stamp() -> str:
    """Return what changes with the code that makes reports: after that, everything is written anew."""
    return stamp(Path(__file__).parent)


#: Nothing that a file system, a URL or a script would have to quote.
_NAME = re.compile(r"[0-9a-z-]+(/[0-9a-z-]+)*")
#: Level 5 saves a sixth of the size and takes twice the time.
_LEVEL = 3


def packed(name: str, value: Any) -> bytes:
    """Return the script that hands a value to the viewer; the same value always gives the same bytes.

    Args:
        name: The file's name without ``data/`` and ``.js``, of 0-9, a-z, - and /.
        value: Anything that JSON has. Numbers that JSON has not, such as infinity, become null.

    Raises:
        ValueError: The name has other characters.
    """
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} cannot be the name of a file of a report")
    data = gzip.compress(_as_json(value), _LEVEL, mtime=0)
    return b'evocode.receive("%s","%s");\n' % (name.encode(), base64.b64encode(data))


def _as_json(value: Any) -> bytes:
    try:
        # In a third of the time that the standard library takes.
        return to_json(value, inf_nan_mode="null")
    except ValueError:
        # In ASCII, because half a surrogate pair, which programs and models print now and then, has no UTF-8.
        return json.dumps(_finite(value), ensure_ascii=True, separators=(",", ":")).encode("ascii")


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if value - value == 0 else None
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    return [_finite(each) for each in value] if isinstance(value, list | tuple) else value


#: Says that a directory is a report, and what the report was made from.
MARKER = ".evocode-report.json"
_WHAT = "a report of pytest-evocode; it may be written again at any time"
_HALF = re.compile(r"\.(.+)\.[0-9a-z_]{8}")
#: Directories in which nothing stays that the report does not have.
_OURS = ("data", "csv")


class ReportFolder:
    """A claimed and locked directory; see :func:`claimed`."""

    def __init__(self, path: Path, state: dict[str, Any]) -> None:
        self.path = path
        self.state = state
        """What :meth:`finish` was given when the report was last written; empty if it never was."""
        self.written = 0
        """How many files were written, because they were new or other than before."""
        self._names: set[str] = set()

    def write(self, name: str, content: bytes) -> None:
        """Write a file, unless it has this content; ``name`` is its path in the report."""
        path = self.path / name
        self._names.add(name)
        with contextlib.suppress(OSError):
            if path.stat().st_size == len(content) and path.read_bytes() == content:
                return
        self._check(path.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(content)
        self.written += 1

    def _check(self, directory: Path) -> None:
        """Raise UsageError where a directory of the report is a link: what is behind it is not the report's."""
        for each in (directory, *directory.parents):
            if each == self.path:
                return
            if each.is_symlink():
                raise UsageError(f"{each} is a link, and what it leads to is left as it is; remove it")

    def keep(self, name: str) -> bool:
        """Leave a file as it is; return False where it is not the one that was there when the state was noted.

        A writer that was killed since may have written another one.
        """
        self._names.add(name)
        known = self.state.get("files")
        return isinstance(known, dict) and name in known and known[name] == self._signature(name)

    def _signature(self, name: str) -> list[int]:
        """Return size and time of a file; nothing where there is none."""
        try:
            status = (self.path / name).stat(follow_symlinks=False)
        except OSError:
            return []
        return [status.st_size, status.st_mtime_ns]

    def finish(self, state: dict[str, Any]) -> None:
        """Remove what earlier reports had and this one has not, and note what it was made from."""
        for top in (self.path / name for name in _OURS):
            self._check(top)
            for directory, _, files in os.walk(top):
                for file in files:
                    path = Path(directory, file)
                    if path.relative_to(self.path).as_posix() not in self._names:
                        path.unlink(missing_ok=True)
        for path in self.path.iterdir():
            # Half of a file that a killed writer left.
            if (half := _HALF.fullmatch(path.name)) and half[1] in (*self._names, MARKER):
                path.unlink(missing_ok=True)
        signatures = {name: self._signature(name) for name in sorted(self._names)}
        text = json.dumps({"what": _WHAT, **state, "files": signatures}, separators=(",", ":")) + "\n"
        with replacing(self.path / MARKER) as marker:
            marker.write(text.encode())


@contextlib.contextmanager
def claimed(path: Path) -> Iterator[ReportFolder]:
    """Yield a directory to write a report to, made where there is none; another process that writes it too has to wait.

    Raises:
        UsageError: There is something else, or it cannot be written.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    except FileExistsError:
        raise UsageError(f"{path} is a file; name a directory for the report") from None
    except OSError as error:
        raise UsageError(f"{path}: no report can be written there: {error.strerror}; name another directory") from None
    try:
        # Not filelock, which would leave a file in the report.
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield ReportFolder(path, _claim(path))
    except OSError as error:
        where = error.filename or path
        raise UsageError(f"{where}: the report cannot be written: {error.strerror}") from error
    finally:
        os.close(descriptor)


def _claim(path: Path) -> dict[str, Any]:
    """Mark a directory as a report and return what its marker says; raises UsageError if it holds something else."""
    marker = path / MARKER
    try:
        text = marker.read_text(encoding="utf-8")
    except FileNotFoundError:
        if any(name for name in os.listdir(path) if not name.startswith(f".{MARKER[:40]}")):
            raise UsageError(
                f"{path} holds something else than a report, and is left as it is; name a new or empty directory"
            ) from None
        # At once, so that a report that is not finished can be written again.
        with replacing(marker) as file:
            file.write(json.dumps({"what": _WHAT}).encode() + b"\n")
        return {}
    try:
        state = json.loads(text)
    except ValueError:
        return {}
    return state if isinstance(state, dict) else {}
