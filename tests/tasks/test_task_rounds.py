"""What a step leaves out comes from the task, else from the format."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.tasks import Allowlist, Artifact, Healthcheck, Round, load_task

WriteTask = Callable[..., Path]


def rounds(write_task: WriteTask, task: str, first_step: str = "") -> tuple[Round, ...]:
    toml = f'{task}\n[[steps]]\nname = "round-1"\n{first_step}\n[[steps]]\nname = "round-2"\n'
    return load_task(write_task(toml)).rounds


def test_a_timeout_of_the_step_wins_over_the_tasks(write_task: WriteTask) -> None:
    task = "[agent]\ntimeout_sec = 100\n[verifier]\ntimeout_sec = 50.5"
    first, second = rounds(write_task, task, "[steps.agent]\ntimeout_sec = 10\n[steps.verifier]\ntimeout_sec = 5")
    assert (first.agent_timeout, first.verifier_timeout) == (10, 5)
    assert (second.agent_timeout, second.verifier_timeout) == (100, 50.5)


def test_a_step_section_that_says_something_else_keeps_the_tasks_timeout(write_task: WriteTask) -> None:
    task = '[agent]\ntimeout_sec = 100\nuser = "dev"\n[verifier]\ntimeout_sec = 50\nuser = 0'
    first, _ = rounds(write_task, task, "[steps.agent]\nuser = 1000\n[steps.verifier]\nenv = { A = '1' }")
    assert (first.agent_timeout, first.agent_user) == (100, 1000)
    assert (first.verifier_timeout, first.verifier_user) == (50, 0)


def test_a_step_may_name_the_default_timeout_against_the_tasks(write_task: WriteTask) -> None:
    first, _ = rounds(write_task, "[verifier]\ntimeout_sec = 50", "[steps.verifier]\ntimeout_sec = 600")
    assert first.verifier_timeout == 600


def test_the_steps_variables_are_laid_over_the_tasks(write_task: WriteTask) -> None:
    task = '[verifier]\nenv = { A = "1", B = "${HOST}" }\n[solution]\nenv = { S = "s" }'
    first, second = rounds(write_task, task, '[steps.verifier]\nenv = { A = "2" }')
    assert first.verifier_env == {"A": "2", "B": "${HOST}"}
    assert second.verifier_env == {"A": "1", "B": "${HOST}"}
    assert first.solution_env == {"S": "s"}


@pytest.mark.parametrize(
    ("task", "agent", "verifier"),
    [
        ("", None, None),
        ("[environment]\nallow_internet = true", "public", "public"),
        ("[environment]\nallow_internet = false", "no-network", "no-network"),
        ('[environment]\nallow_internet = true\nnetwork_mode = "no-network"', "no-network", "no-network"),
        ('[environment]\nnetwork_mode = "no-network"\n[agent]\nnetwork_mode = "public"', "public", "no-network"),
        ('[environment]\nallow_internet = false\n[verifier]\nnetwork_mode = "public"', "no-network", "public"),
    ],
)
def test_network_is_the_phases_then_the_environments(
    write_task: WriteTask, task: str, agent: str | None, verifier: str | None
) -> None:
    for round_ in rounds(write_task, task):
        assert (round_.agent_network, round_.verifier_network) == (agent, verifier)


def test_phases_and_steps_have_lists_of_their_own(write_task: WriteTask) -> None:
    task = """
