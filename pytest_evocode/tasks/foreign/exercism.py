"""Exercises of Exercism, and of Aider's polyglot benchmark, which took them over, as tasks of one round.

Read for this were exercism.org/docs/building/tracks/practice-exercises, exercises of github.com/exercism/python, and
``benchmark/benchmark.py`` of github.com/Aider-AI/aider, which runs the six languages here. An exercise is a directory,
``exercises/practice/NAME`` of a track::

    .meta/config.json          files.solution, files.test, files.example, blurb, authors
    .meta/example.py           the reference solution, wherever files.example says
    .docs/instructions.md      the request, with introduction.md before and instructions.append.md after it
    all else                   what one begins with
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import tomli

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks.foreign.draft import Draft, entries
from pytest_evocode.tasks.foreign.source import Source

CONFIG = ".meta/config.json"
_CRATES = ".meta/Cargo-example.toml"
_REQUEST = (".docs/introduction.md", ".docs/instructions.md", ".docs/instructions.append.md")


@dataclass(frozen=True)
class _Language:
    """How exercises in a language are built and tested."""

    image: str
    test: str
    """The command, in the exercise's directory; ``{tests}`` are the modules."""
    prepare: str = ""
    """Lines of the Dockerfile, with what the tests need; ``workspace/`` is the build context's."""
    skips: str = ""
    """What keeps a test from being run, as a pattern."""
    instead: str = ""
    """What to put in its place."""


_LANGUAGES = {
    suffix: _Language(**about)
    for suffix, about in tomli.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")).items()
}
"""By how the names of test modules end."""
_SUITE = """\
#!/bin/bash
# Written by evocode new --from: the exercise's own tests, and all else that is no solution, in place of what is there.
cp -R /tests/files/. .
reward=0
{test} && reward=1
echo $reward > /logs/verifier/reward.txt
"""
_SOLUTION = "#!/bin/bash\n# Written by evocode new --from: the exercise's example.\ncp -R /solution/files/. .\n"


def import_exercise(source: Source, draft: Draft) -> None:
    """Write the task of an exercise.

    Raises:
        TaskError: It is not in Exercism's format, or in a language that it is not known how to test.
    """
    _Exercise(source, draft).write()


