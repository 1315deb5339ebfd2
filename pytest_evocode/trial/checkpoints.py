"""Keeps what a later session needs to go on with an attempt where this one was killed: snapshots and ``state.json``."""

from __future__ import annotations

import contextlib
import json
import math
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_evocode.agents import Agent, ResumableAgent
from pytest_evocode.environments import Engine, Snapshot
from pytest_evocode.errors import AgentFault, EnvironmentFault, RecordFault, ResumeRefused
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RECORD_VERSION, AttemptRecord, AttemptState, RoundRecord, Spent, TurnRecord
from pytest_evocode.tasks import Round
from pytest_evocode.trial.storage import AttemptSaver, WrittenState

#: The version of records that first says which harness drove an agent.
_WITH_HARNESS = 3


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
class _EndedTurn:
    """A turn that has ended, and what to write of it."""

    turn: TurnRecord
    snapshot: Snapshot
    state: Mapping[str, Any]
    before: Callable[[], None]
    after: Callable[[], None]


def _who(record: AttemptState | AttemptRecord, *, version: int = RECORD_VERSION) -> dict[str, Any]:
    """Return what made an agent, as records of a version say it: before version 3 without its harness.

    The name that it has beside others in a session is not part of it.
    """
    left_out = {"name", *(["harness"] if version < _WITH_HARNESS else [])}
    return {name: part for name, part in record.made_by.items() if name not in left_out}


