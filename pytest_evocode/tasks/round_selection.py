"""Which of a task's rounds an attempt runs."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class RoundSelection:
    """The rounds of one attempt; indexes count from 1.

    >>> RoundSelection(begin_with=3).rounds_before, RoundSelection.single(2)
    (2, RoundSelection(begin_with=2, first_wanted=2, last=2))
    """

    begin_with: int | None = None
    """The round that the agent begins with by choice, at the state that the reference solutions of those before lead
    to; these have no record. None has the agent play from the first round on."""
    first_wanted: int = 1
    """The first round that was asked for. Those between where the agent begins and here run only where needed."""
    last: int | None = None
    """The last round that is run; None is the task's last."""

    @classmethod
    def single(cls, index: int) -> RoundSelection:
        """Select one round, to be run by itself."""
        return cls(index, index, index)

    @property
    def rounds_before(self) -> int:
        """How many rounds are left to the reference solutions."""
        return (self.begin_with or 1) - 1

    def including(self, index: int) -> RoundSelection:
        """Return the selection with one more round asked for."""
        return replace(self, first_wanted=min(self.first_wanted, index), last=max(self.last or 0, index))
