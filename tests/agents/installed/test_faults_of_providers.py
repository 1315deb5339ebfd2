"""Real CLIs whose model's provider has one fault in an attempt of three rounds: the score is what it is without it."""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path

import pytest

from pytest_evocode.agents.installed.base import InstalledAgent
from pytest_evocode.agents.installed.claude_code import ClaudeCodeAgent
from pytest_evocode.agents.installed.codex import CodexAgent
from pytest_evocode.environments.docker.engine import DockerEngine
from pytest_evocode.errors import EnvironmentUnavailable
from pytest_evocode.gateway import Route
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord, total_usage
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial.trial import Trial
from tests import atif
from tests.providers.faults import FAULTS, CutOff, Decline, Fault, Misreport, Refuse
from tests.providers.server import KEY, ProviderServer
from tests.providers.three_rounds import FILES, REQUESTS, ROUNDS, SUITES, solve

pytestmark = [pytest.mark.docker, pytest.mark.slow, pytest.mark.nightly]

# Certificates as this machine has them, for where its registries are reached by way of a proxy with its own.
DOCKERFILE = """\
FROM python:3.11-slim-bookworm
COPY certificates.pem /etc/ssl/certs/ca-certificates.crt
WORKDIR /app
RUN useradd --create-home worker && chown worker /app
"""
TOML = '[environment]\nnetwork_mode = "no-network"\n[agent]\nuser = "worker"\ntimeout_sec = 120\n'
AGENTS: dict[str, tuple[type[InstalledAgent], str, str]] = {
    "claude-code": (ClaudeCodeAgent, "claude-opus-4-8", "messages"),
    "codex": (CodexAgent, "gpt-5.2-codex", "responses"),
}
#: A model that refuses is no weather, and whether it makes room in a full window is the program's own affair.
WEATHER = {name: fault for name, fault in FAULTS.items() if fault not in (Decline(), Refuse("context"))}


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
    directory = tmp_path_factory.mktemp("tasks") / "small"
    bundle = ssl.get_default_verify_paths().cafile or "/etc/ssl/certs/ca-certificates.crt"
    files = {
        "environment/Dockerfile": DOCKERFILE,
        "environment/certificates.pem": Path(bundle).read_text(),
        "task.toml": TOML + "".join(f'[[steps]]\nname = "round-{number}"\n' for number in ROUNDS),
    }
    for number, suite in zip(ROUNDS, SUITES, strict=True):
        files[f"steps/round-{number}/instruction.md"] = f"Do round {number}.\n"
        files[f"steps/round-{number}/tests/test.sh"] = suite
    for path, text in (files | FILES).items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    return load_task(directory)


@pytest.fixture(autouse=True)
def _own_key_and_short_silences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOME_TEST_KEY", KEY)
    monkeypatch.setattr(Route, "silence", 2.0)


def play(
    agent: str, faults: dict[int, Fault], engine: DockerEngine, task: Task, directory: Path
) -> tuple[list[RoundRecord], ProviderServer]:
    """Run an attempt to its end."""
    kind, model, api = AGENTS[agent]
    with ProviderServer(solve, faults=faults) as server:
        options = kind.options_type(base_url=server.url_for(api), key_env="SOME_TEST_KEY")
        trial = Trial(task, kind(model, options), engine, directory=AttemptDirectory(directory))
        return list(trial.run()), server


@pytest.mark.parametrize("agent", AGENTS)
def test_without_faults_all_is_solved_and_counted_as_it_was_billed(
    agent: str, engine: DockerEngine, task: Task, tmp_path: Path
) -> None:
    records, server = play(agent, {}, engine, task, tmp_path)
    assert [(record.outcome, record.cause) for record in records] == [("passed", "")] * 3
    assert [exchange.refused for exchange in server.exchanges if exchange.refused] == []
    usage, billed = total_usage([record.usage for record in records if record.usage]), server.billed()
    assert usage is not None
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == (
        billed.prompt,
        billed.cached,
        billed.output,
    )


@pytest.mark.parametrize(
    ("number", "name", "agent"),
    [(1 + at % sum(REQUESTS), name, agent) for at, name in enumerate(WEATHER) for agent in AGENTS],
)
def test_a_fault_changes_no_score(
    agent: str, number: int, name: str, engine: DockerEngine, task: Task, tmp_path: Path
) -> None:
    fault = WEATHER[name]
    records, server = play(agent, {number: fault}, engine, task, tmp_path)
    assert [(record.outcome, record.cause) for record in records] == [("passed", "")] * 3
    usage = total_usage([record.usage for record in records if record.usage])
    assert usage is not None
    assert usage.cost_usd is None or usage.cost_usd > 0
    if not isinstance(fault, Misreport):
        least, most = server.billed(delivered=True), server.billed()
        assert least.prompt <= (usage.prompt_tokens or 0) <= most.prompt
        assert least.output <= (usage.completion_tokens or 0) <= most.output


def test_a_reply_that_is_cut_ends_the_turn_of_codex_which_is_started_again_in_its_session(
    engine: DockerEngine, task: Task, tmp_path: Path
) -> None:
    first_of_round_2 = REQUESTS[0] + 1
    records, _ = play("codex", {first_of_round_2: CutOff()}, engine, task, tmp_path)
    assert [(record.outcome, record.stopped) for record in records] == [("passed", "")] * 3
    steps = atif.read(tmp_path / "steps/round-2/agent/trajectory.json")["steps"]
    assert [step["extra"]["evocode"]["nudge"] for step in steps if step["source"] == "system"] == ["cut off"]
