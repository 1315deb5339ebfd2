"""What the tests of the report take for the contract is what ``data.d.ts`` says."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from tests.report.html.contract import faults
from tests.report.html.sample import sample_report

TYPES = {"index": "Index", "comparisons": "Comparisons", "tasks": "TaskData", "attempts": "AttemptData"}


@pytest.fixture(scope="module")
def sample() -> dict[str, Any]:
    return sample_report()


def test_the_sample_is_what_the_viewer_reads(sample: dict[str, Any]) -> None:
    for name, value in sample.items():
        if kind := TYPES.get(name.split("/")[0]):
            assert faults(value, kind) == [], name


@pytest.mark.parametrize(
    ("spoil", "fault"),
    [
        (lambda index: index.update(format=2), "Index.format: 2 is not 1"),
        (lambda index: index.update(more=2), "Index: there is no field more"),
        (lambda index: index.pop("title"), "Index: the field title lacks"),
        (lambda index: index["rows"][0].update(mode="x"), "Index.rows[0].mode: 'x' is not 'chain'"),
        (lambda index: index["rows"][0].update(ranking=True), "Index.rows[0].ranking: True is no number"),
        (lambda index: index["rows"][0]["scores"].update(sr=float("nan")), "Index.rows[0].scores.sr: nan is no number"),
        (lambda index: index["rows"][0]["groups"].update(x={}), "Index.rows[0].groups: key x: 'x' is not 'task'"),
        (lambda index: index["rows"][0]["intervals"].update(x={"low": 1}), "intervals.x: the field high lacks"),
        (lambda index: index["attempts"][0]["cases"].append([1]), "has not 2 values"),
        (lambda index: index["runs"][0].update(attempts="a"), "Index.runs[0].attempts: 'a' is no list"),
    ],
)  # fmt: skip
def test_what_is_not_as_declared_is_told(spoil: Callable[[Any], object], fault: str) -> None:
    index = sample_report()["index"]
    spoil(index)
    (found,) = faults(index, "Index")
    assert fault in found
