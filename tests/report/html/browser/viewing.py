"""A report in a browser, and everything that must not happen while somebody looks at it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Dialog, Page, Request

WIDTH, HEIGHT = 1200, 800
#: In milliseconds, a hundred times what a page takes: machines that test are slow at times.
PATIENCE = 30_000
_WATCH = """
window.violations = [];
document.addEventListener("securitypolicyviolation", event =>
    window.violations.push(event.violatedDirective + " " + event.blockedURI));
"""
_HAPPENED = "() => [...window.violations.splice(0), ...(window.PWNED ? ['a text of the report ran'] : [])]"
#: A page is there when it has a heading and waits for nothing.
_READY = "() => document.querySelector('main h1') && !document.querySelector('[aria-busy=true]')"

#: What is shown is marked, so that one can tell when it is gone.
_GO = "(place) => { document.querySelector('main .page').dataset.left = ''; location.hash = place; }"


@dataclass
class Place:
    """A page of the sample: its hash, and a text that is on it."""

    name: str
    hash: str
    shows: str


#: Attempts and tasks as :mod:`tests.report.html.sample` names them.
PLACES = [
    Place("overview", "#/overview", "claude-code"),
    Place("task", "#/task/t0-ledger", "ledger"),
    Place("attempt", "#/attempt/t0-ledger-0-1", "claude-code"),
    Place("round", "#/round/t0-ledger-0-1/2", "cases passed"),
    Place("round-changes", "#/round/t0-ledger-0-1/2?tab=changes", "ledger/report.py"),
    Place("round-process", "#/round/t0-ledger-0-1/2?tab=process", "RigorScore"),
    Place("trajectory", "#/trajectory/t0-ledger-0-1/2", "step 4"),
    Place("compare", "#/compare", "Differences"),
    Place("compare-trajectories", "#/compare?tab=trajectories", "step 4"),
    Place("compare-workspaces", "#/compare?tab=workspaces", "ledger/report.py"),
    Place("process", "#/process", "Planning fidelity"),
    Place("runs", "#/runs", "2026-11-20 codex"),
    Place("run", "#/run/run-1", "--evocode-agent=codex"),
]


@dataclass(eq=False)
class Viewer:
    """A page of a browser that shows a report, with all that it did and should not have done."""

    page: Page
    base: str
    """What every address begins with, without the name of the page."""
    problems: list[str] = field(default_factory=list)

    @classmethod
    def start(cls, browser: Browser, base: str, **settings: Any) -> Viewer:
        context = browser.new_context(**{"viewport": {"width": WIDTH, "height": HEIGHT}, **settings})
        page = context.new_page()
        page.set_default_timeout(PATIENCE)
        viewer = cls(page, base)
        page.add_init_script(_WATCH)
        page.on("console", viewer._said)
        page.on("pageerror", lambda error: viewer.problems.append(f"error: {error}"))
        page.on("request", viewer._asked)
        page.on("requestfailed", viewer._failed)
        page.on("dialog", viewer._opened)
        page.on("popup", lambda other: viewer.problems.append(f"opened a window: {other.url}"))
        return viewer

    def _failed(self, request: Request) -> None:
        if request.failure != "net::ERR_ABORTED":  # As when a page is left that still loads something.
            self.problems.append(f"not found: {request.url}")

    def open(self, place: str = "") -> Page:
        """Open a place as somebody does who was sent its address: in a page that shows nothing yet."""
        self.page.goto("about:blank")
        self.page.goto(f"{self.base}/index.html{place}")
        return self.ready()

    def go(self, place: str) -> Page:
        """Go to another place within the page that is open, as a link does: nothing is loaded that is there already."""
        for each in ("#/elsewhere", place):
            self.page.evaluate(_GO, each)
            self.page.wait_for_function("() => !document.querySelector('.page[data-left]')")
        return self.ready()

    def ready(self) -> Page:
        self.page.wait_for_function(_READY)
        return self.page

    def place(self) -> str:
        """The hash of the place that is shown."""
        return str(self.page.evaluate("location.hash"))

    @property
    def _shows_report(self) -> bool:
        """Whether a report is there: an empty page, with which viewers begin, is not watched."""
        return self.page.url != "about:blank" and self.page.url.startswith(self.base)

    def not_allowed(self) -> list[str]:
        """Return all that should not have happened since this was last asked."""
        if self._shows_report:
            self.problems += self.page.evaluate(_HAPPENED)
        found, self.problems = self.problems, []
        return found

    def leave(self) -> list[str]:
        """Forget what the report keeps in the browser, and return all that should not have happened."""
        found = self.not_allowed()
        if self._shows_report:
            self.page.evaluate("localStorage.clear(), sessionStorage.clear()")
        self.page.goto("about:blank")
        return found

    def close(self) -> list[str]:
        """Close the page, and return all that should not have happened."""
        found = self.not_allowed()
        self.page.context.close()
        return found

    def _said(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"{message.type}: {message.text}")

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((self.base, "data:", "about:")):
            self.problems.append(f"asked for {request.url}")

    def _opened(self, dialog: Dialog) -> None:
        self.problems.append(f"a dialog: {dialog.message}")
        dialog.dismiss()


def file_base(folder: Path) -> str:
    return folder.as_uri()
