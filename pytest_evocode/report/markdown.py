"""The summary of a session in Markdown, which GitHub shows below a job."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_evocode.metrics.faults import Faults
from pytest_evocode.metrics.flaky import FlakyRound
from pytest_evocode.metrics.grid import by_agent, scored
from pytest_evocode.metrics.intervals import Interval
from pytest_evocode.metrics.score_table import apart_in
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.metrics.spending import Spending
from pytest_evocode.names import attempt_name
from pytest_evocode.report.benchmark import grid_rows
from pytest_evocode.report.printable import printable
from pytest_evocode.report.score_lines import apart_lines, flaky_lines, interval_lines, notes_below, scores_table
from pytest_evocode.report.tables import markdown_table, plain
from pytest_evocode.report.views import shown_cells
from pytest_evocode.results.records import RoundRecord

#: Bytes that rounds which did not pass may take; GitHub shows nothing of a step that writes more than a MiB.
_MOST_BYTES = 400_000
_MARKS = {".": "✅", "F": "❌", "E": "⚠️"}
_LEGEND = "✅ passed, ❌ failed, ⚠️ error, - not reached"


def session_summary(
    records: Sequence[RoundRecord],
    scores: Mapping[str, Scores],
    spent: Mapping[str, Spending],
    intervals: Mapping[str, Mapping[str, Interval | str]],
    faults: Mapping[str, Faults | None],
    *,
    about: Sequence[str],
    flaky: Sequence[FlakyRound] = (),
    describe: Callable[[RoundRecord], str],
) -> str:
    """Return the scores, the grid of rounds, and a section to unfold for each round that did not pass.

    Args:
        records: The records of all rounds.
        scores: The scores by agent.
        spent: The tokens and costs by agent.
        intervals: 95 % intervals, or why there is none, by agent and score.
        faults: What infrastructure errors did by agent.
        about: Lines that tell the run, its environment and its mode.
        flaky: The rounds whose verdict differs although nothing else does.
        describe: Returns what is to be said of a round that failed.
    """
    (head, *rows) = grid_rows(records)
    notes = notes_below(scores, by_agent(records), scored(records), faults)
    marks = [(name, *(_MARKS.get(cell, cell) for cell in cells)) for name, *cells in rows]
    parts = [
        "## Benchmark",
        "  \n".join(map(plain, about)),
        markdown_table(shown_cells(scores_table(scores, spent, intervals, faults=faults))) if scores else "",
        "  \n".join(map(plain, [*apart_lines(apart_in(records)), *interval_lines(intervals), *notes])),
        markdown_table([head, *marks]),
        _LEGEND,
        "  \n".join(map(plain, flaky_lines(flaky))),
        *_not_passed(records, describe),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _not_passed(records: Sequence[RoundRecord], describe: Callable[[RoundRecord], str]) -> Iterator[str]:
    """Yield a section to unfold for each error and each failed round, errors first, up to ``_MOST_BYTES``."""
    found = [record for record in records if record.outcome in ("failed", "error")]
    free, omitted = _MOST_BYTES, 0
    for record in sorted(found, key=lambda record: record.outcome != "error"):
        if free < 0:
            omitted += 1
            continue
        text = describe(record) if record.outcome == "failed" else record.cause
        text = printable(text)
        part = _folded(f"{record.task} {attempt_name(record.agent, record.attempt)}", record, text)
        free -= len(part.encode(errors="replace"))
        if free < 0:
            omitted += 1
        else:
            yield part
    if omitted:
        yield f"And {omitted} more that did not pass, left out because of the size that GitHub allows."


def _folded(name: str, record: RoundRecord, text: str) -> str:
    first = text.partition("\n")[0]
    first = first if record.outcome == "failed" else f"{record.round} error: {first}"
    # Longer than every fence that the text has.
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    title = html.escape(f"{name} {first[:300]}")
    return f"<details><summary>{title}</summary>\n\n{fence}text\n{text}\n{fence}\n\n</details>"
