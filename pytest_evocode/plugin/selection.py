"""What a session runs of what was collected: whole chains up to a selected round, and its shard of the attempts."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.metrics.spending import ExpectedAmounts
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem
from pytest_evocode.plugin.live_lines import clock
from pytest_evocode.plugin.session import Selected
from pytest_evocode.plugin.settings import Settings
from pytest_evocode.results.directory import last_seconds
from pytest_evocode.results.records import task_facts
from pytest_evocode.results.selection import SelectedAttempt
from pytest_evocode.tasks import Round as TaskRound
from pytest_evocode.tasks import Task

Shard = tuple[int, int]
"""One of several sessions that make attempts together: which, from 1, of how many."""

#: What an agent's turn counts for that has no timeout, in seconds.
_NO_TIMEOUT = 3600.0


def restore_rounds(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """Return the items with the rounds of every chain together, in order, from the first to the last selected one.

    The second list has those that are left out, because they come before the round that chains begin with.
    """
    kept: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    for item in items:
        if isinstance(item, RoundItem) and item.index <= item.parent.rounds.rounds_before:
            left_out.append(item)
            continue
        kept.append(item)
        if isinstance(item, RoundItem):
            item.parent.rounds = item.parent.rounds.including(item.index)
    restored: list[pytest.Item] = []
    seen: set[AttemptCollector] = set()
    for item in kept:
        if not isinstance(item, RoundItem) or not item.parent.is_chain:
            restored.append(item)
        elif item.parent not in seen:
            seen.add(item.parent)
            rounds = item.parent.rounds
            restored += item.parent.collect()[rounds.rounds_before : rounds.last]
    return restored, left_out


def split(
    items: Sequence[pytest.Item], shard: Shard | None, expected: ExpectedAmounts | None = None
) -> tuple[list[pytest.Item], list[pytest.Item], Selected]:
    """Return the items that a session runs, those that other shards run, and the attempts of all of them.

    Items that are no rounds belong to every shard. Shards are made by the times that are expected, else by timeouts.
    """
    attempts = {item.parent: _name(item.parent) for item in items if isinstance(item, RoundItem)}
    rounds = [item for item in items if isinstance(item, RoundItem)]
    if shard is None:
        return list(items), [], _selected(rounds, elsewhere=set())
    if expected is None:
        # Not the time that earlier attempts took, which differs from machine to machine.
        seconds = {name: allowed_seconds(each.task.rounds[: each.rounds.last]) for each, name in attempts.items()}
    else:
        seconds = {
            _name(attempt): expected.of_attempt(attempt.agent.id, attempt.task.name, sorted(indices))
            for attempt, indices in _indices(rounds).items()
        }
    own = share(seconds, shard)
    left = {attempt for attempt, name in attempts.items() if name not in own}
    kept = [item for item in items if item.parent not in left]
    return kept, [item for item in items if item.parent in left], _selected(rounds, elsewhere=left)


def _name(attempt: AttemptCollector) -> tuple[str, ...]:
    return attempt.task.name, attempt.agent.id, f"{attempt.number:09}", attempt.nodeid


def _selected(rounds: Iterable[RoundItem], *, elsewhere: Set[AttemptCollector]) -> Selected:
    return tuple(
        SelectedAttempt(
            task=attempt.task.name,
            agent=attempt.agent.id,
            number=attempt.number,
            facts=task_facts(attempt.task),
            rounds=tuple(sorted(of_attempt)),
            directory=attempt.task.directory,
            begin=attempt.rounds.begin_with or 1,
            single=not attempt.is_chain,
            limits=tuple(sorted(LIMITS.keys() & attempt.task.config.environment.model_fields_set)),
            elsewhere=attempt in elsewhere,
        )
        for attempt, of_attempt in sorted(_indices(rounds).items(), key=lambda pair: _name(pair[0]))
    )


def _indices(rounds: Iterable[RoundItem]) -> dict[AttemptCollector, set[int]]:
    """Return the indices of the rounds of each attempt."""
    indices: dict[AttemptCollector, set[int]] = defaultdict(set)
    for item in rounds:
        indices[item.parent].add(item.index)
    return indices


LIMITS = {
    "cpus": "sets no limit of processors",
    "storage_mb": "sets no limit of storage",
    "storage": "sets no limit of storage",
    "gpu_types": "does not choose the kind of GPU",
}
"""Keys of ``[environment]`` that not every engine can do anything with, and what it does not do."""


def describe_limits(selected: Selected, engine: Engine) -> str:
    """Return what tasks ask for and do not get: limits that the engine does not set."""
    asking: dict[str, set[str]] = defaultdict(set)
    for each in selected:
        for key in set(each.limits) & set(engine.without_effect):
            asking[LIMITS[key]].add(each.task)
    found = {what: "1 task asks" if len(tasks) == 1 else f"{len(tasks)} tasks ask" for what, tasks in asking.items()}
    said = [f"the {engine.name} environment {what}, which {number} for" for what, number in sorted(found.items())]
    return "; ".join(said)


def describe_shards(selected: Selected, shard: Shard | None, expected: ExpectedAmounts | None) -> str:
    """Return how long each shard is expected to take, empty where nothing was measured or there are no shards."""
    if shard is None or expected is None or not selected:
        return ""
    seconds: dict[tuple[str, ...], float] = {
        (each.task, each.agent, f"{each.number:09}"): expected.of_attempt(each.agent, each.task, each.rounds)
        for each in selected
    }
    shares = [share(seconds, (number, shard[1])) for number in range(1, shard[1] + 1)]
    times = ", ".join(clock(math.fsum(seconds[name] for name in each)) for each in shares)
    known = sum(expected.knows(each.agent, each.task) for each in selected)
    return (
        f"shards are expected to take {times} one attempt after the other; measured before: {known} of "
        f"{len(selected)} attempts (times {expected.digest}, the same in every shard)"
    )


def share(seconds: Mapping[tuple[str, ...], float], shard: Shard) -> set[tuple[str, ...]]:
    """Return the names of a shard's attempts, given the seconds that each attempt is expected to take.

    Attempts are dealt out longest first, equally long ones by name, each to the shard with the least to do until then.
    So the order of the mapping does not matter, and shares differ by the time of one attempt at most.

    >>> attempts = {("a",): 10.0, ("b",): 30.0, ("c",): 10.0, ("d",): 10.0}
    >>> share(attempts, (1, 2)), sorted(share(attempts, (2, 2)))
    ({('b',)}, [('a',), ('c',), ('d',)])
    """
    number, of = shard
    loads = [0.0] * of
    found = set()
    for name in sorted(seconds, key=lambda name: (-seconds[name], name)):
        lightest = loads.index(min(loads))
        loads[lightest] += seconds[name]
        if lightest == number - 1:
            found.add(name)
    return found


def expected_seconds(settings: Settings, task: Task, agent: str, only_round: str = "") -> float:
    """Return how long the last attempt of an agent at a task took; if there was none, the sum of the task's timeouts.

    ``only_round`` names the round of a single-round attempt.
    """
    if not (settings.check or settings.warm):
        seconds = last_seconds(settings.results, task.name, agent, settings.mode, only_round)
        if seconds is not None:
            return seconds
    return allowed_seconds([round_ for round_ in task.rounds if only_round in ("", round_.name)])


def allowed_seconds(rounds: Iterable[TaskRound]) -> float:
    """Return the sum of the timeouts of agents and suites, which is known before anything was run."""
    return sum(
        (_NO_TIMEOUT if round_.agent_timeout is None else round_.agent_timeout) + round_.verifier_timeout
        for round_ in rounds
    )
