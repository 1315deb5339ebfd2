"""Leaks: what agents can see of tests and solutions too early, found by pure functions over the contents of files."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from pytest_evocode.checks.line_runs import RUN, Text

Files = Mapping[str, bytes]
"""Contents by path."""

SHORTEST = 64
"""The size, in bytes, from which on two equal files are no coincidence."""


@dataclass(frozen=True)
class SolvedRound:
    """A round, and what its reference solution did.

    Paths in ``before``, ``after`` and ``workdir`` are relative to the workspace; those in ``solution`` and ``tests``
    are as messages are to show them.
    """

    name: str
    before: Files
    """The workspace when the agent's turn begins, with the round's workdir in it."""
    after: Files
    """The workspace when the reference solution has ended."""
    solution: Files = field(default_factory=dict)
    tests: Files = field(default_factory=dict)
    workdir: Files = field(default_factory=dict)


@dataclass(frozen=True)
class _VisibleFiles:
    """Files that agents see from a round on; ``first`` is that round's index, from 0."""

    files: Files
    first: int
    since: str
    remedy: str
    prefix: str = ""
    """For the files of a workdir, whose paths are the workspace's: where they lie in the task."""


class _Hidden(NamedTuple):
    """A run of lines that a solution adds: in which round, to which file of the workspace, and from which file."""

    round: str
    path: str
    source: str


def find_leaks(starter: Files, rounds: Sequence[SolvedRound], shared_tests: Files | None = None) -> list[str]:
    """Return a line for each file, or run of lines, that agents see too early: what it is and what to do.

    A leak is a file that equals one of the tests or solutions, or a run of ``RUN`` significant lines that a solution
    adds to the workspace. It is not a leak where a solution leaves something as it was, moves it, copies it within the
    workspace by a command, or puts it back into a file from which an earlier round took it.

    Args:
        starter: All that agents see before round 1: the build context and the image's workspace. Of equal files only
            the first is named, so those that the author can change should come first.
        rounds: The rounds in order.
        shared_tests: Tests that are part of every suite.
    """
    finder = _Finder(rounds, shared_tests or {})
    places = [_VisibleFiles(starter, 0, "before round 1", "take it out of the image and the build context")]
    for index, each in enumerate(rounds):
        remedy = f"take it out of the workdir of {each.name}"
        places.append(_VisibleFiles(each.workdir, index, f"from {each.name} on", remedy, f"steps/{each.name}/workdir/"))
    return [message for visible in places for message in finder.leaks(visible)]


