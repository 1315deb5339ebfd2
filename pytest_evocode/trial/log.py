"""The log of one attempt: what has become of each of its rounds, in this session and for a later one.

Turns and verdicts are noted here as they come and nowhere else: whoever waits for a record, decides whether a round
counts, or keeps a snapshot asks :class:`AttemptLog`. On disk it is the file of each round that is done and
``state.json``, which has all else that a session needs to go on where this one was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import logging
import math
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from pytest_evocode.environments import Installation, Snapshot
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import (
    Cancelled,
    EnvironmentFault,
    EvocodeError,
    RecordFault,
    ResumeRefused,
    RunLimitReached,
    SnapshotElsewhere,
    describe_error,
)
from pytest_evocode.results.directory import AttemptDirectory, now
from pytest_evocode.results.records import (
    AttemptRecord,
    AttemptState,
    Fault,
    Outcome,
    RoundRecord,
    SnapshotFile,
    Spent,
    TurnRecord,
    task_facts,
)
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.results.selection import why_other
from pytest_evocode.tasks import Round
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.context import TrialContext, writing_results
from pytest_evocode.trial.storage import AttemptSaver, WrittenState
from pytest_evocode.verifier import as_recorded, compare_cases, ended_by, may_fall_short, needs_verdict

logger = logging.getLogger(__name__)

_OF_TURN = (TurnRecord.model_fields.keys() & RoundRecord.model_fields.keys()) - {"index", "timed_out"}
"""The fields of a record that tell of the agent's turn."""


SNAPSHOT_ELSEWHERE = "is gone, or on another machine"
"""What an error says of an attempt that is left unfinished for want of its snapshot."""


@dataclass(frozen=True, slots=True)
class Resumption:
    """Where an attempt goes on: behind ``last_turn``, in the state ``start``; None is the image as built."""

    records: Mapping[int, RoundRecord] = field(default_factory=dict)
    """Records of the rounds that are done, by index."""
    turns: tuple[TurnRecord, ...] = ()
    """Turns that have ended and whose rounds have no verdict yet."""
    lost: Mapping[int, str] = field(default_factory=dict)
    """Rounds that were done, whose records cannot be had any more, and why, by index."""
    last_turn: int = 0
    first_played: int = 1
    """The first round that is run; those before it have no record."""
    start: Snapshot | None = None
    kept: Mapping[int, Snapshot] = field(default_factory=dict)
    """The states that are kept of ``turns`` which nobody took in this attempt; they stay beyond it."""
    agent: Any = None
    spent: Spent = field(default_factory=Spent)


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The round that keeps all later ones from being run, or may still do so."""

    index: int
    """The round's place in the task, from 1."""
    why: str
    """Empty as long as its verdict is not there."""


@dataclass(slots=True)
class _Played:
    """A turn that has ended, and what is written of it once its round counts."""

    turn: TurnRecord
    snapshot: Snapshot
    state: Mapping[str, Any] = field(default_factory=dict)
    """The fields of the attempt's state that say what the agent remembers and has used."""
    after: Callable[[], None] = lambda: None
    stays: bool = False
    """Whether the snapshot is kept beyond the attempt."""


