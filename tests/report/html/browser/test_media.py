"""Pages on paper, and in the colours that somebody needs."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from tests.report.html.browser.conftest import Open

pytestmark = pytest.mark.turns(3)

#: The height of what is on the page, and of the lists and grids in it that would scroll.
_CUT = """() => [...document.querySelectorAll(".cells, .virtual, .table-long")]
    .filter(each => each.scrollHeight > each.clientHeight + 1).map(each => each.className)"""
_LOOK = """(selector) => {
    const {borderTopWidth, borderTopStyle, fill} = getComputedStyle(document.querySelector(selector));
    return [borderTopWidth, borderTopStyle, fill];
}"""


def test_paper_has_the_content_in_dark_ink_and_nothing_to_click(view: Open) -> None:
    viewer = view(color_scheme="dark")
    page = viewer.open("#/trajectory/t0-ledger-0-1/2")
    page.get_by_role("link", name="Agent, step 4", exact=True).wait_for()
    page.emulate_media(media="print")
    for hidden in ("header.top", "footer", ".trajectory-bar button"):
        expect(page.locator(hidden).first).to_be_hidden()
    expect(page.get_by_role("link", name="Agent, step 4", exact=True)).to_be_visible()
    assert page.evaluate(_CUT) == []
    assert page.evaluate("getComputedStyle(document.body).color") == "rgb(27, 31, 38)"
    viewer.go("#/task/t0-ledger")
    expect(page.get_by_role("grid", name="Outcome of each round")).to_be_visible()
    expect(page.locator(".controls").first).to_be_hidden()
    assert page.evaluate(_CUT) == []


@pytest.mark.nightly  # By day axe looks at light and dark.
def test_forced_colours_leave_borders_letters_and_charts(view: Open) -> None:
    viewer = view(forced_colors="active")
    page = viewer.open("#/task/t0-ledger")
    page.locator(".cell.state-p").first.wait_for()
    assert page.evaluate(_LOOK, ".cell.state-p")[:2] == ["1px", "solid"]
    expect(page.get_by_role("link", name="failed, with a regression").first).to_have_text("R")
    viewer.go("#/overview")
    page.locator(".bar-value").first.wait_for()
    assert page.evaluate(_LOOK, ".bar-value")[2] != page.evaluate(_LOOK, ".bar-track")[2]
