"""Differences of two directory trees in Git's form, which ``patch`` and ``git apply`` understand."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pytest_evocode.environments import Environment
from pytest_evocode.errors import EnvironmentFault, FilesNotListed
from pytest_evocode.tasks.content_hash import is_dropping
from pytest_evocode.trajectories.diffs import side_name, unified_diff
from pytest_evocode.trajectories.file_changes import File
from pytest_evocode.trajectories.workspace_changes import CACHES, hash_files, is_reflog, list_files, read_files

Tree = Mapping[str, File]
"""Files by their relative paths."""

_READ = 4 * 2**20  # bytes of a file up to which its lines are compared
_BINARY = 8000  # bytes at the beginning in which a zero makes a file binary, as Git has it


def workspace_tree(environment: Environment) -> Tree:
    """Return the files of an environment's working directory, without caches and Git's own.

    Raises:
        EnvironmentFault: They cannot be listed.
    """
    try:
        listed = {path: entry for path, entry in list_files(environment).items() if not is_reflog(path)}
    except FilesNotListed as error:
        raise EnvironmentFault(f"the files of {environment.workdir} cannot be listed: {error}") from None
    regular = {path: entry.size for path, entry in listed.items() if entry.symlink is None}
    contents = read_files(environment, [path for path, size in regular.items() if size <= _READ], _READ)
    hashes = hash_files(environment, sorted(regular.keys() - contents.keys()))
    return {
        path: File(symlink=entry.symlink)
        if entry.symlink is not None
        else _file(entry.mode, contents.get(path), hashes.get(path))
        for path, entry in listed.items()
    }


def host_tree(directory: Path, place: str = "") -> Tree:
    """Return the files below a directory of the host as if they were below ``place``, without droppings of tools."""
    found: dict[str, File] = {}
    for root, names, files in os.walk(directory):
        linked = [name for name in names if os.path.islink(os.path.join(root, name))]
        names[:] = sorted(name for name in names if name not in CACHES and not is_dropping(name))
        for name in (name for name in [*files, *linked] if not is_dropping(name)):
            path = Path(root, name)
            relative = os.path.normpath(os.path.join(place, os.path.relpath(path, directory)))
            mode = path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found[relative] = File(symlink=os.readlink(path))
            elif stat.S_ISREG(mode):
                found[relative] = _file(stat.S_IMODE(mode), path.read_bytes(), None)
    return found


def tree_patches(old: Tree, new: Tree) -> Iterator[str]:
    """Yield a patch for each path at which two trees differ, in order.

    Bytes that are not UTF-8 are in it as ``surrogateescape`` has them.
    """
    for path in sorted(old.keys() | new.keys()):
        before, after = old.get(path), new.get(path)
        if before is not None and after is not None and (before.symlink is None) != (after.symlink is None):
            yield _patch(path, before, None)  # Another kind of file takes two patches.
            before = None
        if before != after:
            yield _patch(path, before, after)


def _file(mode: int, content: bytes | None, digest: str | None) -> File:
    # Only what Git knows of a mode: others differ with whoever made the file.
    executable = bool(mode & stat.S_IXUSR)
    return File(mode=0o755 if executable else 0o644, content=content, sha256=digest)


def _patch(path: str, old: File | None, new: File | None) -> str:
    names = (side_name("a", path), side_name("b", path))
    lines = [f"diff --git {names[0]} {names[1]}"]
    if old is None and new is not None:
        lines.append(f"new file mode {_git_mode(new)}")
    elif old is not None and new is None:
        lines.append(f"deleted file mode {_git_mode(old)}")
    elif old is not None and new is not None and old.mode != new.mode:
        lines += [f"old mode {_git_mode(old)}", f"new mode {_git_mode(new)}"]
    head = "".join(f"{line}\n" for line in lines)
    texts = [None if file is None else _text(file) for file in (old, new)]
    if any(file is not None and text is None for file, text in zip((old, new), texts, strict=True)):
        same = old is not None and new is not None and replace(old, mode=None) == replace(new, mode=None)
        sides = ["/dev/null" if file is None else name for file, name in zip((old, new), names, strict=True)]
        return head if same else f"{head}Binary files {sides[0]} and {sides[1]} differ\n"
    return head + _ending_names(unified_diff(path, texts[0], texts[1]))


def _ending_names(diff: str) -> str:
    """Return a diff with a tab after names that have blanks, as Git writes it: ``patch`` ends names at blanks."""
    lines = diff.split("\n", 2)
    return "\n".join([*(f"{line}\t" if " " in line[4:] else line for line in lines[:2]), *lines[2:]])


def _git_mode(file: File) -> str:
    return "120000" if file.symlink is not None else f"100{file.mode:o}"


def _text(file: File) -> str | None:
    """Return the text of a file; None where it has none, or is too large."""
    if file.symlink is not None:
        return file.symlink
    if file.content is None or b"\0" in file.content[:_BINARY]:
        return None
    return file.content.decode("utf-8", "surrogateescape")
