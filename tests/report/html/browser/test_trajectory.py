"""The page of a trajectory: landing on a step, search, jumps, and what is shown."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import file_base
from tests.report.html.sample import sample_report, write_sample

pytestmark = pytest.mark.turns(3)

#: 40 steps in two parts; the second begins with step 26.
PLACE = "#/trajectory/t0-ledger-0-1/2"


def selected(page: Page) -> str:
    page.locator(".step.selected").wait_for()
    return page.locator(".step.selected h2").inner_text()


def search(page: Page, words: str) -> str:
    """Search, and return what is said once all was searched."""
    page.keyboard.press("/")
    page.keyboard.type(words)
    page.keyboard.press("Enter")
    status = page.locator(".step-search [role=status]")
    expect(status).to_contain_text("hit")
    expect(status).not_to_contain_text("% searched")
    return status.inner_text()


def test_an_address_lands_on_its_step_in_a_later_part_or_says_that_it_is_not_there(view: Open) -> None:
    viewer = view()
    page = viewer.open(f"{PLACE}?step=38")
    assert selected(page) == "Agent, step 38"
    expect(page.locator(".step.selected")).to_be_in_viewport()
    viewer.go(f"{PLACE}?step=4000").get_by_text("Step 4000 was not found in this round.").wait_for()


def test_a_step_has_an_address(view: Open) -> None:
    viewer = view()
    page = viewer.open(PLACE)
    page.get_by_role("link", name="Agent, step 4", exact=True).click()
    page.locator(".step.selected").wait_for()
    assert "step=4" in viewer.place()
    assert selected(viewer.open(viewer.place())) == "Agent, step 4"


def test_search_goes_through_all_parts_and_counts(view: Open) -> None:
    page = view().open(PLACE)
    assert search(page, "request was repeated twice") == "1 of 1 hit"
    assert selected(page) == "Agent, step 15"
    page.locator(".step.selected mark", has_text="request was repeated twice").wait_for()


def test_a_search_has_an_address_and_goes_to_the_next_and_previous_hit(view: Open) -> None:
    viewer = view()
    page = viewer.open(PLACE)
    said = search(page, "git commit")
    total = int(said.split()[2])
    assert total > 2
    first = selected(page)
    page.locator("h1").click()
    page.keyboard.press("n")
    expect(page.locator(".step-search [role=status]")).to_have_text(f"2 of {total} hits")
    assert selected(page) != first
    page.keyboard.press("N")
    page.keyboard.press("N")
    expect(page.locator(".step-search [role=status]")).to_have_text(f"{total} of {total} hits")
    page.locator("button.hit").first.click()
    assert selected(page) == first
    page = viewer.open(viewer.place())
    expect(page.locator(".step-search [role=status]")).to_contain_text(f"{total} hits")


def test_regular_expressions_are_an_option_and_wrong_ones_are_said(view: Open) -> None:
    page = view().open(PLACE)
    assert search(page, "status 529$").endswith("0 hits")
    page.get_by_label("regular expression").check()
    page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".step-search [role=status]")).to_have_text("1 of 1 hit")
    page.get_by_role("searchbox", name="Search").fill("(")
    page.keyboard.press("Enter")
    expect(page.locator(".step-search [role=status]")).to_contain_text("Unterminated group")


def test_a_regular_expression_that_would_take_forever_is_refused(view: Open) -> None:
    page = view().open(PLACE)
    page.get_by_label("regular expression").check()
    status = page.locator(".step-search [role=status]")
    for endless in ("(a+)+$", "((x|y)b)*$", "(a|a){2,}$"):
        page.get_by_role("searchbox").fill(endless)
        page.keyboard.press("Enter")
        expect(status).to_contain_text("may take forever")
    for quick in ("(foo)+|[+*]{2,}", r"a(\+)*|(b|c)?"):
        page.get_by_role("searchbox").fill(quick)
        page.keyboard.press("Enter")
        expect(status).to_contain_text("hit")


def test_end_goes_to_the_last_step_though_heights_are_guessed(view: Open) -> None:
    page = view().open(PLACE)
    page.locator(".step:not(.pending)").first.wait_for()
    page.get_by_role("list", name="Steps of round 2").focus()
    page.keyboard.press("End")
    expect(page.get_by_role("link", name="Agent, step 40")).to_be_in_viewport()


def test_keys_jump_between_edits_and_test_runs(view: Open) -> None:
    page = view().open(f"{PLACE}?step=3")
    page.locator(".step.selected").wait_for()
    for key, step, sign in (("e", 7, "edit"), ("e", 13, "edit"), ("t", 14, "test"), ("T", 8, "test"), ("E", 7, "edit")):
        page.keyboard.press(key)
        expect(page.locator(".step.selected h2")).to_have_text(f"Agent, step {step}")
        expect(page.locator(".step.selected .step-head .badge", has_text=sign)).to_have_count(1)
    page.keyboard.press("f")
    expect(page.locator(".step.selected h2")).to_have_text("Agent, step 8")


def test_a_jump_that_leads_nowhere_is_said(view: Open) -> None:
    page = view().open(f"{PLACE}?step=38")
    page.locator(".step.selected").wait_for()
    page.keyboard.press("t")
    expect(page.locator(".said")).to_have_text("There is no later test run.")


def test_what_is_shown_is_chosen_and_kept_in_the_address(view: Open) -> None:
    viewer = view()
    page = viewer.open(f"{PLACE}?step=14")
    page.locator(".step.selected .output").wait_for()
    page.get_by_label("Outputs").uncheck()
    expect(page.locator(".step .output")).to_have_count(0)
    page = viewer.open(viewer.place())
    page.locator(".step.selected .argument").wait_for()
    assert page.locator(".step .output").count() == 0
    assert not page.get_by_label("Outputs").is_checked()


def test_copied_context_is_folded_until_it_is_asked_for(view: Open) -> None:
    page = view().open(PLACE)
    text = "You work in a container."
    page.locator(".step.folded").first.wait_for()
    assert page.get_by_text(text).count() == 0
    page.get_by_label("Copied context").check()
    page.get_by_text(text).first.wait_for()


def test_remarks_exit_codes_and_costs_are_shown(view: Open) -> None:
    viewer = view()
    page = viewer.open(f"{PLACE}?step=15")
    page.get_by_text("the request was repeated twice after status 529").first.wait_for()
    step = viewer.go(f"{PLACE}?step=14").locator(".step.selected")
    for text in ("exit 1", "tokens in", "$0.01", "09:00:14"):
        expect(step).to_contain_text(text)


def test_a_part_that_is_missing_is_said_in_its_place(tmp_path: Path, view: Open) -> None:
    write_sample(tmp_path, sample_report(rows=1, tasks=1, rounds=1))
    (tmp_path / "data" / "trajectories" / "t0-ledger-0-1-1-2.js").unlink()
    viewer = view(base=file_base(tmp_path))
    page = viewer.open("#/trajectory/t0-ledger-0-1/1")
    assert search(page, "Step 4:") == "1 of 1 hit"
    steps = page.get_by_role("list", name="Steps of round 1")
    said = steps.get_by_text("t0-ledger-0-1-1-2.js")
    steps.focus()
    page.keyboard.press("End")
    expect(said.last).to_be_in_viewport()
    viewer.open("#/trajectory/t0-ledger-0-1/1?step=38")
    expect(page.get_by_text("Step 38 was not found: it may be in the part that is missing here.")).to_be_visible()
    expect(said.first).to_be_in_viewport()
    missing = ("t0-ledger-0-1-1-2.js", "ERR_FILE_NOT_FOUND")
    viewer.problems = [each for each in viewer.problems if not any(word in each for word in missing)]
