"""What a session shows while attempts run: their state on a terminal, or in CI a line for each round that ended.

Not with rich: its Live has to end every line that it writes, and pytest writes dot after dot into one. (As a proxy for
the file it holds the dots back; printed with end="", the lines below overwrite them: rich 15.)
"""

from __future__ import annotations

import contextlib
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.names import attempt_name
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem
from pytest_evocode.plugin.pytest_private import TerminalWriter, file_of, redirect
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.report.printable import printable_line
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks.atomic_write import replacing
from pytest_evocode.trial.context import Progress

if TYPE_CHECKING:
    from xdist.workermanage import WorkerController

_STATUS = "status"
"""The directory, among what the session's processes share, where workers write the progress of their attempts."""
_INTERVAL = 0.2  # seconds


def live_plugin(session: EvocodeSession) -> StatusFile | StatusLines | RoundLines | None:
    """Return what shows attempts in this process, None where nothing is to be shown."""
    config = session.config
    if (worker := session.worker_input) is not None:
        shown = session.shared / _STATUS
        return StatusFile(shown / f"{worker['workerid']}.json") if shown.is_dir() else None
    reporter: pytest.TerminalReporter | None = config.pluginmanager.get_plugin("terminalreporter")
    settings = session.settings
    if reporter is None or settings.check or settings.warm or config.option.verbose < 0:
        return None
    if os.environ.get("CI") or os.environ.get("GITHUB_ACTIONS"):
        return RoundLines(session, reporter)
    return StatusLines(session) if _has_free_terminal(config) and not session.roster.are_interactive else None


def _has_free_terminal(config: pytest.Config) -> bool:
    """Return whether there is a terminal that only pytest's reporter writes to."""
    if os.environ.get("TERM") == "dumb" or config.option.capture != "fd":
        return False
    if any(config.getoption(name, False) for name in ("usepdb", "trace", "evocode_shell")):
        return False
    try:
        return os.isatty(file_of(config.get_terminal_writer()).fileno())
    except (AttributeError, OSError, ValueError):  # Not a writer of pytest's, or a stream without a descriptor.
        return False


class _Watcher:
    """Looks at the attempt that runs in this process every ``_INTERVAL`` while the session runs tests."""

    _attempt: AttemptCollector | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Remember the attempt of the round that starts."""
        if isinstance(item, RoundItem):
            self._attempt = item.parent

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Watch in a thread until the tests have ended."""
        ended = threading.Event()
        thread = threading.Thread(target=self._watch, args=(ended,), name="evocode-live", daemon=True)
        self.begin()
        thread.start()
        try:
            return (yield)
        finally:
            ended.set()
            thread.join()
            self.end()

    def _watch(self, ended: threading.Event) -> None:
        while not ended.wait(_INTERVAL):
            self.update(self._running())

    def _running(self) -> dict[str, Progress]:
        attempt = self._attempt
        trial = attempt.trial if attempt is not None else None
        progress = trial.progress if trial is not None else None
        if attempt is None or progress is None:
            return {}
        return {f"{attempt.task.name} {attempt.name}": progress}

    def begin(self) -> None:
        """Prepare, before the first test."""

    def update(self, running: dict[str, Progress]) -> None:
        """Take in the progress of the attempt that runs here, by its name; empty if none runs."""
        raise NotImplementedError

    def end(self) -> None:
        """Clean up, after the last test."""


