"""Charts: axes that tell numbers apart, and all of a chart on a telephone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import PLACES, file_base
from tests.report.html.sample import sample_report, write_sample

pytestmark = pytest.mark.turns(2)

#: Charts, and their texts, of which a part is outside of the window or of what they are scrolled in.
_CUT = """() => [...document.querySelectorAll(".chart svg, .chart svg text")].filter(each => {
    const {left, right, width} = each.getBoundingClientRect();
    if (!width) return false;  // What is folded.
    const around = each.closest(".chart, .wide").getBoundingClientRect();
    return left < Math.max(0, around.left) - 1 || right > Math.min(innerWidth, around.right) + 1;
}).map(each => each.textContent || each.outerHTML.slice(0, 100))"""
#: Each axis' ticks: those beside it, which end at its left, and those below.
_TICKS = """() => [...document.querySelectorAll(".chart .axes")].map(axes => {
    const texts = [...axes.querySelectorAll("text:not([transform])")].slice(0, -1);
    const sides = ["end", null].map(side => texts.filter(each => each.getAttribute("text-anchor") === side));
    return sides.map(each => each.map(text => text.textContent));
})"""
_TOUCHING = """() => [...document.querySelectorAll(".chart .axes")].filter(axes => {
    const below = [...axes.querySelectorAll("text:not([transform]):not([text-anchor])")].slice(0, -1);
    const places = below.map(each => each.getBoundingClientRect());
    return places.some((each, at) => at && each.left < places[at - 1].right);
}).length"""


def test_on_a_telephone_no_chart_is_cut_off(view: Open) -> None:
    viewer = view(viewport={"width": 390, "height": 844})
    viewer.open()
    cut: dict[str, Any] = {}
    drawn = 0
    for place in [*(each.hash for each in PLACES), "#/round/t0-ledger-0-1/2?tab=time"]:
        page = viewer.go(place)
        drawn += page.locator(".chart svg").count()
        assert page.evaluate(_TOUCHING) == 0, place
        if found := page.evaluate(_CUT):
            cut[place] = found
    assert cut == {}
    assert drawn > 3


def test_the_ticks_of_an_axis_differ_and_do_not_touch(view: Open, tmp_path: Path) -> None:
    values = sample_report()
    for at, point in enumerate(each for chart in values["index"]["pareto"][:1] for each in chart["points"]):
        point |= {"x": 1_000_000 + at, "y": 99.995 + at / 1000}  # Equal, but for the last digits.
    write_sample(tmp_path / "close", values)
    seen = []
    for viewer in (view(), view(base=file_base(tmp_path / "close"))):
        page = viewer.open("#/overview")
        page.locator(".chart .axes").first.wait_for()
        seen.append(page.evaluate(_TICKS))
        assert page.evaluate(_TOUCHING) == 0
    assert seen[0] != seen[1]
    for axis in (axis for report in seen for chart in report for axis in chart):
        assert axis
        assert len(set(axis)) == len(axis), axis


def test_the_chart_of_spending_says_how_sure_a_place_on_the_front_is(view: Open) -> None:
    page = view().open("#/overview")
    chart = page.locator(".chart", has=page.locator(".point")).first
    chart.locator("summary").click()
    cells = chart.locator("tbody tr td:last-child")
    expect(cells.first).to_be_visible()  # The table is made when it is unfolded.
    last = cells.all_inner_texts()
    assert {*last} == {"yes, on the front (98 %)"}
    assert ", on the front (98 %)" in (chart.locator(".point.marked title").first.text_content() or "")


def test_titles_name_the_environment(view: Open) -> None:
    viewer = view()
    page = viewer.open("#/attempt/t0-ledger-0-1")
    named = page.locator("h1").inner_text()
    assert named.endswith(", in docker")
    assert page.title().startswith(f"{named} · ledger")
    for place in ("round", "trajectory"):
        viewer.go(f"#/{place}/t0-ledger-0-1/2")
        assert f" · {named} · ledger" in page.title()
    viewer.go("#/run/run-1")
    assert page.locator("h1").inner_text().endswith(", in docker")
