"""Snapshots that travel from one Docker engine to another: their layers over the task's image, as archives.

What is taken along are the layers of the agent alone. On the other machine they are put on top of the image that is
built there from the same files; the engine gets them as it gets any saved image, without the layers that it has.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import logging
import os
import stat
import tarfile
import tempfile
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from pytest_evocode.environments.docker.change_lists import write_list
from pytest_evocode.environments.docker.faults import faults
from pytest_evocode.environments.docker.snapshots import COMMENT, changed_in_image, own_layers
from pytest_evocode.environments.protocol import ExportedLayer
from pytest_evocode.errors import EnvironmentFault

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

_DELETED, _OPAQUE = ".wh.", ".wh..wh..opq"
_IS_OPAQUE, _CAPABILITIES = "trusted.overlay.opaque", "security.capability"
_UNREADABLE = frozenset({"trusted.overlay.redirect", "trusted.overlay.metacopy"})
_CHANGES = "evocode.changes"
"""The name of an archive that has the list of what the snapshot changed; it is no layer of the image."""


def export_image(
    client: APIClient, image: Mapping[str, Any], below: int, known: Collection[str], target: Path
) -> list[ExportedLayer]:
    """Write the layers of an image above its first ``below`` to files, and the list of what is changed in them.

    Raises EnvironmentFault.
    """
    names: list[str] = image["RootFS"]["Layers"][below:]
    wanted = [(index, name) for index, name in enumerate(names) if name not in known]
    archives = {name: target / f"{index}.tar" for index, name in wanted}
    with faults("reading a snapshot"):
        if wanted and not _write_directories(image, below, archives):
            _write_saved(client, image, below, archives)
    layers = [ExportedLayer(name, archives.get(name)) for name in names]
    with contextlib.suppress(EnvironmentFault):  # Where nobody here knows it.
        changes = changed_in_image(image, below, ())
        digest = hashlib.sha256("\0".join(sorted(changes)).encode("utf-8", "surrogateescape")).hexdigest()
        name = f"{_CHANGES}:{digest}"
        path = None
        if name not in known:
            path = target / _CHANGES
            path.write_bytes(_tar_of({_CHANGES: json.dumps(sorted(changes)).encode()}))
        layers.append(ExportedLayer(name, path))
    return layers


def _write_directories(image: Mapping[str, Any], below: int, archives: Mapping[str, Path]) -> bool:
    """Write archives of the engine's own directories of layers; False where these cannot be read."""
    driver = image.get("GraphDriver") or {}
    if driver.get("Name") != "overlay2" or not os.access((driver.get("Data") or {}).get("UpperDir", ""), os.R_OK):
        return False
    directories = reversed(own_layers(image, below))
    try:
        for name, directory in zip(image["RootFS"]["Layers"][below:], directories, strict=True):
            if name in archives:
                with archives[name].open("wb") as file:
                    write_layer(directory, file)
    except OSError as error:
        logger.info("the layers of %.19s are read by the engine: %s", image["Id"], error)
        return False
    return True


def write_layer(directory: str, file: IO[bytes]) -> None:
    """Write a layer of an overlay file system as an image's layer, the same bytes for the same files.

    Raises OSError where it cannot be read, or has what only the kernel can read.
    """
    first: dict[int, str] = {}
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in _paths(directory):
            status = os.lstat(directory + path)
            if stat.S_ISSOCK(status.st_mode):
                continue
            name = path.lstrip("/")
            if stat.S_ISCHR(status.st_mode) and status.st_rdev == 0:
                above, _, last = name.rpartition("/")
                archive.addfile(tarfile.TarInfo(f"{above}/{_DELETED}{last}".lstrip("/")))
                continue
            info = _entry(directory + path, name, status)
            if stat.S_ISREG(status.st_mode) and status.st_ino in first:
                info.type, info.linkname, info.size = tarfile.LNKTYPE, first[status.st_ino], 0
            elif stat.S_ISREG(status.st_mode):
                first[status.st_ino] = name
            if info.type == tarfile.REGTYPE:
                with open(directory + path, "rb") as contents:
                    archive.addfile(info, contents)
            else:
                archive.addfile(info)
            if info.type == tarfile.DIRTYPE and _attribute(directory + path, _IS_OPAQUE) == b"y":
                archive.addfile(tarfile.TarInfo(f"{name}/{_OPAQUE}"))


def _paths(directory: str) -> Iterator[str]:
    """Yield the paths in a directory in a fixed order, each directory before what is in it."""
    waiting = [""]
    while waiting:
        here = waiting.pop()
        if here:
            yield here
        if not here or stat.S_ISDIR(os.lstat(directory + here).st_mode):
            waiting += sorted((f"{here}/{name}" for name in os.listdir(directory + here)), reverse=True)


