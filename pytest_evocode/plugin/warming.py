"""What is made ready ahead: with ``--evocode-warm`` for later runs, and images for later attempts of a session.

pytest sees ``task.toml::warm::image`` and ``task.toml::warm::solutions`` for each task.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Generator, Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import BuildError, EvocodeError, RoundFailed, TaskError
from pytest_evocode.plugin.attempts import RoundItem
from pytest_evocode.plugin.session import EvocodeSession, session_of
from pytest_evocode.plugin.side_by_side import TaskCollector, TaskItem
from pytest_evocode.report.printable import printable
from pytest_evocode.report.tables import aligned
from pytest_evocode.tasks import Task

if TYPE_CHECKING:
    from pytest_evocode.results.records import RoundRecord
    from pytest_evocode.trial.context import TrialOptions
    from pytest_evocode.trial.warming import ImagesAhead, TaskWarming, Wanted, Warmed

#: The name of the collector that what is to be made ready for a task is below.
WARM = "warm"
_WARMED = "evocode_warm"
"""The property of items that says what came of them."""
_SHOWN_OUTPUT = 2**15  # characters
_SHOWN_ROWS = 20


class WarmCollector(TaskCollector):
    """What is to be made ready for one task."""

    def __init__(self, *, task: Task, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.task = task
        self._runner: TaskWarming | None = None

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for the image, for what each agent needs in it, and for the reference solutions."""
        from pytest_evocode.trial.warming import IMAGE, INSTALL, SOLUTIONS

        installed = [f"{INSTALL}{id}" for id in session_of(self.config).roster.installations]
        solutions = [SOLUTIONS] if self.task.rounds[0].solution is not None else []
        for name in (IMAGE, *installed, *solutions):
            yield WarmItem.from_parent(self, name=name)

    def make_runner(self, session: EvocodeSession, options: TrialOptions, *, anew: bool) -> TaskWarming:
        """Return what makes the selected ready."""
        from pytest_evocode.trial.warming import INSTALL, TaskWarming

        installed = {f"{INSTALL}{id}": each for id, each in session.roster.installations.items()}
        options = replace(options, strict=session.settings.strict)
        names = [item.name for item in self.selected]
        return TaskWarming(self.task, session.engine, names, installed, options, anew=anew)

    def result(self, name: str) -> Warmed:
        """Wait for one thing and return what came of it; raises EvocodeError if it cannot be had."""
        assert self._runner is not None
        return self._runner.result(name)


class WarmItem(TaskItem):
    """One thing that later runs are to find ready.

    It fails if the task's author has to correct something; a failing environment is an error. It is skipped where
    another item tells why it cannot be had.
    """

    parent: WarmCollector

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self._why = ""

    def wait(self) -> None:
        """Wait for it."""
        try:
            warmed = self.parent.result(self.name)
        except (BuildError, TaskError) as error:
            if (teller := self._teller()) is not None:
                pytest.skip(f"the image cannot be had, see {teller.name}")
            self._why = str(error)
            return
        except EvocodeError as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None
        if (record := warmed.failed) is not None:
            self._tell_failed(record, warmed.output)
        told = {"made": warmed.made, "seconds": round(warmed.seconds, 3), "bytes": warmed.size, "rounds": warmed.rounds}
        self.user_properties.append((_WARMED, json.dumps(told)))

    def _teller(self) -> TaskItem | None:
        """Return the selected item of the task's image, if that cannot be built, unless this is the one."""
        first = self.parent.selected[0]
        if first is self:
            return None
        try:
            self.parent.result(first.name)
        except EvocodeError:
            return first
        return None

    def _tell_failed(self, record: RoundRecord, output: str) -> None:
        """Say which round's reference solution failed, and how."""
        if record.outcome == "failed":
            self._why = session_of(self.config).describe_failure(record)  # Which names the round.
            self.add_report_section("call", "suite output", output[-_SHOWN_OUTPUT:])
        elif record.fault == "agent":
            self._why = f"{record.round}: {record.cause}"
        else:
            pytest.fail(f"{record.round}: {record.cause}", pytrace=False)

    def runtest(self) -> None:
        """Fail if the task's author has to correct something."""
        if self._why:
            raise RoundFailed(self._why)


