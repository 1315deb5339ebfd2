"""A session in Markdown, as GitHub shows it below a job: scores, the grid of rounds, and what did not pass."""

from __future__ import annotations

import html
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path

from pytest_evocode.metrics.intervals import Interval
from pytest_evocode.metrics.scores import Scores
from pytest_evocode.metrics.spending import Spending
from pytest_evocode.names import attempt_name
from pytest_evocode.report.benchmark import grid_rows
from pytest_evocode.report.failed_round import describe_failure
from pytest_evocode.report.scores import score_rows
from pytest_evocode.results.records import RoundRecord

#: Bytes of the rounds that did not pass; GitHub shows nothing at all of more than a MiB in one step.
_MOST = 400_000
_MARKS = {".": "✅", "F": "❌", "E": "⚠️"}
_LEGEND = "✅ passed, ❌ failed, ⚠️ error, - not reached"


def summary(
    records: Sequence[RoundRecord],
    scores: Mapping[str, Scores],
    spent: Mapping[str, Spending],
    intervals: Mapping[str, Interval | None],
    *,
    about: Sequence[str],
    output_of: Callable[[RoundRecord], Path],
) -> str:
    """The whole of it; scores, spending and intervals by agent, ``about`` the lines that say which session it was."""
    (head, *rows) = grid_rows(records)
    marks = [(name, *(_MARKS.get(cell, cell) for cell in cells)) for name, *cells in rows]
    parts = [
        "## Benchmark",
        "  \n".join(map(_plain, about)),
        table(score_rows(scores, spent, intervals)),
        table([head, *marks]),
        _LEGEND,
        *_not_passed(records, output_of),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def table(rows: Sequence[Sequence[str]]) -> str:
    """A table with its first row as the head, and all columns but the first to the right.

    >>> print(table([("agent", "score"), ("a|b", "9.5")]))
    | agent | score |
    | :-- | --: |
    | a\\|b | 9.5 |
    """
    head, *rest = rows
    align = [":--", *("--:" for _ in head[1:])]
    return "\n".join(f"| {' | '.join(map(_plain, row))} |" for row in (head, align, *rest))


def _not_passed(records: Sequence[RoundRecord], output_of: Callable[[RoundRecord], Path]) -> Iterator[str]:
    """What failed and what broke down, each to be unfolded, as far as there is room."""
    found = [record for record in records if record.outcome in ("failed", "error")]
    room, left = _MOST, 0
    for record in sorted(found, key=lambda record: record.outcome != "error"):
        text = describe_failure(record, output_of(record)) if record.outcome == "failed" else record.cause
        part = _folded(f"{record.task} {attempt_name(record.agent, record.attempt)}", record, text)
        room -= len(part.encode(errors="replace"))
        if room < 0:
            left += 1
        else:
            yield part
    if left:
        yield f"And {left} more that did not pass, for which there is no room."


def _folded(name: str, record: RoundRecord, text: str) -> str:
    first = text.partition("\n")[0]
    first = first if record.outcome == "failed" else f"{record.round} error: {first}"
    # Longer than every fence that the text has.
    fence = "`" * max(3, *(len(run) + 1 for run in re.findall("`+", text)), 3)
    title = html.escape(f"{name} {first[:300]}")
    return f"<details><summary>{title}</summary>\n\n{fence}text\n{text}\n{fence}\n\n</details>"


def _plain(text: str) -> str:
    r"""A text that Markdown takes for nothing else.

    >>> print(_plain("a|b *c* <d>"))
    a\|b \*c\* &lt;d&gt;
    """
    return re.sub(r"([\\|*_`\[\]~#])", r"\\\1", html.escape(" ".join(text.split()), quote=False)) if text else " "
