"""Which attempts are scored together, which of them count, and which are missing of those that were to be made.

Together are those of one agent, under the same conditions, in one mode, at the same tasks.
"""

from __future__ import annotations

import json
import os
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import NamedTuple

from pytest_evocode.results.directory import STAMP
from pytest_evocode.results.identity import AgentIdentity, Subject, conditions_of, identity_of
from pytest_evocode.results.loading import StoredAttempt, StoredRun, called
from pytest_evocode.results.records import AttemptRecord, Mode, RunRecord, TaskFacts

_SECONDS = len("2026-11-29__15-00-00")


def known_facts(
    attempts: Iterable[StoredAttempt], runs: Iterable[RunRecord], contents: Mapping[str, str] | None = None
) -> dict[str, TaskFacts]:
    """Return the facts about tasks by name, as the newest attempt or run has them that says any.

    With ``contents`` only those runs tell that have a task in it at the contents of that hash.
    """
    found = [
        (begun(run.started, run.run), 0, run.run, task, known.facts)
        for run in runs
        for task, known in run.tasks.items()
        if contents is None or contents.get(task) == known.task_hash
    ]
    for attempt in attempts:
        record = attempt.record
        if record.facts is not None:
            found.append((begun(record.started, attempt.run), 1, str(attempt.path), record.task, record.facts))
    return {task: facts for *_, task, facts in sorted(found, key=lambda each: each[:4])}


def known_rounds(attempts: Iterable[StoredAttempt], facts: Mapping[str, TaskFacts]) -> dict[str, tuple[str, ...]]:
    """Return the names of the rounds of tasks: by their facts, else the most that an attempt by any agent tells.

    A name that is not known is empty.
    """
    most: dict[str, tuple[str, ...]] = {}
    for attempt in attempts:
        task, names = attempt.record.task, attempt.record.declared_rounds
        most[task] = max(most.get(task, ()), names, key=lambda each: (len(each), sum(map(bool, each)), each))
    return most | {task: known.rounds for task, known in facts.items()}


def begun(started: str, run: str) -> float:
    """Return when an attempt or run was begun, in seconds; without a time that is before all others."""
    for text, read in ((started, datetime.fromisoformat), (run, _stamp)):
        try:
            return read(text).timestamp()
        except ValueError:
            continue
    return 0.0


def _stamp(run: str) -> datetime:
    """Return the time in a run's name, behind whose seconds earlier versions and Harbor have nothing."""
    moment, fraction = datetime.strptime(run[:_SECONDS], STAMP), run[_SECONDS + 1 : _SECONDS + 7]
    return moment.replace(microsecond=int(fraction)) if len(fraction) == 6 and fraction.isdecimal() else moment


_Session = tuple[str, str]
"""Where a session's results lie, and its name."""


class Place(NamedTuple):
    """What a row of a table is about."""

    subject: Subject
    mode: Mode
    from_round: str | None
    """The round that the chains begin with, or of forks of A's state after a round ``A:round-3``; None is the first.

    In single-round mode it is always None.
    """
    version: int = 0
    """0 where tasks have the newest contents that the subject was run at in this mode, 1 for the ones before, and so
    on.
    """

    @property
    def newest(self) -> Place:
        """The place of the same attempts at the newest contents."""
        return self._replace(version=0)


