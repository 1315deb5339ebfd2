"""The states that reference solutions lead to, kept by content, so that a single round need not replay those before."""

from __future__ import annotations

import contextlib
import hashlib
import json
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager

from filelock import Timeout

from pytest_evocode.environments import Engine, Installation, ReferenceKeepingEngine, Snapshot
from pytest_evocode.environments.reference_index import ReferenceIndex, ReferenceState
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.tasks import Task, resolve_env, resolve_solution_env
from pytest_evocode.tasks.content_hash import hash_directory

#: Bytes that the states of one engine may take on this machine; those that were not used for longest go first.
LIMIT = 4 * 2**30
_PATIENCE = 0.1  # seconds
#: Raised when the same solutions would lead to another state by this code.
_FORMAT = "2"


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
        self._store = engine if isinstance(engine, ReferenceKeepingEngine) else None
        self._task = task
        self._environ = environ
        self._withheld = withheld
        self._installation = installation
        self._limit = LIMIT if limit is None else limit
        self._index = ReferenceIndex(engine.name)
        self._keys: dict[int, str] = {}

    def held(self) -> AbstractContextManager[object]:
        """Keep all states as they are; nobody else finds or keeps one meanwhile."""
        self._key(1)  # Or the image would be built while others wait.
        return self._index.locked()

    @contextlib.contextmanager
    def making(self, cancelled: threading.Event) -> Iterator[None]:
        """Be the only one who plays this task's solutions, or those of another task of its name.

        Raises :class:`~pytest_evocode.errors.Cancelled` when it is told to wait no longer.
        """
        lock = self._index.making(self._task.name)
        while not lock.is_locked:
            if cancelled.is_set():
                raise Cancelled("the session was stopped")
            with contextlib.suppress(Timeout):
                lock.acquire(timeout=_PATIENCE)
        try:
            yield
        finally:
            lock.release()

    def find(self, index: int) -> Snapshot | None:
        """The state after a round (from 1); None where there is none. To be used while :meth:`held`."""
        state = self._index.read(self._key(index))
        if state is None or self._store is None:
            return None
        found = self._store.find_reference(state.key)
        if found is None:
            self._index.forget(state.key)
        else:
            self._index.touch(state.key)
        return found

    def keep(self, index: int, snapshot: Snapshot) -> None:
        """Keep the state after a round beyond the attempt, unless it is there; nothing depends on its success."""
        store = self._store
        if store is None or index >= len(self._task.rounds):
            return  # No round begins after the last.
        key = self._key(index)
        with contextlib.suppress(EnvironmentFault, OSError), self.held():
            if self._index.read(key) is not None:
                self._index.touch(key)
                return
            size = store.keep_reference(key, snapshot)
            self._index.write(ReferenceState(key, self._task.name, self._task.rounds[index - 1].name, size))
            self._evict(store, key)

    def _evict(self, store: ReferenceKeepingEngine, newest: str) -> None:
        states = self._index.oldest_first()
        excess = sum(state.size for state in states) - self._limit
        for state in states:
            if excess > 0 and state.key != newest:
                self._index.forget(state.key)  # First: half a state must not be found.
                with contextlib.suppress(EnvironmentFault):
                    store.drop_reference(state.key)
                excess -= state.size

    def _key(self, index: int) -> str:
        """A hash over all that the state depends on: the image, and the files of the task up to that round."""
        if not self._keys:
            digest = hashlib.sha256(f"{_FORMAT}\0{self._engine.image_key(self._task)}\0".encode())
            if self._installation is not None:
                digest.update(f"{self._installation.script}\0".encode())
            digest.update(self._task.file.read_bytes())
            env = resolve_env(self._task.config.environment.env, self._environ, path=self._task.file)
            for round_ in self._task.rounds:
                env |= resolve_solution_env(self._task, round_, self._environ, self._withheld)
                digest.update(json.dumps([round_.name, env], sort_keys=True).encode())
                # Not on tests: an author who edits those begins where the solutions had led to before.
                for directory in (round_.workdir, round_.solution):
                    digest.update(hash_directory(directory).encode() if directory else b"-")
                self._keys[round_.index] = digest.hexdigest()[:32]
        return self._keys[index]
