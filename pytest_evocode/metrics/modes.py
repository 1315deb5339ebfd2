"""The mode of a session, and the scores that follow from it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.scores import Scores, scores
from pytest_evocode.names import scored_name
from pytest_evocode.results.records import Mode, RoundRecord


@dataclass(frozen=True, slots=True)
class RunMode:
    """A mode, and the name of the round that chains begin with; scores of different modes cannot be compared."""

    mode: Mode = "chain"
    from_round: str | None = None

    def name(self, agent: str) -> str:
        """Return the heading of an agent's scores: its name, and the mode where that is not a whole chain."""
        return scored_name(agent, self.mode, self.from_round)

    def grid(self, records: Iterable[RoundRecord]) -> Grid:
        """Return the grid of the rounds that count, which are those from ``from_round`` on."""
        records = list(records)
        begin = {record.task: record.index for record in records if record.round == self.from_round}
        return Grid.of(records, begin=begin)

    def scores(self, records: Iterable[RoundRecord]) -> Scores:
        """Return the scores of one agent.

        >>> outcomes = [(2, "passed"), (3, "failed")]
        >>> records = [RoundRecord(task="t", agent="a", attempt=1, round=f"round-{index}", index=index,
        ...     declared_rounds=3, outcome=outcome) for index, outcome in outcomes]
        >>> [round(RunMode(from_round=name).scores(records).dataset_score, 1) for name in (None, "round-2")]
        [33.3, 50.0]
        >>> round(RunMode("single-round").scores(records).sr, 1)
        33.3
        """
        grid = self.grid(records)
        return scores((), grid) if self.mode == "single-round" else scores(grid)

    @property
    def headline(self) -> str:
        """The title of the score that an agent is judged by."""
        return "SR" if self.mode == "single-round" else "Dataset Score"

    def score(self, records: Sequence[RoundRecord]) -> float:
        """Return the score that an agent is judged by, 0 to 100."""
        found = self.scores(records)
        score = found.sr if self.mode == "single-round" else found.dataset_score
        assert score is not None
        return score
