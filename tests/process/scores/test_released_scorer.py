"""RigorBench's released scorer: its own numbers from its own files."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from pytest_evocode.errors import UsageError
from pytest_evocode.process.scores.released_scorer import read_released, released_pillars, summarise_released
from pytest_evocode.process.scores.rigor_score import rigor_score
from pytest_evocode.report.process import missing_task_notes

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write a result file with so many events of each type."""

    def result(name: str, events: Mapping[str, int] | None = None, task: str = "task_1") -> Path:
        actions = [event for event, count in (events or {}).items() for _ in range(count)]
        lines = [
            f"task_id: {task}",
            "agent_name: Somebody",
            "rigor_enabled: true",
            "total_tokens: 1",
            "duration_seconds: 2",
        ]
        lines += ["phases:", "- name: execution", "  started_at: '2026-06-21T17:50:27'", "  actions:"]
        for action in actions:
            lines += [f"  - type: {action}", "    timestamp: '2026-06-21T17:50:27'", "    metadata: {}"]
        path = tmp_path / "results" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("\n".join(lines) + "\n")
        return path.parent

    return result


@pytest.mark.parametrize(
    ("events", "pillar", "value"),
    [
        ({"plan_created": 1}, "pf", 0.9),
        ({}, "pf", 0.2),
        ({"test_written": 3}, "vc", 0.75),
        ({"test_written": 9}, "vc", 1),
        ({}, "re", 0.5),
        ({"error_encountered": 4, "recovery_attempted": 1}, "re", 0.25),
        ({"error_encountered": 1, "recovery_attempted": 4}, "re", 1),
        ({"abstention_declared": 1}, "aq", 1),
        ({}, "aq", 0.5),
        ({"checkpoint_validated": 2}, "ati", 0.8),
        ({"checkpoint_validated": 9}, "ati", 1),
        ({}, "tad", 0.5),
        ({"file_read": 3, "file_modified": 1}, "ee", 0.25),
        ({"file_read": 2, "test_written": 1, "plan_created": 1}, "ee", 0.5),
        ({}, "ee", 0.5),
    ],
)
def test_the_released_formulas(events: Mapping[str, int], pillar: str, value: float) -> None:
    assert released_pillars(events)[pillar] == pytest.approx(value)


def test_nothing_scores_and_a_lone_plan_scores_more() -> None:
    # 0.15 * 0.2 + 0.15 * 0 + 0.20 * 0.5 + 0.10 * 0.5 + 0.10 * 0.4 + 0.20 * 0.5 + 0.10 * 0.5
    # and with a plan 0.15 * 0.7 more for planning and 0.10 * 0.5 more for exploration.
    scores = [rigor_score(released_pillars(events)) for events in ({}, {"plan_created": 1})]
    assert [score.value for score in scores if score is not None] == pytest.approx([0.37, 0.525])


def test_harnesses_are_told_by_the_names_of_files(write: Write) -> None:
    for name in ("agentrigor_a.yaml", "superpowersharness_a.yaml", "agentskills_a.yaml", "react_a.yaml", "x_b.yaml"):
        write(name)
    write("agentrigor_trajectory.yaml", {"plan_created": 1})
    directory = write("rigor_averages.yaml", {"plan_created": 1})
    results, left_out = read_released(directory)
    assert sorted(result.harness for result in results) == ["baseline", "baseline", "rigor", "skill", "superpower"]
    assert left_out == []


def test_the_density_is_that_of_the_repository_where_it_is_there(write: Write) -> None:
    directory = write("agentrigor_a.yaml", task="task_7")
    repository = directory.parent / "tasks" / "planning" / "task_7" / "repo_agentrigor"
    repository.mkdir(parents=True)
    asserts = "    assert f()\n" * 3 + "    assert True\n    assert f() is not None\n"
    (repository / "test_a.py").write_text(f"def test_a():\n{asserts}")
    (results, _) = read_released(directory)
    assert results[0].values["tad"] == pytest.approx(3 / 5)


