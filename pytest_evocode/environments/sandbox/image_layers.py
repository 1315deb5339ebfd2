"""What the launcher's workers do with the files of images: layers that are unpacked, and what COPY --from takes out.

Nothing of an image is executed for that, and an image needs no program of its own. Standard library only.
"""

from __future__ import annotations

import contextlib
import fnmatch
import os
import posixpath
import stat
import tarfile
from collections.abc import Iterable, Iterator
from typing import Any

from ..overlay import Entry, LayeredFiles, is_device_whiteout, whiteout_attribute
from .files import make_way, remove_path
from .identity import own_user_namespace
from .mounts import OPAQUE

_CHUNK = 2**20  # bytes
_WHITEOUT, _OPAQUE, _OF_AUFS = ".wh.", ".wh..wh..opq", ".wh..wh."
_ATTRIBUTE = "SCHILY.xattr."
_OF_OVERLAYS = "user.overlay."
_WILDCARDS = frozenset("*?[")


def apply_layer(request: dict[str, Any], stream: int) -> dict[str, Any]:
    """Unpack a layer of an image, a tar in a pipe, over those below it.

    The image's directory is the root of this process meanwhile, so that no name, no ``..`` and no link leads out of it.
    """
    own_user_namespace()
    os.umask(0)
    os.chroot(request["root"])
    os.chdir("/")
    made: set[str] = set()
    times: dict[str, float] = {}
    with os.fdopen(stream, "rb") as file:
        with tarfile.open(fileobj=file, mode="r|", bufsize=_CHUNK) as archive:
            for member in archive:
                path = posixpath.normpath("/" + member.name.strip("/"))
                name = posixpath.basename(path)
                if name.startswith(_WHITEOUT):
                    _white_out(path, made)
                elif _make(archive, member, path):
                    made.add(path)
                    if not member.islnk():
                        _give(path, member, request["rootless"])
                    if member.isdir():
                        times[path] = member.mtime
        while file.read(_CHUNK):  # Padding follows the archive's end; its writer waits until it is read.
            pass
    for path, time in times.items():  # What is made in a directory changes its times.
        _set_time(path, time)
    return {}


def part_usr(request: dict[str, Any]) -> dict[str, Any]:
    """Move ``/usr`` of an unpacked image beside its root, as layers of sandboxes have it."""
    own_user_namespace()
    root = request["root"]
    usr = f"{root}/usr"
    if not os.path.lexists(usr):
        os.mkdir(usr, 0o755)
        os.chmod(usr, 0o755)
    if not stat.S_ISDIR(os.lstat(usr).st_mode):
        raise NotADirectoryError("its /usr is no directory")
    os.rename(usr, request["usr"])
    os.mkdir(usr, 0o755)
    return {}


def rewrite_whiteouts(request: dict[str, Any]) -> dict[str, Any]:
    """Make the whiteouts of layers empty files with an attribute, which any file system can hold.

    An overlay takes no device that is a whiteout of another. Lower layers may have such files since Linux 6.8.
    """
    own_user_namespace()
    for layer in request["layers"]:
        for directory, _, names in os.walk(layer):
            paths = [f"{directory}/{name}" for name in names]
            if whiteouts := [path for path in paths if is_device_whiteout(os.lstat(path))]:
                _rewrite_whiteouts(directory, whiteouts)
    return {}


def _rewrite_whiteouts(directory: str, whiteouts: Iterable[str]) -> None:
    before = os.stat(directory)
    is_opaque = OPAQUE in os.listxattr(directory) and os.getxattr(directory, OPAQUE) == b"y"
    for path in whiteouts:
        os.unlink(path)
        if not is_opaque:  # Nothing is there to be hidden.
            os.close(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644))
            os.setxattr(path, whiteout_attribute(OPAQUE), b"y")
    if not is_opaque:
        os.setxattr(directory, OPAQUE, b"x")  # The kernel looks for such files nowhere else.
    os.utime(directory, ns=(before.st_atime_ns, before.st_mtime_ns))


def _white_out(path: str, made: set[str]) -> None:
    """Remove what a whiteout names, or all in its directory that is not of the same layer."""
    above, name = posixpath.split(path)
    if name == _OPAQUE:
        kept = made | {parent for each in made for parent in _parents(each)}
        _empty(above, kept)
    elif not name.startswith(_OF_AUFS):
        hidden = name.removeprefix(_WHITEOUT)
        if hidden in ("", ".", ".."):
            raise tarfile.TarError(f"{path} hides no file")
        remove_path(posixpath.join(above, hidden))


def _parents(path: str) -> Iterator[str]:
    while path != "/":
        path = posixpath.dirname(path)
        yield path


def _empty(directory: str, kept: set[str]) -> None:
    if not _is_real_directory(directory):
        return
    for name in os.listdir(directory):
        path = posixpath.join(directory, name)
        if path not in kept:
            remove_path(path)
        elif _is_real_directory(path):
            _empty(path, kept)


