"""Texts as runs of lines that mean something, hashed, so that what two of many files share is found in linear time."""

from __future__ import annotations

import re
from collections.abc import Set
from difflib import SequenceMatcher

RUN = 6
"""Significant lines in a row that two files do not share by chance."""

# Past this many changed lines the exact difference takes too long.
_DIFF_LIMIT = 3000
_NO_STATEMENT = re.compile(
    r"""\W*$                                                    # blank, or nothing but brackets
    |\#|//|/\*|\*/|\*\s|--|;|<!--                               # a comment
    |(?:import|package|use|using)\s|from\s+\S+\s+import\s|\w+\s+=\s+require\(|(?:const|let|var)\s.*\brequire\(|export\s.*\sfrom\s
    """,
    re.VERBOSE,
)


class Text:
    """A file's significant lines: without blanks, comments, imports and lone brackets, and stripped."""

    def __init__(self, content: bytes) -> None:
        self.lines: list[str] = []
        self.numbers: list[int] = []
        for number, line in enumerate(_decode(content).splitlines(), 1):
            stripped = line.strip()
            if not _NO_STATEMENT.match(stripped):
                self.lines.append(stripped)
                self.numbers.append(number)
        self.hashes = [hash(tuple(self.lines[at : at + RUN])) for at in range(len(self.lines) - RUN + 1)]
        """Of the run that begins with each line."""
        self.runs = frozenset(self.hashes)

    def added_to(self, before: Text, wanted: Set[int]) -> list[int]:
        """Those of the ``wanted`` runs of which every line was added to ``before``, in the order of lines."""
        found = [at for at, run in enumerate(self.hashes) if run in wanted and run not in before.runs]
        if found and before.lines:
            added = self._added_lines(before)
            found = [at for at in found if added.issuperset(range(at, at + RUN))]
        return [self.hashes[at] for at in found]

    def _added_lines(self, before: Text) -> set[int]:
        """The positions of the lines that a difference to ``before`` adds."""
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


class Texts:
    """Makes one Text of each content, however many files and states have it."""

    def __init__(self) -> None:
        self._known: dict[bytes, Text] = {}

    def of(self, content: bytes | None) -> Text:
        """The text of a content; an empty one where there is none."""
        content = content or b""
        text = self._known.get(content)
        if text is None:
            text = self._known[content] = Text(content)
        return text


def _decode(content: bytes) -> str:
    """The text; empty for a binary file."""
    try:
        return "" if b"\0" in content else content.decode("utf-8")
    except UnicodeDecodeError:
        return ""
