"""Which attempts count, of those that were made, and which are missing, of those that were to be made."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from pytest_evocode.metrics.grouping import Grouping, Place, when
from pytest_evocode.results.loading import StoredAttempt, StoredRun, numbered
from pytest_evocode.results.records import TaskFacts

Missing = tuple[str | None, str, int]
"""A task, and the number of an attempt at it, behind the run that was to make the attempt where all runs count."""


def count_what_was_selected(
    runs: Iterable[StoredRun], places: dict[Place, list[StoredAttempt]], grouping: Grouping
) -> None:
    """Count all rounds of partial attempts where another run was to make a whole one, and none left anything."""
    made, whole = set(), set()
    for place, attempts in places.items():
        for each in attempts:
            made.add((place, each.run, each.record.task, each.record.attempt))
            if not each.partial:
                whole.add((place, each.record.task, each.record.attempt))
    unmade = set()
    for stored in runs:
        record = stored.record
        for task, agents in record.selected.items():
            for agent, numbers in agents.items():
                place = grouping.selected_place(stored, task, agent)
                parts = record.partial.get(task, {}).get(agent, {})
                unmade |= {
                    (place, task, number)
                    for number in numbers
                    if number not in parts
                    and (place, record.run, task, number) not in made
                    and not grouping.was_made(stored, task, agent, number)
                }
    unmade -= whole
    for place, attempts in places.items():
        for position, each in enumerate(attempts):
            if (place, each.record.task, each.record.attempt) in unmade:
                attempts[position] = each.as_whole()


def missing_attempts(
    runs: Iterable[StoredRun],
    places: Mapping[Place, Sequence[StoredAttempt]],
    grouping: Grouping,
    *,
    all_runs: bool,
    tasks: Mapping[str, TaskFacts] | None,
) -> dict[Place, dict[Missing, tuple[int, ...] | None]]:
    """Return the attempts that were to be made and left nothing, with their rounds where these are not all.

    They left nothing in any run, or, with ``all_runs``, in the run that was to make them. A partial attempt is not
    missing where a whole one of its number was made, and at contents of tasks that nothing was made at none is that was
    made at newer ones.
    """
    whole = {
        (place, each.record.task, each.record.attempt)
        for place, attempts in places.items()
        for each in attempts
        if not each.partial
    }
    made = {
        (place, attempt.run if all_runs else None, attempt.record.task, attempt.record.attempt)
        for place, attempts in places.items()
        for attempt in attempts
    }
    missing: dict[Place, dict[Missing, tuple[int, ...] | None]] = defaultdict(dict)
    for stored in runs:
        record = stored.record
        for task, agents in record.selected.items():
            for agent, numbers in agents.items() if tasks is None or task in tasks else ():
                place = grouping.selected_place(stored, task, agent)
                for number in numbers:
                    key = record.run if all_runs else None, task, number
                    part = record.partial.get(task, {}).get(agent, {}).get(number)
                    is_beside = part is not None and (place, task, number) in whole
                    newer = (place._replace(version=version) for version in range(place.version))
                    is_newer = not places.get(place) and any((each, *key) in made for each in newer)
                    is_made = (place, *key) in made or grouping.was_made(stored, task, agent, number)
                    if not is_beside and not is_newer and not is_made:
                        missing[place][key] = _together(part, missing[place].get(key, part))
    for place, attempts in [each for each in places.items() if each[0].version == 0]:
        known = {attempt.record.task for attempt in attempts} | {task for _, task, _ in missing[place]}
        missing[place].update({(None, task, 1): None for task in tasks or () if task not in known})
    return missing


def _together(part: tuple[int, ...] | None, other: tuple[int, ...] | None) -> tuple[int, ...] | None:
    """Return the rounds that two runs selected together; None is all of them."""
    return None if part is None or other is None else tuple(sorted({*part, *other}))


def counting_attempts(
    attempts: Iterable[StoredAttempt], all_runs: bool
) -> tuple[list[StoredAttempt], list[StoredAttempt]]:
    """Return the attempts that count, and the partial ones that would if there were no whole one.

    Of each task and number, and in single-round mode of each round, that is the newest of which nothing was left out,
    or the newest at all; with ``all_runs`` it is all of them, under new numbers. They are given in the order of time.
    """
    groups: dict[tuple[str, int, str | None], list[StoredAttempt]] = defaultdict(list)
    for each in attempts:
        groups[each.record.task, each.record.attempt, each.record.from_round].append(each)
    counting, beside = [], []
    for group in groups.values():
        whole = [place for place, each in enumerate(group) if not each.partial]
        places = whole or range(len(group))
        counting += [group[place] for place in (places if all_runs else places[-1:])]
        first = 0 if all_runs else places[-1]
        beside += [each for each in group[first:] if whole and each.partial]
    return _renumbered(sorted(counting, key=when)) if all_runs else counting, beside


def _renumbered(attempts: Iterable[StoredAttempt]) -> list[StoredAttempt]:
    """Return all attempts, which are given in the order of time, with numbers from 1 at each task."""
    numbers: Counter[tuple[str, str | None]] = Counter()
    found = []
    for attempt in attempts:
        key = attempt.record.task, attempt.record.from_round
        numbers[key] += 1
        found.append(replace(attempt, record=numbered(attempt.record, numbers[key])))
    return found
