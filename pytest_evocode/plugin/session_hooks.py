"""Sessions that run or check tasks, from start to end: plugins, header, the run's record, exit status and benchmark.

Signals end a session with all its teardowns and reports, also where the first is lost or more follow.
"""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from collections.abc import Generator, Iterator
from importlib import import_module
from types import FrameType

import pytest

from pytest_evocode.errors import EvocodeError
from pytest_evocode.names import agent_id
from pytest_evocode.plugin.foreign_projects import foreign_projects
from pytest_evocode.plugin.options import AUTO
from pytest_evocode.plugin.run import SessionRun
from pytest_evocode.plugin.session import EvocodeSession, start_session
from pytest_evocode.report.printable import printable


def register_session_plugins(config: pytest.Config) -> None:
    """Make the session, and register the plugins that its options ask for.

    Their order matters where hooks of two plugins are alike: pytest calls the one that was registered later first. The
    modules of options that few sessions use are imported only then, as is xdist's part.
    """
    session = start_session(config)
    for name, place, is_wanted in _plugins(session):
        if is_wanted:
            module, _, make = place.partition(":")
            plugin = getattr(import_module(f"pytest_evocode.plugin.{module}"), make)(session)
            if plugin is not None:
                config.pluginmanager.register(plugin, f"evocode-{name}")


def _plugins(session: EvocodeSession) -> Iterator[tuple[str, str, object]]:
    """Yield the name of each plugin, what makes it of the session, and whether it is wanted."""
    settings, runs = session.settings, session.plays
    reports = session.worker_input is None
    has_xdist = session.config.pluginmanager.hasplugin("xdist")
    builds_images = reports and runs and not (settings.check or settings.warm or settings.cluster is not None)
    on_github = os.environ.get("GITHUB_ACTIONS") == "true"
    yield "session", "session_hooks:SessionHooks", True
    yield "unknown-settings", "foreign_projects:UnknownSettings", True
    yield "collection", "collection:CollectionHooks", True
    yield "round-reports", "round_reports:RoundReports", True
    yield "worker", "xdist.worker:WorkerPlugin", not reports
    yield "controller", "xdist.controller:ControllerPlugin", reports and has_xdist
    yield "cluster", "cluster.driver:ClusterPlugin", settings.cluster is not None
    yield "jobs", "jobs:JobsPlugin", settings.jobs > 1
    yield "images-ahead", "warming:ImagesAheadPlugin", builds_images
    yield "next-attempt", "next_attempt:next_attempt", builds_images and settings.jobs == 1
    yield "inspection", "authors:RoundInspection", settings.holds_forks
    yield "pinning", "authors:PinPlugin", settings.pin and reports
    yield "single-cases", "authors:SingleCases", settings.case and reports
    yield "process", "process:ProcessPlugin", settings.process is not None
    yield "report", "report_files:HtmlReportPlugin", settings.report is not None and reports and runs
    yield "cached-checks", "checks:CachedChecks", settings.check and reports
    yield "dry-run", "dry_run:DryRun", session.config.getoption("evocode_dry_run")
    yield "warm-summary", "warming:WarmSummary", settings.warm and reports
    yield "reports", "report_files:ReportFiles", reports
    yield "github", "github:GitHubActions", reports and runs and on_github
    yield "live", "live:live_plugin", runs


_VERIFY = {
    "clean": "suites that would run where the agent works are judged in a clean environment",
    "in-place": "every test.sh runs where the agent works, and trusts the agent's system",
}


