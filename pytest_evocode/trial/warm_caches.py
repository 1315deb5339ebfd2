"""Hands the packages that suites of reference solutions downloaded to the suites of later forks."""

from __future__ import annotations

import hashlib
import logging
import tarfile
import tempfile
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath
from typing import BinaryIO

from pytest_evocode.environments import Environment
from pytest_evocode.environments.cache_archives import CacheArchives, KeptCaches
from pytest_evocode.environments.tree_archives import DirectoryAbove, TreeKeepingEnvironment, is_in
from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.tasks import Round, resolve_env
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.verifier import ImageFacts, SuiteRun, SuiteSettings, image_facts
from pytest_evocode.verifier.package_caches import PackageCache, cache_of, downloads, outermost, package_caches

logger = logging.getLogger(__name__)

ARCHIVE_LIMIT = 2**29
"""Bytes that the caches of one suite may have; larger ones are not kept."""
_FORMAT = "1"
"""Part of every key; changed when this code would keep something else of the same suites."""
_LOOKING = 120.0  # seconds
_FIND = 'find "$@" ! -type d -print0 2>/dev/null'
# After the files: the size in KiB of each cache, and owner and mode of the directories above them.
_LOOK = rf"""{_FIND}
printf '\0\0'
du -sk -- "$@" 2>/dev/null
printf '\0\0'
for path; do
  while path=${{path%/*}}; [ -n "$path" ]; do [ -L "$path" ] || stat -c '%u %g %a %n' -- "$path" 2>/dev/null; done
done
true
"""


@dataclass(frozen=True, slots=True)
class BegunSuite:
    """The package caches of a fork before its suite, of which a reference solution's suite is to be kept."""

    environment: TreeKeepingEnvironment
    caches: tuple[PackageCache, ...]
    files: frozenset[str]
    """What was in them."""
    given: tuple[str, ...]
    """The caches that were put there."""


class WarmCaches:
    """The package caches of the suites of one attempt.

    What the suite of a round finds there in place of the agent's is what the same suite, or else that of the nearest
    earlier round, had left when it passed on the reference solutions. ``trusted`` says that the attempt plays these;
    only then is anything kept, and no program of an agent was ever in such a fork.
    """

    def __init__(self, context: TrialContext, *, trusted: bool) -> None:
        self._context = context
        self._task = context.task
        self._trusted = trusted
        self._lock = threading.Lock()

    def give(self, fork: Environment, round_: Round, settings: SuiteSettings) -> BegunSuite | None:
        """Put kept caches into a fork that has started, in place of those there.

        Returns:
            What :meth:`keep` needs where the suite's own caches are to be kept; else None.

        Raises:
            EnvironmentFault: They cannot be put there.
        """
        if not self._may_have(round_) or not isinstance(fork, TreeKeepingEnvironment):
            return None
        with self._lock:  # Several suites may begin at once.
            archives, keys, _ = self._archives, self._keys, self._facts
        caches = self._caches(fork, settings)
        places = outermost(cache.path for cache in caches)
        given: tuple[str, ...] = ()
        for index in range(round_.index, 0, -1):
            found = archives.find(keys[index])
            if found is None:
                continue
            kept, archive = found
            with archive:
                if set(kept.paths) <= set(places):
                    fork.put_trees(kept.paths, kept.above, archive)
                    given = kept.paths
                    logger.info("%s, %s: has the package caches of %s", self._task.name, round_.name, kept.round)
                    break
        whole = not (settings.patterns or settings.cases or settings.only)
        if not self._trusted or not whole or archives.read(keys[round_.index]) is not None:
            return None
        files = _parts(fork, _FIND, places)[0]
        return BegunSuite(fork, caches, frozenset(files), given)

    def keep(self, round_: Round, begun: BegunSuite | None, suite: SuiteRun) -> None:
        """Keep what the suite of a reference solution has downloaded, where it passed; a failure is passed over."""
        if begun is None or suite.verdict is None or not suite.verdict.passed:
            return
        try:
            self._keep(round_, begun)
        except (EnvironmentFault, OSError, tarfile.TarError, ValueError) as error:
            logger.info("%s, %s: its package caches are not kept: %s", self._task.name, round_.name, error)

    def _keep(self, round_: Round, begun: BegunSuite) -> None:
        places = outermost(cache.path for cache in begun.caches)
        files, sizes, above = _parts(begun.environment, _LOOK, places)
        new = {path for path in files if path not in begun.files and _may_be_download(path, begun.caches)}
        changed = [place for place in places if any(is_in(path, place) for path in new)]
        if not changed:
            return
        paths = sorted({*changed, *begun.given})
        used = _kibibytes(sizes, paths) * 2**10
        if used > ARCHIVE_LIMIT:
            logger.info("%s, %s: caches of %d bytes are too large to be kept", self._task.name, round_.name, used)
            return
        with tempfile.TemporaryFile(dir=self._archives.directory) as packed:
            begun.environment.pack_trees(paths, packed)
            packed.seek(0)
            with tarfile.open(fileobj=packed, mode="r:") as archive:
                names = downloads(archive, begun.caches)
                if not any(f"/{name}" in new for name in names):
                    return
                kept = KeptCaches(
                    self._keys[round_.index], self._task.name, round_.name, tuple(paths), _above(above, paths)
                )
                self._archives.keep(kept, lambda file: _write(archive, names, paths, file))
        logger.info("%s, %s: kept its package caches %s", self._task.name, round_.name, ", ".join(paths))

    def _may_have(self, round_: Round) -> bool:
        """Tell whether a suite begins with kept caches: it runs beside the agent's files, and has a network."""
        options = self._context.options
        when = self._task.config.metadata.evocode.warm_caches
        if not options.warm_caches or when == "never" or (when == "unless-strict" and options.strict):
            return False
        # Without a network it cannot have downloaded anything, and what the agent left may be all that there is.
        default = "public" if self._context.engine.name == "docker" else "no-network"
        return round_.verify_in in ("fork", "clean") and (round_.verifier_network or default) == "public"

    def _caches(self, fork: Environment, settings: SuiteSettings) -> tuple[PackageCache, ...]:
        task, facts = self._task, self._facts
        declared = task.config.environment.env
        env = resolve_env(declared, self._context.options.environ, path=task.file, withheld=self._context.withheld)
        variables = {**facts.variables, **env, **settings.env}
        return package_caches(
            facts.homes,
            variables,
            task.config.metadata.evocode.caches,
            apart_from=(fork.workdir, *task.state, *facts.path),
        )

    @cached_property
    def _facts(self) -> ImageFacts:
        return image_facts(self._context.engine, self._task)

    @cached_property
    def _archives(self) -> CacheArchives:
        return CacheArchives(self._context.engine.name)

    @cached_property
    def _keys(self) -> dict[int, str]:
        """A hash for each round of all that decides what its suite downloads, and of who may have had a say in it."""
        task = self._task
        digest = hashlib.sha256(f"{_FORMAT}\0{self._context.engine.image_key(task)}\0".encode())
        digest.update(task.file.read_bytes())
        keys = {}
        for round_ in task.rounds:
            digest.update(f"{round_.name}\0".encode())
            for directory in (round_.workdir, round_.solution, *round_.tests):
                digest.update(hash_directory(directory).encode() if directory else b"-")
            keys[round_.index] = digest.hexdigest()[:32]
        return keys


