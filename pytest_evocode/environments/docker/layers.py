"""Layers as archives: what a container has changed since a snapshot, and images with more layers on top."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import operator
import os
import stat
import tarfile
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.overlay import Entry, LayeredFiles
from pytest_evocode.environments.tree_archives import CHUNK, parents
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

#: What the engine's history of an image says of a layer that a snapshot put there.
COMMENT = "evocode snapshot"
_CAPABILITIES = "security.capability"
_KNOWN = operator.itemgetter(stat.ST_MODE, stat.ST_UID, stat.ST_GID, stat.ST_SIZE, stat.ST_MTIME)
_FILE = 16 * 2**10
"""Bytes that the engine could write in the time that it takes for a file beside its contents."""
_WORTH = 4 * 2**20  # bytes: an image of a few more files costs the engine less than a look at these


def pack_changes(new: LayeredFiles, old: LayeredFiles, target: IO[bytes]) -> bool:
    """Write a layer that makes the files of ``old`` those of ``new``; False where a copy of all would cost no more.

    Nobody may write to any of them meanwhile. Files are compared by what is in them, so that no change goes unseen.

    Raises:
        OSError: They cannot be read.
        ValueError: A name has no place in an archive.
    """
    if any(Path("/sys/module/overlay/parameters", each).read_text() != "N\n" for each in ("redirect_dir", "metacopy")):
        return False  # Then a layer may have directories and files whose contents are elsewhere.
    changed: dict[str, Entry | None] = {}
    saved, waiting = 0, [""]
    while waiting:
        here = waiting.pop()
        found, before = new.find(here), old.find(here)
        assert found is not None
        names = found.names_beside(before)
        if before is not None and before.is_directory:
            names |= before.names_beside(found)
        for path in (f"{here}/{name}" for name in names):
            entry, other = new.find(path), old.find(path)
            size = 0 if entry is None or entry.is_directory else entry.status.st_size + _FILE
            if entry is not None and entry.is_directory:
                waiting.append(path)
            if entry is not None and _equal(entry, other):
                saved += size
            elif entry is not other:
                saved -= size
                changed[path] = entry
    if saved < _WORTH or any("/.wh." in path for path in changed):  # Such names are those of deletions.
        return False
    for path in list(changed):
        changed.update((above, new.find(above)) for above in parents(path))
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(changed):
            _pack(archive, path, changed[path])
    target.seek(0)
    return True


def _equal(one: Entry, other: Entry | None) -> bool:
    """Tell whether two entries are the same for the engine, which keeps whole seconds and capabilities."""
    if other is None or _KNOWN(one.status) != _KNOWN(other.status):
        return False
    here, there, mode = one.places[0], other.places[0], one.status.st_mode
    if stat.S_ISLNK(mode):
        return os.readlink(here) == os.readlink(there)
    if not stat.S_ISREG(mode):
        return one.is_directory
    # Which names are those of one file is for the archive to say.
    alone = one.status.st_nlink == 1 and (not mode & 0o111 or _capabilities(here) == _capabilities(there))
    return alone and _same_contents(here, there)


def _capabilities(place: str) -> bytes:
    with contextlib.suppress(OSError):
        return os.getxattr(place, _CAPABILITIES, follow_symlinks=False)
    return b""


def _same_contents(one: str, other: str) -> bool:
    with open(one, "rb", buffering=0) as left, open(other, "rb", buffering=0) as right:
        while (chunk := left.read(CHUNK)) == right.read(CHUNK):
            if not chunk:
                return True
    return False


def _pack(archive: tarfile.TarFile, path: str, entry: Entry | None) -> None:
    above, _, name = path.lstrip("/").rpartition("/")
    if entry is None or stat.S_ISSOCK(entry.status.st_mode):  # An image has no socket.
        archive.addfile(tarfile.TarInfo(f"{above}/.wh.{name}".lstrip("/")))
        return
    place = entry.places[0]
    info = archive.gettarinfo(place, path.lstrip("/"))
    info.mtime, info.uname, info.gname = int(entry.status.st_mtime), "", ""
    if found := _capabilities(place):
        info.pax_headers = {f"SCHILY.xattr.{_CAPABILITIES}": found.decode("utf-8", "surrogateescape")}
    with open(place, "rb") if info.isreg() else contextlib.nullcontext() as contents:
        archive.addfile(info, contents)


def put_on_top(
    client: APIClient, base: Mapping[str, Any], name: str, archives: Sequence[Any], labels: Mapping[str, str], own: int
) -> None:
    """Make an image of layers on top of another one.

    Args:
        client: A client of the engine.
        base: The engine's description of the image below.
        name: Of the new image.
        archives: The layers, the lowest first.
        labels: Of the new image.
        own: The index of the first layer that is of snapshots and not of the task's image.

    Raises:
        EnvironmentFault: The engine does not take them.
    """
    digests = [f"sha256:{hashlib.file_digest(each, 'sha256').hexdigest()}" for each in archives]
    layers = [*base["RootFS"]["Layers"], *digests]
    config = json.dumps({
        "architecture": base["Architecture"],
        "os": base["Os"],
        "config": {**(base.get("Config") or {}), "Labels": dict(labels)},
        "rootfs": {"type": "layers", "diff_ids": layers},
        # As many entries as layers, or the engine cannot tell the sizes of these.
        "history": [{"comment": COMMENT if index >= own else "task"} for index in range(len(layers))],
    }).encode()  # fmt: skip
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{digest.removeprefix('sha256:')}/layer.tar" for digest in layers]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [name], "Layers": names}]).encode()
    added = dict(zip(names[len(base["RootFS"]["Layers"]) :], archives, strict=True))
    parts = {**added, config_name: io.BytesIO(config), "manifest.json": io.BytesIO(manifest)}
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for part, contents in parts.items():
                info = tarfile.TarInfo(part)
                info.size = contents.seek(0, os.SEEK_END)
                contents.seek(0)
                archive.addfile(info, contents)
        file.seek(0)
        answers = list(client.load_image(file))  # type: ignore[no-untyped-call]
    said = "; ".join(str(answer["error"]) for answer in answers if isinstance(answer, dict) and "error" in answer)
    if said:
        raise EnvironmentFault(f"the engine does not take the layers of {name}: {said}")
