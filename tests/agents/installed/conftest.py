"""Attempts in the sandbox, of agents whose programs are made for the tests."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from pytest_evocode.agents import Agent
from pytest_evocode.agents.installed.claude_code import ClaudeCodeAgent
from pytest_evocode.agents.installed.event_reader import EventReader
from pytest_evocode.environments import Engine, Installation
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.errors import EnvironmentUnavailable
from pytest_evocode.gateway import Exchange
from pytest_evocode.llm.budget import AttemptSpending, Budget
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord, Usage
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trajectories.atif import AgentInfo
from pytest_evocode.trajectories.recorder import Recorder
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests import atif
from tests.model_scripts import Asked, Fail, Say, Step, Tokens
from tests.model_server import ModelServer

PROGRAM = Path(__file__).with_name("fake_claude.py").read_text()
KEY = "sk-of-this-test-0123456789"
PASS = "echo 1 >/logs/verifier/reward.txt"


def answer(asked: Asked) -> Step:
    """What the model of ``fake_claude.py`` says to a line, and its provider to ``refuse: STATUS``."""
    word, _, rest = asked.said[-1].splitlines()[-1].partition(": ")
    return Fail(int(rest)) if word == "refuse" else Say("Yes.")


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


def answered(
    tokens: int,
    text: str = "",
    calls: Mapping[str, str] = {},
    *,
    stop_reason: str = "end_turn",
    given: Mapping[str, str] = {},
    model: str = "model-x",
) -> Exchange:
    """A request that the gateway has answered, in Anthropic's form; among events, it comes before the next one.

    ``calls`` are the tools that the reply calls, and ``given`` the results that the request has, by call.
    """
    results = [{"type": "tool_result", "tool_use_id": call, "content": result} for call, result in given.items()]
    content: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    content += [{"type": "tool_use", "id": call, "name": name, "input": {"a": 1}} for call, name in calls.items()]
    body: dict[str, Any] = {"id": "msg_1", "type": "message", "role": "assistant", "model": model, "content": content}
    usage = {"input_tokens": tokens, "output_tokens": 1}
    return Exchange(
        number=1,
        api="messages",
        method="POST",
        path="/anthropic/v1/messages",
        began="",
        seconds=0.0,
        status=200,
        usage=Usage(prompt_tokens=tokens, completion_tokens=1, cost_usd=tokens / 100, requests=1),
        model=model,
        request=json.dumps({"messages": [{"role": "user", "content": results}]}),
        response=json.dumps({**body, "stop_reason": stop_reason, "usage": usage}),
    )


MakeReader = Callable[[Recorder, Callable[[], Sequence[Exchange]]], EventReader]


class Told:
    """A recorder, and a reader that was told some events and then that there are no more."""

    def __init__(self, reader: MakeReader, *events: Any, spent: Budget) -> None:
        self.spending = AttemptSpending(spent)
        self.recorder = Recorder(AgentInfo(name="a", version="0"), "session", spending=self.spending)
        self.recorder.say("user", "Do it.")
        new: list[Exchange] = []

        def new_exchanges() -> Sequence[Exchange]:
            found = [*new]
            new.clear()
            return found

        self.reader = reader(self.recorder, new_exchanges)
        for event in events:
            if isinstance(event, Exchange):
                new.append(event)
            else:
                self.reader.read(event.encode() if isinstance(event, str) else json.dumps(event).encode())
        self.reader.close()
        self.reader.settle()

    @property
    def steps(self) -> list[dict[str, Any]]:
        """What the agent did, as it is on disk."""
        trajectory = self.recorder.trajectory().model_dump(mode="json", exclude_none=True)
        assert atif.violations(trajectory) == []
        return [step for step in trajectory["steps"] if step["source"] == "agent"]

    @property
    def used(self) -> dict[str, Any]:
        """What all of it took."""
        assert self.recorder.usage is not None
        return self.recorder.usage.model_dump(exclude={"at_least"})

    @property
    def actions(self) -> list[dict[str, Any]]:
        """All actions, without how long they took."""
        found = [
            action for step in self.steps for action in step.get("extra", {}).get("evocode", {}).get("actions", [])
        ]
        return [{name: value for name, value in action.items() if name != "seconds"} for action in found]


@pytest.fixture
def told() -> Callable[..., Told]:
    """See :class:`Told`."""

    def tell(reader: MakeReader, *events: Any, spent: Budget | None = None) -> Told:
        return Told(reader, *events, spent=spent or Budget())

    return tell


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
