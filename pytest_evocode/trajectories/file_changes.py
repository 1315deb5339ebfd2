"""Changes of files as the tables that trajectories hold: making them, and doing to files what they say."""

from __future__ import annotations

import base64
import binascii
import hashlib
import posixpath
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evocode.environments import Environment, User
from pytest_evocode.errors import DiffError, EnvironmentFault, UnreadableFile
from pytest_evocode.trajectories.diffs import patched, unified_diff

Change = dict[str, Any]
"""One file's: ``path`` relative to the working directory, ``kind`` (added, modified or deleted), ``mode``, ``diff``,
``sha256``, ``content`` and ``symlink``; see docs/results.md."""

_READABLE = 64 * 2**20  # bytes of a file that is read to be patched
_SETTLING = 60.0  # seconds; reached, it kills all that runs in there
_ROOT = ("0", "root", 0)
_DROP_COMPILED = 'for file; do name=${file##*/}; rm -f -- "${file%/*}/__pycache__/${name%.py}".*.pyc; done'


@dataclass(frozen=True, slots=True)
class File:
    """A regular file, or a symlink, as far as it is known."""

    mode: int | None = None
    """Permission bits; None for a symlink, and where nobody looked."""
    content: bytes | None = None
    """None where it is not known."""
    sha256: str | None = None
    """Of the content; None where it is not known."""
    symlink: str | None = None
    """Where a symlink leads to; None for a regular file."""


def sha256_of(content: bytes) -> str:
    """As tables have it."""
    return hashlib.sha256(content).hexdigest()


def describe(path: str, old: File | None, new: File | None, *, whole: int, room: int) -> list[Change]:
    """The tables for what became of a file; None is one that is not there.

    A file of up to ``whole`` bytes that is no text is given whole, and all diffs and contents together are no longer
    than ``room``. What became of another kind is deleted and added.
    """
    if old is not None and new is not None and (old.symlink is None) != (new.symlink is None):
        return [_table(path, old, None, whole, room), _table(path, None, new, whole, room)]
    return [_table(path, old, new, whole, room)]


def size_of(change: Change) -> int:
    """Of a table's diff or content, in characters."""
    return len(change["diff"] or "") + len(change["content"] or "")


def _table(path: str, old: File | None, new: File | None, whole: int, room: int) -> Change:
    symlink = new.symlink if new is not None else None
    change: Change = {
        "path": path,
        "kind": "added" if old is None else "deleted" if new is None else "modified",
        "mode": f"{new.mode:04o}" if new is not None and new.mode is not None else None,
        "diff": _diff(path, old, new, room),
        "sha256": new.sha256 if new is not None else None,
        "content": None,
        "symlink": symlink,
    }
    content = new.content if new is not None else None
    if change["diff"] is None and content is not None and len(content) <= min(whole, room):
        change["content"] = base64.b64encode(content).decode()
    return change if size_of(change) <= room else {**change, "diff": None, "content": None}


def _diff(path: str, old: File | None, new: File | None, room: int) -> str | None:
    if old is not None and new is not None and old.sha256 is not None and old.sha256 == new.sha256:
        return ""  # Whatever it is: only its mode is another.
    before, after = _text(old), _text(new)
    if (old is not None and before is None) or (new is not None and after is None):
        return None
    # The texts are in it at least once, but for what they have in common.
    if before is None and after is not None and len(after) > room:
        return None
    return unified_diff(path, before, after)


def _text(file: File | None) -> str | None:
    """What a file says, if that can go into JSON and come out again as it was."""
    if file is None or file.content is None or b"\0" in file.content:
        return None
    try:
        return file.content.decode()
    except UnicodeDecodeError:
        return None


def changed(old: File | None, change: Mapping[str, Any]) -> File | None:
    """What a table makes of a file; raises DiffError where it does not say, or speaks of another file.

    Nobody has to know what was in a file that the table gives whole, or deletes.
    """
    kind, diff, content = change["kind"], change.get("diff"), change.get("content")
    if kind == "deleted":
        return None
    if change.get("symlink") is not None:
        return File(symlink=change["symlink"])
    if content is not None:
        try:
            new = base64.b64decode(content, validate=True)
        except (binascii.Error, ValueError) as error:
            raise DiffError(f"the content is no base64: {error}") from None
    elif diff == "" and old is not None and old.content is not None:
        new = old.content
    elif diff is not None:
        new = patched("" if kind == "added" else _patchable(old), diff).encode()
    else:
        raise DiffError("the recording has neither its diff nor its content")
    if (expected := change.get("sha256")) is not None and sha256_of(new) != expected:
        raise DiffError("with the recorded diff it would not be what it was")
    mode = int(change["mode"], 8) if change.get("mode") else old.mode if old is not None else None
    return File(mode=mode, content=new, sha256=sha256_of(new))


def _patchable(old: File | None) -> str:
    if (before := _text(old)) is None:
        raise DiffError("there is no text to apply the recorded diff to")
    return before


