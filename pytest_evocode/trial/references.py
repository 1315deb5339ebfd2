"""Where reference solutions lead: states that rounds can begin in, the paths they change, and workspaces to look at.

An attempt begins at the image, where an earlier session left it, or where the reference solutions lead.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from filelock import Timeout

from pytest_evocode.agents import Agent, installation_of
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import (
    Engine,
    Environment,
    Installation,
    Snapshot,
)
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.environments.reference_index import ReferenceIndex, ReferenceState
from pytest_evocode.environments.task_environment import HIDDEN_FROM_AGENT, STOPPED
from pytest_evocode.errors import AgentFault, Cancelled, EnvironmentFault, TaskError, UsageError
from pytest_evocode.results.forks import ForkedState
from pytest_evocode.results.records import RoundRecord, TurnRecord, Verdict
from pytest_evocode.secrets import withheld_from_agent
from pytest_evocode.tasks import Round, Task, resolve_env, resolve_solution_env
from pytest_evocode.tasks.atomic_write import write_atomically
from pytest_evocode.tasks.content_hash import hash_directory
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.context import TrialContext, TrialOptions
from pytest_evocode.trial.log import Resumption, installation_hash
from pytest_evocode.trial.suites.carrying import changes_of
from pytest_evocode.trial.suites.runner import SuiteRunner

LIMIT = 4 * 2**30
"""Bytes that the states of one engine may take on this machine; the least recently used are dropped first."""
_WAIT = 0.1  # seconds between two looks at whether the attempt is cancelled
_FORMAT = "2"
"""Part of every key; changed when this code would make other states of the same solutions."""
logger = logging.getLogger(__name__)


class ReferenceStates:
    """The states after the rounds of one task in one engine, which the reference solutions lead to.

    ``environ`` resolves the ``${VAR}`` of task.toml, of which none of the ``withheld`` ones are there;
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
            declared = self._task.config.environment.env
            env = resolve_env(declared, self._environ, path=self._task.file, withheld=self._withheld)
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


_KEPT = TurnRecord(index=0, snapshot="", timed_out=False, tool_calls=None, agent_seconds=None)
"""The turn of a round whose state is kept. Without a reference of its own no later session goes on from there."""


