"""Tells which of the paths that an agent changed belong to programs and libraries that a suite may use unknowingly."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

_ROOTS = re.compile(r"/(usr|bin|sbin|lib|lib32|lib64|libx32|opt)(/|$)")
_LOADER = re.compile(r"/etc/ld\.so\.(preload|conf|cache|conf\.d/.*)$")
_PYTHON = re.compile(r"/(site-packages|dist-packages|sitecustomize\.py|usercustomize\.py)(/|$)")
_CACHE = "__pycache__"


def changed_tools(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the paths at which programs and what they load are installed, in order.

    Python's own caches are left out, because every Python that root starts fills those of its library. They are
    :func:`python_caches`, which are removed before a suite runs.
    """
    return tuple(path for path in paths if is_tool(path) and not _in_cache(path))


def python_caches(paths: Iterable[str]) -> tuple[str, ...]:
    """Return the ``__pycache__`` directories of tools in which something was changed."""
    found: dict[str, None] = {}
    for path in paths:
        if is_tool(path) and _in_cache(path):
            parts = PurePosixPath(path).parts
            found[str(PurePosixPath(*parts[: parts.index(_CACHE) + 1]))] = None
    return tuple(found)


def is_tool(path: str) -> bool:
    """Return whether programs or what they load are installed at a path.

    >>> [is_tool(path) for path in ("/usr/bin/python3", "/etc/ld.so.preload", "/etc/hosts", "/tmp/x")]
    [True, True, False, False]
    """
    return bool(_ROOTS.match(path) or _LOADER.match(path) or _PYTHON.search(path))


def _in_cache(path: str) -> bool:
    return f"/{_CACHE}/" in f"{path}/"
