"""EvoCode-Bench's published tables, from the numbers that were published beside them.

Sources: ``evaluation/sweeps/sweep_2026-06_single_shot.csv`` and the table in ``README.md`` of UniPat-AI/EvoCodeBench,
at the first release (v1) and at the clean re-release (the current one); the older leaderboard (MT@4) is that of
the benchmark's page. RigorBench's Table V is in ``tests/process/scores/test_rigor_score.py``.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from pytest_evocode.metrics.scores import final_round_completion, scores, sr
from pytest_evocode.results.records import RoundRecord, Verdict

ROUNDS = [9, 7, 7, 8, 7, 13, 7, 8, 8, 7, 5, 8, 7, 8, 9, 8, 8, 7, 7, 13, 9, 15, 8, 8, 11, 15]
"""How many rounds each of the 26 tasks has, 227 in all."""

V1_OPUS = (
    "9:100 0:97 7:100 0:76 7:100 11:100 0:98 0:35 3:100 7:100 1:99 3:99 0:47 1:95 2:51 6:98 1:95 7:100 0:76 9:99 5:99 "
    "4:93 0:98 0:72 1:96 15:100"
)
V1_GPT = (
    "1:97 0:97 3:76 0:80 3:99 5:85 0:98 0:47 3:95 2:83 0:96 7:98 1:59 1:78 5:69 2:52 1:95 2:72 2:89 4:39 6:99 4:85 "
    "0:89 0:82 0:9 3:29"
)
CURRENT_OPUS = (
    "9:100 4:100 7:100 8:100 7:100 12:99 0:97 8:100 1:98 7:100 0:95 2:91 2:84 1:98 9:100 6:99 2:96 7:100 7:100 10:95 "
    "6:88 10:100 0:92 0:86 5:98 8:96"
)
CURRENT_GPT = (
    "7:100 1:99 2:97 0:84 1:89 0:56 0:84 0:68 1:99 6:99 2:98 6:98 1:60 2:91 5:69 1:57 6:96 3:76 0:77 3:49 4:56 0:80 "
    "1:82 1:84 1:79 14:100"
)


def rounds_of(cells: str) -> Iterator[RoundRecord]:
    """The rounds of one agent; a cell has a task's number of passed rounds, and the share of cases that passed in %."""
    for task, (declared, cell) in enumerate(zip(ROUNDS, cells.split(), strict=True)):
        passed, percent = map(int, cell.split(":"))
        for index in range(1, declared + 1):
            reward = float(index <= passed)
            yield RoundRecord(
                task=f"t{task}",
                agent="a",
                attempt=1,
                round=f"round-{index}",
                index=index,
                declared_rounds=declared,
                outcome="passed" if reward else "failed",
                verdict=Verdict(reward=reward, rewards={}, counts=(percent, 100)),
            )


@pytest.mark.parametrize(
    ("cells", "published"),
    [
        (V1_OPUS, (40.9, 89.3, 6)),
        (V1_GPT, (23.5, 76.8, 0)),
        (CURRENT_OPUS, (59.1, 96.6, 9)),
        (CURRENT_GPT, (29.5, 81.8, 0)),
    ],
)
def test_dataset_score_case_score_and_perfect_tasks(cells: str, published: tuple[float, float, int]) -> None:
    row = scores(rounds_of(cells))
    assert (row.tasks, row.rounds) == (26, 227)
    assert (round(row.dataset_score or 0, 1), round(row.case_score or 0, 1), row.perfect_tasks) == published
    # With one attempt, as there, nobody knows how reliable an agent is.
    assert row.reliability is None


@pytest.mark.parametrize(
    ("single_passed", "last_passed", "mt_at_4", "published"),
    [
        (174, 11, 54.0, (76.7, 22.7, 42.3)),  # Claude-Opus-4.7-High
        (179, 9, 44.0, (78.9, 34.9, 34.6)),  # Claude-Opus-4.6
        (18, 3, 17.3, (7.9, -9.4, 11.5)),  # Xiaomi-MiMo-V2.5-Pro
    ],
)
def test_sr_gap_and_comp_of_the_older_leaderboard(
    single_passed: int, last_passed: int, mt_at_4: float, published: tuple[float, float, float]
) -> None:
    # SR is of 227 rounds and Comp of 26 tasks, which is why they are these numbers and no others.
    single = [
        record.model_copy(update={"outcome": "passed" if place < single_passed else "failed"})
        for place, record in enumerate(rounds_of(V1_OPUS))
    ]
    last = " ".join(f"{declared * (task < last_passed)}:0" for task, declared in enumerate(ROUNDS))
    comp = final_round_completion(rounds_of(last))
    rate = sr(single)
    assert comp is not None
    assert rate is not None
    assert mt_at_4 is not None
    assert (round(rate, 1), round(rate - mt_at_4, 1), round(comp, 1)) == published
