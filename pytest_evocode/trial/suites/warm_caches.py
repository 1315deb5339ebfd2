"""Hands the packages that suites of reference solutions downloaded to the suites of later forks."""

from __future__ import annotations

import contextlib
import hashlib
import logging
import tarfile
import tempfile
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import IO

from pytest_evocode.environments import Environment
from pytest_evocode.environments.cache_archives import CacheArchives, KeptCaches
from pytest_evocode.environments.tree_archives import TreeKeepingEnvironment, is_in
from pytest_evocode.errors import EvocodeError
from pytest_evocode.tasks import Round, resolve_env
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suites.packed_caches import as_in, files_in, look_at, write_entries
from pytest_evocode.verifier import Changes, ImageFacts, SuiteRun, SuiteSettings, image_facts
from pytest_evocode.verifier.package_caches import PackageCache, cache_of, downloads, outermost, package_caches

logger = logging.getLogger(__name__)

PACKED_LIMIT = 2 * 2**30
"""Bytes that the caches of a fork may have, with what the image has there, for anything to be kept of them."""
ADDED_LIMIT = 2**29
"""Bytes of what came into the caches since, above which none of it is kept."""
_FORMAT = "3"
"""Part of every key; changed when this code would keep something else of the same suites."""


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

    What the suite of a round finds there is what the image has, and what the same suite, or else that of the nearest
    earlier round, had added when it passed on the reference solutions: in place of what the agent left there.
    ``trusted`` says that the attempt plays these; only then is anything kept, and no program of an agent was ever in
    such a fork.
    """

    def __init__(self, context: TrialContext, *, trusted: bool) -> None:
        self._context = context
        self._task = context.task
        self._trusted = trusted
        self._lock = threading.Lock()
        self._packing = threading.Lock()
        self._of_image: dict[tuple[str, ...], IO[bytes]] = {}
        """What the image has at some paths, as archives: it is the same for every round."""

    def close(self) -> None:
        """Drop what is held for the attempt; nothing is kept any more."""
        with self._packing:
            for file in self._of_image.values():
                file.close()
            self._of_image.clear()

    def give(self, fork: Environment, round_: Round, settings: SuiteSettings, changes: Changes) -> BegunSuite | None:
        """Put kept caches into a fork that has started.

        Args:
            fork: Where the suite is to run.
            round_: The round.
            settings: How the suite is run.
            changes: What the agent had changed against the image.

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
            kept = archives.read(keys[index])
            if kept is not None and set(kept.paths) <= set(places):
                # Of a clean environment all caches are the image's.
                touched = round_.verify_in == "fork" and _touches(changes, kept.paths)
                if self._put(fork, kept, with_image=touched):
                    logger.info("%s, %s: has the package caches of %s", self._task.name, round_.name, kept.round)
                    given = kept.paths
                    break
        whole = not (settings.patterns or settings.cases or settings.only)
        if not self._trusted or not whole or archives.read(keys[round_.index]) is not None:
            return None
        return BegunSuite(fork, caches, files_in(fork, places), given)

    def _put(self, fork: TreeKeepingEnvironment, kept: KeptCaches, *, with_image: bool) -> bool:
        """Put caches into a fork, where asked in place of what is there; False where the archives are damaged."""
        names = (kept.image, kept.added) if with_image else (kept.added,)
        files = self._archives.open(kept, *names)
        if files is None:
            return False
        with contextlib.ExitStack() as opened:
            for file in files:
                opened.enter_context(file)
            paths = kept.paths if with_image else ()
            for file in files:
                fork.put_trees(paths, kept.above, file)
                paths = ()
        return True

    def keep(self, round_: Round, begun: BegunSuite | None, suite: SuiteRun) -> None:
        """Keep what the suite of a reference solution has downloaded, where it passed; a failure is passed over."""
        if begun is None or suite.verdict is None or not suite.verdict.passed:
            return
        try:
            self._keep(round_, begun)
        except (EvocodeError, OSError, tarfile.TarError, ValueError) as error:
            logger.info("%s, %s: its package caches are not kept: %s", self._task.name, round_.name, error)

    def _keep(self, round_: Round, begun: BegunSuite) -> None:
        places = outermost(cache.path for cache in begun.caches)
        files, sizes, above = look_at(begun.environment, places)
        new = {path for path in files - begun.files if _may_be_download(path, begun.caches)}
        paths = sorted({*begun.given, *(place for place in places if any(is_in(path, place) for path in new))})
        if not new or self._is_too_large(round_, sum(sizes.get(path, 0) for path in paths), PACKED_LIMIT):
            return
        with self._packed(begun.environment, paths) as packed, self._image_of(paths) as image:
            built = {member.name: member for member in image.getmembers()}
            there = {member.name: member for member in packed.getmembers()}
            names = {name for name in downloads(packed, begun.caches) if not as_in(there[name], built.get(name))}
            size = sum(there[name].size for name in names)
            if not any(f"/{name}" in new for name in names) or self._is_too_large(round_, size, ADDED_LIMIT):
                return
            of_paths = tuple(each for each in above if any(is_in(path, each.path) for path in paths))
            kept = KeptCaches(self._keys[round_.index], self._task.name, round_.name, tuple(paths), of_paths)
            self._archives.keep(
                kept,
                lambda file: write_entries(image, built.keys(), paths, file),
                lambda file: write_entries(packed, names, paths, file),
            )
        logger.info("%s, %s: kept its package caches %s", self._task.name, round_.name, ", ".join(paths))

    def _is_too_large(self, round_: Round, size: int, limit: int) -> bool:
        if size > limit:
            logger.info("%s, %s: caches of %d bytes are too large to be kept", self._task.name, round_.name, size)
        return size > limit

    @contextlib.contextmanager
    def _packed(self, environment: TreeKeepingEnvironment, paths: Sequence[str]) -> Iterator[tarfile.TarFile]:
        """Yield directories of an environment as an archive."""
        with tempfile.TemporaryFile(dir=self._archives.directory) as file:
            environment.pack_trees(paths, file)
            file.seek(0)
            with tarfile.open(fileobj=file, mode="r:") as archive:
                yield archive

    @contextlib.contextmanager
    def _image_of(self, paths: Sequence[str]) -> Iterator[tarfile.TarFile]:
        """Yield what the image as built has at some paths."""
        with self._packing:
            file = self._of_image.get(tuple(paths))
            if file is None:
                file = self._of_image[tuple(paths)] = self._packed_image(paths)
            # A position of its own: several rounds may be kept at once.
            again = open(f"/proc/self/fd/{file.fileno()}", "rb")  # noqa: SIM115
        with again, tarfile.open(fileobj=again, mode="r:") as archive:
            yield archive

    def _packed_image(self, paths: Sequence[str]) -> IO[bytes]:
        environment = self._context.engine.create(self._task.alone(), env={}, network="no-network")
        assert isinstance(environment, TreeKeepingEnvironment)
        with contextlib.ExitStack() as until_packed:
            file = until_packed.enter_context(tempfile.TemporaryFile(dir=self._archives.directory))
            try:
                environment.start()
                environment.pack_trees(paths, file)
            finally:
                environment.stop()
            file.flush()
            until_packed.pop_all()
            return file

    def _may_have(self, round_: Round) -> bool:
        """Tell whether a suite begins with kept caches: it runs beside the agent's files, and has a network."""
        options = self._context.options
        when = self._task.config.metadata.evocode.warm_caches
        if not options.warm_caches or when == "never" or (when == "unless-strict" and options.strict):
            return False
        # Without a network it cannot have downloaded anything, and what the agent left may be all that there is.
        by_default = round_.verifier_network is None and self._context.engine.name == "docker"
        return round_.verify_in in ("fork", "clean") and (round_.suite_has_network or by_default)

    def _caches(self, fork: Environment, settings: SuiteSettings) -> tuple[PackageCache, ...]:
        task = self._task
        declared = task.config.environment.env
        env = resolve_env(declared, self._context.options.environ, path=task.file, withheld=self._context.withheld)
        return package_caches(
            self._facts.homes,
            {**self._facts.variables, **env, **settings.env},
            task.config.metadata.evocode.caches,
            apart_from=(fork.workdir, *task.state, *self._facts.path),
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


def _touches(changes: Changes, paths: Sequence[str]) -> bool:
    """Tell whether something was changed in one of some directories, or above it."""
    changed = (each for of_kind in changes.paths.values() for each in of_kind)
    return any(is_in(each, path) or is_in(path, each) for each in changed for path in paths)


def _may_be_download(path: str, caches: Sequence[PackageCache]) -> bool:
    cache = cache_of(path, caches)
    return cache is not None and cache.may_be_download(path)
