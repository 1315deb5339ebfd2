"""Finds files of packages that both an agent and the reference solution installed, by the package managers' own lists.

The two need not have the same version or dependencies, so their paths differ. A list is the agent's word: what comes
along by it is named in the verdict, as all that comes along.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator, Mapping

from pytest_evocode.environments import Environment, Snapshot, require_readable
from pytest_evocode.errors import UnreadableFile

_DEBIAN = re.compile(r"/var/lib/dpkg/info/([^/:]+)(?::[^/]+)?\.list")
_PYTHON = re.compile(r"(?:/[^/]+)+/([^/]+?)-[^/-]+\.dist-info/(?:RECORD|METADATA)")
_REQUIRED = re.compile(r"^Requires-Dist:\s*([\w.-]+)", re.MULTILINE)
_LIMIT = 4 * 2**20  # bytes of a list
_MOST = 1000  # lists that are read


def add_packages(
    carried: frozenset[str],
    changed: frozenset[str],
    reference: frozenset[str],
    snapshot: Snapshot,
    environment: Environment,
) -> frozenset[str]:
    """Return the carried paths with those of the packages among the changed ones that the reference installed, too.

    Raises :class:`~pytest_evocode.errors.EnvironmentFault` when the engine fails.
    """
    lists = {path: name for path in changed if (name := _package(path)) is not None}
    wanted = {name for path in reference if (name := _package(path)) is not None}
    if changed == carried or not wanted & set(lists.values()):
        return carried
    texts = _read(list(lists)[:_MOST], snapshot, environment)
    # What a package requires is of it, in whichever version each is.
    while more := {name for path, text in texts.items() if lists[path] in wanted for name in _requires(text)} - wanted:
        wanted |= more
    files = {file for path, text in texts.items() if lists[path] in wanted for file in _files(path, text)}
    return carried | (files & changed)


def _package(path: str) -> str | None:
    """Return the package whose list a path is, as pip or dpkg call it.

    >>> _package("/usr/lib/python3/site-packages/Flask_Cors-6.0.dist-info/RECORD")
    'flask-cors'
    >>> _package("/var/lib/dpkg/info/zlib1g:amd64.list"), _package("/usr/bin/env")
    ('dpkg zlib1g', None)
    """
    if found := _DEBIAN.fullmatch(path):
        return f"dpkg {found[1]}"
    found = _PYTHON.fullmatch(path)
    return _normal(found[1]) if found else None


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requires(text: str) -> Iterator[str]:
    return map(_normal, _REQUIRED.findall(text))


def _files(path: str, text: str) -> Iterable[str]:
    r"""Return the files that a package's list names, with its own.

    >>> sorted(_files("/v/lib/a-1.dist-info/RECORD", "a/x.py,sha256=1,2\n../bin/a,,\n../../etc/passwd,,\n"))
    ['/v/bin/a', '/v/lib/a-1.dist-info/METADATA', '/v/lib/a-1.dist-info/RECORD', '/v/lib/a/x.py']
    """
    if found := _DEBIAN.fullmatch(path):
        info = posixpath.dirname(path)
        yield from (f"{info}/{found[1]}.{kind}" for kind in ("list", "md5sums", "triggers", "shlibs", "symbols"))
        for line in text.splitlines():
            # The package may say /lib, which is a link to /usr/lib.
            yield from (line, f"/usr{line}")
        return
    directory = posixpath.dirname(posixpath.dirname(path))
    programs = re.compile(r"(?:\.\./)+bin/[^/]+")
    yield from (f"{posixpath.dirname(path)}/{name}" for name in ("RECORD", "METADATA"))
    for line in text.splitlines():
        name = line.partition(",")[0].strip('"')
        file = posixpath.normpath(f"{directory}/{name}")
        if file.startswith(f"{directory}/") or programs.fullmatch(name):
            yield file


def _read(paths: list[str], snapshot: Snapshot, environment: Environment) -> Mapping[str, str]:
    """Read files of a snapshot in a fork in which nothing of it is run."""
    fork = environment.fork(snapshot, network="no-network")
    try:
        fork.start()
        found = fork.read_files(dict.fromkeys(paths, _LIMIT))
    finally:
        fork.stop()
    texts = {}
    for path, contents in found.items():
        try:
            texts[path] = (require_readable(contents) or b"").decode("utf-8", "surrogateescape")
        except UnreadableFile:
            continue
    return texts
