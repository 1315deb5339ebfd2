"""What one pytest session shares: settings, the engine, the run's record, and the hooks that need them."""

from __future__ import annotations

import contextlib
import os
import signal
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import EvocodeError, TaskError
from pytest_evocode.plugin.collection import (
    TASK_FILE,
    AttemptCollector,
    RoundItem,
    collector_of,
    restore_rounds,
    scrub_report,
    shape_report,
)
from pytest_evocode.plugin.options import read_settings
from pytest_evocode.plugin.run import SessionRun
from pytest_evocode.plugin.session_agents import Roster, SessionAgent
from pytest_evocode.plugin.sharding import Selected, split
from pytest_evocode.results.records import RoundRecord, RunRecord
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.secrets import Scrubber

if TYPE_CHECKING:
    from pytest_evocode.checks.catalogue import Check
    from pytest_evocode.checks.runner import CheckRunner
    from pytest_evocode.environments import Engine
    from pytest_evocode.metrics.modes import RunMode
    from pytest_evocode.plugin.checks import Checks
    from pytest_evocode.tasks import Task
    from pytest_evocode.trial.trial import Trial


class SessionPlugin:
    """Registered late and only in sessions that run tasks, so that its wrappers are the outermost."""

    name = "evocode-session"

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = read_settings(config)
        self.scrubber = Scrubber()
        """Goes over all that this session prints and writes."""
        self._roster = Roster(config, self.settings)
        self._records: dict[tuple[str, str, int, int], RoundRecord] = {}
        self._worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
        self._engine: Engine | None = None
        self._trial: Trial | CheckRunner | None = None
        self._why = ""
        self._run: SessionRun | None = None
        self.selected: Selected = {}
        """The attempts that are to be made, those of other shards too, once tasks have been collected."""
        self._errors = 0
        self._foreign_collection_errors = 0

    @property
    def agents(self) -> list[SessionAgent]:
        """Those that attempts are made of, in the order given."""
        return self._roster.agents

    @property
    def records(self) -> list[RoundRecord]:
        """All rounds of the session so far, in the process that reports; in an order that does not come of workers."""
        if self.config.pluginmanager.hasplugin("dsession"):
            return [record for _, record in sorted(self._records.items())]
        return list(self._records.values())

    @property
    def run_mode(self) -> RunMode:
        """How the session's attempts go through the rounds."""
        from pytest_evocode.metrics.modes import RunMode

        return RunMode(self.settings.mode, self.settings.from_round)

    # What collection and trials ask for.

    @property
    def engine(self) -> Engine:
        """The engine of this process, made on first use; raises EnvironmentUnavailable or UsageError."""
        if self._engine is None:
            from pytest_evocode.environments import choose_engine

            hidden = [self.config.rootpath, self.settings.results, self.config.invocation_params.dir]
            self._engine, self._why = choose_engine(self.settings.environment, hidden=hidden)
            # Not at the session's end: one that is refused after this has none.
            self.config.add_cleanup(self._engine.close)
        return self._engine

    def start_trial(self, attempt: AttemptCollector, alone: RoundItem | None = None) -> Trial:
        """Start an attempt's trial, through the last round that was selected, or that of one round by itself."""
        from pytest_evocode.llm.budget import RunSpending
        from pytest_evocode.results.directory import AttemptDirectory
        from pytest_evocode.trial.trial import Trial, TrialOptions

        declared = attempt.task.config.environment.model_fields_set
        if ignored := [key for key in self.engine.without_effect if key in declared]:
            attempt.warn(
                pytest.PytestWarning(f"{attempt.path}: no effect in the {self.engine.name}: {', '.join(ignored)}")
            )
        if not self.settings.pin:
            self._warn_of_stale_pins(attempt)
        directory = AttemptDirectory.of(
            self.settings.results,
            attempt.task.name,
            attempt.agent.id,
            self.run_name,
            attempt.number,
            self.scrubber,
            alone=alone.name if alone is not None else "",
        )
        trial = Trial(
            attempt.task,
            self._roster.make(attempt.agent),
            self.engine,
            name=attempt.agent.id,
            attempt=attempt.number,
            wanted=attempt.wanted if alone is None else alone.index,
            through=attempt.through if alone is None else alone.index,
            first=attempt.first if alone is None else alone.index,
            directory=directory,
            options=TrialOptions(
                mode=self.settings.mode,
                agent=attempt.agent.description,
                budget=self.settings.budget,
                run_spending=RunSpending(self.settings.results / "runs" / f"{self.run_name}.spent"),
                timeout_multiplier=self.settings.timeout_multiplier,
                references=not self.settings.replay,
                hold_forks=self.settings.holds_forks,
                keep_snapshots=self.settings.snapshots,
                verifiers=self.settings.verifiers,
                strict=self.settings.strict,
                # What a worker finds of this run is from one that was lost.
                resume=self.settings.resume is not None or self._worker_input is not None,
            ),
        )
        self._trial = trial
        return trial.__enter__()

    def _warn_of_stale_pins(self, attempt: AttemptCollector) -> None:
        from pytest_evocode.tasks.lockfile import read_pins

        with contextlib.suppress(TaskError):  # The attempt says what is wrong with it.
            if (stale := read_pins(attempt.task.directory).stale) is not None:
                message = f"{stale}: stale, the task has changed since; pin it again with --evocode-pin"
                attempt.warn(pytest.PytestWarning(message))

    def make_checks(self, file: pytest.File) -> Checks:
        """The checks of a task, in place of attempts."""
        from pytest_evocode.plugin.checks import CHECK, Checks
        from pytest_evocode.tasks import load_task

        task: Task | TaskError
        try:
            task = load_task(file.path.parent)
        except TaskError as error:
            task = error
        checks: Checks = Checks.from_parent(file, name=CHECK, task=task, make_runner=self._make_runner)
        return checks

    def _make_runner(self, task: Task, checks: list[Check]) -> CheckRunner:
        from pytest_evocode.checks.runner import CheckRunner

        self._trial = CheckRunner(
            task,
            self.engine,
            checks,
            environ=os.environ,
            timeout_multiplier=self.settings.timeout_multiplier,
            verifiers=self.settings.verifiers,
        )
        return self._trial

    def close_trial(self) -> None:
        """End the attempt or the checks under way, if there are any."""
        if self._trial is not None:
            self._trial.close()

    @property
    def run(self) -> RunRecord | None:
        """The run's record as far as it goes; None in a worker, and where none is written."""
        return self._run.record if self._run is not None else None

    @property
    def run_name(self) -> str:
        """The session's name in the results directory, the same in all its processes; empty where it writes none."""
        if self._worker_input is not None:
            return str(self._worker_input["evocode_run"])
        return self._run.name if self._run is not None else ""

    def output_of(self, record: RoundRecord) -> Path:
        """Where the output of a round's suite was written."""
        from pytest_evocode.results.directory import AttemptDirectory

        directory = AttemptDirectory.of(self.settings.results, record.task, record.agent, self.run_name, record.attempt)
        return directory.verifier_output(record.round)

    # Hooks: collection.

    def pytest_collect_directory(self, path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        """Take task directories over."""
        return collector_of(path, parent)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """Count what could not be collected, and whether it was only tasks."""
        if report.failed:
            self._errors += 1
            self._foreign_collection_errors += not report.nodeid.endswith(TASK_FILE)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection_modifyitems(
        self, config: pytest.Config, items: list[pytest.Item]
    ) -> Generator[None, object, object]:
        """After everybody's selection and ordering, bring the rounds before a selected one along, in order."""
        result = yield
        if self.settings.check:
            from pytest_evocode.plugin.checks import keep_together

            items[:] = keep_together(items)
        else:
            restored, left_out = restore_rounds(items)
            items[:], others, selected = split(restored, self.settings.shard)
            if left_out or others:
                config.hook.pytest_deselected(items=[*left_out, *others])
            self.select(selected)
        return result

    def select(self, selected: Selected) -> None:
        """Take note of the attempts that are to be made, in all shards."""
        self.selected = selected
        if self._run is not None:
            self._run.select(selected)

    def pytest_collection_finish(self) -> None:
        """Let the sound tasks run beside a broken one, as long as nothing else is broken."""
        if self._errors and not self._foreign_collection_errors:
            self.config.option.continue_on_collection_errors = True

    # Hooks: the session.

    def pytest_sessionstart(self) -> None:
        """Find the environment and claim a name for the run before anything else is done."""
        if self.config.option.collectonly or self._worker_input is not None:
            return
        try:
            self._roster.check(self.settings)
            engine = self.engine
        except EvocodeError as error:
            raise pytest.UsageError(self.scrubber.text(str(error))) from None
        _exit_on_sigterm(self.config)
        if self.settings.check:
            return
        try:
            self._run = SessionRun(self.config, self.settings, self.scrubber, environment=engine.name)
        except EvocodeError as error:
            raise pytest.UsageError(f"--evocode-resume: {error}") from None
        except OSError as error:
            raise pytest.UsageError(
                f"--evocode-results={self.settings.results}: cannot be written ({error.strerror}); "
                "name another directory"
            ) from None

    def pytest_report_header(self) -> list[str]:
        """Which agents, which environment and why, where results go."""
        names = ", ".join(agent.name for agent in self.agents)
        if self.settings.attempts > 1:
            names += f" ({self.settings.attempts} attempts each)"
        if self.settings.shard is not None:
            names += ", shard {}/{}".format(*self.settings.shard)
        lines = ["evocode: checking tasks" if self.settings.check else f"evocode: agent {names}"]
        if said := self.settings.protocol:
            from pytest_evocode.report.benchmark import describe_mode

            lines.append(f"evocode: mode {said}: {describe_mode(self.run_mode)}")
        if self._engine is not None:
            lines.append(f"evocode: environment {self.engine.name} ({self._why}; {self.engine.description})")
        if self._run is not None:
            lines.append(f"evocode: results {self._shown(self.settings.results)}, run {self.run_name}")
        return [self.scrubber.text(line) for line in lines]

    def _shown(self, path: Path) -> str:
        """A path as short as it can be said from where pytest was started."""
        relative = os.path.relpath(path, self.config.invocation_params.dir)
        return str(path) if relative.startswith("..") else relative

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Shape the reports of rounds."""
        if isinstance(item, RoundItem):
            # What was captured goes into other plugins' records from here, beside the report.
            item._report_sections[:] = scrubbed(item._report_sections, self.scrubber)
        report = yield
        if isinstance(item, RoundItem):
            shape_report(item, report)
        return report

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Gather records from reports, which also come from xdist workers; count what is no verdict.

        Before anybody else sees a report, the one of a subtest too, the host's secrets are taken out.
        """
        if f"{TASK_FILE}::" in report.nodeid:
            scrub_report(report, self.scrubber)
        properties = dict(report.user_properties)
        if report.failed and (report.when != "call" or "evocode" not in properties):
            self._errors += 1
        if report.when == "setup" and "evocode" in properties:
            record = record_from(properties)
            # A round is reported anew when its worker was lost in the middle of reporting it.
            self._records[record.task, record.agent, record.attempt, record.index] = record

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> Generator[None, object, object]:
        """Decide the exit status and write the run's record."""
        if self.settings.fail_under is not None and session.exitstatus in (0, 1) and self.records:
            from pytest_evocode.report.benchmark import lowest_score

            reached = lowest_score(self.records, self.run_mode) >= self.settings.fail_under
            session.exitstatus = pytest.ExitCode(0 if reached and not self._errors else 1)
        if self.settings.shard is not None and session.exitstatus == pytest.ExitCode.NO_TESTS_COLLECTED:
            # There are more shards than attempts, which is nobody's mistake.
            session.exitstatus = pytest.ExitCode.OK if self.selected else session.exitstatus
        result = yield
        if self._run is not None:
            self._run.write(self.records, int(session.exitstatus))
        return result

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the benchmark."""
        if self.records:
            from pytest_evocode.report.benchmark import benchmark_lines

            terminalreporter.section("evocode benchmark")
            grid = terminalreporter.verbosity >= 0
            least = self.settings.fail_under
            for line in benchmark_lines(self.records, self.run_mode, grid=grid, fail_under=least):
                terminalreporter.write_line(self.scrubber.text(line))
        if (shard := self.settings.shard) is not None and self._run is not None:
            made = len({(record.task, record.agent, record.attempt) for record in self.records})
            every = sum(len(numbers) for agents in self.selected.values() for numbers in agents.values())
            terminalreporter.write_line(f"evocode: shard {shard[0]}/{shard[1]} made {made} of {every} attempts")
        if self._run is not None and (unfinished := self._run.count_unfinished()):
            attempts = "1 attempt is" if unfinished == 1 else f"{unfinished} attempts are"
            terminalreporter.write_line(
                f"evocode: {attempts} unfinished; continue with --evocode-resume={self.run_name}, "
                "or drop what is kept for that with: evocode clean --kept"
            )


def record_from(properties: dict[str, Any]) -> RoundRecord:
    """A round's record out of its report's user properties."""
    values = dict(properties["evocode"])
    if values["verdict"] is not None:
        values["verdict"] = {**values["verdict"], "cases": properties["evocode_cases"]}
    return RoundRecord.model_validate(values)


def _exit_on_sigterm(config: pytest.Config) -> None:
    """Without this, SIGTERM would skip every teardown and leave containers behind."""

    def leave(number: int, frame: object) -> None:
        pytest.exit(f"stopped by {signal.Signals(number).name}", returncode=128 + number)

    def restore() -> None:
        signal.signal(signal.SIGTERM, previous or signal.SIG_DFL)

    previous = signal.signal(signal.SIGTERM, leave)
    config.add_cleanup(restore)
