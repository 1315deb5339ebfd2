"""Every page opens, from the disk and from a server, for everybody."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import pytest

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import HEIGHT, PLACES, WIDTH, Place, Viewer, file_base

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.turns(3)

Opened = tuple[Viewer, Place]


@pytest.fixture(scope="module", params=PLACES, ids=lambda place: place.name)
def opened(request: pytest.FixtureRequest, chromium: Browser, folders: Callable[[str], Path]) -> Iterator[Opened]:
    """A page of the report, from the disk, which is looked at in several ways."""
    viewer = Viewer.start(chromium, file_base(folders("plain")))
    viewer.open(request.param.hash)
    yield viewer, request.param
    assert viewer.close() == []


@pytest.mark.matrix
def test_a_page_opens_from_the_disk(opened: Opened) -> None:
    viewer, place = opened
    viewer.page.get_by_text(place.shows).filter(visible=True).first.wait_for()
    assert viewer.page.title().strip()
    assert viewer.page.locator("h1").count() == 1
    assert viewer.problems == []


@pytest.mark.slow
@pytest.mark.matrix
def test_axe_finds_nothing_serious_in_light_and_dark(opened: Opened) -> None:
    pytest.importorskip("axe_playwright_python")
    page = opened[0].page
    page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    serious = []
    schemes: tuple[Literal["light", "dark"], ...] = ("light", "dark")
    for scheme in schemes:
        page.emulate_media(color_scheme=scheme)
        found = page.evaluate(_AXE)
        serious += [(scheme, each["id"], [node["html"][:200] for node in each["nodes"][:3]]) for each in found]
    assert serious == []


_AXE = """() => axe
    .run(document, {resultTypes: ["violations"], preload: false})
    .then(found => found.violations.filter(each => ["serious", "critical"].includes(each.impact)))"""


def test_every_page_opens_from_a_server_and_is_no_wider_than_a_telephone(view: Open, served: str) -> None:
    viewer = view(base=served)
    viewer.open()
    wide = []
    for place in PLACES:
        page = viewer.go(place.hash)
        page.get_by_text(place.shows).filter(visible=True).first.wait_for()
        page.set_viewport_size({"width": 400, "height": 800})
        page.get_by_text(place.shows).filter(visible=True).first.wait_for()
        if page.evaluate("document.documentElement.scrollWidth") > 400:
            wide.append(place.name)
        page.set_viewport_size({"width": WIDTH, "height": HEIGHT})
    assert wide == []


@pytest.mark.parametrize("kind", ["empty", "alone"])
@pytest.mark.matrix
def test_a_report_with_little_in_it_says_what_to_do_on_every_page(view: Open, kind: str) -> None:
    viewer = view(kind)
    viewer.open()
    shown = {place.name: viewer.go(place.hash).locator("main").inner_text() for place in PLACES}
    assert [name for name, text in shown.items() if len(text) <= 20] == []
    # What the page says of an attempt that is not there is said to developers too.
    viewer.problems = [each for each in viewer.problems if "this report" not in each]
