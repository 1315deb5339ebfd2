"""Single-step tasks in Harbor's format as the rounds of one task.

The format is that of harborframework.com/docs/tasks, schema 1.0 to 1.4; looked at were also the recipes of
github.com/harbor-framework/harbor-cookbook (simple-task at 44b58f6, dns-blacklisting at 8b7a66e). A task is task.toml,
instruction.md, environment/, solution/solve.sh and tests/test.sh. Multi-step tasks run as they are and need no import.
"""

from __future__ import annotations

import filecmp
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli

from pytest_evocode.errors import TaskError
from pytest_evocode.names import TASK_FILE
from pytest_evocode.tasks.config_text import Keys, find_line
from pytest_evocode.tasks.content_hash import is_dropping
from pytest_evocode.tasks.foreign.draft import Draft, entries
from pytest_evocode.tasks.foreign.source import Source
from pytest_evocode.tasks.loading import load_task

_OF_STEPS = ("agent", "verifier", "artifacts")
"""What a step can say for itself; all else of task.toml holds for the whole task."""
_CARRIED = ("instruction.md", "environment", "solution", "tests", TASK_FILE)
_FETCHES = re.compile(r"^[ \t]*(?:sudo )?(apt-get|apt|apk|curl|wget|uvx|uv|pip3?|npm)\b", re.MULTILINE)


def import_tasks(directories: Sequence[Path], draft: Draft) -> None:
    """Write one task whose rounds are those of ``directories``, in this order.

    Raises:
        TaskError: One of them is no sound single-step task, or is there twice.
    """
    places = [directory.resolve() for directory in directories]
    for number, place in enumerate(places):
        if place in places[:number]:
            raise TaskError("is named twice, and a round can be played once only; name it once", directories[number])
    members = [_Member(directory) for directory in directories]
    first = members[0]
    for member in members:
        member.write(draft, draft.add_round(member.directory.resolve().name))
    if first.has_environment:
        draft.copy(first.source.path("environment"), "environment")
    for member in members[1:]:
        _note_differences(first, member, draft)
    draft.note(
        members[1].directory,
        "its suite verifies what it asks for, and nothing of the tasks before it",
        "have it run the earlier tests as well that still hold, so that breaking them is noticed",
    )
    draft.write_configuration(_configuration(members, draft))


class _Member:
    """One of the tasks."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.source = Source(directory)
        self.file = directory / TASK_FILE
        text = self.source.text(TASK_FILE, "a task in Harbor's format has one")
        task = load_task(directory)
        if task.config.steps:
            message = (
                "has [[steps]]: a task of several steps runs as it is, by pytest --evocode-agent=oracle, without import"
            )
            raise TaskError(message, self.file, find_line(text, ("steps",)))
        if not self.source.path("tests/test.sh").is_file():
            raise TaskError("there is no such file; it verifies a task in Harbor's format", directory / "tests/test.sh")
        self.text = text
        self.data = tomli.loads(text)
        self.has_environment = self.source.path("environment").is_dir()

    def line(self, *keys: str | int) -> int:
        """Return the line of a key in task.toml."""
        return find_line(self.text, keys)

    def write(self, draft: Draft, name: str) -> None:
        """Write the files of a round."""
        for place in ("instruction.md", "solution", "tests"):
            path = self.source.path(place)
            if path.exists():
                draft.copy(path, f"steps/{name}/{place}")
        if not self.source.path("solution/solve.sh").is_file():
            draft.note(self.directory, "there is no solution/solve.sh", f"write steps/{name}/solution/solve.sh")
        elif name != draft.rounds[0][0]:
            do = "correct it where it counts on a fresh environment; the check oracle tells"
            draft.note(
                self.source.path("solution/solve.sh"), f"in {name} it starts from where the round before left off", do
            )
        note_fetches(draft, self.source.path("tests/test.sh"), self.source.text("tests/test.sh", ""))
        for entry in sorted(os.listdir(self.directory)):
            if entry not in _CARRIED and not is_dropping(entry):
                draft.note(self.directory / entry, "is no part of the format, and was left out")


def note_fetches(draft: Draft, path: Path, script: str) -> None:
    """Note where a suite's script needs a network first."""
    if fetched := _FETCHES.search(script):
        line = script.count("\n", 0, fetched.start(1)) + 1
        do = "have the image bring it, so that verdicts do not depend on a network; the check hermetic tells"
        draft.note(path, f"{fetched[1]} fetches what the suite needs", do, line=line)


def _configuration(members: Sequence[_Member], draft: Draft) -> dict[str, Any]:
    first = members[0].data
    organisation = str(first.get("task", {}).get("name", "imported/")).partition("/")[0]
    return {
        "schema_version": "1.4",
        **{key: value for key, value in first.items() if key not in (*_OF_STEPS, "version", "schema_version")},
        "task": {**first.get("task", {}), "name": f"{organisation}/{draft.name}"},
        "steps": [
            {"name": name, **{key: member.data[key] for key in _OF_STEPS if member.data.get(key)}}
            for (name, _), member in zip(draft.rounds, members, strict=True)
        ],
    }


def _note_differences(first: _Member, member: _Member, draft: Draft) -> None:
    for keys, value in _differing(first.data, member.data):
        shown = ".".join(map(str, keys))
        what = f"{shown} is not carried over: the whole task has that of {first.directory}"
        if value is None:
            what = f"{shown} is not given, and the whole task has that of {first.directory}"
        draft.note(member.file, what, "change it in task.toml where this round needs it", line=member.line(*keys))
    ours, theirs = (each.source.path("environment") for each in (first, member))
    for place, how in _differing_files(ours, theirs):
        do = "bring what this round needs by its workdir/, or change environment/"
        draft.note(theirs / place, f"{how}; all rounds start from the environment of {first.directory}", do)


def _differing(first: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[tuple[Keys, Any]]:
    """Yield the keys by which two task.toml differ in what holds for a whole task, with the value in the other."""
    for key in dict.fromkeys([*first, *other]):
        if key in (*_OF_STEPS, "version", "schema_version"):
            continue
        one, two = first.get(key), other.get(key)
        if isinstance(one or {}, dict) and isinstance(two or {}, dict):
            for inner in dict.fromkeys([*(one or {}), *(two or {})]):
                if (key, inner) != ("task", "name") and (one or {}).get(inner) != (two or {}).get(inner):
                    yield (key, inner), (two or {}).get(inner)
        elif one != two:
            yield (key,), two


def _differing_files(first: Path, other: Path) -> Iterator[tuple[str, str]]:
    """Yield the files by which two directories differ, and how the other one does."""
    ours, theirs = (
        {path.relative_to(each).as_posix() for path in entries(each) if not path.is_dir()} for each in (first, other)
    )
    for place in sorted(ours | theirs):
        if place not in theirs:
            yield place, "is missing"
        elif place not in ours:
            yield place, "is there only"
        elif not _are_equal(first / place, other / place):
            yield place, "is another one"


def _are_equal(one: Path, two: Path) -> bool:
    if one.is_symlink() or two.is_symlink():
        return one.is_symlink() and two.is_symlink() and os.readlink(one) == os.readlink(two)
    return filecmp.cmp(one, two, shallow=False)
