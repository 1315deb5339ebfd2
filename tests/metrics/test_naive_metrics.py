"""Every metric against a slow computation of another shape: explicit sums over every cell there is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pytest_evocode.metrics.analyses import Share, first_failures, pass_rates, solvable
from pytest_evocode.metrics.faults import faults
from pytest_evocode.metrics.grid import Grid, Rounds
from pytest_evocode.metrics.scores import (
    avg_rounds,
    avg_turns,
    case_score,
    dataset_score,
    final_round_completion,
    gap,
    hard_tasks,
    mean_reward,
    mean_rewards,
    mt_at_k,
    output_tokens,
    perfect_tasks,
    pinned_case_score,
    reliability,
    scores,
    sr,
    sr_macro,
)
from pytest_evocode.metrics.spending import Tokens, spending, token_ratios
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.tasks import RewardStrategy
from tests.metrics import reference_formulas as reference
from tests.metrics.matrices import Matrix, matrices


def tasks_of(matrix: Matrix) -> list[reference.Values]:
    """The rounds as the reference takes them."""
    tasks = []
    for task, declared in matrix.declared.items():
        chain = list(range(1, declared + 1))
        made: dict[int, dict[int, reference.Values]] = {number: {} for number in matrix.attempts(task)}
        for record in matrix.records:
            if record.task == task:
                made[record.attempt][record.index] = record.without_cases().model_dump()
        own = dict.fromkeys(made, chain)
        found = {"task": task, "length": declared, "chain": chain, "indices": chain, "own": own, "made": made}
        tasks.append({**found, "loud": set()})
    return tasks


@given(matrices(), matrices(), st.booleans(), st.booleans())
def test_scores(chain: Matrix, single: Matrix, both: bool, final: bool) -> None:
    strategies: dict[str, RewardStrategy] = dict.fromkeys(chain.declared, "final" if final else "mean")
    grids = chain.grid, single.grid if both else Grid(())
    tasks = tasks_of(chain), tasks_of(single) if both else []
    assert asdict(scores(*grids, strategies)) == near(reference.scores(*tasks, lambda task: final))
    left = faults(*grids)
    assert (left and asdict(left)) == near(reference.without_faults(*tasks))
    assert mean_rewards(chain.grid, strategies) == near(reference.rewards(tasks[0], lambda task: final))
    assert mt_at_k(chain.grid, fail_stop=False) == near(reference.mt_at_k(tasks[0], fail_stop=False))


def near(expected: Any) -> Any:
    """What is equal to the same numbers to twelve digits, and to None where that is expected."""
    if isinstance(expected, dict):
        return {name: near(value) for name, value in expected.items()}
    return pytest.approx(expected, rel=1e-12) if isinstance(expected, float) else expected


@given(matrices())
def test_the_reward_of_a_trial(matrix: Matrix) -> None:
    for task, declared in matrix.declared.items():
        mine = [record for record in matrix.records if (record.task, record.attempt) == (task, 1)]
        rewards = [
            cell.reward
            for (name, attempt, _), cell in matrix.cells.items()
            if (name, attempt) == (task, 1) and cell.outcome in ("passed", "failed")
        ]
        expected = {"reward": pytest.approx(sum(rewards) / declared)} if rewards else {}
        assert trial_rewards(mine, range(1, declared + 1), "mean") == expected


@given(matrices())
def test_tokens_and_seconds(matrix: Matrix) -> None:
    found = spending(matrix.records)
    assert (found.agent_seconds is None) == all(cell.seconds is None for cell in matrix.cells.values())
    seconds = [cell.seconds for cell in matrix.cells.values() if cell.seconds is not None]
    assert found.agent_seconds is None or found.agent_seconds.value == sum(seconds)
    begun = [cell for cell in matrix.cells.values() if cell.outcome != "not reached" or cell.seconds is not None]
    assert found.rounds == len(begun)
    known = [cell.tokens for cell in begun if cell.tokens is not None]
    amount = found.prompt_tokens and (found.prompt_tokens.value, found.prompt_tokens.known, found.prompt_tokens.of)
    assert amount == ((sum(known), len(known), len(begun)) if known else None)


@pytest.mark.parametrize(("kind", "factor"), [("generated", 3), ("total", 4)])
@given(matrix=matrices())
def test_token_ratios(kind: Tokens, factor: int, matrix: Matrix) -> None:
    found = token_ratios(matrix.records, kind)
    for index in range(1, 6):
        means = []
        for outcome in ("failed", "passed"):
            cells = [cell for key, cell in matrix.cells.items() if key[2] == index and cell.outcome == outcome]
            tokens = [factor * cell.tokens for cell in cells if cell.tokens is not None]
            means.append(pytest.approx(sum(tokens) / len(tokens)) if tokens else None)
        if index in found:
            assert [found[index].failing, found[index].passing] == means
        else:
            assert means == [None, None]


@given(matrices())
def test_pass_rates(matrix: Matrix) -> None:
    found = pass_rates(matrix.grid)
    for index in range(1, 1 + max(matrix.declared.values())):
        long_enough = [task for task, declared in matrix.declared.items() if declared >= index]
        passed = Fraction(0)
        for task in long_enough:
            attempts = matrix.attempts(task)
            passed += Fraction(sum(matrix.passed(task, attempt, index) for attempt in attempts), len(attempts))
        assert found.pop(index).percent == pytest.approx(float(100 * passed / len(long_enough)))
    assert not found


@given(matrices(), matrices())
def test_solvable_rounds_and_failed_records(chain: Matrix, single: Matrix) -> None:
    assume(chain.records and single.records)  # What has no record is of nobody.
    rounds, records = [], []
    for task, declared in chain.declared.items():
        for index in range(1, declared + 1) if task in single.declared else ():
            alone = any(single.passed(task, attempt, index) for attempt in single.attempts(task))
            if not any(chain.passed(task, attempt, index) for attempt in chain.attempts(task)):
                rounds.append(alone)
            cells = [chain.cells.get((task, attempt, index)) for attempt in chain.attempts(task)]
            records += [alone for cell in cells if cell is not None and cell.outcome == "failed"]
    assert solvable(chain.grid, single.grid).overall == Share(sum(rounds), len(rounds))
    assert solvable(chain.grid, single.grid, unit="record").overall == Share(sum(records), len(records))


@given(matrices())
def test_first_failures(matrix: Matrix) -> None:
    expected = {}
    for task, declared in matrix.declared.items():
        for attempt in matrix.attempts(task):
            for index in range(1, declared + 1):
                if not matrix.passed(task, attempt, index):
                    expected[task, attempt] = (index, index / declared)
                    break
    found = first_failures(matrix.grid)
    assert {(first.task, first.attempt): (first.index, first.position) for first in found} == expected


@given(matrices(), matrices(), st.booleans())
def test_the_row_of_an_agent_has_what_the_functions_give(chain: Matrix, single: Matrix, both: bool) -> None:
    row = scores(chain.grid, single.grid if both else ())
    functions: dict[str, Callable[[Rounds], float | None]] = {
        "dataset_score": dataset_score,
        "case_score": case_score,
        "pinned_case_score": pinned_case_score,
        "avg_rounds": avg_rounds,
        "avg_turns": avg_turns,
        "output_tokens": output_tokens,
        "perfect_tasks": perfect_tasks,
        "mean_reward": mean_reward,
        "mt_at_k": mt_at_k,
        "reliability": reliability,
        "final_round_completion": final_round_completion,
        "hard_tasks": hard_tasks,
    }
    for name, function in functions.items():
        assert getattr(row, name) == function(chain.grid), name
    assert (row.tasks, row.rounds) == (len(chain.declared), sum(chain.declared.values()))
    assert row.attempts == chain.made
    expected = (sr(single.grid), sr_macro(single.grid), gap(chain.grid, single.grid)) if both else (None, None, None)
    assert (row.sr, row.sr_macro, row.gap) == expected
