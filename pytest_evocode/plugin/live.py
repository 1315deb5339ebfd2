"""What a session shows while attempts run: status lines on a terminal; in CI a line for each round that has ended."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Generator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.names import attempt_name
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem
from pytest_evocode.plugin.block import Block
from pytest_evocode.plugin.live_lines import round_line, status_lines
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.trial.progress import Progress

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

#: By this name the controller tells a worker in which file it looks for how far the worker's attempt is.
STATUS_FILE = "evocode_status_file"
_INTERVAL = 0.2  # seconds


def live_plugin(session: EvocodeSession) -> StatusFile | StatusLines | RoundLines | None:
    """What shows attempts in this session, if anything does."""
    config = session.config
    if (worker := getattr(config, "workerinput", None)) is not None:
        return StatusFile(Path(worker[STATUS_FILE])) if STATUS_FILE in worker else None
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None or session.settings.check or config.option.collectonly or config.option.verbose < 0:
        return None
    if os.environ.get("CI") or os.environ.get("GITHUB_ACTIONS"):
        return RoundLines(session, reporter)
    return StatusLines(session) if _is_ours_alone(config) else None


def _is_ours_alone(config: pytest.Config) -> bool:
    """Whether there is a terminal that only pytest's reporter writes to."""
    if os.environ.get("TERM") == "dumb" or config.option.capture != "fd":
        return False
    if any(config.getoption(name, False) for name in ("usepdb", "trace", "evocode_shell")):
        return False
    file = getattr(config.get_terminal_writer(), "_file", None)
    try:
        return file is not None and os.isatty(file.fileno())
    except (AttributeError, OSError, ValueError):  # A stream that is no file.
        return False


class _Watch:
    """Looks at the attempt that is under way in this process again and again, as long as tests run."""

    _attempt: AttemptCollector | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Remember whose round it is."""
        if isinstance(item, RoundItem):
            self._attempt = item.parent

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Begin, and be done with it however the tests end."""
        over = threading.Event()
        thread = threading.Thread(target=self._look, args=(over,), name="evocode-live", daemon=True)
        self.begin()
        thread.start()
        try:
            return (yield)
        finally:
            over.set()
            thread.join()
            self.end()

    def _look(self, over: threading.Event) -> None:
        while not over.wait(_INTERVAL):
            self.update(self._running())

    def _running(self) -> dict[str, Progress]:
        attempt = self._attempt
        trial = attempt.trial if attempt is not None else None
        progress = trial.progress if trial is not None else None
        if attempt is None or progress is None:
            return {}
        return {f"{attempt.task.name} {attempt.name}": progress}

    def begin(self) -> None:
        """Before the first test."""

    def update(self, running: dict[str, Progress]) -> None:
        """Here is how far the attempt is, if there is one, by its name."""
        raise NotImplementedError

    def end(self) -> None:
        """After the last test."""


class StatusFile(_Watch):
    """In a worker: writes how far its attempt is for the controller to show."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: dict[str, Progress] = {}

    def update(self, running: dict[str, Progress]) -> None:
        """Write what has changed, whole or not at all."""
        if running == self._written:
            return
        self._written = running
        text = json.dumps({name: asdict(progress) for name, progress in running.items()})
        part = self._path.with_suffix(".part")
        with contextlib.suppress(OSError):  # The controller has gone.
            part.write_text(text, encoding="utf-8")
            part.replace(self._path)

    def end(self) -> None:
        """Nothing runs any more."""
        self.update({})


class StatusLines(_Watch):
    """Keeps a line for each running attempt below pytest's own output, whichever process runs it."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._block: Block | None = None
        self._directory: Path | None = None

    # Workers.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker where to write."""
        if self._directory is None:
            self._directory = directory = Path(tempfile.mkdtemp(prefix="evocode-live-"))
            self._session.config.add_cleanup(lambda: shutil.rmtree(directory, ignore_errors=True))
        node.workerinput[STATUS_FILE] = str(self._directory / f"{node.gateway.id}.json")

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        """Forget a worker that may have had no time to say that its attempt has ended."""
        if self._directory is not None:
            (self._directory / f"{node.gateway.id}.json").unlink(missing_ok=True)

    def _elsewhere(self) -> dict[str, Progress]:
        running: dict[str, Progress] = {}
        if self._directory is not None:
            for path in sorted(self._directory.glob("*.json"), key=lambda path: (len(path.name), path.name)):
                with contextlib.suppress(FileNotFoundError):
                    found = json.loads(path.read_text(encoding="utf-8"))
                    running |= {name: Progress(**progress) for name, progress in found.items()}
        return running

    # The terminal.

    def begin(self) -> None:
        """Come between pytest and the terminal."""
        self._block = Block(self._session.config.get_terminal_writer())

    def update(self, running: dict[str, Progress]) -> None:
        """Show what runs here and elsewhere."""
        everywhere = (running | self._elsewhere()).items()
        shown = {self._session.scrubber.text(name): progress for name, progress in everywhere}
        if (block := self._block) is not None:
            block.show(lambda size: status_lines(shown, now=time.time(), columns=size.columns, rows=size.lines))

    def end(self) -> None:
        """Leave the terminal to pytest."""
        if self._block is not None:
            self._block.close()
            self._block = None

    def pytest_enter_pdb(self) -> None:
        """Somebody types now, and what is typed does not come by here."""
        if self._block is not None:
            self._block.pause()

    def pytest_leave_pdb(self) -> None:
        """Go on."""
        if self._block is not None:
            self._block.resume()


class RoundLines:
    """Prints a line for each round that has ended, where nobody watches."""

    def __init__(self, session: EvocodeSession, reporter: pytest.TerminalReporter) -> None:
        self._session = session
        self._reporter = reporter
        self._records: dict[str, RoundRecord] = {}
        """Of rounds that have no line yet, by node id."""
        self._finished: set[str] = set()
        self._line = ""
        self._pytest_session: pytest.Session | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """The last line comes after pytest's own last word on its progress."""
        self._pytest_session = session
        try:
            return (yield)
        finally:
            for nodeid in list(self._records):
                self._print(nodeid)
            if self._line and self._reporter.currentfspath == self._line:
                self._reporter.ensure_newline()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take in what a round's report brings."""
        record = self._session.record_of(report.nodeid)
        if report.when == "setup" and record is not None:
            self._records[report.nodeid] = record

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Print it, now that pytest has said what it says of a test."""
        self._finished.add(nodeid)
        if self._pytest_session is not None and len(self._finished) < self._pytest_session.testscollected:
            self._print(nodeid)

    def _print(self, nodeid: str) -> None:
        record = self._records.pop(nodeid, None)
        if record is None or record.outcome == "not reached":
            return
        name = f"{record.task} {attempt_name(record.agent, record.attempt)}"
        line = self._session.scrubber.text(f"evocode: {round_line(name, record)}")
        config, reporter = self._session.config, self._reporter
        writer = config.get_terminal_writer()
        reporter.ensure_newline()
        if writer.width_of_current_line:  # Dots of workers, which the reporter does not take for a line.
            writer.line()
        writer.write(line)
        if config.pluginmanager.hasplugin("dsession"):
            writer.line()
        else:  # The reporter ends a line before each test, this one too.
            reporter.currentfspath = self._line = line
        writer.flush()