def _make(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> bool:
    """Make what an entry is in place of what is there; False for a device, for which there is no use."""
    if member.isdir():
        if not _is_real_directory(path):
            make_way(path)
            os.mkdir(path)
        return True
    if path == "/":
        raise tarfile.TarError("its root is no directory")
    target = posixpath.normpath("/" + member.linkname.lstrip("/"))
    if member.islnk() and target == path:
        return False
    make_way(path)
    if member.isreg():
        _write(archive, member, path)
    elif member.issym():
        os.symlink(member.linkname, path)
    elif member.islnk():
        os.link(target, path, follow_symlinks=False)
    elif member.isfifo():
        os.mkfifo(path)
    else:
        return False
    return True


def _write(archive: tarfile.TarFile, member: tarfile.TarInfo, path: str) -> None:
    contents = archive.extractfile(member)
    assert contents is not None  # It is a regular file.
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        while chunk := contents.read(_CHUNK):
            file.write(chunk)


def _give(path: str, member: tarfile.TarInfo, rootless: bool) -> None:
    """Give a file what its entry says of owner, mode, time and attributes, as far as that can be here."""
    if not rootless:
        os.chown(path, member.uid, member.gid, follow_symlinks=False)
    if not member.issym():
        os.chmod(path, member.mode & 0o7777)  # After the owner, whose change takes set-id bits away.
    for name, value in member.pax_headers.items():
        attribute = name.removeprefix(_ATTRIBUTE)
        # Of overlays it would say to the kernel what this layer is.
        if attribute == name or attribute.startswith(_OF_OVERLAYS):
            continue
        if attribute.startswith("user.") or attribute == "security.capability":
            with contextlib.suppress(OSError):
                os.setxattr(path, attribute, value.encode("utf-8", "surrogateescape"), follow_symlinks=False)
    _set_time(path, member.mtime)


def _set_time(path: str, time: float) -> None:
    with contextlib.suppress(OSError, OverflowError):  # It is no time, or the directory was removed again.
        os.utime(path, (time, time), follow_symlinks=False)


def _is_real_directory(path: str) -> bool:
    try:
        return stat.S_ISDIR(os.lstat(path).st_mode)
    except OSError:
        return False


def _followed(files: LayeredFiles, path: str) -> str:
    return files.resolve(path).rstrip("/")


def _match(files: LayeredFiles, pattern: str) -> list[str]:
    paths = [""]
    for part in posixpath.normpath("/" + pattern.lstrip("/")).strip("/").split("/"):
        if part and _WILDCARDS & {*part}:
            paths = [f"{path}/{name}" for path in paths for name in fnmatch.filter(_names(files, path), part)]
        elif part:
            paths = [f"{path}/{part}" for path in paths]
    return paths


def _names(files: LayeredFiles, path: str) -> list[str]:
    """Return the names in a directory, links to it followed; none where there is no directory."""
    here = _followed(files, path)
    entry = files.find(here)
    if entry is None or not entry.is_directory:
        return []
    return sorted(name for name in entry.names_beside(None) if files.find(f"{here}/{name}") is not None)


def pack_from_layers(request: dict[str, Any], output: int) -> dict[str, Any]:
    """Pack what patterns find in an image into a pipe, as it is to be at a target, which is a directory or a new name.

    The reply has the names in the target and whether they go into it, or the first pattern that finds nothing.
    """
    own_user_namespace()
    files = LayeredFiles(request["layers"], OPAQUE, request["hidden"])
    found: list[tuple[str, bool]] = []
    names: set[str] = set()
    with os.fdopen(output, "wb") as file, tarfile.open(fileobj=file, mode="w|", bufsize=_CHUNK) as archive:
        for pattern in request["patterns"]:
            entries = [(path, files.find(_followed(files, path))) for path in _match(files, pattern)]
            there = [(path, entry.is_directory) for path, entry in entries if entry is not None]
            if not there:
                return {"missing": pattern}
            found += there
        is_target_directory = request["is_directory"] or len(found) > 1 or found[0][1]
        for path, is_directory in found:
            target = request["target"]
            own = posixpath.basename(path if is_target_directory else target)
            names |= {*_names(files, path)} if is_directory else {own}
            if is_target_directory and not is_directory:
                target = f"{target}/{own}"
            for entry, name in _walk(files, _followed(files, path), target):
                if name:  # The root is there.
                    _pack(archive, entry.places[0], name)
    return {"names": [*names], "is_directory": is_target_directory}


def _pack(archive: tarfile.TarFile, place: str, name: str) -> None:
    info = archive.gettarinfo(place, name)
    if info is None or info.ischr() or info.isblk():  # A socket, which tar has no entry for, or a device.
        return
    if info.isreg():
        with open(place, "rb") as contents:
            archive.addfile(info, contents)
    else:
        archive.addfile(info)


def _walk(files: LayeredFiles, path: str, target: str) -> Iterable[tuple[Entry, str]]:
    """Yield what stands at a path and all below it, directories first, with the names that they get."""
    waiting = [(path, target)]
    while waiting:
        path, target = waiting.pop()
        entry = files.find(path)
        if entry is None:
            continue
        yield entry, target.lstrip("/")
        if entry.is_directory:
            waiting += [(f"{path}/{name}", f"{target}/{name}") for name in reversed(_names(files, path))]
