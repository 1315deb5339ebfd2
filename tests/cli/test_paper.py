"""``evocode paper``: tables, data of figures, how the numbers were made, and what the tasks are."""

from __future__ import annotations

import csv
import hashlib
import io
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.report.paper import paper_views
from pytest_evocode.results.directory import write_run
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import RunRecord, TaskFacts, Usage
from tests.cli.conftest import Evocode
from tests.result_trees import RUN, write_attempt, write_files

TASK = """\
[task]
name = "org/parcels"
version = "2.0.0"
description = "A tool."
keywords = ["cli"]
authors = [{ name = "Ann" }]
[metadata]
difficulty = "easy"
[[metadata.requirement_chain.steps]]
step = "round-1"
change_types = ["extension"]
[[steps]]
name = "round-1"
[[steps]]
name = "round-2"
"""
ASKED = "=SUM(1) is what it shall say, word for word.\n"


def read_csv(path: Path) -> list[dict[str, str]]:
    """The rows of a file."""
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8"))))


@pytest.fixture
def paper(evocode: Evocode, tmp_path: Path) -> Path:
    """What is written of two agents at six tasks, of which one is here."""
    facts = TaskFacts(rounds=("round-1", "round-2"), change_types=(("extension",), ()), category="tools")
    root = tmp_path / "evocode-results"
    usage = Usage(prompt_tokens=900, completion_tokens=10, cost_usd=0.01)
    for place, task in enumerate(("parcels", "b", "c", "d", "e", "f")):
        about: dict[str, Any] = {"facts": facts, "environment": "docker", "strict": True, "cases": ["p", "pf"]}
        made = {"spec": "openai/gpt-5", "options": {"temperature": 0.5}}
        write_attempt(root, task, "gpt_5", "pf" if place % 2 else "pp", made_by=made, usage=usage, **about)
        write_attempt(root, task, "other", "fp" if place % 3 else "ff", **about)
    for step in ("round-1", "round-2"):
        write_files(tmp_path / "parcels" / "steps" / step, {"instruction.md": ASKED, "tests/test.sh": "true\n"})
    write_files(tmp_path / "parcels", {"task.toml": TASK, "environment/Dockerfile": "FROM debian:bookworm-slim\n"})
    arguments = ("--evocode-agent=openai/gpt-5", str(tmp_path / "parcels"))
    versions: dict[str, tuple[str, ...]] = {"pytest-evocode": ("0.1.0",), "Python": ("3.11.7",)}
    write_run(root, RunRecord(run=RUN, started="", arguments=arguments, environment="docker", versions=versions))
    ran = evocode("paper", "-o", "out")
    assert ran.status == 0, ran.err
    assert "not described, because their directories are not known (--tasks): b, c, d, e, f" in ran.err
    return tmp_path / "out"


def test_every_table_is_there_in_three_formats_with_what_its_columns_are(paper: Path) -> None:
    files = {path.name for path in (paper / "tables").iterdir()}
    names = {name.rpartition(".")[0] for name in files}
    assert files == {f"{name}.{ending}" for name in names for ending in ("tex", "csv", "md")}
    assert names >= {"scores", "leaderboard", "scores-by-round", "failing-cases", "pass-at-k-rounds", "pareto", "time"}
    for name in names:
        latex = (paper / "tables" / f"{name}.tex").read_text(encoding="utf-8")
        assert latex.count("{") - latex.count("\\{") == latex.count("}") - latex.count("\\}")
        assert latex.count("\\begin{tabular}") == latex.count("\\bottomrule") > 0
    scores = (paper / "tables" / "scores.tex").read_text(encoding="utf-8")
    assert "gpt\\_5 strict &" in scores
    assert "MT@k 95 \\% &" in scores
    defined = "Avg Rounds: Tool calls per round, the mean over tasks."
    assert defined in scores
    assert defined in (paper / "tables" / "scores.md").read_text(encoding="utf-8")


def test_no_two_tables_are_one_file(paper: Path, tmp_path: Path) -> None:
    table = score_table(load_results([tmp_path / "evocode-results"], cases=True))
    names = [each.name for view in paper_views(table) for each in view.tables]
    assert len(set(names)) == len(names)
    assert {f"{name}.csv" for name in names} == {path.name for path in (paper / "tables").glob("*.csv")}


