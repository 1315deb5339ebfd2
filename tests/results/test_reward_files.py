"""What a suite may write as its reward, and what it is told when it wrote something else."""

from __future__ import annotations

import json
import math

import pytest

from pytest_evocode.errors import VerifierFault
from pytest_evocode.results.records import DecidingRule, Verdict
from pytest_evocode.results.rewards import decide, parse_reward_json, parse_reward_text

WHAT_TO_WRITE = "test.sh has to write a number from 0 to 1"


def decided(text: str) -> float | None:
    return decide(parse_reward_text(text), None).reward


@pytest.mark.parametrize(
    ("text", "reward"),
    [
        ("1", 1.0),
        ("0", 0.0),
        ("0.25\n", 0.25),
        (".5", 0.5),
        ("1.", 1.0),
        ("+1", 1.0),
        (" 1.0 \r\n", 1.0),
        ("1e-3", 0.001),
        ("-0.0", 0.0),
        ("0.9990", 0.999),
    ],
)
def test_a_number_from_zero_to_one_is_the_reward(text: str, reward: float) -> None:
    assert decided(text) == reward


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "reward.txt is empty"),
        (" \n\t", "reward.txt is empty"),
        ("passed", "reward.txt holds 'passed', which is not a number"),
        ("1 0", "which is not a number"),
        ("1,0", "which is not a number"),
        ("100%", "which is not a number"),
        ("0x1", "which is not a number"),
        ("0_1", "which is not a number"),
        ("1_0.0", "which is not a number"),
        ("\u0661", "which is not a number"),
        ("\uff11", "which is not a number"),
        ("0.\u0966", "which is not a number"),
        ("\u00a01", "which is not a number"),
        ("1\x0c", "which is not a number"),
        ("1\0", "which is not a number"),
        (".", "which is not a number"),
        ("1e", "which is not a number"),
        ("nan", "which is not a finite number"),
        ("-nan", "which is not a finite number"),
        ("inf", "which is not a finite number"),
        ("-Infinity", "which is not a finite number"),
        ("1e400", "which is not a finite number"),
        ("9" * 400, "which is not a finite number"),
    ],
)
def test_any_other_text_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(VerifierFault) as caught:
        decided(text)
    assert said in str(caught.value)
    assert WHAT_TO_WRITE in str(caught.value)


def test_a_long_text_is_quoted_in_part() -> None:
    with pytest.raises(VerifierFault) as caught:
        parse_reward_text("no number " * 10_000)
    assert len(str(caught.value)) < 300


def test_a_table_of_numbers_gives_all_rewards() -> None:
    assert parse_reward_json('{"reward": 1, "style": 0.5, "speed": 3.5}') == {"reward": 1.0, "style": 0.5, "speed": 3.5}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "reward.json is not JSON"),
        ("{", "reward.json is not JSON"),
        ("{'reward': 1}", "reward.json is not JSON"),
        ("[" * 100_000, "reward.json is not JSON"),
        ('{"reward": ' + "9" * 5000 + "}", "reward.json is not JSON"),
        ("1", "not a table with at least one reward"),
        ("null", "not a table with at least one reward"),
        ("[1.0]", "not a table with at least one reward"),
        ('"1"', "not a table with at least one reward"),
        ("{}", "not a table with at least one reward"),
        ('{"reward": "1"}', "reward.json has '\"1\"' for 'reward', not a number"),
        ('{"reward": null}', "for 'reward', not a number"),
        ('{"reward": [1]}', "for 'reward', not a number"),
        ('{"reward": {"value": 1}}', "for 'reward', not a number"),
        ('{"reward": 1, "style": {"lint": 1}}', "for 'style', not a number"),
        ('{"reward": NaN}', "which is not a finite number"),
        ('{"reward": 1, "style": Infinity}', "reward.json has inf for 'style', which is not a finite number"),
        ('{"reward": -Infinity}', "which is not a finite number"),
        ('{"reward": 1e999}', "which is not a finite number"),
        ('{"reward": ' + "9" * 400 + "}", "which is not a finite number"),
        ('{"\\ud800": 1}', "reward.json is not JSON"),
        ('{"reward": 0_1}', "reward.json is not JSON"),
        ('{"reward": 01}', "reward.json is not JSON"),
        ('{"reward": \u0661}', "reward.json is not JSON"),
        ('{"reward": \uff11.\uff10}', "reward.json is not JSON"),
        (json.dumps(dict.fromkeys(map(str, range(101)), 1)), "reward.json has more than 100 rewards"),
        (json.dumps({"x" * 201: 1}), "or one whose name has more than 200 characters"),
    ],
)
def test_any_other_json_is_refused_with_what_to_write(text: str, said: str) -> None:
    with pytest.raises(VerifierFault) as caught:
        parse_reward_json(text)
    assert said in str(caught.value)
    assert WHAT_TO_WRITE in str(caught.value)
    assert len(str(caught.value)) < 500


