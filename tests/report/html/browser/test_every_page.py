"""Every page opens, from the disk and from a server, for everybody."""

from __future__ import annotations

from importlib.resources import files

import pytest

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import PLACES, Place

places = pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)


@places
def test_a_page_opens_from_the_disk(view: Open, place: Place) -> None:
    page = view().open(place.hash)
    page.get_by_text(place.shows).filter(visible=True).first.wait_for()
    assert page.title().strip()
    assert page.locator("h1").count() == 1


@places
def test_a_page_opens_from_a_server(view: Open, served: str, place: Place) -> None:
    page = view(base=served).open(place.hash)
    page.get_by_text(place.shows).filter(visible=True).first.wait_for()


@places
def test_a_page_is_no_wider_than_a_telephone(view: Open, place: Place) -> None:
    page = view(viewport={"width": 400, "height": 800}).open(place.hash)
    page.get_by_text(place.shows).filter(visible=True).first.wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= 400


@places
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(view: Open, place: Place, scheme: str) -> None:
    pytest.importorskip("axe_playwright_python")
    page = view(color_scheme=scheme).open(place.hash)
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {resultTypes: ['violations'], preload: false})")["violations"]
    serious = [each for each in found if each["impact"] in ("serious", "critical")]
    assert [(each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in serious] == []


@places
@pytest.mark.parametrize("kind", ["empty", "alone"])
def test_a_page_of_a_report_with_little_in_it_says_what_to_do(view: Open, place: Place, kind: str) -> None:
    viewer = view(kind)
    page = viewer.open(place.hash)
    # What the page says of an attempt that is not there is said to developers too.
    viewer.problems = [each for each in viewer.problems if "this report" not in each]
    assert len(page.locator("main").inner_text()) > 20