class _Finder:
    def __init__(self, rounds: Sequence[SolvedRound], shared_tests: Files) -> None:
        self.rounds = rounds
        self.shared_tests = shared_tests
        self.text_of = cache(Text)  # One for each content, however many files and states have it.

    def leaks(self, visible: _VisibleFiles) -> Iterator[str]:
        """Yield what is wrong with some visible files, file by file."""
        paths: dict[bytes, str] = {}
        for path, content in visible.files.items():
            paths.setdefault(content, path)
        equal = self._equal_files(visible, paths)
        texts = {path: self.text_of(content) for content, path in paths.items()}
        hidden = self._added_runs(visible, set().union(*(text.runs for text in texts.values())))
        for content, path in paths.items():
            if content in equal:
                message = f"is the same file as {equal[content]}, and agents see it {visible.since}; {visible.remedy}"
                yield f"{visible.prefix}{path}: {message}"
            else:
                found = _stretches(texts[path], hidden)
                yield from (f"{visible.prefix}{path}:{line}: {message}" for line, message in _describe(found, visible))

    def _equal_files(self, visible: _VisibleFiles, contents: Collection[bytes]) -> dict[bytes, str]:
        """Return those of ``contents`` that hidden files have, each with the path of the first such file."""
        equal: dict[bytes, str] = {}
        for index, each in enumerate(self.rounds[visible.first :], visible.first):
            for path, content in each.tests.items():
                if content in contents and len(content) >= SHORTEST:
                    equal.setdefault(content, path)
            for path, content in each.solution.items():
                if content in contents and len(content) >= SHORTEST and not self._is_old(index, path, content):
                    equal.setdefault(content, path)
        for path, content in self.shared_tests.items():
            if content in contents and len(content) >= SHORTEST:
                equal.setdefault(content, path)
        return equal

    def _is_old(self, index: int, path: str, content: bytes) -> bool:
        """Return whether a solution's file only leaves, moves or puts back what the workspace had under its name."""
        before, after = self.rounds[index].before, self.rounds[index].after
        name = PurePosixPath(path).name
        places = [place for place in after if after[place] == content]
        if name == "solve.sh" or name not in {PurePosixPath(place).name for place in places}:
            return False
        moved = any(before[place] == content != after.get(place) for place in before)
        return moved or all(content in self._earlier(index, place) for place in places)

    def _added_runs(self, visible: _VisibleFiles, wanted: Set[int]) -> dict[int, _Hidden]:
        """Return those of the ``wanted`` runs that solutions add from the round on in which the files are visible."""
        hidden: dict[int, _Hidden] = {}
        for index, each in enumerate(self.rounds[visible.first :], visible.first):
            for path, content in each.after.items():
                is_edited_workdir = bool(visible.prefix) and path in visible.files
                if each.before.get(path) == content or is_edited_workdir:
                    continue
                text = self.text_of(content)
                if not text.runs.isdisjoint(wanted):
                    for run in text.added_to(self.text_of(each.before.get(path, b"")), wanted):
                        if run not in hidden and not self._is_old_run(index, path, run):
                            hidden[run] = _Hidden(each.name, path, self._source(each, run))
        return hidden

    def _is_old_run(self, index: int, path: str, run: int) -> bool:
        """Return whether a run was moved, copied within the workspace by a command, or put back into its file."""
        if run in self._lost(index) or any(run in self.text_of(old).runs for old in self._earlier(index, path)):
            return True
        # Lines that a command copies or builds from the workspace are not in the solution's own files.
        is_written = not self.rounds[index].solution or self._source(self.rounds[index], run)
        return not is_written and run in self._found(index)

    def _earlier(self, index: int, path: str) -> list[bytes]:
        """Return what a file held when the round began, and in all earlier states."""
        states = [state for each in self.rounds[:index] for state in (each.before, each.after)]
        return [state[path] for state in (*states, self.rounds[index].before) if path in state]

    @cache  # noqa: B019 - a finder lives as long as one call
    def _lost(self, index: int) -> Set[int]:
        """Return the runs that a round's solution takes out of files."""
        before, after = self.rounds[index].before, self.rounds[index].after
        changed = [path for path in before if after.get(path) != before[path]]
        of = self.text_of
        return set().union(*(of(before[path]).runs - of(after.get(path, b"")).runs for path in changed))

    @cache  # noqa: B019
    def _found(self, index: int) -> Set[int]:
        """Return the runs of the workspace when a round's solution begins."""
        return set().union(*(self.text_of(content).runs for content in self.rounds[index].before.values()))

    def _source(self, played: SolvedRound, run: int) -> str:
        """Return where a solution's own files have a run, as ``path:line``; empty where they do not."""
        for path, content in played.solution.items():
            for text in (self.text_of(content), self.text_of(_without_signs(content))):
                if run in text.runs:
                    return f"{path}:{text.numbers[text.hashes.index(run)]}"
        return ""


def _without_signs(content: bytes) -> bytes:
    """Return a patch as the text that it leads to, with its line numbers kept; anything else as it is."""
    return re.sub(rb"(?m)^-.*|^\+", b"", content) if b"\n@@ " in content else content


class _Stretch(NamedTuple):
    """Hidden runs that overlap: their first line, the number of their significant lines, and what they are."""

    line: int
    length: int
    what: _Hidden


def _stretches(text: Text, hidden: Mapping[int, _Hidden]) -> Iterator[_Stretch]:
    """Yield the hidden runs of a text, with those of one round and one file that overlap taken together."""
    found = [(at, hidden[run]) for at, run in enumerate(text.hashes) if run in hidden]
    start = 0
    for end in range(1, len(found) + 1):
        (first, what), (at, _) = found[start], found[end - 1]
        if end == len(found) or found[end][0] >= at + RUN or found[end][1][:2] != what[:2]:
            yield _Stretch(text.numbers[first], at + RUN - first, what)
            start = end


def _describe(found: Iterable[_Stretch], visible: _VisibleFiles) -> Iterator[tuple[int, str]]:
    """Yield a line number and a message for each round and file, about its longest stretch."""
    by_origin: dict[tuple[str, str], list[_Stretch]] = {}
    for stretch in found:
        by_origin.setdefault((stretch.what.round, stretch.what.path), []).append(stretch)
    for (round_, path), stretches in by_origin.items():
        longest = max(stretches, key=lambda stretch: stretch.length)
        source = f" ({longest.what.source})" if longest.what.source else ""
        more = f" and {len(stretches) - 1} more such runs" if len(stretches) > 1 else ""
        what = f"has {longest.length} lines in a row{more} that the solution of {round_} adds to {path}{source}"
        yield longest.line, f"{what}, and agents see them {visible.since}; {visible.remedy}"
