"""Writing of a report: its folder, or one file that has everything in itself; a session has a process do it."""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from pytest_evocode.errors import EvocodeError, UsageError
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.failures import rows_for_requirements
from pytest_evocode.report.html.bundle import page, script, single_page, style
from pytest_evocode.report.html.contents import ReportContents, found_tasks, with_foreign_cases
from pytest_evocode.report.html.folder import ReportFolder, claimed, own_stamp, packed, stamp, text_stamp
from pytest_evocode.report.html.ids import attempt_id, row_id, task_id
from pytest_evocode.report.html.index import index_of, task_names
from pytest_evocode.report.html.processes import PROCESS_FILE
from pytest_evocode.report.html.rows import comparisons_of
from pytest_evocode.report.html.summaries import csv_files, summary_json, summary_markdown
from pytest_evocode.report.html.task_files import State, TaskOfReport, known_overview, known_tasks, write_tasks
from pytest_evocode.report.leaderboard import leaderboard
from pytest_evocode.report.printable import printable
from pytest_evocode.results.loading import StoredAttempt, load_results
from pytest_evocode.tasks.atomic_write import replacing

_PAGE = "index.html"


@dataclass(frozen=True, slots=True)
class WrittenReport:
    """A report that was written."""

    page: Path
    """What to open in a browser."""
    problems: tuple[str, ...]
    """What could not be read of attempts that were loaded, a line for each file."""


def write_report(out: Path, contents: ReportContents) -> WrittenReport:
    """Write a report to a directory, or what is new in it.

    Each file is written whole or not at all, and the index last, so that it can be looked at meanwhile.

    Raises:
        UsageError: The directory holds something else, or cannot be written.
    """
    with claimed(out) as folder:
        about = [
            own_stamp(),
            text_stamp("\n".join(str(root.resolve()) for root in contents.roots)),
            contents.redaction.roots,
        ]
        before = known_tasks(folder.state) if folder.state.get("about") == about else {}
        tasks = write_tasks(list(_tasks(contents)), folder, before, processes=1 if contents.under_way else None)
        overview = known_overview(folder.state)
        made_from = overview_stamp(contents, tasks)
        if overview.get("made_from") != made_from or not all(map(folder.keep, overview["files"])):
            overview = {"made_from": made_from, "files": _write_overview(folder, contents, tasks)}
        folder.finish({"about": about, "tasks": tasks, "overview": overview})
    return WrittenReport(out / _PAGE, tuple(map(contents.redaction.in_full, _problems(tasks))))


def _write_overview(folder: ReportFolder, contents: ReportContents, tasks: Mapping[str, State]) -> list[str]:
    """Write all files but those of tasks, the index last, and return their names."""
    index, comparisons = _overview(contents, tasks)
    files = {
        "data/comparisons.js": packed("comparisons", comparisons),
        **dict(_beside(contents, index, comparisons, tasks)),
        **{name: text.encode() for name, text in (("report.css", style()), ("report.js", script()), (_PAGE, page()))},
        "data/index.js": packed("index", index),
    }
    for name, content in files.items():
        folder.write(name, content)
    return list(files)


def write_single_file(path: Path, contents: ReportContents, *, most: int) -> WrittenReport:
    """Write a report as one HTML file, without the tables beside it.

    Args:
        path: The file; one that is there is replaced.
        contents: What the report shows.
        most: How many bytes it may have.

    Raises:
        UsageError: It would be larger, or cannot be written.
    """
    target = _Collected(most)
    tasks = write_tasks(list(_tasks(contents)), target, {}, processes=1)
    index, comparisons = _overview(contents, tasks)
    target.write("data/comparisons.js", packed("comparisons", comparisons))
    target.write("data/index.js", packed("index", index))
    parts = [*single_page(target.scripts)]
    target.check(sum(map(len, parts)))
    try:
        with replacing(path) as file:
            file.writelines(parts)
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be written: {error.strerror}") from None
    return WrittenReport(path, tuple(map(contents.redaction.in_full, _problems(tasks))))


class _Collected:
    """The data of a report in memory, up to a size."""

    def __init__(self, most: int) -> None:
        self.scripts: list[bytes] = []
        self._most = most
        self._size = 0

    def write(self, name: str, content: bytes) -> None:
        self.scripts.append(content)
        self._size += len(content)
        self.check(self._size)

    def keep(self, name: str) -> bool:
        return False

    def check(self, size: int) -> None:
        if size > self._most:
            raise UsageError(
                f"the report would be larger than {self._most / 1e6:g} MB in one file, which browsers read whole "
                "before they show anything; write a folder without --single-file, choose fewer attempts with --run or "
                "--tasks, or allow more with --most-megabytes"
            )


def _problems(tasks: Mapping[str, State]) -> tuple[str, ...]:
    every = (each["problems"] for task in tasks.values() for each in task["attempts"].values())
    return tuple(dict.fromkeys(problem for problems in every for problem in problems))


