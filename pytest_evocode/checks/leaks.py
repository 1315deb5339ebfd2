"""Leaks: what agents can see of tests and solutions too early, found by pure functions over the contents of files.

A leak is an equal file, a run of equal lines, or a near copy: a file with other names, comments and layout, or with
parts in another order. Whether equal files are a coincidence depends on what they are called and on what they say.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatch
from functools import cache
from pathlib import PurePosixPath
from typing import NamedTuple

from pytest_evocode.checks.patterns import PATTERNS
from pytest_evocode.checks.text_runs import LARGEST, LINES, Files, RunHistory, SolvedRound, Text, Tokens


@dataclass(frozen=True)
class _VisibleFiles:
    """Files that agents see from a round on; ``first`` is that round's index, from 0."""

    files: Files
    first: int
    since: str
    remedy: str
    prefix: str = ""
    """For the files of a workdir, whose paths are the workspace's: where they lie in the task."""


class _HiddenRun(NamedTuple):
    """A run of lines that a solution adds: in which round, to which file of the workspace, and from which file."""

    round: str
    path: str
    source: str


class _Hidden(NamedTuple):
    """Something that agents must not see yet: the text of a file, and which of its runs are new with its round."""

    what: str
    text: Tokens
    runs: Set[int]


class _NearCopy(NamedTuple):
    """The hidden text that a visible one is nearest to."""

    line: int
    """The first line that is the same."""
    what: str


