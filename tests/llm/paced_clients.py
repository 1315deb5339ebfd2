"""Clients that share a pace, and the providers that limit and fail them, played on a clock of their own."""

from __future__ import annotations

import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

from pytest_evocode.llm.connection_limits import RequestPace

MINUTE = 60.0
FAULT_SECONDS = 0.1
"""How soon a provider refuses or fails a request."""


@dataclass(frozen=True, slots=True)
class Fault:
    """What a provider says in place of an answer."""

    status: int = 429
    retry_after: float | None = None


Provider = Callable[[float], Fault | None]
"""Returns None where a request at a time is answered."""


class Played(NamedTuple):
    """How many requests were answered, refused with 429, and failed otherwise."""

    answered: int
    refused: int
    failed: int


def clock_minutes(limit: int) -> Provider:
    """So many requests in each minute of the clock."""
    counted: dict[int, int] = {}

    def ask(now: float) -> Fault | None:
        minute = int(now // MINUTE)
        counted[minute] = counted.get(minute, 0) + 1
        return None if counted[minute] <= limit else Fault(retry_after=(minute + 1) * MINUTE - now)

    return ask


def last_minute(limit: int) -> Provider:
    """So many requests in any minute."""
    allowed: deque[float] = deque()

    def ask(now: float) -> Fault | None:
        while allowed and allowed[0] <= now - MINUTE:
            allowed.popleft()
        if len(allowed) < limit:
            allowed.append(now)
            return None
        return Fault(retry_after=allowed[0] + MINUTE - now)

    return ask


def bucket(size: int, limit: int) -> Provider:
    """So many requests at once, which come back evenly over a minute."""
    left, since = float(size), 0.0

    def ask(now: float) -> Fault | None:
        nonlocal left, since
        left, since = min(size, left + (now - since) * limit / MINUTE), now
        if left >= 1:
            left -= 1
            return None
        return Fault(retry_after=(1 - left) * MINUTE / limit)

    return ask


def failing(part: float, *faults: Fault, seed: int = 1) -> Provider:
    """Some part of all requests, at random, with any of the faults."""
    chance = random.Random(seed)
    return lambda now: chance.choice(faults) if chance.random() < part else None


def silent(provider: Provider) -> Provider:
    """The same, which never says when to come back."""

    def ask(now: float) -> Fault | None:
        fault = provider(now)
        return None if fault is None else replace(fault, retry_after=None)

    return ask


def play(
    provider: Provider,
    *,
    clients: int,
    seconds: float,
    latency: float,
    think: float = 0.05,
    waits: bool = True,
    seed: int = 1,
) -> Played:
    """Play clients that always want a request, and count what becomes of those until the end.

    Args:
        latency: Mean seconds of an answer; each takes half of it to one and a half.
        think: Seconds of a client between an answer and its next request.
        waits: Whether a client waits after a fault as :class:`~pytest_evocode.llm.provider_errors.RetrySchedule` has
            it; else it asks again at once.
    """
    pace, chance, order = RequestPace(), random.Random(seed), itertools.count()
    counts = {"answer": 0, "refusal": 0, "failure": 0}
    faults_in_a_row = [0] * clients
    events: list[tuple[float, int, str, int, int, Fault | None]] = []

    def at(moment: float, what: str, client: int, ticket: int = 0, fault: Fault | None = None) -> None:
        heapq.heappush(events, (moment, next(order), what, client, ticket, fault))

    for client in range(clients):
        at(chance.random() / 10, "want", client)
    while events[0][0] < seconds:
        now, _, what, client, ticket, fault = heapq.heappop(events)
        if what in ("want", "wait"):
            left, ticket = pace.reserve(now) if what == "want" else (pace.wait(now, ticket), ticket)
            at(now + left, "wait" if left else "send", client, ticket)
        elif what == "send":
            fault = provider(now)
            late = latency * (0.5 + chance.random()) if fault is None else FAULT_SECONDS
            kind = "answer" if fault is None else "refusal" if fault.status == 429 else "failure"
            at(now + late, kind, client, ticket, fault)
        else:
            counts[what] += 1
            if what == "refusal" and fault is not None:
                pace.refused(now, ticket, fault.retry_after)
            else:
                pace.answered(now, ticket)
            faults_in_a_row[client] = 0 if fault is None else faults_in_a_row[client] + 1
            backoff = 0.5 * 2.0 ** min(faults_in_a_row[client] - 1, 6) * chance.uniform(0.5, 1)
            after = think if fault is None or not waits else backoff if fault.retry_after is None else fault.retry_after
            at(now + after, "want", client)
    return Played(*counts.values())


def throughputs(part: float, attempts: int, latency: float, faults: tuple[Fault, ...], seeds: int) -> Iterator[float]:
    """Yield answers per second as a part of attempts / latency, where a part of all requests fails."""
    seconds = 60.0
    for seed in range(seeds):
        provider = failing(part, *faults, seed=seed)
        played = play(provider, clients=attempts, seconds=seconds, latency=latency, think=0.0, seed=seed)
        yield played.answered / seconds * latency / attempts