class Checkpoints:
    """Keeps the snapshots of an attempt that are still needed, and ``state.json``, which says which these are.

    Snapshots of rounds without a verdict are needed to verify these, and the last one to go on from. Without a
    directory nothing outlives the session, and a round's snapshot is discarded after its verdict. With ``keep_all``
    only snapshots are discarded that a later session could not find. A ``saver`` saves to a storage what is written.

    A turn that was ahead of a verdict which may still drop it is not mentioned until :meth:`count_up_to` says that it
    counts: a later session repeats it, with the replies that its journal has.
    """

    def __init__(
        self,
        directory: AttemptDirectory | None,
        state: AttemptState,
        clear: Callable[[Callable[[], object]], object],
        *,
        keep_all: bool = False,
        saver: AttemptSaver | None = None,
    ) -> None:
        """Begin without snapshots; ``clear`` has discarded those that a round needed alone."""
        self._saver = saver
        self._clear = clear
        self._directory = directory
        self._keep_all = keep_all
        self._state = state
        self._lock = threading.Lock()
        self._turns: dict[int, TurnRecord] = {}
        self._snapshots: dict[int, Snapshot] = {}
        self._done: set[int] = set()
        self._held: dict[int, set[str]] = {}
        self._kept: Set[int] = frozenset()
        self._counting: float = math.inf
        self._ahead: list[_EndedTurn] = []
        self._own_last = state.last
        self._had_ended = False
        self.first_recorded = 1
        """The first round of which an earlier session left anything, once that was looked for."""

    @property
    def keep_for(self) -> Path | None:
        """The directory of ``state.json``, for engines to know which snapshots are needed; None where there is none."""
        return self._directory.state_directory if self._directory is not None else None

    def load(self, engine: Engine, rounds: Sequence[Round]) -> Resumption:
        """Return what an earlier session left of this attempt at some of its rounds.

        Raises :class:`~pytest_evocode.errors.ResumeRefused` when that was another task or another environment, or
        cannot be read.
        """
        if self._directory is None:
            return Resumption()
        with self._refusing_unreadable():
            by_name, damaged = self._directory.recover_rounds(round_.name for round_ in rounds)
            earlier = self._directory.read_state()
        records = {round_.index: by_name[round_.name] for round_ in rounds if round_.name in by_name}
        why = {round_.index: damaged[round_.name] for round_ in rounds if round_.name in damaged}
        if earlier is None:
            return self._load_ended(self._directory, by_name, {round_.index for round_ in rounds})
        self.first_recorded = min([*records, *why, *(turn.index for turn in earlier.turns)], default=1)
        self._refuse_other(earlier)
        self._done.update(records)
        for turn in earlier.turns:
            snapshot = engine.find_snapshot(turn.snapshot)
            if snapshot is None:
                raise ResumeRefused(
                    f"{self._directory.path}: the snapshot of round {turn.index} is gone; remove this directory to run "
                    "the attempt anew"
                )
            self._turns[turn.index], self._snapshots[turn.index] = turn, snapshot
        self._state = earlier.model_copy(update={"last": max(earlier.last, self._own_last)})
        last, first = max(self._turns, default=0), self.first_recorded
        return Resumption(
            records=records,
            lost={
                index: f"the record of this round is lost, so it counts as not passed: {why.get(index, 'it is gone')}"
                for index in range(first, min(last, self._own_last + 1))
                if index not in records and index not in self._turns
            },
            first_played=first,
            turns=tuple(
                turn for index, turn in sorted(self._turns.items()) if index <= self._own_last and index not in records
            ),
            last_turn=last,
            start=self._snapshots.get(last),
            agent=earlier.agent,
            spent=earlier.spent,
        )

    def adopt(self, before: Resumption) -> Resumption:
        """Take over the turns that nobody took in this attempt, with their states, and return what was given."""
        self._kept = before.kept.keys()
        self._snapshots.update(before.kept)
        self._turns.update((turn.index, turn) for turn in before.turns)
        return before

    def _load_ended(self, directory: AttemptDirectory, done: Mapping[str, RoundRecord], wanted: Set[int]) -> Resumption:
        """Return the records of an attempt that has ended, unless rounds are left to be run."""
        with self._refusing_unreadable():
            ended = directory.read_attempt()
        if ended is None:
            return Resumption()
        self.first_recorded = min((each.index for each in ended.rounds), default=1)
        broken = any(each.outcome == "error" and each.round not in done for each in ended.rounds)
        if directory.only_round or not broken:
            self._refuse_other(ended)
        kept = {} if broken else {record.index: record for record in ended.rounds if record.index in wanted}
        if not kept or any(index > min(kept) and index not in kept for index in wanted):
            return Resumption()  # Nothing is kept that further rounds could go on from.
        self._had_ended = True
        return Resumption(records=kept, first_played=min(kept))

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

    @property
    def is_left_as_it_is(self) -> bool:
        """Whether this session does not end the attempt: it had ended before, or was to run more rounds than now."""
        return self._had_ended or self._state.last > self._own_last

    def leave_alone(self) -> None:
        """Write and discard nothing from here on, because what is there is of an attempt that does not go on."""
        self._directory = None
        self._snapshots.clear()
        self._ahead.clear()

    def _refuse_other(self, earlier: AttemptState | AttemptRecord) -> None:
        assert self._directory is not None
        if earlier.task_hash != self._state.task_hash:
            raise ResumeRefused(
                f"{self._directory.path}: the task's files have changed since this attempt was begun, so its rounds "
                "cannot be continued; restore the files, or start a new run without --evocode-resume"
            )
        if earlier.made_by and _who(earlier) != _who(self._state, version=earlier.version):
            raise ResumeRefused(
                f"{self._directory.path}: this attempt was begun with another agent under the same name, or with other "
                f"options ({json.dumps(earlier.made_by)}); continue it with these"
            )
        if earlier.environment != self._state.environment:
            raise ResumeRefused(
                f"{self._directory.path}: this attempt was begun in {earlier.environment}; continue it with "
                f"--evocode-env={earlier.environment}"
            )

    def hold_back_after(self, index: float) -> None:
        """Have the turns of rounds after one not mentioned until it is known that they count."""
        with self._lock:
            self._counting = index

    def count_up_to(self, index: float) -> None:
        """Take it as known that the rounds up to one count, and mention their turns."""
        with self._lock:
            self._counting = max(self._counting, index)
            self._mention_all()

    def turn_ended(
        self,
        turn: TurnRecord,
        snapshot: Snapshot,
        memory: Any,
        spent: Spent,
        *,
        before: Callable[[], None] = lambda: None,
        after: Callable[[], None] = lambda: None,
    ) -> None:
        """Record a turn, its snapshot, the agent's memory and what the attempt has used of its budget.

        ``before`` and ``after`` are called when that is written, which is later where it is not known yet that the
        round counts.
        """
        ended = _EndedTurn(turn, snapshot, {"agent": memory, "spent": spent}, before, after)
        with self._lock:
            self._snapshots[turn.index] = snapshot
            self._ahead.append(ended)
            self._mention_all()

    def drop_ahead(self) -> tuple[TurnRecord, ...]:
        """Discard the snapshots of the turns that do not count, and return these turns."""
        with self._lock:
            return self._drop_ahead(self._counting)

    def _drop_ahead(self, after: float) -> tuple[TurnRecord, ...]:
        dropped = [ended for ended in self._ahead if ended.turn.index > after]
        self._ahead = [ended for ended in self._ahead if ended.turn.index <= after]
        for ended in dropped:
            self._snapshots.pop(ended.turn.index, None)
            with contextlib.suppress(EnvironmentFault):
                ended.snapshot.discard()
        return tuple(ended.turn for ended in dropped)

    def _mention_all(self) -> None:
        """Mention the turns that count, one after the other."""
        while self._ahead and self._ahead[0].turn.index <= self._counting:
            self._mention(self._ahead[0])
            del self._ahead[0]

    def _mention(self, ended: _EndedTurn) -> None:
        ended.before()
        self._turns[ended.turn.index] = ended.turn
        self._settle(ended.state)
        ended.after()

    def round_done(self, index: int) -> None:
        """Note that the record of a round is written."""
        with self._lock:
            self._done.add(index)
            self._settle({})

    def is_done(self, index: int) -> bool:
        """Return whether a later session would only repeat a round."""
        with self._lock:
            return index in self._done

    def snapshot_of(self, index: int) -> Snapshot:
        """Return the snapshot that was taken after a turn."""
        return self._snapshots[index]

    def hold(self, index: int, reason: str) -> None:
        """Keep a round's snapshot until :meth:`release` for the same reason, even where nothing else needs it.

        It may not be taken yet.
        """
        with self._lock:
            self._held.setdefault(index, set()).add(reason)

    def release(self, index: int, reason: str) -> None:
        """Discard a round's snapshot if only :meth:`hold` for this reason kept it."""
        with self._lock:
            if index in self._held:
                self._held[index].discard(reason)
                if not self._held[index]:
                    del self._held[index]
                    needed = index in self._turns or any(ended.turn.index == index for ended in self._ahead)
                    self._discard([index] if index in self._snapshots and not needed else [])

    def begin_saving(self) -> None:
        """Have what is written saved to the storage, if there is one; returns at once."""
        if self._saver is not None:
            self._saver.changed(self.holding_written)

    @contextlib.contextmanager
    def holding_written(self) -> Iterator[WrittenState | None]:
        """Hold the snapshots that ``state.json`` mentions; None where the attempt does not go on."""
        with self._lock:
            written = None if self._directory is None else WrittenState.of(self._directory, self._snapshots)
            indexes = () if written is None else tuple(written.snapshots)
            for index in indexes:
                self._held.setdefault(index, set()).add("storage")
        try:
            yield written
        finally:
            for index in indexes:
                self.release(index, "storage")

    def _settle(self, update: Mapping[str, Any]) -> None:
        """Write the state, and only then discard the snapshots that it does not mention."""
        last = max(self._turns, default=0)
        keeps_last = self._directory is not None
        unneeded = [index for index in self._turns if index in self._done and not (keeps_last and index == last)]
        for index in unneeded:
            del self._turns[index]
        self._state = self._state.model_copy(update={"turns": tuple(self._turns.values()), **update})
        # A later session cannot go on from a snapshot that it does not find.
        if self._directory is not None and all(turn.snapshot for turn in self._turns.values()):
            try:
                self._directory.write_state(self._state)
            except OSError as error:
                raise EnvironmentFault(f"the attempt's state could not be written: {error}") from error
            self.begin_saving()
        unheld = [index for index in unneeded if index not in self._held]
        dropped = [snapshot for index in unheld if (snapshot := self._dropped(index)) is not None]
        if dropped:
            self._clear(lambda: _discard(dropped))

    def _discard(self, indexes: Sequence[int]) -> None:
        _discard([snapshot for index in indexes if (snapshot := self._dropped(index)) is not None])

    def _dropped(self, index: int) -> Snapshot | None:
        """Forget a snapshot, and return it where it is to be discarded."""
        snapshot = self._snapshots.pop(index)
        return None if index in self._kept or (self._keep_all and snapshot.reference) else snapshot

    def attempt_ended(self) -> None:
        """Remove ``state.json``: no session goes on from it, and one that dies now leaves nothing that is needed."""
        with self._lock:
            if self._directory is not None:
                self._directory.write_state(None)

    def close(self, *, finished: bool) -> None:
        """Discard what nobody needs: all snapshots when the attempt is finished or cannot be resumed."""
        if self._saver is not None:
            self._saver.stop()  # Or it would hold what is discarded here.
        self._close(finished=finished)
        if self._saver is not None:
            self._saver.save_last(self.holding_written)

    def _close(self, *, finished: bool) -> None:
        with self._lock:
            self._drop_ahead(0)
            held = [index for index in self._held if index in self._snapshots and index not in self._turns]
            self._held.clear()
            self._discard(held)
            if self._directory is not None:
                if not finished and self._turns:
                    return
                self._directory.write_state(None)
            self._discard(list(self._snapshots))
            self._turns.clear()


def _discard(snapshots: Sequence[Snapshot]) -> None:
    for snapshot in snapshots:
        with contextlib.suppress(EnvironmentFault):
            snapshot.discard()


def memory_of(agent: Agent) -> Any:
    """Return what an agent remembers, as a copy in JSON's types: its next turn begins before it is last written.

    Raises :class:`~pytest_evocode.errors.AgentFault` when JSON has no form for it.
    """
    if not isinstance(agent, ResumableAgent):
        return None
    try:
        return json.loads(json.dumps(agent.save_state()))
    except (TypeError, ValueError) as error:
        raise AgentFault(f"{agent.name}: what save_state gave has no form in JSON: {error}") from error
