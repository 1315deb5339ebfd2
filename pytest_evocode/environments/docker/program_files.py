"""Files that a suite's tests write into a container, and what they see there, names and all.

What is small goes over the channel: a transfer by the engine costs it a process of 80 ms.
"""

from __future__ import annotations

import errno
import io
import posixpath
import shlex
import stat
import tarfile
import time
from collections.abc import Callable, Mapping
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.environments.docker.channel import REQUEST_LIMIT, as_printf_format
from pytest_evocode.environments.docker.files import LOOP, ContainerFiles, nanoseconds, paused, streamed
from pytest_evocode.environments.programs import CappedOutput, FileKind, FileStatus

if TYPE_CHECKING:
    from docker import APIClient

_DIRECTORY = 1 << 31
# Go's mode bits, and what they are to everybody else.
_KINDS: tuple[tuple[int, FileKind], ...] = (
    (_DIRECTORY, "directory"),
    (1 << 27, "link"),
    (1 << 26 | 1 << 25 | 1 << 24 | 1 << 21 | 1 << 19, "other"),
)
_SPECIAL_BITS = ((1 << 23, stat.S_ISUID), (1 << 22, stat.S_ISGID), (1 << 20, stat.S_ISVTX))


def status_of(client: APIClient, files: ContainerFiles, path: str) -> FileStatus | None:
    """Return what stands at an absolute path as :meth:`Environment.file_status` does."""
    found = files.look_up(path.rstrip("/") or "/")
    if found is None:
        return None
    mode = int(found["mode"])
    kind: FileKind = next((kind for bits, kind in _KINDS if mode & bits), "file")
    return FileStatus(
        kind=kind,
        size=int(found["size"]) if kind == "file" else 0,
        mode=mode & 0o777 | sum(bit for go, bit in _SPECIAL_BITS if mode & go),
        modified=nanoseconds(found["mtime"]) / 10**9,
        # The engine gives no archive of symlinks that lead to each other.
        target=_target(client, files.container, path) if kind == "link" and found is not LOOP else "",
    )


def _target(client: APIClient, container: str, path: str) -> str:
    """Return where a link points to; the engine's description has that resolved, only its archive as it is."""
    from docker.errors import NotFound

    with faults(f"reading the link {path}"):
        try:
            chunks, _ = client.get_archive(container, path.encode("utf-8", "surrogateescape"))
        except NotFound:
            return ""
        with streamed(chunks) as stream, tarfile.open(fileobj=stream, mode="r|") as archive:
            member = archive.next()
            return member.linkname if member is not None and member.issym() else ""


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


def write_files(
    client: APIClient, container: ContainerFiles, directory: str, files: Mapping[str, bytes], uid: int, gid: int
) -> None:
    """Write files as :meth:`Environment.write_files` does, for an owner given by number."""
    directory = directory.rstrip("/") or "/"
    channel = container.channel
    small = sum(map(len, files.values())) <= REQUEST_LIMIT
    if small and channel.control(_writing_script(directory, files, uid, gid)):
        return
    # The engine follows links, and so nothing may be put in the way between what is looked at and what is written.
    with paused(client, container.container):
        _write_by_engine(container, directory, files, uid, gid)


def _writing_script(directory: str, files: Mapping[str, bytes], uid: int, gid: int) -> str:
    """Return the script that writes files; it fails, maybe half done, where it does not know what to do."""
    ways = "; ".join(f"way {shlex.quote(part)}" for part in PurePosixPath(directory).parts[1:])
    owner = f"{uid}:{gid}" if uid or gid else ""
    lines = [f"owner={owner}", f"cd -- {shlex.quote(directory)} || {{ cd /; {ways}; }}", "exec 6<."]
    places: dict[PurePosixPath, list[str]] = {}
    for name in files:
        places.setdefault(PurePosixPath(name).parent, []).append(name)
    for place, names in places.items():
        lines += ["cd /proc/self/fd/6 || exit 9", *(f"down {shlex.quote(part)}" for part in place.parts)]
        own = [shlex.quote(posixpath.basename(name)) for name in names]
        lines += [f"put {base} '{as_printf_format(files[name])}'" for name, base in zip(names, own, strict=True)]
        lines.append(f"own {' '.join(own)}")
    return f"({_WRITER}{chr(10).join(lines)}\n) 3>&- 4>&-"


def _write_by_engine(container: ContainerFiles, directory: str, files: Mapping[str, bytes], uid: int, gid: int) -> None:
    from docker.errors import APIError

    made = [] if container.is_directory(directory) else [directory]
    while made and (above := posixpath.dirname(made[-1])) != "/" and not container.is_directory(above):
        made.append(above)
    made.reverse()
    if made and container.look_up(made[0]) is not None:
        raise NotADirectoryError(f"nothing can be written to {directory}: there is no directory at {made[0]}")
    present = {directory} - set(made)
    wanted = {parent for name in files for parent in PurePosixPath(directory, name).parents}
    for path in sorted(str(path) for path in wanted if path.is_relative_to(directory) and str(path) != directory):
        if posixpath.dirname(path) in present and _is_real_directory(container, path):
            present.add(path)
        else:
            made.append(path)
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for path in made:
            _add(archive, path, None, uid, gid)
        for name, contents in files.items():
            _add(archive, posixpath.join(directory, name), contents, uid, gid)
    refusal = None
    with faults(f"writing files to {directory}"):
        try:
            container.put(stream.getvalue())
        except APIError as error:
            if container.look_up("/") is None:  # There is no such container any more.
                raise
            refusal = error.explanation or str(error)
    if refusal is not None:  # What the agent made is in the way, or has left no space: no fault of the engine's.
        raise OSError(errno.EIO, f"files cannot be written to {directory}: {refusal}")


def _is_real_directory(container: ContainerFiles, path: str) -> bool:
    found = container.look_up(path)
    return found is not None and bool(int(found["mode"]) & _DIRECTORY)


def _add(archive: tarfile.TarFile, path: str, contents: bytes | None, uid: int, gid: int) -> None:
    """Add a file, or without contents a directory, at an absolute path."""
    info = tarfile.TarInfo(path.lstrip("/"))
    info.uid, info.gid, info.mtime = uid, gid, time.time()
    if contents is None:
        info.type, info.mode = tarfile.DIRTYPE, 0o755
    else:
        info.size = len(contents)
    archive.addfile(info, None if contents is None else io.BytesIO(contents))


# Bash's own globbing, which needs no other program. What is printed first says what follows.
_LIST = """[[ -d $1 && ! -L $1 ]] && cd -P -- "$1" || { printf no; exit; }
shopt -s nullglob dotglob; set -- "$2" *
(($# - 1 > $1)) && { printf more; exit; }
shift; printf names; (($# == 0)) || printf '%s\\0' "$@" """
_NAME = 256  # bytes of a file's name at most, with a NUL behind it


def list_names(
    container: ContainerFiles, path: str, limit: int, run: Callable[[tuple[str, ...], CappedOutput], None]
) -> list[str]:
    """List a directory as :meth:`Environment.list_directory` does.

    ``run`` runs a command for the case that the channel is not free.
    """
    directory = path.rstrip("/") or "/"
    output = CappedOutput((limit + 1) * _NAME)
    script = f"(LC_ALL=C; set -- {shlex.quote(directory)} {limit}\n{_LIST}) 3>&- 4>&-"
    if not container.channel.ask(script, output):
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
