"""The start and the end of a session: header, the run's record, exit status and the printed benchmark."""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path

import pytest

from pytest_evocode.errors import EvocodeError
from pytest_evocode.names import agent_id
from pytest_evocode.plugin.connections import forget_connections
from pytest_evocode.plugin.ending_signals import EndingSignals
from pytest_evocode.plugin.run import SessionRun
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.report.printable import printable

_VERIFY = {
    "clean": "suites that would run where the agent works are judged in a clean environment",
    "in-place": "every test.sh runs where the agent works, and trusts the agent's system",
}


class SessionHooks:
    """Hooks around a whole session. Registered before our other plugins, so that its wrapper is the outermost."""

    def __init__(self, session: EvocodeSession) -> None:
        self._session = session

    def pytest_sessionstart(self, session: pytest.Session) -> None:
        """Find the environment and claim a name for the run before anything else is done."""
        config, evocode = session.config, self._session
        if config.option.collectonly or evocode.worker_input is not None:
            return
        ending = EndingSignals()
        config.pluginmanager.register(ending)
        ending.handle(config)  # Before there are workers, which would inherit it where SIGINT is ignored.
        try:
            if not evocode.settings.warm:  # No agent works, and a key for its model may be elsewhere.
                evocode.roster.check(evocode.settings)
            if evocode.settings.cluster is not None:
                environment = self._join_cluster(config, evocode.settings.cluster)
            else:
                environment = evocode.engine.name, evocode.engine.versions
        except EvocodeError as error:
            raise pytest.UsageError(evocode.scrubber.text(str(error))) from None
        if evocode.settings.check or evocode.settings.warm or evocode.settings.case:
            return
        try:
            evocode.run = SessionRun(config, evocode.settings, evocode.scrubber, *environment)
        except EvocodeError as error:
            raise pytest.UsageError(f"--evocode-resume: {error}") from None
        except OSError as error:
            raise pytest.UsageError(
                f"--evocode-results={evocode.settings.results}: cannot be written ({error.strerror}); "
                "name another directory"
            ) from None

    def _join_cluster(self, config: pytest.Config, name: str) -> tuple[str, Mapping[str, str]]:
        """Join the cluster that makes the attempts, and return the engine's name there and versions of what it is.

        Raises:
            EvocodeError: It cannot be joined, or can make no attempts.
        """
        from pytest_evocode.plugin.cluster.driver import join_cluster

        cluster = join_cluster(self._session, name)
        self._session.cluster = cluster
        config.add_cleanup(cluster.close)
        return cluster.engine, cluster.versions

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
        if settings.shard is not None:
            names += ", shard {}/{}".format(*settings.shard)
        if settings.warm:
            yield f"warming tasks{f' for agent {names}' if names else ''}: no agent works, and no results are written"
        else:
            yield "checking tasks" if settings.check else f"agent {names}"
        if settings.protocol:
            from pytest_evocode.report.benchmark import describe_mode

            yield f"mode {settings.protocol}: {describe_mode(session.run_mode)}"
        if settings.speculate:
            yield "speculating: turns begin ahead of verdicts, and are dropped if such a verdict ends the attempt"
        if settings.verify is not None:
            yield f"verify {settings.verify}: {_VERIFY[settings.verify]}"
        if settings.case:
            yield f"cases {' or '.join(settings.case)} only: no verdict, and nothing is recorded"
        if session.engine_reason:
            yield f"environment {session.engine.name} ({session.engine_reason}; {session.engine.description})"
        if session.cluster is not None:
            yield f"cluster {settings.cluster}: {session.cluster.description}"
        if session.run is not None:
            run = f"run {session.run_name}" if session.run_name else "the newest unfinished run of what is selected"
            yield f"results {self._shown(settings.results)}, {run}"

    def _shown(self, path: Path) -> str:
        """Return a path as short as it can be written from where pytest was started."""
        relative = os.path.relpath(path, self._session.config.invocation_params.dir)
        return str(path) if relative.startswith("..") else relative

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Decide the exit status and write the run's record."""
        evocode, settings = self._session, self._session.settings
        waits = any(record.waiting for record in evocode.records)
        if settings.fail_under is not None and session.exitstatus in (0, 1) and evocode.records:
            from pytest_evocode.report.benchmark import lowest_score

            lowest = lowest_score(evocode.records, evocode.run_mode)
            reached = not waits and lowest is not None and lowest >= settings.fail_under
            session.exitstatus = pytest.ExitCode(0 if reached and not evocode.errors else 1)
        elif waits and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED  # Not all was run that was to be.
        if settings.shard is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            # There are more shards than attempts, which is no mistake.
            session.exitstatus = pytest.ExitCode.OK if evocode.selected else session.exitstatus
        result = yield
        if evocode.run is not None:
            evocode.run.write(evocode.records, evocode.begun, int(session.exitstatus))
            if evocode.run_name:
                forget_connections(settings.results, evocode.run_name)
        return result

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
                fail_under=settings.fail_under,
                flaky=session.flaky_rounds,
            ):
                terminalreporter.write_line(printable(session.scrubber.text(line)))
            # What was verified before a session goes on with a run took none of its time.
            if grid and (line := waits_line(session.records)):
                terminalreporter.write_line(line)
            if grid and settings.resume is None and (line := session.describe_slots()):
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
        if not waits and session.run is not None and (unfinished := session.run.count_unfinished()):
            attempts = "1 attempt is" if unfinished == 1 else f"{unfinished} attempts are"
            terminalreporter.write_line(
                f"evocode: {attempts} unfinished; continue with --evocode-resume={session.run_name}, "
                "or drop what is kept for that with: evocode clean --kept"
            )
