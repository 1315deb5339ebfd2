"""The real CLIs, from their registry, in containers; they ask a server on this machine, and go on in later rounds."""

from __future__ import annotations

import os
import shutil
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.agents.installed.base import InstalledAgent
from pytest_evocode.agents.installed.claude_code import ClaudeCodeAgent
from pytest_evocode.agents.installed.codex import CodexAgent
from pytest_evocode.agents.installed.opencode import OpenCodeAgent
from pytest_evocode.environments.docker.engine import DockerEngine
from pytest_evocode.errors import EnvironmentUnavailable
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests import atif
from tests.model_scripts import Asked, Fail, HangUp, Run, Say, Step, Think
from tests.model_server import ModelServer

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.nightly]

KEY = "sk-of-this-test-0123456789"
WORD = "heliotrope"
# Certificates as this machine has them, for where its registries are reached by way of a proxy with its own.
DOCKERFILE = """\
FROM python:3.11-slim-bookworm
COPY certificates.pem /etc/ssl/certs/ca-certificates.crt
WORKDIR /app
RUN useradd --create-home worker && chown worker /app
"""
TOML = '[environment]\nnetwork_mode = "no-network"\n[agent]\nuser = "worker"\ntimeout_sec = 300\n'
ROUNDS = {
    "round-1": (f"The word is {WORD}. Write hello.txt.\n", "grep -qx hello /app/hello.txt"),
    "round-2": ("Write the word to word.txt.\n", f"grep -qx hello /app/hello.txt && grep -qx {WORD} /app/word.txt"),
    "round-3": ("Write the word again.\n", f"[ $(grep -cx {WORD} /app/word.txt) = 2 ]"),
}
RULES = "Never use tabs, says the rule of this harness.\n"
SKILL = "---\nname: greeting\ndescription: How files greet in this test.\n---\nWith hello.\n"


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DockerEngine]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        try:
            made = DockerEngine()
        except EnvironmentUnavailable as error:
            pytest.skip(str(error))
        yield made
        made.close()


@pytest.fixture(scope="module")
def task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    directory = tmp_path_factory.mktemp("tasks") / "greeting"
    files = {"environment/Dockerfile": DOCKERFILE, "task.toml": TOML}
    bundle = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    files["environment/certificates.pem"] = Path(bundle).read_text()
    for name, (instruction, check) in ROUNDS.items():
        files["task.toml"] += f'[[steps]]\nname = "{name}"\n'
        files[f"steps/{name}/instruction.md"] = instruction
        files[f"steps/{name}/tests/test.sh"] = (
            f"{check} && echo 1 > /logs/verifier/reward.txt || echo 0 > /logs/verifier/reward.txt\n"
        )
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return load_task(directory)


@pytest.fixture
def harness(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "rules.md").write_text(RULES)
    (tmp_path / "skills/greeting").mkdir(parents=True)
    (tmp_path / "skills/greeting/SKILL.md").write_text(SKILL)
    return {"rules": tmp_path / "rules.md", "skills": tmp_path / "skills"}


def solve(asked: Asked) -> Step:
    """What a model does that remembers round 1 only if it is told again what was said there."""
    last = next(text for text in reversed(asked.said) if text.strip() in [each.strip() for each, _ in ROUNDS.values()])
    done = len(asked.results)
    if "hello.txt" in last:
        return (
            [Think("A file is wanted."), Say("I write it."), Run("echo hello > hello.txt")]
            if done == 0
            else Say("Done.")
        )
    word = WORD if any(WORD in text for text in asked.said) else "forgotten"
    answers: list[Step] = [
        [Say("Let me see."), Run("cat no-such-file")],
        Run(f"echo {word} > word.txt; env | grep -c {KEY}; true"),
    ]
    if "again" in last:
        return Run(f"echo {word} >> word.txt") if done == 3 else Say("Done for the third time.")
    return answers[done - 1] if done <= 2 else Say("Done again.")