def _tasks(contents: ReportContents) -> Iterator[TaskOfReport]:
    attempts: dict[str, list[tuple[str, StoredAttempt]]] = defaultdict(list)
    rows = rows_for_requirements(contents.table.rows)
    counting = {attempt_id(attempt, contents.roots) for row in rows for attempt in row.attempts}
    for attempt in contents.results.attempts:
        attempts[attempt.record.task].append((attempt_id(attempt, contents.roots), attempt))
    # Those that only a run or a task directory names have a page, too.
    for name in task_names(contents.table, contents.results):
        directory = contents.tasks.get(name)
        of_task = attempts.get(name, ())
        yield TaskOfReport(
            task_id(name),
            name,
            of_task,
            frozenset(id_ for id_, _ in of_task if id_ in counting),
            directory,
            contents.is_under_way,
            contents.redaction,
        )


def _overview(contents: ReportContents, tasks: Mapping[str, State]) -> tuple[dict[str, Any], dict[str, Any]]:
    known = {id_: each for task in tasks.values() for id_, each in task["attempts"].items()}
    index = index_of(
        contents.table,
        contents.results,
        title=contents.name,
        roots=contents.roots,
        under_way=bool(contents.under_way),
        cells={id_: each["cells"] for id_, each in known.items()},
        case_failures={id_: dict(each["failures"]) for id_, each in known.items()},
        only=contents.only,
        tasks=contents.counted,
        problems=_problems(tasks),
    )
    index = {**contents.redaction.values(index), "directories": contents.redaction.roots}
    return index, contents.redaction.values(comparisons_of(contents.table))


def _beside(
    contents: ReportContents, index: Mapping[str, Any], comparisons: Mapping[str, Any], tasks: Mapping[str, State]
) -> Iterator[tuple[str, bytes]]:
    """Yield the names and contents of the files for other programs."""
    board = leaderboard(contents.table, with_intervals=True)
    failed = [each for task in tasks.values() for each in task["requirements"]]
    failed.sort(key=lambda each: (-each["failed"] / each["of"], -each["failed"], each["task"], each["requirement"]))
    yield "summary.json", summary_json(contents.table, board, index, failed, contents.redaction)
    yield "summary.md", summary_markdown(board, index, failed, contents.redaction)
    yield from csv_files(contents.table, board, index, comparisons, contents.redaction)


def overview_stamp(contents: ReportContents, tasks: Mapping[str, State]) -> str:
    """Return a text that changes with whatever index, comparisons, summaries and tables are made from.

    Args:
        contents: What the report shows.
        tasks: What the report knows of its tasks, now that their files are written.
    """
    digest = hashlib.sha256()
    for part in _parts(contents, tasks):
        digest.update(repr(part).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _parts(contents: ReportContents, tasks: Mapping[str, State]) -> Iterator[Any]:
    yield (
        _package_stamp(),
        contents.name,
        sorted(contents.only or ("",)),
        contents.under_way,
        sorted(contents.counted or ("",)),
    )
    yield contents.counted is None, contents.redaction.stamp, contents.results.problems
    table = contents.table
    yield table.superseded, table.any_version, sorted(table.facts.items())
    for row in table.rows:
        yield row_id(row), row.name, row.missing, sorted(row.missing_parts.items()), sorted(row.declared.items())
        for each in (*row.attempts, *row.beside):
            yield str(each.path), each.record.agent, each.record.attempt, each.selected, each.finished
    for attempt in contents.results.attempts:
        yield str(attempt.path), attempt.run, attempt.selected, attempt.finished, *_files(attempt)
    for run in contents.results.runs:
        yield _file(run.path)
    for id_, task in tasks.items():
        yield id_, task["requirements"]
        for of_attempt, known in task["attempts"].items():
            yield of_attempt, known["cells"], known["failures"], known["problems"]


def _files(attempt: StoredAttempt) -> Iterator[Any]:
    yield _file(attempt.path / PROCESS_FILE)
    if attempt.layout == "evocode" and attempt.finished:
        yield _file(attempt.path / "result.json")
    else:
        # Whatever it consists of; others keep their rewards, cases and trajectories in many files.
        yield stamp(attempt.path), attempt.record.facts


def _file(path: Path) -> tuple[str, int, int, int] | None:
    try:
        status = os.stat(path)
    except OSError:
        return None
    return str(path), status.st_size, status.st_mtime_ns, status.st_ino


@cache
def _package_stamp() -> str:
    """Return what changes with any of our code: the numbers come from all of it."""
    return stamp(Path(__file__).parents[2])


def rewrite(order: Mapping[str, Any]) -> None:
    """Write a report as a session orders it.

    Args:
        order: ``results`` and ``out`` are directories, ``under_way`` is the name of the run that is still being made,
            or empty, and ``tasks`` has the directories of tasks by name.

    Raises:
        UsageError: The report cannot be written.
    """
    roots = [Path(order["results"])]
    results = load_results(roots)
    named = {name: Path(place) for name, place in order["tasks"].items()}
    write_report(
        Path(order["out"]),
        ReportContents(
            results=with_foreign_cases(results, roots),
            table=score_table(results),
            roots=roots,
            under_way=order["under_way"],
            tasks={**found_tasks(results, None), **named},
        ),
    )


def main() -> None:
    """Read an order from standard input and do it; what went wrong is the last line of standard error."""
    order = json.load(sys.stdin)
    if order["under_way"]:
        os.nice(10)  # Rounds come first.
    try:
        rewrite(order)
    except EvocodeError as error:
        sys.exit(printable(str(error)))
