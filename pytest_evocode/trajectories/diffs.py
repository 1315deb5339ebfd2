"""Unified diffs that restore a text byte for byte, with any line ends, and with or without a final newline.

No library serves: ``unidiff`` only parses, and ``whatthepatch`` splits lines at form feeds and carriage returns and
forgets whether the last one ended (``difflib.unified_diff`` does not mark that either).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from pytest_evocode.errors import DiffError

_CONTEXT = 3
_NO_NEWLINE = "\\ No newline at end of file\n"
_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+\d+(?:,(\d+))? @@")
# Pairs of equal lines up to which difflib is asked; its time grows with them.
_PAIRS = 300_000
_POPULAR = 200  # lines of a text from which on difflib ignores those that are more than a hundredth of all


class _Edit(NamedTuple):
    """The replacement of lines ``start`` to ``end`` of the old text by ``new_start`` to ``new_end`` of the new one."""

    start: int
    end: int
    new_start: int
    new_end: int


def unified_diff(path: str, old: str | None, new: str | None) -> str:
    r"""Return the diff between two texts; None stands for a file that does not exist.

    The diff is empty where the texts are equal, and between an empty file and none.

    >>> print(unified_diff("a.txt", "one\ntwo\n", "one\n2"), end="")
    --- a/a.txt
    +++ b/a.txt
    @@ -1,2 +1,2 @@
     one
    -two
    +2
    \ No newline at end of file
    """
    before, after = split_lines(old or ""), split_lines(new or "")
    hunks = [_hunk(before, after, edits) for edits in _grouped(_edits(before, after))]
    if not hunks:
        return ""
    names = ("/dev/null" if old is None else side_name("a", path), "/dev/null" if new is None else side_name("b", path))
    return f"--- {names[0]}\n+++ {names[1]}\n{''.join(hunks)}"


def apply_diff(old: str, diff: str) -> str:
    r"""Apply a diff to a text.

    Raises:
        DiffError: The diff does not fit the text, or is not complete.

    >>> apply_diff("one\ntwo\n", unified_diff("a", "one\ntwo\n", "one\n2"))
    'one\n2'
    """
    before = split_lines(old)
    after: list[str] = []
    done = 0
    for hunk in read_hunks(diff):
        if not done <= hunk.start <= len(before):
            raise DiffError(f"the diff's line {hunk.at} is about lines that the text does not have")
        after += before[done : hunk.start]
        done = hunk.start
        for place, (sign, line) in enumerate(hunk.lines):
            if sign != "+":
                if done >= len(before) or before[done] != line:
                    raise DiffError(f"the diff's line {hunk.number(place)} is not what the text has there")
                done += 1
            if sign != "-":
                after.append(line)
    return "".join(after + before[done:])


class DiffHunk(NamedTuple):
    """One hunk of a diff."""

    start: int
    """How many lines of the old text come before it."""
    taken: int
    """How many lines of the old text it is about."""
    lines: list[tuple[str, str]]
    """Each with its sign, `` ``, ``-`` or ``+``, and as the text has it."""
    at: int
    """The number of its first line, which begins with ``@@``, in the diff."""

    def number(self, place: int) -> int:
        """Return the number in the diff of one of the lines, counted from 0."""
        # Behind one without a line feed stands a line that says so.
        return self.at + 1 + place + sum(not line.endswith("\n") for _, line in self.lines[:place])


def read_hunks(diff: str) -> Iterator[DiffHunk]:
    """Yield the hunks of a unified diff, in order.

    Raises:
        DiffError: A hunk is not complete, or has more lines than it says.
    """
    body = split_lines(diff)
    at = 0
    while at < len(body):
        header = _HUNK.match(body[at])
        at += 1
        if header is None:
            continue
        taken, added = (1 if count is None else int(count) for count in header.groups()[1:])
        start = int(header[1]) - (taken > 0)  # An empty range is named by the line in front of it.
        lines = []
        first, left, new = at, taken, added
        while left or new:
            sign, line = _signed_line(body, at)
            at += 1 if line.endswith("\n") else 2
            left -= sign != "+"
            new -= sign != "-"
            if left < 0 or new < 0:
                raise DiffError(f"the diff's line {at} is one more than its hunk has")
            lines.append((sign, line))
        yield DiffHunk(start, taken, lines, first)


def split_lines(text: str) -> list[str]:
    """Split a text after each line feed, and nowhere else."""
    lines = text.split("\n")
    last = lines.pop()
    return [f"{line}\n" for line in lines] + ([last] if last else [])


def _signed_line(body: Sequence[str], at: int) -> tuple[str, str]:
    """Return the sign of a hunk's line and the line as the text has it."""
    written = body[at] if at < len(body) else ""
    if written[:1] not in ("+", "-", " ") or not written.endswith("\n"):
        raise DiffError(f"the diff's line {at + 1} belongs to no hunk, or the diff is cut off")
    ends = at + 1 >= len(body) or not body[at + 1].startswith("\\")
    return written[0], written[1:] if ends else written[1:-1]


