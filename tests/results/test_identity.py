"""Who an agent is: the same description is the same agent, and labels show what differs."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.results.identity import (
    AgentIdentity,
    Conditions,
    Subject,
    distinct_names,
    identity_of,
    settings_of,
    subject_labels,
)


def gpt(spec: str = "openai/gpt-5", name: str = "gpt-5", **values: Any) -> AgentIdentity:
    return identity_of({"spec": spec, **values}, name)


def labels(*agents: AgentIdentity) -> list[str]:
    return list(subject_labels(Subject(each, Conditions()) for each in agents).values())


def test_an_agent_is_its_spec_options_and_harness() -> None:
    harness = {"name": "pytest-evocode", "version": "1.0"}
    one = gpt(options={"effort": "high"}, harness=harness)
    assert one == gpt(harness=harness, options={"effort": "high"})
    others = [
        gpt(options={"effort": "low"}, harness=harness),
        gpt("anthropic/gpt-5", options={"effort": "high"}, harness=harness),
        gpt(options={"effort": "high"}, harness={**harness, "version": "1.1"}),
        gpt(options={"effort": "high"}),
        gpt(options={"effort": "high"}, harness=harness, name="mine"),
    ]
    assert len({each.hash for each in (one, *others)}) == 6


def test_a_name_that_a_session_gave_does_not_make_another_agent() -> None:
    told_apart = identity_of({"spec": "openai/gpt-5", "name": "gpt-5"}, "openai-gpt-5")
    assert told_apart == gpt()


@pytest.mark.parametrize(
    "values",
    [
        {"options": {"key_env": "MY_KEY", "retries": 3}},
        {"options": {"prices": {"path": "prices.json", "sha256": "1"}}},
        {"options": {"env": {"SERVICE_TOKEN": "abc"}, "api_key": "abc"}},
    ],
)
def test_secrets_and_by_what_means_a_model_is_reached_are_no_part_of_it(values: dict[str, Any]) -> None:
    assert gpt(**values) == gpt()


def test_what_differs_from_run_to_run_is_no_part_of_it() -> None:
    first, second = (
        gpt(options={"tool": f"x --log /tmp/run-{number}/log --at http://me:pw@host:{number}/v1?key={number}"})
        for number in (1, 2)
    )
    assert first == second
    assert "pw" not in str(first)


def test_numbers_of_tokens_are_part_of_it_and_a_file_is_its_contents() -> None:
    assert gpt(options={"context_tokens": 1000}) != gpt(options={"context_tokens": 2000})
    here, there = ({"path": path, "sha256": "ab"} for path in ("careful.md", "/home/me/careful.md"))
    assert gpt(options={"rules": here}) == gpt(options={"rules": there})
    assert gpt(options={"path": here}) != gpt()


def test_a_label_shows_what_was_given_and_else_only_what_differs() -> None:
    harness = {"harness": {"name": "claude-code", "version": "2.1"}}
    newer = {"harness": {"name": "claude-code", "version": "2.2"}}
    assert labels(gpt(options={"effort": "high"})) == ["gpt-5 effort=high"]
    assert labels(gpt(options={"effort": "high", "api": "chat"}), gpt(options={"effort": "low", "api": "chat"})) == [
        "gpt-5 api=chat effort=high",
        "gpt-5 api=chat effort=low",
    ]
    assert labels(gpt(), gpt("anthropic/gpt-5")) == ["openai/gpt-5", "anthropic/gpt-5"]
    assert labels(gpt("claude-code", "claude-code", **harness), gpt("claude-code", "claude-code", **newer)) == [
        "claude-code 2.1",
        "claude-code 2.2",
    ]
    assert labels(gpt(), gpt(name="other", options={"effort": "low"})) == ["gpt-5", "other"]
    rules = [{"path": f"{name}.md", "sha256": name} for name in ("careful", "bold")]
    assert labels(*(gpt(options={"rules": each}) for each in rules)) == [
        "gpt-5 rules=careful.md",
        "gpt-5 rules=bold.md",
    ]


def test_what_is_not_said_is_a_value_of_its_own() -> None:
    assert labels(identity_of({}, "gpt-5"), gpt()) == ["gpt-5 (not said)", "openai/gpt-5"]
    assert labels(gpt(), gpt(harness={"name": "pytest-evocode", "version": "1.0"})) == [
        "gpt-5 (harness not said)",
        "gpt-5 pytest-evocode 1.0",
    ]


def test_labels_are_never_the_same() -> None:
    one, other = (gpt(options={"rules": {"path": f"{place}/rules.md", "sha256": place}}) for place in ("a", "b"))
    assert labels(one, other) == [f"gpt-5 rules=rules.md {each.hash}" for each in (one, other)]


def test_a_declared_name_stands_for_its_options() -> None:
    low, high = (gpt(name="careful", options={"effort": effort, "api": "chat"}) for effort in ("low", "high"))
    assert labels(low) == ["careful"]
    assert labels(low, high) == ["careful effort=low", "careful effort=high"]


def test_a_label_does_not_depend_on_what_else_there_is() -> None:
    agents = [gpt(), gpt(options={"effort": "high"}), gpt(name="careful", options={"effort": "high"})]
    given = [None, {"verify-times": "3"}, {"verify-times": "1", "budget": "turns=9"}]
    said = [Conditions("docker", strict, None, settings_of(each or {})) for each in given for strict in (False, True)]
    subjects = [Subject(agent, each) for agent in agents for each in said]
    together = subject_labels(subjects)
    assert len({*together.values()}) == len(subjects)
    for subject in subjects:
        assert subject_labels([subject]) == {subject: together[subject]}
    assert together[Subject(agents[1], said[-1])] == "gpt-5 effort=high strict budget=turns=9"


def test_conditions_are_shown_where_they_are_off_their_defaults() -> None:
    said = [Conditions("docker", False), Conditions("docker", True), Conditions("docker", False, "clean")]
    assert list(subject_labels(Subject(gpt(), each) for each in said).values()) == [
        "gpt-5",
        "gpt-5 strict",
        "gpt-5 verify=clean",
    ]
    old = [Conditions("docker"), Conditions("docker", False)]
    assert list(subject_labels(Subject(gpt(), each) for each in old).values()) == [
        "gpt-5 (strict and verify not said)",
        "gpt-5",
    ]
    assert list(subject_labels([Subject(gpt(), said[0])]).values()) == ["gpt-5"]


@pytest.mark.parametrize(
    ("given", "names"),
    [
        ((gpt(), gpt("anthropic/gpt-5")), ["openai-gpt-5", "anthropic-gpt-5"]),
        ((gpt(), gpt(name="other")), ["gpt-5", "other"]),
    ],
)
def test_agents_of_a_session_are_told_apart(given: tuple[AgentIdentity, ...], names: list[str]) -> None:
    assert distinct_names([(dict(each.parts)["spec"], each) for each in given]) == names


def test_one_spec_with_other_options_is_told_apart_by_them() -> None:
    declared, plain = gpt(options={"temperature": 0.2}), gpt()
    assert distinct_names([("gpt-5", declared), ("openai/gpt-5", plain)]) == ["gpt-5-temperature-0-2", "openai-gpt-5"]
    replays = [(f"replay:{place}/ledger__a1", identity_of({}, "replay")) for place in ("a", "b/c")]
    assert distinct_names(replays) == ["replay-a", "replay-b-c"]


def test_the_server_that_is_asked_is_part_of_it_without_secrets() -> None:
    first, second = (gpt(options={"base_url": f"http://me:secret@127.0.0.1:{port}/v1?key=secret"}) for port in (1, 2))
    assert len({gpt(), first, second}) == 3
    assert "secret" not in str(first)
    assert labels(first, second) == ["gpt-5 base_url=127.0.0.1:1", "gpt-5 base_url=127.0.0.1:2"]


def test_by_what_means_a_model_is_reached_is_not_who_an_agent_is() -> None:
    plain = identity_of({"spec": "openai/gpt-5"}, "gpt-5")
    options = {"max_connections": 4, "ca": {"path": "ca.pem", "sha256": "0"}}
    assert identity_of({"spec": "openai/gpt-5", "options": options}, "gpt-5") == plain


def test_settings_that_differ_are_in_labels_and_those_of_the_product_are_not() -> None:
    gpt = identity_of({}, "gpt")
    given = [{"verify-times": "1", "version": "1.0"}, {"verify-times": "3", "version": "1.1"}]
    subjects = [Subject(gpt, Conditions("docker", False, None, settings_of(each))) for each in given]
    assert list(subject_labels(subjects).values()) == ["gpt", "gpt verify-times=3"]
    silent = Subject(gpt, Conditions("docker", False, None, None))
    assert subject_labels([subjects[0], silent])[silent] == "gpt (conditions not said)"
