"""How tasks look to pytest: TaskDirectory > TaskFile > AttemptCollector > RoundItem."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import AttemptEnded, EnvironmentFault, RoundFailed, TaskError
from pytest_evocode.names import attempt_name
from pytest_evocode.plugin.longrepr import failure_of
from pytest_evocode.report.failed_round import describe_failure
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.secrets import Scrubber

if TYPE_CHECKING:
    from pytest_evocode.environments import Environment
    from pytest_evocode.plugin.session import SessionPlugin
    from pytest_evocode.plugin.session_agents import SessionAgent
    from pytest_evocode.tasks import Task
    from pytest_evocode.trial.trial import Trial

TASK_FILE = "task.toml"


class TaskDirectory(pytest.Directory):
    """A directory with a task.toml: nothing else below it is looked at, let alone imported."""

    def collect(self) -> Iterable[pytest.Collector]:
        """The task file only."""
        yield TaskFile.from_parent(self, path=self.path / TASK_FILE)


class InsideTask(pytest.Directory):
    """A directory in a task that pytest was started in, with nothing above it in its reach."""

    def collect(self) -> Iterable[pytest.Collector]:
        """Nothing: say what to do instead."""
        task = _innermost_task(self.path)
        raise self.CollectError(f"{self.path} belongs to the task {task}; start pytest there or above")


class TaskFile(pytest.File):
    """A task.toml; its children are the attempts."""

    def collect(self) -> Iterable[pytest.Collector]:
        """One attempt for each agent and number, or the checks; a broken task is a collection error of its own."""
        from pytest_evocode.tasks import load_task

        plugin = _plugin(self.config)
        if plugin.settings.check:
            yield plugin.make_checks(self)
            return
        try:
            task = load_task(self.path.parent)
        except TaskError as error:
            raise self.CollectError(plugin.scrubber.text(str(error))) from None
        first = self._first_round(task, plugin.settings.from_round)
        for agent in plugin.agents:
            for number in range(1, plugin.settings.attempts + 1):
                yield AttemptCollector.from_parent(
                    self,
                    name=attempt_name(agent.id, number),
                    agent=agent,
                    number=number,
                    task=task,
                    first=first,
                )

    def _first_round(self, task: Task, name: str | None) -> int | None:
        names = [round_.name for round_ in task.rounds]
        if name is not None and name not in names:
            raise self.CollectError(
                f"--evocode-from={name}: {task.name} has no such round; its rounds are {', '.join(names)}"
            )
        return None if name is None else names.index(name) + 1


class AttemptCollector(pytest.Collector):
    """One run of one agent through one task; the rounds below it share its container.

    In single-round mode each of them has one of its own.
    """

    def __init__(
        self, *, agent: SessionAgent, number: int, task: Task, first: int | None = None, **kwargs: Any
    ) -> None:
        super().__init__(**kwargs)
        self.agent = agent
        self.number = number
        self.task = task
        self.first = first
        """The index of the round that ``--evocode-from`` names."""
        self.trial: Trial | None = None
        self.wanted = len(task.rounds)
        self.through = 0
        """Indices of the first and the last round that were selected."""
        self._rounds: list[RoundItem] = []

    def collect(self) -> list[RoundItem]:
        """The rounds, the same objects at every call."""
        if not self._rounds:
            pytest.register_fixture(name="evocode_container", func=_container_fixture(self), node=self, scope="session")
            subtests = _plugin(self.config).settings.cases == "subtests"
            shared: dict[str, Any] = {}
            for round_ in self.task.rounds:
                item = RoundItem.from_parent(
                    self,
                    name=round_.name,
                    callobj=_check_with_subtests if subtests else _check,
                    index=round_.index,
                    **shared,
                )
                # The same for all rounds of an attempt, and half the time of collecting them.
                shared = {"fixtureinfo": item._fixtureinfo}
                self._rounds.append(item)
        return self._rounds

    @property
    def is_chain(self) -> bool:
        """Whether rounds go on where the ones before them ended."""
        return _plugin(self.config).settings.mode != "single-round"

    def setup(self) -> None:
        """Start the trial of a chain; pytest calls this before the first selected round."""
        if self.is_chain:
            self.begin()

    def begin(self, alone: RoundItem | None = None) -> None:
        """Start a trial, of all rounds that were selected or of one."""
        self.trial = _plugin(self.config).start_trial(self, alone)

    def teardown(self) -> None:
        """End the trial, finished or not."""
        trial, self.trial = self.trial, None
        if trial is not None:
            fault = ""
            try:
                trial.close()
            except EnvironmentFault as error:
                fault = str(error)
            if fault:  # Out here, or pytest would show where the error comes from.
                pytest.fail(fault, pytrace=False)


def _container_fixture(attempt: AttemptCollector) -> Callable[[pytest.FixtureRequest], Environment | None]:
    """A session-scoped fixture of the attempt's own, so that what depends on it lives as long as the container."""

    def evocode_container(request: pytest.FixtureRequest) -> Environment | None:
        """The environment that the rounds of this attempt share; None where it had ended in an earlier session."""
        definition = request._fixturedef  # type: ignore[attr-defined]
        owner = attempt if attempt.is_chain else request._pyfuncitem
        owner.addfinalizer(lambda: definition.finish(request))
        assert attempt.trial is not None
        try:
            return attempt.trial.wait_environment()
        except AttemptEnded:
            return None

    return evocode_container