class StatusFile(_Watcher):
    """Writes the progress of a worker's attempt to a file, from which the controller shows it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._written: dict[str, Progress] = {}

    def update(self, running: dict[str, Progress]) -> None:
        """Write the progress if it has changed."""
        if running == self._written:
            return
        self._written = running
        text = json.dumps({name: asdict(progress) for name, progress in running.items()})
        # The directory is gone where the controller is.
        with contextlib.suppress(OSError), replacing(self._path) as file:
            file.write(text.encode())

    def end(self) -> None:
        """Write that nothing runs."""
        self.update({})


class StatusLines(_Watcher):
    """Keeps a line for each attempt that runs, here or in a worker, below pytest's own output."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._block: LiveBlock | None = None
        self._directory = session.shared / _STATUS

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Have workers write the progress of their attempts."""
        self._directory.mkdir(exist_ok=True)

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController) -> None:
        """Forget the attempt of a worker that ended, which a crashed worker did not do itself."""
        (self._directory / f"{node.gateway.id}.json").unlink(missing_ok=True)

    def _in_workers(self) -> dict[str, Progress]:
        running: dict[str, Progress] = {}
        for path in sorted(self._directory.glob("*.json"), key=lambda path: (len(path.name), path.name)):
            with contextlib.suppress(FileNotFoundError):
                found = json.loads(path.read_text(encoding="utf-8"))
                running |= {name: Progress(**progress) for name, progress in found.items()}
        return running

    def begin(self) -> None:
        """Have pytest write to the terminal through a block."""
        self._block = LiveBlock(self._session.config.get_terminal_writer())

    def update(self, running: dict[str, Progress]) -> None:
        """Show the attempts that run here and in workers."""
        running = running | self._in_workers()
        if (elsewhere := self._session.elsewhere) is not None:
            running = elsewhere.progress
        shown = {self._session.scrubber.text(name): progress for name, progress in running.items()}
        if (block := self._block) is not None:
            block.show(lambda size: status_lines(shown, now=time.time(), columns=size.columns, rows=size.lines))

    def end(self) -> None:
        """Give the terminal back to pytest."""
        if self._block is not None:
            self._block.close()
            self._block = None

    def pytest_enter_pdb(self) -> None:
        """Hide the lines: what is typed into a debugger does not pass through the block."""
        if self._block is not None:
            self._block.pause()

    def pytest_leave_pdb(self) -> None:
        """Show the lines again."""
        if self._block is not None:
            self._block.resume()


class RoundLines:
    """Prints a line for each round that has ended, for a log that somebody reads later."""

    def __init__(self, session: EvocodeSession, reporter: pytest.TerminalReporter) -> None:
        self._session = session
        self._reporter = reporter
        self._records: dict[str, RoundRecord] = {}
        """Records of rounds that have no line yet, by node id."""
        self._finished: set[str] = set()
        self._line = ""
        self._pytest_session: pytest.Session | None = None

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, object, object]:
        """Print the lines that are left after pytest's last note on the progress."""
        self._pytest_session = session
        try:
            return (yield)
        finally:
            for nodeid in list(self._records):
                self._print(nodeid)
            if self._line and self._reporter.currentfspath == self._line:
                self._reporter.ensure_newline()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep the record of a round until its line is printed."""
        record = self._session.rounds.record(report.nodeid)
        if report.when == "setup" and record is not None:
            self._records[report.nodeid] = record

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str) -> None:
        """Print the round's line after what pytest prints of the test, unless it is the last test."""
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
        if writer.width_of_current_line:  # Dots of workers, which the reporter does not count as a line.
            writer.line()
        writer.write(line)
        if config.pluginmanager.hasplugin("dsession"):
            writer.line()
        else:  # Have the reporter end this line before it writes the next.
            reporter.currentfspath = self._line = line
        writer.flush()


