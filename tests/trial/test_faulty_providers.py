"""Any one fault of a provider, at any request of an attempt: the built-in loop has the score that it has without it."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.agents.shell.agent import ShellAgent, ShellOptions
from pytest_evocode.environments import Engine
from pytest_evocode.llm.client_factory import make_client
from pytest_evocode.llm.connection import ProviderConnection
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord, Usage, total_usage
from pytest_evocode.trial.trial import Trial
from tests.acceptance.models import import_sdks
from tests.providers import exchanges
from tests.providers.faults import FAULTS, Decline, Fault, Misreport, OddId, Rename
from tests.providers.server import KEY, Faults, ProviderServer
from tests.providers.three_rounds import FILES, REQUESTS, SUITES, solve

if TYPE_CHECKING:
    from tests.trial.conftest import Finish, MakeTask

pytestmark = pytest.mark.slow

SPECS = {
    "messages": "anthropic/claude-opus-4-8",
    "chat": "openai/gpt-5",
    "responses": "openai/gpt-5",
    "gemini": "google/gemini-3-pro-preview",
}
#: A model that refuses is no weather.
WEATHER = [name for name, fault in FAULTS.items() if not isinstance(fault, Decline)]


@pytest.fixture(autouse=True)
def _short_pauses_and_own_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    import_sdks()  # Before a turn's clock runs.
    monkeypatch.setattr(ProviderConnection, "_pause", lambda self, seconds: time.sleep(min(seconds, 0.15)))
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", KEY)
    for name in ("OPENAI", "ANTHROPIC", "GOOGLE_GEMINI"):
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)


class Played:
    """An attempt of the loop that has ended."""

    def __init__(self, records: Sequence[RoundRecord], server: ProviderServer) -> None:
        self.records, self.server = records, server

    @property
    def outcomes(self) -> list[tuple[str, str]]:
        return [(record.outcome, record.cause) for record in self.records]

    @property
    def usage(self) -> Usage:
        used = total_usage([record.usage for record in self.records if record.usage is not None])
        assert used is not None
        return used


def play(api: str, faults: Faults, engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path) -> Played:
    """Run an attempt of three rounds."""
    task = make_task(*SUITES, files=FILES, toml="[agent]\ntimeout_sec = 20")
    with ProviderServer(solve, faults=faults) as server:
        given: dict[str, Any] = {"api": api} if api in ("chat", "responses") else {}
        provider, _, model = SPECS[api].partition("/")
        settings = ShellOptions.model_validate({"base_url": server.url_for(api), "silence_seconds": 1, **given})
        agent = ShellAgent(make_client(provider, model, settings), settings)
        records = finish(Trial(task, agent, engine, directory=AttemptDirectory(tmp_path / "attempt")))
    return Played(records, server)


def tokens(usage: exchanges.Usage) -> tuple[int, int, int]:
    return usage.prompt, usage.cached, usage.output


@pytest.mark.slow("it imports the SDKs")
@pytest.mark.parametrize("api", SPECS)
@pytest.mark.matrix
def test_without_faults_all_is_solved_and_counted_as_it_was_billed(
    api: str, engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    played = play(api, {}, engine, make_task, finish, tmp_path)
    assert played.outcomes == [("passed", "")] * 3
    answered = [exchange for exchange in played.server.exchanges if exchange.billed is not None]
    assert len(answered) == sum(REQUESTS)
    usage = played.usage
    assert (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens) == tokens(played.server.billed())


#: By day: each way in which requests fail, with each API, and at each request of the attempt.
CHOSEN = [
    ("429 with retry-after", "messages", 1),
    ("overloaded", "chat", 2),
    ("403 with HTML", "responses", 3),
    ("404 once", "gemini", 4),
    ("400 once", "messages", 5),
    ("context too long", "gemini", 6),
    ("connections refused", "responses", 7),
    ("silent in mid-stream", "messages", 2),
    ("broken stream", "gemini", 3),
    ("error event", "responses", 4),
    ("negative usage", "chat", 5),
    ("cut off in a text", "responses", 2),
    ("odd tool name", "chat", 4),
    ("odd call id", "messages", 6),
]
ALL = [
    (name, api, number)
    for name in WEATHER
    for api in SPECS
    for number in range(1, sum(REQUESTS) + 1)
    # The first requests are so short that there is nothing to leave out.
    if name != "context too long" or number > 2
]


@pytest.mark.parametrize(("name", "api", "number"), CHOSEN)
def test_a_fault_changes_no_score(
    name: str, api: str, number: int, engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    check_fault(play(api, {number: FAULTS[name]}, engine, make_task, finish, tmp_path), name, number)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "api", "number"), [each for each in ALL if each not in CHOSEN])
def test_any_fault_of_any_request_changes_no_score(
    name: str, api: str, number: int, engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    check_fault(play(api, {number: FAULTS[name]}, engine, make_task, finish, tmp_path), name, number)


@pytest.mark.parametrize("api", SPECS)
@pytest.mark.parametrize("odd", [OddId("call_0"), Rename("functions.bash:0")], ids=["ids", "names"])
@pytest.mark.matrix("odd")
def test_odd_calls_again_and_again_change_no_score(
    odd: Fault, api: str, engine: Engine, make_task: MakeTask, finish: Finish, tmp_path: Path
) -> None:
    faults = dict.fromkeys(range(1, 20, 2 if isinstance(odd, Rename) else 1), odd)
    played = play(api, faults, engine, make_task, finish, tmp_path)
    assert played.outcomes == [("passed", "")] * 3
    if isinstance(odd, Rename):
        assert [exchange.refused for exchange in played.server.exchanges if exchange.refused] == []


def check_fault(played: Played, name: str, number: int) -> None:
    """Assert that all was solved in spite of a fault, and counted."""
    assert played.outcomes == [("passed", "")] * 3
    exchanges_ = played.server.exchanges
    assert exchanges_[number - 1].fault is not None
    # What the model said is not sent back in a form that the provider refuses. But servers that are compatible with
    # Chat Completions get their own ids back, which some models know their calls by.
    if not (isinstance(FAULTS[name], OddId) and exchanges_[0].asked.api == "chat"):
        assert [exchange.refused for exchange in exchanges_ if exchange.refused] == []
    usage, server = played.usage, played.server
    counted = (usage.prompt_tokens, usage.cached_tokens, usage.completion_tokens)
    assert min(each or 0 for each in counted) >= 0
    assert usage.cost_usd is None or usage.cost_usd > 0
    if isinstance(FAULTS[name], Misreport):
        return
    # A reply that broke off may be known in part.
    least, most = tokens(server.billed(delivered=True)), tokens(server.billed())
    for low, each, high in zip(least, counted, most, strict=True):
        assert usage.at_least if each is None else low <= each <= high
