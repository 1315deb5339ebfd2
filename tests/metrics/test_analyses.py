"""How far agents get, what the chain is to blame for, and what results are broken down by."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.metrics.analyses import (
    FirstFailure,
    Share,
    Solvable,
    first_failures,
    followed,
    pass_rates,
    solvable,
)
from pytest_evocode.metrics.breakdown import Dimension, breakdown
from pytest_evocode.metrics.failures import worst_requirements
from pytest_evocode.metrics.grid import Grid
from pytest_evocode.metrics.statistics.survival import LifeTableRow
from pytest_evocode.results.records import Case, RoundRecord, TaskFacts, Verdict, task_facts
from pytest_evocode.tasks import load_task

MakeRecord = Callable[..., RoundRecord]
EXAMPLES = Path(__file__).parents[2] / "example_tasks"
FACTS = {
    "build": TaskFacts(
        rounds=("round-1", "round-2", "round-3"),
        change_types=(("extension",), ("extension", "conflict"), ()),
        activity="Construction",
        interaction="Explorative",
        category="tools",
    ),
    "move": TaskFacts(rounds=("round-1",), change_types=(("conflict",),), activity="Migration"),
}


# How far they get.


def test_pass_rates_are_over_agents_and_tasks_that_are_long_enough(record: MakeRecord) -> None:
    records = [
        record("long", 1, of=2, agent="a"),
        record("long", 2, of=2, agent="a"),
        record("long", 1, of=2, agent="b"),
        record("long", 2, "failed", of=2, agent="b"),
        record("short", 1, "error", of=1, agent="a"),
    ]
    assert pass_rates(records) == {1: Share(2.0, 3), 2: Share(1.0, 2)}
    assert pass_rates(records)[2].percent == 50.0
    assert Share(0, 0).percent is None


def test_attempts_are_followed_up_to_a_failure_or_to_what_the_agent_is_not_to_blame_for(record: MakeRecord) -> None:
    records = [
        *(record("t", 1, of=4), record("t", 2, of=4), record("t", 3, "failed", of=4), record("t", 4, of=4)),
        *(record("u", 1, of=3), record("u", 2, "error", fault="infrastructure", of=3), record("u", 3, of=3)),
        *(record("v", 1, of=3), record("v", 2, "error", fault="agent", of=3), record("v", 3, "not reached", of=3)),
        *(record("w", 1, of=2), record("w", 1, "failed", of=2, attempt=2), record("w", 2, of=2, attempt=2)),
        record("x", 1, of=1),
    ]
    assert followed(records) == {
        1: LifeTableRow(5, failed=0.5),
        2: LifeTableRow(2, failed=1, censored=1.5),
        3: LifeTableRow(1, failed=1),
    }
    # Of a part of the rounds nothing is known behind the gap, and from a later round on they are followed from there.
    grid = Grid.of(records[:4], partial={("t", 1): {1, 3, 4}})
    assert followed(grid) == {1: LifeTableRow(1), 3: LifeTableRow(censored=1)}
    assert followed(Grid.of(records[:4], begin={"t": 2})) == {2: LifeTableRow(1), 3: LifeTableRow(1, failed=1)}
    assert followed(Grid.of([], selected={"t": 2})) == {1: LifeTableRow(censored=1)}


def test_pass_rates_take_the_mean_of_attempts(record: MakeRecord) -> None:
    records = [record("t", 1, outcome, attempt=i) for i, outcome in enumerate(["passed", "failed", "passed", "passed"])]
    assert pass_rates(records) == {1: Share(0.75, 1)}


def test_an_attempt_first_fails_where_it_is_first_not_passed_whatever_came_later(record: MakeRecord) -> None:
    records = [
        record("t", 1, of=4),
        record("t", 2, "error", of=4),
        record("t", 3, of=4),
        record("t", 4, "failed", of=4),
        record("t", 1, of=4, attempt=2),
        record("u", 1, of=1),
    ]
    found = first_failures(records)
    assert found == [FirstFailure("a", "t", 1, 2, 4), FirstFailure("a", "t", 2, 2, 4)]
    assert found[0].position == 0.5


# What a chain is to blame for.


def test_of_the_rounds_that_fail_in_a_chain_those_are_solvable_that_pass_alone(record: MakeRecord) -> None:
    chain = [
        record("build", 1, of=3),
        record("build", 2, "failed", of=3),
        record("move", 1, "failed", of=1),
        record("other", 1, "failed", of=1),
    ]
    single = [
        record("build", 1, "failed", of=3),
        record("build", 2, "passed", of=3),
        record("move", 1, "failed", of=1),
        record("build", 2, "passed", of=3, agent="b"),
    ]
    found = solvable(chain, single, FACTS)
    # build 2 and 3, the latter not reached in either, and move 1; other was never run alone.
    assert found.overall == Share(1, 3)
    assert found.by_round == {1: Share(0, 1), 2: Share(1, 1), 3: Share(0, 1)}
    assert found.by_change == {"conflict": Share(1, 2), "extension": Share(1, 1)}


def test_a_round_that_was_not_selected_alone_is_not_known_to_be_solvable_or_not(record: MakeRecord) -> None:
    chain = [record("t", index, "failed", of=3) for index in (1, 2, 3)]
    single = Grid.of([record("t", 2, of=3)], partial={("t", 1): (2,)})
    assert solvable(chain, single).overall == Share(1, 1)


def test_a_round_that_any_attempt_of_the_chain_passed_did_not_fail(record: MakeRecord) -> None:
    chain = [record("t", 1, "failed"), record("t", 1, attempt=2), record("u", 1, "failed")]
    single = [record("t"), record("u", 1, "failed"), record("u", 1, attempt=2)]
    assert solvable(chain, single).overall == Share(1, 1)
    assert solvable(chain, []).overall.percent is None


def test_the_records_that_failed_are_counted_each_and_only_where_they_were_reached(record: MakeRecord) -> None:
    chain = [record("build", 1, of=3), record("build", 2, "failed", of=3), record("build", 3, "not reached", of=3)]
    chain += [record("build", 1, "failed", of=3, attempt=2), record("build", 1, "error", of=3, attempt=3)]
    chain += [record("build", 1, "failed", of=3, attempt=4), record("other", 1, "failed")]
    single = [record("build", 1, of=3), record("build", 2, "failed", of=3), record("build", 3, of=3)]
    found = solvable(chain, single, FACTS, unit="record")
    assert found.overall == Share(2, 3)
    assert found.by_round == {1: Share(2, 2), 2: Share(0, 1)}
    assert found.by_change == {"conflict": Share(0, 1), "extension": Share(2, 3)}
    # By rounds the first did not fail, because one attempt passed it, and the third did.
    assert solvable(chain, single, FACTS).by_round == {2: Share(0, 1), 3: Share(1, 1)}


def test_those_of_several_agents_are_added(record: MakeRecord) -> None:
    found = [
        solvable([record("build", index, "failed", of=2)], [record("build", index, of=2)], FACTS) for index in (1, 2)
    ]
    both = Solvable.of(found)
    assert (both.overall, both.by_round) == (Share(2, 4), {1: Share(1, 2), 2: Share(1, 2)})
    assert Solvable.of([]).overall == Share(0, 0)


# Requirements.


def test_the_worst_requirements_come_first_with_the_kinds_of_their_failures() -> None:
    def judged(index: int, *cases: Case, attempt: int = 1) -> RoundRecord:
        verdict = Verdict(reward=0, rewards={}, cases=cases)
        return RoundRecord(
            task="t",
            agent="a",
            attempt=attempt,
            round=f"round-{index}",
            index=index,
            declared_rounds=2,
            outcome="failed",
            verdict=verdict,
        )

    records = [
        judged(
            2,
            Case(id="x1", requirement="x", status="failed"),
            Case(id="y", status="error"),
            Case(id="w", status="failed"),
        ),
        judged(
            1,
            Case(id="x1", requirement="x", status="passed"),
            Case(id="x2", requirement="x", status="failed"),
            Case(id="y", status="passed"),
            Case(id="w", status="failed"),
            Case(id="s", status="skipped"),
            Case(id="", status="failed"),
        ),
        judged(1, Case(id="z", status="failed"), Case(id="w", status="passed"), attempt=2),
    ]
    found = worst_requirements(records)
    assert [(each.requirement, each.failed, each.of, each.share) for each in found] == [
        ("x", 2, 2, 100.0),
        ("z", 1, 1, 100.0),
        ("w", 2, 3, pytest.approx(200 / 3)),
        ("y", 1, 2, 50.0),
    ]
    assert found[0].kinds == {"new miss": 1, "regression": 1}


# Breakdowns.


def by(dimension: Dimension, records: list[RoundRecord]) -> dict[str, tuple[int, int, float | None]]:
    found = breakdown(records, dimension, FACTS)
    return {name: (group.tasks, group.rounds, group.dataset_score) for name, group in found.items()}


@pytest.fixture
def records(record: MakeRecord) -> list[RoundRecord]:
    return [
        record("build", 1, "failed", of=3, cases="pf", tool_calls=4),
        record("build", 2, of=3, cases="pp", tool_calls=6),
        record("move", 1, of=1, cases="p"),
        record("plain", 1, of=2),
    ]


def test_results_are_broken_down_by_what_tasks_say(records: list[RoundRecord]) -> None:
    third = pytest.approx(100 / 3)
    assert by("task", records) == {"build": (1, 3, third), "move": (1, 1, 100.0), "plain": (1, 2, 50.0)}
    assert by("activity", records) == {
        "Construction": (1, 3, third),
        "Migration": (1, 1, 100.0),
        "not given": (1, 2, 50.0),
    }
    assert by("interaction", records) == {"Explorative": (1, 3, third), "not given": (2, 3, 75.0)}
    assert by("category", records) == {"tools": (1, 3, third), "not given": (2, 3, 75.0)}


def test_results_are_broken_down_by_rounds_in_their_order(record: MakeRecord, records: list[RoundRecord]) -> None:
    third = pytest.approx(200 / 3)
    assert by("round", records) == {"1": (3, 3, third), "2": (2, 2, 50.0), "3": (1, 1, 0.0)}
    assert list(by("round", [record("t", 1, of=11)])) == [str(index) for index in range(1, 12)]


def test_a_round_counts_under_each_of_its_change_types(records: list[RoundRecord]) -> None:
    # Extensions are build 1 and 2, conflicts build 2 and move 1; build 3 says nothing, as do both rounds of plain.
    assert by("change", records) == {
        "conflict": (2, 2, 100.0),
        "extension": (1, 2, 50.0),
        "not given": (2, 3, 25.0),
    }


def test_what_is_not_given_comes_last(records: list[RoundRecord]) -> None:
    assert list(by("category", records)) == ["tools", "not given"]


def test_a_group_has_the_other_scores_of_its_rounds_and_no_mt_at_k_where_it_has_parts_of_chains(
    records: list[RoundRecord],
) -> None:
    second = breakdown(records, "round")["2"]
    assert (second.case_score, second.avg_rounds, second.perfect_tasks) == (50.0, 6.0, 1)
    assert (second.mt_at_k, second.whole_tasks) == (None, second.tasks)
    assert {group.mt_at_k for group in breakdown(records, "change").values()} == {None}
    assert None not in {group.mt_at_k for group in breakdown(records, "task").values()}
    assert second.pinned_case_score is None


def test_the_facts_of_a_task_are_those_of_its_metadata() -> None:
    facts = task_facts(load_task(EXAMPLES / "ledger"))
    assert (facts.activity, facts.interaction, facts.declared) == ("Construction", "Explorative", 10)
    assert facts.rounds[0] == "round-1"
    assert facts.changes(4) == ("conflict", "extension")
    assert facts.changes(11) == ()
    assert facts.reward_strategy == "mean"
