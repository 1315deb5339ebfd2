"""What reference solutions lead to: states, so that a round need not play those before it again, and changed paths."""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path

from filelock import Timeout

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, Environment, Installation, Snapshot
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.reference_index import ReferenceIndex, ReferenceState
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import AgentFault, Cancelled, EnvironmentFault, TaskError
from pytest_evocode.tasks import Round, Task, resolve_env, resolve_solution_env
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.suites.carrying import changes_of

LIMIT = 4 * 2**30
"""Bytes that the states of one engine may take on this machine; the least recently used are dropped first."""
_WAIT = 0.1  # seconds between two looks at whether the attempt is cancelled
_FORMAT = "2"
"""Part of every key; changed when this code would make other states of the same solutions."""
logger = logging.getLogger(__name__)


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


class ReferenceChanges:
    """Knows what the reference solutions of a task change; where it does not, it plays them, without any suite.

    Sessions and workers share what is noted.
    """

    def __init__(self, context: TrialContext) -> None:
        self._context = replace(context, directory=None)
        self._task = context.task
        self._states = ReferenceStates(context.engine, context.task, context.options.environ)
        self._environment: Environment | None = None
        self._so_far: dict[int, frozenset[str]] = {}
        """For rounds up to which the solutions did not lead: they may another time, so it is not noted."""

    def after(self, round_: Round) -> frozenset[str]:
        """Return the paths that the solutions up to a round have changed, as far as they lead.

        Raises Cancelled and EnvironmentFault.
        """
        if (known := self._read(round_.index)) is None:
            with self._states.making(self._context.cancelled):
                if (known := self._read(round_.index)) is None:
                    try:
                        with self.played(round_):
                            pass
                    except (AgentFault, TaskError) as error:
                        logger.info("%s: the reference solutions lead no further: %s", self._task.name, error)
                    known = self._read(round_.index)
        return known or frozenset()

    def note(self, index: int, paths: Iterable[str]) -> None:
        """Note what the solutions up to a round have changed, as their own attempt found it."""
        write_atomically(self._file(index), json.dumps(sorted(paths)))

    def stop(self) -> None:
        """End solutions that are played."""
        if (environment := self._environment) is not None:
            with contextlib.suppress(EnvironmentFault):
                environment.stop()

    @contextlib.contextmanager
    def played(self, last: Round) -> Iterator[Environment]:
        """Play the solutions up to a round, note what each has changed, and yield the environment.

        Raises AgentFault and TaskError where they do not lead there, EnvironmentFault and Cancelled.
        """
        logger.info("%s: the reference solutions are played up to %s", self._task.name, last.name)
        context = self._context
        self._environment = environment = context.task_environment.create()
        turns = AgentTurns(context, OracleAgent())
        try:
            context.task_environment.start(environment)
            for round_ in self._task.rounds[: last.index]:
                try:
                    turns.take(environment, round_)
                except (AgentFault, TaskError):
                    # What it did until then, and what the task itself did before, counts.
                    self._so_far[last.index] = frozenset(self._changed(environment))
                    raise
                self.note(round_.index, self._changed(environment))
            yield environment
        finally:
            environment.stop()
            context.task_environment.refuse_when_cancelled()

    def _changed(self, environment: Environment) -> tuple[str, ...]:
        snapshot = environment.snapshot()
        try:
            return changes_of(self._task, snapshot, environment).noted
        finally:
            snapshot.discard()

    def _read(self, index: int) -> frozenset[str] | None:
        if index in self._so_far:
            return self._so_far[index]
        try:
            return frozenset(json.loads(self._file(index).read_bytes()))
        except FileNotFoundError:
            return None
        except (OSError, ValueError) as error:
            raise EnvironmentFault(f"what reference solutions change cannot be read: {error}") from error

    def _file(self, index: int) -> Path:
        directory = cache_directory() / "reference-changes"
        directory.mkdir(exist_ok=True)
        return directory / f"{self._context.engine.name}-{self._states.key(index)}.json"
