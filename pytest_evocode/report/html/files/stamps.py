"""Whether files changed since a report was written: by their names, sizes and times, without reading them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from functools import cache
from pathlib import Path

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
    return stamp(Path(__file__).parents[1])
