"""The neighbours' metrics against plain loops over random results, written from the definitions alone."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import pytest
from hypothesis import given

from pytest_evocode.metrics.neighbours.summary import agent_metrics
from tests.metrics.matrices import Matrix, matrices


@dataclass
class Naive:
    """Lists of the values of one task, a list of rounds for each attempt."""

    changes: list[list[float | None]] = field(default_factory=list)
    recall: list[list[float | None]] = field(default_factory=list)
    precision: list[list[float | None]] = field(default_factory=list)
    fixed: list[list[float | None]] = field(default_factory=list)
    lost: list[int] = field(default_factory=list)
    standing: list[int] = field(default_factory=list)


def walk(matrix: Matrix, task: str) -> Naive:
    found = Naive()
    required: list[set[str]] = []
    told: list[bool] = []
    for index in range(1, matrix.declared[task] + 1):
        ids: set[str] = set()
        pinned, tells = 0, False
        for attempt in matrix.attempts(task):
            cell = matrix.cells.get((task, attempt, index))
            if cell is not None and cell.outcome in ("passed", "failed"):
                for place in range(len(cell.statuses)):
                    ids.add(f"c{place}")
                # A suite that failed without a failed case broke off.
                tells |= bool(cell.statuses) and (
                    cell.outcome == "passed" or bool({"failed", "error"} & {*cell.statuses})
                )
                pinned = max(pinned, cell.pinned[1] if cell.pinned else 0)
        told.append(tells and len(ids) >= pinned)
        required.append(ids if told[-1] or not required else ids | required[-1])
    for attempt in matrix.attempts(task):
        for of_attempts in (found.changes, found.recall, found.precision, found.fixed):
            of_attempts.append([])
        state: dict[str, str] = {}
        known: set[str] = set()
        lost, standing, judged = 0, 0, False
        for index, ids in enumerate(required, 1):
            cell = matrix.cells.get((task, attempt, index))
            has_verdict = cell is not None and cell.outcome in ("passed", "failed")
            statuses = {f"c{place}": word for place, word in enumerate(cell.statuses)} if cell and has_verdict else {}
            before = set().union(*required[: index - 1])
            new, old = ids - before, ids & before
            passed = {each for each in ids if statuses.get(each) == "passed"}
            reward_alone = cell is not None and cell.outcome == "passed" and not statuses
            if reward_alone:
                passed = set(ids)
            now = 0
            for each in sorted(old if has_verdict else ()):
                if (
                    not reward_alone
                    and state.get(each) == "held"
                    and statuses.get(each, "error") in ("failed", "error")
                ):
                    state[each] = "gone"
                    now += 1
            for each in passed:
                state[each] = "held"
            ran = reward_alone or any(word != "skipped" for word in statuses.values())
            done = len(new & passed)
            if not ran:
                found.changes[-1].append(len(passed) / len(ids) if ids and has_verdict else 0)
                values: tuple[float | None, ...] = (0, 0, 0 if new or not told[index - 1] else None)
            elif not told[index - 1] and not reward_alone:
                found.changes[-1].append(None if ids else 0)
                values = (None, None, None)
            else:
                found.changes[-1].append(len(passed) / len(ids) if ids else 0)
                fixed = (0 if now else done / len(new)) if new else None
                values = (done / len(new) if new else 1, (done + 1) / (done + len(old - passed) + 1), fixed)
            for lists, value in zip((found.recall, found.precision, found.fixed), values, strict=True):
                lists[-1].append(value)
            lost += now
            known |= ids
            if has_verdict:
                judged = True
                standing = sum(state.get(each) == "gone" for each in old)
        if judged:
            found.lost.append(lost)
            found.standing.append(standing)
    return found


def is_nameless(matrix: Matrix, task: str) -> bool:
    verdicts = [
        cell.statuses for key, cell in matrix.cells.items() if key[0] == task and cell.outcome in ("passed", "failed")
    ]
    return bool(verdicts) and not any(verdicts)


def average(values: Iterable[float]) -> float:
    values = list(values)
    return sum(values) / len(values)


def nested(tasks: list[list[list[float | None]]]) -> float | None:
    """Return the mean over tasks of means over attempts of means over rounds, of what there is."""
    kept = [[[each for each in rounds if each is not None] for rounds in task] for task in tasks]
    means = [[average(rounds) for rounds in task if rounds] for task in kept]
    return 100 * average(average(task) for task in means if task) if any(means) else None


@given(matrices())
def test_plain_loops_find_the_same(matrix: Matrix) -> None:
    tasks = [walk(matrix, task) for task in matrix.declared if not is_nameless(matrix, task)]
    metrics = agent_metrics(matrix.grid)
    assert metrics.nameless == tuple(task for task in sorted(matrix.declared) if is_nameless(matrix, task))
    found = metrics.whole
    if not tasks:
        assert found.evo_score is None
        assert found.fix_rate is None
        assert found.milestones is None
        return
    assert found.evo_score == pytest.approx(nested([task.changes for task in tasks]))
    assert found.fix_rate == pytest.approx(nested([task.fixed for task in tasks]))
    recall = nested([task.recall for task in tasks])
    assert (found.milestones is None) == (recall is None)
    if found.milestones is not None:
        assert found.milestones.recall == pytest.approx(recall)
        assert found.milestones.precision == pytest.approx(nested([task.precision for task in tasks]))
    measured = [task for task in tasks if task.lost]
    if not measured:
        assert found.regressions is None
        assert found.zero_regression is None
        return
    assert found.regressions is not None
    assert found.zero_regression is not None
    assert found.regressions.lost == pytest.approx(average([average([*map(float, task.lost)]) for task in measured]))
    assert found.regressions.standing == pytest.approx(
        average([average([*map(float, task.standing)]) for task in measured])
    )
    without = [sum(number == 0 for number in task.lost) for task in measured]
    assert found.zero_regression.without == sum(without)
    assert found.zero_regression.percent == pytest.approx(
        100 * average([part / len(task.lost) for part, task in zip(without, measured, strict=True)])
    )
