"""What agents, programs and tasks wrote is text, whatever it looks like."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.report.html.browser.conftest import Open
from tests.report.html.browser.viewing import PLACES, Place, Viewer, file_base

if TYPE_CHECKING:
    from playwright.sync_api import Browser

pytestmark = pytest.mark.turns(3)

#: What the viewer makes none of, but for the scripts that bring its data.
_STRANGE = """() => [...document.querySelectorAll("body script, body style, body link, body meta, "
        + "img, iframe, object, embed, base, math, video, audio, [srcdoc], [action], [style*=url]")]
    .map(each => each.outerHTML.slice(0, 200))
    .filter(each => !/^<script src="(report|data[/][0-9a-z/-]+)[.]js"/.test(each))"""
_LINKS = """() => [...document.querySelectorAll("[href], [src]")]
    .map(each => each.getAttribute("href") ?? each.getAttribute("src"))"""
_HANDLERS = """() => [...document.querySelectorAll("*")].flatMap(each => [...each.attributes])
    .filter(each => /^on/i.test(each.name)).map(each => each.name)"""
#: Places of the viewer, files of the report, and the icon that is none.
_OWN = re.compile(r"#|data:,$|[0-9a-z_-]+(/[0-9a-z_-]+)*\.(js|css|csv|json|md)$")


@pytest.fixture(scope="module")
def hostile(chromium: Browser, folders: Callable[[str], Path]) -> Iterator[Viewer]:
    """A viewer of the hostile report."""
    viewer = Viewer.start(chromium, file_base(folders("hostile")))
    viewer.open()
    yield viewer
    viewer.close()


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
@pytest.mark.matrix
def test_hostile_texts_are_shown_as_texts(hostile: Viewer, place: Place) -> None:
    page = hostile.go(place.hash)
    assert page.evaluate(_STRANGE) == []
    assert [link for link in page.evaluate(_LINKS) if not _OWN.match(link)] == []
    assert page.evaluate(_HANDLERS) == []
    assert re.search(r"<\w+|PWNED|__proto__|constructor", page.locator("body").inner_text())
    assert hostile.not_allowed() == []


#: Addresses that somebody made up: scripts, names that every object has, unknown ids, numbers that are none, texts of
#: any length, and what decodes to nothing.
MADE_UP = [
    "#/<img src=x onerror=window.PWNED=1>",
    "#/round/<script>PWNED=1</script>/1",
    "#/task/%3Cscript%3EPWNED%3D1%3C%2Fscript%3E",
    "#/round/__proto__/constructor",
    "#/attempt/..%2f..%2fx",
    "#/attempt/constructor?__proto__=1&constructor=2",
    "#/task/javascript:PWNED=1",
    "#/task/t0-ledger?round=-7&attempt=none&case=none&find=%00",
    "#/run/__proto__",
    "#/trajectory/t0-ledger-0-1/99999999999",
    "#/trajectory/t0-ledger-0-1/2?step=<svg onload=PWNED=1>",
    "#/trajectory/t0-ledger-0-1/2?step=-1&hide=__proto__,toString&q=(&regex=1",
    "#/round/t0-ledger-0-1/2?case=__proto__&tab=toString",
    "#/round/t0-ledger-0-1/2?tab=output&line=1e99&q=%ff",
    "#/compare?first=__proto__&second=constructor&task=toString&a=__proto__&round=NaN&tab=valueOf",
    "#/process?row=__proto__&pillar=constructor&attempt=toString",
    "#/overview?sort=__proto__&by=constructor&group=__proto__&chart=toString&of=-1&score=valueOf&columns=x",
    "#/%E0%A4%A",
    "#/round/%/%zz?%=%",
    "#?&&==%",
    "#",
]
LONG = [
    f"#/task/{'x' * 200_000}",
    f"#/overview?q={'%F0%9F%98%80' * 20_000}",
    f"#/{'a/' * 5000}",
]


@pytest.mark.parametrize("places", [MADE_UP, LONG], ids=["short", "long"])
@pytest.mark.matrix
def test_a_made_up_address_is_answered_by_a_page(view: Open, places: list[str]) -> None:
    viewer = view()
    viewer.open(places[0])
    wrong = {}
    for place in places:
        page = viewer.go(place)
        said = [page.locator("main h1").inner_text() and "", *page.evaluate(_STRANGE)]
        # What the page says to people it says to developers too.
        said += [each for each in viewer.not_allowed() if "this report" not in each]
        if any(said):
            wrong[place[:80]] = said
    assert wrong == {}
