"""``--evocode-process``: score how agents worked after each attempt, and show the pillars beside the scores."""

from __future__ import annotations

import contextlib
import importlib.util
from collections.abc import Generator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.errors import EvocodeError, UsageError
from pytest_evocode.plugin.attempts import AttemptCollector, RoundItem, is_last_of_attempt
from pytest_evocode.plugin.session import EvocodeSession
from pytest_evocode.report.printable import printable
from pytest_evocode.tasks.atomic_write import write_atomically

if TYPE_CHECKING:
    from pytest_evocode.process.protocols import Judge
    from pytest_evocode.process.scores.rigor_score import AttemptProcess

PROCESS_FILE = "process.json"


class ProcessPlugin:
    """Hooks that score the process of attempts, in the process that makes them, and print the scores."""

    def __init__(self, session: EvocodeSession) -> None:
        assert session.settings.process is not None
        self._session = session
        self._budget = session.settings.process
        self._judge: Judge | None = None
        if importlib.util.find_spec("tree_sitter_bash") is None:
            raise pytest.UsageError(
                "--evocode-process needs parsers that are not installed: pip install 'pytest-evocode[process]'"
            )
        if session.settings.judge is not None:
            from pytest_evocode.process.judge import make_judge

            try:
                self._judge = make_judge(session.settings.judge)
            except UsageError as error:
                raise pytest.UsageError(f"--evocode-judge: {error}") from None

    @pytest.hookimpl(wrapper=True, trylast=True)
    def pytest_runtest_teardown(self, item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
        """Score an attempt after its last round, when its environment is gone."""
        yield
        if isinstance(item, RoundItem) and is_last_of_attempt(item, nextitem):
            self._score(item.parent)

    def _score(self, attempt: AttemptCollector) -> None:
        from pytest_evocode.process.attempts import score_attempt
        from pytest_evocode.process.execution import Execution

        session = self._session
        directory = self._directory(attempt.task.name, attempt.agent.id, attempt.number)
        if not any(directory.glob("steps/*/agent/trajectory.json")):
            return  # Agents such as the oracle leave no trajectory.
        session.share_connections()
        try:
            with Execution(attempt.task, session.engine, budget=self._budget) as execution:
                scored = score_attempt(directory, attempt.task, executor=execution, judge=self._judge)
            write_atomically(directory / PROCESS_FILE, session.scrubber.text(scored.model_dump_json(indent=1)) + "\n")
        except (EvocodeError, OSError) as error:
            attempt.warn(pytest.PytestWarning(printable(f"{directory}: its process could not be scored: {error}")))

    def _directory(self, task: str, agent: str, number: int) -> Path:
        return self._session.attempt_directory(task, agent, number).path

    @pytest.hookimpl(trylast=True)
    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the pillars of each agent, from the files beside the attempts' records."""
        found = list(self._found())
        if not self._session.records:
            return
        terminalreporter.section("evocode process")
        if not found:
            terminalreporter.write_line("no agent of this run gave a trajectory, so there is no process to score")
            return
        from pytest_evocode.process.scores.summary import by_task, summarise_agent
        from pytest_evocode.report.process import agent_lines

        agents = {agent: summarise_agent(tasks) for agent, tasks in by_task(found).items()}
        for line in agent_lines(agents):
            terminalreporter.write_line(printable(self._session.scrubber.text(line)))
        terminalreporter.write_line("evidence: evocode process DIR --explain TASK, of the results directory")

    def _found(self) -> Generator[AttemptProcess]:
        from pytest_evocode.process.scores.rigor_score import AttemptProcess

        for task, agent, number in self._session.begun:
            with contextlib.suppress(FileNotFoundError):
                path = self._directory(task, agent, number) / PROCESS_FILE
                yield AttemptProcess.model_validate_json(path.read_bytes())
