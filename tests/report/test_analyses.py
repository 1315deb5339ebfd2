"""The tables of ``evocode analyses`` that other tables are to be compared with."""

from __future__ import annotations

from dataclasses import replace

from pytest_evocode.metrics.scores import Scores, scores
from pytest_evocode.report.analyses import older_table
from pytest_evocode.report.views import View, printed
from pytest_evocode.results.records import RoundRecord

PUBLISHED = """\
| 1 | Claude-Opus-4.7-High | 54.0 | 76.7 | +22.7 | 42.3 | 590.6 | 50.0K |
| 8 | Xiaomi-MiMo-V2.5-Pro | 17.3 | 7.9 | -9.4 | 11.5 | 754.8 | 125.7K |"""


def test_the_older_leaderboard_is_printed_as_it_was_published() -> None:
    record = RoundRecord(task="t", agent="a", attempt=1, round="r", index=1, declared_rounds=1, outcome="passed")
    empty = scores([record])

    def row(*numbers: float) -> Scores:
        names = ("mt_at_k", "sr", "gap", "final_round_completion", "avg_turns", "output_tokens")
        return replace(empty, attempts=4, **dict(zip(names, numbers, strict=True)))  # type: ignore[arg-type]

    table = older_table(
        {
            "Claude-Opus-4.7-High": row(54.0, 76.7, 22.7, 42.3, 590.6, 50_000),
            "Xiaomi-MiMo-V2.5-Pro": row(17.3, 7.9, -9.4, 11.5, 754.8, 125_700),
        }
    )
    text = printed(View([table]), "text", definitions=False)
    _, head, *rows = [line.split() for line in text.splitlines()]
    assert head[2:] == ["MT@k", "SR", "Gap", "Comp", "Avg", "Turns", "Output", "Tok."]
    published = [[cell.strip() for cell in line.strip("|").split("|")] for line in PUBLISHED.splitlines()]
    assert [[name, *cells] for name, _, *cells in rows] == [[name, *cells] for _, name, *cells in published]
