"""What can still be bought, and for how much: more tricks in the recorded reckless attempts."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.process.attempts import score_attempt
from pytest_evocode.process.execution import Execution
from pytest_evocode.process.execution.states import ResultCache
from pytest_evocode.process.scores.rigor_score import AttemptProcess
from pytest_evocode.tasks import load_task
from tests.process.remaining_tricks import REMAINING
from tests.process.scores.test_bought_discipline import NAMES, parsed, score_of, told
from tests.process.scripted import EXAMPLES
from tests.process.tricks import REACH, Trick, by_name, played

pytestmark = pytest.mark.slow

#: What a trick gains at most in any of the five tasks, parsed and executed; docs/process.md has the same numbers.
GAINS: Mapping[str, tuple[float, float]] = {"called_code": (0.03, 0.03)}
DOCUMENT = Path(__file__).parents[3] / "docs" / "process.md"


def gain(name: str, trick: Trick) -> float:
    """Return what a trick adds to the score of the reckless attempt at a task, nothing executed."""
    plain, tricked = parsed(name, "reckless"), parsed(name, "reckless", trick)
    print(name, told(plain), told(tricked), sep="\n")
    return score_of(tricked) - score_of(plain)


@pytest.mark.parametrize("trick", by_name(REMAINING).values(), ids=by_name(REMAINING))
@pytest.mark.matrix
def test_what_remains_gains_what_is_told(trick: Trick) -> None:
    found = {name: gain(name, trick) for name in REACH}
    assert max(found.values()) == pytest.approx(GAINS[trick.__name__][0], abs=0.006), found


def test_what_remains_is_told_in_the_documentation() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \|.*\| (-?\d\.\d\d) \| (-?\d\.\d\d) \|$", text, re.MULTILINE)
    assert {name: (float(parsed), float(executed)) for name, parsed, executed in rows} == GAINS
    assert set(GAINS) == set(by_name(REMAINING))


@pytest.mark.nightly
@NAMES
def test_what_remains_gains_no_more_where_states_are_executed(name: str, engine: Engine, tmp_path: Path) -> None:
    task = load_task(EXAMPLES / name)
    cache = ResultCache(tmp_path / "cache")

    def executed(trick: Trick | None, place: str) -> AttemptProcess:
        copy = played(EXAMPLES / name / "recorded" / "reckless", task, trick, tmp_path / place)
        with Execution(task, engine, cache=cache, budget=900) as execution:
            return score_attempt(copy, task, executor=execution)

    plain = executed(None, "plain")
    print(told(plain))
    too_much = {}
    for title, trick in by_name(REMAINING).items():
        tricked = executed(trick, title)
        gained = score_of(tricked) - score_of(plain)
        print(title, gained, told(tricked))
        if gained > GAINS[title][1] + 0.005:
            too_much[title] = gained
    assert not too_much
