"""Small tasks, agents that follow a script, and real sandboxes to run them in."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Protocol

import pytest

from pytest_evocode.agents import RoundContext, RoundTranscript
from pytest_evocode.environments import Engine
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial.trial import Trial

DOCKERFILE = "FROM debian:bookworm-slim\nWORKDIR /app\n"
_HANGS = 300.0  # seconds after which an attempt of this folder cannot be anything but stuck

Turn = Callable[[RoundContext], RoundTranscript | None]


class Scripted:
    """An agent with one function per round; rounds beyond the script are left alone."""

    name = "scripted"

    def __init__(self, *turns: Turn | str) -> None:
        self._turns = turns
        self.asked: list[RoundContext] = []

    def run_round(self, context: RoundContext) -> RoundTranscript:
        """Do the round's turn; a text is a shell script, which must not fail."""
        self.asked.append(context)
        if context.round.index > len(self._turns):
            return RoundTranscript()
        turn = self._turns[context.round.index - 1]
        if not isinstance(turn, str):
            return turn(context) or RoundTranscript()
        result = context.environment.exec(turn, user=context.round.agent_user, timeout=context.timeout)
        assert result.ok or result.timed_out, result.output
        return RoundTranscript(timed_out=result.timed_out, output=result.output)


class MakeTask(Protocol):
    """Writes and loads a task with one round for each suite (a ``test.sh``).

    ``toml`` is the top of task.toml, ``steps`` more keys of a round's [[steps]] entry by its number, ``files`` any
    further files of the task by path.
    """

    def __call__(
        self,
        *suites: str,
        toml: str = "",
        steps: Mapping[int, str] = ...,
        files: Mapping[str, str] = ...,
        dockerfile: str = ...,
    ) -> Task: ...


class Finish(Protocol):
    """Runs a trial to its end and returns its records; fails when it hangs."""

    def __call__(self, trial: Trial) -> list[RoundRecord]: ...


@pytest.fixture(autouse=True)
def _nothing_is_left_behind(engine: Engine) -> Iterator[None]:
    """After every attempt of this folder: no sandbox, fork or snapshot on disk."""
    assert isinstance(engine, SandboxEngine)
    before = set(engine._settings.state.iterdir())
    yield
    assert set(engine._settings.state.iterdir()) - before == set()


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """See :class:`MakeTask`."""

    def make(
        *suites: str,
        toml: str = "",
        steps: Mapping[int, str] = {},
        files: Mapping[str, str] = {},
        dockerfile: str = DOCKERFILE,
    ) -> Task:
        entries = [f'[[steps]]\nname = "round-{i}"\n{steps.get(i, "")}' for i in range(1, len(suites) + 1)]
        texts = {"task.toml": "\n".join([toml, *entries]), "environment/Dockerfile": dockerfile}
        for index, suite in enumerate(suites, 1):
            texts[f"steps/round-{index}/instruction.md"] = f"Do round {index}.\n"
            texts[f"steps/round-{index}/tests/test.sh"] = suite
        directory = tmp_path / "tasks" / "small"
        for path, text in {**texts, **files}.items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(text, encoding="utf-8")
        return load_task(directory)

    return make


@pytest.fixture
def finish() -> Finish:
    """See :class:`Finish`."""

    def run(trial: Trial) -> list[RoundRecord]:
        records: list[RoundRecord] = []
        thread = threading.Thread(target=lambda: records.extend(trial.run()), daemon=True)
        thread.start()
        thread.join(_HANGS)
        assert not thread.is_alive(), "the trial hangs"
        return records

    return run


@pytest.fixture
def scripted() -> type[Scripted]:
    """See :class:`Scripted`."""
    return Scripted


@pytest.fixture
def moment() -> str:
    """An argument for ``sleep``, ten minutes and a fraction that tells its process from all others."""
    return f"600.{uuid.uuid4().int % 10**12:012d}"


@pytest.fixture
def processes() -> Callable[[str], list[int]]:
    """Find the process ids on this machine, sandboxes included, that have a text in their command line."""

    def find(text: str) -> list[int]:
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                if text.encode() in path.read_bytes().split(b"\0"):
                    found.append(int(path.parent.name))
            except OSError:
                continue  # It has ended meanwhile.
        return found

    return find
