"""Attempts that a session selects, and what earlier runs have of them that a session can go on with."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from pytest_evocode.errors import RecordFault
from pytest_evocode.names import first_played
from pytest_evocode.results.directory import JOURNAL_FILE, STATE_FILE, AttemptDirectory, read_run
from pytest_evocode.results.identity import ANSWERED_BY, differing_descriptions, identity_of
from pytest_evocode.results.records import (
    RECORD_VERSION,
    AttemptRecord,
    AttemptState,
    ForkSource,
    RunRecord,
    SelectedTask,
    TaskFacts,
)
from pytest_evocode.tasks.lockfile import content_hash

_WITH_HARNESS = 3
"""The version of records that first says which harness drove an agent."""
_WITH_SERVER = 4
"""That which first says what server was asked, and what else the environment decides."""


@dataclass(frozen=True, slots=True)
class SelectedAttempt:
    """An attempt that a session is to make."""

    task: str
    agent: str
    number: int
    facts: TaskFacts
    rounds: tuple[int, ...]
    """The indices of the rounds that are to be run, from 1 and in order."""
    directory: Path
    """The task's directory."""
    brought_along: tuple[int, ...] = ()
    """Those of them that were not selected, and that selected ones need."""
    begin: int = 1
    """The index of the round that whole attempts of the session begin with."""
    single: bool = False
    """Whether each round is run by itself."""
    limits: tuple[str, ...] = ()
    """The keys of ``[environment]`` that the task gives, of those that not every engine can do anything with."""
    elsewhere: bool = False
    """Whether another shard is to make it."""

    @property
    def declared(self) -> tuple[str, ...]:
        """The names of the task's rounds."""
        return self.facts.rounds

    @property
    def partial(self) -> bool:
        """Whether not all rounds are selected that a whole attempt goes through."""
        return len(self.counting) < len(self.declared) - self.begin + 1

    @property
    def counting(self) -> tuple[int, ...]:
        """The indices of the rounds that were selected."""
        return tuple(index for index in self.rounds if index not in self.brought_along)

    def names(self) -> list[str]:
        """Return the names of the rounds that are to be run."""
        return [self.declared[index - 1] for index in self.rounds]


_Table = TypeVar("_Table", bound=Sized)
_SELECTED = TypeAdapter(tuple[SelectedAttempt, ...])


def selected_as_json(selected: tuple[SelectedAttempt, ...]) -> str:
    """Return selected attempts for another process, to be read by :func:`read_selected`."""
    return _SELECTED.dump_json(selected).decode()


def read_selected(text: bytes) -> tuple[SelectedAttempt, ...]:
    """Return what :func:`selected_as_json` wrote."""
    return _SELECTED.validate_json(text)


@dataclass(frozen=True, slots=True)
class RunProgress:
    """What a run has of the attempts that a session selects."""

    run: RunRecord
    kept: int
    """How many of the selected rounds need no other turn of the agent."""
    to_go: int
    unfinished: bool
    """Whether one of the attempts is not at the end that it was begun for."""
    begun: bool
    """Whether such an attempt has left anything."""
    ended: bool
    """Whether all of them are at that end, and no verdict is missing."""


def run_to_continue(
    results: Path,
    selected: Sequence[SelectedAttempt],
    fits: Callable[[RunRecord], bool],
    agents: Mapping[str, Mapping[str, Any]],
    *,
    only_fitting: bool = False,
    environment: str = "",
) -> RunRecord | None:
    """Return the newest run with unfinished attempts of those that are selected, else the newest that has any.

    Runs by the same agents come first, then those that have left something of unfinished attempts, then those whose
    options fit the session, and of finished ones those with all that is selected. None where no run has any of the
    attempts; runs whose records cannot be read are passed over.

    Args:
        results: The results directory.
        selected: The attempts that the session is to make.
        fits: Whether a run was begun with the options of the session.
        agents: What made the agents of the session, by name.
        only_fitting: Whether runs are left out that were begun with other options or agents, or at other contents.
        environment: The engine of the session, for those that are left out.
    """

    def rank(found: RunProgress) -> tuple[bool, bool, bool, bool, bool, str]:
        same = _has_no_other_agents(found.run, agents)
        return same, found.begun, fits(found.run), found.unfinished, found.to_go == 0, found.run.run

    best = None
    for path in sorted((results / "runs").glob("[!.]*.json"), reverse=True):
        with contextlib.suppress(RecordFault):
            run = read_run(path)
            if only_fitting and (not fits(run) or why_not_continued(results, run, selected, agents, environment)):
                continue
            found = progress_of(results, run, selected)
            best = max((each for each in (found, best) if each is not None), key=rank, default=None)
            if best is not None and all(rank(best)[:3]):
                break  # All others are older.
    return None if best is None else best.run


def _has_no_other_agents(run: RunRecord, agents: Mapping[str, Mapping[str, Any]]) -> bool:
    """Return whether no agent of a run has the name of one of ``agents`` and is another, as with other options."""
    return all(
        identity_of(run.agents[name], name) == identity_of(agents[name], name)
        for name in run.agents.keys() & agents.keys()
    )


