"""The model of rounds: what it finds in data that were drawn with known effects."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest

from benchmarks.calibration import design, drawn
from pytest_evocode.errors import UsageError
from pytest_evocode.metrics.round_model.outcomes import Outcomes, grouped_outcomes
from pytest_evocode.metrics.round_model.posterior import NotConverged, Posterior, fit
from pytest_evocode.metrics.round_model.sampling import sampled
from pytest_evocode.metrics.score_table import ScoreRow, score_table
from pytest_evocode.metrics.scores import dataset_score
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import Mode
from tests.result_trees import write_attempt

CALM = {
    "intercept": 0.5, "depth": -0.1, "sd_task": 0.8, "sd_discrimination": 0.1, "sd_interaction": 0.2, "sd_round": 0.3,
    "sd_attempt": 0.4,
}  # fmt: skip


@cache
def simulated(abilities: float, carried: float, mode: Mode = "chain") -> tuple[Outcomes, Posterior]:
    """Four agents whose abilities spread so far, and what is found of them."""
    import numpy as np

    random = np.random.default_rng(7)
    empty = design(4, 8, 4, 5 - np.arange(8) % 2)
    empty = Outcomes(empty.agents, empty.tasks, empty.passed, empty.counted, mode)
    seen, _ = drawn(empty, random, sd_agent=abilities, carried=carried, **CALM)
    if mode == "fail-stop":
        seen = Outcomes(seen.agents, seen.tasks, seen.passed, seen.counted & ~seen.failed_before, mode)
    return seen, fit(seen, draws=300, warmup=100)


def shares(seen: Outcomes) -> list[float]:
    """The Dataset Score of each agent."""
    by_task = (seen.passed & seen.counted).sum(axis=3) / seen.declared.sum(axis=1)[:, None]
    return [100 * float(each) for each in by_task.mean(axis=(1, 2))]


@pytest.mark.every_python
def test_the_order_of_agents_is_that_of_their_scores_and_these_agree_with_the_raw_ones() -> None:
    seen, found = simulated(1.5, 0.0)
    raw = shares(seen)
    assert found.order == sorted(range(4), key=lambda agent: -raw[agent])
    assert found.scores.mean(axis=0) == pytest.approx(raw, abs=4)
    assert found.better(found.order[0], found.order[-1]) > 0.99
    assert found.ranks[:, found.order[0]].mean() < 1.5


def test_equal_agents_are_one_group() -> None:
    _, found = simulated(0.0, -2.5)
    assert [sorted(group) for group in found.groups] == [[0, 1, 2, 3]]
    assert 0.025 < found.better(0, 1) < 0.975


@pytest.mark.parametrize(("abilities", "carried"), [(0.0, -2.5), (1.5, 0.0)])
def test_what_a_failed_round_does_to_the_next_is_found_where_it_is_there(abilities: float, carried: float) -> None:
    import numpy as np

    _, found = simulated(abilities, carried)
    low, high = np.percentile(found.effects["carried"], (0.5, 99.5))
    assert low < carried < high
    assert (high < 0) == (carried < 0)


def test_shares_of_variance_add_up_and_those_of_what_hardly_varies_are_small() -> None:
    _, found = simulated(1.5, 0.0)
    means = {name: float(share.mean()) for name, share in found.variance_shares.items()}
    assert list(means) == ["agent", "task", "interaction", "round", "attempt", "chance"]
    assert sum(means.values()) == pytest.approx(1)
    assert means["agent"] > means["interaction"]


def test_in_fail_stop_mode_a_round_counts_only_behind_passed_ones() -> None:
    seen, found = simulated(1.5, 0.0, "fail-stop")
    assert [*found.effects] == ["depth"]
    assert found.scores.mean(axis=0) == pytest.approx(shares(seen), abs=5)


def test_single_rounds_have_neither_attempts_nor_carried_state() -> None:
    _, found = simulated(1.5, 0.0, "single-round")
    assert [*found.effects] == ["depth"]
    assert "attempt" not in found.variance_shares


def test_the_same_seed_gives_the_same_numbers() -> None:
    seen, _ = simulated(1.5, 0.0)
    first, again, other = (sampled([seen], 5, 5, seed)["interaction"] for seed in (0, 0, 1))
    assert (first == again).all()
    assert (first != other).all()


def test_too_few_draws_are_not_believed() -> None:
    seen, _ = simulated(1.5, 0.0)
    with pytest.raises(NotConverged, match=r"not sampled well enough to be believed: .+ take more"):
        fit(seen, draws=4, warmup=0)


def test_assurance_grows_with_tasks_and_attempts() -> None:
    _, found = simulated(1.5, 0.0)
    two = [found.order[0], found.order[-1]]
    ends = {"agent": found.draws["agent"][:, two], "interaction": found.draws["interaction"][:, two]}
    assured = Posterior(found.seen, {**found.draws, **ends}).assurance([5, 10, 100], [1, 8], 0.05)
    assert assured[0].tolist() == [0, 0]
    assert assured[1, 0] < assured[1, 1] < assured[2, 1]
    assert assured[2, 1] > 0.9


def rows(root: Path, letters: dict[str, tuple[str, ...]], tasks: int = 5, mode: Mode = "chain") -> tuple[ScoreRow, ...]:
    """Rows of agents with the same outcomes at each task."""
    for agent, attempts in letters.items():
        for number, outcomes in enumerate(attempts, 1):
            for task in range(tasks):
                write_attempt(root, f"t{task}", agent, outcomes, number=number, mode=mode)
    return score_table(load_results([root])).rows


@pytest.mark.parametrize(
    ("letters", "tasks", "why"),
    [
        ({"a": ("pf", "pp"), "oracle": ("pp", "pp")}, 5, "2 agents are needed, without controls"),
        ({"a": ("pf", "pp"), "b": ("pp", "pp")}, 4, "5 tasks are needed: of fewer it is not known how tasks vary"),
        ({"a": ("pf",), "b": ("pp",)}, 5, "two attempts at 5 tasks are needed"),
        ({"a": ("pp", "pp"), "b": ("pp", "pp")}, 5, "every round has the same outcome"),
        ({"nop": ("pf", "pf")}, 5, "there are no agents but controls"),
    ],
)
def test_of_too_few_nothing_is_said_but_why(
    tmp_path: Path, letters: dict[str, tuple[str, ...]], tasks: int, why: str
) -> None:
    with pytest.raises(UsageError, match=why):
        grouped_outcomes(rows(tmp_path, letters, tasks))


@pytest.mark.parametrize(
    ("mode", "passed", "counted"),
    [
        ("chain", [True, False, True, False], [True, True, True, True]),
        ("fail-stop", [True, False, False, False], [True, True, False, False]),
    ],
)
def test_what_counts_is_what_scores_count(tmp_path: Path, mode: Mode, passed: list[bool], counted: list[bool]) -> None:
    found = rows(tmp_path, {"a": ("pfp-", "pf-e"), "b": ("pppp", "pppp")}, mode=mode)
    (seen,) = grouped_outcomes(found).values()
    assert seen.agents == ["a", "b"]
    assert seen.passed[0, 0, 0].tolist() == passed
    assert seen.counted[0, 0, 0].tolist() == counted
    assert not seen.counted[0, 0, 1, 3]
    if mode == "chain":
        assert seen.failed_before[0, 0, 0].tolist() == [False, False, True, False]
        assert dataset_score(found[1].grid) == shares(seen)[1]