class SessionHooks:
    """Hooks around a whole session. Registered before our other plugins, so that its wrapper is the outermost."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session
        self._cluster = ""
        """The engine on the nodes of the session's cluster, in a line."""

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Find the environment and claim a name for the run before anything else is done."""
        config, evocode = session.config, self._session
        if not evocode.plays or evocode.worker_input is not None:
            return
        ending = EndingSignals()
        config.pluginmanager.register(ending)
        ending.handle(config)  # Before there are workers, which would inherit it where SIGINT is ignored.
        from pytest_evocode.environments.cache import cache_directory

        try:
            cache_directory()  # Whatever the engine, much is kept there.
            if not evocode.settings.warm:  # No agent works, and a key for its model may be elsewhere.
                evocode.roster.check(evocode.settings)
            if evocode.settings.cluster is not None:
                from pytest_evocode.plugin.cluster.driver import join_cluster

                evocode.elsewhere = cluster = join_cluster(evocode, evocode.settings.cluster)
                config.add_cleanup(cluster.close)
                self._cluster, engine, versions = cluster.description, cluster.engine, cluster.versions
            else:
                engine, versions = evocode.engine.name, dict(evocode.engine.versions)
        except EvocodeError as error:
            raise pytest.UsageError(evocode.scrubber.text(str(error))) from None
        if evocode.settings.check or evocode.settings.warm or evocode.settings.case:
            return
        try:
            evocode.run = SessionRun(config, evocode.settings, evocode.scrubber, engine, versions, evocode.conditions)
        except EvocodeError as error:
            raise pytest.UsageError(f"--evocode-resume: {error}") from None
        except OSError as error:
            raise pytest.UsageError(
                f"--evocode-results={evocode.settings.results}: cannot be written ({error.strerror}); "
                "name another directory"
            ) from None

    def pytest_report_header(self) -> list[str]:
        """Return which agents, which environment and why, and where results go."""
        return [self._session.scrubber.text(f"evocode: {line}") for line in self._header()]

    def _header(self) -> Iterator[str]:
        session, settings = self._session, self._session.settings
        names = ", ".join(
            f"{agent.name} as {agent.id}" if agent.id != agent_id(agent.name) else agent.name
            for agent in session.roster.agents
        )
        if settings.attempts > 1:
            names += f" ({settings.attempts} attempts each)"
        if settings.jobs > 1:
            names += f", {settings.jobs} attempts at once"
        if settings.shard is not None:
            names += ", shard {}/{}".format(*settings.shard)
        if settings.warm:
            yield f"warming tasks{f' for agent {names}' if names else ''}: no agent works, and no results are written"
        else:
            yield "checking tasks" if settings.check else f"agent {names}"
        foreign = foreign_projects(session.config)
        if foreign is not None and foreign.roots:
            shown = ", ".join(map(session.shown, foreign.roots))
            yield f"only the tasks of {shown}: settings, conftest.py files and tests there are not yours, and not used"
        if settings.protocol:
            from pytest_evocode.report.benchmark import describe_mode

            yield f"mode {settings.protocol}: {describe_mode(session.run_mode)}"
        if changed := session.describe_conditions():
            yield f"conditions {changed}"
        if settings.speculate:
            yield "speculating: turns begin ahead of verdicts, and are dropped if such a verdict ends the attempt"
        if settings.verify is not None:
            yield f"verify {settings.verify}: {_VERIFY[settings.verify]}"
        if settings.case:
            yield f"cases {' or '.join(settings.case)} only: no verdict, and nothing is recorded"
        if session.engine_reason:
            yield f"environment {session.engine.name} ({session.engine_reason}; {session.engine.description})"
        if settings.cluster is not None:
            yield f"cluster {settings.cluster}: {self._cluster}"
        if session.run is not None:
            or_new = ", or a new one" if settings.resume == AUTO else ""
            newest = f"the newest unfinished run of what is selected{or_new or ', else the newest'}"
            run = f"run {session.run_name}" if session.run_name else newest
            yield f"results {session.shown(settings.results)}, {run}"

    @pytest.hookimpl(tryfirst=True)
    def pytest_keyboard_interrupt(self, excinfo: pytest.ExceptionInfo[BaseException]) -> None:
        """Note that somebody ends the session; pytest calls it for ``pytest.exit`` too.

        Of the traceback only the line stays that pytest shows: it formats every entry, for which it parses the modules
        of all, and that takes each process longer than all that there is to clear away.
        """
        self._session.interrupted = True
        if not self._session.config.getoption("fulltrace", False):
            visible = excinfo.traceback.filter(excinfo)
            excinfo.traceback = visible[-1:] or excinfo.traceback

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Decide the exit status and write the run's record."""
        evocode, settings = self._session, self._session.settings
        waits = any(record.waiting for record in evocode.records)
        if settings.fail_under is not None and session.exitstatus in (0, 1) and evocode.records:
            from pytest_evocode.report.benchmark import reaches

            reached, line = reaches(settings.fail_under, evocode.records, evocode.run_mode, evocode.left_out_controls)
            if not reached:
                evocode.unmet.append(line)
            session.exitstatus = pytest.ExitCode(0 if reached and not evocode.errors else 1)
        elif waits and session.exitstatus == pytest.ExitCode.OK:
            from pytest_evocode.report.benchmark import waiting_line

            evocode.unmet.append(waiting_line(evocode.records, evocode.run_name))
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # Not all was run that was to be.
        if settings.shard is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            # There are more shards than attempts, which is no mistake.
            session.exitstatus = pytest.ExitCode.OK if evocode.selected else session.exitstatus
        try:
            return (yield)
        finally:  # Also where another plugin fails, such as one that cannot write its file.
            if evocode.run is not None:
                evocode.write_run(int(session.exitstatus))
                evocode.forget_connections()

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the benchmark, and what is left to be done."""
        session, settings = self._session, self._session.settings
        if session.records:
            from pytest_evocode.report.benchmark import benchmark_lines, waits_line

            terminalreporter.section("evocode benchmark")
            grid = terminalreporter.verbosity >= 0
            for line in benchmark_lines(
                session.records,
                session.run_mode,
                grid=grid,
                definitions=grid,
                fail_under=settings.fail_under,
                controls=session.left_out_controls,
                flaky=session.flaky_rounds,
            ):
                terminalreporter.write_line(printable(session.scrubber.text(line)))
            # What was verified before a session goes on with a run took none of its time.
            if grid and (line := waits_line(session.records)):
                terminalreporter.write_line(line)
            if grid and (session.run is None or session.run.is_new) and (line := session.describe_slots()):
                terminalreporter.write_line(line)
        if settings.shard is not None and session.run is not None:
            made = len(session.begun)
            every = len(session.selected)
            number, of = settings.shard
            terminalreporter.write_line(f"evocode: shard {number}/{of} made {made} of {every} attempts")
        waits = any(record.waiting for record in session.records)
        if waits:
            from pytest_evocode.report.benchmark import waiting_line

            terminalreporter.write_line(f"evocode: {waiting_line(session.records, session.run_name)}", yellow=True)
        unfinished = session.run.count_unfinished(interrupted=session.interrupted) if session.run is not None else 0
        if not waits and unfinished:
            attempts = "1 attempt is" if unfinished == 1 else f"{unfinished} attempts are"
            if elsewhere := session.snapshots_elsewhere:
                some = "its" if unfinished == 1 else "their" if elsewhere == unfinished else f"{elsewhere} of their"
                attempts += f" unfinished; {some} snapshots are missing here: bring them as the errors say, and then"
            else:
                attempts += " unfinished;"
            terminalreporter.write_line(
                f"evocode: {attempts} continue with --evocode-resume={session.run_name} while the task's "
                "files stay as they are, or drop what is kept for that with: evocode clean --kept"
            )


_AGAIN = 5.0  # seconds for pytest to notice that it is to end
_SIGNALS = (signal.SIGTERM, signal.SIGINT)


class EndingSignals:
    """Makes SIGTERM and SIGINT end the session, from :meth:`handle` until the configuration is undone.

    A session runs, is told to end, or ends. The first signal tells it, by an exception; those that follow say what
    it does and change nothing, whatever they are: CI services send SIGINT, SIGTERM and SIGKILL within seconds, and an
    exception between two teardowns would cost the reports. A session that ends by itself is not interrupted either.

    SIGTERM by itself would skip every teardown and leave containers behind. SIGINT is ignored in background jobs of a
    shell and of some CI runners.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._noticed = threading.Event()
        self._told: signal.Signals | None = None
        self._repeating = False

    def handle(self, config: pytest.Config) -> None:
        """Install the handlers."""
        previous = {number: signal.signal(number, self._take) for number in _SIGNALS}

        def restore() -> None:
            for number, handler in previous.items():
                # What follows now would take the exit code from a session that has ended.
                signal.signal(number, signal.SIG_IGN if self._told else handler or signal.SIG_DFL)

        config.add_cleanup(restore)
        config.add_cleanup(self._notice)  # Before the handlers are taken away: what is added last is called first.

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Note that the session ends, which nothing may interrupt, and set its exit code."""
        self._notice()
        # Not by ``pytest.exit``: pytest prints no summary of a session with an exit code that is none of its own.
        if self._told == signal.SIGTERM and session.exitstatus == pytest.ExitCode.INTERRUPTED:
            session.exitstatus = 128 + self._told

    def pytest_keyboard_interrupt(self) -> None:
        """Note that the session ends; pytest calls it for ``pytest.exit`` too."""
        self._notice()

    def _take(self, number: int, frame: FrameType | None) -> None:
        if self._noticed.is_set() or (self._told is not None and not self._repeating):
            self._told = self._told or signal.Signals(number)
            with contextlib.suppress(OSError):
                # Not by print: it may be a write that the signal interrupted.
                os.write(2, b"\nevocode: the session is ending, and writes what it has; kill it to lose that\n")
            return
        self._repeating = False
        if self._told is None:
            self._told = signal.Signals(number)
            # What a handler raises is lost where it runs in a callback of the garbage collector or of an import, or
            # where somebody catches every exception; the session would then wait for whatever it waited for.
            threading.Thread(target=self._repeat, name="ending-signal", daemon=True).start()
        if self._told == signal.SIGINT:
            raise KeyboardInterrupt
        pytest.exit(f"stopped by {self._told.name}", returncode=pytest.ExitCode.INTERRUPTED)

    def _repeat(self) -> None:
        while not self._noticed.wait(_AGAIN):
            with self._lock:  # The handler is not taken away meanwhile.
                if not self._noticed.is_set() and self._told is not None:
                    self._repeating = True
                    os.kill(os.getpid(), self._told)

    def _notice(self) -> None:
        with self._lock:
            self._noticed.set()
