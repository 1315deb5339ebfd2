"""Attempts that a session selects, and what earlier runs have of them that a session can go on with."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from itertools import dropwhile
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter

from pytest_evocode.errors import RecordFault
from pytest_evocode.results.directory import JOURNAL_FILE, STATE_FILE, AttemptDirectory, read_run
from pytest_evocode.results.identity import identity_of
from pytest_evocode.results.records import RunRecord, SelectedTask, TaskFacts
from pytest_evocode.tasks.lockfile import content_hash


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


def run_to_continue(
    results: Path,
    selected: Sequence[SelectedAttempt],
    fits: Callable[[RunRecord], bool],
    agents: Mapping[str, Mapping[str, Any]],
    *,
    only_fitting: bool = False,
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
        only_fitting: Whether runs are left out that were begun with other options or agents.
    """

    def rank(found: RunProgress) -> tuple[bool, bool, bool, bool, bool, str]:
        same = _has_no_other_agents(found.run, agents)
        return same, found.begun, fits(found.run), found.unfinished, found.to_go == 0, found.run.run

    best = None
    for path in sorted((results / "runs").glob("[!.]*.json"), reverse=True):
        with contextlib.suppress(RecordFault):
            run = read_run(path)
            if only_fitting and not (fits(run) and _has_no_other_agents(run, agents)):
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
    matches, unfinished, begun, kept, to_go = False, False, False, 0, 0
    for each in selected:
        directory = AttemptDirectory.of(results, each.task, each.agent, run.run, each.number)
        is_there = directory.path.is_dir()
        was_selected = each.number in run.selected.get(each.task, {}).get(each.agent, ())
        matches |= is_there or was_selected
        unfinished |= was_selected and not is_there
        for part in _parts(directory, each):
            of_part, left, has_ended = _look_back(part, each)
            kept, to_go = kept + of_part, to_go + left
            if left and is_there and not has_ended:
                unfinished = True
                begun |= of_part > 0 or _is_begun(directory.path)
    return RunProgress(run, kept, to_go, unfinished, begun) if matches else None


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


def with_selected(
    run: RunRecord, selected: Sequence[SelectedAttempt], agents: Mapping[str, Mapping[str, Any]] | None = None
) -> RunRecord:
    """Return the record of a run with more attempts and rounds selected than those of its earlier sessions.

    Tasks are read anew: attempts that are still to be made are made at what they are now. Of ``agents``, what made them
    by name, those that the run knows stay as they are: an attempt remains that of the agent which began the run.
    """
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
        "agents": {**{name: dict(made_by) for name, made_by in (agents or {}).items()}, **run.agents},
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
