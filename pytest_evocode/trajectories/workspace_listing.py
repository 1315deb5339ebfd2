"""Lists the files below an environment's working directory with one command, and reads some of them."""

from __future__ import annotations

import contextlib
import io
import posixpath
import re
import stat
import tarfile
from collections.abc import Collection, Iterator
from dataclasses import dataclass

from pytest_evocode.environments import Environment
from pytest_evocode.errors import FilesNotListed

#: Names of directories that tools fill by themselves. Virtual environments and directories with a CACHEDIR.TAG count as
#: well, whatever their names.
CACHES = (
    *("__pycache__", "node_modules", ".venv", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox"),
    *(".nox", ".cache", ".npm", ".gradle"),
)
_SIGNS = ("pyvenv.cfg", "CACHEDIR.TAG")
_COMPILED = (".pyc", ".pyo")
#: Git's log of every move of HEAD.
REFLOG = ".git/logs/HEAD"

_FEW = 16  # files up to which they are read one by one, which takes some environments milliseconds each
_PACKED = 500  # files per archive
_LIMIT = 64 * 2**20  # bytes of a listing; about half a million files
# Seconds, after which all processes of the container are killed: only for what would never end.
_TIMEOUT = 120.0

# Of a repository only the reflog is listed.
_PRUNED = " -o ".join(f"-name {name}" for name in CACHES)
_FIND = rf"""
exec 2>/dev/null
exec find . -ignore_readdir_race \
  \( -path '*/.git/*' ! -path '*/.git/logs' ! -path '*/.git/logs/HEAD' -o -type d \( {_PRUNED} \) \) -prune -o \
  \( -type f -o -type l -o -path . \) -printf '\0%y %m %s %C@ %i %T@ %l\0%p\0'
"""
# For containers without GNU find; names with a line feed are left out.
_WALK = rf"""
exec 2>/dev/null
shopt -s dotglob nullglob
files=()
walk() {{
  local entry name
  for entry in "$1"/*; do
    name=${{entry##*/}}
    if [[ $name == *$'\n'* ]]; then continue
    elif [[ -L $entry ]]; then files+=("$entry"); printf 'L%s\0%s\0' "$entry" "$(readlink -- "$entry")"
    elif [[ -f $entry ]]; then files+=("$entry")
    elif [[ -d $entry ]]; then
      case $name in
        {"|".join(CACHES)}) ;;
        .git) [[ -f $entry/logs/HEAD ]] && files+=("$entry/logs/HEAD") ;;
        *) walk "$entry" ;;
      esac
    fi
  done
}}
[[ -n $(stat -c %f .) ]] || exit 127
walk .
for ((i = 0; i < ${{#files[@]}}; i += 500)); do
  stat -c '%f %s %Z %i [%y/%z] %n' -- "${{files[@]:i:500}}"
done
exit 0
"""
_FOUND = re.compile(r"([fld]) ([0-7]+) (\d+) (\d+\.\d+) (\d+ \S+) (.*)", re.DOTALL)
_WALKED = re.compile(r"([0-9a-f]+) (\d+) (\d+) (\d+ \[[^\]]*\]) (\./.+)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class ListedFile:
    """A regular file or a symlink, with what tells whether it has changed."""

    mode: int
    size: int
    """Bytes."""
    changed: float
    """Time of the last change of any kind (ctime), in seconds since 1970, rounded up."""
    stamp: str
    """Differs after every change, except within one tick of the kernel's clock."""
    symlink: str | None
    """Target of a symlink; None for a regular file."""


def list_files(environment: Environment) -> dict[str, ListedFile]:
    """Return the files and symlinks below the working directory by relative path, reflogs included, caches left out.

    Raises :class:`FilesNotListed` where the directory is gone or the container has no programs to list it.
    """
    found = _run(environment, _FIND)
    entries = _read_found(found) if found is not None else None
    if entries is None:
        walked = _run(environment, _WALK)
        if walked is None:
            raise FilesNotListed("the container has neither GNU find nor stat")
        entries = dict(_read_walked(walked))
    caches = {path.rpartition("/")[0] for path in entries if path.rpartition("/")[2] in _SIGNS} - {""}
    return {path: entry for path, entry in entries.items() if not _is_cached(path, caches)}


def _is_cached(path: str, caches: set[str]) -> bool:
    if path.endswith(_COMPILED) or path == ".git" or path.endswith("/.git"):
        return True
    return bool(caches) and any(path.startswith(f"{cache}/") for cache in caches)


class _Sink(io.BytesIO):
    """A buffer that stops growing at the limit of a listing."""

    def write(self, chunk: object) -> int:
        assert isinstance(chunk, bytes | bytearray)
        if self.tell() <= _LIMIT:
            super().write(chunk)
        return len(chunk)


def _run(environment: Environment, script: str) -> bytes | None:
    """Run a listing script and return its output; None where the container lacks a program for it."""
    output = _Sink()
    ended = environment.exec(script, user="0", cwd=environment.workdir, timeout=_TIMEOUT, stdout=output)
    if ended.timed_out:
        raise FilesNotListed(f"listing the files took more than {_TIMEOUT:.0f} s")
    if output.tell() > _LIMIT:
        raise FilesNotListed("there are too many files")
    if ended.exit_code == 126:
        raise FilesNotListed("the working directory is gone")
    return output.getvalue() if ended.exit_code in (0, 1) else None


def _read_found(output: bytes) -> dict[str, ListedFile] | None:
    """Parse the output of find; None where it is not GNU find's."""
    fields = output.decode("utf-8", "surrogateescape").split("\0")
    entries = {}
    complete = False
    for about, path in zip(fields[1::3], fields[2::3], strict=False):
        if (match := _FOUND.fullmatch(about)) is None:
            return None
        kind, mode, size, changed, rest, target = match.groups()
        complete |= path == "."
        if kind == "d":
            continue
        stamp = f"{changed} {rest} {size}"
        symlink = target if kind == "l" else None
        entries[path.removeprefix("./")] = ListedFile(int(mode, 8), int(size), float(changed), stamp, symlink)
    return entries if complete else None


def _read_walked(output: bytes) -> Iterator[tuple[str, ListedFile]]:
    text = output.decode("utf-8", "surrogateescape")
    links, _, rest = text.rpartition("\0")
    fields = links.split("\0")
    targets = {path.removeprefix("L"): target for path, target in zip(fields[::2], fields[1::2], strict=False)}
    for line in rest.split("\n"):
        if match := _WALKED.fullmatch(line):
            mode, size, changed, stamp, path = match.groups()
            bits = int(mode, 16)
            symlink = targets.get(path, "") if stat.S_ISLNK(bits) else None
            # The time is in whole seconds, rounded down.
            yield (
                path.removeprefix("./"),
                ListedFile(stat.S_IMODE(bits), int(size), int(changed) + 1.0, f"{changed} {stamp} {size}", symlink),
            )


def read_files(environment: Environment, paths: Collection[str], limit: int) -> dict[str, bytes]:
    """Return contents by relative path of the regular files that have at most ``limit`` bytes and can be read."""
    contents: dict[str, bytes] = {}
    if len(paths) > _FEW:
        ordered = list(paths)
        for start in range(0, len(ordered), _PACKED):
            contents |= _unpacked(environment, ordered[start : start + _PACKED], limit)
    rest = {posixpath.join(environment.workdir, path): path for path in paths if path not in contents}
    found = environment.read_files(dict.fromkeys(rest, limit)) if rest else {}
    return contents | {rest[path]: content for path, content in found.items() if isinstance(content, bytes)}


def _unpacked(environment: Environment, paths: list[str], limit: int) -> dict[str, bytes]:
    """Read files through the container's tar; empty where it has none, or not GNU tar."""
    output = _Sink()
    script = 'exec tar --atime-preserve=system --no-recursion -cf - "$@" 2>/dev/null'
    names = [f"./{path}" for path in paths]
    argv = ["bash", "-c", script, "tar", *names]
    environment.exec(argv, user="0", cwd=environment.workdir, timeout=_TIMEOUT, stdout=output)
    output.seek(0)
    contents = {}
    # What was packed before an error can be used.
    with contextlib.suppress(tarfile.TarError), tarfile.open(fileobj=output, mode="r:") as archive:
        for member in archive:
            file = archive.extractfile(member) if member.isreg() and member.size <= limit else None
            content = file.read() if file is not None else b""
            if file is not None and len(content) == member.size:
                contents[member.name.removeprefix("./")] = content
    return contents
