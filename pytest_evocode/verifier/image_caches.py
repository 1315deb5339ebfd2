"""Puts into a fork the caches of Python that the image has, and some of modules that it has not compiled.

All of them are of an environment in which no agent was. They are found out when a fork first needs them, and kept.
"""

from __future__ import annotations

import hashlib
import json
import logging
import posixpath
import re
import shutil
import tarfile
import tempfile
import threading
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.environments.scratch import scratch_directory
from pytest_evocode.environments.tree_archives import TreeKeepingEnvironment
from pytest_evocode.tasks import Task
from pytest_evocode.verifier.cache_store import CacheStore, Index, Member

logger = logging.getLogger(__name__)

CACHE = "__pycache__"
_PROGRAM = Path(__file__).parent / "in_container" / "image_caches.py"
_PLACE = "/tmp/evocode-caches"
_COMPILING = 60  # seconds that an image's Pythons may compile before a suite begins; the rest is for the next suite
_BYTES = 192 * 2**20  # of caches that one fork gets; a download may have twice as many
_TIMEOUT = 300.0  # seconds
_AT_ONCE = 80  # directories
_LONGEST = 200  # bytes of a path; both together fit into a command that no kernel refuses
_MODULE = re.compile(r"(?P<module>[^.]+)\.(?P<kind>[^.]+(\.opt-[12])?)\.pyc")
_FIND_PYTHON = """
for each in python3 python /usr/local/bin/python3 /usr/bin/python3 /opt/*/bin/python3 "$@"; do
  if "$each" -I -S -c 'import sys; sys.exit(sys.version_info < (3, 7))' 2> /dev/null; then
    printf %s "$each"; exit 0
  fi
done
exit 3
"""
_WITHOUT = 3

_LIMITS = {"seconds": _COMPILING, "bytes": _BYTES}

#: For each directory of sources, the paths of changed files in its cache.
Touched = Mapping[str, Collection[str]]


def touched_caches(changed: Iterable[str]) -> dict[str, set[str]]:
    """Return the directories whose caches were changed, each with the paths of the changed files in its cache.

    >>> touched_caches(["/lib/__pycache__/os.cpython-311.pyc", "/lib/json/__pycache__", "/__pycache__/x/y"])
    {'/lib': {'os.cpython-311.pyc'}, '/lib/json': set(), '/': {'x/y'}}
    """
    found: dict[str, set[str]] = {}
    for path in changed:
        directory, _, inside = f"{path}/".partition(f"/{CACHE}/")
        names = found.setdefault(directory or "/", set())
        if name := inside.rstrip("/"):
            names.add(name)
    return found


class ImageCaches:
    """The caches of one task's image.

    What an agent's turn left in a cache is never looked at, only which files there are.
    """

    def __init__(self, engine: Engine, task: Task) -> None:
        self._engine = engine
        self._task = task
        self._lock = threading.Lock()
        self._store: CacheStore | None = None
        self._broken = False

    def put_back(self, fork: Environment, touched: Touched, changed: Collection[str]) -> None:
        """Put caches as in the image where an agent's turn changed them.

        A module that the turn compiled and the image had not gets a cache that the image's own Python made of the
        image's own source. No module gets any whose source is not as in the image.

        Args:
            fork: Where they are put. It has nothing at the caches in question.
            touched: The directories of sources.
            changed: All paths that the turn changed.

        Raises:
            EnvironmentFault: The engine failed.
        """
        changed = frozenset(changed)
        if not isinstance(fork, TreeKeepingEnvironment) or not (here := _still_there(fork, touched, changed)):
            return
        try:
            for _ in range(2):
                index = self._index(here)
                if index is None:
                    return
                members = self._members(fork, index, here, changed)
                with tempfile.TemporaryFile() as archive:
                    if not members:
                        return
                    if self._store_once().copy(members, archive):
                        archive.seek(0)
                        fork.put_trees((), (), archive)
                        return
                self._store_once().drop()
        except OSError as error:  # Without caches a suite is slow, and no more.
            logger.warning("%s: the image's caches of Python cannot be kept: %s", self._task.name, error)

    def _store_once(self) -> CacheStore:
        with self._lock:
            if self._store is None:
                seed = f"{self._engine.name}\0{self._engine.image_key(self._task)}\0{_PROGRAM.read_text()}"
                self._store = CacheStore(hashlib.sha256(seed.encode()).hexdigest()[:32])
            return self._store

    def _index(self, touched: Touched) -> Index | None:
        """Return an index that has the directories, None where that cannot be had."""
        store = self._store_once()
        index = store.read()
        if index is not None and not _missing(index, touched):
            return index
        with store.locked():
            index = store.read()
            if self._broken or (index is not None and not _missing(index, touched)):
                return index
            made = self._find(index, touched)
            if made is None:
                self._broken = True
                return index
            store.write(made)
            return made

    def _find(self, index: Index | None, touched: Touched) -> Index | None:
        """Add what is missing to an index, in an environment of the image as built; None where a program failed."""
        environment = self._engine.create(self._task.alone(), env={}, network="no-network")
        try:
            environment.start()
            python = environment.exec(["bash", "-c", _FIND_PYTHON], user="0", cwd="/", timeout=_TIMEOUT)
            if python.exit_code == _WITHOUT:
                return Index()
            with scratch_directory() as place:
                run = _Run(environment, python.output, Path(place))
                if index is None:
                    found = run("look")
                    index = Index(frozenset(found["directories"]), found["interpreters"])
                if missing := _missing(index, touched):
                    found = run("make", {**missing, "interpreters": index.interpreters, **_LIMITS})
                    store = self._store_once()
                    index.add_own(found["sources"], store.keep(run.out / "own.tar"))
                    index.add_made(found["compiled"], store.keep(run.out / "made.tar"))
            return index
        except (ValueError, KeyError, tarfile.TarError) as error:
            logger.warning("%s: the image's caches of Python cannot be read: %s", self._task.name, error)
            return None
        finally:
            environment.stop()

    def _members(self, fork: Environment, index: Index, touched: Touched, changed: Collection[str]) -> list[Member]:
        """Return what is put back, directories before what is in them."""
        chosen: dict[str, Member] = {}
        doubtful: dict[str, str] = {}
        size = 0
        for directory, names in sorted(touched.items()):
            here = index.known.get(directory)
            if here is None or size > _BYTES:
                continue  # Removed, as if there were none.
            cache = posixpath.join(directory, CACHE)
            made = {path: each for path, each in here.made.items() if path.rpartition("/")[2] in names}
            if made and cache in here.made:
                made = {cache: here.made[cache], **made}
            back = here.own | {path: each for path, each in made.items() if path not in here.own}
            chosen |= back
            size += sum(each.end - each.start for each in back.values())
            modules = {path.rpartition("/")[2].partition(".")[0] for path in back}
            sources = {posixpath.join(directory, f"{module}.py"): module for module in modules}
            doubtful |= {path: here.sources.get(sources[path], "") for path in sources if path in changed}
        if doubtful:
            as_in_image = _digests(
                fork, {path.rpartition("/")[0] or "/" for path, digest in doubtful.items() if digest}
            )
            other = {path for path, digest in doubtful.items() if not digest or as_in_image.get(path) != digest}
            chosen = {path: each for path, each in chosen.items() if _source_of(path) not in other}
        return list(chosen.values())