def find_leaks(starter: Files, rounds: Sequence[SolvedRound], shared_tests: Files | None = None) -> list[str]:
    """Return a line for each file, or run of lines, that agents see too early: what it is and what to do.

    A leak is a file that equals one of the tests or solutions, a run of ``LINES`` significant lines that a solution
    adds to the workspace, or a near copy of tests or of what a solution adds. It is not a leak where a solution leaves
    something as it was, moves it, copies it within the workspace by a command, or puts it back into a file from which
    an earlier round took it.

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
        self.history = RunHistory(rounds, self.text_of)
        self.tokens_of = cache(Tokens)
        self.token_history = RunHistory(rounds, self.tokens_of)

    def leaks(self, visible: _VisibleFiles) -> Iterator[str]:
        """Yield what is wrong with some visible files, file by file."""
        paths: dict[bytes, list[str]] = {}
        for path, content in visible.files.items():
            paths.setdefault(content, []).append(path)
        equal = self._equal_files(visible, paths)
        texts = {path: self.text_of(content) for content, (path, *_) in paths.items()}
        hidden = self._added_runs(visible, set().union(*(text.runs for text in texts.values())))
        stretches = {path: list(_stretches(text, hidden)) for path, text in texts.items()}
        told = {*equal, *(content for content, (path, *_) in paths.items() if stretches[path])}
        others = {path: content for content, (path, *_) in paths.items() if content not in told}
        edited = visible.files.keys() if visible.prefix else frozenset()
        near = dict(self._near_copies(others, visible.first, edited))
        for content, (path, *_) in paths.items():
            if content in equal:
                path, what = equal[content]
                message = f"is the same file as {what}, and agents see it {visible.since}; {visible.remedy}"
                yield f"{visible.prefix}{path}: {message}"
            elif path in near:
                but = "but for names, comments, layout and order"
                message = f"{near[path].what} {but}, and agents see it {visible.since}; {visible.remedy}"
                yield f"{visible.prefix}{path}:{near[path].line}: {message}"
            else:
                found = _describe(stretches[path], visible)
                yield from (f"{visible.prefix}{path}:{line}: {message}" for line, message in found)

    def _equal_files(
        self, visible: _VisibleFiles, paths: Mapping[bytes, Sequence[str]]
    ) -> dict[bytes, tuple[str, str]]:
        """Return the contents that hidden files have, each with a visible path and that of the first such file."""
        equal: dict[bytes, tuple[str, str]] = {}
        for path, content in self._hidden_files(visible, paths.keys()):
            for seen in paths.get(content, ()):
                if content not in equal and tells(content, path, seen):
                    equal[content] = seen, path
        return equal

    def _hidden_files(self, visible: _VisibleFiles, contents: Set[bytes]) -> Iterator[tuple[str, bytes]]:
        """Yield the tests, and the solutions of certain contents, from the round on in which the files are visible."""
        for index, each in enumerate(self.rounds[visible.first :], visible.first):
            yield from each.tests.items()
            for path, content in each.solution.items():
                if content in contents and not self._is_old(index, path, content):
                    yield path, content
        yield from self.shared_tests.items()

    def _is_old(self, index: int, path: str, content: bytes) -> bool:
        """Return whether a solution's file only leaves, moves or puts back what the workspace had under its name."""
        before, after = self.rounds[index].before, self.rounds[index].after
        name = PurePosixPath(path).name
        places = [place for place in after if after[place] == content]
        if name == "solve.sh" or name not in {PurePosixPath(place).name for place in places}:
            return False
        moved = any(before[place] == content != after.get(place) for place in before)
        return moved or all(content in self.history.earlier(index, place) for place in places)

    def _added_runs(self, visible: _VisibleFiles, wanted: Set[int]) -> dict[int, _HiddenRun]:
        """Return those of the ``wanted`` runs that solutions add from the round on in which the files are visible."""
        hidden: dict[int, _HiddenRun] = {}
        for index, each in enumerate(self.rounds[visible.first :], visible.first):
            for path, content in each.after.items():
                is_edited_workdir = bool(visible.prefix) and path in visible.files
                if each.before.get(path) == content or is_edited_workdir or is_everywhere(path):
                    continue
                text = self.text_of(content)
                if not text.runs.isdisjoint(wanted):
                    added = text.added_to(self.text_of(each.before.get(path, b"")), wanted)
                    new = set(added).difference(*self.history.old_runs(index, path)) if added else ()
                    for run in new:
                        hidden.setdefault(run, _HiddenRun(each.name, path, self.history.source(index, run)))
        return hidden

    def _near_copies(self, visible: Files, first: int, edited: Set[str]) -> Iterator[tuple[str, _NearCopy]]:
        """Yield the paths of visible files that are near copies, each with what it is nearest to.

        Args:
            visible: The files that agents see.
            first: The index, from 0, of the round from which on they see them.
            edited: Paths of the workspace at which a solution may write what it likes.
        """
        having: dict[int, list[_Hidden]] = defaultdict(list)
        for each in self._hidden_texts(first, edited) if visible else ():
            for run in each.runs:
                having[run].append(each)
        for path, content in visible.items():
            text = self.tokens_of(content)
            shared: dict[str, tuple[_Hidden, set[int]]] = {}
            for run in text.starts:  # In order, so that of equally near ones the same is named each time.
                for each in having.get(run, ()):
                    shared.setdefault(each.what, (each, set()))[1].add(run)
            nearest = [_compare(text, each, runs) for each, runs in shared.values()]
            share, _, found = max(nearest, key=lambda each: each[:2], default=(0.0, 0, None))
            if share >= SHARE and found is not None:
                yield path, found

    def _hidden_texts(self, first: int, edited: Set[str]) -> Iterator[_Hidden]:
        """Yield the tests of the rounds from the first on, and what their solutions add."""
        for index, each in enumerate(self.rounds[first:], first):
            yield from (self._whole(path, content) for path, content in each.tests.items())
            for path, content in each.after.items():
                if each.before.get(path) != content and path not in edited and not is_everywhere(path):
                    text = self.tokens_of(content)
                    new = text.runs.difference(*self.token_history.old_runs(index, path))
                    if new:
                        source = self.token_history.source(index, min(new, key=text.line_of))
                        where = f" ({source})" if source else ""
                        yield _Hidden(f"what the solution of {each.name} adds to {path}{where}", text, new)
            for path, content in each.solution.items():
                if not is_everywhere(path):
                    text = self.tokens_of(content)
                    yield _Hidden(path, text, text.runs.difference(*map(self.token_history.found, range(index + 1))))
        yield from (self._whole(path, content) for path, content in self.shared_tests.items())

    def _whole(self, path: str, content: bytes) -> _Hidden:
        text = self.tokens_of(content)
        return _Hidden(path, text, text.runs)


