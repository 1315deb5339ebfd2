"""``evocode export``: a row for each round, or for each case."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from pytest_evocode.results.identity import identity_of
from pytest_evocode.results.records import SelectedTask, TaskFacts, Usage
from tests.cli.conftest import Evocode
from tests.result_trees import RUN, write_attempt, write_session

FACTS = TaskFacts(rounds=("round-1", "round-2"), change_types=((), ("extension", "conflict")), category="tools")


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "a", "gpt", "pf", cases=["p", "pf"], facts=FACTS, tool_calls=3)
    write_attempt(tmp_path / "evocode-results", "b", "gpt", "e-")


def test_rounds_are_rows(evocode: Evocode, tmp_path: Path) -> None:
    ran = evocode("export")
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    assert [(row["task"], row["round"], row["outcome"], row["passed"], row["cases"]) for row in rows] == [
        ("a", "round-1", "passed", "true", "1"),
        ("a", "round-2", "failed", "false", "2"),
        ("b", "round-1", "error", "false", ""),
        ("b", "round-2", "not reached", "false", ""),
    ]
    second = rows[1]
    assert second["directory"].startswith(f"{tmp_path}/evocode-results/a/harbor_jobs/gpt/")
    del second["directory"]
    assert {name: value for name, value in second.items() if value} == {
        "agent": "gpt",
        "mode": "chain",
        "task": "a",
        "attempt": "1",
        "run": "2026-01-02__03-04-05",
        "finished": "true",
        "partial": "false",
        "waiting": "false",
        "name": "gpt",
        "counts": "true",
        "round": "round-2",
        "index": "2",
        "declared_rounds": "2",
        "outcome": "failed",
        "passed": "false",
        "reward": "0.0",
        "cases_passed": "1",
        "cases": "2",
        "tool_calls": "3",
        "agent_seconds": "1.5",
        "category": "tools",
        "change_types": "extension conflict",
        "environment": "sandbox",
        "label": "gpt",
        "identity": identity_of({}, "gpt").hash,
        "started": "2026-01-02T03:04:05+00:00",
    }


def test_rounds_that_count_without_a_record_are_rows(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "more"
    write_attempt(results, "a", "gpt", "p", of=2, finished=False)
    selected = {"a": {"gpt": [1]}, "c": {"gpt": [1]}}
    write_session(results, selected, tasks={"c": SelectedTask(task_hash="abc", facts=FACTS)})
    rows = list(csv.DictReader(io.StringIO(evocode("export", "more").out)))
    names = ("task", "index", "declared_rounds", "outcome", "run", "change_types", "task_hash")
    assert [tuple(row[name] for name in names) for row in rows] == [
        ("a", "1", "2", "passed", RUN, "", ""),
        ("a", "2", "2", "not reached", RUN, "", ""),
        ("c", "1", "2", "not reached", "", "", "abc"),
        ("c", "2", "2", "not reached", "", "extension conflict", "abc"),
    ]
    assert [row["round"] for row in rows[2:]] == ["round-1", "round-2"]


def test_cases_are_rows_where_they_are_wanted(evocode: Evocode) -> None:
    rows = list(csv.DictReader(io.StringIO(evocode("export", "--cases").out)))
    assert [(row["task"], row["round"], row["case"], row["status"], row["requirement"]) for row in rows] == [
        ("a", "round-1", "c1", "passed", "R1"),
        ("a", "round-2", "c1", "passed", "R1"),
        ("a", "round-2", "c2", "failed", "R2"),
    ]


@pytest.mark.parametrize("cases", [[], ["--cases"]])
def test_all_formats_have_the_same_rows(evocode: Evocode, tmp_path: Path, cases: list[str]) -> None:
    from pyarrow import parquet

    for ending in ("csv", "json", "parquet"):
        ran = evocode("export", *cases, "-o", f"rounds.{ending}")
        assert (ran.status, ran.out) == (0, "")
    rows = evocode("export", *cases, "--json").json
    assert parquet.read_table(tmp_path / "rounds.parquet").to_pylist() == rows
    assert (tmp_path / "rounds.json").read_text() == evocode("export", *cases, "--json").out
    assert (tmp_path / "rounds.csv").read_text() == evocode("export", *cases).out
    written = list(csv.DictReader(io.StringIO((tmp_path / "rounds.csv").read_text())))
    assert written == [{name: as_csv(value) for name, value in row.items()} for row in rows]


def as_csv(value: object) -> str:
    return "" if value is None else str(value).lower() if isinstance(value, bool) else str(value)


def test_without_pyarrow_it_is_told_what_to_install(evocode: Evocode, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = evocode("export", "-o", "rounds.parquet")
    assert ran.status == 1
    assert "pip install 'pytest-evocode[parquet]'" in ran.err


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["--format", "parquet"], 2, "Parquet cannot be printed; name a file with -o"),
        (["-o", "rounds.xlsx"], 2, "rounds.xlsx ends with none of .csv, .parquet, .json"),
        (["-o", "nowhere/rounds.csv"], 1, "nowhere/rounds.csv cannot be written: No such file or directory"),
    ],
)
def test_what_cannot_be_exported_is_told(evocode: Evocode, arguments: list[str], status: int, message: str) -> None:
    ran = evocode("export", *arguments)
    assert (ran.status, ran.out) == (status, "")
    assert message in ran.err


def test_a_format_goes_into_any_file(evocode: Evocode, tmp_path: Path) -> None:
    assert evocode("export", "--format", "csv", "-o", "rounds.txt").status == 0
    assert (tmp_path / "rounds.txt").read_text() == evocode("export").out


def test_a_partial_attempt_is_marked_and_displaces_none(evocode: Evocode, tmp_path: Path) -> None:
    newer = "2026-02-01__00-00-00"
    write_attempt(tmp_path / "evocode-results", "a", "gpt", "f", of=2, run=newer)
    write_attempt(tmp_path / "evocode-results", "c", "gpt", "p", of=2, run=newer)
    rows = list(csv.DictReader(io.StringIO(evocode("export").out)))
    assert [(row["task"], row["round"], row["partial"]) for row in rows] == [
        *[("a", "round-1", "false"), ("a", "round-2", "false"), ("b", "round-1", "false"), ("b", "round-2", "false")],
        ("c", "round-1", "true"),
    ]


def test_sums_over_the_rounds_that_count_are_those_of_results(evocode: Evocode, tmp_path: Path) -> None:
    root, used = tmp_path / "more", Usage(prompt_tokens=100, completion_tokens=10, cost_usd=0.5)
    write_attempt(root, "a", "gpt", "pf", usage=used)
    write_attempt(root, "b", "gpt", "p", of=2, usage=used, finished=False)
    rows = list(csv.DictReader(io.StringIO(evocode("export", "more").out)))
    assert [(row["task"], row["counts"], row["unscored"]) for row in rows] == [
        ("a", "true", ""),
        ("a", "true", ""),
        ("b", "false", "unfinished"),
    ]
    (row,) = evocode("results", "more", "--json").json["rows"]
    assert sum(float(each["cost_usd"]) for each in rows if each["counts"] == "true") == 1.0
    assert row["spending"]["cost_usd"]["value"] == 1.0


def test_conditions_are_one_hash_for_a_run_its_row_and_its_rounds_whatever_their_images(
    evocode: Evocode, tmp_path: Path
) -> None:
    root, settings = tmp_path / "more", {"verify-times": "3", "version": "1"}
    for task, image in (("a", "x"), ("b", "y")):
        told = {**settings, "image": image}
        write_attempt(root, task, "gpt", "pp", conditions=told, strict=False, task_hash="1" * 64)
    write_session(root, {"a": {"gpt": [1]}, "b": {"gpt": [1]}}, conditions=settings, strict=False)
    (run,) = evocode("runs", "more", "--format=json").json
    (row,) = evocode("results", "more", "--json").json["rows"]
    found = {each["conditions"] for each in csv.DictReader(io.StringIO(evocode("export", "more").out))}
    assert found == {run["hash"]} == {row["conditions"]["hash"]}


def test_tables_have_the_name_of_their_row_in_one_column(evocode: Evocode, tmp_path: Path) -> None:
    root = tmp_path / "more"
    for effort, run in (("low", RUN), ("high", "2026-02-01__00-00-00")):
        made_by = {"spec": "openai/gpt-5", "options": {"effort": effort}}
        write_attempt(root, "a", "gpt-5", "pf", mode="fail-stop", made_by=made_by, run=run)
    assert evocode("report", "more", "-o", "page").status == 0
    page = tmp_path / "page" / "csv"
    tables = {name: (page / f"{name}.csv").read_text() for name in ("leaderboard", "rounds", "tasks")}
    tables["export"] = evocode("export", "more").out
    for name, text in tables.items():
        names = {each["name"] for each in csv.DictReader(io.StringIO(text))}
        assert names == {"gpt-5 effort=high (fail-stop)", "gpt-5 effort=low (fail-stop)"}, name
