"""Budgets: limits on what an attempt, or a whole run, may use, and the account of what they have used."""

from __future__ import annotations

import fcntl
import math
import time
from dataclasses import dataclass, fields
from pathlib import Path

from pytest_evocode.errors import UsageError
from pytest_evocode.llm.waiting import Waiting
from pytest_evocode.results.records import Usage
from pytest_evocode.results.states import Spent

_NOTHING = Usage(prompt_tokens=0, completion_tokens=0, cost_usd=0.0)


@dataclass(frozen=True, slots=True)
class Budget:
    """Limits of one attempt and, ``total_cost``, of all attempts of a run together; None is no limit.

    RigorBench's budget is ``tokens=200000,minutes=60``.
    """

    tokens: float | None = None
    """Prompt and completion tokens of all requests, cached ones included."""
    cost: float | None = None
    """US dollars."""
    turns: float | None = None
    """Replies of the model."""
    minutes: float | None = None
    """The agent's wall-clock time, over all its rounds."""
    total_cost: float | None = None
    """US dollars."""

    @property
    def limits_cost(self) -> bool:
        """Whether prices have to be known to keep to it."""
        return self.cost is not None or self.total_cost is not None


def parse_budget(text: str) -> Budget:
    """Parse a budget as it is written on the command line.

    Raises:
        UsageError: A limit is unknown, or is not a number of 0 or more.

    >>> parse_budget("tokens=200000,total-cost=50")
    Budget(tokens=200000.0, cost=None, turns=None, minutes=None, total_cost=50.0)
    """
    known = [field.name.replace("_", "-") for field in fields(Budget)]
    limits: dict[str, float] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, written = part.partition("=")
        if name not in known:
            raise UsageError(f"{part!r} is not a limit; known are {', '.join(known)}, as in tokens=200000,cost=3")
        try:
            limit = float(written)
        except ValueError:
            limit = math.nan
        if not 0 <= limit < math.inf:
            raise UsageError(f"{part!r}: the limit has to be a number, 0 or more, such as {name}=100")
        limits[name.replace("-", "_")] = limit
    return Budget(**limits)


class RunSpending:
    """The cost of all attempts of a run, in a file that the processes of the run share: one amount a line."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, cost_usd: float) -> None:
        """Add an amount."""
        self._path.parent.mkdir(parents=True, exist_ok=True)
        with self._path.open("ab", buffering=0) as file:
            # On network file systems appending is not atomic. A lock of `filelock` would leave a second file.
            fcntl.flock(file, fcntl.LOCK_EX)
            file.write(f"{cost_usd!r}\n".encode())

    @property
    def cost_usd(self) -> float:
        """Sum so far."""
        try:
            return math.fsum(map(float, self._path.read_text().split()))
        except FileNotFoundError:
            return 0.0


class AttemptSpending:
    """What one attempt has used: agents charge what they use, and ask before every request what is left."""

    def __init__(
        self, budget: Budget | None = None, *, run: RunSpending | None = None, spent: Spent | None = None
    ) -> None:
        self.budget = budget or Budget()
        self._run = run
        self._spent = spent or Spent()
        self._turn_began: float | None = None
        self.waiting = Waiting()
        """What the turn under way, or the last one, waited for; its time does not count."""

    @property
    def spent(self) -> Spent:
        """Used so far, the turn under way included."""
        began = self._turn_began  # Another thread may end the turn meanwhile.
        running = 0.0 if began is None else max(0.0, time.monotonic() - began - self.waiting.seconds)
        return self._spent.model_copy(update={"seconds": self._spent.seconds + running})

    def resume(self, spent: Spent) -> None:
        """Continue from what an earlier session had used."""
        self._spent = spent

    def begin_turn(self, waiting: Waiting | None = None) -> None:
        """Start the clock, which stands still while the turn waits for something that it is not to blame for."""
        self.waiting = waiting or Waiting()
        self._turn_began = time.monotonic()

    def set_back(self, seconds: float) -> None:
        """Count seconds that an earlier session has waited in the turn under way."""
        if self._turn_began is not None:
            self._turn_began -= seconds

    def end_turn(self) -> float:
        """Stop the clock and return the seconds of the turn."""
        before = self._spent.seconds
        self._spent, self._turn_began = self.spent, None
        return self._spent.seconds - before

    def charge(self, usage: Usage | None, *, turns: int = 1, paid_before: bool = False) -> None:
        """Count replies of a model; those ``paid_before`` by an earlier session do not count for the run again."""
        usage = usage or _NOTHING
        self._count(_countable(usage.tokens), _countable(usage.cost_usd), turns, paid_before=paid_before)

    def correct(self, before: Usage | None, now: Usage) -> None:
        """Correct a charge from what it was ``before`` to what it is ``now`` known to be."""
        before = before or _NOTHING
        tokens = 0 if now.tokens is None else _countable(now.tokens) - _countable(before.tokens)
        cost = 0.0 if now.cost_usd is None else _countable(now.cost_usd) - _countable(before.cost_usd)
        self._count(tokens, cost, turns=0, paid_before=False)

    def _count(self, tokens: float, cost: float, turns: int, *, paid_before: bool) -> None:
        update = {
            "tokens": self._spent.tokens + int(tokens),
            "cost_usd": self._spent.cost_usd + cost,
            "turns": self._spent.turns + turns,
        }
        self._spent = self._spent.model_copy(update=update)
        if cost and not paid_before and self._run is not None:
            self._run.add(cost)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the attempt's minutes are over; None without such a limit."""
        if self.budget.minutes is None:
            return None
        return max(0.0, 60 * self.budget.minutes - self.spent.seconds)

    @property
    def exhausted(self) -> str:
        """The limit that is reached, in words for the record; empty while something is left of each."""
        budget, spent = self.budget, self.spent
        used = {
            "tokens": (budget.tokens, spent.tokens, "{:,.0f}"),
            "cost": (budget.cost, spent.cost_usd, "${:.4g}"),
            "turns": (budget.turns, spent.turns, "{:.0f}"),
            "minutes": (budget.minutes, spent.seconds / 60, "{:.1f}"),
        }
        for name, (limit, value, form) in used.items():
            if limit is not None and value >= limit:
                return f"budget: {name} {form.format(value)} of {form.format(limit)} used"
        if (
            budget.total_cost is not None
            and self._run is not None
            and (cost := self._run.cost_usd) >= budget.total_cost
        ):
            return f"budget: total-cost ${cost:.4g} of ${budget.total_cost:.4g} used by the run"
        return ""


def _countable(used: float | None) -> float:
    """Return the number, or 0 where it is missing or negative: programs in the container say what they use."""
    return used if used is not None and 0 <= used < math.inf else 0
