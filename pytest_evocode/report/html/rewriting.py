"""A process of its own that writes the report of a session's results, so that the session is not held up."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pytest_evocode.errors import EvocodeError
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.html.contents import ReportContents, found_tasks, with_foreign_cases
from pytest_evocode.report.html.writing import write_report
from pytest_evocode.report.printable import printable
from pytest_evocode.results.loading import load_results


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
