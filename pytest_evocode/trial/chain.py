"""Follows the verdicts of an attempt in order: when turns begin, where the chain of rounds ends, and which count."""

from __future__ import annotations

import contextlib
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_evocode.environments import Environment
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.results.directory import remove_changes, remove_rounds
from pytest_evocode.tasks import Round
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.checkpoints import Checkpoints, Resumption
from pytest_evocode.trial.context import StopEvent, TrialContext
from pytest_evocode.trial.round_records import RoundRecords
from pytest_evocode.verifier import ended_by, may_fall_short, needs_verdict

logger = logging.getLogger(__name__)

_INTERVAL = 0.5  # seconds between two attempts to end a turn
_PATIENCE = 5.0  # seconds for an agent whose processes are killed; then its environment is stopped


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The round that keeps all later ones from being run."""

    index: int
    """The round's place in the task, from 1."""
    why: str


class Chain:
    """Decides when the next turn begins and which rounds count, and ends what does not count.

    A round counts once no verdict before it can end the chain any more. Until then its turn is not recorded as played
    and its verdict is not told; if the chain ends before it, all that was begun of it is dropped.

    Turns of the oracle, or with ``speculate``, begin ahead of verdicts that may well end the chain; all others begin
    ahead anyway. ``stop`` is set when the turn under way is dropped. ``is_oracle`` says that turns take nothing that
    records should tell of.
    """

    def __init__(
        self,
        context: TrialContext,
        rounds: Sequence[Round],
        turns: AgentTurns,
        checkpoints: Checkpoints,
        records: RoundRecords,
        *,
        stop: StopEvent,
        is_oracle: bool,
    ) -> None:
        self._context = context
        self._mode = context.options.mode
        self._rounds = rounds
        self._turns = turns
        self._checkpoints = checkpoints
        self._records = records
        self._stop = stop
        self._is_oracle = is_oracle
        self._speculates = (context.options.speculate or is_oracle) and not context.task.in_place
        self._deciding = [round_ for round_ in rounds if needs_verdict(round_, self._mode)]
        self._turns_are_over = threading.Event()
        self._is_settled = threading.Event()
        self._watcher: threading.Thread | None = None

    def resume(self, before: Resumption) -> None:
        """Leave out rounds that decide nothing any more; to be called once it is known where the attempt goes on.

        The rounds before one that has a record have let the chain go on, and so has one whose record was lost since.
        """
        first = max([before.first_played, *before.records])
        self._deciding = [each for each in self._deciding if each.index >= first and each.index not in before.lost]
        self._checkpoints.hold_back_after(self._deciding[0].index if self._deciding else math.inf)

    @property
    def has_ended(self) -> bool:
        """Whether a verdict that is there has ended the chain; does not wait."""
        for round_ in self._deciding:
            record = self._records.get(round_.index)
            if record is None or record.outcome == "not reached":
                return False
            if ended_by(round_, record, self._mode):
                return True
        return False

    def end_before(self, index: float = math.inf) -> ChainEnd | None:
        """Wait for all verdicts that decide whether a round counts, and return where the chain ends if it does not.

        Without an index that is asked of all rounds that are run.

        Raises:
            Cancelled: The session is stopped, so that one of these verdicts will not be there.
        """
        for position, round_ in enumerate(self._deciding):
            if round_.index >= index:
                break
            record = self._records.wait(round_.index)
            if record.outcome == "not reached":
                raise Cancelled(STOPPED)
            if why := ended_by(round_, record, self._mode):
                return ChainEnd(round_.index, why)
            later = self._deciding[position + 1 :]
            # What cannot be written now is tried again, and reported, when the round's own record is written.
            with contextlib.suppress(EnvironmentFault):
                self._checkpoints.count_up_to(later[0].index if later else math.inf)
        return None

    def watch(self, environment: Environment) -> None:
        """End the turn under way as soon as a verdict ends the chain, in a thread of its own."""
        if self._deciding and not self._context.task.in_place:
            self._watcher = threading.Thread(target=self._watch, args=(environment,), name="chain", daemon=True)
            self._watcher.start()

    def _watch(self, environment: Environment) -> None:
        with contextlib.suppress(Cancelled):
            if self.end_before() is not None:
                self._end_turn(environment)

    def _end_turn(self, environment: Environment) -> None:
        self._stop.set()
        until = time.monotonic() + _PATIENCE
        while not self._turns_are_over.is_set():
            if self._turns.taking:
                logger.debug("%s: killing a turn that does not count", self._context.task.name)
                with contextlib.suppress(EnvironmentFault):
                    # Kept alive where that will do: fixtures of the project may look into it until the attempt's end,
                    # and an agent that goes on all the same cannot without it.
                    if time.monotonic() < until:
                        environment.kill_processes()
                    else:
                        environment.stop()
            self._turns_are_over.wait(_INTERVAL)

    def goes_on_after(self, round_: Round) -> bool:
        """Return whether the next turn begins, after the verdict where that is to be waited for; raises Cancelled."""
        waits = may_fall_short(round_, self._mode) and not self._speculates
        if waits or self._context.task.in_place:
            return self.end_before(round_.index + 1) is None
        return not self.has_ended

    def counts(self, index: int) -> bool:
        """Wait until it is known whether a round counts, and return that; it does where the session was stopped."""
        try:
            return self.end_before(index) is None
        except Cancelled:
            return True

    def settle(self) -> None:
        """Note that nothing of a dropped round runs, or is left."""
        self._is_settled.set()

    def wait_until_settled(self) -> None:
        """Wait until nothing runs any more of the rounds after the end of the chain, if it has ended."""
        if self.has_ended:
            self._is_settled.wait()

    def finish(self, drop_suites_after: Callable[[int], None]) -> OSError | None:
        """Wait for the verdicts of the rounds, and drop what does not count by them; no turn begins any more.

        ``drop_suites_after`` kills the suites of the rounds after one. Returned is what kept files of dropped rounds
        from being removed. Raises Cancelled.
        """
        self._turns_are_over.set()
        end = self.end_before()
        if self._watcher is not None:
            self._watcher.join()
        if end is None:
            return None
        taken: dict[int, dict[str, Any]] = {}
        try:
            drop_suites_after(end.index)
            taken = self._drop(end)
        except OSError as error:
            return error
        finally:
            self._records.skip_after(end.index, end.why, taken)
        return None

    def _drop(self, end: ChainEnd) -> dict[int, dict[str, Any]]:
        """Remove all that is left of the rounds after the end, and return what their turns took, by round.

        Raises OSError.
        """
        is_done = self._checkpoints.is_done(end.index)
        self._records.undone |= not is_done
        dropped = self._checkpoints.drop_ahead()
        # Tool calls are left out: the mean of these is over rounds with a trajectory, and that is removed.
        taken = {turn.index: {"usage": turn.usage, "agent_seconds": turn.agent_seconds} for turn in dropped}
        last = self._turns.taken
        if "agent_seconds" in last and (index := self._turns.progress.index) > end.index:
            taken[index] = {"usage": last.get("usage"), "agent_seconds": last["agent_seconds"]}
        if taken:
            logger.info("%s: turns after round %d are dropped: %s", self._context.task.name, end.index, sorted(taken))
        if (directory := self._context.directory) is not None:
            # A round without a verdict is verified again by a later session, which goes on then.
            names = [round_.name for round_ in self._rounds if round_.index > end.index]
            remove_rounds(directory, names, keep_journals=not is_done)
            if taken:
                remove_changes(directory, self._addresses(end))
        return {} if self._is_oracle else taken

    def _addresses(self, end: ChainEnd) -> set[str]:
        """Return the addresses of the lists of changes that the records of the rounds that count have."""
        records = map(self._records.get, range(1, end.index + 1))
        verdicts = [record.verdict for record in records if record is not None and record.verdict is not None]
        return {verdict.changed.address for verdict in verdicts if verdict.changed is not None}
