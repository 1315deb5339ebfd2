"""Reads an image's caches of Python, and fills them; a program of its own that runs in the image as it was built.

Any Python since 3.7 runs it, with the standard library only and nothing of the system's start-up files.
"""

from __future__ import annotations

import hashlib
import importlib.util
import json
import os
import py_compile
import re
import subprocess
import sys
import tarfile
import time
import warnings
from typing import Any

CACHE = "__pycache__"
_NOT_FILES = ("/proc", "/sys", "/dev", "/run/lock")
_PYTHON = re.compile(r"(python|pypy)[0-9.]*")
_TAG = "import sys; print(sys.implementation.cache_tag if sys.version_info > (3, 7) else '')"


def look() -> dict[str, Any]:
    """Return the directories that have Python's sources or caches, and an interpreter for each kind of cache."""
    directories, environments = [], []
    for here, names, files in os.walk("/"):
        if "pyvenv.cfg" in files or "conda-meta" in names:
            environments.append(os.path.join(here, "bin"))
        if (CACHE in names or any(name.endswith(".py") for name in files)) and _is_text(here):
            directories.append(here)
        names[:] = [name for name in names if name != CACHE and os.path.join(here, name) not in _NOT_FILES]
    return {"directories": directories, "interpreters": _interpreters(environments)}


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True


def _interpreters(environments: list[str]) -> dict[str, str]:
    found = {str(sys.implementation.cache_tag): sys.executable}
    tried = {os.path.realpath(sys.executable)}
    for directory in [*os.environ.get("PATH", "").split(":"), "/usr/local/bin", "/usr/bin", *environments]:
        try:
            names = sorted(os.listdir(directory))
        except OSError:
            continue
        for name in filter(_PYTHON.fullmatch, names):
            program = os.path.realpath(os.path.join(directory, name))
            if program not in tried:
                tried.add(program)
                tag = _output_of([program, "-I", "-S", "-c", _TAG], 60).strip()
                if tag and tag != "None":
                    found.setdefault(tag, program)
    return found


def _output_of(argv: list[str], seconds: float, given: str = "") -> str:
    try:
        return subprocess.run(
            argv, input=given.encode(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, timeout=seconds
        ).stdout.decode("utf-8", "replace")
    except (OSError, subprocess.TimeoutExpired):
        return ""


def make(request: dict[str, Any], target: str) -> dict[str, Any]:
    """Write two tars of caches: those that the image has, and those that its interpreters make of its sources.

    Args:
        request: ``read`` has the directories whose caches are not known yet; ``compile`` has for each tag and level of
            optimisation the directories whose modules are to be compiled; ``interpreters`` has a program for each
            tag, ``bytes`` what of the first tar is enough, so that the rest is left out, and ``seconds`` the time for
            all.
        target: The directory of the tars, ``own.tar`` and ``made.tar``. Nothing in the latter is in the image.

    Returns:
        ``sources`` has for each directory that was read the SHA-256 of every module; ``compiled`` has pairs of a
        directory and what was compiled there.
    """
    deadline = time.monotonic() + request["seconds"]
    sources = {}
    compiled = []
    with tarfile.open(os.path.join(target, "own.tar"), "w", format=tarfile.PAX_FORMAT) as archive:
        for directory in request["read"]:
            if archive.offset > request["bytes"]:
                break
            sources[directory] = _digests(directory)
            _add(archive, os.path.join(directory, CACHE))
    with tarfile.open(os.path.join(target, "made.tar"), "w", format=tarfile.PAX_FORMAT) as archive:
        unread = set(request["read"]) - set(sources)
        for kind, asked in sorted(request["compile"].items()):
            directories = [directory for directory in asked if directory not in unread]
            tag, _, level = kind.partition(".opt-")
            for directory, made, is_new in _compile(request, tag, int(level or 0), directories, deadline):
                if is_new:
                    archive.add(os.path.join(directory, CACHE), recursive=False)
                for path in made:
                    archive.add(path, recursive=False)
                compiled.append((directory, kind))
    return {"sources": sources, "compiled": compiled}


def _digests(directory: str) -> dict[str, str]:
    found = {}
    for name in os.listdir(directory):
        path = os.path.join(directory, name)
        if name.endswith(".py") and _is_text(name) and os.path.isfile(path) and not os.path.islink(path):
            with open(path, "rb") as file:
                found[name[:-3]] = hashlib.sha256(file.read()).hexdigest()
    return found


def _add(archive: tarfile.TarFile, path: str) -> None:
    """Add what is at a path, every file with its contents, whatever other names it has."""
    if not os.path.lexists(path) or not _is_text(path):
        return
    info = archive.gettarinfo(path)
    if info.islnk():
        info.type, info.size, info.linkname = tarfile.REGTYPE, os.lstat(path).st_size, ""
    if info.isreg():
        with open(path, "rb") as file:
            archive.addfile(info, file)
        return
    archive.addfile(info)
    if info.isdir():
        for name in sorted(os.listdir(path)):
            _add(archive, os.path.join(path, name))


def _compile(
    request: dict[str, Any], tag: str, level: int, directories: list[str], deadline: float
) -> list[tuple[str, list[str], bool]]:
    program = request["interpreters"][tag]
    seconds = max(deadline - time.monotonic(), 0)
    if program == sys.executable:
        return compile_all(level, directories, seconds)
    command = [program, "-I", "-S", "-B", os.path.abspath(__file__), "compile"]
    answer = _output_of(command, seconds + 60, json.dumps([level, directories, seconds]))
    return [(directory, made, is_new) for directory, made, is_new in json.loads(answer or "[]")]


def compile_all(level: int, directories: list[str], seconds: float) -> list[tuple[str, list[str], bool]]:
    """Compile the modules of directories that have no cache, as an import does.

    It ends early when the time is over.

    Returns:
        Every directory that it has done, with the caches made there and whether the directory of the caches is new.
    """
    deadline = time.monotonic() + seconds
    done = []
    for directory in directories:
        if time.monotonic() > deadline:
            break
        is_new = not os.path.lexists(os.path.join(directory, CACHE))
        made = [_compile_module(os.path.join(directory, f"{name}.py"), level) for name in sorted(_digests(directory))]
        done.append((directory, [path for path in made if path], is_new and any(made)))
    return done


def _compile_module(source: str, level: int) -> str:
    """Return the path of the cache, empty where there is one or none can be made."""
    cache = importlib.util.cache_from_source(source, optimization=level or "")
    if os.path.lexists(cache):
        return ""
    try:
        py_compile.compile(
            source,
            cache,
            doraise=True,
            optimize=level,
            invalidation_mode=py_compile.PycInvalidationMode.TIMESTAMP,
        )
    except Exception:  # There is source that no Python of this kind can compile.
        return ""
    return cache


def _main(operation: str) -> None:
    os.umask(0o022)
    warnings.simplefilter("ignore")
    if operation == "compile":
        json.dump(compile_all(*json.load(sys.stdin)), sys.stdout)
        return
    here = os.path.dirname(os.path.abspath(__file__))
    if operation == "look":
        found = look()
    else:
        with open(os.path.join(here, "request.json")) as file:
            request = json.load(file)
        found = make(request, os.path.join(here, "out"))
    with open(os.path.join(here, "out", "found.json"), "w") as file:
        json.dump(found, file)


if __name__ == "__main__":
    _main(sys.argv[1])