class Grouping:
    """Finds the place of each attempt, and of each that was to be made.

    What an unfinished or missing attempt does not say itself is taken from its run's record, else from other attempts
    of the agent in its session, those that are finished first, else from the newest of all.
    """

    def __init__(
        self, attempts: Sequence[StoredAttempt], runs: Iterable[StoredRun], *, any_version: bool = False
    ) -> None:
        """Look through the attempts that count, given in the order of time, and the runs.

        With ``any_version`` attempts at different contents of a task are together.
        """
        self._any_version = any_version
        self._runs: dict[_Session, list[RunRecord]] = defaultdict(list)
        runs = sorted(runs, key=lambda run: (begun(run.record.started, run.record.run), str(run.path)))
        for run in runs:
            self._runs[session_of_run(run)].append(run.record)
        self._identities: dict[tuple[str, str], AgentIdentity] = {}
        self._of_session: dict[tuple[_Session, str], Subject] = {}
        self._of_name: dict[str, Subject] = {}
        self._hashes: dict[tuple[_Session, str], str] = {}
        self._names: dict[Subject, str] = {}
        self._last: dict[str, tuple[float, str]] = {}
        finished = [attempt for attempt in attempts if attempt.finished]
        # Twice, because what one does not say a later one may.
        for attempt in (*finished, *finished):
            subject = self._note(attempt)
            self._of_session[session_of(attempt), attempt.record.agent] = subject
            self._of_name[attempt.record.agent] = subject
            if attempt.record.task_hash:
                self._hashes[session_of(attempt), attempt.record.task] = _contents(attempt)
        for attempt in attempts:
            if not attempt.finished and attempt.record.made_by:
                subject = self._note(attempt)
                self._of_session.setdefault((session_of(attempt), attempt.record.agent), subject)
                self._of_name.setdefault(attempt.record.agent, subject)
        self._made = {(session_of(each), each.record.task, each.record.agent, each.record.attempt) for each in attempts}
        self._subjects = {attempt.path: self._note(attempt) for attempt in attempts}
        self._forked: dict[str, dict[AgentIdentity, None]] = defaultdict(dict)
        """By start, the agents from whose states attempts were forked: another may have the same name."""
        self._forked_in: dict[_Session, AgentIdentity] = {}
        for attempt in attempts:
            if (source := attempt.record.forked_from) is not None and source.made_by:
                agent = self._identity(source.made_by, source.agent)
                self._forked[source.point][agent] = None
                self._forked_in[session_of(attempt)] = agent
        self._versions = self._find_versions(attempts, runs)

    def place(self, attempt: StoredAttempt) -> Place:
        """Return the place of an attempt."""
        return self._at(self._newest_place(attempt), attempt.record.task, self._contents_of(attempt))

    def selected_place(self, run: StoredRun, task: str, agent: str) -> Place:
        """Return the place of attempts that a run was to make."""
        return self._at(self._newest_selected_place(run, agent), task, self._contents_of_run(run, task))

    def was_made(self, run: StoredRun, task: str, agent: str, number: int) -> bool:
        """Return whether a run has made an attempt, even if that was verified again at other contents of the task."""
        return (session_of_run(run), task, agent, number) in self._made

    def agent_name(self, subject: Subject) -> str:
        """Return what the newest records call an agent, which depends on the other agents of its session."""
        return self._names.get(subject, subject.agent.name)

    def contents(self, place: Place, tasks: Iterable[str]) -> dict[str, str]:
        """Return the hash of the contents of tasks at a place, empty where it is not known.

        A task whose attempts are at several is left out.
        """
        found = {task: self._versions.get((place.newest, task), {"": 0}) for task in sorted(tasks)}
        if self._any_version:
            return {task: next(iter(hashes)) for task, hashes in found.items() if len(hashes) == 1}
        return {task: list(hashes)[place.version] for task, hashes in found.items() if place.version < len(hashes)}

    def newest_contents(self, task: str) -> str:
        """Return the hash of the contents of a task that any attempt was last made at; empty where it is not known."""
        return self._last.get(task, (0.0, ""))[1]

    def contents_of(self, attempt: StoredAttempt) -> str:
        """Return the hash of the contents that an attempt was made at; the newest where nothing tells any."""
        contents = self._contents_of(attempt)
        return self.newest_contents(attempt.record.task) if contents is None else contents

    def changed(self, place: Place) -> dict[str, Mapping[str, int]]:
        """Return how many attempts there are at each of the contents of the tasks that have several, newest first."""
        return {
            task: hashes
            for (each, task), hashes in sorted(self._versions.items(), key=lambda item: item[0][1])
            if each == place.newest and len(hashes) > 1
        }

    def _newest_place(self, attempt: StoredAttempt) -> Place:
        record = attempt.record
        return Place(self._subjects[attempt.path], record.mode, self._start(record, session_of(attempt)))

    def _newest_selected_place(self, run: StoredRun, agent: str) -> Place:
        start = self._start(run.record, session_of_run(run))
        return Place(self._selected_subject(run, agent), run.record.mode, start)

    def _start(self, record: AttemptRecord | RunRecord, session: _Session) -> str | None:
        """Return what chains begin with; forks of agents with one name are told apart by the hash of these."""
        start = None if record.mode == "single-round" else record.start
        if start is None or len(agents := list(self._forked.get(start, ()))) < 2:
            return start
        source = record.forked_from if isinstance(record, AttemptRecord) else None
        if source is not None and source.made_by:
            forked = self._identity(source.made_by, source.agent)
        else:
            forked = self._forked_in.get(session, agents[-1])
        agent, _, name = start.partition(":")
        return f"{agent} {forked.hash}:{name}"

    def _at(self, place: Place, task: str, contents: str | None) -> Place:
        versions = list(self._versions.get((place, task), ()))
        if self._any_version or contents not in versions:
            return place
        return place._replace(version=versions.index(contents))

    def _find_versions(
        self, attempts: Sequence[StoredAttempt], runs: Iterable[StoredRun]
    ) -> dict[tuple[Place, str], dict[str, int]]:
        """Return by place and task the hashes of its contents, the newest first, with the number of attempts."""
        seen: list[tuple[float, Place, str, str, int]] = []
        for attempt in attempts:
            record = attempt.record
            if (contents := self._contents_of(attempt)) is not None:
                place = self._newest_place(attempt)
                # To verify an attempt again brings it to the task's contents of that day.
                seen.append((begun(record.regraded or record.started, attempt.run), place, record.task, contents, 1))
        for run in runs:
            for task, agents in run.record.selected.items():
                if (contents := self._contents_of_run(run, task)) is not None:
                    moment = begun(run.record.started, run.record.run)
                    for agent, selected in agents.items():
                        if all(self.was_made(run, task, agent, number) for number in selected):
                            continue
                        seen.append((moment, self._newest_selected_place(run, agent), task, contents, 0))
        for moment, _, task, contents, _ in seen:
            self._last[task] = max(self._last.get(task, (0.0, "")), (moment, contents))
        last: dict[tuple[Place, str], dict[str, float]] = defaultdict(dict)
        numbers: Counter[tuple[Place, str, str]] = Counter()
        for moment, place, task, contents, number in seen:
            hashes = last[place, task]
            hashes[contents] = max(moment, hashes.get(contents, moment))
            numbers[place, task, contents] += number
        return {
            (place, task): {
                contents: numbers[place, task, contents]
                for contents in sorted(hashes, key=lambda each: (-hashes[each], each))
            }
            for (place, task), hashes in last.items()
        }

    def _contents_of(self, attempt: StoredAttempt) -> str | None:
        """Return the hash of the contents that an attempt was made at; None where others may tell, but none does."""
        record = attempt.record
        if record.task_hash or attempt.finished:
            return _contents(attempt)
        session = session_of(attempt)
        of_runs = (_hash_in(run, record.task) for run in self._runs.get(session, ()))
        return next(filter(None, of_runs), None) or self._hashes.get((session, record.task))

    def _contents_of_run(self, run: StoredRun, task: str) -> str | None:
        return _hash_in(run.record, task) or self._hashes.get((session_of_run(run), task))

    def _note(self, attempt: StoredAttempt) -> Subject:
        subject = self._subject(attempt)
        self._names[subject] = attempt.record.agent
        return subject

    def _subject(self, attempt: StoredAttempt) -> Subject:
        record, session = attempt.record, session_of(attempt)
        run = max(self._runs.get(session, ()), key=lambda run: run.selects(record), default=None)
        other = self._of_session.get((session, record.agent)) or self._of_name.get(record.agent)
        made_by, said = record.made_by, conditions_of(record)
        if run is not None:
            made_by = made_by or run.agents.get(record.agent, {})
            environment = said.environment or run.environment
            said = conditions_of(run) if said.strict is None else said
            said = said._replace(environment=environment)
        if other is not None:
            said = said._replace(environment=said.environment or other.conditions.environment)
        if attempt.finished or other is None:
            return Subject(self._identity(made_by, record.agent), said)
        agent = self._identity(made_by, record.agent) if made_by else other.agent
        return Subject(agent, said if run is not None or said.strict is not None else other.conditions)

    def _selected_subject(self, run: StoredRun, agent: str) -> Subject:
        record = run.record
        other = self._of_session.get((session_of_run(run), agent)) or self._of_name.get(agent)
        if not record.agents.get(agent) and other is not None:
            return other
        subject = Subject(
            self._identity(record.agents.get(agent, {}), agent),
            conditions_of(record),
        )
        self._names.setdefault(subject, agent)
        return subject

    def _identity(self, made_by: Mapping[str, object], agent: str) -> AgentIdentity:
        key = agent, json.dumps(made_by, sort_keys=True) if made_by else ""
        if key not in self._identities:
            self._identities[key] = identity_of(made_by, agent)
        return self._identities[key]


