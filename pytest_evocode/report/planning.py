"""What ``evocode plan`` prints: which differences so many tasks and attempts show, and what a wanted one takes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from pytest_evocode.metrics.comparison import ComparisonPlan
from pytest_evocode.metrics.statistics.variance import MOST_PAIRS
from pytest_evocode.report.tables import NOT_MEASURED, aligned

SHOWN_TASKS = (10, 20, 50, 100, 200)
SHOWN_ATTEMPTS = (1, 2, 4, 8, 16)


def planned_sizes(plan: ComparisonPlan) -> tuple[Sequence[int], Sequence[int]]:
    """Return the numbers of tasks and of attempts that a table shows: what there is, and some more of either."""
    return sorted({plan.tasks, *SHOWN_TASKS}), sorted({plan.attempts[0], *SHOWN_ATTEMPTS})


def wanted(plan: ComparisonPlan, difference: float) -> dict[str, float | None]:
    """Return what a difference takes, as JSON has it: attempts at these tasks, or tasks with as many attempts."""
    return {
        "difference": difference,
        "attempts": plan.attempts_for(difference),
        "tasks": plan.tasks_for(difference, plan.attempts[0]),
    }


def plan_lines(plan: ComparisonPlan, difference: float, *, single_rounds: bool = False) -> Iterator[str]:
    """Yield what was observed, the table of detectable differences, and what ``difference`` takes.

    Args:
        plan: What can be planned.
        difference: The wanted difference, in points.
        single_rounds: Whether it was observed in mode single-round, where the Dataset Score is the SR by task.
    """
    between, within = plan.variance.sd(float("inf")), plan.variance.within**0.5
    yield f"observed at {_sizes(plan)}, in points of the {'SR by task' if single_rounds else 'Dataset Score'}:"
    yield f"  the difference varies by {between:.1f} (SD) between tasks, and by {within:.1f} from attempt to attempt"
    if not plan.measured:
        yield "  with one attempt that is not measured: taken as if a task's rounds passed independently of each other"
    yield ""
    if not plan.sd:
        yield "nothing varies here, so it is not known what differences could be seen"
        return
    yield f"smallest difference that is seen in {100 * plan.power:.0f} of 100 comparisons, at p <= {plan.alpha:.3g}:"
    tasks, attempts = planned_sizes(plan)
    rows = [("tasks", *(_count(number, "attempt") for number in attempts))]
    rows += [(str(number), *(_points(plan.difference(number, each)) for each in attempts)) for number in tasks]
    yield from aligned(rows, left=())
    yield ""
    yield from sentences(plan, difference)


def sentences(plan: ComparisonPlan, difference: float) -> Iterator[str]:
    """Yield which differences are seen with the tasks and attempts that there are, and what a wanted one takes."""
    if not plan.sd:
        yield "the differences do not vary from task to task, so it is not known how large one must be to be seen"
        return
    seen = plan.detectable
    if seen is None:
        yield f"with {_sizes(plan)} no difference is seen: no p-value can be as small as {plan.alpha:.3g}"
    elif seen > 100:
        yield f"with {_sizes(plan)} no difference is seen: it would have to be over 100 points"
    else:
        yield (
            f"with {_sizes(plan)} you see differences over {seen:.1f} points "
            f"({100 * plan.power:.0f} % power, p <= {plan.alpha:.3g})"
        )
    if seen is None or seen > difference:
        yield _needed(plan, difference)


def _needed(plan: ComparisonPlan, difference: float) -> str:
    takes, fewest = wanted(plan, difference), plan.attempts[0]
    attempts, tasks = takes["attempts"], takes["tasks"]
    more = f"more than {MOST_PAIRS} tasks" if tasks is None else f"{tasks} tasks"
    more += f" with {_count(fewest, 'attempt')}"
    if attempts is None:
        return f"for {difference:g} points take {more}; at these {plan.tasks} no number of attempts is enough"
    return f"for {difference:g} points take k = {attempts} attempts at these {plan.tasks} tasks, or {more}"


def _sizes(plan: ComparisonPlan) -> str:
    fewest, most = plan.attempts
    attempts = _count(most, "attempt") if fewest == most else f"{fewest} to {most} attempts"
    return f"{_count(plan.tasks, 'task')} and {attempts}"


def _count(number: int, noun: str) -> str:
    """Return a number of things.

    >>> _count(1, "task"), _count(7, "task")
    ('1 task', '7 tasks')
    """
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _points(difference: float | None) -> str:
    if difference is None:
        return NOT_MEASURED
    return "over 100" if difference > 100 else f"{difference:.1f}"