def progress_of(results: Path, run: RunRecord, selected: Sequence[SelectedAttempt]) -> RunProgress | None:
    """Return what a run has of selected attempts; None where it neither made nor selected any of them."""
    matches, unfinished, begun, ended, kept, to_go = False, False, False, True, 0, 0
    for each in selected:
        directory = AttemptDirectory.of(results, each.task, each.agent, run.run, each.number)
        is_there = directory.path.is_dir()
        was_selected = each.number in run.numbers(each.task, each.agent)
        matches |= is_there or was_selected
        unfinished |= was_selected and not is_there
        for part in _parts(directory, each):
            of_part, left, has_ended = _look_back(part, each)
            kept, to_go = kept + of_part, to_go + left
            ended &= has_ended and not left
            if left and is_there and not has_ended:
                unfinished = True
                begun |= of_part > 0 or _is_begun(directory.path)
    return RunProgress(run, kept, to_go, unfinished, begun, ended) if matches else None


def attempts_of(run: RunRecord) -> Iterator[SelectedAttempt]:
    """Yield the attempts that a run's sessions were to make, those of all shards, as far as it knows their tasks."""
    for task, known in run.tasks.items():
        begin = first_played(run.start or "", known.facts.rounds) or 1
        whole = range(begin, len(known.facts.rounds) + 1)
        for agent, numbers in run.selected.get(task, {}).items():
            parts = run.partial.get(task, {}).get(agent, {})
            for number in numbers:
                rounds = tuple(parts.get(number, whole))
                single = run.mode == "single-round"
                yield SelectedAttempt(task, agent, number, known.facts, rounds, Path(), begin=begin, single=single)


def _parts(directory: AttemptDirectory, attempt: SelectedAttempt) -> list[AttemptDirectory]:
    if not attempt.single:
        return [directory]
    return [AttemptDirectory(directory.path, directory.scrubber, name) for name in attempt.names()]


def _look_back(directory: AttemptDirectory, attempt: SelectedAttempt) -> tuple[int, int, bool]:
    """Return how many rounds are kept and how many are to be run, as a trial finds it, and whether it had ended."""
    names = [directory.only_round] if attempt.single else attempt.names()
    done = {name for name in names if (directory.path / "steps" / name / "round.json").is_file()}
    has_ended = False
    with contextlib.suppress(RecordFault):  # To resume the attempt says so.
        if (state := directory.read_state()) is not None:
            done |= {attempt.declared[turn.index - 1] for turn in state.turns}
        else:
            ended = directory.read_attempt()
            rounds = ended.rounds if ended is not None else ()
            has_ended = bool(rounds) and not any(each.outcome == "error" and each.round not in done for each in rounds)
            done = {each.round for each in rounds} if has_ended else set()
    # Rounds before the first that there is were not needed: the oracle began at a known state.
    needed = list(dropwhile(lambda name: name not in done, names)) or names
    kept = sum(name in done for name in needed)
    if has_ended and kept < len(needed):
        return 0, len(names), True  # Nothing is there that further rounds could go on from.
    return kept, len(needed) - kept, has_ended


def _is_begun(path: Path) -> bool:
    places = (STATE_FILE, f"steps/*/{STATE_FILE}", f"steps/*/agent/{JOURNAL_FILE}", "result.json")
    return any(True for place in places for _ in path.glob(place))


def why_other(earlier: AttemptState | AttemptRecord, now: AttemptState) -> str:
    """Return why an attempt cannot go on as what it would be now, and what to do; empty where it can."""
    if earlier.task_hash != now.task_hash:
        return (
            "the task's files have changed since this attempt was begun, so its rounds cannot be continued; restore "
            "the files, or start a new run without --evocode-resume"
        )
    if earlier.made_by and _differing_makers(earlier.made_by, now.made_by, earlier.version):
        return (
            "this attempt was begun with another agent under the same name, or with other options "
            f"({json.dumps(earlier.made_by)}); continue it with these"
        )
    begun = earlier.forked_from
    if _forked_from(begun) != _forked_from(now.forked_from):
        option = "no --evocode-fork-from"
        if begun is not None:
            option = f"--evocode-fork-from={begun.point}@{begun.run}"
        return f"this attempt was begun with {option}; continue it with that"
    if earlier.environment != now.environment:
        return f"this attempt was begun in {earlier.environment}; continue it with --evocode-env={earlier.environment}"
    return ""