class OracleAttempt(AbstractContextManager["OracleAttempt"], Protocol):
    """An attempt in which the oracle plays the reference solutions up to some round; it lasts as long as its context.

    :class:`~pytest_evocode.trial.Trial` is one; this module cannot import it, because a trial begins here.
    """

    def first_played(self) -> int:
        """Wait until it is known which round is played first."""

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round that is played."""

    def last_state(self) -> Snapshot:
        """Return the state after the last round, once its record is there."""

    def close(self) -> None:
        """End the attempt now."""


class StartingState:
    """Finds the state that an attempt begins in: of a fork, that of another attempt.

    Where the agent's first round is not the task's, the reference solutions of those before come first: ``play`` makes
    an attempt of the oracle at some rounds with some options. The oracle itself may begin at any known state before the
    first round that was asked for.
    """

    def __init__(
        self,
        context: TrialContext,
        agent: Agent,
        rounds: RoundSelection,
        play: Callable[[RoundSelection, TrialOptions], OracleAttempt],
    ) -> None:
        self._task = context.task
        self._engine = context.engine
        self._rounds = rounds
        self._cancelled = context.cancelled
        self._play = play
        self.is_oracle = type(agent) is OracleAgent and context.options.fork is None
        """Whether the agent plays the reference solutions, and that not among what another agent left."""
        self.installation = context.options.installation or installation_of(agent)
        """What is in the image besides the task's own."""
        options = context.options
        # No other agent than the oracle begins where a secret may lie, whatever it declares itself.
        withheld = options.withheld_from_solutions if self.is_oracle else withheld_from_agent(options.environ, ())
        self._options = replace(options, withheld_from_solutions=withheld)
        self._solutions = replace(context, options=self._options, directory=None)
        self._states: ReferenceStates | None = None
        if options.references:
            self._states = ReferenceStates(
                context.engine, self._task, options.environ, withheld=withheld, installation=self.installation
            )
        self._attempt: OracleAttempt | None = None
        self._until_closed = ExitStack()

    @property
    def keep(self) -> Callable[[int, Snapshot], None] | None:
        """Keeps the state that this attempt leads to after a round; None where it is nobody's reference."""
        return self._states.keep if self._states is not None and self.is_oracle else None

    @property
    def is_of_task_alone(self) -> bool:
        """Whether all that runs in the attempt's environment is the task's own, and nothing installed for an agent."""
        return self.is_oracle and self.installation is None

    def find(self, in_place: bool, until_started: ExitStack) -> Resumption:
        """Return where the attempt begins; its state is kept for as long as ``until_started`` is open.

        With suites ``in_place`` that is the image, and :meth:`play_in_place` goes on from there. Raises
        :class:`~pytest_evocode.errors.TaskError` where the solutions do not lead there, Cancelled and EnvironmentFault.
        """
        before = self._rounds.rounds_before
        if (fork := self._options.fork) is not None:
            return Resumption(last_turn=before, first_played=before + 1, start=self._forked(fork, in_place=in_place))
        if (mid_turn := self._options.mid_turn) is not None:
            if in_place:
                raise UsageError("suites that run in place need processes, and only files go over into another episode")
            start, spent = mid_turn.snapshot, mid_turn.spent
            return Resumption(last_turn=before, first_played=before + 1, start=start, spent=spent)
        if in_place:
            return Resumption(first_played=before + 1)
        if kept := self._reused():
            turns = tuple(_KEPT.model_copy(update={"index": index}) for index in kept)
            last = max(kept)
            return Resumption(turns=turns, last_turn=last, first_played=min(kept), start=kept[last], kept=kept)
        if not before:
            nearest = range(self._rounds.first_wanted - 1, 0, -1) if self.is_oracle else ()
            index, state = self._known(nearest, until_started)
            return Resumption(last_turn=index, first_played=index + 1, start=state)
        with self._states.making(self._cancelled) if self._states is not None else contextlib.nullcontext():
            state = self._known([before], until_started)[1] or self._played(until_started)
        return Resumption(last_turn=before, first_played=before + 1, start=state)

    def _forked(self, fork: ForkedState, *, in_place: bool) -> Snapshot:
        """Return the state of another attempt that this one goes on from; raises UsageError where it cannot be had."""
        kept, where = fork.kept, f"{fork.source.round} of {fork.directory}"
        if in_place:
            raise UsageError(f"suites that run in place need processes, and only files are kept of {where}")
        if kept.environment != self._engine.name:
            raise UsageError(f"{where} was left in {kept.environment}; add --evocode-env={kept.environment}")
        if fork.source.made_by.get("spec") == "oracle" and self._task.config.solution.env:
            raise UsageError(
                f"{where} is the reference solution's, which gets variables ([solution.env]) that may lie there; "
                f"use --evocode-from={self._task.rounds[fork.source.index].name}"
            )
        snapshot = self._engine.find_snapshot(kept.reference)
        if snapshot is None:
            raise UsageError(f"the files of {where} are not on this machine, or were removed by evocode clean --kept")
        if self._engine.image_key(self._task) != kept.image:
            raise UsageError(f"the image of {self._task.directory} is another one now, which {where} was not left in")
        # A container is made of the snapshot alone, in which programs are as they were for the other agent.
        if self._engine.name == "docker" and kept.installation != installation_hash(self.installation):
            raise UsageError(
                f"{where} was left in an image with other programs of agents than this agent needs; fork in the "
                "sandbox, which has them apart from what agents leave (--evocode-env=sandbox, in both runs)"
            )
        logger.info("%s: goes on from %s", self._task.name, where)
        return snapshot

    def play_in_place(self, environment: Environment, suites: SuiteRunner) -> None:
        """Play the solutions where the agent is to work, with suites that run there as well; raises as :meth:`find`."""
        turns = AgentTurns(self._solutions, OracleAgent())
        before = self._rounds.rounds_before
        for round_ in self._task.rounds[:before]:
            try:
                turns.take(environment, round_)
            except AgentFault as error:
                raise self._leads_nowhere(round_.name, str(error)) from None
            suite = suites.run_in_place(environment, round_, collect=False)
            # The suites of earlier rounds may fail: what they require may have been retired.
            if round_.index == before and not (suite.verdict is not None and suite.verdict.passed):
                raise self._leads_nowhere(round_.name, suite.fault or suite.hang or _failing(suite.verdict))

    def close(self) -> None:
        """Let go of the states that the attempt used."""
        self._until_closed.close()

    def stop(self) -> None:
        """End the reference solutions that are still played."""
        if self._attempt is not None:
            with contextlib.suppress(EnvironmentFault):
                self._attempt.close()

    def _known(self, indexes: Sequence[int], until_started: ExitStack) -> tuple[int, Snapshot | None]:
        """Return the first known one of the states after some rounds, with its round's index, or 0 and None.

        No other state takes its place while ``until_started`` is open.
        """
        if self._states is not None and indexes:
            with ExitStack() as stack:
                stack.enter_context(self._states.held())
                for index in indexes:
                    if (state := self._states.find(index)) is not None:
                        logger.info("%s: begins at the known state after round %d", self._task.name, index)
                        until_started.push(stack.pop_all())
                        return index, state
        return 0, None

    def _reused(self) -> dict[int, Snapshot]:
        """Return the states in which the oracle's rounds are verified without a turn, from the first that is wanted."""
        if self._states is None or not (self.is_oracle and self._options.reuse):
            return {}
        last = min(self._rounds.last or len(self._task.rounds), len(self._task.rounds))
        kept = self._states.use(range(self._rounds.first_wanted, last + 1), self._until_closed)
        if kept:
            logger.info(
                "%s: the solutions of rounds %d to %d are not played again", self._task.name, min(kept), max(kept)
            )
        return kept

    def _played(self, until_started: ExitStack) -> Snapshot:
        options = TrialOptions(
            environ=self._options.environ,
            timeout_multiplier=self._options.timeout_multiplier,
            verifiers=self._options.verifiers,
            references=self._options.references,
            withheld_from_solutions=self._options.withheld_from_solutions,
            installation=self.installation,
        )
        last = self._rounds.rounds_before
        logger.info("%s: the reference solutions are played up to round %d", self._task.name, last)
        attempt = self._play(RoundSelection(first_wanted=last, last=last), options)
        self._attempt = until_started.enter_context(attempt)
        records = [attempt.wait(index) for index in range(attempt.first_played(), last + 1)]
        if records[-1].passed:
            return attempt.last_state()
        if self._cancelled.is_set():
            raise Cancelled(STOPPED)
        broken = next((record for record in records if record.outcome == "error"), records[-1])
        raise self._leads_nowhere(broken.round, broken.cause or _failing(broken.verdict))

    def _leads_nowhere(self, round_name: str, why: str) -> TaskError:
        return TaskError(
            f"{self._task.rounds[self._rounds.rounds_before].name} begins where the reference solutions lead, and that "
            f"of {round_name} fails; correct it, --evocode-check helps: {why}",
            self._task.file,
        )


