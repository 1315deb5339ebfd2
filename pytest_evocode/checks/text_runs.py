"""Runs of lines and of tokens, by whose hashes common parts of files are found in linear time, and which are new when.

Runs of tokens find near copies, too: names, comments, layout and order do not count. They are the k-gram fingerprints
of plagiarism checks (MOSS, JPlag). The one library for it, copydetect 0.5.0 of March 2024, brings 15 packages of
144 MB, takes 2 s to import, and compares only what has the name of a language's files.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from functools import cache
from typing import Generic, TypeVar

from pytest_evocode.checks.patterns import PATTERNS

Files = Mapping[str, bytes]
"""Contents by path."""


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


LINES = 6
"""How many significant lines in a row two files do not share by chance."""

# With more changed lines than this, the exact difference takes too long.
_DIFF_LIMIT = 3000


class Text:
    """The significant lines of a file, stripped: without blank lines, comments, imports and lone brackets."""

    def __init__(self, content: bytes) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        no_statement = PATTERNS["no_statement"]
        for number, line in enumerate(decode(content).splitlines(), 1):
            stripped = line.strip()
            if not no_statement.match(stripped):
                self.lines.append(stripped)
                self.numbers.append(number)
        self.hashes = [hash(tuple(self.lines[at : at + LINES])) for at in range(len(self.lines) - LINES + 1)]
        """The hash of the run that begins with each line."""
        self.runs = frozenset(self.hashes)

    def line_of(self, run: int) -> int:
        """Return the line on which a run begins."""
        return self.numbers[self.hashes.index(run)]

    def added_to(self, before: Text, wanted: Set[int]) -> list[int]:
        """Return those of the ``wanted`` runs whose lines were all added to ``before``, in order."""
        found = [at for at, run in enumerate(self.hashes) if run in wanted and run not in before.runs]
        if found and before.lines:
            added = self._added_lines(before)
            found = [at for at in found if added.issuperset(range(at, at + LINES))]
        return [self.hashes[at] for at in found]

    def _added_lines(self, before: Text) -> set[int]:
        """Return the positions of the lines that are not in ``before``."""
        old, new = before.lines, self.lines
        start = 0
        while start < min(len(old), len(new)) and old[start] == new[start]:
            start += 1
        end = 0
        while end < min(len(old), len(new)) - start and old[-1 - end] == new[-1 - end]:
            end += 1
        old, new = old[start : len(old) - end], new[start : len(new) - end]
        if max(len(old), len(new)) > _DIFF_LIMIT:
            return set(range(start, start + len(new)))
        changes = SequenceMatcher(None, old, new).get_opcodes()
        return {start + at for tag, _, _, first, last in changes if tag != "equal" for at in range(first, last)}


def decode(content: bytes) -> str:
    """Return the text of a file; an empty one for a binary file."""
    try:
        return "" if b"\0" in content else content.decode("utf-8")
    except UnicodeDecodeError:
        return ""


TOKENS = 16
"""How many tokens, two or three lines, are compared at a time."""

LARGEST = 1 << 18
"""Larger files, in bytes, are data or generated, and have no tokens here."""

_NEAR = 8
_DISTINCT = 6
_WORDS = 10


class Tokens:
    """The tokens of a file, as runs of ``TOKENS``; imports and runs of mere words, such as prose, are left out.

    A name counts as how many tokens ago it was used last, so that renaming it changes nothing.
    """

    def __init__(self, content: bytes) -> None:
        codes: list[object] = []
        lines: list[int] = []
        words = [0]
        last: dict[str, int] = {}
        text = decode(content) if len(content) <= LARGEST else ""
        keywords = PATTERNS.words["keywords"].union(keyword.kwlist)
        line, end = 1, 0
        for found in PATTERNS["token"].finditer(text):
            line, end = line + text.count("\n", end, found.start()), found.start()
            kind, value = found.lastgroup, found[0]
            if kind == "nothing":
                continue
            is_name = kind == "name" and value not in keywords
            if is_name:
                ago = len(codes) - last.get(value, -_NEAR)
                last[value] = len(codes)
                codes.append(ago if ago < _NEAR else 0)
            else:
                codes.append(found["text"].strip("\"'") if kind == "text" else value)
            lines.append(line)
            words.append(words[-1] + is_name)
        self.starts: dict[int, int] = {}
        """The position of the token that a run begins with, by the run's hash: of equal runs the first one's."""
        for at in range(len(codes) - TOKENS + 1):
            run = tuple(codes[at : at + TOKENS])
            if words[at + TOKENS] - words[at] < _WORDS and len(set(run)) >= _DISTINCT:
                self.starts.setdefault(hash(run), at)
        self.lines = lines
        """The line of each token."""
        self.runs = frozenset(self.starts)

    def covered(self, runs: Set[int]) -> int:
        """Return how many tokens are part of one of these runs."""
        return count_covered(at for run, at in self.starts.items() if run in runs)

    def line_of(self, run: int) -> int:
        """Return the line on which a run begins."""
        return self.lines[self.starts[run]]

    def first_line(self, runs: Set[int]) -> int:
        """Return the line on which the first of these runs begins."""
        return next(self.line_of(run) for run in self.starts if run in runs)


def count_covered(starts: Iterable[int]) -> int:
    """Return how many tokens are in runs that begin at these positions, which are in order.

    >>> count_covered([0, 4, 100])
    36
    """
    count = end = 0
    for start in starts:
        count += start + TOKENS - max(start, end)
        end = start + TOKENS
    return count


TextT = TypeVar("TextT", bound=Text | Tokens)


class RunHistory(Generic[TextT]):
    """Which runs a solution adds, and which it moves, copies within the workspace or puts back."""

    def __init__(self, rounds: Sequence[SolvedRound], text_of: Callable[[bytes], TextT]) -> None:
        self.rounds = rounds
        self.text_of = text_of

    def old_runs(self, index: int, path: str) -> Iterator[Set[int]]:
        """Yield the runs of a file after a round that are not new with it."""
        yield self.lost(index)
        yield from (self.text_of(old).runs for old in self.earlier(index, path))
        # What a command copies or builds from the workspace is not in the solution's own files.
        if self.rounds[index].solution:
            yield self.found(index) - self.written(index)

    def earlier(self, index: int, path: str) -> list[bytes]:
        """Return what a file held when the round began, and in all earlier states."""
        states = [state for each in self.rounds[:index] for state in (each.before, each.after)]
        return [state[path] for state in (*states, self.rounds[index].before) if path in state]

    @cache  # noqa: B019 - a history lives as long as one call
    def lost(self, index: int) -> Set[int]:
        """Return the runs that a round's solution takes out of files."""
        before, after = self.rounds[index].before, self.rounds[index].after
        changed = [path for path in before if after.get(path) != before[path]]
        of = self.text_of
        return set().union(*(of(before[path]).runs - of(after.get(path, b"")).runs for path in changed))

    @cache  # noqa: B019
    def found(self, index: int) -> Set[int]:
        """Return the runs of the workspace when a round's solution begins."""
        return set().union(*(self.text_of(content).runs for content in self.rounds[index].before.values()))

    @cache  # noqa: B019
    def written(self, index: int) -> Set[int]:
        """Return the runs of a solution's own files."""
        return set().union(*(text.runs for _, text in self._sources(index)))

    def source(self, index: int, run: int) -> str:
        """Return where a solution's own files have a run, as ``path:line``; empty where they do not."""
        return next((f"{path}:{text.line_of(run)}" for path, text in self._sources(index) if run in text.runs), "")

    def _sources(self, index: int) -> Iterator[tuple[str, TextT]]:
        for path, content in self.rounds[index].solution.items():
            yield path, self.text_of(content)
            if b"\n@@ " in content:  # A patch, as the text that it leads to, with its line numbers kept.
                yield path, self.text_of(re.sub(rb"(?m)^-.*|^\+", b"", content))