def why_not_continued(
    results: Path,
    run: RunRecord,
    selected: Sequence[SelectedAttempt],
    agents: Mapping[str, Mapping[str, Any]],
    environment: str,
) -> str:
    """Return why a session cannot go on with a run, as far as the records tell before anything begins; else empty.

    Args:
        results: The results directory.
        run: The record of the run.
        selected: The attempts that the session is to make.
        agents: What makes the agents of the session, by name, as records have it.
        environment: The engine of the session.
    """
    for name in sorted(run.agents.keys() & agents.keys()):
        if differing := _differing_makers(run.agents[name], agents[name], run.version):
            return (
                f"{name} of the run {run.run} was begun with other options or as another agent, "
                f"{', '.join(differing)} now; continue it with those, or start a new run without --evocode-resume"
            )
    hashes: dict[Path, str] = {}
    for each in selected:
        if each.directory not in hashes:
            with contextlib.suppress(OSError):  # To begin an attempt says so.
                hashes[each.directory] = content_hash(each.directory)
        directory = AttemptDirectory.of(results, each.task, each.agent, run.run, each.number)
        for part in _parts(directory, each):
            earlier = _goes_on_from(part, each)
            if earlier is None or each.directory not in hashes:
                continue
            now = AttemptState(
                environment=environment,
                task_hash=hashes[each.directory],
                made_by=dict(agents.get(each.agent, earlier.made_by)),
                forked_from=earlier.forked_from,  # Only its trial knows what it would begin in.
            )
            if why := why_other(earlier, now):
                return f"{part.path}: {why}"
    return ""


def _goes_on_from(directory: AttemptDirectory, attempt: SelectedAttempt) -> AttemptState | AttemptRecord | None:
    """Return the record that a trial goes on from, as it finds it; None where it begins anew, or says what is wrong."""
    with contextlib.suppress(RecordFault, OSError):
        if (state := directory.read_state()) is not None:
            return state
        ended = directory.read_attempt()
        if ended is not None and (attempt.single or not _broke(ended, directory)):
            return ended
    return None


def _broke(ended: AttemptRecord, directory: AttemptDirectory) -> bool:
    """Return whether an attempt ended in an error that is no record of a round."""
    steps = directory.path / "steps"
    return any(each.outcome == "error" and not (steps / each.round / "round.json").is_file() for each in ended.rounds)


def _forked_from(source: ForkSource | None) -> tuple[object, ...]:
    """Return which state a fork began in; verdicts on it may have changed since."""
    return () if source is None else (source.agent, source.run, source.attempt, source.index)


def _differing_makers(earlier: Mapping[str, Any], now: Mapping[str, Any], version: int) -> list[str]:
    """Return what differs between what made an agent in a record and now, as far as its version could say it.

    The name that it has beside others in a session is not part of it.
    """
    left_out = {"name", *(["harness"] if version < _WITH_HARNESS else [])}
    before, parts = ({name: part for name, part in of.items() if name not in left_out} for of in (earlier, now))
    if version < _WITH_SERVER:
        for key in ("options", "command"):
            said = earlier.get(key, {})
            kept = {
                each: value for each, value in parts.get(key, {}).items() if each in said or each not in ANSWERED_BY
            }
            parts = {**parts, key: kept} if kept else {name: part for name, part in parts.items() if name != key}
        parts.pop("headers", None)
    return differing_descriptions(before, parts) if before != parts else []


def with_selected(
    run: RunRecord, selected: Sequence[SelectedAttempt], agents: Mapping[str, Mapping[str, Any]] | None = None
) -> RunRecord:
    """Return the record of a run with more attempts and rounds selected than those of its earlier sessions.

    Tasks are read anew: attempts that are still to be made are made at what they are now. Of ``agents``, what made them
    by name, those that the run knows stay as they are: an attempt remains that of the agent which began the run. Of a
    record of an older version they are said anew, as it could not say all.
    """
    said, known = dict(agents or {}), run.agents
    first, second = (said, known) if run.version == RECORD_VERSION else (known, said)
    numbers = {task: {agent: set(of) for agent, of in by_agent.items()} for task, by_agent in run.selected.items()}
    partial = {task: {agent: dict(of) for agent, of in by_agent.items()} for task, by_agent in run.partial.items()}
    for each in selected:
        before = numbers.setdefault(each.task, {}).setdefault(each.agent, set())
        parts = partial.setdefault(each.task, {}).setdefault(each.agent, {})
        earlier = parts.pop(each.number, None)
        rounds = sorted({*each.counting, *(earlier or ())})
        was_whole = each.number in before and earlier is None
        if not was_whole and replace(each, rounds=tuple(rounds), brought_along=()).partial:
            parts[each.number] = tuple(rounds)
        before.add(each.number)
    update = {
        "selected": {
            task: {agent: tuple(sorted(by_agent[agent])) for agent in sorted(by_agent)}
            for task, by_agent in sorted(numbers.items())
        },
        "tasks": dict(sorted({**run.tasks, **_tasks(selected)}.items())),
        "partial": _without_empty({task: _without_empty(by_agent) for task, by_agent in partial.items()}),
        "agents": {name: dict(made_by) for name, made_by in {**first, **second}.items()},
    }
    return run.model_copy(update=update)


def _tasks(selected: Sequence[SelectedAttempt]) -> dict[str, SelectedTask]:
    found: dict[str, SelectedTask] = {}
    for each in selected:
        if each.task not in found:
            task_hash = ""
            with contextlib.suppress(OSError):  # To begin an attempt says so.
                task_hash = content_hash(each.directory)
            found[each.task] = SelectedTask(task_hash=task_hash, facts=each.facts)
    return found


def _without_empty(found: dict[str, _Table]) -> dict[str, _Table]:
    return {name: table for name, table in found.items() if table}
