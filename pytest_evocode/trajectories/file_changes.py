"""Recorded changes of files: describing what became of a file, and making files what a recorded change says."""

from __future__ import annotations

import base64
import binascii
import hashlib
import posixpath
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evocode.environments import Environment, User
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.errors import DiffError, EnvironmentFault
from pytest_evocode.trajectories.diffs import apply_diff, unified_diff

Change = dict[str, Any]
"""The change of one file, as trajectories have it: ``path`` relative to the working directory, ``kind`` (added,
modified or deleted), ``mode``, ``diff``, ``sha256``, ``content`` and ``symlink``; see docs/read-results.md."""

_READABLE = 64 * 2**20  # bytes of a file up to which it is read to be patched
_SETTLING = 60.0  # seconds, after which all processes of the container are killed
_ROOT = ("0", "root", 0)
# A directory of the sources may have become a file, or a symlink that leads nowhere.
_DROP_COMPILED = """
for file; do
    name=${file##*/} compiled=${file%/*}/__pycache__
    [ -d "$compiled" ] || continue
    rm -f -- "$compiled/${name%.py}".*.pyc
done
"""


@dataclass(frozen=True, slots=True)
class File:
    """What is known of a regular file or a symlink."""

    mode: int | None = None
    """Permission bits; None for a symlink, and where unknown."""
    content: bytes | None = None
    """None for a symlink, and where unknown."""
    sha256: str | None = None
    """SHA-256 of the content; None where unknown."""
    symlink: str | None = None
    """Target of a symlink; None for a regular file."""


def sha256_of(content: bytes) -> str:
    """Return the SHA-256 of a content as changes record it."""
    return hashlib.sha256(content).hexdigest()


def describe_change(path: str, old: File | None, new: File | None, *, whole_limit: int, limit: int) -> list[Change]:
    """Return what became of a file: one change, or two where a file became a symlink or a symlink a file.

    Args:
        path: Relative to the working directory.
        old: The file before; None where it did not exist.
        new: The file now; None where it does not exist.
        whole_limit: Bytes up to which a file that is not text is recorded with its content.
        limit: Characters that a diff or content may have.
    """
    if old is not None and new is not None and (old.symlink is None) != (new.symlink is None):
        return [_change(path, old, None, whole_limit, limit), _change(path, None, new, whole_limit, limit)]
    return [_change(path, old, new, whole_limit, limit)]


def size_of(change: Change) -> int:
    """Return the characters of a change's diff or content."""
    return len(change["diff"] or "") + len(change["content"] or "")


def _change(path: str, old: File | None, new: File | None, whole_limit: int, limit: int) -> Change:
    symlink = new.symlink if new is not None else None
    change: Change = {
        "path": path,
        "kind": "added" if old is None else "deleted" if new is None else "modified",
        "mode": f"{new.mode:04o}" if new is not None and new.mode is not None else None,
        "diff": _diff(path, old, new, limit),
        "sha256": new.sha256 if new is not None else None,
        "content": None,
        "symlink": symlink,
    }
    content = new.content if new is not None else None
    if change["diff"] is None and content is not None and len(content) <= min(whole_limit, limit):
        change["content"] = base64.b64encode(content).decode()
    return change if size_of(change) <= limit else {**change, "diff": None, "content": None}


def _diff(path: str, old: File | None, new: File | None, limit: int) -> str | None:
    if old is not None and new is not None and old.sha256 is not None and old.sha256 == new.sha256:
        return ""  # Only its mode differs.
    before, after = _text(old), _text(new)
    if (old is not None and before is None) or (new is not None and after is None):
        return None
    # The diff of a new file is longer than the file.
    if before is None and after is not None and len(after) > limit:
        return None
    return unified_diff(path, before, after)


def _text(file: File | None) -> str | None:
    """Return a file's text; None where it is not UTF-8 that JSON keeps as it is."""
    if file is None or file.content is None or b"\0" in file.content:
        return None
    try:
        return file.content.decode()
    except UnicodeDecodeError:
        return None