def apply_changes(
    environment: Environment,
    changes: Iterable[Mapping[str, Any]],
    *,
    directory: str | None = None,
    user: User | None = "0",
) -> dict[str, str]:
    """Do what tables say to the files below a directory (default: the working directory), byte for byte.

    Several tables for one path are applied one after the other. What is written belongs to ``user``, None for the
    image's. Returns why, by path, for files that were left as they are: they were not what the recording began with, or
    it does not hold what they became.
    """
    base = directory or environment.workdir
    changes = list(changes)
    refused = {change["path"]: "the path leads out of the directory" for change in changes if _leads_out(change)}
    changes = [change for change in changes if change["path"] not in refused]
    files: dict[str, File | None] = dict(_read(environment, base, changes))
    for change in changes:
        path = change["path"]
        if path in refused:
            continue
        try:
            files[path] = changed(files.get(path), change)
        except DiffError as error:
            refused[path] = str(error)
    touched = {change["path"] for change in changes}
    write_files(
        environment,
        {path: files[path] for path in sorted(touched) if path not in refused},
        directory=base,
        user=user,
    )
    return refused


def _leads_out(change: Mapping[str, Any]) -> bool:
    """Also true of a path that is written in another way than ours, which could be taken for another file's."""
    path = PurePosixPath(change["path"])
    return path.is_absolute() or ".." in path.parts or str(path) in (".", "") or str(path) != change["path"]


def _read(environment: Environment, base: str, changes: Sequence[Mapping[str, Any]]) -> dict[str, File]:
    """What is there of the files that are to be patched."""
    patches = {change["path"] for change in changes if change["kind"] == "modified" and change.get("diff") is not None}
    paths = {posixpath.join(base, path): path for path in sorted(patches)}
    found = environment.read_files(dict.fromkeys(paths, _READABLE)) if paths else {}
    return {
        paths[path]: File(content=content)
        for path, content in found.items()
        if content is not None and not isinstance(content, UnreadableFile)
    }


def write_files(
    environment: Environment, files: Mapping[str, File | None], *, directory: str | None = None, user: User | None = "0"
) -> None:
    """Put files where their relative paths say, or remove them where there is None; their contents have to be known."""
    base = directory or environment.workdir
    if gone := [posixpath.join(base, path) for path, file in files.items() if file is None]:
        environment.remove(gone)
    present = {path: file for path, file in files.items() if file is not None}
    present = {path: file for path, file in present.items() if not _is_below(path, present)}
    owner = _prepare(environment, base, list(present), user) if present and user not in _ROOT else ""
    if present:
        with tempfile.TemporaryDirectory() as staged:
            for path, file in present.items():
                _stage(Path(staged), path, file)
            environment.upload([Path(staged)], base)
    _settle(environment, base, files, owner)


def drop_empty_directories(environment: Environment, paths: Iterable[str]) -> None:
    """Remove directories above relative paths in which nothing is."""
    if above := sorted({posixpath.dirname(path) for path in paths} - {""}):
        argv = ["rmdir", "-p", "--ignore-fail-on-non-empty", "--", *above]
        environment.exec(argv, user="0", timeout=_SETTLING)


def _is_below(path: str, files: Mapping[str, object]) -> bool:
    """Whether a file is to be where another path has a directory: staged, it would be written through a symlink."""
    return any(str(parent) in files for parent in PurePosixPath(path).parents)


def _stage(top: Path, relative: str, file: File) -> None:
    for parent in reversed(PurePosixPath(relative).parents[:-1]):
        (top / parent).mkdir(exist_ok=True)
        (top / parent).chmod(0o755)
    path = top / relative
    if file.symlink is not None:
        path.symlink_to(file.symlink)
        return
    if file.content is None:
        raise ValueError(f"{relative}: its content is not known")
    path.write_bytes(file.content)
    path.chmod(0o644 if file.mode is None else file.mode)


def _prepare(environment: Environment, base: str, paths: Sequence[str], user: User | None) -> str:
    """Have a user make the directories that are missing, and return its ids as ``chown`` takes them."""
    above = sorted({posixpath.dirname(posixpath.join(base, path)) for path in paths})
    answer = environment.exec(
        ["bash", "-c", 'mkdir -p -- "$@" >/dev/null 2>&1; id -u && id -g', "mkdir", *above],
        user=user,
        cwd="/",
        timeout=60,
    )
    ids = answer.output.split()
    return ":".join(ids) if answer.ok and len(ids) == 2 else ""


def _settle(environment: Environment, base: str, files: Mapping[str, File | None], owner: str) -> None:
    """Give the files to their owner, and drop what Python has compiled of them.

    Python takes a source of the same size and second for the one that it has compiled.
    """
    if owner and (present := [posixpath.join(base, path) for path, file in files.items() if file is not None]):
        # Where that fails there is only one user, a rootless sandbox's.
        environment.exec(["chown", "-h", owner, "--", *present], user="0", cwd="/", timeout=_SETTLING)
    if sources := [posixpath.join(base, path) for path in files if path.endswith(".py")]:
        answer = environment.exec(["bash", "-c", _DROP_COMPILED, "rm", *sources], user="0", cwd="/", timeout=_SETTLING)
        if not answer.ok:
            raise EnvironmentFault(f"what Python had compiled could not be removed: {answer.output.strip()}")