def _parts(environment: Environment, script: str, places: Sequence[str]) -> list[list[str]]:
    """Run a script as root on some directories, and return the parts of its output, each without its empty ones."""
    with tempfile.TemporaryFile() as output:
        argv = ["bash", "-c", script, "look", *places]
        environment.exec(argv, user="0", cwd="/", timeout=_LOOKING, stdout=output)
        output.seek(0)
        parts = output.read().decode("utf-8", "surrogateescape").split("\0\0")
    return [[each for each in part.split("\0") if each.strip()] for part in parts]


def _may_be_download(path: str, caches: Sequence[PackageCache]) -> bool:
    cache = cache_of(path, caches)
    return cache is not None and cache.may_be_download(path)


def _kibibytes(lines: Sequence[str], paths: Sequence[str]) -> int:
    """Return the sum of those lines of ``du -sk`` that are about some paths."""
    found = (line.partition("\t") for text in lines for line in text.splitlines())
    return sum(int(size) for size, _, path in found if path in paths and size.isdecimal())


def _above(lines: Sequence[str], paths: Sequence[str]) -> tuple[DirectoryAbove, ...]:
    """Return the directories above some paths by what ``stat`` said of them, the highest first."""
    found = {}
    for line in (line for text in lines for line in text.splitlines()):
        uid, gid, mode, path = line.split(" ", 3)
        if any(is_in(each, path) for each in paths):
            found[path] = DirectoryAbove(path, int(uid), int(gid), int(mode, 8))
    return tuple(found[path] for path in sorted(found))


def _write(archive: tarfile.TarFile, names: set[str], paths: Sequence[str], file: BinaryIO) -> None:
    """Write some entries of an archive of directories, with these and those that the entries are in."""
    directories = {path.lstrip("/") for path in paths}
    directories |= {
        str(parent)
        for name in names
        for parent in PurePosixPath(name).parents
        if any(is_in(f"/{parent}", path) for path in paths)
    }
    copied: set[str] = set()
    with tarfile.open(fileobj=file, mode="w", format=tarfile.PAX_FORMAT) as target:
        for member in archive:
            if member.isdir() and member.name in directories:
                member.mtime = 0  # So that the same files are the same archive, whenever they were brought.
                target.addfile(member)
            elif member.name in names:
                contents = archive.extractfile(member) if member.isreg() or member.islnk() else None
                if member.islnk() and member.linkname in copied:
                    contents = None
                elif member.islnk():  # To a file that is left out.
                    linked = archive.getmember(member.linkname)
                    member.type, member.size = tarfile.REGTYPE, linked.size
                copied.add(member.name)
                target.addfile(member, contents)
