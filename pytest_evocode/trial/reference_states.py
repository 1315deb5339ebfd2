"""Keeps the states that reference solutions lead to, so that a round need not play those before it again."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack

from filelock import Timeout

from pytest_evocode.environments import Engine, Installation, Snapshot
from pytest_evocode.environments.reference_index import ReferenceIndex, ReferenceState
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.tasks import Task, resolve_env, resolve_solution_env
from pytest_evocode.tasks.content_hash import hash_directory

LIMIT = 4 * 2**30
"""Bytes that the states of one engine may take on this machine; the least recently used are dropped first."""
_WAIT = 0.1  # seconds between two looks at whether the attempt is cancelled
_FORMAT = "2"
"""Part of every key; changed when this code would make other states of the same solutions."""


class ReferenceStates:
    """The states after the rounds of one task in one engine, which the reference solutions lead to.

    ``environ`` resolves the ``${VAR}`` of task.toml, of which solutions do not get those that are ``withheld``;
    ``installation`` is what lies on top of the task's image. Sessions and workers share what is kept, under a lock. It
    holds files and no processes: services that a solution started do not run when a round begins there.
    """

    def __init__(
        self,
        engine: Engine,
        task: Task,
        environ: Mapping[str, str],
        *,
        withheld: Callable[[str], bool] = lambda name: False,
        installation: Installation | None = None,
        limit: int | None = None,
    ) -> None:
        self._engine = engine
        self._task = task
        self._environ = environ
        self._withheld = withheld
        self._installation = installation
        self._limit = LIMIT if limit is None else limit
        self._index = ReferenceIndex(engine.name)
        self._keys: dict[int, str] = {}

    def held(self) -> AbstractContextManager[object]:
        """Return a context in which nobody else finds, keeps or drops a state."""
        self.key(1)  # It may build the image, which others should not have to wait for.
        return self._index.locked()

    @contextlib.contextmanager
    def making(self, cancelled: threading.Event) -> Iterator[None]:
        """Keep other sessions and workers from playing the solutions of a task of this name.

        Raises :class:`~pytest_evocode.errors.Cancelled` once ``cancelled`` is set.
        """
        lock = self._index.making(self._task.name)
        while not lock.is_locked:
            if cancelled.is_set():
                raise Cancelled(STOPPED)
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=_WAIT)
        try:
            yield
        finally:
            lock.release()

    def find(self, index: int, *, accepted: bool = True) -> Snapshot | None:
        """Return the state after a round (from 1), None where none is kept; to be called while :meth:`held`.

        It is one that the round's suite has accepted, unless ``accepted`` is False, which does for looking at it.
        """
        state = self._index.read(self.key(index))
        if state is None or (accepted and not state.accepted):
            return None
        found = self._engine.find_reference_state(state.key)
        if found is None:
            self._index.forget(state.key)
        else:
            self._index.touch(state.key)
        return found

    def use(self, indexes: Iterable[int], until_closed: ExitStack) -> dict[int, Snapshot]:
        """Return the states after some rounds, up to the first that is not kept or that no suite has accepted.

        Nobody drops them while ``until_closed`` is open.
        """
        found = {}
        with self.held():
            for index in indexes:
                if (state := self.find(index)) is None:
                    break
                until_closed.enter_context(self._index.used(self.key(index)))
                found[index] = state
        return found

    def kept(self) -> dict[int, int]:
        """Return the bytes of each state that is kept and that its round's suite has accepted, by round."""
        found = {}
        with self.held():
            for round_ in self._task.rounds:
                if self.find(round_.index) is not None and (state := self._index.read(self.key(round_.index))):
                    found[round_.index] = state.size
        return found

    def keep(self, index: int, snapshot: Snapshot, *, accepted: bool = True) -> None:
        """Keep the state after a round beyond the attempt, unless one is kept; a failure to do so is passed over.

        One that the round's suite has ``accepted`` takes the place of one that no suite has seen.
        """
        key = self.key(index)
        with contextlib.suppress(EnvironmentFault, OSError), self.held():
            if (kept := self._index.read(key)) is not None:
                if kept.accepted or not accepted:
                    self._index.touch(key)
                    return
                self._index.forget(key)
                self._engine.drop_reference_state(key)
            size = self._engine.keep_reference_state(key, snapshot)
            self._index.write(ReferenceState(key, self._task.name, self._task.rounds[index - 1].name, size, accepted))
            self._evict(key)

    def _evict(self, newest: str) -> None:
        states = self._index.oldest_first()
        excess = sum(state.size for state in states) - self._limit
        for state in states:
            if excess > 0 and state.key != newest and not self._index.is_used(state.key):
                self._index.forget(state.key)  # First, so that nobody finds half a state.
                with contextlib.suppress(EnvironmentFault):
                    self._engine.drop_reference_state(state.key)
                excess -= state.size

    def key(self, index: int) -> str:
        """Return a hash of all that the state depends on: the image, and the files of the task up to that round."""
        if not self._keys:
            keys: dict[int, str] = {}
            digest = hashlib.sha256(f"{_FORMAT}\0{self._engine.image_key(self._task)}\0".encode())
            if self._installation is not None:
                digest.update(f"{self._installation.script}\0".encode())
            digest.update(self._task.file.read_bytes())
            env = resolve_env(self._task.config.environment.env, self._environ, path=self._task.file)
            for round_ in self._task.rounds:
                env |= resolve_solution_env(self._task, round_, self._environ, self._withheld)
                digest.update(json.dumps([round_.name, env], sort_keys=True).encode())
                # Tests are left out: the state stays the same for an author who edits them.
                for directory in (round_.workdir, round_.solution):
                    digest.update(hash_directory(directory).encode() if directory else b"-")
                keys[round_.index] = digest.hexdigest()[:32]
            self._keys = keys  # At once, because suites of several rounds end in threads of their own.
        return self._keys[index]