class _Run:
    """Runs the program that reads and makes caches, in an environment of the image as built."""

    def __init__(self, environment: Environment, python: str, place: Path) -> None:
        self._environment = environment
        self._python = python
        self._place = place
        self.out = place / "out"
        """Where the program's files are after a run."""

    def __call__(self, operation: str, request: object = None) -> dict[str, Any]:
        """Run an operation, and return what it says.

        Raises:
            ValueError: It failed.
            EnvironmentFault: The engine failed.
        """
        given = self._place / "given"
        (given / "out").mkdir(parents=True, exist_ok=True)
        shutil.copyfile(_PROGRAM, given / "program.py")
        (given / "request.json").write_text(json.dumps(request))
        shutil.rmtree(self.out, ignore_errors=True)
        self._environment.upload([given], _PLACE)
        command = [self._python, "-I", "-S", "-B", f"{_PLACE}/program.py", operation]
        result = self._environment.exec(command, user="0", cwd="/", timeout=_TIMEOUT)
        if not result.ok:
            raise ValueError(f"{result.tail(3)} (exit code {result.exit_code})")
        if left_out := self._environment.download(f"{_PLACE}/out", self.out):
            raise ValueError(left_out[0])
        found: dict[str, Any] = json.loads((self.out / "found.json").read_text())
        return found


def _missing(index: Index, touched: Touched) -> dict[str, Any]:
    """Return what an index lacks: directories to ``read``, and for each kind of caches directories to ``compile``."""
    read = sorted(directory for directory in touched if directory in index.directories - index.known.keys())
    kinds: dict[str, set[str]] = {}
    for directory, names in touched.items():
        here = index.known.get(directory)
        for name in names if directory in index.directories else ():
            found = _MODULE.fullmatch(name)
            if found is None or found["kind"].partition(".")[0] not in index.interpreters:
                continue
            if here is None or (
                found["kind"] not in here.compiled
                and found["module"] in here.sources
                and posixpath.join(directory, CACHE, name) not in here.own
            ):
                kinds.setdefault(found["kind"], set()).add(directory)
    if not read and not kinds:
        return {}
    return {"read": read, "compile": {kind: sorted(directories) for kind, directories in kinds.items()}}


def _still_there(fork: Environment, touched: Touched, changed: Collection[str]) -> Touched:
    """Leave out directories that are none any more, or are in one that is none: removed, or replaced by a link."""
    above = {each: [each, *map(str, PurePosixPath(each).parents)] for each in touched}
    doubtful = {each for places in above.values() for each in places if each in changed}
    found = fork.read_files(dict.fromkeys(doubtful, 0)) if doubtful else {}
    # A directory may be among the changes for its mode or owner.
    gone = {path for path, each in found.items() if not str(each).endswith("is a directory")}
    return {each: touched[each] for each, places in above.items() if gone.isdisjoint(places)}


def _source_of(path: str) -> str:
    """Return where the source of a cache is, a directory of caches and what else is in it having none."""
    directory, _, name = path.rpartition("/")
    above, _, cache = directory.rpartition("/")
    return posixpath.join(above or "/", f"{name.partition('.')[0]}.py") if cache == CACHE else ""


def _digests(fork: Environment, directories: Iterable[str]) -> dict[str, str]:
    """Return the SHA-256 of the sources in some directories, those that can be told.

    A tool that the agent changed may tell what it likes. So it could have a cache of the image's own back, and whoever
    reads that has the image's module.
    """
    found: dict[str, str] = {}
    short = sorted(directory for directory in directories if len(directory.encode()) < _LONGEST)
    for start in range(0, len(short), _AT_ONCE):
        look = [*short[start : start + _AT_ONCE], "-maxdepth", "1", "-name", "*.py", "-type", "f"]
        result = fork.exec(["find", *look, "-exec", "sha256sum", "{}", "+"], user="0", cwd="/", timeout=60)
        for line in result.output.splitlines():
            digest, _, path = line.partition("  ")
            found[path] = digest
    return found
