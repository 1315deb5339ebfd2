"""Tasks and runs: lives of requirements and cases, what a round asks for, and how a run was started."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from pytest_evocode.report.html.task import written
from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import file_base
from tests.report.html.sample import sample_report, write_sample

pytestmark = pytest.mark.turns(3)


def test_the_heatmap_leads_to_rounds(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/task/t0-ledger")
    grid = page.get_by_role("grid", name="Outcome of each round")
    grid.get_by_role("link", name="round 4").first.click()
    viewer.ready()
    assert viewer.place().startswith("#/round/t0-ledger-0-1/4")


def test_a_requirement_says_when_it_broke_and_was_repaired(view: Open) -> None:
    page = view().open("#/task/t0-ledger?attempt=t0-ledger-0-1")
    lives = page.get_by_role("table", name="Life spans of requirements over the rounds")
    expect(lives.get_by_role("row").filter(has_text="R3")).to_contain_text("broken in 4; repaired in 5")
    expect(lives.get_by_role("row").filter(has_text="R1")).to_contain_text("always met")


def test_a_case_is_found_and_goes_through_all_attempts(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/task/t0-ledger")
    page.get_by_label("Find cases").fill("rule_3_b")
    cases = page.get_by_role("table", name="Cases over the rounds")
    expect(cases.get_by_role("row")).to_have_count(2)
    cases.get_by_role("link", name="test_rule_3_b").click()
    case = page.get_by_role("region", name="Case")
    expect(case).to_contain_text("claude-code #1")
    expect(case).to_contain_text("codex #1")
    assert "case=test_rule_3_b" in viewer.place()


def test_instructions_are_read_round_by_round(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/task/t0-ledger")
    page.get_by_role("region", name="Round 1").get_by_role("button", name="Next").click()
    second = page.get_by_role("region", name="Round 2")
    expect(second).to_contain_text("Introduces R2")
    expect(second).to_contain_text("Active suite: 6 cases")
    assert "round=2" in viewer.place()


def test_a_task_that_is_gone_says_so(view: Open) -> None:
    page = view().open("#/task/t3-retention")
    expect(page.get_by_text("The task's files are not where they were", exact=False)).to_be_visible()
    expect(page.get_by_text("The instructions are not there", exact=False)).to_be_visible()


def test_an_unknown_task_and_run_lead_to_those_there_are(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/task/none")
    expect(page.get_by_text("This report has no such task.")).to_be_visible()
    page = viewer.open("#/run/none")
    expect(page.get_by_text("This report has no such run.")).to_be_visible()


def test_the_list_of_tasks_leads_to_each(view: Open) -> None:
    page = view().open("#/task")
    page.get_by_role("link", name="recipes").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("recipes")


def test_a_run_says_how_it_was_started_and_how_to_continue(view: Open) -> None:
    page = view().open("#/runs")
    page.get_by_role("table", name="Runs of this report").get_by_role("link", name="2026-11-20 claude-code").click()
    expect(page.get_by_text("pytest --evocode-agent=claude-code -n 4 tasks/")).to_be_visible()
    expect(page.get_by_text("pytest --evocode-resume=run-0")).to_be_visible()
    expect(page.get_by_role("button", name="Copy: Continue it")).to_be_visible()
    expect(page.get_by_role("table", name="Time by phase").last).to_contain_text("agent")


def test_a_run_shows_what_it_waited_for_and_when_its_turns_and_suites_were(view: Open) -> None:
    page = view().open("#/run/run-0")
    stages = page.get_by_role("table", name="Critical path by stage")
    expect(stages).to_contain_text("the agent's turn")
    expect(stages).to_contain_text("66.7 %")
    waited = page.locator("section", has=page.get_by_role("heading", name="What it waited for"))
    expect(waited.locator("figure svg rect")).not_to_have_count(0)
    waited.locator("figure").get_by_role("link").first.click()
    expect(page).to_have_url(re.compile("#/attempt/"))


def test_a_run_says_what_it_was_made_with_and_what_to_be_careful_about(view: Open) -> None:
    page = view().open("#/run/run-1")
    versions = page.locator("section", has=page.get_by_role("heading", name="Versions"))
    expect(versions).to_contain_text("28.1")
    warnings = page.locator("section", has=page.get_by_role("heading", name="Warnings"))
    expect(warnings).to_contain_text("the suite of round 3 has no cases of its own")


def test_instructions_are_written_out_and_lead_nowhere_by_themselves(view: Open, tmp_path: Path) -> None:
    values = sample_report()
    text = (
        "# Head\n\n<script>window.PWNED = 1</script> <img src='https://example.org/x.png'>\n\n"
        "![cat](https://example.org/cat.png) [bad](javascript:window.PWNED=1) [good](https://example.org/)\n"
    )
    values["tasks/t0-ledger"]["rounds"][0] |= {"instruction": text, "written": written(text)}
    forged = {"tag": "script", "href": "", "children": ["window.PWNED = 1"]}
    values["tasks/t0-ledger"]["rounds"][0]["written"] += [
        forged,
        {"tag": "a", "href": "javascript:window.PWNED=1", "children": ["forged"]},
    ]
    write_sample(tmp_path / "report", values)
    page = view(base=file_base(tmp_path / "report")).open("#/task/t0-ledger")
    shown = page.locator(".written")
    expect(shown.get_by_role("heading", name="Head")).to_be_visible()
    assert shown.locator("script, img, iframe").count() == 0
    (link,) = shown.get_by_role("link").all()
    assert link.inner_text() == "good"
    assert {name: link.get_attribute(name) for name in ("href", "rel")} == {
        "href": "https://example.org/",
        "rel": "noreferrer nofollow",
    }
    assert "<script>window.PWNED = 1</script>" in shown.inner_text()
    page.get_by_text("As it is written").click()
    assert text.strip() in page.locator("details[open] pre").first.inner_text()
