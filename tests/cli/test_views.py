"""Views of results: each has every format, and is a command of its own, too."""

from __future__ import annotations

import csv
import io
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest

from pytest_evocode.cli import VIEWS
from pytest_evocode.report.views import FORMATS
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import ForkSource, TaskFacts, Usage
from tests.cli.conftest import Evocode
from tests.result_trees import RUN, write_attempt

#: That of the model is sampled, which takes seconds, once for all of test_model.
QUICK = [view for view in VIEWS if view != "model"]
ALL = ["scores", *QUICK]
#: A word that a view's head has, and one of its numbers in full precision.
KNOWN = {
    "scores": ("Dataset Score", "dataset_score"),
    "leaderboard": ("Dataset Score", "ranking_group"),
    "failures": ("regression", "first_failures"),
    "forks": ("reading", "forked_passed"),
    "analyses": ("pass@k", "pass_at_k"),
    "hazard": ("kept unbroken", "at_risk"),
    "metrics": ("EvoScore", "evo_score"),
    "pareto": ("score", "agent_seconds_per_attempt"),
    "plan": ("tasks", "difference"),
    "timeline": ("its longest pieces", "queued"),
}


TIMES = {
    index: Phases(agent=2.0, suite=1.0, turn_began=1767322980.0 + index * 9, suite_began=1767322990.0)
    for index in (1, 2)
}


@pytest.fixture(autouse=True)
def _results(tmp_path: Path) -> None:
    """Two agents with a name that needs care in LaTeX and Markdown, at six tasks."""
    facts = TaskFacts(rounds=("round-1", "round-2"), change_types=((), ("extension",)))
    root = tmp_path / "evocode-results"
    for place, task in enumerate("abcdef"):
        usage = Usage(prompt_tokens=900, completion_tokens=10, cost_usd=0.01)
        for number in (1, 2):
            good = ("pp", "pf", "fp")[(place + number) % 3]
            write_attempt(
                root, task, "a_b&c", good, cases=["p", "pf"], number=number, facts=facts, usage=usage, phases=TIMES
            )
            write_attempt(root, task, "nop", "pf" if place else "ff", cases=["p", "fp"], number=number, facts=facts)
        write_attempt(root, task, "a_b&c", "pp", mode="single-round", facts=facts, run="2026-02-02__03-04-05")
        source = ForkSource(point="nop:round-1", agent="nop", run=RUN, attempt=1, round="round-1", index=1)
        run = "2026-02-03__03-04-05"
        write_attempt(root, task, "a_b&c", "p", facts=facts, run=run, first=2, from_round="round-2", forked_from=source)


@pytest.mark.parametrize("view", QUICK)
@pytest.mark.parametrize("form", [None, *FORMATS])
def test_a_command_of_earlier_versions_prints_what_its_view_prints(
    evocode: Evocode, view: str, form: str | None
) -> None:
    asked = ("evocode-results", *(() if form is None else ("--format", form)))
    by_view, alone = evocode("results", "--view", view, *asked), evocode(view, *asked)
    assert by_view.status == 0, by_view.err
    assert (by_view.out, by_view.err) == (alone.out, alone.err)
    assert by_view.out == evocode("results", *asked, f"--view={view}").out


@pytest.mark.parametrize("view", ALL)
def test_a_view_has_every_format(evocode: Evocode, view: str) -> None:
    title, field = KNOWN[view]
    ran = {form: evocode("results", "evocode-results", "--view", view, "--format", form) for form in FORMATS}
    assert {form: each.status for form, each in ran.items()} == dict.fromkeys(FORMATS, 0)
    assert title in ran["text"].out
    assert title in ran["markdown"].out
    json.loads(ran["json"].out)
    assert evocode("results", "evocode-results", "--view", view, "--json").out == ran["json"].out
    found = re.search(r"here ([a-z-]+); --table=NAME prints another: (.+)", ran["csv"].err)
    names = [found[1], *found[2].split(", ")] if found else []
    assert len({*names}) == len(names)
    asked = ("results", "--view", view, "--format=csv")
    texts = [evocode(*asked, f"--table={name}").out for name in names] or [ran["csv"].out]
    assert texts[0] == ran["csv"].out
    tables = [list(csv.reader(io.StringIO(text))) for text in texts]
    assert any(field in head for head, *_ in tables)
    assert all(len({len(row) for row in table}) == 1 for table in tables)
    latex = ran["latex"].out
    assert latex.count("\\begin{tabular}") == latex.count("\\toprule") == latex.count("\\end{table}") > 0
    assert "a\\_b\\&c" in latex
    assert "a_b&c" not in latex