def file_after(old: File | None, change: Mapping[str, Any]) -> File | None:
    """Return what a change makes of a file; None where it deletes it.

    The old content need not be known where the change has the new one.

    Raises:
        DiffError: The change has neither diff nor content, or does not fit the file.
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
        new = apply_diff("" if kind == "added" else _patchable(old), diff).encode()
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
    """Apply recorded changes to the files below a directory, byte for byte.

    Several changes of one path are applied one after the other. A file is left as it is where it is not what the
    recording began with, or where the recording does not have what it became.

    Args:
        environment: Where the files are.
        changes: In the order in which they were made.
        directory: Default: the working directory.
        user: Owner of the written files; None for the image's user.

    Returns:
        Why files were left as they are, by path.
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
            files[path] = file_after(files.get(path), change)
        except DiffError as error:
            refused[path] = str(error)
    touched = {change["path"] for change in changes} - refused.keys()
    write_files(environment, {path: files[path] for path in sorted(touched)}, directory=base, user=user)
    return refused


def _leads_out(change: Mapping[str, Any]) -> bool:
    """Whether a path leads out of the directory, or is not written in the normal form and could name another file."""
    path = PurePosixPath(change["path"])
    return path.is_absolute() or ".." in path.parts or str(path) in (".", "") or str(path) != change["path"]


def _read(environment: Environment, base: str, changes: Sequence[Mapping[str, Any]]) -> dict[str, File]:
    """Read the files that are to be patched, as far as they exist."""
    patches = {change["path"] for change in changes if change["kind"] == "modified" and change.get("diff") is not None}
    paths = {posixpath.join(base, path): path for path in sorted(patches)}
    found = environment.read_files(dict.fromkeys(paths, _READABLE)) if paths else {}
    return {paths[path]: File(content=content) for path, content in found.items() if isinstance(content, bytes)}


def write_files(
    environment: Environment, files: Mapping[str, File | None], *, directory: str | None = None, user: User | None = "0"
) -> None:
    """Write files by their relative paths, and remove those that are None; all contents have to be known."""
    base = directory or environment.workdir
    if gone := [posixpath.join(base, path) for path, file in files.items() if file is None]:
        environment.remove(gone)
    present = {path: file for path, file in files.items() if file is not None}
    present = {path: file for path, file in present.items() if not _is_below(path, present)}
    owner = _prepare(environment, base, list(present), user) if present and user not in _ROOT else ""
    if present:
        with scratch_directory() as staged:
            for path, file in present.items():
                _stage(Path(staged), path, file)
            environment.upload([Path(staged)], base)
    _settle(environment, base, files, owner)


def drop_empty_directories(environment: Environment, paths: Iterable[str]) -> None:
    """Remove the empty directories above relative paths."""
    if above := sorted({posixpath.dirname(path) for path in paths} - {""}):
        argv = ["rmdir", "-p", "--ignore-fail-on-non-empty", "--", *above]
        environment.exec(argv, user="0", timeout=_SETTLING)


def _is_below(path: str, files: Mapping[str, object]) -> bool:
    """Whether one of the files is where this path needs a directory: it may be a symlink, and lead elsewhere."""
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
    """Make missing directories as a user, and return the user's ids as ``chown`` takes them."""
    above = sorted({posixpath.dirname(posixpath.join(base, path)) for path in paths})
    script = 'mkdir -p -- "$@" >/dev/null 2>&1; id -u && id -g'
    answer = environment.exec(["bash", "-c", script, "mkdir", *above], user=user, cwd="/", timeout=_SETTLING)
    ids = answer.output.split()
    return ":".join(ids) if answer.ok and len(ids) == 2 else ""


def _settle(environment: Environment, base: str, files: Mapping[str, File | None], owner: str) -> None:
    """Give the files to their owner, and remove what Python has compiled of them.

    Python takes a source of the same size and modification time (in seconds) for the one that it has compiled.
    """
    if owner and (present := [posixpath.join(base, path) for path, file in files.items() if file is not None]):
        # It fails where there is only one user, in a rootless sandbox.
        environment.exec(["chown", "-h", owner, "--", *present], user="0", cwd="/", timeout=_SETTLING)
    if sources := [posixpath.join(base, path) for path in files if path.endswith(".py")]:
        answer = environment.exec(["bash", "-c", _DROP_COMPILED, "rm", *sources], user="0", cwd="/", timeout=_SETTLING)
        if not answer.ok:
            raise EnvironmentFault(f"what Python had compiled could not be removed: {answer.output.strip()}")
