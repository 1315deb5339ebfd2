"""Lets an agent's turns begin ahead of verdicts, and drops what does not count when a verdict ends the chain."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from pytest_evocode.environments import Environment
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.results.dropped_rounds import remove_changes, remove_rounds
from pytest_evocode.tasks import Round
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.chain import Chain, ChainEnd
from pytest_evocode.trial.checkpoints import Checkpoints
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.round_records import RoundRecords
from pytest_evocode.trial.stopping import StopEvent
from pytest_evocode.trial.verdict_pipeline import VerdictPipeline
from pytest_evocode.verifier import may_fall_short

logger = logging.getLogger(__name__)

_INTERVAL = 0.5  # seconds between two attempts to end a turn
_PATIENCE = 5.0  # seconds for an agent whose processes are killed; then its environment is stopped


class TurnsAhead:
    """Decides when the next turn begins, and ends the one under way when no round after a verdict counts.

    ``speculates`` begins turns ahead of verdicts that may well end the chain; all others begin ahead anyway. ``stop``
    is set when the turn under way is dropped. ``is_oracle`` says that turns take nothing that records should tell of.
    """

    def __init__(
        self,
        context: TrialContext,
        chain: Chain,
        turns: AgentTurns,
        verdicts: VerdictPipeline,
        checkpoints: Checkpoints,
        records: RoundRecords,
        *,
        stop: StopEvent,
        speculates: bool,
        is_oracle: bool,
    ) -> None:
        self._context = context
        self._chain = chain
        self._turns = turns
        self._verdicts = verdicts
        self._checkpoints = checkpoints
        self._records = records
        self._stop = stop
        self._speculates = speculates and not context.task.in_place
        self._is_oracle = is_oracle
        self._are_over = threading.Event()
        self._is_settled = threading.Event()
        self._watcher: threading.Thread | None = None

    def watch(self, environment: Environment) -> None:
        """End the turn under way as soon as a verdict ends the chain, in a thread of its own."""
        if self._chain.depends_on_verdicts and not self._context.task.in_place:
            self._watcher = threading.Thread(target=self._watch, args=(environment,), name="chain", daemon=True)
            self._watcher.start()

    def _watch(self, environment: Environment) -> None:
        with contextlib.suppress(Cancelled):
            if self._chain.end_before() is not None:
                self._end_turn(environment)

    def _end_turn(self, environment: Environment) -> None:
        self._stop.set()
        until = time.monotonic() + _PATIENCE
        while not self._are_over.is_set():
            if self._turns.taking:
                logger.debug("%s: killing a turn that does not count", self._context.task.name)
                with contextlib.suppress(EnvironmentFault):
                    # Kept alive where that will do: fixtures of the project may look into it until the attempt's end,
                    # and an agent that goes on all the same cannot without it.
                    if time.monotonic() < until:
                        environment.kill_processes()
                    else:
                        environment.stop()
            self._are_over.wait(_INTERVAL)

    def goes_on_after(self, round_: Round) -> bool:
        """Return whether the next turn begins, after the verdict where that is to be waited for; raises Cancelled."""
        waits = may_fall_short(round_, self._context.options.mode) and not self._speculates
        if waits or self._context.task.in_place:
            return self._chain.end_before(round_.index + 1) is None
        return not self._chain.has_ended

    def counts(self, index: int) -> bool:
        """Wait until it is known whether a round counts, and return that; it does where the session was stopped."""
        try:
            return self._chain.end_before(index) is None
        except Cancelled:
            return True

    def settle(self) -> None:
        """Note that nothing of a dropped round runs, or is left."""
        self._is_settled.set()

    def wait_until_settled(self) -> None:
        """Wait until nothing runs any more of the rounds after the end of the chain, if it has ended."""
        if self._chain.has_ended:
            self._is_settled.wait()

    def finish(self, rounds: Sequence[Round]) -> OSError | None:
        """Wait for the verdicts of the rounds, and drop what does not count by them; no turn begins any more.

        Returned is what kept files of dropped rounds from being removed. Raises Cancelled.
        """
        self._are_over.set()
        end = self._chain.end_before()
        if self._watcher is not None:
            self._watcher.join()
        if end is None:
            return None
        taken: dict[int, dict[str, Any]] = {}
        try:
            taken = self._drop([round_.name for round_ in rounds if round_.index > end.index], end)
        except OSError as error:
            return error
        finally:
            self._records.skip_after(end.index, end.why, taken)
        return None

    def _drop(self, names: Sequence[str], end: ChainEnd) -> dict[int, dict[str, Any]]:
        """Remove all that is left of the rounds after the end, and return what their turns took, by round.

        Raises OSError.
        """
        self._verdicts.drop_after(end.index)
        is_done = self._checkpoints.is_done(end.index)
        self._records.undone |= not is_done
        dropped = self._checkpoints.drop_ahead()
        # Tool calls are left out: the mean of these is over rounds with a trajectory, and that is removed.
        taken = {turn.index: {"usage": turn.usage, "agent_seconds": turn.agent_seconds} for turn in dropped}
        if self._turns.seconds is not None and (index := self._turns.progress.index) > end.index:
            taken[index] = {"usage": self._turns.unrecorded, "agent_seconds": self._turns.seconds}
        if taken:
            logger.info("%s: turns after round %d are dropped: %s", self._context.task.name, end.index, sorted(taken))
        if (directory := self._context.directory) is not None:
            # A round without a verdict is verified again by a later session, which goes on then.
            remove_rounds(directory, names, keep_journals=not is_done)
            if taken:
                remove_changes(directory, self._addresses(end))
        return {} if self._is_oracle else taken

    def _addresses(self, end: ChainEnd) -> set[str]:
        """Return the addresses of the lists of changes that the records of the rounds that count have."""
        records = map(self._records.get, range(1, end.index + 1))
        verdicts = [record.verdict for record in records if record is not None and record.verdict is not None]
        return {verdict.changed.address for verdict in verdicts if verdict.changed is not None}