def test_figures_have_the_numbers_that_are_drawn(paper: Path) -> None:
    assert {path.name for path in (paper / "figures").iterdir()} == {
        "score-by-round.csv",
        "survival.csv",
        "hazard.csv",
        "kept-and-repaired.csv",
        "pareto.csv",
    }
    rows = read_csv(paper / "figures" / "survival.csv")
    assert [(each["agent"], each["round"], float(each["percent"])) for each in rows[:2]] == [
        ("gpt_5 strict", "1", 100.0),
        ("gpt_5 strict", "2", 50.0),
    ]


def test_how_numbers_were_made_is_told_from_the_records_and_what_they_do_not_say_too(
    paper: Path, tmp_path: Path
) -> None:
    text = (paper / "reproducibility.md").read_text(encoding="utf-8")
    assert "| openai/gpt-5 | not recorded | 6 | 1 |" in text
    assert "Settings of gpt\\_5 strict: temperature = 0.5" in text
    assert "| docker | yes | as the tasks say |" in text
    assert "| Python | 3.11.7 |" in text
    assert "fixed seed 0" in text
    assert str(tmp_path) not in text
    assert "| parcels | 2 | not recorded |" in text
    assert "Not found here, and so not in the data set's description: b, c, d, e, f" in text


def test_what_is_left_out_is_told(evocode: Evocode, tmp_path: Path, paper: Path) -> None:
    write_attempt(tmp_path / "evocode-results", "b", "gpt_5", "p-", finished=False, number=2)
    (tmp_path / "evocode-results" / "runs" / "bad.json").write_text("{", encoding="utf-8")
    assert evocode("paper", "-o", "again").status == 0
    text = (tmp_path / "again" / "reproducibility.md").read_text(encoding="utf-8")
    left_out = text.partition("## Excluded")[2]
    assert "not scored, unfinished: b gpt\\_5.2" in left_out
    assert "bad.json" in left_out


def test_a_run_that_was_continued_is_told_with_the_arguments_of_all_its_sessions(
    evocode: Evocode, tmp_path: Path
) -> None:
    root = tmp_path / "evocode-results"
    write_attempt(root, "a", "gpt", "pp")
    earlier = (("--evocode-agent=gpt", "a"), ("--evocode-resume",))
    run = RunRecord(run=RUN, started="", arguments=("-n2",), earlier_arguments=earlier, environment="docker")
    write_run(root, run)
    assert evocode("paper", "-o", "out").status == 0
    text = (tmp_path / "out" / "reproducibility.md").read_text(encoding="utf-8")
    assert "| --evocode-agent=gpt a; continued with: --evocode-resume; continued with: -n2 |" in text
    left_out = text.partition("## Excluded")[2]
    assert " did not end by itself, and was continued 2 times\n" in left_out


def test_tasks_are_described_in_croissant_and_in_a_datasheet(paper: Path, tmp_path: Path) -> None:
    described = json.loads((paper / "croissant.json").read_text(encoding="utf-8"))
    assert described["conformsTo"] == "http://mlcommons.org/croissant/1.0"
    assert [each["name"] for each in described["creator"]] == ["Ann"]
    assert {"license", "url"}.isdisjoint(described), "nobody said"
    for file in described["distribution"]:
        content = (paper / file["contentUrl"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == file["sha256"]
    fields = {each["@id"] for record_set in described["recordSet"] for each in record_set["field"]}
    for name in ("tasks", "rounds"):
        assert {f"{name}/{column}" for column in read_csv(paper / "dataset" / f"{name}.csv")[0]} <= fields
    rows = read_csv(paper / "dataset" / "rounds.csv")
    assert [each["instruction"] for each in rows] == [ASKED] * 2
    sheet = (paper / "datasheet.md").read_text(encoding="utf-8")
    assert "**Who created the dataset?** Ann" in sheet
    assert "| parcels | 2.0.0 | 2 | unknown | easy |" in sheet
    assert "extension 1, unknown 1" in sheet
    assert "**Under which license is it distributed?** *unknown*" in sheet


def test_what_tasks_do_not_say_can_be_given(evocode: Evocode, tmp_path: Path, paper: Path) -> None:
    given = ("--name", "Parcels", "--license", "CC-BY-4.0", "--url", "https://example.org/parcels")
    assert evocode("paper", "-o", "out", *given).status == 0
    described = json.loads((paper / "croissant.json").read_text(encoding="utf-8"))
    assert (described["name"], described["license"], described["url"]) == (given[1], given[3], given[5])
    assert "**Under which license is it distributed?** CC-BY-4.0" in (paper / "datasheet.md").read_text(
        encoding="utf-8"
    )
