"""Follows the verdicts of an attempt in order: where the chain of its rounds ends, and which rounds count."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from dataclasses import dataclass

from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import Cancelled, EnvironmentFault
from pytest_evocode.results.records import Mode
from pytest_evocode.tasks import Round
from pytest_evocode.trial.checkpoints import Checkpoints
from pytest_evocode.trial.resumption import Resumption
from pytest_evocode.trial.round_records import RoundRecords
from pytest_evocode.verifier import ended_by, needs_verdict


@dataclass(frozen=True, slots=True)
class ChainEnd:
    """The round that keeps all later ones from being run."""

    index: int
    """The round's place in the task, from 1."""
    why: str


class Chain:
    """Tells which rounds count, while turns may be ahead of verdicts.

    A round counts once no verdict before it can end the chain any more. Until then its turn is not recorded as played
    and its verdict is not told; if the chain ends before it, all that was begun of it is dropped.
    """

    def __init__(self, rounds: Sequence[Round], mode: Mode, records: RoundRecords, checkpoints: Checkpoints) -> None:
        self._mode = mode
        self._records = records
        self._checkpoints = checkpoints
        self._deciding = [round_ for round_ in rounds if needs_verdict(round_, mode)]

    def resume(self, before: Resumption) -> None:
        """Leave out rounds that decide nothing any more; to be called once it is known where the attempt goes on.

        The rounds before one that has a record have let the chain go on, and so has one whose record was lost since.
        """
        first = max([before.first_played, *before.records])
        self._deciding = [each for each in self._deciding if each.index >= first and each.index not in before.lost]
        self._checkpoints.hold_back_after(self._deciding[0].index if self._deciding else math.inf)

    @property
    def depends_on_verdicts(self) -> bool:
        """Whether any verdict can end the chain."""
        return bool(self._deciding)

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
