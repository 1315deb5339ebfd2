"""``--evocode-report``: write the HTML report at the session's end, and again and again while rounds end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.report.html.folder import claimed
from pytest_evocode.report.printable import printable

FIRST_PAUSE = 5.0  # seconds
PAUSE = 30.0
_LOOK = 0.1
#: A report takes so much of a session's time at most.
_SHARE = 1 / 20
#: The paths are ours, because a session may import us from where no other process does.
_CHILD = "import sys; sys.path[:] = {paths!r}; from pytest_evocode.report.html.writing import main; main()"


class HtmlReportPlugin:
    """Hooks that have the report written by another process, of the session or of xdist's controller.

    It is a process and not a thread, because reading thousands of records would keep this one from its rounds.
    """

    def __init__(self, session: EvocodeSession) -> None:
        assert session.settings.report is not None
        self._session = session
        self._out = session.settings.report
        self._page = self._out / "index.html"
        self._changed = threading.Event()
        self._message = ""

    def pytest_sessionstart(self) -> None:
        """Refuse a directory that holds something else before anything is done."""
        try:
            with claimed(self._out):
                pass
        except UsageError as error:
            raise pytest.UsageError(f"--evocode-report: {error}") from None

    def pytest_report_header(self) -> str:
        """Return where the report is."""
        return self._session.scrubber.text(f"evocode: report {self._shown()}, written again while rounds end")

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note that there is something new."""
        if self._session.record_of(report.nodeid) is not None:
            self._changed.set()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Write the report now and then in a thread that waits for the process, until the tests have ended."""
        ended = threading.Event()
        thread = threading.Thread(target=self._write_until, args=(ended,), name="evocode-report", daemon=True)
        thread.start()
        try:
            return (yield)
        finally:
            ended.set()
            thread.join()

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Write the report one last time, with the run's record as it is going to be."""
        evocode = self._session
        if evocode.run is None or not evocode.selected:
            return
        evocode.run.write(evocode.records, evocode.begun, int(session.exitstatus))
        process = self._begin(under_way=False)
        _, told = process.communicate()
        lines = told.strip().splitlines()
        if process.returncode:
            why = lines[-1] if lines else f"its process ended with {process.returncode}"
            self._message = (
                f"evocode: no report: {why}; write it with: evocode report {self._short(evocode.settings.results)}"
            )
        else:
            self._message = f"evocode report: {self._shown()}"

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print where the report is, or why there is none."""
        if self._message:
            terminalreporter.write_line(printable(self._session.scrubber.text(self._message)))

    def _write_until(self, ended: threading.Event) -> None:
        pause = FIRST_PAUSE
        while not ended.wait(pause):
            if self._changed.is_set():
                self._changed.clear()
                pause = max(PAUSE, self._write_meanwhile(ended) / _SHARE)

    def _write_meanwhile(self, ended: threading.Event) -> float:
        """Have the report written, unless the tests end before it is; return how many seconds that took."""
        started = time.monotonic()
        process = self._begin(under_way=True)
        while process.poll() is None:
            if ended.wait(_LOOK):
                process.kill()
        process.communicate()
        return time.monotonic() - started

    def _begin(self, *, under_way: bool) -> subprocess.Popen[str]:
        session = self._session
        order = {
            "results": str(session.settings.results),
            "out": str(self._out),
            "under_way": session.run_name if under_way else "",
            "tasks": {name: str(place) for name, place in session.collected.items()},
        }
        process = subprocess.Popen(
            [sys.executable, "-c", _CHILD.format(paths=sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
            errors="replace",
        )
        assert process.stdin is not None
        try:
            process.stdin.write(json.dumps(order))
            process.stdin.close()
        except BrokenPipeError:
            pass  # Its exit status tells.
        process.stdin = None
        return process

    def _shown(self) -> str:
        return self._short(self._page)

    def _short(self, path: Path) -> str:
        """Return a path as short as it can be written from where pytest was started."""
        relative = os.path.relpath(path, self._session.config.invocation_params.dir)
        return str(path) if relative.startswith("..") else relative