def _failing(verdict: Verdict | None) -> str:
    cases = ", ".join(case.id for case in verdict.cases if case.failing) if verdict is not None else ""
    return f"it does not pass its suite: {cases}" if cases else "it does not pass its suite"


@dataclass(frozen=True, slots=True)
class RoundWorkspace:
    """A running environment with the files of one moment of an attempt, and none of its processes."""

    environment: Environment
    fault: str = ""
    """Why the reference solution of the round broke off, whose files these are then; empty where it did not."""


class ReferenceWorkspaces:
    """The workspaces that a task's reference solutions lead to.

    What is kept of them on this machine is used, and what is not is played and kept. ``playing`` is told which round's
    solution is about to be played.
    """

    def __init__(
        self,
        task: Task,
        engine: Engine,
        *,
        environ: Mapping[str, str] = os.environ,
        playing: Callable[[Round], None] = lambda round_: None,
    ) -> None:
        self._task = task
        self._playing = playing
        self._context = TrialContext.of(task, engine, TrialOptions(environ=environ), is_authors=True)
        self._states = ReferenceStates(engine, task, environ)

    @contextlib.contextmanager
    def after(self, index: int) -> Iterator[RoundWorkspace]:
        """Start an environment with the files as the solution of a round (from 1) leaves them, and stop it in the end.

        With 0 they are those that the first round begins with.

        Raises:
            AgentFault: The solution of an earlier round fails.
            TaskError: Something is wrong with the task.
            EnvironmentFault: The engine failed.
        """
        with contextlib.ExitStack() as life:
            with self._states.making(self._context.cancelled):
                known, environment = self._nearest(index, life)
                fault = self._play(environment, known, index)
            environment.kill_processes()  # What solutions started does not run where their states were kept.
            yield RoundWorkspace(environment, fault)

    def _nearest(self, index: int, life: contextlib.ExitStack) -> tuple[int, Environment]:
        """Start an environment at the last state that is known up to a round, and return that state's round, too."""
        task_environment = self._context.task_environment
        with self._states.held():  # Until the files are copied, so that nobody drops them.
            kept = ((each, self._states.find(each, accepted=False)) for each in range(index, 0, -1))
            known, state = next(((each, state) for each, state in kept if state is not None), (0, None))
            environment = task_environment.create(snapshot=state)
            life.callback(environment.stop)
            environment.start()
        if known < index or not index:
            task_environment.make_ready(environment)
        else:  # Nothing is to run there whose health would have to be waited for.
            environment.remove(HIDDEN_FROM_AGENT)
        return known, environment

    def _play(self, environment: Environment, known: int, last: int) -> str:
        """Play the solutions after the known round up to the last, and return why that one broke off."""
        if not last:
            self._context.task_environment.prepare_round(environment, self._task.rounds[0])
        turns = AgentTurns(self._context, OracleAgent())
        for round_ in self._task.rounds[known:last]:
            self._playing(round_)
            try:
                turn = turns.take(environment, round_)
            except AgentFault as error:
                if round_.index == last:
                    return str(error)
                raise
            if turn.timed_out:
                return self._timed_out(round_, last)
            snapshot = environment.snapshot()
            try:
                self._states.keep(round_.index, snapshot, accepted=False)
            finally:
                snapshot.discard()
        return ""

    def _timed_out(self, round_: Round, last: int) -> str:
        why = f"{round_.directory / 'solution/solve.sh'}: the reference solution did not end in its time"
        if round_.index < last:
            raise AgentFault(why)
        return why
