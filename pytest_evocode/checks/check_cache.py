"""Keeps what checks found, so that a later session need not make one again of which nothing has changed."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import platform
import sys
import time
from collections.abc import Iterable, Sequence
from importlib import metadata
from pathlib import Path

import pytest_evocode
from pytest_evocode.checks.catalogue import Check, CheckWarning
from pytest_evocode.environments import Engine
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.errors import EvocodeError
from pytest_evocode.tasks import Round, Task, resolve_env, resolve_solution_env
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.tasks.lockfile import read_pins
from pytest_evocode.trial.context import TrialOptions

_KEPT = 30 * 86400.0  # seconds since the last use
_OF_WHOLE_TASK = ("starter-clean", "cheat", "control")
"""Checks that look at more files than the suites and solutions of the rounds."""


class CheckCache:
    """What earlier sessions on this machine found in checks of one task that it stood.

    Each is kept under a hash of all that the check depends on: the image, the files of the rounds it plays, the values
    of variables, this package, pytest, Python and the system. A check that failed is never kept, and no more is one
    that could not be made, because the next session may be luckier.
    """

    def __init__(self, task: Task, engine: Engine, options: TrialOptions) -> None:
        self._task = task
        self._engine = engine
        self._options = options
        self._directory = cache_directory() / "checks"
        self._keys: dict[Check, str] = {}

    def prepare(self, checks: Iterable[Check]) -> None:
        """Take down what the checks depend on as it is now, before they are made."""
        with contextlib.suppress(EvocodeError, OSError, UnicodeDecodeError):  # To be found out by making the checks.
            self._keys = {check: self._key(check) for check in checks}

    def find(self, check: Check) -> list[str] | None:
        """Return the warnings that came with a check that was passed; None where that is not known."""
        if check not in self._keys:
            return None
        file = self._file(check)
        try:
            found = [CheckWarning(line) for line in json.loads(file.read_bytes())["warnings"]]
            os.utime(file)
        except (OSError, ValueError, TypeError, KeyError):
            return None
        return list(found)

    def keep(self, check: Check, found: Sequence[str]) -> None:
        """Keep what a check found, if it was passed; a failure to do so is passed over."""
        # A measured time in doubt is to be measured again.
        if any(not isinstance(line, CheckWarning) or check.kind == "time" for line in found):
            return
        now = CheckCache(self._task, self._engine, self._options)
        now.prepare([check])
        if check not in self._keys or now._keys.get(check) != self._keys[check]:
            return  # Its author has changed the task meanwhile.
        with contextlib.suppress(OSError):
            self._directory.mkdir(exist_ok=True)
            known = {"task": self._task.name, "check": str(check), "warnings": list(found)}
            write_atomically(self._file(check), json.dumps(known))
            _drop_old(self._directory)

    def _file(self, check: Check) -> Path:
        return self._directory / f"{self._keys[check]}.json"

    def _key(self, check: Check) -> str:
        requirements = {each.id: each.introduced for each in self._task.requirements}
        about = requirements.get(check.subject, check.subject) if check.kind == "active" else check.subject
        last = next((each.index for each in self._task.rounds if each.name == about), len(self._task.rounds))
        parts = [str(check), *self._surroundings, *self._of_rounds[:last]]
        parts += [self._all_files] if check.kind in _OF_WHOLE_TASK else []
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:32]

    @functools.cached_property
    def _surroundings(self) -> list[str]:
        task = self._task
        return [
            made_by(),
            self._engine.name,
            self._engine.image_key(task),
            f"{self._options.timeout_multiplier} {self._options.verify_times}",
            str(task.verify),
            task.file.read_text(encoding="utf-8"),
            json.dumps(resolve_env(task.config.environment.env, self._options.environ, path=task.file), sort_keys=True),
        ]

    @functools.cached_property
    def _of_rounds(self) -> list[str]:
        """What the suite of each round adds to what the suites before it depend on."""
        shared = self._task.rounds[0].shared_tests
        first = _hash(shared)
        return [f"{first} {self._of_round(round_)}" for round_ in self._task.rounds]

    def _of_round(self, round_: Round) -> str:
        directories = (round_.workdir, round_.solution, round_.directory / "tests" if round_.has_tests else None)
        environ = self._options.environ
        variables = {
            **resolve_env(round_.verifier_env, environ, path=self._task.file),
            **resolve_solution_env(self._task, round_, environ, self._options.withheld_from_solutions),
        }
        pins = read_pins(self._task.directory).of(round_.name)
        return json.dumps([round_.name, *map(_hash, directories), variables, dict(pins or {})], sort_keys=True)

    @functools.cached_property
    def _all_files(self) -> str:
        return hash_directory(self._task.directory)


@functools.cache  # Once in a process.
def _drop_old(directory: Path) -> None:
    """Remove what nobody uses any more."""
    for path in directory.glob("*.json"):
        with contextlib.suppress(OSError):
            if time.time() - path.stat().st_mtime > _KEPT:
                path.unlink()


@functools.cache
def made_by() -> str:
    """Return what makes the checks: this package as it is, pytest, Python and the system."""
    own = hash_directory(Path(pytest_evocode.__file__).parent)
    versions = [metadata.version(name) for name in ("pytest", "pytest-json-report", "pytest-timeout", "libfaketime")]
    return json.dumps([own, *versions, sys.version, platform.platform()])


def _hash(directory: Path | None) -> str:
    return hash_directory(directory) if directory is not None else "-"
