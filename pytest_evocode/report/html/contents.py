"""What a report is made from: the results, the attempts that count of them, and the tasks as far as they are found."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from pytest_evocode.metrics.score_table import ScoreTable
from pytest_evocode.names import TASK_FILE
from pytest_evocode.report.html.redaction import Redaction, short_title
from pytest_evocode.results.loading import Results, StoredAttempt, load_results
from pytest_evocode.tasks import find_tasks


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
    run: str | None = None
    """The name of the only run that counts; None counts all."""
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
