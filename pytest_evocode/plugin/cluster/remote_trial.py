"""What stands in for the trial of an attempt that runs on a node of the session's cluster; the attempt's items read it.

Apart from the cluster's other modules, because those import the session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from pytest_evocode.errors import AttemptEnded, EnvironmentFault
from pytest_evocode.results.records import RoundRecord

if TYPE_CHECKING:
    from pytest_evocode.environments import Environment
    from pytest_evocode.trial.context import Progress


class RemoteTrial:
    """An attempt elsewhere, as :class:`~pytest_evocode.trial.trial.Trial` shows itself to items.

    It is filled by the thread that speaks to the cluster, and by no other. An item is run only when what it waits for
    is there, so nothing here waits. The items come and go; it is the driver that begins and ends the attempt.
    """

    def __init__(self) -> None:
        self._records: dict[int, RoundRecord] = {}
        self._outputs: dict[int, str] = {}
        self._first: int | None = None
        self._fault = ""
        self.has_ended = False
        """Whether nothing of the attempt runs any more and none of it will."""
        self.progress: Progress | None = None
        self.is_reported = False
        """Whether the attempt's last item is being run, whose report also tells a fault that no record has."""

    # For the thread that speaks to the cluster.

    def begin(self, first_played: int) -> None:
        """Take the index of the first round that is run; that of an earlier try stands."""
        self._first = first_played if self._first is None else min(self._first, first_played)

    def deliver(self, record: RoundRecord, output: str = "") -> None:
        """Take a round's record; one of a round that was repeated takes the place of the earlier one."""
        self._outputs[record.index] = output
        self._records[record.index] = record

    def has_verdict(self, index: int) -> bool:
        """Return whether a round has a record from an earlier try, which is no error."""
        record = self._records.get(index)
        return record is not None and record.outcome in ("passed", "failed", "undecided")

    def end(self, fault: str = "") -> None:
        """Note that the attempt has ended."""
        self._fault, self.progress = fault, None
        self.has_ended = True

    def missing(self, indices: Sequence[int]) -> list[int]:
        """Return the rounds of some that will have a record and have none yet."""
        return [index for index in indices if index not in self._records and index >= (self._first or 1)]

    def is_ready(self, index: int, *, is_last: bool) -> bool:
        """Return whether the item of a round can be run; that of the last one when the attempt has ended."""
        known = index in self._records or (self._first is not None and index < self._first)
        return known and (self.has_ended or not is_last)

    def record_of(self, index: int) -> RoundRecord | None:
        """Return the record that a round has now, None where it has none."""
        return self._records.get(index)

    # For items.

    def first_played(self) -> int:
        """Return the first round that is run; those before it have no record."""
        return self._first or 1

    def wait(self, index: int) -> RoundRecord:
        """Return the record of a round."""
        return self._records[index]

    def wait_environment(self) -> Environment:
        """Raise AttemptEnded: there is no environment here."""
        raise AttemptEnded("the attempt runs on another machine")

    def output_of(self, index: int) -> str:
        """Return what the suite of a round printed; empty where the results directory has it."""
        return self._outputs.get(index, "")

    @property
    def storage_notes(self) -> tuple[str, ...]:
        """What there is to say of the storage: nothing here, because the node has told the driver."""
        return ()

    def close(self) -> None:
        """Raise EnvironmentFault for the fault that the attempt ended with, when its last round is reported."""
        if self.is_reported and self._fault:
            raise EnvironmentFault(self._fault)
