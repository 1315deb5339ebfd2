"""One vocabulary: the kinds of failing cases and the scores have the same words in every output."""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path
from typing import get_args

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.failures import KINDS, describe_failure, failures_view
from pytest_evocode.report.html.bundle import VIEWER, script
from pytest_evocode.report.score_columns import COLUMNS, LEADERBOARD, REPORT
from pytest_evocode.report.views import printed
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import Case, FailureKind, RoundRecord, Verdict
from tests.result_trees import write_attempt

ROOT = Path(__file__).parents[2]
GLOSSARY = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
METRICS = (ROOT / "docs" / "metrics.md").read_text(encoding="utf-8")
#: How the glossary and the page of metrics say what a kind is.
DOCUMENTED = {
    "new miss": ("is first required in this round", "this round is the first to require it"),
    "regression": ("that passed before in this attempt", "passed in an earlier round of this attempt"),
    "carried": ("that was required before and never passed", "required before and never passed"),
}


def test_every_kind_has_words() -> None:
    assert {*KINDS} == {*get_args(FailureKind)}


@pytest.mark.parametrize(("kind", "words"), KINDS.items())
def test_a_kind_of_failing_cases_has_the_same_words_everywhere(kind: FailureKind, words: str, tmp_path: Path) -> None:
    case = Case(id="c", status="failed", failure=kind)
    verdict = Verdict(reward=0, rewards={}, cases=(case,))
    about = {"task": "t", "agent": "a", "attempt": 1, "round": "r", "index": 1, "declared_rounds": 1}
    record = RoundRecord(**about, outcome="failed", verdict=verdict)  # type: ignore[arg-type]
    said = describe_failure(record, None)
    assert re.search(rf"^{'new misses' if kind == 'new miss' else kind}s?: {words} \(1\)$", said, re.MULTILINE)
    # The first suite fails both, the second one regresses, carries and has a new one.
    write_attempt(tmp_path, "t", "a", "fff", cases=["pf", "fff", "ffff"])
    view = failures_view(score_table(load_results([tmp_path], cases=True)).rows, top=10)
    if kind != "stale":
        for form in ("text", "markdown", "latex"):
            assert f"{kind}: {words[0].upper()}{words[1:]}." in printed(view, form)
    tables = printed(view, "csv").split("\n\n")
    assert kind in next(csv.reader(io.StringIO(next(each for each in tables if each.startswith("agent,new miss")))))
    assert f'"{kind}"' in printed(view, "json")
    viewer = [path.read_text(encoding="utf-8") for path in VIEWER.glob("*.js")]
    assert any(re.search(rf'\["{kind}", "[A-Z][a-z ]+", "{words}"\]', text) for text in viewer), "the list of cases"
    assert any(f'"{kind}: {words}"' in text for text in viewer), "the chart of lives"
    assert f"{kind}: {words}" in script()


@pytest.mark.parametrize(("kind", "said"), DOCUMENTED.items())
def test_a_kind_of_failing_cases_is_what_the_documentation_says(kind: str, said: tuple[str, str]) -> None:
    (row,) = (line for line in GLOSSARY.splitlines() if line.startswith("| new miss, regression, carried |"))
    assert said[0] in row
    assert f"*{kind}*" in METRICS
    assert said[1] in " ".join(METRICS.split())


@pytest.mark.parametrize("field", dict.fromkeys((*LEADERBOARD, *REPORT)))
def test_a_score_says_in_one_sentence_what_it_is_and_is_documented_by_its_title(field: str) -> None:
    column = COLUMNS[field]
    assert re.fullmatch(r"[A-Z][^\n]+\.", column.help)
    assert f"| {column.title} |" in METRICS or column.title in ("Avg Turns", "Output Tok.", "Tasks", "Rounds")