class _Exercise:
    def __init__(self, source: Source, draft: Draft) -> None:
        self.source = source
        self.draft = draft
        text = source.text(CONFIG, "an exercise of Exercism has one")
        self.config = _object(text, source)
        self.solution, self.test, self.example = (self._files(kind) for kind in ("solution", "test", "example"))
        self.example += self._files("exemplar")
        for kind, files in (("solution", self.solution), ("test", self.test)):
            if not files:
                raise self._error(f"files.{kind} names no file; add those of the exercise")
        suffix = next((each for each in map(_suffix, self.test) if each in _LANGUAGES), None)
        if suffix is None:
            known = ", ".join(each.removeprefix(".") for each in _LANGUAGES)
            raise self._error(f"files.test: {self.test[0]} is in a language that is not known here ({known} are)")
        self.language = _LANGUAGES[suffix]
        self.round = draft.add_round(source.root.resolve().name)

    def write(self) -> None:
        """Write all files of the task."""
        text = "\n".join(self.source.text(each, "").strip() + "\n" for each in _REQUEST if self._has(each))
        if not text:
            self.source.text(_REQUEST[1], "it is the request of the exercise")
        text += f"\nWrite the solution into {' and '.join(self.solution)}.\n"
        self.draft.write(f"steps/{self.round}/instruction.md", text)
        self._write_environment()
        self._write_solution()
        for place in self.test:
            self._write_test(place)
        test = self.language.test.format(tests=" ".join(map(shlex.quote, self.test)))
        suite = _SUITE.format(test=test)
        self.draft.write(f"steps/{self.round}/tests/test.sh", suite, executable=True)
        self._write_configuration()

    def _write_environment(self) -> None:
        hidden = {*self.test, *self.example}
        for path in entries(self.source.root):
            place = path.relative_to(self.source.root).as_posix()
            if path.is_file() and place not in hidden and not place.startswith((".meta/", ".docs/")):
                self.draft.copy(path, f"environment/workspace/{place}")
                if place not in self.solution:
                    self.draft.copy(path, f"steps/{self.round}/tests/files/{place}")
        # CMake's lists of files go by the name of the directory.
        workdir = f"/exercise/{self.source.root.resolve().name}"
        lines = f"FROM {self.language.image}\n{self.language.prepare}WORKDIR {workdir}\nCOPY workspace/ ./\n"
        self.draft.write("environment/Dockerfile", f"# Written by evocode new --from.\n{lines}")

    def _write_solution(self) -> None:
        place = f"steps/{self.round}/solution"
        if not self.example:
            self.draft.note(self.source.root / CONFIG, "files.example names no file", f"write {place}/solve.sh")
            return
        for example, target in _placed(self.example, self.solution).items():
            self.draft.copy(self._existing(example), f"{place}/files/{target}")
        if self._has(_CRATES):
            self.draft.copy(self.source.path(_CRATES), f"{place}/files/Cargo.toml")
        self.draft.write(f"{place}/solve.sh", _SOLUTION, executable=True)

    def _write_test(self, place: str) -> None:
        path, target = self._existing(place), f"steps/{self.round}/tests/files/{place}"
        language = self.language
        if path.is_dir() or not language.skips:
            self.draft.copy(path, target)
            return
        text, count = re.subn(language.skips, language.instead, self.source.text(place, ""), flags=re.MULTILINE)
        self.draft.write(target, text)
        if count:
            self.draft.note(path, f"{count} of its tests are skipped at first in Exercism, and run here")

    def _write_configuration(self) -> None:
        name = self.source.root.resolve().name
        authors = [{"name": each} for each in self.config.get("authors") or [] if isinstance(each, str)]
        task: dict[str, Any] = {"name": f"exercism/{self.draft.name}", **({"authors": authors} if authors else {})}
        if isinstance(blurb := self.config.get("blurb"), str) and blurb.strip():
            task["description"] = blurb
        data = {"schema_version": "1.4", "source": f"Exercism: {name}", "task": task, "steps": [{"name": self.round}]}
        self.draft.write_configuration(data)
        what = "says nothing of versions, and the image has what its name stands for today"
        self.draft.note(self.source.root / CONFIG, what, "pin it in environment/Dockerfile")

    def _files(self, kind: str) -> list[str]:
        files = self.config.get("files")
        value = files.get(kind, []) if isinstance(files, dict) else None
        if not isinstance(value, list) or not all(isinstance(each, str) and each for each in value):
            raise self._error(f"files.{kind} must be a list of paths; correct it")
        return [PurePosixPath(each).as_posix() for each in value]

    def _existing(self, place: str) -> Any:
        path = self.source.path(place, (self.source.root / CONFIG, None))
        if not path.exists():
            raise TaskError(f"there is no such file, which {CONFIG} names; correct it", path)
        return path

    def _has(self, place: str) -> bool:
        return self.source.path(place).is_file()

    def _error(self, message: str) -> TaskError:
        return TaskError(message, self.source.root / CONFIG)


def _object(text: str, source: Source) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError as error:
        line = getattr(error, "lineno", None)
        raise TaskError(f"not valid JSON ({error}); correct it", source.root / CONFIG, line) from None
    if not isinstance(value, dict):
        raise TaskError("must be an object; correct it", source.root / CONFIG)
    return value


def _placed(examples: list[str], solutions: list[str]) -> Mapping[str, str]:
    """Return where each file of a reference solution goes, by its path.

    >>> dict(_placed([".meta/example.h", ".meta/example.cpp"], ["a.cpp", "a.h"]))
    {'.meta/example.h': 'a.h', '.meta/example.cpp': 'a.cpp'}
    >>> dict(_placed([".meta/src/java/B.java", ".meta/src/java/A.java"], ["src/main/java/A.java"]))
    {'.meta/src/java/B.java': 'src/main/java/B.java', '.meta/src/java/A.java': 'src/main/java/A.java'}
    """
    placed = {}
    for example in examples:
        name, suffix = os.path.basename(example), _suffix(example)
        alike = [each for each in solutions if _suffix(each) == suffix]
        same = [each for each in solutions if os.path.basename(each) == name]
        if same or (len(alike) == 1 and sum(_suffix(each) == suffix for each in examples) == 1):
            placed[example] = (same or alike)[0]
        else:
            placed[example] = str(PurePosixPath(solutions[0]).with_name(name))
    return placed


def _suffix(place: str) -> str:
    return PurePosixPath(place).suffix
