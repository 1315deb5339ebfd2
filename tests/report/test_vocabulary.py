"""One vocabulary: kinds of failing cases and scores have the same words in every output, and words the same numbers."""

from __future__ import annotations

import csv
import io
import json
import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from math import isclose
from pathlib import Path
from typing import Any, get_args

import pytest

from pytest_evocode.metrics.analyses import analyse
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.analyses import analyses_view
from pytest_evocode.report.benchmark import benchmark_lines
from pytest_evocode.report.failures import KINDS, describe_failure, failures_view
from pytest_evocode.report.html.bundle import VIEWER, script
from pytest_evocode.report.html.index import index_of
from pytest_evocode.report.leaderboard import leaderboard_view
from pytest_evocode.report.neighbours import metrics_view, neighbour_metrics
from pytest_evocode.report.pareto import pareto_view
from pytest_evocode.report.results import scores_view
from pytest_evocode.report.score_columns import COLUMNS, LEADERBOARD, REPORT
from pytest_evocode.report.views import View, printed
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import Case, FailureKind, RoundRecord, Usage, Verdict
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


def test_under_one_word_every_output_has_one_number(tmp_path: Path) -> None:
    usage = Usage(prompt_tokens=900, completion_tokens=100, cost_usd=0.25, requests=3)
    about: dict[str, Any] = {"usage": usage, "tool_calls": 4, "verifier_seconds": 7.25}
    for task, number, letters in (("a", 1, "pf"), ("a", 2, "fp"), ("b", 1, "pp"), ("b", 2, "pf")):
        cases = ["p", "pp"] if letters == "pp" else ["p", "pf"] if letters == "pf" else ["f", "pp"]
        write_attempt(tmp_path / "results", task, "gpt", letters, cases=cases, number=number, **about)
        single = {"mode": "single-round", "run": "2026-02-02__03-04-05", **about}
        write_attempt(tmp_path / "results", task, "gpt", letters, cases=cases, number=number, **single)
    results = load_results([tmp_path / "results"], cases=True)
    table = score_table(results)
    chains = next(row for row in table.rows if row.mode == "chain")
    said: dict[str, list[tuple[str, float]]] = defaultdict(list)

    def add(output: str, words: Iterable[str], cells: Iterable[object]) -> None:
        for word, cell in zip(words, cells, strict=True):
            if (number := _number(cell)) is not None:
                said[word.lower()].append((output, number))

    views = {
        "results": scores_view(table, with_intervals=False),
        "leaderboard": leaderboard_view(table, with_intervals=False),
        "pareto": pareto_view(replace(table, rows=(chains,))),
    }
    older = next(each for each in analyses_view(analyse(table)).tables if each.name == "older-leaderboard")
    (metrics,) = metrics_view({"gpt": neighbour_metrics(table, chains, 1.0)}, ["cost"], by_round=False).tables
    views |= {each.name: View([replace(each, titled=False)]) for each in (older, metrics)}
    views["session"] = View([], text=list(benchmark_lines(chains.records, grid=False)))
    for name, view in views.items():
        head, row = (re.split(" {2,}", line) for line in printed(view, "text").splitlines()[:2])
        add(name, head, row)
        if name == "session":
            continue
        head, _, row = ([cell.strip() for cell in line.split(" | ")] for line in _table(printed(view, "markdown")))
        add(f"{name}, Markdown", head, row)
        values, *_ = csv.DictReader(io.StringIO(printed(view, "csv").split("\n\n")[0]))
        add(f"{name}, CSV", values.keys(), values.values())
        found = json.loads(printed(view, "json"))
        found = found["rows"][0] if name == "results" else found[0] if isinstance(found, list) else found
        found = found.get(name, [found])[0]
        # In what was spent, rounds are those that were begun of all attempts, which it has a sum over.
        spent = {name: value for name, value in found.get("spending", {}).items() if name != "rounds"}
        for part in (found, found.get("scores"), spent, found.get("agents", {}).get("gpt")):
            if isinstance(part, dict):
                add(f"{name}, JSON", part.keys(), part.values())
    index = index_of(table, results, title="t", roots=[tmp_path / "results"])
    shown = next(row for row in index["rows"] if row["mode"] == "chain")
    numbers = {**shown["scores"], **shown["spending"]}
    titles = [index["titles"][field]["title"] for field in numbers if field in index["titles"]]
    add("report", titles, [numbers[field] for field in numbers if field in index["titles"]])
    assert len(said["time"]) >= 3
    assert len(said["agent time per attempt"]) >= 3
    differing = {
        word: found
        for word, found in said.items()
        if not all(isclose(number, found[0][1], rel_tol=0.01, abs_tol=0.06) for _, number in found)
    }
    assert differing == {}


def _table(text: str) -> list[str]:
    """Return the first lines of the first table of a text in Markdown."""
    return [line.strip("| ") for line in text.splitlines() if line.startswith("|")][:3]


def _number(cell: object) -> float | None:
    """Return the number of a cell, or of an amount in JSON; None for what is none."""
    if isinstance(cell, dict):
        cell = cell.get("value")
    if isinstance(cell, bool) or cell is None:
        return None
    found = re.fullmatch(r"\$?([-\d.,]+)(?:/\d+)?(K?)(?: s)?\*?", str(cell))
    return float(found[1].replace(",", "")) * (1000 if found[2] else 1) if found else None


def test_no_word_of_the_glossary_is_two_ideas() -> None:
    rows = [line.split(" | ")[0].strip("| ") for line in GLOSSARY.splitlines() if line.startswith("| ")]
    words = [word.strip() for row in rows for word in row.split(",")]
    assert [word for word in {*words} if words.count(word) > 1] == []
    assert {"turn", "carried", "waiting", "conditions"} <= {*words}
