"""Finds out what each of an agent's actions changed in the workspace, and which commits it made."""

from __future__ import annotations

import contextlib
import io
import posixpath
import re
import stat
import tarfile
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.environments import Environment, User
from pytest_evocode.errors import FilesNotListed
from pytest_evocode.trajectories.file_changes import Change, File, describe_change, sha256_of, size_of

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


def hash_files(environment: Environment, paths: Collection[str]) -> dict[str, str]:
    """Return the SHA-256 of regular files by relative path, without those that cannot be read."""
    if not paths:
        return {}
    known = {*paths}
    argv = ["bash", "-c", 'exec sha256sum -- "$@" 2>/dev/null', "sha256sum", *paths]
    answer = environment.exec(argv, user="0", cwd=environment.workdir, timeout=_HASHING)
    lines = (line.partition("  ") for line in answer.output.splitlines())
    return {path: digest for digest, _, path in lines if len(digest) == 64 and path in known}


def is_reflog(path: str) -> bool:
    """Return whether a relative path is that of Git's log of every move of HEAD, of any repository."""
    return path == REFLOG or path.endswith(f"/{REFLOG}")


# Two changes within one tick of the kernel's clock (up to 10 ms) have the same time.
_TICK = 0.1  # seconds
_HASHING = 120.0  # seconds, after which all processes of the container are killed
_COMMITS = 100  # per action
_REFLOG_LINE = re.compile(r"[0-9a-f]+ ([0-9a-f]+) .*?\t(.*)")
# Moves of HEAD to a new commit; checkout, reset, clone and fast-forward lead to existing ones.
_MAKES_COMMIT = re.compile(
    r"commit|cherry-pick|revert|am:|rebase[^:]*\((pick|reword|edit|squash|fixup|continue)\)|merge .*made"
)
_ASKING_GIT = 60.0  # seconds, after which all processes of the container are killed


@dataclass(frozen=True, slots=True)
class ChangeLimits:
    """How much of a workspace is looked at and recorded; beyond it files are recorded without content, or counted."""

    file: int = 256 * 2**10
    """Largest file in bytes whose content is read."""
    whole: int = 64 * 2**10
    """Largest file in bytes that is recorded whole where there can be no diff."""
    hashed: int = 256 * 2**20
    """Bytes of larger files, all together, whose SHA-256 is taken after an action."""
    read: int = 16 * 2**20
    """Bytes read in one look."""
    read_files: int = 2000
    """Files read in one look."""
    known: int = 64 * 2**20
    """Bytes of contents that are kept in memory, all together."""
    recorded: int = 2**20
    """Characters of diffs and contents recorded for one action."""
    recorded_files: int = 200
    """Files recorded with diff or content for one action."""
    listed: int = 1000
    """Files recorded for one action."""


@dataclass(slots=True)
class _Seen:
    """A file as it was at the last look."""

    entry: ListedFile
    file: File
    unsure: bool
    """Whether a later change may have left no trace, because the file had changed within the same tick."""


@dataclass(slots=True)
class _Look:
    """What one look found changed: files before and now, None where there was or is none, and reflogs."""

    changed: dict[str, tuple[File | None, File | None]] = field(default_factory=dict)
    reflogs: dict[str, tuple[bytes, bytes]] = field(default_factory=dict)


