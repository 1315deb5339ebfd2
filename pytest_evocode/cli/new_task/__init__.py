"""Writing a new task, complete and passing, for its author to change: the files below ``templates/``, filled in."""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

from pytest_evocode.cli.new_task.rounds import fill_in, write_files, write_round
from pytest_evocode.errors import UsageError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.tasks.fields import is_package_name
from pytest_evocode.tasks.schema import SCHEMA_FILE

Form = Literal["native", "script"]

_ANY_ROUND = "round-K"
"""In the path of a template: any round from the third on."""
_STATE = """
[metadata.evocode]
# Suites run in the image as it was built, with the working directory carried over. What agents are to leave elsewhere
# goes into this list of paths, as in ["/var/lib/name"].
state = []
"""
_PARCELS = "A command-line tool that prices parcels, and whose requirements change."
_WRITE = ""
_ONE_ROUND = re.compile(r"\bround-(\d+)\b")


def write_task(directory: Path, *, rounds: int, form: Form, empty: bool = False) -> None:
    """Write a task, whole or not at all.

    Args:
        directory: The task's directory, which must not exist; missing parents are made.
        rounds: The number of rounds, 1 to 99.
        form: What verifies them: native suites, or a ``test.sh``.
        empty: Whether the rounds are left to the author; else they are those of a program that prices parcels.

    Raises:
        UsageError: The directory cannot be a new task.
        OSError: It cannot be written.
    """
    check_place(directory)
    directory.parent.mkdir(parents=True, exist_ok=True)
    names = [f"round-{number}" for number in range(1, rounds + 1)]
    with tempfile.TemporaryDirectory(prefix=".evocode-new-", dir=directory.parent) as parent:
        task = Path(parent, directory.name)
        values = _values(directory.name, names, form, empty=empty)
        write_files(task, fill_in("task", values))
        (task / SCHEMA_FILE.name).write_bytes(SCHEMA_FILE.read_bytes())
        if empty:
            write_files(task, fill_in("empty", values))
            for name in names:
                write_round(task / "steps" / name, name, script=form == "script")
        else:
            write_files(task, _example(rounds, form))
        os.rename(task, directory)


def check_place(directory: Path) -> None:
    """Raise UsageError where a directory cannot be a new task: it exists, has no proper name, or lies in a task."""
    if os.path.lexists(directory):
        raise UsageError(f"{directory} exists already; choose another name, or remove it")
    if not is_package_name(f"your-org/{directory.name}"):
        raise UsageError(
            f"no task can be called {directory.name!r}; use letters, digits, '_' and '-', and single dots between them"
        )
    around = next((each for each in directory.absolute().parents if (each / TASK_FILE).exists()), None)
    if around is not None:
        raise UsageError(f"{directory} would lie in the task {around}; choose a place outside of it")


def _example(rounds: int, form: Form) -> Iterator[tuple[str, str]]:
    """Yield the files of the rounds that price parcels: their paths in the task, and their texts."""
    for tree in ("parcels", f"parcels-{form}"):
        for number in range(1, rounds + 1):
            for path, text in fill_in(tree, _example_values(rounds, number)):
                if number in _rounds_with(path, rounds):
                    yield path.replace(_ANY_ROUND, f"round-{number}"), text


def _rounds_with(path: str, rounds: int) -> range:
    """Return the rounds that have the file of a template; a file without a round in its path is written once, as of 1.

    >>> list(_rounds_with("steps/round-K/instruction.md", 4)), list(_rounds_with("steps/round-2/instruction.md", 1))
    ([3, 4], [])
    """
    if _ANY_ROUND in path:
        return range(3, rounds + 1)
    found = _ONE_ROUND.search(path)
    number = int(found[1]) if found else 1
    return range(number, number + 1) if number <= rounds else range(0)


def _values(name: str, rounds: Sequence[str], form: Form, *, empty: bool) -> Mapping[str, str]:
    """Return what the placeholders in task.toml stand for."""
    return {
        "name": name,
        "description": _WRITE if empty else _PARCELS,
        "keywords": "" if empty else '"python", "cli"',
        "steps": "\n\n".join(f'[[steps]]\nname = "{each}"' for each in rounds),
        "changes": "\n\n".join(_change_types(each, conflict=not empty) for each in rounds),
        "category": "" if empty else 'difficulty = "easy"\ncategory = "command-line tools"\n',
        "verify": _STATE if form == "script" else "",
    }


def _example_values(rounds: int, number: int) -> Mapping[str, object]:
    """Return what the placeholders in the files of a round stand for."""
    cents = 50 + 50 * number
    return {
        "retired": ', retired="round-2"' if rounds > 1 else "",
        "number": number,
        "cents": cents,
        "surcharge": f"{cents / 100:.2f}",
        "price": f"{(120 + cents) / 100:.2f}",
    }


def _change_types(round_: str, *, conflict: bool) -> str:
    types = '["conflict", "extension"]' if conflict and round_ == "round-2" else '["extension"]'
    return f'[[metadata.requirement_chain.steps]]\nstep = "{round_}"\nchange_types = {types}'
