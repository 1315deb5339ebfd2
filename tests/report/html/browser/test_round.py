"""The pages of an attempt and of a round: why it failed, who broke it, and how to look further."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import file_base
from tests.report.html.sample import sample_report, write_sample

if TYPE_CHECKING:
    from playwright.sync_api import Page

pytestmark = pytest.mark.turns(3)

FAILED = {"status": "failed", "failure": "new miss"}
#: A round of the sample with a new miss, regressions and carried cases.
BROKEN = "#/round/t0-ledger-1-1/6"
PASSED = "#/round/t0-ledger-0-1/2"


def section(page: Page, title: str) -> str:
    return page.locator("section", has=page.get_by_role("heading", name=title)).inner_text()


def test_an_attempt_lists_its_rounds_and_leads_to_them(view: Open) -> None:
    page = view().open("#/attempt/t0-ledger-0-1")
    page.get_by_role("link", name="4 round-4").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Round 4: round-4")


def test_a_verdict_says_what_it_rests_on_and_failing_cases_are_grouped_by_kind_with_what_was_expected(
    view: Open,
) -> None:
    page = view().open(BROKEN)
    assert "The suite ran in the task's image as it was built" in page.locator(".verdict").inner_text()
    for title in ("New misses (1)", "Regressions (2)", "Carried (2)"):
        assert page.get_by_role("heading", name=title).count() == 1
    body = section(page, "New misses (1)")
    for text in ("A booking that is repeated", "three entries", "120.00", "102.00", "AssertionError"):
        assert text in body
    assert page.locator("details.passed").get_attribute("open") is None


def test_passed_cases_unfold(view: Open) -> None:
    page = view().open(PASSED)
    page.get_by_text("Passed (6)").click()
    page.get_by_text("test_rule_1_a").first.wait_for()


def test_who_introduced_a_failure_is_a_link_to_the_step(view: Open) -> None:
    page = view().open(BROKEN)
    page.locator(".introduced a", has_text="step").first.click()
    page.locator(".step.selected").wait_for()
    assert page.locator(".step.selected h2").inner_text() == "Agent, step 6"


def test_a_case_has_an_address(view: Open) -> None:
    viewer = view()
    page = viewer.open(BROKEN)
    last = page.locator("details.case").last
    name = last.locator(".case-id").inner_text()
    last.locator("summary").click()
    expect(page).to_have_url(re.compile(f"case={re.escape(name)}"))
    page = viewer.open(viewer.place())
    expect(page.locator("details.case.selected .case-id")).to_have_text(name)
    assert page.locator("details.case[open]").count() == 1


def test_cases_are_filtered(view: Open) -> None:
    page = view().open(BROKEN)
    page.keyboard.press("/")
    page.keyboard.type("test_rule_6_c")
    expect(page.locator("details.case")).to_have_count(1)
    page.keyboard.type(" no such")
    page.get_by_text("No case has these words.").wait_for()


def test_keys_lead_to_the_rounds_beside_it(view: Open) -> None:
    page = view().open(BROKEN)
    page.keyboard.press(">")
    expect(page.get_by_role("heading", level=1)).to_have_text("Round 7: round-7")
    page.keyboard.press("<")
    expect(page.get_by_role("heading", level=1)).to_have_text("Round 6: round-6")
    page.keyboard.press("t")
    expect(page.get_by_role("heading", level=1)).to_have_text("Trajectory of round 6: round-6")


def test_changed_files_lead_to_the_steps_that_changed_them(view: Open) -> None:
    page = view().open(f"{PASSED}?tab=changes")
    page.get_by_role("tabpanel").get_by_role("link", name="2", exact=True).first.click()
    page.locator(".step.selected", has_text="step 2").wait_for()


def test_the_output_keeps_its_colours_and_is_searched_line_by_line(view: Open) -> None:
    page = view().open(f"{PASSED}?tab=output")
    page.locator(".line .ansi-fg-2").first.wait_for()
    assert "\x1b" not in page.locator("main").inner_text()
    page.get_by_label("Search the output").fill("passed")
    count = int(page.locator(".suite-output [role=status]").inner_text().split()[0])
    assert count > 1
    page.keyboard.press("Enter")
    expect(page.locator(".line.selected")).to_have_count(1)
    assert page.locator(".suite-output [role=status]").inner_text() == f"1 of {count} lines"


def test_values_of_process_lead_to_the_evidence_and_back(view: Open) -> None:
    page = view().open(f"{PASSED}?tab=process")
    page.get_by_text("Planning fidelity").filter(visible=True).first.wait_for()
    page.locator("details.pillar summary").first.click()
    page.get_by_role("link", name="Step 4").first.click()
    page.locator(".step.selected").get_by_role("link", name="Evidence for Planning fidelity, PAC").click()
    expect(page.locator(".measure.selected h3")).to_contain_text("PAC")


def test_commands_run_the_round_again(view: Open) -> None:
    page = view().open(f"{PASSED}?tab=again")
    text = page.locator(".commands").inner_text()
    assert "pytest tasks/ledger/task.toml::" in text
    assert "--evocode-agent=" in text
    page.get_by_role("button", name="Copy").first.click()
    # The button says so for two seconds, and who listens hears it.
    expect(page.locator("#live")).to_have_text("Copied")


def test_a_round_without_a_record_says_where_to_go(view: Open) -> None:
    page = view().open("#/round/t0-ledger-0-1/99")
    page.get_by_text("no record of a round 99").wait_for()


def test_a_round_without_recordings_says_so(view: Open) -> None:
    viewer = view()
    viewer.open("#/round/t0-ledger-2-1/1?tab=changes").get_by_text("was not recorded").wait_for()
    page = viewer.go("#/trajectory/t0-ledger-2-1/1")
    page.get_by_text("No trajectory of this round").wait_for()


def test_of_many_failing_cases_the_first_are_listed_and_the_others_one_click_away(view: Open, tmp_path: Path) -> None:
    values = sample_report(rows=1, tasks=1, rounds=2)
    broken = values["attempts/t0-ledger-0-1"]["rounds"][0]
    broken["cases"] = [broken["cases"][0] | FAILED | {"id": f"test_{number}"} for number in range(40)]
    write_sample(tmp_path, values)
    viewer = view(base=file_base(tmp_path))
    page = viewer.open("#/round/t0-ledger-0-1/1")
    expect(page.locator("details.case")).to_have_count(10)
    expect(page.locator("details.case[open]")).to_have_count(3)
    page.get_by_role("button", name="Show more (30)").click()
    expect(page.locator("details.case")).to_have_count(40)
    # An address of a case that is not among the first shows it all the same.
    viewer.go("#/round/t0-ledger-0-1/1?case=test_33")
    expect(page.locator("details.case.selected .case-id")).to_have_text("test_33")


def test_an_undecided_round_is_called_so_with_its_rewards_and_counts_nowhere(view: Open, tmp_path: Path) -> None:
    values = sample_report(rows=1, tasks=1, rounds=3)
    (attempt,) = values["index"]["attempts"]
    attempt["cells"] = "upp"
    undecided = values["attempts/t0-ledger-0-1"]["rounds"][0]
    undecided |= {"cell": "u", "outcome": "undecided", "reward": None, "rewards": {"tests": 1, "style": 0.5}}
    undecided["cause"] = "reward.json has several rewards"
    write_sample(tmp_path, values)
    viewer = view(base=file_base(tmp_path))
    page = viewer.open("#/round/t0-ledger-0-1/1")
    expect(page.locator(".verdict .outcome b")).to_have_text("· Undecided")
    expect(page.locator(".verdict")).to_contain_text("several rewards")
    assert re.search(r"Reward\s+tests 1, style 0\.5", page.locator(".verdict").inner_text())
    viewer.go("#/task/t0-ledger")
    expect(page.locator("ul.legend").first).to_contain_text("undecided")
    assert page.get_by_role("link", name=re.compile(r"^round 1 .*: undecided")).count() >= 1
    assert page.get_by_text("the first failure").count() == 0
    viewer.go("#/overview")
    expect(page.locator("a.share-link").first).to_contain_text("2/2")


def test_a_failing_case_shows_its_test(view: Open) -> None:
    page = view().open(BROKEN)
    case = page.locator("details.case[open]").first
    expect(case.get_by_text("def test_balance(ledger):")).to_be_visible()
    assert "tests/test_ledger.py:12" in case.inner_text()


def test_the_page_of_an_attempt_says_which_budget_cut_it(view: Open, tmp_path: Path) -> None:
    values = sample_report(rows=1, tasks=1, rounds=2)
    values["attempts/t0-ledger-0-1"]["rounds"][1]["stopped"] = "budget: cost $4 of $4 used"
    write_sample(tmp_path, values)
    page = view(base=file_base(tmp_path)).open("#/attempt/t0-ledger-0-1")
    expect(page.get_by_text("Cut by its budget:")).to_be_visible()
    expect(page.get_by_text("round 2: cost $4 of $4 used")).to_be_visible()
