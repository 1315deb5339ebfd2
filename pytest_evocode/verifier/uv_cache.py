"""What of uv's cache came from a network, or was made of that alone.

uv unpacks every wheel into an archive of its own, downloaded or built, and makes the environments of ``uv tool run``
and ``uv run --with`` in other ones, of links to the files of those.
"""

from __future__ import annotations

import posixpath
import re
import tarfile
from collections.abc import Callable, Collection, Iterable, Mapping

#: Entries of an archive by their paths below the cache.
_Entries = Mapping[str, tarfile.TarInfo]

_ARCHIVE = re.compile(r"(archive-v\d+/[^/]+)/?$")
_SUFFIXES = (".http", ".msgpack", ".lock", ".rev")
_PACKAGES = re.compile(r"lib(64)?/python[^/]*/site-packages/(?P<path>.+)")
_WRITTEN = re.compile(r"[^/]+\.dist-info/(RECORD|REQUESTED|INSTALLER)")
"""What uv writes of a package that it installs, of nothing but the package and the request."""
_COMPILED = re.compile(r"(?P<directory>(.*/)?)__pycache__/(?P<module>[^/]+?)\.[^/]+\.pyc")


def of_uv(entries: _Entries, contents: Callable[[tarfile.TarInfo], bytes]) -> Iterable[str]:
    """Return what has a pointer made of a response, the archives that only those name, and environments of these."""
    kept = {path for path in entries if path.startswith("simple-v")}
    fetched = tuple(
        f"{posixpath.dirname(path)}/"
        for path in entries
        if path.startswith("sdists-v") and path.endswith("/revision.http")
    )
    for path in entries:
        if path.startswith("wheels-v"):
            whole = next((path.removesuffix(suffix) for suffix in _SUFFIXES if path.endswith(suffix)), path)
            if f"{whole}.http" in entries and f"{whole}.rev" not in entries:
                kept.add(path)
        elif path.startswith("sdists-v") and (path.startswith(fetched) or path.count("/") == 1):
            kept.add(path)
    archives: dict[str, dict[str, tarfile.TarInfo]] = {}
    for path, member in entries.items():
        if path.startswith("archive-v") and path.count("/") > 1:
            archives.setdefault("/".join(path.split("/")[:2]), {})[path] = member
    downloaded = {path for place in _named(entries, kept) for path in archives.get(place, ())}
    return kept | downloaded | _environments(entries, archives, {_file(entries[path]) for path in downloaded})


def _named(entries: _Entries, links: Iterable[str]) -> Iterable[str]:
    """Return the archives that some links lead to."""
    found = (_ARCHIVE.search(entries[path].linkname) for path in links if entries[path].issym())
    return (each[1] for each in found if each)


def _file(member: tarfile.TarInfo) -> str:
    """Return what all names of one file have in common."""
    return member.linkname if member.islnk() else member.name


def _environments(
    entries: _Entries, archives: Mapping[str, Mapping[str, tarfile.TarInfo]], downloaded: Collection[str]
) -> set[str]:
    """Return the environments that have nothing but links to downloaded files and what was made of these."""
    kept: set[str] = set()
    for link in entries:
        if link.startswith("environments-v") and entries[link].issym():
            for place in _named(entries, [link]):
                files = archives.get(place, {})
                if _is_of(files, downloaded):
                    kept |= {link, *files}
    return kept | {path for path in entries if path.endswith(".lock") and path.removesuffix(".lock") in kept}


def _is_of(files: _Entries, downloaded: Collection[str]) -> bool:
    """Tell whether all packages of an environment are downloaded ones, with no other file beside theirs."""
    packages = {
        match["path"]: _file(member) in downloaded
        for path, member in files.items()
        if (match := _PACKAGES.fullmatch("/".join(path.split("/")[2:])))
    }
    return any(packages.values()) and all(
        linked or _WRITTEN.fullmatch(path) or packages.get(_source_of(path)) for path, linked in packages.items()
    )


def _source_of(path: str) -> str:
    """Return the path of what a file was compiled of.

    >>> _source_of("tool/__pycache__/main.cpython-311.pyc")
    'tool/main.py'
    """
    match = _COMPILED.fullmatch(path)
    return f"{match['directory']}{match['module']}.py" if match else ""
