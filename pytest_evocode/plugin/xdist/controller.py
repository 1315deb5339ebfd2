"""The process that starts xdist's workers: it schedules attempts, and reports those whose workers were lost."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Generator, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.names import TASK_FILE, attempt_name
from pytest_evocode.plugin.collection import describe_limits, describe_shards, expected_seconds
from pytest_evocode.plugin.kept_rounds import report_properties
from pytest_evocode.plugin.session import RUN_NAME, SHARED, EvocodeSession, given_up
from pytest_evocode.plugin.task_directories import task_directory
from pytest_evocode.plugin.warming import AHEAD
from pytest_evocode.plugin.xdist.worker import SELECTED, STOP_SIGN
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.selection import read_selected
from pytest_evocode.tasks import Task, load_task

if TYPE_CHECKING:
    from xdist.scheduler import Scheduling
    from xdist.workermanage import WorkerController

    from pytest_evocode.plugin.xdist.scheduler import AttemptScheduling

logger = logging.getLogger(__name__)

Phases = dict[Literal["setup", "call", "teardown"], Literal["passed", "failed", "skipped"]]


class ControllerPlugin:
    """Hooks of the process that may start workers: they give attempts to them, and report those that were lost."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._config = session.config
        self._scheduling: AttemptScheduling | None = None
        self._reported: set[str] = set()
        """Node ids of the rounds that have their outcome."""
        self._failures = 0
        """Reports that count for ``--maxfail``."""
        self._lost_workers = 0
        self._has_told_shards = False
        self._tasks: dict[Path, Task] = {}
        self._attempts = {
            attempt_name(agent.id, number): (agent.id, number)
            for agent in session.roster.agents
            for number in range(1, session.settings.attempts + 1)
        }
        """Agents' ids and numbers of attempts by their names in node ids."""

    # Hooks.

    @pytest.hookimpl(optionalhook=True)
    def pytest_configure_node(self, node: WorkerController) -> None:
        """Tell a worker where the session's processes have what they share, with the run's name."""
        (self._session.shared / RUN_NAME).write_text(self._session.run_name)
        node.workerinput[SHARED] = str(self._session.shared)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self) -> None:
        """Read which attempts the session is to make, which a worker writes before xdist has its node ids."""
        with contextlib.suppress(FileNotFoundError):
            selected = read_selected((self._session.shared / SELECTED).read_bytes())
            if resuming := self._session.select(selected):
                (self._session.shared / RUN_NAME).write_text(self._session.run_name)
                self._tell(resuming)
            if not self._has_told_shards:
                self._has_told_shards = True
                settings = self._session.settings
                self._tell(describe_shards(selected, settings.shard, self._session.expected_seconds))
                self._tell(describe_limits(selected, self._session.engine))
                self._tell(self._session.describe_images(selected))

    def _tell(self, line: str) -> None:
        terminal = self._config.pluginmanager.getplugin("terminalreporter")
        if line and terminal is not None:
            terminal.write_line(f"evocode: {line}")

    @pytest.hookimpl(optionalhook=True, wrapper=True)
    def pytest_xdist_make_scheduler(self) -> Generator[None, Scheduling | None, Scheduling | None]:
        """Give attempts to our scheduler, and other tests to the one that ``--dist`` names."""
        others = yield
        if others is None:
            return None
        from pytest_evocode.plugin.xdist.scheduler import AttemptScheduling

        self._scheduling = AttemptScheduling(
            self._config,
            others,
            unit_of=self._unit_of,
            expected_seconds=self._expected_seconds,
            begin=self._build_images,
            is_reported=self._reported.__contains__,
            give_up=self._give_up,
        )
        return self._scheduling

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtestloop(self) -> Generator[None, object, object]:
        """Report every round that was not run when no worker is left."""
        try:
            result = yield
        except RuntimeError:
            # xdist's own end when no worker is left; it stands where tests are left that are no rounds.
            if self._scheduling is None or not self._scheduling.give_up_the_rest() or self._scheduling.others_are_left:
                raise
            return True
        if self._scheduling is not None:
            self._scheduling.give_up_the_rest()
        return result

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Note which rounds have their outcome, and stop the workers after ``--maxfail`` failures."""
        self._count_failure(report.failed)
        of_a_case = getattr(report, "context", None) is not None
        if not of_a_case and (report.when == "call" or not report.passed):
            self._reported.add(report.nodeid)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count failures of collection for ``--maxfail`` too, as pytest does."""
        self._count_failure(report.failed)

    def _count_failure(self, failed: bool) -> None:
        self._failures += failed
        most = self._config.getoption("maxfail")
        if most and self._failures >= most:
            logger.info("%d failures: workers are to stop", self._failures)
            (self._session.shared / STOP_SIGN).touch()

    def pytest_keyboard_interrupt(self) -> None:
        """Have workers stop at once: xdist asks them to, waits for five seconds, and only then interrupts them."""
        (self._session.shared / STOP_SIGN).touch()

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: WorkerController, error: object | None) -> None:
        """Remember that a lost worker may have left containers behind."""
        if error is not None:
            logger.warning("worker %s was lost: %s", node.gateway.id, error)
            self._lost_workers += 1

    def pytest_sessionfinish(self) -> None:
        """Remove what lost workers left running."""
        if self._lost_workers:
            from pytest_evocode.environments.cleanup import remove_leftovers

            remove_leftovers()

    # Attempts by their node ids.

    def _task(self, nodeid: str) -> Task:
        path = task_directory(nodeid, self._config)
        if path not in self._tasks:
            self._tasks[path] = load_task(path, unknown_keys="ignore")
        return self._tasks[path]

    def _unit_of(self, nodeid: str) -> str:
        """Return the name of what a worker gets at once: an attempt, or a round that is an attempt of its own."""
        return nodeid if self._session.settings.mode == "single-round" else nodeid.rpartition("::")[0]

    def _agent(self, nodeid: str) -> tuple[str, int]:
        return self._attempts[nodeid.split(f"{TASK_FILE}::", 1)[1].split("::")[0]]

    def _expected_seconds(self, unit: str) -> float:
        """Return how long the last attempt of that kind took; if there was none, the sum of the task's timeouts."""
        settings = self._session.settings
        try:
            task = self._task(unit)
        except TaskError:
            return 0.0
        alone = unit.rpartition("::")[2] if settings.mode == "single-round" else ""
        agent = "" if settings.check or settings.warm else self._agent(unit)[0]
        return expected_seconds(settings, task, agent, alone)

    def _build_images(self, units: Sequence[str]) -> None:
        """Have images built in this order, unless they are for workers on other machines."""
        ahead = self._config.pluginmanager.getplugin(AHEAD)
        if ahead is not None and all("popen" in spec for spec in self._config.getoption("tx", ())):
            ahead.begin(
                (self._agent(unit)[0], str(task_directory(unit, self._config)), partial(self._task, unit))
                for unit in units
            )

    # Rounds that are not run.

    def _give_up(self, nodeids: Sequence[str], why: str) -> None:
        """Report the rounds of an attempt that no worker will report: those that were recorded as they were recorded.

        Of the others the first is an error, as a round is in which an attempt breaks off, and the rest is not reached.
        """
        if self._session.settings.check or self._session.settings.warm:
            for nodeid in nodeids:
                file, _, name = nodeid.split("::", 2)
                location = (file, 0, f"{Path(file).parent.name} {name}")
                self._log(nodeid, location, {"setup": "failed"}, f"not run: worker lost ({why})", [])
            return
        task = self._task(nodeids[0])
        agent, number = self._agent(nodeids[0])
        directory = self._session.attempt_directory(task.name, agent, number)
        names = [nodeid.rpartition("::")[2] for nodeid in nodeids]
        indices = [round_.index for name in names for round_ in task.rounds if round_.name == name]
        brought = {
            index
            for each in self._session.selected
            if (each.task, each.agent, each.number) == (task.name, agent, number)
            for index in each.brought_along
        }
        records = given_up(task, agent, number, directory, indices, f"worker lost ({why})", brought.__contains__)
        for nodeid, record in zip(nodeids, records, strict=True):
            self._report(nodeid, record, task.directory / TASK_FILE)

    def _report(self, nodeid: str, record: RoundRecord, path: Path) -> None:
        """Log the reports that a worker would have sent of a round."""
        attempt = nodeid.rpartition("::")[0]
        location = (attempt.rpartition("::")[0], 0, f"{record.task} {attempt.rpartition('::')[2]} {record.round}")
        shown: Any = None
        phases: Phases
        if record.outcome == "error":
            phases, shown = {"setup": "failed"}, record.cause
        elif record.outcome == "not reached":
            phases, shown = {"setup": "skipped"}, (str(path), 1, f"Skipped: {record.cause}")
        elif record.outcome == "undecided":
            phases = {"setup": "passed", "call": "skipped"}
            shown = (str(path), 1, f"Skipped: undecided: {record.cause}")
        elif record.outcome == "failed":
            phases = {"setup": "passed", "call": "failed"}
            shown = self._session.describe_failure(record)
        else:
            phases = {"setup": "passed", "call": "passed"}
        self._log(nodeid, location, phases, shown, report_properties(record, self._session.settings.protocol))

    def _log(
        self, nodeid: str, location: tuple[str, int, str], phases: Phases, shown: Any, properties: list[tuple[str, Any]]
    ) -> None:
        hook = self._config.hook
        hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
        ended: Phases = {"teardown": "passed"}
        for when, outcome in (phases | ended).items():
            report = pytest.TestReport(
                nodeid=nodeid,
                location=location,
                keywords={},
                outcome=outcome,
                longrepr=None if outcome == "passed" else shown,
                when=when,
                user_properties=properties,
            )
            hook.pytest_runtest_logreport(report=report)
        hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
