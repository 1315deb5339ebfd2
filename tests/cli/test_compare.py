"""``evocode compare``: agents, runs and directories against each other."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from pytest_evocode.results.records import TaskFacts
from tests.cli.conftest import Evocode
from tests.result_trees import write_attempt, write_session

OLD, NEW = "2026-01-01__00-00-00", "2026-02-01__00-00-00"


def write(directory: Path, agent: str, run: str = OLD, **outcomes: str) -> None:
    """Attempts by task, with a case for each round."""
    for task, letters in outcomes.items():
        write_attempt(directory, task, agent, letters, run=run, cases=[letter.replace("-", "") for letter in letters])


def test_two_agents_are_compared_task_by_task(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "old", a="pf", b="pp", c="ff")
    write(tmp_path / "evocode-results", "new", a="pp", b="fp", c="ff")
    ran = evocode("compare", "old", "new")
    assert ran.status == 0
    assert ran.lines == [
        "A: old",
        "B: new",
        "paired by task, 3 of them; no interval below 5 tasks, and no p-value",
        "",
        "A B B - A 95 % won tied lost",
        "Dataset Score 50.0 50.0 +0.0 n/a 1 1 1",
        "Case Score 50.0 50.0 +0.0 n/a 1 1 1",
        "MT@k 50.0 33.3 -16.7 n/a 1 1 1",
        "Comp 33.3 66.7 +33.3 n/a 1 2 0",
        "Perfect Tasks, % 33.3 33.3 +0.0 n/a 1 1 1",
        "",
        "below 5 tasks no difference can be told from noise, nor how many tasks it would take",
        "flipped rounds: 1 lost, 1 won; McNemar, as if the rounds of a task were independent, p = 1.000; "
        "by task, p = n/a",
        "",
        "passed in A, not in B (1)",
        "b round-1",
        "",
        "passed in B, not in A (1)",
        "a round-2",
    ]


def test_two_directories_are_compared_agent_by_agent(evocode: Evocode, tmp_path: Path) -> None:
    for agent in ("gpt", "nop"):
        write(tmp_path / "before", agent, a="pf")
        write(tmp_path / "after", agent, a="pp")
    write(tmp_path / "after", "third", a="pp")
    ran = evocode("compare", "before", "after", "--json")
    assert [(each["first"]["name"], each["first"]["in"], each["second"]["name"]) for each in ran.json] == [
        ("gpt", "before", "gpt"),
        ("nop", "before", "nop"),
    ]
    assert ran.err == "note: after: left out, before has none to compare with: third\n"
    assert "A: gpt in before\nB: gpt in after\n" in evocode("compare", "before", "after").out
    (only,) = evocode("compare", "before", "after", "--agent", "nop", "--json").json
    assert only["first"]["name"] == "nop"


def test_the_only_agents_of_two_directories_are_compared_whatever_their_names(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "one", "gpt-5", a="pf")
    write(tmp_path / "two", "gpt-6", a="pp")
    assert evocode("compare", "one", "two").lines[:2] == ["A: gpt-5 in one", "B: gpt-6 in two"]


def test_one_agent_of_each_side_is_named_behind_it(evocode: Evocode, tmp_path: Path) -> None:
    for place in ("one", "two"):
        for agent in ("gpt-5", "gpt-5-mini"):
            write(tmp_path / place, agent, a="pf")
    (pair,) = evocode("compare", "one::gpt-5", "two::gpt-5-mini", "--json").json
    assert (pair["first"]["name"], pair["second"]["name"]) == ("gpt-5", "gpt-5-mini")
    assert (pair["first"]["in"], pair["second"]["in"]) == ("one", "two")
    ran = evocode("compare", "one::gpt-6", "two")
    assert "one has no agent gpt-6; the agents in one are gpt-5" in ran.err
    assert ran.status == 2


def test_runs_are_compared_by_their_tags(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    for run, outcomes, tag in ((OLD, "pf", "before"), (NEW, "pp", "after")):
        for agent in ("gpt", "o1"):
            write(results, agent, run=run, a=outcomes)
        write_session(results, {"a": {"gpt": [1], "o1": [1]}}, run=run, tags=(tag,))
    ran = evocode("compare", "tag:before::gpt", "after::o1")
    assert ran.lines[:2] == ["A: gpt in tag:before", "B: o1 in after"]


@pytest.mark.parametrize("side", ["{}", "evocode-results/runs/{}.json"])
def test_two_runs_are_compared_by_name_or_file(evocode: Evocode, tmp_path: Path, side: str) -> None:
    results = tmp_path / "evocode-results"
    for run, letters in ((OLD, "ff"), (NEW, "pf")):
        write(results, "gpt", run, a=letters)
        write_session(results, {"a": {"gpt": [1]}}, run=run)
    ran = evocode("compare", side.format(OLD), side.format(NEW))
    assert ran.lines[:2] == [f"A: gpt in {OLD}", f"B: gpt in {NEW}"]
    assert "Dataset Score 0.0 50.0 +50.0 n/a 1 0 0" in ran.lines


def test_an_agent_of_another_directory_is_found_there(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "elsewhere", "gpt", a="pf")
    write(tmp_path / "elsewhere", "nop", a="ff")
    assert evocode("compare", "--results", "elsewhere", "nop", "gpt").status == 0


def test_an_agent_is_compared_with_all_of_a_directory_that_has_one(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "gpt", a="pf")
    write(tmp_path / "evocode-results", "nop", a="ff")
    write(tmp_path / "other", "codex", a="pp")
    assert evocode("compare", "gpt", "other").lines[:2] == ["A: gpt", "B: codex in other"]


def test_json_has_the_metrics_and_the_rounds_that_flipped(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "old", a="pp", b="pp", only_old="p")
    write(tmp_path / "evocode-results", "new", a="pf", b="pp", only_new="p")
    (found,) = evocode("compare", "old", "new", "--json").json
    assert found["metrics"]["dataset_score"] == {
        "tasks": 2,
        "first": 100.0,
        "second": 75.0,
        "difference": -25.0,
        "interval": None,
        "interval_method": None,
        "won": 0,
        "lost": 1,
        "tied": 1,
        "p_value": None,
        "p_lower": None,
        "p_adjusted": None,
    }
    assert found["no_interval"] == "no interval below 5 tasks"
    assert found["flips"] == [{"task": "a", "index": 2, "round": "round-2", "first": 1.0, "second": 0.0, "lost": True}]
    assert (found["only_first"], found["only_second"]) == (["only_old"], ["only_new"])
    lines = evocode("compare", "old", "new").lines
    assert "only in A, not compared: only_old" in lines
    assert "only in B, not compared: only_new" in lines


def test_of_several_attempts_the_share_that_passes_is_told(evocode: Evocode, tmp_path: Path) -> None:
    for number, letters in enumerate(("p", "p", "f", "f"), 1):
        write_attempt(tmp_path / "evocode-results", "a", "old", letters, number=number)
    for number in (1, 2, 3, 4):
        write_attempt(tmp_path / "evocode-results", "a", "new", "pppf"[number - 1], number=number)
    assert "a round-1 50 % -> 75 % of the attempts" in evocode("compare", "old", "new").lines


def five(letters: str) -> dict[str, str]:
    """The same at each of five tasks."""
    return dict.fromkeys("abcde", letters)


@pytest.mark.parametrize(
    ("old", "new", "failing"),
    [
        ({"a": "pp", "b": "pp"}, {"a": "pp", "b": "pp"}, set()),
        ({"a": "pf", "b": "pp"}, {"a": "pp", "b": "pp"}, set()),
        ({"a": "pf", "b": "pf"}, {"a": "fp", "b": "pp"}, {"round"}),
        ({"a": "pp", "b": "pp"}, {"a": "pf", "b": "pp"}, {"score", "round", "noise"}),
        ({"a": "pp", "b": "pp"}, {"a": "pf", "b": "fp"}, {"score", "round", "noise"}),
        (five("ppp"), {**five("ppp"), "a": "ppf"}, {"score", "round"}),
        (five("ppp"), {**five("ppf"), "a": "pff"}, {"score", "round", "interval", "noise"}),
        (five("ppf"), {**five("ppp"), "a": "pff"}, {"round"}),
    ],
)
@pytest.mark.matrix
def test_a_regression_fails_where_that_is_wanted(
    evocode: Evocode, tmp_path: Path, old: dict[str, str], new: dict[str, str], failing: set[str]
) -> None:
    write(tmp_path / "evocode-results", "old", **old)
    write(tmp_path / "evocode-results", "new", **new)
    assert evocode("compare", "old", "new").status == 0
    for rule in ("score", "round", "interval", "noise"):
        ran = evocode("compare", "old", "new", "--fail-on-regression", "--regression", rule)
        assert ran.status == (rule in failing)
        judged_by = "score" if rule == "noise" and len(old) < 5 else rule  # Fewer cannot tell.
        assert (f"regression ({judged_by}): new" in ran.err) == (rule in failing)
        assert "B: new" in ran.lines
        (found,) = evocode("compare", "old", "new", "--regression", rule, "--json").json
        assert bool(found["regression"]) == (rule in failing)
    assert evocode("compare", "--fail-on-regression", "old", "new").status == ("noise" in failing)


def test_what_an_agent_left_nothing_of_counts_against_it(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "old", a="p")
    write(tmp_path / "evocode-results", "new", b="p")
    write_session(tmp_path / "evocode-results", {"a": {"new": [1]}})
    ran = evocode("compare", "old", "new", "--fail-on-regression")
    assert ran.status == 1
    assert "note: new: no readable record" in ran.err


def test_single_rounds_compare_with_single_rounds_only(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    for agent, letters in (("old", "pf"), ("new", "pp")):
        write_attempt(results, "a", agent, letters, mode="single-round")
        write_attempt(results, "a", agent, "ff", run=NEW)
    ran = evocode("compare", "old (single-round)", "new (single-round)")
    assert [line for line in ran.lines if line.startswith("SR, by task")] == ["SR, by task 50.0 100.0 +50.0 n/a 1 0 0"]
    assert not [line for line in ran.lines if line.startswith("MT@k")]
    ran = evocode("compare", "old", "new (single-round)")
    assert (ran.status, ran.out) == (2, "")
    assert "scores of different modes cannot be compared: old and new (single-round)" in ran.err
    write_attempt(results, "a", "third", "ff", mode="fail-stop")
    write_attempt(results, "a", "third", "ff", mode="single-round", run=NEW)
    ran = evocode("compare", "old", "third")
    message = "third has third (fail-stop), third (single-round); name one of them as it is called here"
    assert (ran.status, message in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["old", "nobody"], "nobody is no directory, run or agent; the agents in evocode-results are new, old"),
        (["evocode-results", "other"], "it is not clear what to compare: evocode-results has new, old; other has x, y"),
        (["--results", "nowhere", "old", "new"], "old is no directory, and there is no nowhere"),
        (
            ["--agent", "third", "evocode-results", "evocode-results"],
            "evocode-results has no agent third; the agents in evocode-results are new, old",
        ),
    ],
)
def test_what_cannot_be_compared_is_told(evocode: Evocode, tmp_path: Path, arguments: list[str], message: str) -> None:
    for directory, agents in (("evocode-results", ("old", "new")), ("other", ("x", "y"))):
        for agent in agents:
            write(tmp_path / directory, agent, a="p")
    ran = evocode("compare", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err


def test_a_gate_that_lost_a_task_or_an_agent_fails_and_says_which(evocode: Evocode, tmp_path: Path) -> None:
    for agent in ("gpt", "codex"):
        write(tmp_path / "then", agent, a="p", b="p")
    write(tmp_path / "now", "gpt", a="p", c="p")
    agents = "gone: now lacks agents of then: codex"
    tasks = "gone: gpt lacks tasks of A (--any-tasks allows that): b"
    gate = ("--fail-on-regression", "--any-tasks")
    ran = evocode("compare", "then", "now", "--fail-on-regression")
    assert (ran.status, ran.err.splitlines()[-2:]) == (1, [agents, tasks])
    ran = evocode("compare", "then", "now", *gate)
    assert (ran.status, ran.err.splitlines()[-1]) == (1, agents)
    # What was named is all that is guarded.
    for sides in (("then", "now::gpt"), ("then::gpt", "now"), ("then", "now", "--agent", "gpt")):
        assert evocode("compare", *sides, *gate).status == 0
        assert tasks in evocode("compare", *sides, "--fail-on-regression").err
    assert evocode("compare", "then", "now").status == 0


def test_markdown_has_all_that_decides(evocode: Evocode, tmp_path: Path) -> None:
    for agent, letters in (("gpt", "pp"), ("codex", "pp")):
        write(tmp_path / "then", agent, a=letters, b="p")
    write(tmp_path / "now", "gpt", a="pf")
    ran = evocode("compare", "then", "now", "--fail-on-regression", "--format", "markdown")
    assert ran.status == 1
    for told in (
        "regression (score): gpt (any lower score counts: too few tasks to tell it from noise)",
        "gone: now lacks agents of then: codex",
        "then: left out, now has none to compare with: codex",
        "gone: gpt lacks tasks of A (",
        "below 5 tasks no difference can be told from noise",
        "only in A, not compared: b",
        "gpt: 1 task cannot show a regression beyond noise; any lower score counts",
    ):
        assert ran.out.count(told) == 1


def test_without_a_task_in_common_there_is_nothing_to_compare(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "old", a="p")
    write(tmp_path / "evocode-results", "new", b="p")
    ran = evocode("compare", "old", "new", "--fail-on-regression")
    assert (ran.status, ran.out) == (2, "")  # 1 would say that one is worse.
    assert "there is no task for which both have the metric" in ran.err


def test_results_without_attempts_are_no_regression(evocode: Evocode, tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    ran = evocode("compare", "one", "two", "--fail-on-regression")
    assert (ran.status, ran.out) == (2, "")
    assert "there are no results in one" in ran.err


def test_tasks_of_other_contents_are_no_regression(evocode: Evocode, tmp_path: Path) -> None:
    for name, digest in (("one", "1" * 64), ("two", "2" * 64)):
        write_attempt(tmp_path / name, "a", "gpt", "p", task_hash=digest)
    ran = evocode("compare", "one", "two", "--fail-on-regression")
    assert (ran.status, ran.out) == (2, "")
    assert "no task has the same contents on both sides" in ran.err


def test_chains_that_begin_later_are_compared_by_their_rounds(evocode: Evocode, tmp_path: Path) -> None:
    facts = TaskFacts(rounds=("round-1", "round-2", "round-3"))
    for directory, letters in (("one", "pf"), ("two", "pp")):
        write_attempt(tmp_path / directory, "a", "gpt", letters, first=2, from_round="round-2", facts=facts)
    ran = evocode("compare", "one", "two")
    assert ran.lines[0] == "A: gpt (from round-2) in one"
    assert "Dataset Score 50.0 100.0 +50.0 n/a 1 0 0" in ran.lines


def test_only_rounds_that_were_selected_for_both_are_compared(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "old", a="pfp", b="pp")
    write(tmp_path / "evocode-results", "new", b="pp")
    write_attempt(tmp_path / "evocode-results", "a", "new", "pp", of=3, cases=["p", "p"])
    (found,) = evocode("compare", "old", "new", "--json").json
    metrics = found["metrics"]["dataset_score"]
    assert (metrics["first"], metrics["second"]) == (75.0, 100.0)
    assert [(flip["task"], flip["round"], flip["lost"]) for flip in found["flips"]] == [("a", "round-2", False)]


def test_from_five_tasks_on_there_are_intervals_and_p_values(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "old", a="pppp", b="pppp", c="ppff", d="ppff", e="pppp", f="pfff")
    write(tmp_path / "evocode-results", "new", a="pfff", b="pppf", c="ppff", d="pfff", e="ppff", f="ppff")
    ran = evocode("compare", "old", "new")
    assert ran.lines[2:6] == [
        "paired by task, 6 of them; 95 % intervals over tasks; p by permutation of tasks",
        "",
        "A B B - A 95 % won tied lost p",
        "Dataset Score 70.8 45.8 -25.0 -62.1..12.1 1 1 4 0.250",
    ]
    start = ran.lines.index("") + 8
    assert ran.lines[start : start + 3] == [
        "with 6 tasks and 1 attempt you see differences over 63.4 to over 100 points (80 % power, p <= 0.05)",
        "what 5 points take is not known: one attempt does not tell how attempts vary: make two or more of either side",
        "flipped rounds: 7 lost, 1 won; McNemar, as if the rounds of a task were independent, p = 0.070; "
        "by task, p = 0.250",
    ]
    (found,) = evocode("compare", "old", "new", "--json").json
    assert (found["metrics"]["dataset_score"]["p_value"], found["no_interval"]) == (0.25, None)
    assert found["metrics"]["dataset_score"]["interval_method"] == "Student's t"
    assert (found["flips_p_value"], found["flips_by_task_p_value"]) == (18 / 256, 0.25)
    assert found["detectable_as_observed"] == pytest.approx(63.4, abs=0.05)
    assert found["detectable"] == pytest.approx(63.4 * (5 / 1.61) ** 0.5, abs=0.1)
    assert {*found["wanted"].values()} == {5, None}


def test_several_agents_are_compared_with_the_first_and_their_p_values_adjusted(
    evocode: Evocode, tmp_path: Path
) -> None:
    results = tmp_path / "evocode-results"
    write(results, "old", **five("ppp"))
    write(results, "bad", **{**five("ppf"), "a": "pff"})
    write(results, "worse", **{**five("pff"), "a": "fff"})
    write(results, "same", **five("ppp"))
    ran = evocode("compare", "old", "bad", "worse", "same")
    assert [line for line in ran.lines if line.startswith(("A: ", "B: "))] == [
        *("A: old", "B: bad"),
        *("A: old", "B: worse"),
        *("A: old", "B: same"),
    ]
    rows = [line.split()[-2:] for line in ran.lines if line.startswith("Dataset Score")]
    assert rows == [["0.062", "0.188"], ["0.062", "0.188"], ["1.000", "1.000"]]
    found = evocode("compare", "old", "bad", "worse", "same", "--json").json
    assert [each["metrics"]["dataset_score"]["p_adjusted"] for each in found] == [0.1875, 0.1875, 1.0]


def test_what_is_seen_of_several_agents_allows_for_their_number(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write(results, "old", **five("ppp"), f="ppp")
    for agent in ("bad", "same"):
        write(results, agent, **{**five("ppf"), "a": "pff"}, f="ppp")
    seen = "with 6 tasks and 1 attempt you see differences over"
    assert any(line.startswith(seen) for line in evocode("compare", "old", "bad").lines)
    # Not even six tasks that all differ have a p-value of 0.025, which one of two takes as adjusted.
    seen = "with 6 tasks and 1 attempt no difference is seen: no p-value can be as small as 0.025"
    assert evocode("compare", "old", "bad", "same").lines.count(seen) == 2
    (found, _) = evocode("compare", "old", "bad", "same", "--json").json
    assert (found["alpha"], found["detectable"]) == (0.025, None)


def test_a_regression_beyond_noise_is_judged_over_all_comparisons(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    write(results, "old", **five("ppp"))
    write(results, "bad", **{**five("ppf"), "a": "pff"})
    write(results, "same", **five("ppp"))
    rule = ("--fail-on-regression", "--regression", "noise")
    alone, among = evocode("compare", "old", "bad", *rule), evocode("compare", "old", "bad", "same", *rule)
    assert (alone.status, "regression (noise): bad" in alone.err, "note:" in alone.err) == (1, True, False)
    # No p-value of five tasks is small enough for one of two.
    assert "note: bad: 5 tasks cannot show a regression beyond noise; any lower score counts" in among.err
    assert (among.status, among.err.splitlines()[-1]) == (
        1,
        "regression (score): bad (any lower score counts: too few tasks to tell it from noise)",
    )


def test_of_deterministic_agents_any_loss_is_a_regression(evocode: Evocode, tmp_path: Path) -> None:
    for agent, outcomes in {"old": five("ppp"), "new": {**five("ppp"), "a": "ppf"}}.items():
        for task, letters in outcomes.items():
            for known in (True, False):
                place = tmp_path / ("evocode-results" if known else "of-chance")
                write_attempt(place, task, agent, letters, run=OLD, deterministic=known)
    sure = evocode("compare", "old", "new", "--fail-on-regression")
    assert (sure.status, sure.err) == (
        1,
        "regression (score): new (any lower score counts: both sides are deterministic)\n",
    )
    assert evocode("compare", "old", "new", "--fail-on-regression", "--results", "of-chance").status == 0


@pytest.mark.parametrize("rule", ["noise", "interval"])
def test_too_few_tasks_for_a_rule_are_told(evocode: Evocode, tmp_path: Path, rule: str) -> None:
    write(tmp_path / "evocode-results", "old", a="p", b="p")
    write(tmp_path / "evocode-results", "new", a="f", b="f")
    ran = evocode("compare", "old", "new", "--fail-on-regression", "--regression", rule)
    assert "note: new: 2 tasks cannot show a regression beyond noise" in ran.err
    assert ran.status == (rule == "noise")
    assert "note" not in evocode("compare", "old", "new", "--regression", rule).err
    (found,) = evocode("compare", "old", "new", "--regression", rule, "--json").json
    assert (found["regression"], found["regression_rule"]) == {"noise": (True, "score"), "interval": (False, rule)}[
        rule
    ]


def test_the_best_of_several_attempts_is_not_compared_with_that_of_fewer(evocode: Evocode, tmp_path: Path) -> None:
    results = tmp_path / "evocode-results"
    for task in "abcde":
        write_attempt(results, task, "old", "pf", cases=["p", "f"])
        for number in (1, 2):
            write_attempt(results, task, "new", "fp"[number - 1] * 2, cases=["f", "p"], number=number)
    ran = evocode("compare", "old", "new")
    assert not [line for line in ran.lines if line.startswith(("MT@k", "Comp", "Perfect Tasks"))]
    assert (
        "not compared, because the best of more attempts is better: MT@k, Comp, Perfect Tasks; "
        "A has 1 and B has 2 at each task"
    ) in ran.lines
    (found,) = evocode("compare", "old", "new", "--json").json
    assert found["left_out"] == ["mt_at_k", "final_round_completion", "perfect_tasks"]
    assert found["attempts"] == {"first": [1, 1], "second": [2, 2]}


def test_where_infrastructure_errors_happened_the_score_is_compared_without_them_too(
    evocode: Evocode, tmp_path: Path
) -> None:
    results = tmp_path / "evocode-results"
    write(results, "old", a="ppp", b="pppp")
    write_attempt(results, "a", "new", "pe-")
    write_attempt(results, "b", "new", "pppf")
    ran = evocode("compare", "old", "new")
    start = ran.lines.index("A B B - A 95 % won tied lost")
    # Without errors, the first task is its first round on both sides.
    assert ran.lines[start + 1 : start + 3] == [
        "Dataset Score 100.0 54.2 -45.8 n/a 0 0 2",
        "w/o faults 100.0 87.5 -12.5 n/a 0 1 1",
    ]
    assert "without a verdict because of infrastructure errors: A 0, B 2 rounds, as not passed" in ran.lines
    (found,) = evocode("compare", "old", "new", "--json").json
    assert found["metrics"]["without_faults"]["difference"] == -12.5
    assert found["faults"] == {"first": 0, "second": 2}


def test_tasks_that_no_reward_decides_are_counted_and_named(evocode: Evocode, tmp_path: Path) -> None:
    write(tmp_path / "evocode-results", "old", a="pf", b="pp")
    write(tmp_path / "evocode-results", "new", a="pp", b="fp")
    for agent in ("old", "new"):
        write_attempt(tmp_path / "evocode-results", "c", agent, "uu")
    ran = evocode("compare", "old", "new")
    why = "1 task not compared, because no reward decides any round in A or in B: c; "
    assert any(line.startswith(why) for line in ran.lines)
    [found] = evocode("compare", "old", "new", "--json").json
    assert (found["undecided"], found["only_first"], found["only_second"]) == (["c"], [], [])


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_a_comparison_is_to_be_had_in_every_format(evocode: Evocode, tmp_path: Path, form: str) -> None:
    for agent, outcomes in (("one", "pf"), ("two", "pp")):
        write_attempt(tmp_path / "evocode-results", "a", agent, outcomes)
    ran = evocode("compare", "one", "two", "--format", form)
    assert (ran.status, "note" in ran.err) == (0, form == "csv")
    if form == "csv":
        more = evocode("compare", "one", "two", "--format=csv", "--table=flips")
        metrics, flips = (list(csv.DictReader(io.StringIO(each.out))) for each in (ran, more))
        assert {row["metric"]: float(row["difference"]) for row in metrics}["Dataset Score"] == 50
        assert [(row["task"], row["round"], row["passed_in"]) for row in flips] == [("a", "round-2", "B")]
    else:
        assert "Dataset Score" in ran.out
        assert "paired by task, 1 of them" in ran.out


def test_a_difference_that_decides_has_the_digits_that_show_it(evocode: Evocode, tmp_path: Path) -> None:
    for agent, last in (("old", "p"), ("new", "f")):
        tasks = {f"task-{number}": "p" for number in range(60)}
        write(tmp_path / "evocode-results", agent, **tasks, last="p" * 39 + last)
    lines = evocode("compare", "old", "new", "--regression", "score", "--fail-on-regression").lines
    assert "Dataset Score 100.00 99.96 -0.04" in next(line for line in lines if line.startswith("Dataset Score"))
