"""The analyses of the rows of a table, and of their agents together."""

from __future__ import annotations

from pytest_evocode.metrics.analyses import Share, analyse, pool
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.report.analyses import analyses_json, analyses_view
from pytest_evocode.report.views import printed
from pytest_evocode.results.records import Mode


def empty_row(agent: str, mode: Mode = "chain", version: int = 0, attempts: int = 1) -> ScoreRow:
    """A row of an agent that left nothing at a task of two rounds."""
    missing = tuple(("t", number) for number in range(1, attempts + 1))
    return ScoreRow(agent, mode, None, (), missing, {}, {"t": ("r1", "r2")}, version=version)


def test_agents_are_together_by_mode_and_only_at_the_newest_contents_of_tasks() -> None:
    rows = (empty_row("a"), empty_row("a", version=1), empty_row("b"), empty_row("b", "fail-stop"))
    (together,) = pool(analyse(ScoreTable(rows, {}, superseded=0)))
    assert (together.name, together.pass_rates) == ("all agents", {1: Share(0, 2), 2: Share(0, 2)})


def test_attempts_that_left_nothing_have_numbers_and_break_no_table() -> None:
    found = analyse(ScoreTable((empty_row("a", attempts=3),), {}, superseded=0))
    assert [(each.k, each.pass_at_k, each.pass_hat_k) for each in found[0].pass_at_k["task"]] == [
        (1, 0.0, 0.0),
        (2, 0.0, 0.0),
        (3, 0.0, 0.0),
    ]
    assert (found[0].scores.reliability, found[0].scores.reliability_tasks) == (None, 1)
    assert analyses_json(found)["rows"][0]["token_ratios"]["generated"] == {"overall": None, "by_round": {}}
    assert ["a", "n/a", "n/a", "1/1"] in [line.split() for line in printed(analyses_view(found), "text").splitlines()]


def test_no_rows_are_tables_without_rows() -> None:
    assert analyses_json([]) == {"rows": [], "pooled": []}
    assert printed(analyses_view([]), "text").splitlines()[1].split()[:2] == ["agent", "k"]
