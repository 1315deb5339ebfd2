"""Sessions that only tell what they would do: they ask no model, start no environment and record nothing."""

from __future__ import annotations

import json

import pytest

from tests.acceptance.models import at, solver
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask
from tests.model_scripts import Tokens
from tests.model_server import ModelServer

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("model_sdks")]

GPT, OTHER = "openai/gpt-5", "openai/gpt-5-mini"


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "a-key-of-the-tests")
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.parametrize("only", ["--setup-plan", "--setup-only", "--collect-only", "--evocode-dry-run"])
@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_nothing_is_asked_started_or_recorded(
    write_task: WriteTask, run_tasks: RunTasks, only: str, workers: str
) -> None:
    write_task("a", 2)
    with ModelServer(solver(2)) as server:
        session = run_tasks(only, workers, *at(server, GPT), "tasks", agent=None)
    assert session.exit_status == 0
    assert not server.asked
    assert not session.results.exists()
    session.lacks("*evocode benchmark*")
    session.lacks("*passed*")


@pytest.mark.parametrize("instead", ["--evocode-check", "--evocode-warm"])
def test_nothing_is_checked_or_made_ready(write_task: WriteTask, run_tasks: RunTasks, instead: str) -> None:
    write_task("a", 1)
    session = run_tasks("--setup-plan", instead, "tasks", agent=None)
    assert session.exit_status == 0
    session.lacks("*evocode warm*")
    assert not session.results.exists()


def test_the_fixture_of_a_round_is_shown_and_not_made(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--setup-plan", "tasks")
    session.has("*SETUP*evocode_container*", "*round-1*fixtures used:*evocode_container*")


def test_a_dry_run_counts_attempts_and_says_what_is_not_known(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    write_task("b", 1)
    session = run_tasks("--evocode-dry-run", "--evocode-attempts=2", "--evocode-agent=nop", "tasks")
    session.has(
        "*= evocode dry run =*",
        "agent *attempts *rounds *known *tokens *cost *time",
        "oracle *4 *6 *0 of 4 *0.0K *$0.0000 *n/a",
        "nop *4 *6 *0 of 4 *0.0K *$0.0000 *n/a",
        "all *8 *12 *0 of 8 *0.0K *$0.0000 *n/a",
        "images: *a (to be built, unless it is there), b (to be built, unless it is there)*",
    )


def test_a_dry_run_expects_what_earlier_attempts_took(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    write_task("b", 1)
    prices = {"models": {"gpt-5": {"input": 10.0, "output": 10.0}, "gpt-5-mini": {"input": 0.5, "output": 1.0}}}
    tokens = Tokens(prompt=1000, completion=100, cached=0)
    with ModelServer(solver(2), tokens=tokens) as server:
        arguments = [*at(server, GPT), "tasks/a"]
        session = run_tasks(*arguments, agent=None)
        assert session.outcomes == {"passed": 2}
        asked = len(server.asked)
        (session.directory / "prices.json").write_text(json.dumps(prices))
        priced = "--evocode-agent-option=prices=prices.json"
        again = run_tasks("--evocode-dry-run", *at(server, GPT), "--evocode-attempts=3", "tasks/a", agent=None)
        other = run_tasks("--evocode-dry-run", *at(server, OTHER), priced, "tasks", agent=None)
        dearer = run_tasks("--evocode-dry-run", *at(server, GPT), priced, "tasks/a", agent=None)
        assert len(server.asked) == asked == 4
    # Four requests of 1,000 and 100 tokens: in our table gpt-5 costs $1.25 and $10 a million.
    again.has("gpt-5 *3 *6 *3 of 3 *13.2K *$0.0270 *0:0*")
    # What the session that made the attempt paid is not what the next one pays.
    dearer.has("gpt-5 *1 *2 *1 of 1 *4.4K *$0.0440 *0:0*")
    # Another model at its own prices; nobody was ever at task b.
    other.has("gpt-5-mini *2 *3 *1 of 2 *4.4K *$0.0024 *0:0*")


def test_rounds_that_used_nothing_do_not_make_a_model_free_whose_price_was_unknown(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2)
    prices = {"models": {"somebodys-own": {"input": 1.0, "output": 10.0}}}
    with ModelServer(solver(2), tokens=Tokens(prompt=1000, completion=100, cached=0)) as server:
        session = run_tasks(*at(server, "openai/somebodys-own"), "--evocode-budget=turns=2", "tasks", agent=None)
        assert [each.usage and each.usage.cost_usd for each in session.record(agent="somebodys-own").rounds] == [
            None,
            0,
        ]
        (session.directory / "prices.json").write_text(json.dumps(prices))
        priced = "--evocode-agent-option=prices=prices.json"
        again = run_tasks("--evocode-dry-run", *at(server, "openai/somebodys-own"), priced, "tasks", agent=None)
    again.has("somebodys-own *1 *2 *1 of 1 *2.2K *$0.0040 *0:0*")


def test_a_dry_run_refuses_a_budget_that_the_run_refuses(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    with ModelServer(solver(1)) as server:
        arguments = [*at(server, "openai/somebodys-own"), "--evocode-budget=cost=1", "tasks"]
        said = [run_tasks(*arguments, *more, agent=None) for more in ([], ["--evocode-dry-run"])]
    why = "the budget limits the cost, and what somebodys-own costs is not known"
    assert [(each.exit_status, why in each.text) for each in said] == [(4, True)] * 2


def test_a_dry_run_needs_an_agent(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-dry-run", "tasks", agent=None)
    assert session.exit_status == 4
    assert "--evocode-dry-run tells what agents would take; add --evocode-agent=AGENT" in session.text