def status_lines(running: Mapping[str, Progress], *, now: float, columns: int, rows: int) -> list[str]:
    """Return a line for each attempt, cut to the width of the screen, on no more than half of its height.

    Args:
        running: The attempts' progress by name.
        now: The time, in seconds since the epoch.
        columns: The width of the screen.
        rows: The height of the screen.
    """
    names = list(running)
    most = max(1, rows // 2)
    if len(names) > most:
        names = names[: most - 1]
    lines = [f"{name}: {', '.join(_status(running[name], now))}" for name in names]
    if left := len(running) - len(names):
        lines.append(f"and {left} more" if names else f"{left} attempts")
    return [_fit(printable_line(line), columns) for line in lines]


def round_line(name: str, record: RoundRecord) -> str:
    """Return how a round ended, in one line that starts with the name of its attempt."""
    if record.outcome == "error":
        return printable_line(f"{name} {record.round} error: {record.cause.partition(chr(10))[0]}")
    return printable_line(f"{name} {record.round} {', '.join(_ending(record))}")


def _status(progress: Progress, now: float) -> Iterator[str]:
    if progress.index:
        yield f"round {progress.index}/{progress.rounds}"
    if progress.doing != "working":
        yield f"clearing up: {progress.forks} forks" if progress.forks else progress.doing
    yield from _used(progress.turns or None, progress.tokens or None, progress.cost_usd or None)
    elapsed = max(0.0, now - progress.since)
    if progress.limit is None:
        yield clock(elapsed)
    else:
        yield f"{clock(max(0.0, progress.limit - elapsed))} left"


def _ending(record: RoundRecord) -> Iterator[str]:
    yield record.outcome
    passed, cases = record.case_counts
    if cases:
        yield f"{passed}/{cases} cases"
    if (usage := record.usage) is not None:
        yield from _used(usage.requests, usage.tokens, usage.cost_usd)
    seconds = [each for each in (record.agent_seconds, record.verifier_seconds) if each is not None]
    if seconds:
        yield f"{sum(seconds):.1f} s"


def _used(turns: int | None, tokens: int | None, cost_usd: float | None) -> Iterator[str]:
    """Yield what a model has used, without the amounts that are not known."""
    if turns is not None:
        yield "1 turn" if turns == 1 else f"{turns} turns"
    if tokens is not None:
        yield f"{_short_number(tokens)} tokens"
    if cost_usd is not None:
        yield f"${cost_usd:.2f}" if cost_usd == 0 or cost_usd >= 0.01 else f"${cost_usd:.4f}"


def _short_number(number: int) -> str:
    """Return a number in about three digits.

    >>> _short_number(999), _short_number(30_149), _short_number(999_960), _short_number(1_250_000)
    ('999', '30.1k', '1.00M', '1.25M')
    """
    if number < 1000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 999_950 else f"{number / 1e6:.2f}M"


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, from an hour on with hours.

    >>> clock(9.9), clock(754), clock(3601)
    ('0:09', '12:34', '1:00:01')
    """
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _fit(line: str, columns: int) -> str:
    """Return a line cut so that it ends before the last column."""
    return line if len(line) < columns else line[: max(0, columns - 4)] + "..."


_ERASE = "\x1b[J"  # From the cursor to the screen's end.
_DOWN = "\x1bD"  # Keeps the column and scrolls at the screen's end, where the usual "down" does nothing.
_SAVE, _RESTORE = "\x1b7", "\x1b8"
_PLAIN = "\x1b[0m"
_CLIP, _WRAP = "\x1b[?7l", "\x1b[?7h"


class LiveBlock:
    """A file that a writer writes to in place of its terminal until it is closed, with lines shown below the text.

    The writer needs no knowledge of the lines: the cursor stays where it left it, and the lines are erased before
    anything is written.
    """

    def __init__(self, writer: TerminalWriter) -> None:
        self._writer = writer
        self._file = file_of(writer)
        # A descriptor of its own, because pytest captures output by redirecting the file's.
        self._terminal = os.fdopen(os.dup(self._file.fileno()), "w", encoding=self._file.encoding, errors="replace")
        self._lock = threading.RLock()
        self._paused = False
        self._shown: tuple[list[str], os.terminal_size] | None = None
        redirect(writer, self)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write text to the file and flush it, because text that reached the screen later would overwrite the lines."""
        with self._lock:
            self._erase()
            written = self._file.write(text)
            self._file.flush()
        return written

    def show(self, fitting: Callable[[os.terminal_size], Sequence[str]]) -> None:
        """Replace the lines by those that ``fitting`` returns for the size of the screen."""
        with self._lock:
            if self._paused or self._terminal.closed:
                return
            size = self._size()
            lines = fitting(size)
            if not lines:
                self._erase()
            elif self._shown != (wanted := ([*lines], size)) and not self._at_edge(size.columns):
                scrolled = _DOWN * len(lines) + f"\x1b[{len(lines)}A"
                drawn = "".join(f"\x1b[B\r{line}" for line in lines)
                self._send(f"{_ERASE}{scrolled}{_SAVE}{_PLAIN}{_CLIP}{drawn}{_WRAP}{_RESTORE}")
                self._shown = wanted

    def pause(self) -> None:
        """Erase the lines, and show none until :meth:`resume`."""
        with self._lock:
            self._erase()
            self._paused = True

    def resume(self) -> None:
        """Show lines again, from the next :meth:`show` on."""
        self._paused = False

    def close(self) -> None:
        """Erase the lines, and give the terminal back to the writer."""
        with self._lock:
            self._erase()
            redirect(self._writer, self._file)
            with contextlib.suppress(OSError):
                self._terminal.close()

    def _erase(self) -> None:
        if self._shown is not None:
            self._shown = None
            self._send(_ERASE)

    def _at_edge(self, columns: int) -> bool:
        """Return whether the cursor may be behind the last column, where terminals differ in what comes next."""
        width = self._writer.width_of_current_line
        return width > 0 and width % columns == 0

    def _size(self) -> os.terminal_size:
        with contextlib.suppress(OSError):
            size = os.get_terminal_size(self._terminal.fileno())
            if size.columns and size.lines:
                return size
        return os.terminal_size((80, 24))

    def _send(self, text: str) -> None:
        with contextlib.suppress(OSError):  # Nobody looks at a terminal that has been closed.
            self._terminal.write(text)
            self._terminal.flush()
