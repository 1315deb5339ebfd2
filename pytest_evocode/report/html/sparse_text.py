"""One diff out of several that follow one another, of a text of which only the lines in these diffs are known."""

from __future__ import annotations

from collections.abc import Iterator

from pytest_evocode.errors import DiffError
from pytest_evocode.trajectories.diffs import read_hunks, split_lines

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"
_MOST_LINES = 2_000_000

Line = tuple[str, str | None]
"""A line of a diff: its sign, `` ``, ``-`` or ``+``, and the line, None where nothing tells it."""


class SparseText:
    r"""A text before and after some diffs, as far as they tell.

    >>> text = SparseText()
    >>> text.apply("@@ -3 +3 @@\n-c\n+C\n")
    >>> text.apply("@@ -2,0 +3 @@\n+new\n")
    >>> print(text.diff()[0], end="")
    @@ -3 +3,2 @@
    -c
    +new
    +C
    """

    def __init__(self, *, existed: bool = True) -> None:
        """Begin with a text of which nothing is known, or with none."""
        self._before: list[str | None] = []
        self._open = existed  # Whether lines may follow that no diff has told of.
        self._now: list[int | str] = []  # Lines as they were before, by their index, and new ones.

    def apply(self, diff: str) -> None:
        """Apply a unified diff to the text as it is now.

        Raises:
            DiffError: It does not fit what the diffs before it tell.
        """
        after: list[int | str] = []
        done = 0
        for hunk in read_hunks(diff):
            self._extend(hunk.start + hunk.taken)
            if hunk.start < done:
                raise DiffError("its hunks are not in order")
            after += self._now[done : hunk.start]
            done = hunk.start
            for sign, line in hunk.lines:
                if sign == "+":
                    after.append(line)
                    continue
                self._learn(done, line)
                if sign == " ":
                    after.append(self._now[done])
                done += 1
        self._now = after + self._now[done:]

    def _extend(self, length: int) -> None:
        if length > len(self._now) and (not self._open or length > _MOST_LINES):
            raise DiffError("it is about lines that the text does not have")
        while len(self._now) < length:
            self._now.append(len(self._before))
            self._before.append(None)

    def _learn(self, at: int, line: str) -> None:
        entry = self._now[at]
        known = entry if isinstance(entry, str) else self._before[entry]
        if known is None and isinstance(entry, int):
            self._before[entry] = line
        elif known != line:
            raise DiffError("a line is not what it was after the diff before")

    def close(self) -> None:
        """Say that the text has no lines that no diff has told of, as one that was removed or written whole."""
        self._open = False

    def replace(self, text: str) -> None:
        """Make the text another one; what it was before has to be known whole."""
        self._now = [*split_lines(text)]

    @property
    def before(self) -> str | None:
        """The whole text before; None where not all is known."""
        return None if self._open or None in self._before else "".join(line or "" for line in self._before)

    @property
    def now(self) -> str | None:
        """The whole text after; None where not all is known."""
        lines = [entry if isinstance(entry, str) else self._before[entry] for entry in self._now]
        return None if self._open or None in lines else "".join(line or "" for line in lines)

    def diff(self) -> tuple[str, int, int]:
        """Return the diff without a header, and how many lines were added and removed."""
        lines = list(self._lines())
        added = sum(sign == "+" for sign, _ in lines)
        removed = sum(sign == "-" for sign, _ in lines)
        return "".join(_hunks(lines)), added, removed

    def _lines(self) -> Iterator[Line]:
        done = 0
        new: list[str] = []
        for entry in self._now:
            if isinstance(entry, str):
                new.append(entry)
                continue
            yield from _block(self._before[done:entry], new)
            yield " ", self._before[entry]
            done, new = entry + 1, []
        yield from _block(self._before[done:], new)


def whole_diff(sign: str, text: str) -> str:
    r"""Return the diff of a text that was added or removed whole, by the sign ``+`` or ``-``, without a header.

    >>> whole_diff("+", "a\n")
    '@@ -0,0 +1 @@\n+a\n'
    """
    return "".join(_hunks([(sign, line) for line in split_lines(text)]))


def _block(old: list[str | None], new: list[str]) -> Iterator[Line]:
    """Yield lines that took the place of others, those that are the same at both ends as unchanged ones."""
    shorter = min(len(old), len(new))
    head = next((i for i in range(shorter) if old[i] != new[i]), shorter)
    tail = next((i for i in range(shorter - head) if old[-1 - i] != new[-1 - i]), shorter - head)
    yield from ((" ", line) for line in old[:head])
    yield from (("-", line) for line in old[head : len(old) - tail])
    yield from (("+", line) for line in new[head : len(new) - tail])
    yield from ((" ", line) for line in old[len(old) - tail :])


def _hunks(lines: list[Line]) -> Iterator[str]:
    if all(sign == "+" for sign, _ in lines):
        if lines:
            yield _hunk(lines, 0, 0)
        return
    changed = [at for at, (sign, _) in enumerate(lines) if sign != " "]
    # How many lines of either text come before each of the lines.
    old, new = 0, 0
    numbers = []
    for sign, _ in lines:
        numbers.append((old, new))
        old += sign != "+"
        new += sign != "-"
    at = 0
    while at < len(changed):
        last = at
        while last + 1 < len(changed) and _touch(lines, changed[last], changed[last + 1]):
            last += 1
        begin, end = changed[at], changed[last] + 1
        while begin > 0 and begin > changed[at] - _CONTEXT and lines[begin - 1][1] is not None:
            begin -= 1
        while end < len(lines) and end <= changed[last] + _CONTEXT and lines[end][1] is not None:
            end += 1
        yield _hunk(lines[begin:end], *numbers[begin])
        at = last + 1


def _touch(lines: list[Line], first: int, second: int) -> bool:
    """Return whether two changed lines share a hunk: all between them is known, and not much."""
    return second - first <= 2 * _CONTEXT + 1 and all(line is not None for _, line in lines[first:second])


def _hunk(lines: list[Line], old: int, new: int) -> str:
    taken = sum(sign != "+" for sign, _ in lines)
    added = sum(sign != "-" for sign, _ in lines)
    body = (f"{sign}{line}" for sign, line in lines)
    shown = (line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in body)
    return f"@@ -{_range(old, taken)} +{_range(new, added)} @@\n{''.join(shown)}"


def _range(before: int, length: int) -> str:
    if length == 1:
        return str(before + 1)
    return f"{before + 1 if length else before},{length}"