[environment]
network_mode = "public"
[agent]
network_mode = "allowlist"
allowed_hosts = ["Packages.example.net.", "*.example.org", "192.0.2.0/24", "2001:DB8::1", "packages.example.net"]
[verifier]
network_mode = "allowlist"
"""
    step = '[steps.agent]\nnetwork_mode = "no-network"\n[steps.verifier]\nnetwork_mode = "public"'
    first, second = rounds(write_task, task, step)
    whole = Allowlist(("packages.example.net", "*.example.org", "192.0.2.0/24", "2001:db8::1"))
    assert (first.setup_network, first.agent_network, first.verifier_network) == ("public", "no-network", "public")
    assert (second.setup_network, second.agent_network) == ("public", whole)
    assert (second.verifier_network, second.suite_has_network) == (Allowlist(), False)


def test_the_environment_has_an_allowlist_as_soon_as_one_phase_there_has(write_task: WriteTask) -> None:
    def network(toml: str) -> object:
        return load_task(write_task(toml)).environment_network

    steps = '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n'
    listed = '[steps.agent]\nnetwork_mode = "allowlist"\nallowed_hosts = ["a.org"]\n'
    assert network(steps + listed) == Allowlist(("a.org",))
    suite = '[verifier]\nnetwork_mode = "allowlist"\n'
    assert network(suite + steps) is None
    assert network(f'{suite}[metadata.evocode]\nverify_in = "in-place"\n{steps}') == Allowlist()


@pytest.mark.parametrize("of_task", ["", "environment.allow_internet = false\n", 'agent.network_mode = "public"\n'])
@pytest.mark.parametrize("mode", ["public", "no-network"])
def test_agents_of_rounds_may_have_different_networks(write_task: WriteTask, of_task: str, mode: str) -> None:
    toml = f'{of_task}[[steps]]\nname = "round-1"\nagent.network_mode = "{mode}"\n[[steps]]\nname = "round-2"\n'
    task = load_task(write_task(toml))
    first, second = (round_.agent_network for round_ in task.rounds)
    assert first == mode
    # A gate, which can be opened and closed for each turn.
    assert task.environment_network == (first if first == second else Allowlist())


def test_a_step_may_close_the_network_for_its_verifier(write_task: WriteTask) -> None:
    task = '[environment]\nnetwork_mode = "public"'
    step = '[steps.agent]\nnetwork_mode = "public"\n[steps.verifier]\nnetwork_mode = "no-network"'
    first, second = rounds(write_task, task, step)
    assert (first.agent_network, first.verifier_network) == ("public", "no-network")
    assert second.verifier_network == "public"


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("min_reward = 1", {"reward": 1.0}),
        ("min_reward = 0.5", {"reward": 0.5}),
        ("min_reward = { safety = 1, speed = 0.2 }", {"safety": 1.0, "speed": 0.2}),
    ],
)
def test_min_reward_is_a_number_or_a_table(write_task: WriteTask, written: str, read: dict[str, float]) -> None:
    first, second = rounds(write_task, "", written)
    assert first.min_reward == read
    assert second.min_reward is None


def test_a_healthcheck_belongs_to_its_step(write_task: WriteTask) -> None:
    task = '[environment.healthcheck]\ncommand = "true"\nretries = 9'
    first, second = rounds(write_task, task, '[steps.healthcheck]\ncommand = "test -f x"\ninterval_sec = 0')
    assert first.healthcheck == Healthcheck(
        command="test -f x",
        interval_sec=0,
        timeout_sec=30,
        start_period_sec=0,
        start_interval_sec=5,
        retries=3,
    )
    assert second.healthcheck is None


def test_artifacts_are_the_tasks_then_the_steps(write_task: WriteTask) -> None:
    task = 'artifacts = ["/app/out.txt"]'
    step = 'artifacts = [{ source = "/app/log", destination = "logs", exclude = ["*.tmp"] }]'
    first, second = rounds(write_task, task, step)
    assert first.artifacts == (
        Artifact(source="/app/out.txt"),
        Artifact(source="/app/log", destination="logs", exclude=("*.tmp",)),
    )
    assert second.artifacts == (Artifact(source="/app/out.txt"),)


def test_change_types_come_from_the_requirement_chain(write_task: WriteTask) -> None:
    task = """
[metadata.requirement_chain]
note = "free"
steps = [
    { step = "round-2", change_types = ["conflict", "extension"], why = "free" },
    { step = "round-2", change_types = "correction" },
]
"""
    first, second = rounds(write_task, task)
    assert first.change_types == ()
    assert second.change_types == ("conflict", "extension", "correction")


@pytest.mark.parametrize("field", ["name", "agent_timeout", "has_tests"])
def test_rounds_cannot_be_changed(write_task: WriteTask, field: str) -> None:
    first: Any = rounds(write_task, "")[0]
    with pytest.raises(AttributeError):
        setattr(first, field, None)
