"""Every fault of a model's provider that docs/models.md lists: what comes of it, and what the record says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents.shell.agent import ShellAgent, ShellOptions
from pytest_evocode.environments import Engine
from pytest_evocode.llm.budget import parse_budget
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.connection import ProviderConnection
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.trial import Trial
from tests.acceptance.models import import_sdks
from tests.model_faults import FAULTS, ModelFault
from tests.model_server import ModelServer
from tests.trial.test_trial_rounds import has_lines

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask

SPECS = {
    "chat": "openai/gpt-5",
    "responses": "openai/gpt-5",
    "messages": "anthropic/claude-sonnet-4-5",
    "gemini": "google/gemini-2.5-pro",
}


@pytest.fixture(autouse=True)
def _no_pauses_and_own_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    import_sdks()  # Before a turn's clock runs.
    monkeypatch.setattr(ProviderConnection, "_pause", lambda self, seconds: None)
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "a-key-of-the-tests")
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI"):
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)


@pytest.mark.parametrize("fault", FAULTS, ids=[f"{fault.api}: {fault.name}" for fault in FAULTS])
@pytest.mark.matrix
def test_a_fault_of_the_provider_has_the_outcome_that_the_table_says(
    fault: ModelFault, engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    task = make_task(has_lines(1), toml=fault.toml)
    with ModelServer(fault.script) as server:
        is_openai = fault.api in ("chat", "responses")
        url = f"{server.url}/v1" if is_openai else server.url
        given: dict[str, Any] = {"api": fault.api} if is_openai else {}
        provider, _, model = SPECS[fault.api].partition("/")
        settings = ShellOptions.model_validate({"base_url": url, "retries": 2, **given, **fault.options})
        agent = ShellAgent(make_client(provider, model, settings), settings)
        directory = AttemptDirectory(tmp_path / "attempt")
        options = TrialOptions(budget=parse_budget(fault.budget))
        [record] = finish(Trial(task, agent, engine, directory=directory, options=options))
        assert server.left == 0
    whose = {"agent": " of the agent", "infrastructure": " of the infrastructure"}
    assert record.outcome + whose.get(record.fault or "", "") == fault.outcome, record.cause
    assert fault.says in (record.stopped or record.cause)
    assert bool(record.stopped) == (bool(fault.says) and not record.fault)
    assert (record.refused, record.timed_out == "agent") == (fault.refused, fault.timed_out)
    assert (record.usage.requests if record.usage is not None else None) == fault.paid
    waits = record.provider_waits
    assert (waits.retries if waits is not None else 0) == fault.retries
    trajectory = tmp_path / "attempt/steps/round-1/agent/trajectory.json"
    assert fault.told in trajectory.read_text()