class RoundItem(pytest.Function):
    """One round of an attempt. Its set-up waits for the verdict, its call fails when the verdict is not a pass."""

    parent: AttemptCollector

    def __init__(self, *, index: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.index = index
        self.record: RoundRecord | None = None

    def setup(self) -> None:
        """Wait for the round's record.

        Here and not in the call, because what is nobody's verdict has to be an error, and pytest calls a failure an
        error when it happens in set-up.
        """
        if not self.parent.is_chain:
            self.parent.begin(self)
        trial = self.parent.trial
        assert trial is not None
        if self.index <= (known := trial.begun_after()):
            pytest.skip(f"not needed: the reference state after {self.parent.task.rounds[known - 1].name} is known")
        self.record = record = trial.wait(self.index)
        self.user_properties += report_properties(record, _plugin(self.config).settings.protocol)
        if record.outcome == "not reached":
            pytest.skip(f"not reached: {record.cause}")
        if record.outcome == "error":
            pytest.fail(record.cause, pytrace=False)
        super().setup()

    def teardown(self) -> None:
        """End the trial that is this round's alone."""
        super().teardown()
        if not self.parent.is_chain:
            self.parent.teardown()

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """The failing cases in place of a traceback."""
        if isinstance(excinfo.value, RoundFailed):
            record = _record_of(self)
            return failure_of(self, describe_failure(record, _plugin(self.config).output_of(record)))
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Where reports say the round is."""
        return self.path, 0, f"{self.parent.task.name} {self.parent.name} {self.name}"


def _check(request: pytest.FixtureRequest, evocode_container: Environment | None) -> None:
    """The test that every round is."""
    record = _record_of(request.node)
    if not record.passed:
        raise RoundFailed(f"{record.round} failed")


def _check_with_subtests(
    request: pytest.FixtureRequest, evocode_container: Environment | None, subtests: pytest.Subtests
) -> None:
    """The same with every case a subtest."""
    record = _record_of(request.node)
    for case in record.verdict.cases if record.verdict else ():
        with subtests.test(case.id):
            if case.status == "skipped":
                pytest.skip(case.reason or "skipped by the suite")
            if case.failing:
                pytest.fail(
                    case.reason or f"{case.failure}: expected {case.expected!r}, got {case.actual!r}", pytrace=False
                )
    if not record.passed:
        raise RoundFailed(f"{record.round} failed")


def _record_of(item: RoundItem) -> RoundRecord:
    assert item.record is not None
    return item.record


def _plugin(config: pytest.Config) -> SessionPlugin:
    plugin: SessionPlugin | None = config.pluginmanager.get_plugin("evocode-session")
    assert plugin is not None
    return plugin


def outside_tasks(config: pytest.Config, paths: Sequence[str]) -> list[str]:
    """Paths as on the command line, with those inside a task replaced by the directory that holds the task.

    From the paths it is called with pytest loads the conftest files there and in ``test*`` below, before it collects;
    in a task those are the verifier's own and belong into a container.
    """
    moved = []
    for path in paths:
        absolute = Path(os.path.abspath(config.invocation_params.dir / path.split("::")[0]))
        inside = [directory for directory in (absolute, *absolute.parents) if (directory / TASK_FILE).is_file()]
        moved.append(str(inside[-1].parent) if inside else path)
        for directory in Path(config.invocation_params.dir, moved[-1].split("::")[0]).glob("test*"):
            if (directory / TASK_FILE).is_file():
                keep_out_conftest(config, directory)
    return moved


def _innermost_task(path: Path) -> Path | None:
    return next((directory for directory in (path, *path.parents) if (directory / TASK_FILE).is_file()), None)


def collector_of(path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """The collector of a directory that is a task or lies in one, None for any other."""
    task = _innermost_task(path)
    if task is None:
        return None
    keep_out_conftest(parent.config, path)
    kind = TaskDirectory if task == path else InsideTask
    collector: pytest.Collector = kind.from_parent(parent, path=path)
    return collector


def keep_out_conftest(config: pytest.Config, directory: Path) -> None:
    """Have pytest take the conftest.py of a directory for loaded, and use those of the directories above there."""
    plugins = config.pluginmanager
    plugins._dirpath2confmods[directory] = list(plugins._getconftestmodules(directory.parent))


def restore_rounds(items: Sequence[pytest.Item]) -> tuple[list[pytest.Item], list[pytest.Item]]:
    """The items with the rounds of every chain together, in order, from the first to the last that was selected.

    And those that are left out, because they come before the round that chains begin with.
    """
    restored: list[pytest.Item] = []
    left_out: list[pytest.Item] = []
    counting: list[pytest.Item] = []
    for item in items:
        early = isinstance(item, RoundItem) and item.index < (item.parent.first or 1)
        (left_out if early else counting).append(item)
    seen: set[AttemptCollector] = set()
    for item in counting:
        if isinstance(item, RoundItem):
            item.parent.wanted = min(item.parent.wanted, item.index)
            item.parent.through = max(item.parent.through, item.index)
    for item in counting:
        if not isinstance(item, RoundItem) or not item.parent.is_chain:
            restored.append(item)
        elif item.parent not in seen:
            seen.add(item.parent)
            restored += item.parent.collect()[(item.parent.first or 1) - 1 : item.parent.through]
    return restored, left_out


def report_properties(record: RoundRecord, said: str) -> list[tuple[str, Any]]:
    """The user properties of a round's reports: its record, its cases by themselves, and the mode where it is special.

    ``said`` is the mode's :func:`~pytest_evocode.names.protocol`.
    """
    values = record.model_dump(mode="json", exclude={"verdict": {"cases"}})
    cases = record.verdict.cases if record.verdict else ()
    return [
        ("evocode", values),
        ("evocode_cases", [case.model_dump(mode="json", exclude_defaults=True) for case in cases]),
        *([("evocode_mode", said)] if said else []),
    ]


def shape_report(item: RoundItem, report: pytest.TestReport) -> None:
    """Give a round's report the times of its own work, and a skip the place of the task."""
    if report.skipped and report.when == "setup" and isinstance(report.longrepr, tuple):
        report.longrepr = (str(item.path), 1, report.longrepr[2])
    if report.when == "call" and item.record is not None:
        # What pytest measured is how long it waited, which is less where rounds overlap and all of it in set-up.
        report.duration = (item.record.agent_seconds or 0.0) + (item.record.verifier_seconds or 0.0)


def scrub_report(report: pytest.TestReport, scrubber: Scrubber) -> None:
    """Take secrets out of what a report shows besides the record: exceptions of fixtures, captured output, places."""
    report.sections = scrubbed(report.sections, scrubber)
    if extra := getattr(report, "_json_report_extra", None):  # pytest-json-report's, with all that was logged.
        report._json_report_extra = scrubbed(extra, scrubber)  # type: ignore[attr-defined]
    if report.longrepr is not None:
        report.longrepr = _scrubbed_repr(report.longrepr, scrubber)


def _scrubbed_repr(shown: Any, scrubber: Scrubber) -> Any:
    """One of pytest's representations, which are dataclasses of texts all the way down; plain texts by themselves."""
    if isinstance(shown, str):
        return scrubber.text(shown)
    if isinstance(shown, list | tuple):
        return type(shown)(_scrubbed_repr(part, scrubber) for part in shown)
    if dataclasses.is_dataclass(shown):
        for name, value in vars(shown).items():
            setattr(shown, name, _scrubbed_repr(value, scrubber))
    return shown