def test_tasks_and_work_that_are_missing_are_named(write: Write) -> None:
    for name, task in (("agentrigor_a.yaml", "task_1"), ("agentrigor_b.yaml", "task_2"), ("react_a.yaml", "task_1")):
        directory = write(name, task=task)
    (directory.parent / "tasks" / "planning" / "task_1" / "repo_agentrigor").mkdir(parents=True)
    lines = [
        "baseline: 1 of 2 tasks, without task_2; means over other tasks cannot be compared",
        "baseline: TAD is the neutral 0.5 in 1 of 1 result, because the agent's work is not there, as "
        "tasks/CATEGORY/TASK/repo_baseline beside the results: task_1",
        "rigor: TAD is the neutral 0.5 in 1 of 2 results, because the agent's work is not there, as "
        "tasks/CATEGORY/TASK/repo_agentrigor beside the results: task_2",
    ]
    assert list(missing_task_notes(read_released(directory)[0])) == lines
    ran = CliRunner().invoke(main, ["process", str(directory), "--profile=released", "-q"])
    assert ran.stderr.splitlines() == [f"note: {line}" for line in lines]


def test_results_are_the_means_of_a_harness(write: Write) -> None:
    write("agentrigor_a.yaml", {"plan_created": 1})
    directory = write("agentrigor_b.yaml")
    summary = summarise_released(read_released(directory)[0])["rigor"]
    assert summary.values["pf"] == pytest.approx(0.55)
    assert summary.attempts == 2
    assert summary.score is not None
    assert (round(summary.score.value, 4), summary.score.coverage) == (0.4475, 1)  # (0.37 + 0.525) / 2


def test_what_is_no_result_is_left_out_and_named(write: Write) -> None:
    directory = write("agentrigor_a.yaml")
    (directory / "sc_scores.yaml").write_text("task_1: {agentrigor: {sc: 1}}\n")
    (directory / "broken.yaml").write_text("task_id: x\nphases: [\n")
    (directory / "odd.yaml").write_text("task_id: x\nphases: [{actions: [{kind: plan_created}]}]\n")
    _, left_out = read_released(directory)
    shown = [reason.removeprefix(f"{directory}/") for reason in left_out]
    assert shown[0].startswith("broken.yaml:3: not valid YAML: ")
    assert shown[1:] == [
        "odd.yaml: no result: an action has no type",
        "sc_scores.yaml: no result: it has no task_id",
    ]


def test_a_directory_without_a_result_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"no result file of RigorBench \(\*\.yaml\) in it"):
        read_released(tmp_path)


def test_the_command_prints_what_the_released_scorer_gives(write: Write) -> None:
    write("agentrigor_a.yaml", {"plan_created": 1})
    directory = write("baseline_a.yaml")
    shown = CliRunner().invoke(main, ["process", str(directory), "--profile=released", "-q"])
    assert shown.stdout.splitlines() == [
        "agent       PF    VC    RE    AQ   ATI   TAD    EE       RigorScore  attempts",
        "baseline  0.20  0.00  0.50  0.50  0.40  0.50  0.50  0.37 over 100 %         1",
        "rigor     0.90  0.00  0.50  0.50  0.40  0.50  1.00  0.53 over 100 %         1",
    ]
    rows = json.loads(CliRunner().invoke(main, ["process", str(directory), "--profile", "released", "--json"]).stdout)
    assert rows[0] == {
        "agent": "baseline",
        **{"pf": 0.2, "vc": 0.0, "re": 0.5, "aq": 0.5, "ati": 0.4, "tad": 0.5, "ee": 0.5},
        **{"rigor_score": pytest.approx(0.37), "coverage": 1.0, "attempts": 1},
        **{"judged": 0.0, "executed": 0.0, "claimed": 0.0, "interval": None},
        **{"rounds_without_a_run": 0, "edited_rounds": 0},
    }
