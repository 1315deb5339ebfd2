"""Scripts that were written for Harbor's trees read ours, and come to our numbers."""

from __future__ import annotations

import json
import re
import shutil
import tomllib
from collections import defaultdict
from pathlib import Path
from statistics import mean
from typing import Any

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteNative, WriteTask, suite_up_to

pytestmark = pytest.mark.slow

#: An agent that does every other round only, and says what it called.
AGENT = """
from pytest_evocode.agents import RoundTranscript
from pytest_evocode.trajectories.atif import AgentInfo, Step, ToolCall, Trajectory

class Lazy:
    name = "gpt-5.5"

    def run_round(self, context):
        index = context.round.index
        line = f"line-{index}" if index % 2 else "something"
        context.environment.exec(["sh", "-c", f"echo {line} >> log.txt"], timeout=20)
        calls = tuple(ToolCall(tool_call_id=str(number), function_name="f") for number in range(index + 1))
        step = Step(step_id=1, source="agent", tool_calls=calls)
        agent = AgentInfo(name=self.name, version="1")
        return RoundTranscript(trajectory=Trajectory(session_id="s", agent=agent, steps=(step,)))

def pytest_evocode_make_agent(config, name):
    return Lazy() if name == Lazy.name else None
"""
TOTALS = 'echo "CASE_SUMMARY total_cases=2 success_count=$(grep -c line- log.txt) fail_count=1"'


@pytest.fixture
def tasks(pytester: pytest.Pytester, write_task: WriteTask, write_native: WriteNative, run_tasks: RunTasks) -> Path:
    """Tasks of three forms with results beside their steps, as EvoCode-Bench keeps them."""
    pytester.makeconftest(AGENT)
    write_task("theme_lines", 1)
    write_task("theme_totals", 2, test={2: f"{suite_up_to(2)}\n{TOTALS}"})
    write_native("theme_native", 3)
    run_tasks("tasks", "--evocode-agent=gpt-5.5", "--evocode-results=tasks")
    return pytester.path / "tasks"


def rewards(trial: Path) -> list[float]:
    """By round, 1 for a pass: what ``reward.txt`` says of each declared step, and nothing else."""
    with (trial.parents[3] / "task.toml").open("rb") as file:
        names = [step["name"] for step in tomllib.load(file)["steps"]]
    files = [trial / "steps" / name / "verifier" / "reward.txt" for name in names]
    return [float(path.is_file() and float(path.read_text().strip()) >= 0.999) for path in files]


def case_ratio(step: Path) -> float:
    """By the first line of totals in the suite's output; 0 without one."""
    text = (step / "verifier/test-stdout.txt").read_text()
    found = re.search(r"CASE_SUMMARY total_cases=(\d+) success_count=(\d+) fail_count=(\d+)", text)
    return int(found[2]) / int(found[1]) if found and int(found[1]) else 0.0


def tool_calls(step: Path) -> int | None:
    """The calls of the agent's steps; None where there is no trajectory."""
    path = step / "agent/trajectory.json"
    if not path.is_file():
        return None
    steps = json.loads(path.read_text())["steps"]
    return sum(len(each.get("tool_calls", [])) for each in steps if each["source"] == "agent")


def by_contract(tasks: Path, agent: str) -> dict[str, float | None]:
    """The scores as EvoCode-Bench's scripts find them: trials are where ``result.json`` and ``steps`` are."""
    trials: dict[str, list[Path]] = defaultdict(list)
    for result in tasks.rglob(f"harbor_jobs/{agent}/**/result.json"):
        if (result.parent / "steps").is_dir():
            trials[result.parents[4].name].append(result.parent)
    per_task = {task: [mean(rewards(trial)) for trial in found] for task, found in trials.items()}
    cases, calls = [], []
    for found in trials.values():
        steps = [found[0] / "steps" / f"round-{index}" for index in range(1, len(rewards(found[0])) + 1)]
        cases.append(mean(map(case_ratio, steps)))
        counted = [number for number in map(tool_calls, steps) if number is not None]
        calls += [mean(counted)] if counted else []
    return {
        "dataset_score": 100 * mean(map(mean, per_task.values())),
        "case_score": 100 * mean(cases),
        "avg_rounds": mean(calls) if calls else None,
        "perfect_tasks": sum(all(rewards(found[0])) for found in trials.values()),
        "final_round_completion": 100 * mean(float(rewards(found[0])[-1]) for found in trials.values()),
        "hard_tasks": 100 * mean(float(mean(scores) <= 0.5) for scores in per_task.values()),
        "tasks": len(trials),
    }


def leaderboard(*arguments: str) -> dict[str, dict[str, Any]]:
    ran = CliRunner().invoke(main, ["leaderboard", *arguments, "--json"])
    assert ran.exit_code == 0, ran.output
    return {entry["agent"]: entry for entry in json.loads(ran.stdout)}


@pytest.mark.nightly
def test_evocode_benchs_reading_of_our_files_gives_our_numbers(tasks: Path) -> None:
    board = leaderboard(str(tasks), "--tasks", str(tasks))
    assert board.keys() == {"gpt-5.5", "oracle"}
    for agent, entry in board.items():
        expected = by_contract(tasks, agent)
        assert {name: entry[name] for name in expected} == pytest.approx(expected)
    assert board["oracle"]["dataset_score"] == 100.0
    assert board["gpt-5.5"]["dataset_score"] == pytest.approx(100 * (1 + 1 / 2 + 1 / 3) / 3)
    assert board["gpt-5.5"]["avg_rounds"] == pytest.approx((2 + 2.5 + 3) / 3)


@pytest.mark.nightly
def test_a_harbor_tree_of_the_same_trials_gives_the_same_numbers(tasks: Path) -> None:
    """Without our records our files are those of Harbor, and are loaded as such."""
    ours = leaderboard(str(tasks))
    shutil.rmtree(tasks / "runs")
    for result in tasks.rglob("harbor_jobs/*/*/*/result.json"):
        result.write_text(json.dumps({"trial_name": result.parent.name, "task_name": "x"}))
        for path in [*result.parent.glob("steps/*/round.json"), *result.parent.glob("steps/*/verifier/cases.json")]:
            path.unlink()
    theirs = leaderboard(str(tasks))
    for entry in (*ours.values(), *theirs.values()):
        del entry["identity"]  # Only our records say what made an agent.
    assert theirs == ours
