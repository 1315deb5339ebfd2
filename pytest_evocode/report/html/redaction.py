"""What a report must not tell: where the evaluator's files lie, and so who that is, and the secrets of the host."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.report.tables import join_first
from pytest_evocode.results.scrubbing import mapped, scrubbed
from pytest_evocode.secrets import Scrubber, secrets_in

#: Where no path and no name goes on from before.
_BEGINS = r"(?<![\w.~/-])"
#: Home directories, of this machine and of others that results come from; that of root names nobody.
_HOME = re.compile(rf"{_BEGINS}/(?:home|Users)/[^/\s'\":,;)\]]+")
_MOST_NAMES = 3


class Redaction:
    """Replaces secrets, and the absolute paths in what pytest-evocode itself says.

    A path below a results directory is shown below that directory's short name, another one relative to the working
    directory where it lies there, and a home directory as ``~``. In what agents and programs wrote paths are those of
    their containers and stay.
    """

    def __init__(self, roots: Sequence[Path], scrubber: Scrubber | None = None) -> None:
        here = Path.cwd()
        self._scrubber = scrubber or Scrubber()
        self._shown = {root: _shown(root, here) for root in roots}
        absolute = {str(place): name for root, name in self._shown.items() for place in _places(root)}
        if here != Path("/"):
            absolute.setdefault(str(here), "")
        if (home := os.path.expanduser("~")) not in ("/", "~", "/root"):
            absolute.setdefault(home, "~")
        self._absolute = absolute
        # The longest first, and none in the middle of another path or name.
        known = "|".join(re.escape(place) for place in sorted(absolute, key=len, reverse=True))
        self._known = re.compile(rf"{_BEGINS}({known})(?:(/)|(?![\w-]|\.\w))") if known else None

    @property
    def roots(self) -> list[str]:
        """The results directories, short and as a command takes them where that is possible."""
        return list(self._shown.values())

    @property
    def stamp(self) -> str:
        """What changes with what is replaced; it tells nothing of the secrets that it is made of."""
        known = sorted(secrets_in(os.environ).items())
        return hashlib.sha256(repr((sorted(self._absolute.items()), known)).encode("utf-8", "replace")).hexdigest()

    def values(self, value: Any) -> Any:
        """Return a JSON value that pytest-evocode made, without absolute paths and secrets in its texts."""
        # Most texts of a table are there many times.
        return mapped(value, self._texts(self._scrubber.for_many()))

    def secrets(self, value: Any) -> Any:
        """Return a JSON value of texts that others wrote, without secrets."""
        return scrubbed(value, self._scrubber)

    def in_full(self, line: str) -> str:
        """Return a line that begins with a shown path with the path that it stands for, for this machine's terminal."""
        for root, name in self._shown.items():
            if line.startswith(f"{name}/"):
                return f"{root.resolve()}{line.removeprefix(name)}"
        return line

    def _texts(self, clean: Callable[[str], str]) -> Callable[[str], str]:
        known: dict[str, str] = {}

        def text(text: str) -> str:
            found = known.get(text)
            if found is None:
                found = known[text] = self._without_paths(clean(text))
            return found

        return text

    def _without_paths(self, text: str) -> str:
        if "/" not in text:
            return text
        return _HOME.sub("~", self._known.sub(self._replaced, text) if self._known else text)

    def _replaced(self, match: re.Match[str]) -> str:
        name, slash = self._absolute[match[1]], match[2] or ""
        return f"{name}{slash}" if name else "" if slash else "."


def short_title(roots: Sequence[Path]) -> str:
    """Return the title of a report: the last names of its directories, as many as tell them apart.

    >>> short_title([Path("/home/me/runs/evocode-results")]), short_title([Path("/a/x/results"), Path("/b/y/results")])
    ('evocode-results', 'x/results, y/results')
    """
    parts = [root.resolve().parts[1:] or ("results",) for root in dict.fromkeys(roots)]
    number = next((number for number in range(1, 5) if len({each[-number:] for each in parts}) == len(parts)), 4)
    return join_first(["/".join(each[-number:]) for each in parts], _MOST_NAMES)


def _places(root: Path) -> set[Path]:
    """Return the absolute paths that a directory is known by."""
    return {Path(os.path.abspath(root)), root.resolve()}


def _shown(root: Path, here: Path) -> str:
    if not root.is_absolute():
        return str(root)
    place = root.resolve()
    if place.is_relative_to(here):
        return str(place.relative_to(here))
    if place.is_relative_to(home := Path.home()) and home != Path("/"):
        return str("~" / place.relative_to(home))
    return short_title([root])
