"""What the model of rounds sees: which rounds were passed, by agent, task, attempt and round; and how that is drawn."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.faults import without_faults
from pytest_evocode.metrics.grid import TaskRounds
from pytest_evocode.metrics.intervals import FEWEST_TASKS
from pytest_evocode.metrics.score_table import ScoreRow
from pytest_evocode.names import protocol
from pytest_evocode.results.identity import short_contents
from pytest_evocode.results.records import Mode

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats: TypeAlias = NDArray[np.floating]
    Flags: TypeAlias = NDArray[np.bool_]

FEWEST_AGENTS = 2
INSTALL = "pip install 'pytest-evocode[stats]'"


@dataclass(frozen=True, eq=False)
class Outcomes:
    """The rounds of several agents in one mode; arrays are by agent, task, attempt and round, and padded."""

    agents: Sequence[str]
    tasks: Sequence[str]
    passed: Flags
    counted: Flags
    """Which of the cells are rounds that have an outcome."""
    mode: Mode = "chain"

    @property
    def has_attempts(self) -> bool:
        """Whether the rounds of an attempt have something in common."""
        return self.mode != "single-round"

    @property
    def carries(self) -> bool:
        """Whether a round begins with what a failed one left."""
        return self.mode == "chain"

    @property
    def declared(self) -> Flags:
        """Which rounds there are, by task and round."""
        import numpy as np

        found: Flags = np.asarray(self.counted.any(axis=(0, 2)))
        return found

    @property
    def depth(self) -> Floats:
        """The index of a round less the mean of all that count."""
        import numpy as np

        index = np.arange(self.counted.shape[-1])
        found: Floats = index - (self.counted * index).sum() / self.counted.sum()
        return found

    @property
    def failed_before(self) -> Flags:
        """Whether the last round before that counts was not passed; not so of first rounds."""
        import numpy as np

        found = np.zeros_like(self.passed)
        for index in range(1, self.passed.shape[-1]):
            last = ~self.passed[..., index - 1]
            found[..., index] = np.where(self.counted[..., index - 1], last, found[..., index - 1])
        return found


def grouped_outcomes(rows: Sequence[ScoreRow]) -> dict[str, Outcomes]:
    """Return the outcomes of all agents but controls at the newest contents, by mode and first round; "" are chains.

    Rounds without a verdict because of infrastructure, and those that no reward decides, are left out. In fail-stop
    mode so are those behind a failed one, of which nothing is known.

    Raises:
        UsageError: There are too few agents, tasks or attempts in every mode; the message says why.
    """
    groups: dict[tuple[Mode, str | None], list[ScoreRow]] = defaultdict(list)
    for row in rows:
        if row.version == 0 and not row.is_control:
            groups[row.mode, row.from_round].append(row)
    reasons = {key: too_few(group) for key, group in groups.items()}
    if all(reasons.values()):
        said = [f"{protocol(*key) or 'chains'}: {why}" for key, why in reasons.items()]
        raise UsageError("; ".join(said) or _NO_AGENTS)
    return {protocol(*key): outcomes(group) for key, group in groups.items() if not reasons[key]}


_NO_AGENTS = "there are no agents but controls"


def too_few(rows: Sequence[ScoreRow]) -> str:
    """Return why nothing can be said of some rows; empty where there is enough."""
    if len(rows) < FEWEST_AGENTS:
        return f"{FEWEST_AGENTS} agents are needed, without controls, for there to be a difference"
    tasks: dict[str, int] = defaultdict(int)
    for task in (task for row in rows for task in row.grid.tasks):
        tasks[task.task] = max(tasks[task.task], len(task.attempts))
    if len(tasks) < FEWEST_TASKS:
        return f"{FEWEST_TASKS} tasks are needed: of fewer it is not known how tasks vary"
    if rows[0].mode != "single-round" and sum(made > 1 for made in tasks.values()) < FEWEST_TASKS:
        return (
            f"two attempts at {FEWEST_TASKS} tasks are needed: with one, what varies from attempt to attempt cannot be "
            "told from how an agent does at a task"
        )
    passed = {record.passed for row in rows for record in row.grid.records()}
    return "" if len(passed) == 2 else "every round has the same outcome"


def outcomes(rows: Sequence[ScoreRow]) -> Outcomes:
    """Return the outcomes of some rows of one mode; a task with other contents is another task."""
    import numpy as np

    grids = [{_contents_of(row, task.task): task for task in _counting(row)} for row in rows]
    keys = sorted({key for grid in grids for key in grid})
    several = {name for name, _ in keys if sum(each == name for each, _ in keys) > 1}
    tasks = [task for grid in grids for task in grid.values()]
    first, last = min(task.chain[0] for task in tasks), max(task.chain[-1] for task in tasks)
    shape = len(rows), len(keys), max(len(task.attempts) for task in tasks), last - first + 1
    passed, counted = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
    for agent, grid in enumerate(grids):
        for key, task in grid.items():
            for place, (number, attempt) in enumerate(task.attempts.items()):
                for index in task.own(number):
                    cell = agent, keys.index(key), place, index - first
                    counted[cell] = True
                    passed[cell] = index in attempt and attempt[index].passed
                    if rows[0].mode == "fail-stop" and not passed[cell]:
                        break
    names = [f"{name}@{short_contents(contents)}" if name in several else name for name, contents in keys]
    return Outcomes([row.group for row in rows], names, passed, counted, rows[0].mode)


def _counting(row: ScoreRow) -> Sequence[TaskRounds]:
    return without_faults(row.grid, chains=row.mode != "single-round").decided().tasks


def _contents_of(row: ScoreRow, task: str) -> tuple[str, str]:
    return task, row.contents.get(task, "")


def log_odds(draws: Mapping[str, Floats], depth: Floats) -> Floats:
    """Return the log-odds by draw, agent, task and round, of a typical attempt whose state is whole."""
    import numpy as np

    found = draws["agent"][:, :, None] * draws["discrimination"][:, None] + draws["interaction"]
    found = found + (draws["intercept"][:, None] - draws["task"])[:, None]
    of_round = draws["round"] + draws["depth"][:, None, None] * depth
    total: Floats = (found[..., None] + of_round[:, None]).astype(np.float32)
    return total


def probability(values: Floats) -> Floats:
    """Return the probabilities of log-odds, such as 0.5 of 0."""
    import numpy as np

    found: Floats = 1 / (1 + np.exp(-values))
    return found


def played(odds: Floats, carried: Floats, mode: Mode, random: np.random.Generator) -> Flags:
    """Draw which rounds are passed from log-odds, whose last axis are the rounds; ``carried`` fits the others."""
    import numpy as np

    passed = np.zeros(odds.shape, dtype=bool)
    failed = np.zeros(odds.shape[:-1], dtype=bool)
    for index in range(odds.shape[-1]):
        chance = probability(odds[..., index] + carried * failed if mode == "chain" else odds[..., index])
        passed[..., index] = random.random(failed.shape, dtype=np.float32) < chance
        if mode == "fail-stop":
            passed[..., index] &= ~failed
        failed = ~passed[..., index]
    return passed
