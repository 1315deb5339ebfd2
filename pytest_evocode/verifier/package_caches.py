"""Where tools keep the packages that they download, and which of what is there came from a network.

Only that is ever handed from the suite of a reference solution to the suites of agents. What a tool builds of the
workspace lies in the same directories: given to an agent's suite, it would be the reference solution in its place.
"""

from __future__ import annotations

import base64
import binascii
import json
import posixpath
import tarfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, Literal

from pytest_evocode.environments.tree_archives import is_in
from pytest_evocode.verifier.uv_cache import of_uv

Tool = Literal["uv", "pip", "npm", "cargo", "go", "apt", "declared"]
#: Entries of an archive by their paths below a cache.
_Entries = Mapping[str, tarfile.TarInfo]
_Contents = Callable[[tarfile.TarInfo], bytes]

# With wildcards, what of each tool's cache may have come from a network, by its path there.
_DOWNLOADS: Mapping[Tool, tuple[str, ...]] = {
    "uv": ("simple-v*/*", "wheels-v*/*", "sdists-v*/*", "archive-v*/*", "environments-v*/*"),
    "pip": ("http/*", "http-v2/*", "wheels/*"),
    "npm": ("_cacache/index-v*/*", "_cacache/content-v*/*"),
    "cargo": ("*",),
    "go": ("*",),
    "apt": ("*",),
    "declared": ("*",),
}
_NEVER: Mapping[Tool, tuple[str, ...]] = {
    "go": ("cache/lock", "cache/vcs/*"),  # Repositories may be local ones.
    "apt": ("lock", "partial/*"),
}
# Never a cache, nor in one: what is the system's, the harness's or a file of many programs.
_NOT_IN = ("/tests", "/logs", "/solution", "/proc", "/sys", "/dev", "/run", "/etc", "/boot")
_NOT_ABOVE = (
    *_NOT_IN,
    *("/bin", "/home", "/lib", "/opt", "/root", "/sbin", "/srv", "/tmp", "/usr/bin", "/usr/lib", "/usr/local/lib"),
    *("/usr/share", "/var/lib/dpkg", "/var/log"),
)


@dataclass(frozen=True, slots=True)
class PackageCache:
    """The directory in which a tool keeps packages, or one that the task names."""

    tool: Tool
    path: str

    def may_be_download(self, path: str) -> bool:
        """Tell by its absolute path whether a file in the cache may have come from a network."""
        relative = posixpath.relpath(path, self.path)
        never = any(fnmatchcase(relative, pattern) for pattern in _NEVER.get(self.tool, ()))
        return not never and any(fnmatchcase(relative, pattern) for pattern in _DOWNLOADS[self.tool])


def package_caches(
    homes: Sequence[str], variables: Mapping[str, str], declared: Sequence[str], *, apart_from: Sequence[str]
) -> tuple[PackageCache, ...]:
    """Return the package caches of a system, whether or not they exist.

    Args:
        homes: The home directories of whoever may run a suite.
        variables: The environment variables of the suite.
        declared: The directories that the task names.
        apart_from: Directories that are no caches, nor above or in one: the workspace, directories with programs.
    """
    found = [PackageCache("declared", path) for path in declared]
    found += [PackageCache(tool, path) for tool, path in _of_variables(variables)]
    known = {cache.tool for cache in found}
    for home in homes:
        cache = variables.get("XDG_CACHE_HOME") or f"{home}/.cache"
        usual: Mapping[Tool, str] = {
            "uv": f"{cache}/uv",
            "pip": f"{cache}/pip",
            "npm": f"{home}/.npm",
            "cargo": f"{home}/.cargo/registry",
            "go": f"{home}/go/pkg/mod",
        }
        found += [PackageCache(tool, path) for tool, path in usual.items() if tool not in known]
    found += [PackageCache("apt", "/var/cache/apt/archives"), PackageCache("apt", "/var/lib/apt/lists")]
    caches: dict[str, PackageCache] = {}
    for each in found:
        path = posixpath.normpath(each.path)
        if path.startswith("/") and _is_apart(path, homes, apart_from):
            caches.setdefault(path, PackageCache(each.tool, path))
    return tuple(caches.values())