def session_of(attempt: StoredAttempt) -> _Session:
    """Return the session that made an attempt, or Harbor's job."""
    # <results>/<task>/harbor_jobs/<agent>/<run>/<attempt>; strings, because Path objects are slow.
    return str(attempt.path).rsplit(os.sep, 5 if attempt.layout == "evocode" else 1)[0], attempt.run


def session_of_run(run: StoredRun) -> _Session:
    """Return the session that a run's record is of."""
    return str(run.path.parent.parent), run.record.run


def _contents(attempt: StoredAttempt) -> str:
    """Return the hash of a task's contents; those of others are made in another way, and never the same as ours.

    Harbor's checksum is over all files below a task's directory. Where its jobs lie there it changes with every trial,
    and tells nothing of the contents.
    """
    digest = attempt.record.task_hash
    if attempt.layout == "evocode" or not digest:
        return digest
    return "" if "harbor_jobs" in attempt.path.parts else f"{attempt.layout}:{digest}"


def _hash_in(run: RunRecord, task: str) -> str | None:
    return (run.tasks[task].task_hash or None) if task in run.tasks else None


def when(attempt: StoredAttempt) -> tuple[float, str]:
    """Return a key to sort attempts by the time when they were begun."""
    return begun(attempt.record.started, attempt.run), str(attempt.path)


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
        found.append(replace(attempt, record=called(attempt.record, attempt=numbers[key])))
    return found
