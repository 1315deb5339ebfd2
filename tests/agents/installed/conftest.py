"""Attempts in the sandbox, of agents whose programs are made for the tests."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_evocode.agents import Agent
from pytest_evocode.agents.installed.claude_code import ClaudeCodeAgent
from pytest_evocode.environments import Engine, Installation
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.errors import EnvironmentUnavailable
from pytest_evocode.gateway import Exchange
from pytest_evocode.llm.budget import Budget
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord, Usage
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests.model_scripts import Asked, Fail, Run, Say, Step, Tokens
from tests.model_server import ModelServer

PROGRAM = Path(__file__).with_name("fake_claude.py").read_text()
KEY = "sk-of-this-test-0123456789"
PASS = "echo 1 >/logs/verifier/reward.txt"


def answer(asked: Asked) -> Step:
    """What the model of ``fake_claude.py`` says to a line, and its provider to ``refuse: STATUS``."""
    word, _, rest = asked.said[-1].partition(": ")
    if word == "run":
        return [Say(f"Step {len(asked.said)}."), Run(rest)]
    return Fail(int(rest)) if word == "refuse" else Say(rest if word == "say" else "Yes.")


class FakeClaude(ClaudeCodeAgent):
    """Claude Code's agent with the program of ``fake_claude.py``, and a model whose answers count 100 tokens each."""

    model_server = ""

    @property
    def upstream(self) -> str | None:
        """The model of the tests."""
        return self.options.base_url or self.model_server

    @property
    def installation(self) -> Installation:
        """Only this differs."""
        path = self.npm.path
        script = (
            f"mkdir -p {Path(path).parent}\n{{ echo '#!/usr/bin/env python3'; cat <<'END'\n{PROGRAM}END\n}} >{path}"
        )
        return Installation("a fake", f"{script}\nchmod 755 {shlex.quote(path)}")


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        try:
            made = SandboxEngine()
        except EnvironmentUnavailable as error:
            pytest.skip(str(error))
        yield made
        made.close()


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> Iterator[ModelServer]:
    """The model of :class:`FakeClaude`."""
    with ModelServer(answer, key=KEY, tokens=Tokens(prompt=80, completion=20)) as server:
        monkeypatch.setattr(FakeClaude, "model_server", server.url)
        yield server


Blocks = list[dict[str, Any]]


def exchange(number: int, content: Blocks, asked: Blocks, stop: str = "end_turn") -> Exchange:
    """One of Messages, as a program may have it that is none of ours."""
    body = {"id": "m", "type": "message", "role": "assistant", "model": "claude-x", "content": content}
    return Exchange(
        number=number,
        api="messages",
        method="POST",
        path="/anthropic/v1/messages",
        began="",
        seconds=0.0,
        status=200,
        usage=Usage(prompt_tokens=1, completion_tokens=1, requests=1),
        model="claude-x",
        request=json.dumps({"messages": [{"role": "user", "content": asked}], "tools": [{"name": "Bash"}]}),
        response=json.dumps({**body, "stop_reason": stop, "usage": {"input_tokens": 1, "output_tokens": 1}}),
    )


class MakeTask(Protocol):
    """Writes a task with one round for each instruction; ``check`` is the script of all suites."""

    def __call__(
        self,
        *instructions: str,
        toml: str = ...,
        check: str = ...,
        files: Mapping[str, str] = ...,
        timeout: float = ...,
    ) -> Task: ...


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """See :class:`MakeTask`."""

    def make(
        *instructions: str,
        toml: str = '[environment]\nnetwork_mode = "public"\n',
        check: str = PASS,
        files: Mapping[str, str] = {},
        timeout: float = 60,
    ) -> Task:
        texts = {"task.toml": f"{toml}[agent]\ntimeout_sec = {timeout}\n"}
        texts["environment/Dockerfile"] = (
            "FROM debian:bookworm-slim\nWORKDIR /app\nCOPY . /app\nRUN rm /app/Dockerfile\n"
        )
        for index, instruction in enumerate(instructions, 1):
            texts["task.toml"] += f'[[steps]]\nname = "round-{index}"\n'
            texts[f"steps/round-{index}/instruction.md"] = instruction
            texts[f"steps/round-{index}/tests/test.sh"] = check
        for path, text in (texts | {f"environment/{name}": text for name, text in files.items()}).items():
            (tmp_path / "tasks/small" / path).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / "tasks/small" / path).write_text(text)
        return load_task(tmp_path / "tasks/small")

    return make


class Attempt(Protocol):
    """Runs an agent through a task, or through its rounds up to one, and returns the records."""

    def __call__(
        self, agent: Agent, task: Task, *, budget: Budget = ..., through: int | None = None, resume: bool = False
    ) -> list[RoundRecord]: ...


@pytest.fixture
def directory(tmp_path: Path) -> AttemptDirectory:
    """Where attempts are written."""
    return AttemptDirectory(tmp_path / "attempt")


@pytest.fixture
def attempt(engine: Engine, directory: AttemptDirectory) -> Attempt:
    """See :class:`Attempt`."""

    def run(
        agent: Agent, task: Task, *, budget: Budget | None = None, through: int | None = None, resume: bool = False
    ) -> list[RoundRecord]:
        options = TrialOptions(budget=budget or Budget(), resume=resume)
        return list(
            Trial(task, agent, engine, directory=directory, rounds=RoundSelection(last=through), options=options).run()
        )

    return run


@pytest.fixture(autouse=True)
def _keys_of_the_test_only(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "CODEX_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
