"""The example of docs/metrics.md as records."""

from __future__ import annotations

from typing import Literal

from pytest_evocode.results.records import Case, Outcome, RoundRecord, Verdict

DECLARED = {"alpha": 3, "beta": 2, "gamma": 1}
OUTCOMES: dict[str, Outcome] = {"P": "passed", "F": "failed", "-": "not reached"}


def record(
    task: str,
    attempt: int,
    index: int,
    mark: Literal["P", "F", "-"],
    cases: str = "0/0",
    calls: int | None = None,
    reward: float | None = None,
    pinned: int | None = None,
) -> RoundRecord:
    """A cell of the page's table: the first ``passed`` of all cases passed, and perhaps more are pinned."""
    passed, total = map(int, cases.split("/"))
    reward = float(mark == "P") if reward is None else reward
    verdict = Verdict(
        reward=reward,
        rewards={"reward": reward},
        pinned=(passed, pinned) if pinned else None,
        cases=tuple(
            Case(id=f"case-{number}", status="passed" if number <= passed else "failed")
            for number in range(1, total + 1)
        ),
    )
    return RoundRecord(
        task=task,
        agent="model",
        attempt=attempt,
        round=f"round-{index}",
        index=index,
        declared_rounds=DECLARED[task],
        tool_calls=calls,
        verdict=None if mark == "-" else verdict,
        outcome=OUTCOMES[mark],
    )


CHAIN = [
    record("alpha", 1, 1, "P", "4/4", 12),
    record("alpha", 1, 2, "F", "5/6", 12),
    record("alpha", 1, 3, "P", "8/8", 12),
    record("alpha", 2, 1, "P", "4/4", 12),
    record("alpha", 2, 2, "P", "6/6", 12),
    record("alpha", 2, 3, "F", "2/2", 12, pinned=8),
    record("beta", 1, 1, "P", "2/2", 20),
    record("beta", 1, 2, "F", "2/4", 20, reward=0.5),
    record("beta", 2, 1, "F", "1/2", 20),
    record("beta", 2, 2, "-"),
    record("gamma", 1, 1, "P", "3/3"),
    record("gamma", 2, 1, "P", "3/3"),
]
SINGLE = [
    record(task, 1, index, "F" if (task, index) == ("alpha", 3) else "P")
    for task, declared in DECLARED.items()
    for index in range(1, declared + 1)
]