class WorkspaceChanges:
    """Compares the files below an environment's working directory with how they were at the last look.

    Caches (:data:`~pytest_evocode.trajectories.workspace_changes.CACHES`), Git's own files and what :meth:`leave_out`
    names are ignored. A look that finds nothing changed takes one command in the container.
    """

    def __init__(self, environment: Environment, *, limits: ChangeLimits | None = None) -> None:
        self.environment = environment
        self.user: User | None = None
        """The agent's user, as whom Git is run."""
        self._limits = limits or ChangeLimits()
        self._left_out: set[str] = set()
        self._seen: dict[str, _Seen] | None = None
        self._known = 0
        self._before: dict[str, File | None] = {}
        self._remarks: dict[str, Any] = {}
        self._trouble = ""

    def leave_out(self, paths: Iterable[str]) -> None:
        """Ignore files and directories from the next look on, by paths relative to the working directory."""
        self._left_out.update(posixpath.normpath(path) for path in paths)

    def begin(self) -> None:
        """Look before the agent does anything: what changed since the last look is no action's."""
        self._look(hashing=False)
        self._remarks = {}

    def changes(self) -> list[Change]:
        """Return what has changed since the last look; empty where the workspace cannot be listed."""
        self._remarks = {}
        look = self._look(hashing=True)
        self._before = {path: old for path, (old, _) in look.changed.items()}
        commits = [
            commit
            for path, (old, new) in sorted(look.reflogs.items())
            for commit in _new_commits(
                self.environment, path.removesuffix(REFLOG).rstrip("/"), old, new, user=self.user
            )
        ]
        if commits:
            self._remarks["commits"] = commits
        return self._describe(look)

    def remarks(self) -> dict[str, Any]:
        """Return notes on the last :meth:`changes`.

        ``commits`` are the commits made. ``unrecorded`` has the number of changed ``files`` that were not recorded, the
        number of those recorded without their ``contents`` because of the limits, or ``why`` the workspace could not be
        listed, which is noted once.
        """
        return self._remarks

    def before(self, path: str) -> File | None:
        """Return a file as it was before the last :meth:`changes`; None if it did not exist."""
        if path in self._before or self._seen is None or path not in self._seen:
            return self._before.get(path)
        return self._seen[path].file

    # Looking.

    def _look(self, *, hashing: bool) -> _Look:
        began = time.time()
        try:
            entries = {path: entry for path, entry in list_files(self.environment).items() if not self._passes(path)}
        except FilesNotListed as trouble:
            if str(trouble) != self._trouble:
                self._remarks["unrecorded"] = {"why": f"the workspace could not be looked at: {trouble}"}
            self._trouble = str(trouble)
            return _Look()
        self._trouble = ""
        first, seen = self._seen is None, self._seen or {}
        self._seen = seen
        look = _Look()
        for path in [path for path in seen if path not in entries]:
            self._note(look, path, None, seen[path].file)
        fresh = {path: entry for path, entry in entries.items() if _may_differ(seen.get(path), entry)}
        contents = self._read(fresh)
        hashes = self._hash(fresh, contents) if hashing else {}
        for path, entry in fresh.items():
            content = contents.get(path)
            digest = sha256_of(content) if content is not None else hashes.get(path)
            mode = entry.mode if entry.symlink is None else None
            new = File(mode=mode, content=content, sha256=digest, symlink=entry.symlink)
            old = seen.get(path)
            if old is not None and old.entry == entry and digest is None:
                continue  # It may have changed, and is too large to be hashed.
            unsure = entry.symlink is None and entry.changed > began - _TICK
            self._note(look, path, _Seen(entry, new, unsure), old.file if old is not None else None)
        return _Look() if first else look

    def _passes(self, path: str) -> bool:
        return any(path == each or path.startswith(f"{each}/") for each in self._left_out)

    def _note(self, look: _Look, path: str, now: _Seen | None, old: File | None) -> None:
        """Keep a file as it is now, and add it to the look where it has changed."""
        assert self._seen is not None
        new = now.file if now is not None else None
        if is_reflog(path):
            before, after = (file.content or b"" if file is not None else b"" for file in (old, new))
            if before != after:
                look.reflogs[path] = (before, after)
        elif old is None or new is None or not _same(old, new):
            look.changed[path] = (old, new)
        self._known -= len(old.content or b"") if old is not None else 0
        if now is None:
            del self._seen[path]
            return
        size = len(now.file.content or b"")
        if self._known + size > self._limits.known:
            now.file, size = File(mode=now.file.mode, sha256=now.file.sha256), 0
        self._known += size
        self._seen[path] = now

    def _read(self, entries: dict[str, ListedFile]) -> dict[str, bytes]:
        """Read the contents of regular files within the limits, those nearest to the top first."""
        limits = self._limits
        wanted: list[str] = []
        left = limits.read
        for path, entry in sorted(entries.items(), key=lambda item: (item[0].count("/"), item[0])):
            fits = entry.size <= min(limits.file, left) and len(wanted) < limits.read_files
            if fits and entry.symlink is None and _is_text(path):
                wanted.append(path)
                left -= entry.size
        return read_files(self.environment, wanted, limits.file) if wanted else {}

    def _hash(self, entries: dict[str, ListedFile], contents: dict[str, bytes]) -> dict[str, str]:
        """Return the SHA-256 of regular files that were not read."""
        wanted, left = [], self._limits.hashed
        for path, entry in entries.items():
            if path not in contents and entry.symlink is None and entry.size <= left and path.isprintable():
                wanted.append(path)
                left -= entry.size
        return hash_files(self.environment, wanted[: self._limits.listed])

    # Recording.

    def _describe(self, look: _Look) -> list[Change]:
        limits = self._limits
        recorded: list[Change] = []
        left, bare = limits.recorded, 0
        for path in sorted(look.changed, key=lambda path: (path.count("/"), path)):
            if not _is_text(path) or len(recorded) >= limits.listed:
                continue
            allowed = left if len(recorded) < limits.recorded_files else 0
            old, new = look.changed[path]
            for change in describe_change(path, old, new, whole_limit=limits.whole, limit=allowed):
                left -= size_of(change)
                bare += _is_bare(change)
                recorded.append(change)
        described = {change["path"] for change in recorded}
        missing = len(look.changed.keys() - described)
        if missing or bare:
            self._remarks["unrecorded"] = {"files": missing, "contents": bare}
        return recorded