class AttemptLog:
    """What is known of each round of an attempt that is run, by its index: the turn and its snapshot, and the record.

    All records pass through :meth:`deliver`, where the host's secrets are taken out and the record is written; they
    come in any order. Snapshots of rounds without a verdict are needed to verify these, and the last one to go on from;
    with ``keep_all`` only those are discarded that a later session could not find. ``clear`` has discarded those that a
    round needed alone.

    A round counts once no verdict before it can end the chain any more. A turn that was ahead of such a verdict is
    written down then: a later session would repeat it, with the replies that its journal has. An attempt that
    ``speculates`` has turns begin ahead of verdicts that may well end the chain; all others begin ahead anyway.
    """

    def __init__(
        self,
        context: TrialContext,
        agent: str,
        attempt: int,
        rounds: RoundSelection,
        clear: Callable[[Callable[[], object]], object],
        *,
        speculates: bool,
        keep_all: bool,
        installation: Installation | None = None,
    ) -> None:
        """Begin without turns and records; ``agent`` is what the records call the agent."""
        self._context = context
        self._task = task = context.task
        self._agent = agent
        self._attempt = attempt
        self._mode = context.options.mode
        self._selection = rounds
        self._clear = clear
        self._speculates = speculates
        self._keep_all = keep_all and context.directory is not None
        self._installed = installation_hash(installation)
        self._directory = context.directory
        storage = context.options.storage
        self._saver: AttemptSaver | None = None
        """What saves the attempt; None where it has no storage or nothing is recorded."""
        if storage is not None and self._directory is not None:
            self._saver = AttemptSaver(storage, self._directory, context, self._holding_written)
        self.rounds = {each.index: each for each in task.rounds[rounds.rounds_before : rounds.last]}
        """The rounds that are asked for, by index."""
        self._deciding = [each for each in self.rounds.values() if needs_verdict(each, self._mode)]
        self._own_last = len(task.rounds[: rounds.last])
        fork = context.options.fork
        self._inherited: tuple[RoundRecord, ...] = ()
        """Of a fork the rounds before its own, as the other attempt has them."""
        self._state = AttemptState(
            environment=context.engine.name,
            task_hash=context.task_hash,
            made_by=dict(context.options.agent),
            forked_from=fork.source if fork is not None else None,
            last=self._own_last,
        )
        self._lock = threading.Lock()
        self._first_played: Future[int] = Future()
        self._first_recorded = 1
        """The first round of which an earlier session left anything, once that was looked for."""
        self._kept: Mapping[int, RoundRecord] = {}
        """What an earlier session recorded of an attempt that cannot go on here, because its snapshot is elsewhere."""
        self._had_ended = False
        self._played: dict[int, _Played] = {}
        """The turns whose snapshots are there, in order."""
        self._held: set[tuple[int, str]] = set()
        self._records: dict[int, Future[RoundRecord]] = {index: Future() for index in self.rounds}
        self._done: set[int] = set()
        """The rounds that a later session would only repeat."""
        self._undone = False
        """Whether a round has no record that a later session would keep."""
        self.outputs: dict[int, str] = {}
        """What suites printed, by round, where there is no directory for it."""

    # How the attempt begins.

    def look_back(self) -> Resumption:
        """Return what an earlier session left of these rounds, here or in the storage.

        Raises :class:`~pytest_evocode.errors.ResumeRefused` when that was another task or another environment, or
        cannot be read.
        """
        if self._directory is None:
            return Resumption()
        if self._saver is not None:
            self._saver.restore()
        with self._refusing_unreadable():
            by_name, damaged = self._directory.recover_rounds(round_.name for round_ in self.rounds.values())
            earlier = self._directory.read_state()
        if earlier is None:
            return self._look_back_at_end(self._directory, by_name)
        records = {each.index: by_name[each.name] for each in self.rounds.values() if each.name in by_name}
        why = {each.index: damaged[each.name] for each in self.rounds.values() if each.name in damaged}
        self._first_recorded = first = min([*records, *why, *(turn.index for turn in earlier.turns)], default=1)
        self._refuse_other(earlier)
        for turn in earlier.turns:
            snapshot = self._context.engine.find_snapshot(turn.snapshot)
            if snapshot is None:
                self._kept = records
                place = "Docker's images" if earlier.environment == "docker" else "the cache that EVOCODE_CACHE names"
                raise SnapshotElsewhere(
                    f"{self._directory.path}: the snapshot of round {turn.index} {SNAPSHOT_ELSEWHERE}, in {place}; "
                    "carry that between jobs, or set evocode_storage; remove this directory to run the attempt anew"
                )
            self._played[turn.index] = _Played(turn, snapshot, stays=self._keep_all)
        self._done.update(records)
        self._state = earlier.model_copy(update={"last": max(earlier.last, self._own_last)})
        last = earlier.last_turn
        return Resumption(
            records=records,
            lost={
                index: f"the record of this round is lost, so it counts as not passed: {why.get(index, 'it is gone')}"
                for index in range(first, min(last, self._own_last + 1))
                if index not in records and index not in self._played
            },
            first_played=first,
            turns=tuple(turn for turn in earlier.turns if turn.index <= self._own_last and turn.index not in records),
            last_turn=last,
            start=self._played[last].snapshot if last else None,
            agent=earlier.agent,
            spent=earlier.spent,
        )

    def _look_back_at_end(self, directory: AttemptDirectory, done: Mapping[str, RoundRecord]) -> Resumption:
        """Return the records of an attempt that has ended, unless rounds are left to be run."""
        with self._refusing_unreadable():
            ended = directory.read_attempt()
        if ended is None:
            return Resumption()
        self._first_recorded = min((each.index for each in ended.rounds), default=1)
        broken = any(each.outcome == "error" and each.round not in done for each in ended.rounds)
        if directory.only_round or not broken:
            self._refuse_other(ended)
        kept = {} if broken else {record.index: record for record in ended.rounds if record.index in self.rounds}
        if not kept or any(index > min(kept) and index not in kept for index in self.rounds):
            return Resumption()  # Nothing is kept that further rounds could go on from.
        # Where more of its rounds are selected now, its record is to say so.
        self._had_ended = all(self._as_selected(record) is record for record in kept.values())
        return Resumption(records=kept, first_played=min(kept))

    def _as_selected(self, record: RoundRecord) -> RoundRecord:
        """Return the record of an earlier session's round, which counts once any session selects it."""
        if record.brought_along and not self._selection.brings_along(record.index):
            return record.model_copy(update={"brought_along": False})
        return record

    @contextlib.contextmanager
    def _refusing_unreadable(self) -> Iterator[None]:
        """Refuse to go on where a file of the attempt cannot be read, and say what to do."""
        assert self._directory is not None
        try:
            yield
        except (RecordFault, OSError) as error:
            raise ResumeRefused(
                f"{error}\nThe attempt cannot be continued without that file: put a copy of it back, or remove "
                f"{self._directory.path} to run the attempt anew"
            ) from None

    def _refuse_other(self, earlier: AttemptState | AttemptRecord) -> None:
        assert self._directory is not None
        if why := why_other(earlier, self._state):
            raise ResumeRefused(f"{self._directory.path}: {why}")

    def begin(self, before: Resumption) -> None:
        """Begin where an attempt goes on: with its records, and with the turns that nobody took in it.

        Raises RecordFault where a fork's inherited rounds cannot be read any more.
        """
        if (fork := self._context.options.fork) is not None:
            self._inherited = tuple(as_recorded(each, self._context.scrubber) for each in fork.inherited())
        elif (mid_turn := self._context.options.mid_turn) is not None:
            self._inherited = mid_turn.inherited
        if before.kept:
            self._played = {each.index: _Played(each, before.kept[each.index], stays=True) for each in before.turns}
            self._state = self._state.model_copy(update={"turns": before.turns})
        # The rounds before one that has a record have let the chain go on, and so has one whose record was lost since.
        first = max([before.first_played, *before.records])
        self._deciding = [each for each in self._deciding if each.index >= first and each.index not in before.lost]
        self._begin_at(before.first_played)
        for index, record in before.records.items():
            self._records[index].set_result(self._as_selected(record))
        for index, cause in before.lost.items():  # No session can make them good.
            self.deliver(self._record(self.rounds[index], "error", cause, fault="infrastructure"), done=True)

    def _begin_at(self, index: int) -> None:
        """Have no records of the rounds before one, which are not run."""
        self._records = {later: record for later, record in self._records.items() if later >= index}
        self._first_played.set_result(index)

    def first_played(self) -> int:
        """Wait until it is known which round is the first that is run; those before it have no record."""
        return self._first_played.result()

    # What is there.

    def __contains__(self, index: int) -> bool:
        return index in self._records

    @property
    def all_there(self) -> bool:
        """Whether all rounds have their records."""
        return all(record.done() for record in self._records.values())

    @property
    def without_record(self) -> list[int]:
        """The rounds that have no record yet, in order."""
        return [index for index, record in self._records.items() if not record.done()]

    @property
    def _is_left_as_it_is(self) -> bool:
        """Whether this session does not end the attempt: it had ended before, or was to run more rounds than now."""
        return self._had_ended or self._state.last > self._own_last

    @property
    def is_finished(self) -> bool:
        """Whether the attempt ends with this session, and no round is left that a later one would run again."""
        return not (self._undone or self._is_left_as_it_is)

    def record_of(self, index: int) -> Future[RoundRecord]:
        """Return what gives the record of a round once it is there."""
        return self._records[index]

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round."""
        return self._records[index].result()

    def get(self, index: int) -> RoundRecord | None:
        """Return the record of a round if it is there; does not wait."""
        record = self._records.get(index)
        return record.result() if record is not None and record.done() else None

    def is_done(self, index: int) -> bool:
        """Return whether a later session would only repeat a round."""
        return index in self._done

    def snapshot_of(self, index: int) -> Snapshot:
        """Return the snapshot that was taken after a turn."""
        return self._played[index].snapshot

    # Which rounds count.

    def _known_end(self) -> ChainEnd | None:
        """Return the first round up to which others count by the verdicts that are there; None where all do."""
        for round_ in self._deciding:
            record = self.get(round_.index)
            if record is None or record.outcome == "not reached":
                return ChainEnd(round_.index, "")
            if why := ended_by(round_, record, self._mode):
                return ChainEnd(round_.index, why)
        return None

    @property
    def _counting(self) -> float:
        """The last round that counts by the verdicts that are there."""
        end = self._known_end()
        return math.inf if end is None else end.index

    @property
    def has_ended(self) -> bool:
        """Whether a verdict that is there has ended the chain; does not wait."""
        end = self._known_end()
        return end is not None and end.why != ""

    def end_before(self, index: float = math.inf) -> ChainEnd | None:
        """Wait for all verdicts that decide whether a round counts, and return where the chain ends if it does not.

        Without an index that is asked of all rounds that are run.

        Raises:
            Cancelled: The session is stopped, so that one of these verdicts will not be there.
        """
        for round_ in self._deciding:
            if round_.index < index and not self.has_ended and self.wait(round_.index).outcome == "not reached":
                raise Cancelled(STOPPED)
        end = self._known_end()
        return end if end is not None and end.index < index else None

    def counts(self, index: int) -> bool:
        """Wait until it is known whether a round counts, and return that; it does where the session was stopped."""
        try:
            return self.end_before(index) is None
        except Cancelled:
            return True

    def goes_on_after(self, round_: Round) -> bool:
        """Return whether the next turn begins, after the verdict where that is to be waited for; raises Cancelled."""
        waits = may_fall_short(round_, self._mode) and not self._speculates
        if waits or self._task.in_place:
            return self.end_before(round_.index + 1) is None
        return not self.has_ended

    # Turns and their snapshots.

    def turn_ended(
        self, turn: TurnRecord, snapshot: Snapshot, memory: Any, spent: Spent, after: Callable[[], None]
    ) -> None:
        """Note a turn, its snapshot, the agent's memory and what the attempt has used of its budget.

        ``after`` is called when that is written, which is later where it is not known yet that the round counts.
        """
        with self._lock:
            self._played[turn.index] = _Played(turn, snapshot, {"agent": memory, "spent": spent}, after)
        self.tell()

    def tell(self) -> None:
        """Write down the turns that count by now; raises EnvironmentFault."""
        with self._lock:
            told, counting = self._state.last_turn, self._counting
            new = [each for index, each in self._played.items() if told < index <= counting]
            if new:
                for each in new:
                    if self._keep_all and each.snapshot.reference:
                        self._write_snapshot(each)
                        each.stays = True
                self._write(*(each.turn for each in new), **new[-1].state)
                for each in new:
                    each.after()

    def drop_ahead(self) -> tuple[TurnRecord, ...]:
        """Discard the snapshots of the turns that do not count, and return these turns."""
        with self._lock:
            kept = max(self._state.last_turn, self._counting)
            ahead = [index for index in self._played if index > kept]
            dropped = [self._played.pop(index) for index in ahead]
        _discard(each.snapshot for each in dropped)
        return tuple(each.turn for each in dropped)

    def hold(self, index: int, reason: str) -> None:
        """Keep a round's snapshot until :meth:`release` for the same reason, even where nothing else needs it."""
        with self._lock:
            self._held.add((index, reason))

    def release(self, index: int, reason: str) -> None:
        """Discard a round's snapshot if only :meth:`hold` for this reason kept it."""
        with self._lock:
            self._held.discard((index, reason))
            _discard(self._unneeded())

    def _write(self, *turns: TurnRecord, **update: Any) -> None:
        """Write the state, with more turns, and only then discard the snapshots that it does not mention any more."""
        turns = (*self._state.turns, *turns)
        # The last one is there to go on from, whatever its verdict.
        turns = tuple(turn for turn in turns if turn is turns[-1] or turn.index not in self._done)
        state = self._state.model_copy(update={"turns": turns, **update})
        # A later session cannot go on from a snapshot that it does not find.
        if self._directory is not None and all(turn.snapshot for turn in turns):
            try:
                self._directory.write_state(state)
            except OSError as error:
                raise EnvironmentFault(f"the attempt's state could not be written: {error}") from error
            self.begin_saving()
        self._state = state
        if unneeded := self._unneeded():
            self._clear(lambda: _discard(unneeded))

    def _unneeded(self, *, ahead: bool = False) -> list[Snapshot]:
        """Forget the turns whose snapshots nobody needs, and return those of them that are to be discarded.

        With ``ahead`` these are those that are not written down as well.
        """
        needed = {turn.index for turn in self._state.turns} | {index for index, _ in self._held}
        indexes = [index for index in self._played if index not in needed and (ahead or index <= self._state.last_turn)]
        return [each.snapshot for index in indexes if not (each := self._played.pop(index)).stays]

    def _write_snapshot(self, played: _Played) -> None:
        """Write down where the state after a round is kept, and what it takes to verify it again."""
        context, directory = self._context, self._directory
        assert directory is not None
        kept = SnapshotFile(
            environment=context.engine.name,
            reference=played.snapshot.reference,
            image=context.engine.image_key(self._task),
            task=str(self._task.directory.resolve()),
            strict=context.options.strict,
            verify_times=context.options.verify_times,
            timeout_multiplier=context.options.timeout_multiplier,
            verify=self._task.verify,
            installation=self._installed,
        )
        with writing_results():
            directory.write_snapshot(self.rounds[played.turn.index].name, kept)

    # The storage.

    @property
    def storage_notes(self) -> tuple[str, ...]:
        """What is to be said of the storage: what was not found there as it was left, and what could not be saved."""
        return self._saver.notes if self._saver is not None else ()

    def begin_saving(self) -> None:
        """Have what is written saved to the storage, if there is one; returns at once."""
        if self._saver is not None:
            self._saver.changed()

    @contextlib.contextmanager
    def _holding_written(self) -> Iterator[WrittenState | None]:
        """Hold the snapshots that ``state.json`` mentions; None where the attempt does not go on."""
        with self._lock:
            snapshots = {index: each.snapshot for index, each in self._played.items()}
            written = None if self._directory is None else WrittenState.of(self._directory, snapshots)
            indexes = () if written is None else tuple(written.snapshots)
            self._held.update((index, "storage") for index in indexes)
        try:
            yield written
        finally:
            for index in indexes:
                self.release(index, "storage")

    # Records.

    def after_turn(
        self, round_: Round, turn: TurnRecord, outcome: Outcome = "not reached", cause: str = "", **more: Any
    ) -> RoundRecord:
        """Return the record of a round as far as the agent's turn tells, and with ``more`` of its fields."""
        return self._record(round_, outcome, cause, **{name: getattr(turn, name) for name in _OF_TURN}, **more)

    def _record(self, round_: Round, outcome: Outcome, cause: str, **more: Any) -> RoundRecord:
        return RoundRecord(
            task=self._task.name,
            agent=self._agent,
            attempt=self._attempt,
            round=round_.name,
            index=round_.index,
            declared_rounds=len(self._task.rounds),
            outcome=outcome,
            cause=cause,
            brought_along=self._selection.brings_along(round_.index),
            **more,
        )

    def deliver(self, record: RoundRecord, *, done: bool, output: str | None = None) -> None:
        """Write a record and hand it out; ``done`` says that a later session would only repeat the round.

        One with a verdict waits for the records of the rounds before, with whose cases its own are compared.
        """
        record = as_recorded(record, self._context.scrubber)
        if record.verdict is not None:
            own = [earlier.result() for index, earlier in self._records.items() if index < record.index]
            before = [*self._inherited, *own]
            # What the rounds required that are left to the solutions held when the first of these began.
            first = min([*self._records, *(each.index for each in self._inherited)])
            held = [round_.name for round_ in self._task.rounds if round_.index < first]
            record = compare_cases(record, before, held)
        try:
            if self._directory is not None:
                self._directory.write_round(record, output=output, done=done)
            elif output is not None:
                self.outputs[record.index] = output
            if done:
                with self._lock:
                    self._done.add(record.index)
                    self._write()
        except (OSError, ValueError, EnvironmentFault) as error:
            cause = self._context.scrubber.text(f"the results could not be written: {error}")
            failed = {"outcome": "error", "cause": cause, "fault": "infrastructure"}
            record, done = record.model_copy(update=failed), False
        logger.info("%s, %s: %s", record.task, record.round, record.outcome)
        self._undone |= not done
        self._records[record.index].set_result(record)
        # What cannot be written now is tried again, and reported, when the record of its own round is made.
        with contextlib.suppress(EnvironmentFault):
            self.tell()

    def skip_after(self, index: int, cause: str, taken: Mapping[int, Mapping[str, Any]] | None = None) -> None:
        """Record why the rounds after one that have no record were not reached.

        ``taken`` are fields of their records by round: what was used of the model and the agent's time all the same.
        """
        for later in self.without_record:
            if later > index:
                more = (taken or {}).get(later, {})
                record = self._record(self.rounds[later], "not reached", cause, **more)
                self._records[later].set_result(record)

    # How the attempt ends.

    def break_off(
        self, index: int, error: BaseException, fault: Fault, taken: Mapping[str, Any], *, had_turn: bool
    ) -> None:
        """Give an error to the round in which it happened: the first from ``index`` on that has no record.

        Where the session was stopped it is no error, and where the run has used what it may these rounds wait for a
        later session. ``fault`` says whose it is, and ``taken`` what the round had used until then, as fields of its
        record. An attempt whose agent never had a turn, in this session (``had_turn``) or an earlier one, for a reason
        that is not its own, counts in no score.
        """
        refused = isinstance(error, ResumeRefused)
        if not self._first_played.done():
            # A resumed attempt would report no round before the first that it has, unless it began anew.
            self._begin_at(max(self._selection.rounds_before + 1, self._first_recorded if refused else 1))
        if refused:  # Nothing is written or discarded of an attempt that does not go on.
            self._directory = None
            self._played.clear()
        for kept in self._kept.keys() & self._records.keys():
            self._records[kept].set_result(self._kept[kept])
        self._undone = True
        left = [each for each in self.without_record if each >= index]
        if left and not self._context.cancelled.is_set():
            round_ = self.rounds[left[0]]
            if isinstance(error, RunLimitReached):
                waiting: dict[int, dict[str, Any]] = {each: {"waiting": str(error)} for each in left}
                waiting[left[0]].update(taken)
                self.skip_after(left[0] - 1, f"waiting: {error}", waiting)
            else:
                taken = {**taken, "agent_seconds": None}  # No more than a part of what the turn would have taken.
                # In single-round mode other rounds of the attempt may have been played.
                is_begun = had_turn or refused or bool(self._played) or len(left) < len(self._records)
                if fault == "infrastructure" and not is_begun and self._mode != "single-round":
                    taken["unscored"] = "never started"
                elif refused:  # It is as it was.
                    taken["unscored"] = "unfinished"
                self.deliver(self._record(round_, "error", describe_error(error), fault=fault, **taken), done=False)
                more = {later: {"unscored": taken.get("unscored")} for later in left[1:]}
                self.skip_after(round_.index, f"the attempt ended in {round_.name} with an error", more)
        elif left:
            self.skip_after(index - 1, STOPPED, {left[0]: {**taken, "agent_seconds": None}})
        self.skip_after(index - 1, STOPPED)

    def write_attempt(self, started: str, *, deterministic: bool) -> None:
        """Write the attempt's record, now that all rounds have theirs, unless a later session is to do that.

        ``deterministic`` is what the agent says of itself. Raises OSError and RecordFault.
        """
        if self._directory is None or self._context.cancelled.is_set() or self._is_left_as_it_is:
            return
        own = {index: record.result() for index, record in self._records.items()}
        if any(record.waiting for record in own.values()):
            return
        # A chain from a later round leaves out those before.
        begin_with = self._selection.begin_with if self._mode != "single-round" else None
        counting = range(begin_with or 1, len(self._task.rounds) + 1)
        with self._directory.composing() as earlier:
            others = {record.index: record for record in earlier.rounds} if earlier is not None else {}
            records = tuple(record for _, record in sorted({**others, **own}.items()))
            self._directory.write_attempt(
                AttemptRecord(
                    task=self._task.name,
                    agent=self._agent,
                    attempt=self._attempt,
                    mode=self._mode,
                    from_round=self._task.rounds[begin_with - 1].name if begin_with else None,
                    forked_from=self._state.forked_from,
                    environment=self._context.engine.name,
                    task_hash=self._context.task_hash,
                    made_by=dict(self._context.options.agent),
                    strict=self._context.options.strict,
                    verify=self._task.verify,
                    conditions=self._conditions(),
                    deterministic=deterministic,
                    started=min(started, earlier.started) if earlier is not None else started,
                    finished=now(),
                    declared_rounds=tuple(round_.name for round_ in self._task.rounds),
                    facts=task_facts(self._task),
                    rewards=trial_rewards(records, counting, self._task.reward_strategy),
                    rounds=records,
                )
            )
        if self.is_finished:  # No session goes on from here, and one that dies now leaves nothing that is needed.
            with self._lock:
                self._directory.write_state(None)

    def _conditions(self) -> dict[str, str] | None:
        """Return the conditions of the attempt, with what identifies the image that turns were taken in."""
        given = self._context.options.conditions
        if given is None:
            return None
        conditions = dict(given)
        if any(record.result().unscored is None for record in self._records.values()):
            with contextlib.suppress(EvocodeError):
                conditions["image"] = self._context.engine.image_key(self._task)
        return conditions

    def close(self, *, finished: bool) -> None:
        """Discard what nobody needs: all snapshots when the attempt is finished or cannot be resumed."""
        if self._saver is not None:
            self._saver.stop()  # Or it would hold what is discarded here.
        with self._lock:
            self._held.clear()
            if self._directory is not None and (finished or not self._state.turns):
                self._directory.write_state(None)
            if finished or self._directory is None:
                self._state = self._state.model_copy(update={"turns": ()})
            _discard(self._unneeded(ahead=True))
        if self._saver is not None:
            self._saver.save()


def installation_hash(installation: Installation | None) -> str:
    """Return the SHA-256, in hex, of what installs an agent's program in an image; empty without one."""
    return hashlib.sha256(installation.script.encode()).hexdigest() if installation is not None else ""


def _discard(snapshots: Iterable[Snapshot]) -> None:
    for snapshot in snapshots:
        with contextlib.suppress(EnvironmentFault):
            snapshot.discard()