def side_name(side: str, path: str) -> str:
    """Return what a diff calls a path of one side, ``a`` or ``b``."""
    name = f"{side}/{path}"
    return name if name.isprintable() and '"' not in name else json.dumps(name)


def _edits(before: Sequence[str], after: Sequence[str]) -> list[_Edit]:
    """Return where two texts differ."""
    shorter = min(len(before), len(after))
    head = next((i for i in range(shorter) if before[i] != after[i]), shorter)
    tail = next((i for i in range(shorter - head) if before[-1 - i] != after[-1 - i]), shorter - head)
    old, new = before[head : len(before) - tail], after[head : len(after) - tail]
    if not old and not new:
        return []
    # Where one side has no lines there is nothing to be looked for, which difflib would prepare for all the same.
    if not old or not new or _pairs(old, new) > _PAIRS:
        return [_Edit(head, head + len(old), head, head + len(new))]
    codes = SequenceMatcher(None, old, new).get_opcodes()
    return [_Edit(a + head, b + head, c + head, d + head) for tag, a, b, c, d in codes if tag != "equal"]


def _pairs(old: Sequence[str], new: Sequence[str]) -> int:
    """Return how many pairs of equal lines difflib would look at."""
    counts = Counter(new)
    rare = len(new) // 100 + 1 if len(new) >= _POPULAR else len(new)
    return sum(count * counts[line] for line, count in Counter(old).items() if counts[line] <= rare)


def _grouped(edits: Sequence[_Edit]) -> Iterator[list[_Edit]]:
    """Yield groups of edits that share a hunk, because their contexts touch."""
    group: list[_Edit] = []
    for edit in edits:
        if group and edit.start - group[-1].end > 2 * _CONTEXT:
            yield group
            group = []
        group.append(edit)
    if group:
        yield group


def _hunk(before: Sequence[str], after: Sequence[str], edits: Sequence[_Edit]) -> str:
    first, last = edits[0], edits[-1]
    lead = min(_CONTEXT, first.start)
    trail = min(_CONTEXT, len(before) - last.end)
    lines = [" " + line for line in before[first.start - lead : first.start]]
    done = first.start
    for edit in edits:
        lines += [" " + line for line in before[done : edit.start]]
        lines += ["-" + line for line in before[edit.start : edit.end]]
        lines += ["+" + line for line in after[edit.new_start : edit.new_end]]
        done = edit.end
    lines += [" " + line for line in before[done : done + trail]]
    old = _range(first.start - lead, last.end + trail)
    new = _range(first.new_start - lead, last.new_end + trail)
    return f"@@ -{old} +{new} @@\n" + "".join(
        line if line.endswith("\n") else f"{line}\n{_NO_NEWLINE}" for line in lines
    )


def _range(start: int, end: int) -> str:
    length = end - start
    if length == 1:
        return str(start + 1)
    return f"{start + 1 if length else start},{length}"
