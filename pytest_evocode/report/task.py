"""What ``evocode show`` prints: a task's rounds, and a chart of the requirements that they introduce and retire."""

from __future__ import annotations

import shlex
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from pytest_evocode.report.printable import printable, printable_line
from pytest_evocode.report.tables import aligned, counted
from pytest_evocode.tasks import Requirement, Round, Task

Paint = Callable[[str, Literal["green", "red"]], str]
"""What makes a text green or red."""

_WIDTH = 80
_LONGEST_ID = 32
_HEAD, _CASES, _KINDS = "requirement", "cases", "kind"
_LEGEND = "o introduced   = required   x retired"


class Life(NamedTuple):
    """One requirement: from when to when it is required, and by what it is checked."""

    requirement: str
    introduced: str
    """The name of the round that introduces it."""
    retired: str
    """The name of the round from which on it is not required; empty for never."""
    kinds: str
    cases: str


def plain(text: str, colour: str) -> str:
    """Return the text as it is."""
    return text


def life_lines(lives: Sequence[Life], rounds: Sequence[str], *, paint: Paint = plain) -> Iterator[str]:
    r"""Yield a line for each of at least one requirement, in 80 columns where names and rounds leave room for it.

    >>> lives = [Life("price", "round-1", "round-3", "core", "4"), Life("zone", "round-2", "", "core, error", "6")]
    >>> print(*life_lines(lives, ["round-1", "round-2", "round-3"]), sep="\n")
    requirement  1  2  3  cases  kind
    price        o=====x      4  core
    zone            o===      6  core, error
    o introduced   = required   x retired
    """
    lives = [life._replace(requirement=printable_line(life.requirement)) for life in lives]
    left = max(len(_HEAD), *(len(life.requirement) for life in lives if len(life.requirement) <= _LONGEST_ID))
    count = max(len(_CASES), *(len(life.cases) for life in lives))
    kinds = min(max(len(life.kinds) for life in lives), len("boundary, integration"))
    room = _WIDTH - left - count - kinds - 6
    step = next((each for each in (3, 2) if (len(rounds) - 1) * each + 1 <= room), 1)
    across = (len(rounds) - 1) * step + len(str(len(rounds)))
    yield f"{_HEAD:{left}}  {_scale(len(rounds), step):{across}}  {_CASES:>{count}}  {_KINDS}"
    for life in lives:
        bar = _bar(life, rounds, step)
        gap = " " * (across - len(bar))
        indent = left + across + count + 6
        name, *more = textwrap.wrap(life.kinds, max(_WIDTH - indent, len("integration,")))
        if len(life.requirement) > left:
            yield life.requirement
        shown = life.requirement if len(life.requirement) <= left else ""
        yield f"{shown:{left}}  {_painted(bar, paint)}{gap}  {life.cases:>{count}}  {name}"
        yield from (" " * indent + each for each in more)
    yield _LEGEND
    if any(not name.endswith(str(index)) for index, name in enumerate(rounds, start=1)):
        names = ", ".join(f"{index} {name}" for index, name in enumerate(rounds, start=1))
        yield from textwrap.wrap(names, _WIDTH, break_long_words=False)


def _scale(rounds: int, step: int) -> str:
    """Return the numbers of the rounds, all of them or as many as there is room for.

    >>> _scale(3, 3), _scale(12, 1)
    ('1  2  3', '1   5    10')
    """
    scale = ""
    every = 1 if step > len(str(rounds)) else 5
    for number in (1, *range(2, rounds + 1)):
        if number == 1 or number % every == 0:
            scale = f"{scale:{(number - 1) * step}}{number}"
    return scale


def _bar(life: Life, rounds: Sequence[str], step: int) -> str:
    """Return a line from the round that introduces a requirement to the one that retires it, or to the last."""
    first = rounds.index(life.introduced)
    last = rounds.index(life.retired) if life.retired else len(rounds) - 1
    bar = "o" + "=" * ((last - first) * step)
    return " " * (first * step) + (f"{bar[:-1]}x" if life.retired else bar)


def _painted(bar: str, paint: Paint) -> str:
    blank = len(bar) - len(bar.lstrip())
    end = bar[-1] if bar.endswith("x") else ""
    alive = bar[blank : len(bar) - len(end)]
    return " " * blank + paint(alive, "green") + (paint(end, "red") if end else "")


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
    yield printable(f"{task.name}: {counted(len(rounds), 'round')}")
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
    if not all(round_.has_script for round_ in task.rounds):
        yield "* tests as they are written; one with parameters is several cases"
    if any(round_.has_script for round_ in task.rounds):
        yield f"{_UNKNOWN} what a test.sh runs and requires is known from evocode.lock only"
