"""How people go through a report: by clicks, by keys, by search, back, and by addresses that they sent each other."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import Viewer, file_base

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.turns(3)

ROUND = "#/round/t0-ledger-0-1/8"
TRAJECTORY = "#/trajectory/t0-ledger-0-1/2"


def anew(viewer: Viewer) -> Page:
    """The address that is shown, opened by somebody in whose browser there is nothing of the report."""
    place = viewer.place()
    viewer.problems = viewer.leave()
    return viewer.open(place)


def test_clicks_lead_from_the_overview_to_a_step_and_the_back_button_back(view: Open) -> None:
    viewer = view()
    page = viewer.open()
    page.get_by_role("link", name="ledger", exact=True).first.click()
    page.get_by_role("heading", level=1, name="ledger").wait_for()
    page.locator("a[href^='#/attempt/t0-ledger-0-1']").first.click()
    page.locator("a[href='#/round/t0-ledger-0-1/8']").first.click()
    page.get_by_role("heading", level=1, name="round-8").wait_for()
    page.get_by_role("link", name=re.compile("^Trajectory")).first.click()
    page.get_by_role("heading", name="Agent, step 4").wait_for()
    for heading in ("round-8", "attempt 1", "ledger", "Seven example tasks"):
        page.go_back()
        page.get_by_role("heading", level=1, name=heading).wait_for()
    page.go_forward()
    page.get_by_role("heading", level=1, name="ledger").wait_for()


def test_the_focus_goes_to_the_heading_of_a_new_page(view: Open) -> None:
    page = view().open()
    page.get_by_role("navigation", name="Pages").get_by_role("link", name="Compare").click()
    page.get_by_role("heading", level=1, name="Compare").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "Compare"


def test_back_returns_to_where_one_had_scrolled_to(view: Open) -> None:
    viewer = view(viewport={"width": 800, "height": 300})
    page = viewer.open()
    page.evaluate("window.scrollTo(0, 400)")
    page.evaluate("location.hash = '#/compare'")
    page.get_by_role("heading", level=1, name="Compare").wait_for()
    assert page.evaluate("scrollY") == 0
    page.go_back()
    page.get_by_role("heading", level=1, name="Seven example tasks").wait_for()
    page.wait_for_function("() => Math.abs(scrollY - 400) < 3")


def test_a_tab_is_a_part_of_the_address(view: Open) -> None:
    viewer = view()
    viewer.open(ROUND).get_by_role("tab", name="Output").click()
    assert "tab=output" in viewer.place()
    other = anew(viewer)
    assert other.get_by_role("tab", selected=True).inner_text() == "Output"
    other.get_by_text("test session starts").first.wait_for()


def test_the_orders_of_tables_are_their_own_and_a_part_of_the_address(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/overview")
    first, second = (page.locator("table.sorted:visible").nth(place) for place in (0, 1))
    first.get_by_role("button", name="Cost").first.click()
    assert "?sort-" in viewer.place()
    second.locator("th button").last.click()
    first.get_by_role("button", name="Cost").first.click()
    assert viewer.place().count("sort-") == 2
    orders = [table.locator("tbody tr").all_inner_texts() for table in (first, second)]
    directions = [table.locator("th[aria-sort]").get_attribute("aria-sort") for table in (first, second)]
    other = anew(viewer)
    tables = [other.locator("table.sorted:visible").nth(place) for place in (0, 1)]
    assert tables[0].locator("th[aria-sort]").inner_text().startswith("Cost")
    assert [table.locator("tbody tr").all_inner_texts() for table in tables] == orders
    assert [table.locator("th[aria-sort]").get_attribute("aria-sort") for table in tables] == directions


@pytest.mark.nightly
def test_a_search_goes_through_a_whole_trajectory_and_is_a_part_of_the_address(view: Open) -> None:
    viewer = view()
    page = viewer.open(TRAJECTORY)
    page.keyboard.press("/")
    page.keyboard.type("Skip cancelled")
    page.keyboard.press("Enter")
    page.get_by_text(re.compile(r"1 of \d+ hits$")).wait_for()
    assert "q=Skip" in viewer.place()
    # The trajectory has two parts, and hits in both.
    assert page.get_by_role("button", name=re.compile("^35 ")).count() > 0
    page.keyboard.press("Escape")
    page.keyboard.press("n")
    page.get_by_text(re.compile(r"2 of \d+ hits$")).wait_for()
    other = anew(viewer)
    other.get_by_text(re.compile(r"\d+ hits$")).wait_for()


@pytest.mark.nightly
@pytest.mark.parametrize("step", [3, 33, 40])
def test_an_address_of_a_step_shows_it(view: Open, step: int) -> None:
    page = view().open(f"{TRAJECTORY}?step={step}")
    link = page.locator("a[aria-current=step]")
    link.wait_for()
    assert link.inner_text() == ("User" if step == 2 else "Agent") + f", step {step}"
    page.wait_for_function(
        "() => document.querySelector('a[aria-current=step]').getBoundingClientRect().top < innerHeight"
    )


@pytest.mark.nightly  # By day tabs and orders are, above.
def test_the_rows_that_are_compared_are_a_part_of_the_address(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/compare")
    before = _differences(page).first.inner_text()
    page.get_by_role("button", name="Swap").click()
    page.wait_for_function("() => location.hash.includes('first=row-1')")
    page.get_by_role("heading", name="Differences").wait_for()
    swapped = _differences(page).first.inner_text()
    assert _numbers(swapped)[:2] == _numbers(before)[:2][::-1]
    assert _numbers(swapped)[2] == -_numbers(before)[2]
    other = anew(viewer)
    assert other.locator(".compare-rows select").first.input_value() == "row-1"
    assert _differences(other).first.inner_text() == swapped


def _differences(page: Page) -> Locator:
    return page.get_by_role("table", name="paired by task").locator("tbody tr")


def _numbers(row: str) -> list[float]:
    return [float(each.replace("\u2212", "-")) for each in re.findall(r"[+\u2212]?\d+\.\d+", row)]


def test_rows_of_different_rankings_are_not_compared_and_the_page_says_why(view: Open) -> None:
    page = view().open("#/compare?first=row-0&second=row-2")
    page.get_by_text("are of different rankings").wait_for()
    assert page.get_by_role("heading", name="Differences").count() == 0
    page.get_by_role("heading", name="Side by side").wait_for()


def test_a_flip_leads_to_both_sides_of_the_round(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/compare")
    page.get_by_role("link", name="Round 5 of ledger, side by side").click()
    page.wait_for_function("() => location.hash.includes('round=5')")
    page.wait_for_function("() => document.querySelectorAll('.beside h3').length >= 2")
    assert page.locator(".beside a[href*='/5']").count() >= 2


def test_evidence_of_a_pillar_leads_to_the_step(view: Open) -> None:
    page = view().open("#/process?row=row-0&pillar=vc")
    page.get_by_role("link", name="Step 4").first.click()
    assert page.locator("a[aria-current=step]").inner_text() == "Agent, step 4"


def test_keys_are_listed_and_go_to_pages(view: Open) -> None:
    viewer = view()
    page = viewer.open()
    page.keyboard.press("?")
    page.get_by_role("dialog").get_by_text("Search or filter this page").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="detached")
    before = viewer.place()
    # The second key counts for three seconds after the first, and a busy machine may take longer once.
    for _ in range(5):
        page.keyboard.press("g")
        page.keyboard.press("p")
        if viewer.place() != before:
            break
    page.get_by_role("heading", level=1, name="Process").wait_for()


def test_keys_go_through_rows_and_open_one(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/attempt/t0-ledger-0-1")
    page.locator("table[data-rows]").first.wait_for()
    for key in "jjk":
        page.keyboard.press(key)
    page.keyboard.press("Enter")
    page.get_by_role("heading", level=1, name="round-1").wait_for()


def test_arrows_go_through_a_grid_and_enter_opens_the_round(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/attempt/t0-ledger-0-1")
    grid = page.get_by_role("grid").first
    grid.locator("[tabindex='0']").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_function("() => location.hash.startsWith('#/round/t0-ledger-0-1/')")


def test_a_theme_stays_when_the_page_is_opened_again(view: Open) -> None:
    viewer = view(color_scheme="light")
    page = viewer.open()
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.get_by_label("Theme").select_option(label="Dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert dark != light
    page = viewer.open()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == dark


def test_a_file_that_is_missing_or_damaged_is_named_in_its_place(
    view: Open, folders: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = tmp_path / "report"
    shutil.copytree(folders("plain"), folder)
    (folder / "data/attempts/t0-ledger-0-1.js").unlink()
    (folder / "data/attempts/t0-ledger-1-1.js").write_text('evocode.receive("attempts/t0-ledger-1-1", "AAAA");')
    viewer = view(base=file_base(folder))
    for number, word in ((0, "missing"), (1, "damaged")):
        page = viewer.open(f"#/attempt/t0-ledger-{number}-1")
        alert = page.get_by_role("alert").inner_text()
        assert f"data/attempts/t0-ledger-{number}-1.js" in alert
        assert word in alert
    # The browser says it too.
    viewer.problems = [each for each in viewer.problems if "t0-ledger" not in each and "ERR_FILE" not in each]