class WarmSummary:
    """Hooks that tell what was made ready from what was there. In the process that reports."""

    def __init__(self, session: EvocodeSession) -> None:
        self._made: list[tuple[str, str, str, str]] = []
        self._found = 0
        self._all_there = True

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather what items say."""
        self._all_there &= report.passed
        told = _told(report)
        if report.when != "call" or not report.passed or told is None:
            return
        file, _, name = report.nodeid.partition(f"::{WARM}::")
        if not told["made"]:
            self._found += 1
            return
        what = f"{told['rounds']} rounds played" if told["rounds"] else "built"
        what = what.replace("1 rounds", "1 round")
        row = os.path.dirname(file) or ".", name, f"{what} in {told['seconds']:.1f} s", _size(told["bytes"])
        self._made.append(row)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Name what was there."""
        told = _told(report)
        if report.when == "call" and report.passed and told is not None and not told["made"]:
            return "passed", ".", "PASSED (was there)"
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print what was made ready, with how long it took and its size, and how much was there."""
        if self._made:
            terminalreporter.section("evocode warm")
            shown = len(self._made) if terminalreporter.verbosity > 0 else _SHOWN_ROWS
            for line in aligned(self._made[:shown], left=(0, 1, 2)):
                terminalreporter.write_line(printable(line))
            if len(self._made) > shown:
                terminalreporter.write_line(f"... and {len(self._made) - shown} more, use '-v' to show")
            if self._found:
                terminalreporter.write_line(
                    f"evocode: {self._found} of {self._found + len(self._made)} were there before"
                )
        elif self._found and self._all_there:
            terminalreporter.write_line("evocode: all is there, nothing was built or played; --cache-clear plays anew")


def _told(report: pytest.TestReport) -> dict[str, Any] | None:
    text = dict(report.user_properties).get(_WARMED)
    return None if text is None else dict(json.loads(str(text)))


def _size(size: int) -> str:
    """Return bytes as people read them.

    >>> _size(1_250_000_000), _size(212_000_000), _size(30_000)
    ('1.2 GB', '212.0 MB', '30.0 kB')
    """
    unit, of = next(((unit, of) for unit, of in (("GB", 10**9), ("MB", 10**6)) if size >= of), ("kB", 10**3))
    return f"{size / of:.1f} {unit}"


AHEAD = "evocode-images-ahead"
"""The plugin's name, by which xdist's controller finds it."""


class ImagesAheadPlugin:
    """Hooks that begin builds with the first attempt, and end them with the last.

    In the process that starts attempts or hands them out to workers; these find what it has built.
    """

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._images: ImagesAhead | None = None

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> None:
        """Begin, where rounds are run in this process."""
        if self._images is None and isinstance(item, RoundItem):
            self.begin_with(item.session)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """End what is not needed any more, before an attempt that was broken off is cleaned up after."""
        try:
            return (yield)
        finally:
            if self._images is not None:
                self._images.close()

    def begin_with(self, session: pytest.Session) -> None:
        """Begin with the images of the session's attempts."""
        attempts = dict.fromkeys(each.parent for each in session.items if isinstance(each, RoundItem))
        self.begin((each.agent.id, each.task.name, lambda each=each: each.task) for each in attempts)  # type: ignore[misc]

    def begin(self, attempts: Iterable[tuple[str, str, Callable[[], Task]]]) -> None:
        """Begin with the images of attempts, in this order.

        Args:
            attempts: The id of the agent, the name of the task, and what loads it.
        """
        installed = self._session.roster.installations
        wanted: dict[tuple[str, str], Callable[[], Wanted]] = {}
        for agent, task, load in attempts:
            on_top = installed.get(agent)
            wanted.setdefault((task, on_top.script if on_top else ""), lambda load=load, top=on_top: (load(), top))  # type: ignore[misc]
        if len(wanted) > 1:  # A single image is built by the attempt that needs it.
            from pytest_evocode.trial.warming import ImagesAhead

            self._images = ImagesAhead(self._session.engine)
            self._images.begin(wanted.values())