@pytest.mark.parametrize("value", [2, -0.1, 1.001, 1e300])
def test_a_reward_outside_zero_to_one_decides_as_it_is(value: float) -> None:
    assert decide(parse_reward_json(json.dumps({"reward": value})), None).reward == value
    assert decided(f"{value}") == value


@pytest.mark.parametrize(("minimum", "reached"), [({"style": -5.0}, False), ({"speed": -5.0}, True), ({}, True)])
def test_a_reward_that_was_not_written_reaches_no_bound(minimum: dict[str, float], reached: bool) -> None:
    assert Verdict(reward=1, rewards={"reward": 1, "speed": -5.0}).reaches(minimum) is reached


def test_true_and_false_are_one_and_zero() -> None:
    assert parse_reward_json('{"reward": true, "style": false}') == {"reward": 1.0, "style": 0.0}


def test_a_reward_that_does_not_decide_may_be_any_finite_number() -> None:
    assert decide({"reward": 1.0, "seconds": 17.5}, None).reward == 1.0


def test_the_key_reward_decides_even_where_the_task_names_another() -> None:
    assert decide({"reward": 0.25, "tests": 1.0}, "tests").reward == 0.25


def test_an_only_reward_decides_whatever_its_name() -> None:
    assert decide({"correctness": 0.5}, None).reward == 0.5


def test_of_several_rewards_the_one_that_the_task_names_decides() -> None:
    assert decide({"tests": 0.75, "style": 0.5}, "tests").reward == 0.75


def test_of_several_rewards_the_only_one_with_a_bound_decides() -> None:
    assert decide({"tests": 0.75, "style": 0.5}, None, ["tests"]).reward == 0.75
    assert decide({"tests": 0.75, "style": 0.5}, "style", ["tests"]).reward == 0.5


@pytest.mark.parametrize(
    ("reward_key", "minimum", "key", "rule"),
    [
        ("tests", [], "tests", "named"),
        ("tests", ["core"], "tests", "named"),
        (None, ["core", "strict"], "strict", "min_reward"),
        (None, ["strict", "lint"], "strict", "min_reward"),  # The suite wrote no lint.
        (None, [], "erosion", "smallest"),
        (None, ["reward"], "erosion", "smallest"),  # A number asks for any reward.
        (None, ["lint"], "erosion", "smallest"),
    ],
)
def test_of_several_rewards_the_smallest_that_the_task_asks_for_decides_and_the_verdict_says_so(
    reward_key: str | None, minimum: list[str], key: str, rule: DecidingRule
) -> None:
    rewards = {"tests": 1.0, "core": 1.0, "strict": 0.75, "erosion": 0.0, "verbosity": 0.0}
    verdict = decide(rewards, reward_key, minimum)
    assert verdict == Verdict(reward=rewards[key], rewards=rewards, deciding_key=key, deciding_rule=rule)


@pytest.mark.parametrize("rewards", [{"reward": 0.5, "tests": 1.0}, {"tests": 1.0}])
def test_where_there_is_no_choice_the_verdict_says_of_none(rewards: dict[str, float]) -> None:
    assert decide(rewards, None, ["tests"]).deciding_rule is None


def test_a_named_reward_that_the_suite_did_not_write_is_an_error_that_lists_what_it_wrote() -> None:
    with pytest.raises(VerifierFault) as caught:
        decide({"tests": 1.0, "style": 1.0}, "correctness")
    assert "has no 'correctness'" in str(caught.value)
    assert str(caught.value).endswith("it has style, tests")


@pytest.mark.parametrize(
    ("reward", "passed"),
    [
        (1.0, True),
        (17.0, True),
        (-1.0, False),
        (0.999, True),
        (0.9989, False),
        (math.nextafter(0.999, 0), False),
        (0.0, False),
    ],
)
def test_a_round_passes_from_0_999_on(reward: float, passed: bool) -> None:
    assert Verdict(reward=reward, rewards={"reward": reward}).passed is passed
