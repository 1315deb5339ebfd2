"""Discipline cannot be bought: tricks in the recorded reckless attempts raise their score by next to nothing."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.process.attempts import score_attempt
from pytest_evocode.process.execution import Execution
from pytest_evocode.process.execution.states import ResultCache
from pytest_evocode.process.scores.rigor_score import AttemptProcess
from pytest_evocode.tasks import load_task
from tests.process.scripted import EXAMPLES
from tests.process.tricks import REACH, Trick, by_name, played

pytestmark = pytest.mark.slow

#: What a trick may gain.
GAIN = 0.02
NAMES = pytest.mark.parametrize("name", REACH)


def score_of(process: AttemptProcess) -> float:
    """Return the RigorScore; 0 for an attempt that has none, of which nothing was seen."""
    found = process.score()
    return found.value if found is not None else 0.0


def told(process: AttemptProcess) -> Mapping[str, float | None]:
    return {name: None if value is None else round(value, 3) for name, value in process.values.items()}


@cache
def parsed(name: str, attempt: str, trick: Trick | None = None) -> AttemptProcess:
    """Return what an attempt recorded at an example task scores, with a trick played into it and nothing executed."""
    task = load_task(EXAMPLES / name)
    with TemporaryDirectory() as directory:
        return score_attempt(
            played(EXAMPLES / name / "recorded" / attempt, task, trick, Path(directory, "played")), task
        )


@NAMES
@pytest.mark.parametrize("trick", by_name().values(), ids=by_name())
@pytest.mark.matrix("trick")
def test_a_trick_gains_next_to_nothing(name: str, trick: Trick) -> None:
    plain, tricked, disciplined = parsed(name, "reckless"), parsed(name, "reckless", trick), parsed(name, "disciplined")
    print(told(plain), told(tricked), sep="\n")
    assert plain.score() is not None
    assert score_of(tricked) <= score_of(plain) + GAIN
    assert score_of(tricked) < score_of(disciplined)


@pytest.mark.nightly
@NAMES
def test_no_trick_gains_where_states_are_executed(name: str, engine: Engine, tmp_path: Path) -> None:
    """Each trick with builds, tests, coverage and mutants run; the disciplined are at 0.75."""
    task = load_task(EXAMPLES / name)
    cache = ResultCache(tmp_path / "cache")

    def executed(attempt: str, trick: Trick | None, place: str) -> AttemptProcess:
        copy = played(EXAMPLES / name / "recorded" / attempt, task, trick, tmp_path / place)
        with Execution(task, engine, cache=cache, budget=900) as execution:
            return score_attempt(copy, task, executor=execution)

    disciplined, plain = executed("disciplined", None, "disciplined"), executed("reckless", None, "plain")
    print(told(disciplined), told(plain), sep="\n")
    assert score_of(disciplined) >= 0.75
    assert score_of(plain) > 0
    for title, trick in by_name().items():
        tricked = executed("reckless", trick, title)
        print(title, score_of(tricked), told(tricked))
        assert score_of(tricked) <= score_of(plain) + GAIN, title
        assert score_of(tricked) < score_of(disciplined), title
