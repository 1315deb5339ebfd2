"""Controls: attempts that are wrong in a way that their author knows, which suites have to notice.

A file ``controls/NAME.toml`` of a task is one. It either ends with a round, after which nothing is done, or changes
what the reference solutions of some rounds leave, each by itself. Mutants are changes that are made one at a time.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from pytest_evocode.checks.catalogue import CONTROLS
from pytest_evocode.checks.oracle_check import require_a_pass
from pytest_evocode.checks.played_attempt import PlayedAttempt, PlayedRound, lay
from pytest_evocode.environments import Environment
from pytest_evocode.errors import TaskError, describe_validation
from pytest_evocode.tasks import Task

_LIMIT = 300.0  # seconds for the command of a change


class Change(BaseModel):
    """What a control changes in a round's solution."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    round: str
    file: str
    """The file, relative to the workspace."""
    old: Annotated[str, Field(min_length=1)]
    """A passage that is in it once."""
    new: str
    """What takes its place."""
    run: str = ""
    """A command for bash that makes of the file what the suite uses, such as ``make``."""
    breaks: str = ""
    """The requirement of which a case has to fail; any case will do where it is empty."""


class LoneChange(Change):
    """A change that is made by itself, also where others are of the same round."""

    survives: str = ""
    """Why no case notices it, such as that it is the same to every user; its round has to pass."""


class Control(BaseModel):
    """An attempt that is wrong in a known way."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    about: str = ""
    """What whoever works like this does, for people."""
    ends_after: str = ""
    """The last round that is solved; all later ones have to fail."""
    change: tuple[Change, ...] = ()
    """Those of one round are made together."""
    mutant: tuple[LoneChange, ...] = ()
    """Each is made without the others."""


def missed_by(attempt: PlayedAttempt, played_rounds: Sequence[PlayedRound], name: str) -> list[str]:
    """Return what suites do not notice of a control, as lines for its author.

    Args:
        attempt: The attempt that played the reference solutions.
        played_rounds: All of its rounds.
        name: The control's.

    Raises:
        TaskError: The control cannot be read, or its changes cannot be made.
    """
    path = attempt.context.task.directory / CONTROLS / f"{name}.toml"
    control = _read(path, attempt.context.task)
    parts: list[Callable[[], Iterator[str]]] = []
    if control.ends_after:
        parts.append(partial(_passed_after, attempt, played_rounds, control.ends_after))
    for played in played_rounds:
        if changes := [change for change in control.change if change.round == played.round.name]:
            parts.append(partial(_missed_in, attempt, played, changes, path))
        mutants = (mutant for mutant in control.mutant if mutant.round == played.round.name)
        parts += [partial(_survives, attempt, played, mutant, path) for mutant in mutants]
    with ThreadPoolExecutor(attempt.context.suites_at_once, thread_name_prefix="controls") as pool:
        lines = [line for found in pool.map(lambda part: [*part()], parts) for line in found]
    return [] if not lines else ["\n".join([f"the suites do not notice {CONTROLS}/{name}.toml:", *lines])]


def _read(path: Path, task: Task) -> Control:
    """Return a control whose rounds and requirements the task has."""
    try:
        control = Control.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except ValidationError as error:
        raise TaskError(describe_validation(error), path) from None
    except (OSError, ValueError) as error:
        raise TaskError(str(error), path) from None
    changes: tuple[Change, ...] = (*control.change, *control.mutant)
    if bool(control.ends_after) == bool(changes):
        raise TaskError("name the round that it ends_after, or a [[change]] or [[mutant]] or more", path)
    rounds = [round_.name for round_ in task.rounds]
    known = {requirement.id for requirement in task.requirements}
    for named in (*filter(None, [control.ends_after]), *(change.round for change in changes)):
        if named not in rounds:
            raise TaskError(f"no round is called {named!r}; there are {', '.join(rounds)}", path)
    for change in changes:
        if change.breaks and known and change.breaks not in known:
            raise TaskError(f"no test has the requirement {change.breaks!r}, which is to break in {change.round}", path)
    return control


def _passed_after(attempt: PlayedAttempt, played_rounds: Sequence[PlayedRound], last: str) -> Iterator[str]:
    """Yield a line for each round that is passed without its solution and those before, but for the first ones."""
    number = next(number for number, played in enumerate(played_rounds) if played.round.name == last)
    for index in range(number + 1, len(played_rounds)):
        played = played_rounds[index]
        require_a_pass(played)

        def prepare(environment: Environment, until: int = index) -> None:
            for each in played_rounds[number + 1 : until + 1]:
                attempt.context.task_environment.prepare_round(environment, each.round)

        with attempt.branch(played_rounds[number].after, played.round, prepare) as (environment, snapshot):
            run = attempt.run_again(played, snapshot, taken_of=environment, until_failure=True)
        if run.verdict is not None and run.verdict.passed:
            yield f"  {played.round.name} is passed, although nothing was done after {last}"


def _missed_in(attempt: PlayedAttempt, played: PlayedRound, changes: Sequence[Change], path: Path) -> Iterator[str]:
    """Yield a line for each requirement that no case says to be broken by changes of a round's solution."""
    require_a_pass(played)
    breaks = {change.breaks: change.file for change in changes}
    how: dict[str, Any] = {}
    if not played.round.has_script and "" not in breaks:  # What other cases say is of no interest.
        known = {id: requirement for id, requirement in played.pinned.items() if requirement in breaks}
        how = {"pinned": known, "cases": tuple(known)}
    make = partial(_make, played=played, changes=changes, path=path)
    run = attempt.run_suite(played.after, played.round, change=make, until_failure=len(breaks) == 1, **how)
    failing = {case.requirement for case in run.verdict.cases if case.failing} if run.verdict else set()
    for requirement, file in breaks.items():
        if requirement and requirement not in failing:
            yield f"  {played.round.name}: no case of {requirement} fails when {file} is changed"
    if "" in breaks and run.verdict is not None and run.verdict.passed:
        yield f"  {played.round.name} is passed"


def _survives(attempt: PlayedAttempt, played: PlayedRound, mutant: LoneChange, path: Path) -> Iterator[str]:
    """Yield a line where no case notices a mutant, or where one does that is said to survive."""
    start = f"{mutant.file}, {_first_line(mutant.old)!r} -> {_first_line(mutant.new)!r}"
    missed = [*_missed_in(attempt, played, [mutant], path)]
    if missed and not mutant.survives:
        yield f"{missed[0]} ({start})"
    if mutant.survives and not missed:
        yield f"  {played.round.name}: a case fails, although it survives: take `survives` out ({start})"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def _make(fork: Environment, played: PlayedRound, changes: Sequence[Change], path: Path) -> None:
    """Make changes in a fork of the workspace as a round's solution leaves it."""
    files: dict[str, str] = {}
    for change in changes:
        text = files.get(change.file)
        if text is None:
            text = played.files_after.get(change.file, b"").decode("utf-8", "surrogateescape")
        if (times := text.count(change.old)) != 1:
            why = f"{change.file} of {played.round.name} has it {times} times; name a passage that it has once"
            raise TaskError(f"old = {_first_line(change.old)!r}: {why}", path)
        files[change.file] = text.replace(change.old, change.new)
    lay({name: text.encode("utf-8", "surrogateescape") for name, text in files.items()}, fork)
    for command in dict.fromkeys(change.run for change in changes if change.run):
        result = fork.exec(command, user=played.round.agent_user, timeout=_LIMIT)
        if not result.ok:
            raise TaskError(f"run = {command!r} failed in {played.round.name}: {result.tail() or '(no output)'}", path)
