"""What is said of the differences that a comparison can show."""

from __future__ import annotations

import pytest

from pytest_evocode.metrics.comparison import ComparisonPlan
from pytest_evocode.metrics.statistics.variance import MeanSquare, PairedVariance
from pytest_evocode.report.comparison import plan_lines, sentences, wanted


def made(tasks: int, between: float, within: float, attempts: tuple[int, int] = (2, 2)) -> ComparisonPlan:
    """A plan with these standard deviations, of many degrees of freedom, so that bounds are half as wide again."""
    squares = MeanSquare(between**2, 20, fixed=1), MeanSquare(within**2, 20, fixed=0, by_attempt=1)
    seen = MeanSquare(between**2 + within**2 / attempts[0], 20, fixed=1)
    return ComparisonPlan(tasks, attempts, PairedVariance((seen,)), PairedVariance(squares), alpha=0.05, power=0.8)


@pytest.mark.parametrize(
    ("plan", "difference", "lines"),
    [
        (
            made(7, 6, 24),
            25,
            [
                "with 7 tasks and 2 attempts you see differences over 23.3 to 29.5 points (80 % power, p <= 0.05)",
                "for 25 points take k = 2 to 3 attempts at these 7 tasks, or 7 to 9 tasks with 2 attempts",
            ],
        ),
        (
            made(7, 17.5, 24),
            25,
            [
                "with 7 tasks and 2 attempts you see differences over 31.5 to 39.9 points (80 % power, p <= 0.05)",
                "for 25 points take 10 to 13 tasks with 2 attempts; at these 7 no number of attempts is sure to be "
                "enough, and 9 the least",
            ],
        ),
        (
            made(7, 24, 0),
            2,
            [
                "with 7 tasks and 2 attempts you see differences over 31.0 to 39.3 points (80 % power, p <= 0.05)",
                "for 2 points take more than 1000 tasks with 2 attempts; at these 7 no number of attempts is enough",
            ],
        ),
        (
            made(6, 80, 0, (2, 3)),
            50,
            [
                "with 6 tasks and 2 to 3 attempts no difference is seen: it would have to be over 100 points",
                "for 50 points take 23 to 35 tasks with 2 attempts; at these 6 no number of attempts is enough",
            ],
        ),
        (
            made(5, 24, 0),
            30,
            [
                "with 5 tasks and 2 attempts no difference is seen: no p-value can be as small as 0.05",
                "for 30 points take 8 to 11 tasks with 2 attempts; at these 5 no number of attempts is enough",
            ],
        ),
        (
            made(100, 10, 0),
            5,
            ["with 100 tasks and 2 attempts you see differences over 2.8 to 3.6 points (80 % power, p <= 0.05)"],
        ),
        (
            made(7, 0, 24),
            5,
            [
                "with 7 tasks and 2 attempts you see differences over 21.9 to 27.8 points (80 % power, p <= 0.05)",
                "what 5 points take is not known: attempts vary so much that how far tasks differ cannot be told from "
                "nothing: make more attempts, or add tasks",
            ],
        ),
        (
            made(7, 0, 0),
            5,
            ["the differences do not vary from task to task, so it is not known how large one must be to be seen"],
        ),
    ],
)
def test_it_is_said_what_is_seen_and_what_a_wanted_difference_takes(
    plan: ComparisonPlan, difference: float, lines: list[str]
) -> None:
    assert list(sentences(plan, difference)) == lines


def test_cells_of_the_table_say_what_cannot_be_seen() -> None:
    lines = [" ".join(line.split()) for line in plan_lines(made(5, 80, 0), 5)]
    assert "5 n/a n/a n/a n/a n/a" in lines
    assert "10 80.1 to over 100 80.1 to over 100 80.1 to over 100 80.1 to over 100 80.1 to over 100" in lines
    assert "20 52.8 to 67.0 52.8 to 67.0 52.8 to 67.0 52.8 to 67.0 52.8 to 67.0" in lines
    assert "7 over 100 over 100 over 100 over 100 over 100" in [
        " ".join(line.split()) for line in plan_lines(made(7, 80, 0), 5)
    ]


def test_without_a_plan_no_table_is_printed() -> None:
    lines = list(plan_lines(made(7, 0, 24), 5))
    assert lines[-1].startswith("no number is given: attempts vary so much")
    assert not any(line.startswith("tasks") for line in lines)


def test_json_says_what_a_difference_takes() -> None:
    assert wanted(made(12, 8, 24), 20) == {
        "difference": 20,
        "attempts": 3,
        "attempts_as_observed": 2,
        "tasks": 13,
        "tasks_as_observed": 10,
    }
    nothing = dict.fromkeys(("attempts", "attempts_as_observed", "tasks", "tasks_as_observed"))
    assert wanted(made(7, 24, 0), 2) == {"difference": 2, **nothing}