def _of_variables(variables: Mapping[str, str]) -> Iterable[tuple[Tool, str]]:
    if place := variables.get("UV_CACHE_DIR"):
        yield "uv", place
    if place := variables.get("PIP_CACHE_DIR"):
        yield "pip", place
    if place := variables.get("npm_config_cache") or variables.get("NPM_CONFIG_CACHE"):
        yield "npm", place
    if place := variables.get("CARGO_HOME"):
        yield "cargo", f"{place}/registry"
    if place := variables.get("GOMODCACHE"):
        yield "go", place
    elif place := variables.get("GOPATH"):
        yield "go", f"{place.split(':')[0]}/pkg/mod"


def _is_apart(path: str, homes: Sequence[str], apart_from: Sequence[str]) -> bool:
    if any(is_in(path, other) for other in (*_NOT_IN, *apart_from)) or path.strip("/") == "":
        return False
    return not any(is_in(other, path) for other in (*_NOT_ABOVE, *homes, *apart_from))


def cache_of(path: str, caches: Iterable[PackageCache]) -> PackageCache | None:
    """Return the cache that a path is in, of two the inner one; None where it is in none."""
    around = [cache for cache in caches if is_in(path, cache.path) and path != cache.path]
    return max(around, key=lambda cache: len(cache.path), default=None)


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths without those that are in others.

    >>> outermost(["/root/.cache/uv", "/root/.cache", "/root/.cached"])
    ('/root/.cache', '/root/.cached')
    """
    paths = set(paths)
    return tuple(sorted(path for path in paths if not any(is_in(path, other) for other in paths - {path})))


def downloads(archive: tarfile.TarFile, caches: Sequence[PackageCache]) -> set[str]:
    """Return the names of those entries of an archive of caches that came from a network, directories left out.

    Args:
        archive: As :meth:`~pytest_evocode.environments.tree_archives.TreeKeepingEnvironment.pack_trees` writes it, and
            seekable.
        caches: The caches in it.
    """
    by_cache: dict[PackageCache, dict[str, tarfile.TarInfo]] = {}
    for member in archive.getmembers():
        path = f"/{member.name}"
        cache = None if member.isdir() else cache_of(path, caches)
        if cache is not None and cache.may_be_download(path):
            by_cache.setdefault(cache, {})[posixpath.relpath(path, cache.path)] = member

    def contents(member: tarfile.TarInfo) -> bytes:
        file = archive.extractfile(member)
        return file.read() if file is not None else b""

    found: set[str] = set()
    for cache, entries in by_cache.items():
        chosen = _CHOICES.get(cache.tool, _everything)(entries, contents)
        found |= {entries[path].name for path in chosen}
    return found


def _everything(entries: _Entries, contents: _Contents) -> Iterable[str]:
    return entries


def _of_pip(entries: _Entries, contents: _Contents) -> Iterable[str]:
    """Return pip's responses, and the wheels that it built of what it downloaded."""
    origins = (path for path in entries if path.endswith("/origin.json"))
    built = tuple(f"{posixpath.dirname(path)}/" for path in origins if _is_remote(contents(entries[path])))
    return {path for path in entries if not path.startswith("wheels/") or path.startswith(built)}


def _is_remote(origin: bytes) -> bool:
    url = _json(origin).get("url")
    return isinstance(url, str) and url.startswith(("https://", "http://"))


def _of_npm(entries: _Entries, contents: _Contents) -> Iterable[str]:
    """Return npm's responses: entries of its index that were made of a request, and the contents that these name."""
    kept: set[str] = set()
    named: set[str] = set()
    for path, member in entries.items():
        if path.startswith("_cacache/index-v"):
            lines = [_json(line.partition(b"\t")[2]) for line in contents(member).split(b"\n") if line.strip()]
            keys = [line.get("key") for line in lines]
            if all(isinstance(key, str) and key.startswith("make-fetch-happen:request-cache:http") for key in keys):
                kept.add(path)
                named.update(place for line in lines for place in _npm_places(line.get("integrity")))
    contents_of = {path: "/".join(path.split("/")[2:]) for path in entries if path.startswith("_cacache/content-v")}
    return kept | {path for path, place in contents_of.items() if place in named}


def _npm_places(integrity: object) -> Iterable[str]:
    for each in integrity.split() if isinstance(integrity, str) else ():
        algorithm, _, digest = each.partition("-")
        try:
            number = base64.b64decode(digest).hex()
        except (binascii.Error, ValueError):
            continue
        yield f"{algorithm}/{number[:2]}/{number[2:4]}/{number[4:]}"


def _json(text: bytes) -> dict[str, Any]:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


_CHOICES: Mapping[Tool, Callable[[_Entries, _Contents], Iterable[str]]] = {
    "uv": of_uv,
    "pip": _of_pip,
    "npm": _of_npm,
}