def test_csv_has_one_table_and_tells_of_the_others(evocode: Evocode) -> None:
    ran = evocode("results", "--format=csv")
    assert [row["agent"] for row in csv.DictReader(io.StringIO(ran.out))][:1] == ["a_b&c"]
    assert "note: CSV has one table, here scores; --table=NAME prints another: over-attempts" in ran.err.splitlines()
    named = evocode("results", "--format=csv", "--table=over-attempts")
    assert "one table" not in named.err
    assert {row["score"] for row in csv.DictReader(io.StringIO(named.out))} == {"Dataset Score", "Case Score"}
    assert [*evocode("results", "--table=over-attempts", "--json").json] == ["over-attempts"]
    assert evocode("results", "--table=over-attempts").lines[0] == "Scores over attempts"
    unknown = evocode("results", "--table=over")
    assert unknown.status == 2
    assert "there is no table over here; there are scores, over-attempts" in unknown.err


@pytest.mark.parametrize("view", [view for view in ALL if view not in ("plan", "timeline")])
def test_agents_have_the_same_heading_in_every_view(evocode: Evocode, view: str) -> None:
    lines = evocode("results", "evocode-results", "--view", view, "--format", "markdown").lines
    heads = [before.strip("| ").split(" | ") for before, line in pairwise(lines) if line.startswith("| :--")]
    assert "agent" in {cell for head in heads for cell in head}
    assert not any(cell in ("Agent", "Agents", "agents") for head in heads for cell in head)


@pytest.mark.parametrize("view", ALL)
def test_below_each_table_a_line_says_what_each_column_is(evocode: Evocode, view: str) -> None:
    told, quiet = (
        evocode("results", "evocode-results", "--view", view, "--format", "text", *more).lines for more in ((), ("-q",))
    )
    more = [line for line in told if line not in quiet and line]
    assert more
    assert all(re.match(r"[^:]+: [^ ].*", line) for line in more)
    assert len(set(more)) == len(more)


def test_forks_are_held_against_the_attempts_that_they_went_on_from_and_whole_ones(evocode: Evocode) -> None:
    rows = evocode("results", "--view", "forks", "--json").json["forks"]
    assert [(row["task"], row["round"]) for row in rows] == [(task, "round-2") for task in "abcdef"]
    counts = [(row["went_on_passed"], row["went_on_of"], row["forked_passed"], row["own_of"]) for row in rows]
    assert counts == [(0, 1, 1, 2)] * 6


def test_the_published_name_has_what_it_counts_below(evocode: Evocode) -> None:
    assert "Avg Rounds: Tool calls per round, the mean over tasks." in evocode("results").lines


def test_a_view_has_its_own_options_and_help(evocode: Evocode) -> None:
    assert "results --view failures [OPTIONS]" in evocode("results", "--view", "failures", "--help").out
    wrong = evocode("results", "--top", "3")
    assert (wrong.status, "--top" in wrong.err) == (2, True)
    assert evocode("results", "--view", "failures", "--top", "3").status == 0
    unknown = evocode("results", "--view", "nothing")
    assert unknown.status == 2
    assert "'nothing' is not one of 'scores', 'leaderboard'" in unknown.err


def test_scores_have_the_intervals_that_there_are(evocode: Evocode) -> None:
    row, *_ = csv.DictReader(io.StringIO(evocode("results", "--intervals", "--format", "csv").out))
    for name in ("dataset_score", "case_score", "perfect_tasks", "mt_at_k", "sr", "gap"):
        assert float(row[f"{name}_low"]) <= float(row[name]) <= float(row[f"{name}_high"])
    of_json = evocode("results", "--intervals", "--json").json["rows"][0]["intervals"]
    assert [float(row["mt_at_k_low"]), float(row["mt_at_k_high"])] == of_json["mt_at_k"]
    assert [float(row["gap_low"]), float(row["gap_high"])] == of_json["gap"]
    shown = evocode("results", "--intervals").lines[0]
    assert all(title in shown for title in ("Case Score 95 %", "Perfect Tasks 95 %", "MT@k 95 %", "Gap 95 %"))
    assert "MT@k 95 %" in evocode("leaderboard").lines[0]


def test_csv_shows_no_formula_and_whole_numbers(evocode: Evocode, tmp_path: Path) -> None:
    write_attempt(tmp_path / "evil", "a", "=1+1", "pf", cases=["p", "f"])
    assert "'=1+1" in evocode("results", "evil", "--format", "csv").out


def test_agents_are_named_with_the_directory_behind_them(evocode: Evocode, tmp_path: Path) -> None:
    (tmp_path / "evocode-results").rename(tmp_path / "elsewhere")
    for command in (("compare",), ("plan",), ("results", "--view", "plan")):
        behind = evocode(*command, "a_b&c (single-round)", "a_b&c (single-round)", "elsewhere")
        assert behind.status == 0, behind.err
        before = evocode(*command, "--results", "elsewhere", "a_b&c (single-round)", "a_b&c (single-round)")
        assert (behind.out, behind.err) == (before.out, before.err)
    wrong = evocode("plan", "nop", "a_b&c", "nowhere")
    assert (wrong.status, "nowhere is no directory" in wrong.err) == (2, True)
