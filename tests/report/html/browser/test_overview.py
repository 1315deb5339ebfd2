"""The overview: rows are ranked, grouped, filtered and marked, and lead to where the numbers come from."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import file_base
from tests.report.html.sample import sample_report, write_sample

pytestmark = pytest.mark.turns(3)


def test_rows_are_ranked_and_charted_only_with_rows_of_their_ranking(view: Open) -> None:
    page = view().open("#/overview")
    ranking = page.get_by_role("table", name="Chain, 30 rounds of 4 tasks")
    expect(ranking.get_by_role("row").nth(1)).to_contain_text("claude-code")
    expect(ranking.get_by_role("row").nth(2)).to_contain_text("codex")
    alone = page.get_by_role("table", name="Rows that can be ranked with no other")
    expect(alone.get_by_role("row").nth(1)).to_contain_text("mini-swe-agent")
    expect(alone.get_by_role("columnheader", name="#")).to_have_count(0)
    chart = page.get_by_role("group", name="Dataset Score against cost")
    expect(chart.get_by_role("link")).to_have_count(2)
    page.get_by_label("Ranking").select_option(label="Fail-stop, 30 rounds of 4 tasks (1 row)")
    expect(chart.get_by_role("link")).to_have_count(1)


def test_marks_are_explained_and_what_was_left_out_is_listed(view: Open) -> None:
    page = view().open("#/overview")
    expect(page.get_by_text("Verdicts that trust the agent's system").last).to_be_visible()
    expect(page.get_by_text("Attempts of which not all rounds were selected").last).to_be_visible()
    expect(page.get_by_text("it is no JSON; the round is left out")).to_be_visible()
    expect(page.get_by_text("#2 at ledger")).to_be_visible()


def test_an_address_with_a_filter_shows_its_rows_with_the_ranks_that_they_have(view: Open) -> None:
    page = view().open("#/overview?q=codex")
    expect(page.get_by_label("Filter agents")).to_have_value("codex")
    rows = page.get_by_role("table", name=re.compile("Rows of which|Chain")).first.get_by_role("row")
    expect(rows).to_have_count(2)
    expect(rows.nth(1)).to_contain_text("codex")
    expect(page.get_by_role("link", name="claude-code")).to_have_count(0)


def test_the_filter_is_in_the_address(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/overview")
    page.get_by_label("Filter agents").fill("mini")
    expect(page.get_by_role("link", name="codex")).to_have_count(0)
    assert "q=mini" in viewer.place()
    page.get_by_label("Mode").select_option("chain")
    expect(page.get_by_text("No row matches the filter.")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("No row matches the filter.")).to_have_count(0)
    expect(page.get_by_label("Mode")).to_have_value("")


def test_the_groups_of_a_dimension_stand_side_by_side_and_lead_to_each(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/overview")
    page.get_by_label("Scores of").select_option("activity")
    groups = page.get_by_role("table", name="Dataset Score by activity")
    expect(groups.get_by_role("row")).to_have_count(4)
    page.get_by_label("Which").focus()
    page.get_by_label("Which").select_option("feature")
    expect(page.get_by_text("Scores over the rounds of activity feature")).to_be_visible()
    expect(page.get_by_text("has no MT@k", exact=False)).to_be_visible()
    expect(page.get_by_label("Which")).to_be_focused()
    assert "group=feature" in viewer.place()


def test_a_row_shows_why_its_rounds_failed_and_what_is_missing(view: Open) -> None:
    page = view().open("#/overview?row=row-1")
    row = page.get_by_role("region", name="Row")
    expect(row.get_by_role("table", name="Failures by kind")).to_contain_text("new miss")
    expect(row).to_contain_text("selected and left nothing")
    row.get_by_role("button", name="Close").click()
    expect(row).to_have_count(0)


def test_a_cell_of_the_grid_leads_to_its_task(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/overview")
    page.get_by_role("table", name="Rounds passed at each task").get_by_role("link", name="5/8").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("ledger")
    assert viewer.place() == "#/task/t0-ledger?attempt=t0-ledger-0-1"


def test_failed_rounds_follow_the_group_and_other_charts_say_that_they_do_not(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/overview?by=task&group=ledger")
    failed = page.locator("figure", has_text="Failed rounds by what went wrong").get_by_role("table").first
    sum_of_row = failed.get_by_role("row").filter(has_text="claude-code").get_by_role("cell").last
    expect(sum_of_row).to_have_text("3")
    assert page.get_by_text("Over all rounds, not only the chosen group.").count() == 3
    viewer.go("#/overview")
    expect(sum_of_row).to_have_text("16")
    assert page.get_by_text("Over all rounds, not only the chosen group.").count() == 0


def test_the_head_counts_the_attempts_that_count(view: Open, tmp_path: Path) -> None:
    values = sample_report(rows=1, tasks=3, rounds=2)
    values["index"]["attempts"][0]["left_out"] = "a newer attempt of its number counts"
    write_sample(tmp_path, values)
    page = view(base=file_base(tmp_path)).open("#/overview")
    expect(page.get_by_text("2 attempts that count (1 more, which do not, are below)")).to_be_visible()
