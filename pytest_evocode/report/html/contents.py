"""What a report is made from, and what it must not tell: where the evaluator's files lie, and the host's secrets."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.score_table import ScoreTable
from pytest_evocode.names import TASK_FILE
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.loading import Results, StoredAttempt, load_results
from pytest_evocode.results.scrubbing import mapped, scrubbed
from pytest_evocode.secrets import Scrubber, secrets_in
from pytest_evocode.tasks import find_tasks

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
        absolute = {str(place): name for root, name in self._shown.items() for place in _places_of(root)}
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
        clean = self._scrubber.for_many()
        # Most texts of a table are there many times.
        return mapped(value, cache(lambda text: self._without_paths(clean(text))))

    def secrets(self, value: Any) -> Any:
        """Return a JSON value of texts that others wrote, without secrets."""
        return scrubbed(value, self._scrubber)

    def in_full(self, line: str) -> str:
        """Return a line that begins with a shown path with the path that it stands for, for this machine's terminal."""
        for root, name in self._shown.items():
            if line.startswith(f"{name}/"):
                return f"{root.resolve()}{line.removeprefix(name)}"
        return line

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


def _places_of(root: Path) -> set[Path]:
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


@dataclass(frozen=True)
class ReportContents:
    """What a report shows, and how it is called."""

    results: Results
    """All that was loaded; attempts of other harnesses with their cases, ours with or without."""
    table: ScoreTable
    """The rows of scores that are made of them."""
    roots: Sequence[Path]
    """The results directories, as they were named."""
    title: str = ""
    """Empty has the last names of the results directories."""
    only: frozenset[str] | None = None
    """The names of the only runs that count; None counts all."""
    counted: frozenset[str] | None = None
    """The names of the only tasks that count; None counts all."""
    under_way: str = ""
    """The name of the run that is still being made; empty where none is."""
    tasks: Mapping[str, Path] = field(default_factory=dict)
    """The directories of tasks by name, where they are known."""

    @property
    def name(self) -> str:
        """The title, or one made of the directories' names."""
        return self.title or short_title(self.roots)

    @cached_property
    def redaction(self) -> Redaction:
        """What takes out of the report what it must not tell."""
        return Redaction(self.roots)

    def is_under_way(self, attempt: StoredAttempt) -> bool:
        """Return whether an attempt's session still writes it."""
        return bool(self.under_way) and attempt.run == self.under_way and not attempt.finished


def with_foreign_cases(results: Results, roots: Sequence[Path]) -> Results:
    """Return what was loaded with the cases of other harnesses' attempts, which are not read one by one as ours are."""
    if all(attempt.layout == "evocode" for attempt in results.attempts):
        return results
    whole = {each.path: each.record.rounds for each in load_results(roots, cases=True).attempts}
    attempts = [
        each
        if each.layout == "evocode"
        else replace(each, record=each.record.model_copy(update={"rounds": whole.get(each.path, each.record.rounds)}))
        for each in results.attempts
    ]
    return replace(results, attempts=attempts)


def found_tasks(results: Results, given: Path | None) -> dict[str, Path]:
    """Return the directories of tasks by name.

    Those in ``given`` come first, then those that sessions were called with, as seen from here or from beside their
    results, then those that results lie in, as EvoCode-Bench has them.
    """
    found: dict[str, Path] = {}
    for place in dict.fromkeys(_places(results, given)):
        for name, directory in find_tasks(place).items() if place.is_dir() else ():
            found.setdefault(name, directory)
    return found


def _places(results: Results, given: Path | None) -> Iterator[Path]:
    if given is not None:
        yield given
    for stored in results.runs:
        for base in (Path.cwd(), stored.path.parent.parent.parent):
            yield from (base / path for path in _paths(stored.record.arguments))
    for attempt in results.attempts:
        if attempt.layout != "evocode":
            yield from (parent for parent in attempt.path.parents[:5] if (parent / TASK_FILE).is_file())


def _paths(arguments: Iterable[str]) -> Iterator[str]:
    for argument in arguments:
        path = argument.partition("::")[0]
        if path and not path.startswith("-"):
            yield os.path.dirname(path) if path.endswith(TASK_FILE) else path