AGENTS: dict[str, tuple[type[InstalledAgent], str, str]] = {
    "claude-code": (ClaudeCodeAgent, "claude-sonnet-4-5", ""),
    "codex": (CodexAgent, "gpt-5.2-codex", "/v1"),
    "opencode": (OpenCodeAgent, "local/gpt-5.2", "/v1"),
}


def work(
    name: str,
    engine: DockerEngine,
    task: Task,
    directory: AttemptDirectory,
    harness: Mapping[str, Any],
    script: Callable[[Asked], Step] = solve,
) -> tuple[list[RoundRecord], ModelServer]:
    """Run an attempt to its end."""
    kind, model, path = AGENTS[name]
    with ModelServer(script, key=KEY) as server:
        options = kind.options_type(base_url=f"{server.url}{path}", key_env="SOME_TEST_KEY", **harness)
        trial = Trial(task, kind(model, options), engine, directory=directory, options=TrialOptions(strict=True))
        return list(trial.run()), server


@pytest.mark.parametrize("name", AGENTS)
def test_three_rounds_without_a_network_are_one_session_of_the_real_program(
    name: str,
    engine: DockerEngine,
    task: Task,
    harness: Mapping[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOME_TEST_KEY", KEY)
    directory = AttemptDirectory(tmp_path / "attempt")
    records, server = work(name, engine, task, directory, harness)
    assert [(record.outcome, record.cause) for record in records] == [("passed", "")] * 3

    usages = [record.usage for record in records]
    assert [usage and (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) for usage in usages] == [
        (2000, 1200, 100),
        (3000, 1800, 150),
        (2000, 1200, 100),
    ]
    assert len(server.counted) == 7
    assert all(usage is not None and usage.cost_usd for usage in usages)

    told = [asked.system + "".join(asked.said) for asked in server.asked]
    assert all(RULES.strip() in each and "How files greet in this test." in each for each in told)
    assert {asked.model for asked in server.asked} == {AGENTS[name][1].rpartition("/")[2]}

    first, second, third = (steps(directory, round_name) for round_name in ROUNDS)
    assert (first[0]["source"], first[0]["message"]) == ("user", ROUNDS["round-1"][0])
    assert (first[1]["message"], first[1]["reasoning_content"]) == ("I write it.", "A file is wanted.")
    assert [actions(step) for step in first[1:]] == [[(0, ["hello.txt"])], []]
    assert [actions(step) for step in second[1:]] == [[(1, [])], [(0, ["word.txt"])], []]
    assert [step["message"] for step in (first[-1], second[-1])] == ["Done.", "Done again."]
    assert third[-1]["message"] == "Done for the third time."
    asked = [step["metrics"]["prompt_tokens"] for each in (first, second, third) for step in each[1:]]
    assert asked == [1000] * 7
    # As the model sees it, Codex' and Claude Code's remarks included.
    assert "0" in second[2]["observation"]["results"][0]["content"].splitlines()
    assert not any(KEY.encode() in path.read_bytes() for path in directory.path.rglob("*") if path.is_file())


def steps(directory: AttemptDirectory, round_name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = atif.read(directory.path / "steps" / round_name / "agent/trajectory.json")["steps"]
    return found


def actions(step: dict[str, Any]) -> list[tuple[int, list[str]]]:
    """Of a step's actions the exit codes, and the files that they changed."""
    found = step.get("extra", {}).get("evocode", {}).get("actions", [])
    return [(each["exit_code"], [change["path"] for change in each.get("changes", [])]) for each in found]


@pytest.mark.parametrize("name", AGENTS)
def test_the_weather_of_the_provider_changes_nothing_for_the_real_program(
    name: str, engine: DockerEngine, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_TEST_KEY", KEY)
    storm: list[Step] = [Fail(529, retry_after=0.02)] * 6
    weather = [
        *storm,
        Fail(500, retry_after=0.02),
        None,
        HangUp(),
        None,
        Fail(429, retry_after=0.02),
        None,
        *storm,
        None,
    ]

    def script(asked: Asked) -> Step:
        return (weather.pop(0) if weather else None) or solve(asked)

    records, _ = work(name, engine, task, AttemptDirectory(tmp_path / "attempt"), {}, script)
    assert [(record.outcome, record.cause) for record in records] == [("passed", "")] * 3
    assert weather == []
    assert [record.usage and record.usage.tokens for record in records] == [2100, 3150, 2100]
    assert sum(record.provider_waits.retries for record in records if record.provider_waits) == 15


@pytest.mark.parametrize("name", AGENTS)
def test_a_refused_key_is_an_error_in_the_providers_words(
    name: str, engine: DockerEngine, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, model, path = AGENTS[name]
    monkeypatch.setenv("SOME_TEST_KEY", "sk-of-somebody-else")
    with ModelServer([], key=KEY) as server:
        options = kind.options_type(base_url=f"{server.url}{path}", key_env="SOME_TEST_KEY")
        first, *others = Trial(task, kind(model, options), engine).run()
    assert (first.outcome, first.fault) == ("error", "infrastructure")
    assert {each.outcome for each in others} == {"not reached"}
    assert "401" in first.cause or "Incorrect API key" in first.cause


def test_claude_codes_token_of_an_account_is_the_gateways_alone(
    engine: DockerEngine, task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ClaudeCodeAgent.keys:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CLAUDE_CODE_OAUTH_TOKEN", KEY)
    with ModelServer(solve, key=KEY) as server:
        agent = ClaudeCodeAgent("claude-sonnet-4-5", ClaudeCodeAgent.options_type(base_url=server.url))
        records = list(Trial(task, agent, engine, directory=AttemptDirectory(tmp_path / "attempt")).run())
    assert [(record.outcome, record.cause) for record in records] == [("passed", "")] * 3
    assert {asked.headers["authorization"] for asked in server.asked} == {f"Bearer {KEY}"}
    assert not any("x-api-key" in asked.headers for asked in server.asked)


def test_a_session_that_was_killed_goes_on_in_the_same_conversation(
    task: Task, tmp_path: Path, engine: DockerEngine
) -> None:
    running: list[subprocess.Popen[str]] = []
    killed = threading.Event()

    def script(asked: Asked) -> Step:
        if ROUNDS["round-2"][0] in asked.said and not killed.is_set():
            killed.set()
            os.killpg(running[-1].pid, signal.SIGKILL)
        return solve(asked)

    def session(*arguments: str) -> str:
        argv = [
            sys.executable,
            "-m",
            "pytest",
            "-p",
            "no:cacheprovider",
            "--evocode-agent=careful",
            *arguments,
            "tasks",
        ]
        env = {**os.environ, "SOME_TEST_KEY": KEY}
        with subprocess.Popen(
            argv,
            cwd=tmp_path,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        ) as process:
            running.append(process)
            return process.communicate(timeout=240)[0]

    shutil.copytree(task.directory, tmp_path / "tasks/greeting")
    (tmp_path / "rules.md").write_text(RULES)
    with ModelServer(script, key=KEY) as server:
        (tmp_path / "pyproject.toml").write_text(
            "[tool.pytest.ini_options]\n[tool.pytest-evocode.agents.careful]\n"
            f'spec = "claude-code:claude-sonnet-4-5"\nrules = "rules.md"\nkey_env = "SOME_TEST_KEY"\n'
            f'base_url = "{server.url}"\n'
        )
        session()
        report = session("--evocode-resume")
    assert killed.is_set()
    assert "3 passed" in report
    again = server.asked[-5:-2]
    assert all(ROUNDS["round-2"][0] in each.said and any(WORD in text for text in each.said) for each in again)
    assert [len(each.results) for each in again] == [1, 2, 3]
    assert sum(ROUNDS["round-2"][0] not in each.said for each in server.asked) == 2
