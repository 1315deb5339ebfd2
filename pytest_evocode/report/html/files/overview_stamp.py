"""What the overview of a report is made from, to know without making it whether another one would come of it."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pytest_evocode.report.html.contents import ReportContents
from pytest_evocode.report.html.files.stamps import stamp
from pytest_evocode.report.html.files.task_files import State
from pytest_evocode.report.html.ids import row_id
from pytest_evocode.report.html.overview.processes import PROCESS_FILE
from pytest_evocode.results.loading import StoredAttempt


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
    yield _package_stamp(), contents.name, contents.run, contents.under_way, sorted(contents.counted or ("",))
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
        for attempt_id, known in task["attempts"].items():
            yield attempt_id, known["cells"], known["failures"], known["problems"]


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
    return stamp(Path(__file__).parents[3])