class _Stretch(NamedTuple):
    """Hidden runs that overlap: their first line, the number of their significant lines, and what they are."""

    line: int
    length: int
    what: _HiddenRun


def _stretches(text: Text, hidden: Mapping[int, _HiddenRun]) -> Iterator[_Stretch]:
    """Yield the hidden runs of a text, with those of one round and one file that overlap taken together."""
    found = [(at, hidden[run]) for at, run in enumerate(text.hashes) if run in hidden]
    start = 0
    for end in range(1, len(found) + 1):
        (first, what), (at, _) = found[start], found[end - 1]
        if end == len(found) or found[end][0] >= at + LINES or found[end][1][:2] != what[:2]:
            yield _Stretch(text.numbers[first], at + LINES - first, what)
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


SHARE = 0.5
"""How much of the hidden or of the visible file has to be the same. Of Python's standard library only those pairs of
modules reach this that were made from each other or from one pattern."""
FEWEST = 60
"""How many tokens have to be the same, about eight lines."""

LIMITS = (
    "What this check cannot find: what has other texts and numbers, is put in other words or is shorter than "
    f"{FEWEST} tokens, unless it is an equal file; what is packed, compiled or in a file of more than "
    f"{LARGEST >> 10} KiB; and outside of the build context, workdirs and the workspace, what is not an equal file."
)


def _compare(text: Tokens, hidden: _Hidden, runs: Set[int]) -> tuple[float, int, _NearCopy]:
    """Return how much of the hidden text or of the visible one the other has, in how many tokens; 0 for too few."""
    count = hidden.text.covered(runs)
    of_hidden = count / hidden.text.covered(hidden.runs)
    of_visible = text.covered(runs) / text.covered(text.runs)
    share = max(of_hidden, of_visible) if count >= FEWEST else 0.0
    said = f"has {of_hidden:.0%} of" if of_hidden >= of_visible else f"is to {of_visible:.0%} a part of"
    return share, count, _NearCopy(text.first_line(runs), f"{said} {hidden.what}")


SHORTEST = 64
"""The size, in bytes, from which on two equal files are no coincidence; of smaller ones it depends on what they say."""


def is_everywhere(path: str) -> bool:
    """Return whether a file of this name is in many projects and no part of a solution, such as a licence.

    >>> is_everywhere("/app/LICENSE.txt"), is_everywhere("/app/tally.py")
    (True, False)
    """
    name = PurePosixPath(path).name.lower()
    return any(fnmatch(name, pattern) for pattern in PATTERNS.words["everywhere"])


def may_tell(path: str, content: bytes) -> bool:
    """Return whether a copy of a file, at least under its own name, would tell something."""
    return tells(content, path, path)


def tells(content: bytes, hidden: str, visible: str) -> bool:
    r"""Return whether a hidden and a visible file have this content for a reason.

    A short one has to say something, such as ``up_to,cents 70,99``, or to have the same name at both places. Comments,
    imports and brackets say nothing.

    >>> tells(b"42\n", "answer.txt", "answer.txt"), tells(b"42\n", "answer.txt", "size.txt")
    (True, False)
    """
    if is_everywhere(hidden):
        return False
    if len(content) >= SHORTEST:
        return True
    name = PurePosixPath(hidden).name
    if any(fnmatch(name.lower(), pattern) for pattern in PATTERNS.words["where_short"]):
        return False
    lines = Text(content).lines
    words = set(re.findall(r"\w+", " ".join(lines)))
    if len(words) >= 3 and sum(map(len, words)) >= 12:
        return True
    is_binary = not lines and len(set(content)) >= 8 and not content.isascii()
    return is_binary or (bool(lines) and name == PurePosixPath(visible).name)
