"""The model of rounds: what it finds in data that were drawn with known effects."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.errors import NotConverged, UsageError
from pytest_evocode.metrics.round_model import posterior
from pytest_evocode.metrics.round_model.outcomes import Outcomes, grouped_outcomes
from pytest_evocode.metrics.round_model.posterior import CHAINS, Posterior, fit
from pytest_evocode.metrics.round_model.sampling import sampled
from pytest_evocode.metrics.score_table import ScoreRow, score_table
from pytest_evocode.metrics.scores import dataset_score
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import Mode
from tests.metrics.round_draws import suggested
from tests.result_trees import write_attempt

CALM = {
    "intercept": 0.5, "depth": -0.1, "sd_task": 0.8, "sd_discrimination": 0.1, "sd_interaction": 0.2, "sd_round": 0.3,
    "sd_attempt": 0.4,
}  # fmt: skip

Fits = dict[str, tuple[Outcomes, Posterior]]


def simulated(abilities: float, carried: float, mode: Mode = "chain") -> Outcomes:
    """Four agents whose abilities spread so far."""
    import numpy as np

    from benchmarks.calibration import design, drawn

    random = np.random.default_rng(7)
    empty = design(4, 8, 4, 5 - np.arange(8) % 2)
    empty = Outcomes(empty.agents, empty.tasks, empty.passed, empty.counted, mode)
    seen, _ = drawn(empty, random, sd_agent=abilities, carried=carried, **CALM)
    if mode == "fail-stop":
        seen = Outcomes(seen.agents, seen.tasks, seen.passed, seen.counted & ~seen.failed_before, mode)
    return seen


@pytest.fixture(scope="module")
def fits() -> Fits:
    """What is found where agents differ, and where they do not but rounds carry something; compiled once."""
    made = {"differ": simulated(1.5, 0.0), "equal": simulated(0.0, -2.5)}
    return {name: (seen, fit(seen, draws=200, warmup=200)) for name, seen in made.items()}


def suggests(seen: Outcomes, draws: int = 300) -> Posterior:
    """Synthetic draws as the posterior."""
    found = suggested([seen] * CHAINS, draws, 0, 0)
    return Posterior(seen, {name: value.reshape(-1, *value.shape[2:]) for name, value in found.items()})


def shares(seen: Outcomes) -> list[float]:
    """The Dataset Score of each agent."""
    by_task = (seen.passed & seen.counted).sum(axis=3) / seen.declared.sum(axis=1)[:, None]
    return [100 * float(each) for each in by_task.mean(axis=(1, 2))]


@pytest.mark.stats
@pytest.mark.slow("compiles and samples the model once")
def test_the_order_of_agents_is_that_of_their_scores_and_these_agree_with_the_raw_ones(fits: Fits) -> None:
    seen, found = fits["differ"]
    raw = shares(seen)
    assert found.order == sorted(range(4), key=lambda agent: -raw[agent])
    assert found.scores.mean(axis=0) == pytest.approx(raw, abs=4)
    assert found.better(found.order[0], found.order[-1]) > 0.99
    assert found.ranks[:, found.order[0]].mean() < 1.5


@pytest.mark.stats
@pytest.mark.slow("compiles and samples the model once")
def test_equal_agents_are_one_group(fits: Fits) -> None:
    _, found = fits["equal"]
    assert [sorted(group) for group in found.groups] == [[0, 1, 2, 3]]
    assert 0.025 < found.better(0, 1) < 0.975


@pytest.mark.stats
@pytest.mark.slow("compiles and samples the model once")
@pytest.mark.parametrize(("name", "carried"), [("equal", -2.5), ("differ", 0.0)])
def test_what_a_failed_round_does_to_the_next_is_found_where_it_is_there(fits: Fits, name: str, carried: float) -> None:
    import numpy as np

    _, found = fits[name]
    low, high = np.percentile(found.effects["carried"], (0.5, 99.5))
    assert low < carried < high
    assert (high < 0) == (carried < 0)


@pytest.mark.stats
@pytest.mark.slow("compiles and samples the model once")
def test_shares_of_variance_add_up_and_those_of_what_hardly_varies_are_small(fits: Fits) -> None:
    _, found = fits["differ"]
    means = {name: float(share.mean()) for name, share in found.variance_shares.items()}
    assert list(means) == ["agent", "task", "interaction", "round", "attempt", "chance"]
    assert sum(means.values()) == pytest.approx(1)
    assert means["agent"] > means["interaction"]


@pytest.mark.stats
@pytest.mark.slow("compiles and samples the model once")
def test_the_same_seed_gives_the_same_numbers(fits: Fits) -> None:
    seen, found = fits["differ"]
    first, again = (sampled([seen], 200, 200, 0)["interaction"][0] for _ in range(2))
    assert (first == again).all()
    assert (first != found.draws["interaction"][-200:]).any()


@pytest.mark.stats
@pytest.mark.slow("imports jax")
@pytest.mark.parametrize("mode", ["chain", "fail-stop", "single-round"])
def test_the_model_is_the_documented_one(mode: Mode) -> None:
    import numpy as np
    from numpyro.infer.util import log_density

    from pytest_evocode.metrics.round_model.outcomes import log_odds
    from pytest_evocode.metrics.round_model.sampling import model_of

    seen = simulated(1.5, -1.0, mode)
    model, cells = model_of(seen)
    agents, tasks, attempts, rounds = seen.counted.shape
    random = np.random.default_rng(1)
    values = {"intercept": 0.3, "depth": -0.1, "sd_agent": 1.2, "sd_task": 0.7, "sd_discrimination": 0.4}
    values |= {"sd_interaction": 0.5, "sd_round": 0.6, "sd_attempt": 0.8, "carried": -1.5}
    shapes = {"agent": (agents,), "task": (tasks,), "discrimination": (tasks,), "interaction": (agents, tasks)}
    shapes |= {"round": (tasks, rounds), "attempt": (agents, tasks, attempts)}
    standard = {f"standard_{name}": random.standard_normal(shape) for name, shape in shapes.items()}
    _, trace = log_density(model, cells, {}, {**values, **standard})
    effects = {name: values[f"sd_{name}"] * standard[f"standard_{name}"] for name in shapes}
    effects["discrimination"] = np.exp(effects["discrimination"] - 0.4**2 / 2)
    draws = {name: np.asarray(value)[None] for name, value in {**values, **effects}.items()}
    odds = log_odds(draws, seen.depth)[0][:, :, None] + (effects["attempt"][..., None] if seen.has_attempts else 0)
    odds = np.broadcast_to(odds, seen.counted.shape) + (-1.5 * seen.failed_before if seen.carries else 0)
    chance = np.where(seen.passed, 1, -1) * odds
    expected = -np.log1p(np.exp(-chance))[seen.counted].sum()
    assert float(trace["rounds"]["fn"].log_factor) == pytest.approx(expected, rel=1e-4)
    assert ("sd_attempt" in trace, "carried" in trace) == (seen.has_attempts, seen.carries)


@pytest.mark.stats
def test_in_fail_stop_mode_a_round_counts_only_behind_passed_ones() -> None:
    seen = simulated(1.5, 0.0, "fail-stop")
    found = suggests(seen, draws=50)
    assert [*found.effects] == ["depth"]
    chain = Posterior(simulated(1.5, 0.0), {**found.draws, "carried": 0 * found.draws["depth"]})
    assert (found.scores < chain.scores).all()


@pytest.mark.stats
def test_single_rounds_have_neither_attempts_nor_carried_state() -> None:
    found = suggests(simulated(1.5, 0.0, "single-round"))
    assert [*found.effects] == ["depth"]
    assert "attempt" not in found.variance_shares


@pytest.mark.stats
@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("depth", 9.0, r"R-hat \d+\.\d\d is above 1\.05"),
        ("diverging", 1.0, "300 of 2,400 draws diverged"),
    ],
)
def test_bad_draws_are_taken_again_by_shorter_steps_and_then_refused(
    monkeypatch: pytest.MonkeyPatch, name: str, value: float, why: str
) -> None:
    tried = []

    def bad(seen: list[Outcomes], draws: int, *settings: int, target_accept: float) -> dict[str, object]:
        found = suggested(seen, draws, *settings)
        found[name][0, : draws // 2] = value
        tried.append((draws, target_accept))
        return {**found}

    monkeypatch.setattr(posterior, "sampled", bad)
    with pytest.raises(NotConverged, match=rf"not sampled well enough to be believed: .*{why}.*; take more --draws"):
        fit(simulated(1.5, 0.0), draws=300)
    assert tried == [(300, 0.8), (600, 0.95)]


@pytest.mark.stats
def test_assurance_grows_with_tasks_and_attempts() -> None:
    found = suggests(simulated(1.5, 0.0))
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


@pytest.mark.stats
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