def _may_differ(seen: _Seen | None, entry: ListedFile) -> bool:
    return seen is None or seen.unsure or seen.entry.stamp != entry.stamp


def _same(old: File, new: File) -> bool:
    same_content = old.symlink is not None or (old.sha256 is not None and old.sha256 == new.sha256)
    return same_content and (old.mode, old.symlink) == (new.mode, new.symlink)


def _is_text(path: str) -> bool:
    """Whether a name is valid UTF-8, as records need it."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _is_bare(change: Change) -> bool:
    """Whether a change does not have what a file has become."""
    return change["kind"] != "deleted" and change["diff"] is change["content"] is change["symlink"] is None


def _new_commits(
    environment: Environment, repository: str, old: bytes, new: bytes, *, user: User | None
) -> list[dict[str, Any]]:
    """Return the commits that a reflog gained between its contents ``old`` and ``new``.

    Each has its ``id``, ``message`` and changed ``paths``, relative to the working directory like ``repository``. Where
    Git does not answer, the paths are None and the message is its first line. Git runs as the agent's ``user``, because
    the repository's configuration may start programs.
    """
    added = new.removeprefix(old) if new.startswith(old) else b""
    lines = map(_REFLOG_LINE.fullmatch, added.decode("utf-8", "replace").split("\n"))
    made = [(line[1], line[2]) for line in lines if line is not None and _MAKES_COMMIT.match(line[2])][-_COMMITS:]
    if not made:
        return []
    known = _ask_git(environment, repository, [commit for commit, _ in made], user)
    return [
        known.get(commit) or {"id": commit, "message": subject.partition(": ")[2], "paths": None}
        for commit, subject in made
    ]


def _ask_git(
    environment: Environment, repository: str, commits: Sequence[str], user: User | None
) -> dict[str, dict[str, Any]]:
    """Return ids, messages and paths by commit."""
    argv = ["git", "-c", "safe.directory=*", "-c", "core.quotePath=false", "-C", repository or ".", "log"]
    argv += ["--no-walk=unsorted", "--name-only", "--no-renames", "-m", "--first-parent", "--no-show-signature"]
    argv += ["-z", "--format=%x01%H%x02%B%x02", *dict.fromkeys(commits)]
    answer = environment.exec(argv, user=user, cwd=environment.workdir, timeout=_ASKING_GIT)
    if not answer.ok:
        return {}
    found = {}
    for record in answer.output.split("\x01")[1:]:
        commit, message, names = (*record.split("\x02", 2), "", "")[:3]
        paths = [posixpath.join(repository, name.lstrip("\n")) for name in names.split("\0") if name.strip("\n")]
        found[commit] = {"id": commit, "message": message.strip("\n"), "paths": paths}
    return found
