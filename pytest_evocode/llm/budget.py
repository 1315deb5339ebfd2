"""Budgets: limits on what an attempt, or a whole run, may use, and the account of what they have used."""

from __future__ import annotations

import fcntl
import math
import time
from dataclasses import dataclass, field, fields
from pathlib import Path

from pytest_evocode.errors import RunLimitReached, UsageError
from pytest_evocode.llm.waiting import Waiting
from pytest_evocode.results.records import Spent, Usage

_NOTHING = Usage(prompt_tokens=0, completion_tokens=0, cost_usd=0.0)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one attempt or of one round; None is no limit."""

    tokens: float | None = None
    """Prompt and completion tokens of all requests, cached ones included."""
    cost: float | None = None
    """US dollars."""
    turns: float | None = None
    """Replies of the model."""
    minutes: float | None = None
    """The agent's wall-clock time."""


@dataclass(frozen=True, slots=True)
class Budget(Limits):
    """Limits of one attempt, of each of its rounds, and, ``total_cost``, of all attempts of a run together.

    RigorBench's budget is ``tokens=200000,minutes=60``.
    """

    total_cost: float | None = None
    """US dollars."""
    round: Limits = field(default_factory=Limits)
    """Limits of each round."""

    @property
    def limits_cost(self) -> bool:
        """Whether prices have to be known to keep to it."""
        return self.total_cost is not None or self.cost is not None or self.round.cost is not None

    @property
    def limits_tokens(self) -> bool:
        """Whether tokens have to be known to keep to it."""
        return self.tokens is not None or self.round.tokens is not None

    @property
    def limits_turns(self) -> bool:
        """Whether the model's replies have to be known to keep to it."""
        return self.turns is not None or self.round.turns is not None


_PER_ROUND = "/round"


def parse_budget(text: str) -> Budget:
    """Parse a budget as it is written on the command line.

    Raises:
        UsageError: A limit is unknown, is given twice, or is not a number of 0 or more.

    >>> budget = parse_budget("tokens=200000,turns=30/round,total-cost=50")
    >>> budget.tokens, budget.round.turns, budget.total_cost
    (200000.0, 30.0, 50.0)
    """
    of_round = [each.name for each in fields(Limits)]
    known = [*of_round, "total-cost"]
    found: dict[bool, dict[str, float]] = {False: {}, True: {}}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, _, written = part.partition("=")
        per_round = written.endswith(_PER_ROUND)
        if name not in known:
            raise UsageError(
                f"{part!r} is not a limit; known are {', '.join(known)}, as in tokens=200000,cost=3,turns=30/round"
            )
        if per_round and name not in of_round:
            raise UsageError(f"{part!r}: {name} is a limit of the whole run; write {part.removesuffix(_PER_ROUND)}")
        try:
            limit = float(written.removesuffix(_PER_ROUND))
        except ValueError:
            limit = math.nan
        if not 0 <= limit < math.inf:
            raise UsageError(f"{part!r}: the limit has to be a number, 0 or more, such as {name}=100")
        limits, key = found[per_round], name.replace("-", "_")
        if key in limits:
            raise UsageError(f"{part!r}: this limit is given twice; leave one out")
        limits[key] = limit
    return Budget(**found[False], round=Limits(**found[True]))


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
        self._before_turn = self._spent
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
        """Start the clock, and count anew for the limits of a round.

        The clock stands still while the turn waits for something that it is not to blame for.
        """
        self._before_turn = self._spent
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

    def charge_run(self, usage: Usage) -> None:
        """Count for the run alone what was paid for beside the agent."""
        if self._run is not None and (cost := _countable(usage.cost_usd)):
            self._run.add(cost)

    @property
    def turn_seconds(self) -> float:
        """Seconds of the turn so far."""
        return self.spent.seconds - self._before_turn.seconds

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
        """Seconds until the minutes of the attempt, or those of the round, are over; None without such a limit."""
        seconds = self.spent.seconds
        left = [
            60 * limits.minutes - (seconds - before.seconds)
            for limits, before in self._limits()
            if limits.minutes is not None
        ]
        return max(0.0, min(left)) if left else None

    def _limits(self) -> tuple[tuple[Limits, Spent], ...]:
        """Return the limits of the attempt and those of a round, each with what does not count for them."""
        return (self.budget, Spent()), (self.budget.round, self._before_turn)

    def would_exhaust(self, requests: int, *, tokens: int, cost: float) -> bool:
        """Whether a limit of the attempt or round is reached once so many requests have used so much each.

        Where tokens or cost are limited and 0, as nobody knows yet how much a request uses, any number reaches it.
        """
        if (self.budget.limits_tokens and not tokens) or (self.budget.limits_cost and not cost):
            return True
        spent = self.spent
        then = spent.model_copy(
            update={
                "tokens": spent.tokens + tokens * requests,
                "cost_usd": spent.cost_usd + cost * requests,
                "turns": spent.turns + requests,
            }
        )
        return any(_reached(limits, before, then) for limits, before in self._limits())

    @property
    def exhausted(self) -> str:
        """The limit that is reached, in words for the record; empty while something is left of each.

        Raises:
            RunLimitReached: The run may cost no more: the attempt waits for a session with a higher limit.
        """
        for (limits, before), where in zip(self._limits(), ("", " in the round"), strict=True):
            if words := _reached(limits, before, self.spent):
                return f"budget: {words} used{where}"
        if self.run_exhausted:
            raise RunLimitReached(self.run_exhausted)
        return ""

    @property
    def run_exhausted(self) -> str:
        """The limit of the whole run that is reached, in words for the record; empty while something is left."""
        limit = self.budget.total_cost
        if limit is None or self._run is None or (cost := self._run.cost_usd) < limit:
            return ""
        return f"budget: total-cost ${cost:.4g} of ${limit:.4g} used by the run"


def _reached(limits: Limits, before: Spent, spent: Spent) -> str:
    """Return which limit is reached by what was spent since ``before``; empty where none is."""
    used = {
        "tokens": (limits.tokens, spent.tokens - before.tokens, "{:,.0f}"),
        "cost": (limits.cost, spent.cost_usd - before.cost_usd, "${:.4g}"),
        "turns": (limits.turns, spent.turns - before.turns, "{:.0f}"),
        "minutes": (limits.minutes, (spent.seconds - before.seconds) / 60, "{:.1f}"),
    }
    for name, (limit, value, form) in used.items():
        if limit is not None and value >= limit:
            return f"{name} {form.format(value)} of {form.format(limit)}"
    return ""


def _countable(used: float | None) -> float:
    """Return the number, or 0 where it is missing or negative: programs in the container say what they use."""
    return used if used is not None and 0 <= used < math.inf else 0
