"""What is said of the differences that a comparison can show."""

from __future__ import annotations

from math import sqrt

import pytest

from pytest_evocode.metrics.comparison import ComparisonPlan
from pytest_evocode.metrics.statistics.variance import PairedVariance
from pytest_evocode.report.comparison import plan_lines, sentences, wanted


def made(tasks: int, between: float, within: float, attempts: tuple[int, int] = (1, 1)) -> ComparisonPlan:
    """A plan with these standard deviations."""
    variance = PairedVariance(between**2, within**2)
    sd = sqrt(variance.between + variance.within / attempts[0])
    return ComparisonPlan(tasks, attempts, variance, measured=True, sd=sd, alpha=0.05, power=0.8)


@pytest.mark.parametrize(
    ("plan", "difference", "lines"),
    [
        (
            made(7, 0, 24),
            5,
            [
                "with 7 tasks and 1 attempt you see differences over 31.0 points (80 % power, p <= 0.05)",
                "for 5 points take k = 39 attempts at these 7 tasks, or 183 tasks with 1 attempt",
            ],
        ),
        (
            made(7, 24, 0),
            2,
            [
                "with 7 tasks and 1 attempt you see differences over 31.0 points (80 % power, p <= 0.05)",
                "for 2 points take more than 1000 tasks with 1 attempt; at these 7 no number of attempts is enough",
            ],
        ),
        (
            made(6, 80, 0, (1, 3)),
            50,
            [
                "with 6 tasks and 1 to 3 attempts no difference is seen: it would have to be over 100 points",
                "for 50 points take 23 tasks with 1 attempt; at these 6 no number of attempts is enough",
            ],
        ),
        (
            made(5, 24, 0, (2, 2)),
            30,
            [
                "with 5 tasks and 2 attempts no difference is seen: no p-value can be as small as 0.05",
                "for 30 points take 8 tasks with 2 attempts; at these 5 no number of attempts is enough",
            ],
        ),
        (
            made(100, 10, 0),
            5,
            ["with 100 tasks and 1 attempt you see differences over 2.8 points (80 % power, p <= 0.05)"],
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
    assert "10 80.1 80.1 80.1 80.1 80.1" in lines
    assert "7 over 100 over 100 over 100 over 100 over 100" in [
        " ".join(line.split()) for line in plan_lines(made(7, 80, 0), 5)
    ]


def test_json_says_what_a_difference_takes() -> None:
    assert wanted(made(7, 0, 24), 5) == {"difference": 5, "attempts": 39, "tasks": 183}
    assert wanted(made(7, 24, 0), 2) == {"difference": 2, "attempts": None, "tasks": None}
