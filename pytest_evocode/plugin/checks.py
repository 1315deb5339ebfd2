"""The checks of tasks (``--evocode-check``) as pytest sees them: ``task.toml::check::needs-work[round-3]``."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.checks.catalogue import LINT, Answer, Check, CheckWarning, checks_of
from pytest_evocode.errors import CannotBeChecked, CheckFailed, EvocodeError, TaskError
from pytest_evocode.plugin.session import EvocodeSession, session_of
from pytest_evocode.plugin.side_by_side import TaskCollector, TaskItem
from pytest_evocode.report.printable import printable
from pytest_evocode.tasks import Task

if TYPE_CHECKING:
    from pytest_evocode.checks.runner import CheckRunner
    from pytest_evocode.trial.context import TrialOptions

#: The name of the collector that a task's checks are below.
CHECK = "check"
_CACHED = "evocode_cached"
"""The property of items whose check an earlier session made."""


class CheckCollector(TaskCollector):
    """The checks of one task; those that are selected share the rounds that are run for them."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.task: Task | TaskError
        """The task, or why it cannot be loaded."""
        try:
            self.task = session_of(self.config).settings.load(self.path.parent)
        except TaskError as error:
            self.task = error
        self._runner: CheckRunner | None = None
        self._selected: list[Check] = []
        self._told: dict[str, Check] = {}
        """The check that reported it, by the cause of its having no result."""

    def collect(self) -> Iterable[pytest.Item]:
        """Yield an item for each check; of a task that cannot be loaded only the one that says why."""
        checks = [LINT] if isinstance(self.task, TaskError) else checks_of(self.task)
        for check in checks:
            # With the id as a text pytest parses the brackets in it, as it does with the ids in its cache (--lf).
            yield CheckItem.from_parent(self, name=str(check), nodeid=f"{self.nodeid}::{check}", check=check)

    def make_runner(self, session: EvocodeSession, options: TrialOptions, *, anew: bool) -> CheckRunner | None:
        """Return what makes the selected checks, but for that of the files, which needs nothing."""
        self._selected = [item.check for item in self.selected if isinstance(item, CheckItem)]
        run = [check for check in self._selected if check != LINT]
        if not run or isinstance(self.task, TaskError):
            return None
        from pytest_evocode.checks.runner import CheckRunner

        return CheckRunner(self.task, session.engine, run, options, anew=anew)

    def answer(self, check: Check) -> Answer:
        """Wait for a check and return what came of it; raises EvocodeError if it cannot be made."""
        if isinstance(self.task, TaskError):
            raise self.task
        if check == LINT:
            from pytest_evocode.checks.lint import lint

            return Answer(lint(self.task))
        assert self._runner is not None
        return self._runner.answer(check)

    def told_by(self, check: Check, cause: EvocodeError) -> Check:
        """Return the selected check that reports why ``check`` has no result; that is itself if no other does."""
        teller = Check(cause.told_by) if isinstance(cause, CannotBeChecked) else None
        # It may have been passed, in an earlier session or by a suite that fails now and then.
        if teller in self._selected and (teller == check or self._is_reported(teller)):
            return teller
        return self._told.setdefault(str(cause), check)

    def _is_reported(self, check: Check) -> bool:
        """Wait for a check and return whether it fails or is an error."""
        try:
            return any(not isinstance(line, CheckWarning) for line in self.answer(check).found)
        except EvocodeError:
            return True


class CheckItem(TaskItem):
    """One check of a task. It fails if the task has a fault; a failing environment is an error.

    It is skipped where it has no result for a reason that another check reports.
    """

    parent: CheckCollector

    def __init__(self, *, check: Check, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.check = check
        self._found: list[str] = []

    def wait(self) -> None:
        """Wait for the check."""
        try:
            answer = self.parent.answer(self.check)
            self._found = answer.found
            if answer.cached:
                self.user_properties.append((_CACHED, True))
        except TaskError as error:
            self._found = [str(error)]
        except EvocodeError as error:
            if (teller := self.parent.told_by(self.check, error)) != self.check:
                why = str(error).splitlines()[0].removeprefix("cannot be checked: ")
                pytest.skip(f"cannot be checked, see {teller}: {why}")
            if not isinstance(error, CannotBeChecked):
                raise pytest.fail.Exception(str(error), pytrace=False) from None
            self._found = [str(error)]

    def runtest(self) -> None:
        """Fail if something is wrong, and warn of what could not be checked."""
        for warning in (line for line in self._found if isinstance(line, CheckWarning)):
            self.warn(pytest.PytestWarning(printable(warning)))
        if problems := [line for line in self._found if not isinstance(line, CheckWarning)]:
            raise CheckFailed("\n".join(problems))


class CachedChecks:
    """Hooks that tell checks which an earlier session made from those that this one makes."""

    def __init__(self, session: EvocodeSession) -> None:
        self._checks = 0
        self._cached = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count the checks, and those that were not made anew."""
        if report.when == "call" and f"::{CHECK}::" in report.nodeid:
            self._checks += 1
            self._cached += (_CACHED, True) in map(tuple, report.user_properties)

    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Name a check that was not made anew."""
        if report.when == "call" and report.passed and (_CACHED, True) in map(tuple, report.user_properties):
            return "passed", ".", "PASSED (cached)"
        return None

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Say how many checks were not made anew, and how to do so."""
        if self._cached:
            terminalreporter.write_line(
                f"evocode: {self._cached} of {self._checks} checks were passed before, and nothing they depend on has "
                "changed; make them anew with --cache-clear"
            )
