"""What ``evocode show`` prints: a task's rounds and the requirements that they introduce and retire."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Iterator, Mapping, Sequence

from pytest_evocode.report.life_chart import Life, Paint, life_lines, plain
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import aligned
from pytest_evocode.tasks import Requirement, Round, Task

_SHOWN_CHARACTERS = 72
_NONE, _UNKNOWN = "-", "?"

Pinned = Mapping[str, Mapping[str, str]]
"""For each round by name, the ids of its suite's cases, each with the id of the requirement that it checks."""


def task_lines(task: Task, pinned: Pinned, *, stale: bool = False, paint: Paint = plain) -> Iterator[str]:
    """Yield the rounds as a table, the requirements as a chart, and notes on where the numbers of cases come from.

    Args:
        task: The task.
        pinned: The cases in evocode.lock; empty without one that is up to date.
        stale: Whether there is an evocode.lock that the task has changed since.
        paint: What makes a text red or green, given the text and the colour.
    """
    rounds = [round_.name for round_ in task.rounds]
    written = {requirement.id for requirement in task.requirements}
    only_pinned = [each for each in pinned_requirements(pinned, rounds) if each.id not in written]
    requirements = sorted([*task.requirements, *only_pinned], key=lambda each: rounds.index(each.introduced))
    table = [("round", "changes", "cases", "requirements")]
    for round_ in task.rounds:
        size = _suite_size(task, round_, pinned)
        table.append((round_.name, ", ".join(round_.change_types) or _NONE, size, _changes(round_.name, requirements)))
    yield printable(f"{task.name}: {len(rounds)} round{'s' if len(rounds) > 1 else ''}")
    yield ""
    yield from map(printable, aligned(table, left=(0, 1, 3)))
    if requirements:
        yield ""
        lives = [_life(task, each, pinned) for each in requirements]
        yield from life_lines(lives, rounds, paint=paint)
    yield ""
    yield from map(printable, _notes(task, pinned, stale=stale, nameless=not requirements))


def pinned_requirements(pinned: Pinned, rounds: Sequence[str]) -> Iterator[Requirement]:
    """Yield the requirements that cases name, each active from the first round with such a case to the last.

    Args:
        pinned: The cases of rounds, as they are pinned or as they were run.
        rounds: The names of the task's rounds.
    """
    known = [name for name in rounds if name in pinned]
    for id in dict.fromkeys(id for name in known for id in pinned[name].values() if id):
        having = [index for index, name in enumerate(known) if id in pinned[name].values()]
        after = known[having[-1] + 1 :]
        yield Requirement(id, _UNKNOWN, introduced=known[having[0]], retired=after[0] if after else "")


def _suite_size(task: Task, round_: Round, pinned: Pinned) -> str:
    if round_.name in pinned:
        return str(len(pinned[round_.name]))
    if round_.has_script:
        return _UNKNOWN
    index = {each.name: each.index for each in task.rounds}
    required = [
        test
        for test in task.tests
        if index[test.round] <= round_.index and not (test.retired and index[test.retired] <= round_.index)
    ]
    return f"{len(required)}*"


def _changes(round_: str, requirements: Sequence[Requirement]) -> str:
    changes = [f"+{each.id}" for each in requirements if each.introduced == round_]
    changes += [f"-{each.id}" for each in requirements if each.retired == round_]
    return textwrap.shorten(" ".join(changes), _SHOWN_CHARACTERS, placeholder=" ...")


def _life(task: Task, requirement: Requirement, pinned: Pinned) -> Life:
    tests = [test for test in task.tests if test.requirement == requirement.id]
    if pinned:
        ids = [case for of_round in pinned.values() for case, id in of_round.items() if id == requirement.id]
        cases = str(len(set(ids)))
    else:
        cases = f"{len(tests)}*"
    kinds = dict.fromkeys(test.kind for test in tests if test.kind)
    shown = ", ".join(kinds) or requirement.kind or _NONE
    return Life(requirement.id, requirement.introduced, requirement.retired, shown, cases)


def _notes(task: Task, pinned: Pinned, *, stale: bool, nameless: bool) -> Iterator[str]:
    if pinned:
        yield "The cases are those in evocode.lock."
        if nameless:
            yield "None of them names a requirement."
        return
    pin = f"pytest --evocode-pin {shlex.quote(str(task.directory))}"
    if stale:
        yield f"evocode.lock is stale, because the task has changed since; write it anew: {pin}"
    else:
        yield f"There is no evocode.lock; write it: {pin}"
    if task.tests:
        yield "* tests as they are written; one with parameters is several cases"
    if any(round_.has_script for round_ in task.rounds):
        yield f"{_UNKNOWN} what a test.sh runs and requires is known from evocode.lock only"