def _entry(path: str, name: str, status: os.stat_result) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.mode, info.uid, info.gid = stat.S_IMODE(status.st_mode), status.st_uid, status.st_gid
    info.mtime = int(status.st_mtime)
    # Build tools compare times to the nanosecond.
    info.pax_headers = {"mtime": f"{status.st_mtime_ns // 10**9}.{status.st_mtime_ns % 10**9:09d}"}
    kinds = {
        stat.S_IFREG: tarfile.REGTYPE,
        stat.S_IFDIR: tarfile.DIRTYPE,
        stat.S_IFLNK: tarfile.SYMTYPE,
        stat.S_IFIFO: tarfile.FIFOTYPE,
        stat.S_IFCHR: tarfile.CHRTYPE,
        stat.S_IFBLK: tarfile.BLKTYPE,
    }
    info.type = kinds[stat.S_IFMT(status.st_mode)]
    if info.type == tarfile.REGTYPE:
        info.size = status.st_size
    if info.type == tarfile.SYMTYPE:
        info.linkname = os.readlink(path)
    if info.type in (tarfile.CHRTYPE, tarfile.BLKTYPE):
        info.devmajor, info.devminor = os.major(status.st_rdev), os.minor(status.st_rdev)
    if unreadable := _UNREADABLE.intersection(os.listxattr(path, follow_symlinks=False)):
        raise OSError(95, f"an attribute that only the kernel can read: {', '.join(unreadable)}", path)
    if (rights := _attribute(path, _CAPABILITIES)) is not None:
        shown = rights.decode("utf-8", "surrogateescape")
        info.pax_headers = {**info.pax_headers, f"SCHILY.xattr.{_CAPABILITIES}": shown}
    return info


def _attribute(path: str, name: str) -> bytes | None:
    try:
        return os.getxattr(path, name, follow_symlinks=False)
    except OSError:
        return None


def _write_saved(client: APIClient, image: Mapping[str, Any], below: int, archives: Mapping[str, Path]) -> None:
    """Write layers as the engine saves them, which reads the whole image."""
    directory = next(iter(archives.values())).parent
    with (directory / "saved").open("w+b") as saved:
        for chunk in client.get_image(image["Id"]):
            saved.write(chunk)
        saved.seek(0)
        with tarfile.open(fileobj=saved) as archive:
            (described,) = json.load(_member(archive, "manifest.json"))
            for name, path in zip(image["RootFS"]["Layers"][below:], described["Layers"][below:], strict=True):
                if name in archives:
                    _copy_layer(_member(archive, path), name, archives[name])
    (directory / "saved").unlink()


def _member(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    found = archive.extractfile(name)  # Follows the links that stand for layers which are there twice.
    if found is None:
        raise EnvironmentFault(f"the engine saved an image without {name}")
    return found


def _copy_layer(layer: IO[bytes], name: str, target: Path) -> None:
    digest = hashlib.sha256()
    with target.open("wb") as file:
        while chunk := layer.read(2**20):
            digest.update(chunk)
            file.write(chunk)
    if f"sha256:{digest.hexdigest()}" != name:
        raise EnvironmentFault(f"the engine saved the layer {name} with other contents")


def import_image(
    client: APIClient,
    base: Mapping[str, Any],
    reference: str,
    layers: Sequence[ExportedLayer],
    labels: Mapping[str, str],
) -> None:
    """Put layers on top of an image, under a name; raises EnvironmentFault."""
    changes = [each for each in layers if each.name.startswith(f"{_CHANGES}:")]
    archives = [each.archive for each in layers if each.archive is not None and each not in changes]
    digests = [_digest(path) for path in archives]
    below: list[str] = base["RootFS"]["Layers"]
    config = json.dumps({
        "architecture": base["Architecture"],
        "os": base["Os"],
        "config": {**(base.get("Config") or {}), "Labels": dict(labels)},
        "rootfs": {"type": "layers", "diff_ids": [*below, *digests]},
        # As many entries as layers, or the engine cannot tell the sizes of these.
        "history": [*({"created_by": "task"} for _ in below), *({"comment": COMMENT} for _ in archives)],
    }).encode()  # fmt: skip
    config_name = f"{hashlib.sha256(config).hexdigest()}.json"
    names = [f"{digest.removeprefix('sha256:')}/layer.tar" for digest in (*below, *digests)]
    manifest = json.dumps([{"Config": config_name, "RepoTags": [reference], "Layers": names}]).encode()
    with tempfile.TemporaryFile() as file:
        with tarfile.open(fileobj=file, mode="w") as archive:
            for name, path in dict(zip(names[len(below) :], archives, strict=True)).items():
                archive.add(path, name)
            for name, contents in ((config_name, config), ("manifest.json", manifest)):
                info = tarfile.TarInfo(name)
                info.size = len(contents)
                archive.addfile(info, io.BytesIO(contents))
        file.seek(0)
        with faults("bringing a snapshot"):
            answers = list(client.load_image(file))  # type: ignore[no-untyped-call]
            said = "; ".join(
                str(answer["error"]) for answer in answers if isinstance(answer, dict) and "error" in answer
            )
            if said:
                raise EnvironmentFault(f"the engine does not take the layers of {reference}: {said}")
            image = client.inspect_image(reference)  # type: ignore[no-untyped-call]
    for each in changes:
        if each.archive is not None:
            with tarfile.open(each.archive) as archive:
                write_list(image["Id"], json.load(_member(archive, _CHANGES)))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"


def _tar_of(files: Mapping[str, bytes]) -> bytes:
    written = io.BytesIO()
    with tarfile.open(fileobj=written, mode="w") as archive:
        for name, contents in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(contents)
            archive.addfile(info, io.BytesIO(contents))
    return written.getvalue()
