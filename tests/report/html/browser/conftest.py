"""A browser, and reports for it: made-up ones, from the disk and from a server."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from tests.report.html.browser.viewing import PATIENCE, Viewer, file_base
from tests.report.html.sample import sample_report, write_sample

if TYPE_CHECKING:
    from playwright.sync_api import Browser

#: What differs from the plain sample, by kind of report.
KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "hostile": {"hostile": True, "long_line": True},
    "empty": {"rows": 0, "tasks": 0},
    "alone": {"rows": 1, "tasks": 1, "rounds": 1, "trajectory_steps": 0},
}

Open = Callable[..., Viewer]


class _Started:
    """The browser of one test after the other, in all modules of this directory: starting takes seconds."""

    def __init__(self) -> None:
        self._browser: Browser | None = None
        self._open = ExitStack()

    def browser(self) -> Browser:
        if self._browser is None:
            sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
            program = shutil.which("chromium") or shutil.which("chromium-browser")
            if program is None:
                pytest.skip("there is no chromium on the PATH")
            sync_api.expect.set_options(timeout=PATIENCE)
            playwright = self._open.enter_context(sync_api.sync_playwright())
            self._browser = playwright.chromium.launch(executable_path=program)
            self._open.callback(self._browser.close)
        return self._browser

    def close(self) -> None:
        self._browser = None
        self._open.close()


_started = _Started()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(nextitem: pytest.Item | None) -> Generator[None, None, None]:
    """Close the browser before a test of another directory.

    Playwright leaves an event loop running in the thread, which other tests could not start one in.
    """
    try:
        yield
    finally:
        if nextitem is None or not nextitem.path.is_relative_to(Path(__file__).parent):
            _started.close()


@pytest.fixture(scope="module")
def chromium() -> Browser:
    return _started.browser()


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """Give the folder of a report of a kind, which is written once."""
    written: dict[str, Path] = {}

    def folder(kind: str) -> Path:
        if kind not in written:
            written[kind] = tmp_path_factory.mktemp(kind)
            write_sample(written[kind], sample_report(**KINDS[kind]))
        return written[kind]

    return folder


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        pass


@pytest.fixture(scope="module")
def served(folders: Callable[[str], Path]) -> Iterator[str]:
    """The address of a server of the plain report."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(_Quiet, directory=str(folders("plain"))))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture(scope="module")
def usual(chromium: Browser) -> Iterator[Viewer]:
    """A viewer with the usual settings, for one test after the other: starting takes longer than opening a report."""
    viewer = Viewer.start(chromium, "about:blank")
    yield viewer
    viewer.close()


@pytest.fixture
def view(chromium: Browser, usual: Viewer, folders: Callable[[str], Path]) -> Iterator[Open]:
    """Start viewers, whose problems fail the test at its end."""
    viewers: list[Viewer] = []

    def start(kind: str = "plain", base: str | None = None, **settings: Any) -> Viewer:
        base = base or file_base(folders(kind))
        if settings or usual in viewers:
            viewers.append(Viewer.start(chromium, base, **settings))
        else:
            usual.base = base
            viewers.append(usual)
        return viewers[-1]

    yield start
    problems = [problem for viewer in viewers for problem in (viewer.leave() if viewer is usual else viewer.close())]
    assert problems == []
