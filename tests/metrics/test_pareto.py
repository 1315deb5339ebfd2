"""The Pareto front of score against what it takes, and the score per US dollar."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.metrics.efficiency import Chance, Efficiency, Taken, efficiency, front, standings, taken_interval
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.statistics.intervals import t_interval
from pytest_evocode.results.records import Usage
from tests.metrics.conftest import make_record


def taken(value: float | None) -> Taken:
    return Taken(value, known=int(value is not None), of=1)


def row(score: float, cost: float | None, tokens: float | None = 0, seconds: float | None = 0) -> Efficiency:
    return Efficiency(score, taken(cost), taken(tokens), taken(seconds), passed_rounds=1)


def usage(cost: float | None, tokens: int = 10) -> Usage:
    return Usage(prompt_tokens=tokens, completion_tokens=0, cost_usd=cost)


def test_equal_rows_are_all_on_the_front_and_a_dearer_equal_score_is_not() -> None:
    found = front({"x": row(50, 1), "y": row(50, 1), "z": row(50, 2)}, ["cost"])
    assert found.front == ("x", "y")
    assert found.dominated == {"z": ("x", "y")}


def test_a_row_that_is_worse_in_one_amount_and_better_in_another_is_on_the_front_of_both() -> None:
    rows = {"cheap": row(50, 1, seconds=9), "fast": row(50, 2, seconds=1)}
    assert front(rows, ["cost"]).front == ("cheap",)
    assert front(rows).front == ("cheap", "fast")


def test_what_is_not_known_is_left_out_and_named_and_never_cheap() -> None:
    found = front({"x": row(10, 1), "y": row(90, None, tokens=None)}, ["cost", "tokens"])
    assert found.front == ("x",)
    assert found.left_out == {"y": "cost, tokens: known of 0 of 1 rounds"}
    assert front({"y": row(90, None)}, ["cost"]).front == ()


small = st.integers(0, 3)


@given(st.lists(st.tuples(small, small, small, small), min_size=1, max_size=6))
def test_the_front_is_what_a_comparison_of_all_pairs_finds(points: list[tuple[int, int, int, int]]) -> None:
    rows = {str(place): row(*point) for place, point in enumerate(points)}
    best = set()
    for place, (score, *amounts) in enumerate(points):
        beaten = False
        for other_score, *others in points:
            no_worse = other_score >= score and all(a <= b for a, b in zip(others, amounts, strict=True))
            better = other_score > score or any(a < b for a, b in zip(others, amounts, strict=True))
            beaten |= no_worse and better
        if not beaten:
            best.add(str(place))
    found = front(rows)
    assert set(found.front) == best
    assert set(found.front) | set(found.dominated) == set(rows)
    assert all(found.dominated.values())


def test_what_a_score_takes_is_that_of_one_attempt_at_each_task() -> None:
    records = [
        make_record("t", 1, of=2, attempt=1, usage=usage(1.0), agent_seconds=4),
        make_record("t", 2, "failed", of=2, attempt=1, usage=usage(1.0), agent_seconds=4),
        make_record("t", 1, "failed", of=2, attempt=2, usage=usage(2.0), agent_seconds=2),
        make_record("t", 2, "not reached", of=2, attempt=2),
        make_record("u", 1, attempt=1, usage=usage(3.0), agent_seconds=1),
    ]
    found = efficiency(Grid.of(records))
    assert found.score == pytest.approx(62.5)
    assert (found.cost_usd.value, found.agent_seconds.value, found.tokens.value) == (5.0, 6.0, 25.0)
    assert found.score_per_usd == pytest.approx(62.5 / 5)
    assert found.usd_per_passed_round == pytest.approx(5 / 1.5)


def test_a_cost_that_is_not_known_of_every_round_is_no_cost() -> None:
    found = efficiency(Grid.of([make_record(of=2, usage=usage(1.0)), make_record(index=2, of=2, usage=usage(None))]))
    assert (found.cost_usd.value, found.cost_usd.why_not) == (None, "known of 1 of 2 rounds")
    assert found.score_per_usd is found.usd_per_passed_round is None
    assert found.tokens.value == 20


def test_where_no_round_was_begun_nothing_is_known() -> None:
    found = efficiency(Grid.of([], selected={"t": 2}))
    assert (found.score, found.agent_seconds.value, found.agent_seconds.why_not) == (0, None, "no round was begun")


def test_what_costs_nothing_has_no_score_per_dollar() -> None:
    found = efficiency(Grid.of([make_record(usage=usage(0.0))]))
    assert (found.cost_usd.value, found.score_per_usd, found.usd_per_passed_round) == (0, None, 0)


def grids(*agents: tuple[Sequence[str], Sequence[int | float | None]]) -> dict[str, Grid]:
    """Agents called x, y, ..., each with a letter per round (p passed, f failed) and a cost at each task."""
    return {
        name: Grid.of(
            make_record(
                f"t{task}",
                index,
                "passed" if letter == "p" else "failed",
                of=len(rounds),
                agent=name,
                usage=usage(None if cost is None else cost / len(rounds)),
            )
            for task, (rounds, cost) in enumerate(zip(scores, costs, strict=True))
            for index, letter in enumerate(rounds, 1)
        )
        for name, (scores, costs) in zip("xyz", agents, strict=False)
    }


def chances(found: dict[str, Grid], *, resamples: int = 2_000, seed: int = 0) -> dict[str, Chance]:
    rows = {name: efficiency(grid) for name, grid in found.items()}
    return standings(rows, found, ["cost"], resamples=resamples, seed=seed)


GOOD, POOR = ["pppf", "pppp", "pppp", "ppff", "pppp", "pppp"], ["pfff", "ppff", "pppf", "ffff", "ppff", "pfff"]


def test_a_clear_winner_beats_the_others_and_is_on_the_front() -> None:
    found = chances(grids((GOOD, [1, 2, 1, 2, 1, 2]), (POOR, [3, 4, 3, 4, 3, 4])))
    assert found["x"] == Chance(1.0, {})
    assert found["y"] == Chance(0.0, {"x": 1.0})
    assert [found[name].standing for name in "xy"] == ["on the front", "beaten"]


def test_two_agents_that_are_as_good_and_as_dear_cannot_be_told_apart() -> None:
    # The same scores and costs at other tasks; the second is a little dearer.
    found = chances(grids((GOOD, [1, 2, 1, 2, 1, 2]), (GOOD[::-1], [2, 1, 2.1, 1, 2, 1])))
    assert [found[name].standing for name in "xy"] == ["cannot be told"] * 2
    assert 0.3 < found["y"].dominated_by["x"] < 0.7
    assert found["y"].on_front == pytest.approx(1 - found["y"].dominated_by["x"])


def test_what_is_hard_for_all_is_in_the_same_draws() -> None:
    # One round more at each task: far less than tasks differ by, and all the same in every draw.
    better = ["pfff", "ppff", "pppf", "pppp", "ppff", "pppf"]
    worse = ["ffff", "pfff", "ppff", "pppf", "pfff", "ppff"]
    assert chances(grids((better, [1] * 6), (worse, [1] * 6)))["y"] == Chance(0.0, {"x": 1.0})


def test_rows_that_are_equal_at_every_task_dominate_nobody() -> None:
    found = chances(grids((GOOD, [1, 2, 1, 2, 1, 2]), (GOOD, [1, 2, 1, 2, 1, 2])))
    assert found == {"x": Chance(1.0, {}), "y": Chance(1.0, {})}


def test_resamples_are_the_same_each_time_and_do_not_depend_on_the_order_of_rows() -> None:
    some = grids((GOOD, [1, 2, 1, 2, 1, 2]), (GOOD[::-1], [2, 1, 2.1, 1, 2, 1]))
    assert chances(some) == chances(some) == chances(dict(reversed(some.items())))
    assert chances(some, seed=1) != chances(some)


scored = st.tuples(
    st.lists(st.sampled_from(["pp", "pf", "ff"]), min_size=5, max_size=5), st.lists(small, min_size=5, max_size=5)
)


@given(st.lists(scored, min_size=1, max_size=3))
def test_chances_are_how_often_the_front_of_drawn_tasks_has_a_row(agents: list[tuple[list[str], list[int]]]) -> None:
    found = grids(*agents)
    names, random, hits = [*found], Random(0), dict.fromkeys(found, 0)
    for _ in range(20):
        tasks = random.choices(range(5), k=4)
        drawn = {
            name: row(sum(letters[task].count("p") for task in tasks), sum(costs[task] for task in tasks))
            for name, (letters, costs) in zip(names, agents, strict=True)
        }
        for name in front(drawn, ["cost"]).front:
            hits[name] += 1
    assert {name: each.on_front for name, each in chances(found, resamples=20).items()} == {
        name: number / 20 for name, number in hits.items()
    }


def test_a_row_without_a_cost_has_no_chances_and_takes_none_from_others() -> None:
    found = chances(grids((POOR, [1] * 6), (GOOD, [1, 1, 1, 1, 1, None])))
    assert found == {"x": Chance(1.0, {})}
    assert taken_interval(grids((POOR, [1, 1, 1, 1, 1, None]))["x"], "cost_usd") is None


def test_below_five_tasks_nothing_can_be_told() -> None:
    few = grids((GOOD[:4], [1, 2, 1, 2]), (POOR[:4], [3, 4, 3, 4]))
    assert chances(few) == {}
    assert taken_interval(few["x"], "cost_usd") is None
    assert chances({}) == {}


def test_the_interval_of_what_is_taken_is_over_tasks() -> None:
    grid = grids((GOOD, [1, 2, 1, 2, 1, 2]))["x"]
    found = taken_interval(grid, "cost_usd")
    assert found is not None
    low, high = t_interval([1, 2, 1, 2, 1, 2])
    assert (found.low, found.high) == pytest.approx((low, high))


def test_the_share_of_single_rounds_is_over_the_rounds_of_all_tasks() -> None:
    found = grids((["p", "p", "p", "p", "p", "ffffffffff"], [1] * 6), (["f"] * 5 + ["pppppppppp"], [1] * 6))
    rows = {name: efficiency(grid, single=True) for name, grid in found.items()}
    by_rounds = standings(rows, found, ["cost"], value=None)
    by_tasks = standings(rows, found, ["cost"])
    assert by_rounds["y"].on_front > by_tasks["y"].on_front


def test_luck_of_the_tasks_seldom_puts_a_dearer_agent_that_is_as_good_on_the_front() -> None:
    random = Random(5)

    def rounds() -> str:
        share = random.random()
        return "".join("p" if random.random() < share else "f" for _ in range(8))

    def agent(cost: float) -> tuple[list[str], list[float | None]]:
        return [rounds() for _ in range(7)], [cost] * 7

    lucky = [chances(grids(agent(1), agent(2)), resamples=200)["y"].standing == "on the front" for _ in range(60)]
    assert sum(lucky) <= 6  # 3 are expected.
