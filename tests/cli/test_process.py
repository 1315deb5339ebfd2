"""``evocode process``: recorded attempts in, pillars out."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pytest_evocode.cli import main
from pytest_evocode.environments import Engine
from pytest_evocode.process.attempts import find_attempts, score_attempt
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import AttemptRecord, Case, RoundRecord, Verdict
from pytest_evocode.tasks import load_task
from tests.click_runner import separating_runner
from tests.process.trajectories import BUDGET, LEDGER, PLAN, TESTS, Recording

TOML = """
[[steps]]
name = "round-1"
[[steps]]
name = "round-2"
[metadata.evocode.process]
category = "plan-then-build"
[[metadata.evocode.process.requirements]]
id = "limits"
text = "Monthly limits are read"
[[metadata.evocode.process.requirements]]
id = "rates"
text = "Currencies are converted at the daily rate"
round = "round-2"
"""


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))


@pytest.fixture
def task(tmp_path: Path) -> Path:
    """Write a task named budget, two levels below the current directory."""
    files = {"task.toml": TOML, "environment/Dockerfile": "FROM scratch\nWORKDIR /app\nCOPY ledger.py .\n"}
    files["environment/ledger.py"] = LEDGER
    for name in ("round-1", "round-2"):
        files[f"steps/{name}/instruction.md"] = "Give the ledger a budget: monthly limits are read by parse_budget().\n"
        files[f"steps/{name}/tests/test.sh"] = "true\n"
    for path, text in files.items():
        place = tmp_path / "tasks" / "budget" / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return tmp_path / "tasks" / "budget"


def recording() -> Recording:
    played = Recording().write("notes.md", PLAN).bash("cat ledger.py", "text")
    played.bash("edit", changes={"ledger.py": BUDGET}).write("tests/test_budget.py", TESTS)
    return played.bash("pytest", "1 passed in 0.10s").say("Done.")


Store = Callable[..., Path]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Write an attempt as sessions do, one recording a round, and return the results directory."""

    def write(agent: str, *recordings: Recording, passed: bool = True, run: str = "2026-01-01__00-00-00") -> Path:
        directory = AttemptDirectory.of(tmp_path / "results", "budget", agent, run, 1)
        rounds = []
        for index, played in enumerate(recordings, 1):
            name = f"round-{index}"
            directory.write_trajectory(name, played.trajectory())
            cases = (
                Case(id="a", status="passed", requirement="limits"),
                Case(id="b", status="passed" if passed else "failed"),
            )
            reward = float(passed)
            verdict = Verdict(reward=reward, rewards={"reward": reward}, cases=cases)
            record = RoundRecord(
                task="budget", agent=agent, attempt=1, round=name, index=index, declared_rounds=2,
                outcome="passed" if passed else "failed", verdict=verdict,
            )  # fmt: skip
            rounds.append(record)
            directory.write_round(record, output="", done=True)
        attempt = AttemptRecord(
            task="budget",
            agent=agent,
            attempt=1,
            environment="sandbox",
            started="2026-01-01T00:00:00+00:00",
            finished="2026-01-01T00:00:01+00:00",
            declared_rounds=("round-1", "round-2"),
            rewards={},
            rounds=tuple(rounds),
        )
        directory.write_attempt(attempt)
        return tmp_path / "results"

    return write


def process(*arguments: str, runner: CliRunner | None = None) -> Result:
    return (runner or CliRunner()).invoke(main, ["process", *arguments])


def test_the_pillars_of_each_agent_task_and_round_are_printed(task: Path, store: Store) -> None:
    store("careful", recording(), Recording(files={}).bash("ls", ""))
    results = store("hasty", Recording().bash("e", changes={"ledger.py": BUDGET}), passed=False)
    shown = process(str(results))
    assert shown.exit_code == 0, shown.output
    lines = [" ".join(line.split()) for line in shown.output.splitlines()]
    assert "careful 0.97 n/a 1.00 n/a n/a n/a 0.67 0.92 over 45 % 1.00" in lines
    assert "round-2 n/a n/a n/a n/a n/a n/a n/a n/a 1.00" in lines
    assert "hasty 0.00 n/a n/a n/a n/a n/a 1.00 0.40 over 20 % 0.50" in lines
    assert "Rank order with each weight changed by 50 %: kept in 14 of 14" in lines
    assert "budget 0.92 / 1.00 0.40 / 0.50" in lines
    assert "all agents, within tasks: n/a (1 task; no correlation below 5 tasks)" in lines


def test_json_is_a_list_of_rows_and_nothing_else(task: Path, store: Store) -> None:
    results = store("hasty", Recording().bash("e", changes={"ledger.py": BUDGET}))
    (row,) = json.loads(process(str(results), "--json").output)
    # Nothing was run, and nothing executed: (0.15 * 0 + 0.10 * 1) / 0.25, over 0.15 * 0.65 + 0.10.
    assert row == {
        **{"agent": "hasty", "pf": 0, "vc": None, "re": None, "aq": None, "ati": None, "tad": None, "ee": 1},
        **{"rigor_score": pytest.approx(0.4), "coverage": pytest.approx(0.1975), "attempts": 1},
        **{"executed": 0.0, "judged": 0.0, "claimed": 0.0, "interval": None},
        **{"rounds_without_a_run": 1, "edited_rounds": 1},
    }


def test_other_weights_give_another_score(task: Path, store: Store) -> None:
    results = store("hasty", Recording().bash("e", changes={"ledger.py": BUDGET}))
    (row,) = json.loads(process(str(results), "--json", "--weight", "re=0", "--weight", "ee=0").output)
    assert row["rigor_score"] == 0
    assert "a weight is a pillar and a number from 0" in process(str(results), "--weight", "x=1").output


def test_evidence_is_shown_with_steps_and_quotes(task: Path, store: Store) -> None:
    results = store("careful", recording())
    shown = process(str(results), "--explain", "budget").output
    assert "budget: careful, attempt 1, plan-then-build (about PF)" in shown
    assert "PAC 1.00 (parsed): a plan in a document of its own" in shown
    assert "step 2: a plan in a document of its own: notes.md: +# Budget of the ledger" in shown
    unknown = "n/a: which tests can fail is not known: "
    assert all(f"{name} {unknown}" in shown for name in ("TCR", "RT", "TAD"))
    assert "BH n/a: nothing was executed (--execute does it)" in shown
    assert "SC 1.00 (executed): 1 of 1 requirements in full" in shown


def test_states_are_executed_when_asked_for_and_known_afterwards(
    task: Path, store: Store, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    toml = task / "task.toml"
    toml.write_text(TOML.replace('"plan-then-build"', '"plan-then-build"\nbuild = "python3 -m py_compile ledger.py"'))
    (task / "environment" / "Dockerfile").write_text("FROM python:3.11\nWORKDIR /app\nCOPY ledger.py .\n")
    results = store("hasty", Recording().bash("e", changes={"ledger.py": BUDGET}))
    shown = process(str(results), "--execute", "--env=sandbox", "--explain", "budget")
    assert shown.exit_code == 0, shown.output
    line = "BH 1.00 (executed): 1 of 1 states build: python3 -m py_compile ledger.py"
    assert line in shown.output
    assert line in process(str(results), "--explain", "budget").output


def test_a_judge_has_to_be_a_model(task: Path, store: Store) -> None:
    assert "a judge is a model" in process(str(store("careful", recording())), "--judge=claude").output


def test_a_task_without_an_attempt_cannot_be_explained(task: Path, store: Store) -> None:
    results = store("careful", recording())
    shown = process(str(results), "--explain", "nothing")
    assert shown.exit_code == 2
    assert "no attempt at nothing; there are attempts at budget" in shown.output


def test_without_the_task_what_it_declares_is_not_known_and_that_is_said(store: Store) -> None:
    results = store("careful", recording())
    shown = process(str(results)).output
    assert "the task budget was not found, so nothing that it declares is known" in shown


def test_tasks_are_found_where_they_are_named(task: Path, store: Store, tmp_path: Path) -> None:
    results = store("careful", recording())
    (tmp_path / "deep").mkdir()
    tasks = task.parent.rename(tmp_path / "deep" / "tasks")
    assert "was not found" in process(str(results)).output
    assert "was not found" not in process(str(results), "--tasks", str(tasks)).output
    assert "was not found" not in process(str(results), "--tasks", str(tasks / "budget")).output


def test_trajectories_alone_are_enough(tmp_path: Path) -> None:
    place = tmp_path / "solo" / "steps" / "round-1" / "agent"
    place.mkdir(parents=True)
    (place / "trajectory.json").write_text(recording().trajectory().model_dump_json(exclude_none=True))
    ((found,), _) = find_attempts(tmp_path / "solo")
    assert (found.task, found.agent, found.rounds) == ("solo", "solo", ("round-1",))
    assert score_attempt(tmp_path / "solo", None).values["re"] == 1


def test_an_attempt_is_scored_with_its_task(task: Path, store: Store) -> None:
    store("careful", recording())
    ((found,), _) = find_attempts(task.parent.parent / "results")
    scored = score_attempt(found.directory, load_task(task))
    assert (scored.category, [each.round for each in scored.rounds]) == ("plan-then-build", ["round-1"])
    assert scored.rounds[0].outcome == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no trajectory in ATIF: Invalid JSON"),
        ('{"steps": []}', "no trajectory in ATIF: agent: Field required"),
        ('{"agent": {"name": "a", "version": "1"}, "steps": [{"step_id": "x", "source": "agent"}]}', "steps.0.step_id"),
    ],
)
def test_a_file_that_is_no_trajectory_is_named(tmp_path: Path, text: str, message: str) -> None:
    place = tmp_path / "solo" / "steps" / "round-1" / "agent"
    place.mkdir(parents=True)
    (place / "trajectory.json").write_text(text)
    shown = process("solo")
    assert shown.exit_code == 1
    assert f"{place / 'trajectory.json'}: " in shown.output.replace("solo/steps", f"{tmp_path}/solo/steps", 1)
    assert message in shown.output


def test_that_attempts_count_which_newer_ones_replace_is_told(task: Path, store: Store) -> None:
    assert "note:" not in process(str(store("gpt", recording()))).output
    told = process(str(store("gpt", recording(), run="2026-01-02__00-00-00"))).output
    assert "note: attempts of all runs are scored, 1 older ones with them that evocode results leaves out" in told


def test_damaged_attempts_and_copies_are_left_out_and_the_rest_is_scored(store: Store, tmp_path: Path) -> None:
    store("careful", recording())
    (bad_record,) = store("cut", recording()).glob("*/harbor_jobs/cut/**/result.json")
    bad_record.write_text("{")
    (bad_trajectory,) = store("torn", recording()).glob("*/harbor_jobs/torn/**/trajectory.json")
    bad_trajectory.write_text("{")
    made = "budget/harbor_jobs/careful"
    shutil.copytree(tmp_path / "results" / made, tmp_path / "results/copy" / made)
    shown = process("results", "--json", runner=separating_runner())
    assert [(row["agent"], row["attempts"]) for row in json.loads(shown.stdout)] == [("careful", 1)]
    assert f"warning: {bad_record}: it is not JSON" in shown.stderr
    assert f"{bad_trajectory.relative_to(tmp_path)}: no trajectory in ATIF" in shown.stderr
    assert f"results/copy/{made}/2026-01-01__00-00-00/budget__a1: another record" in shown.stderr


def test_a_directory_without_trajectories_is_an_error(tmp_path: Path) -> None:
    assert "there is no such directory" in process("nowhere").output
    shown = process(str(tmp_path))
    assert shown.exit_code == 1
    assert "no steps/<round>/agent/trajectory.json below it" in shown.output


@pytest.mark.parametrize("form", ["csv", "markdown", "latex"])
def test_the_pillars_are_to_be_had_in_every_format(task: Path, store: Store, form: str) -> None:
    results = store("hasty", Recording().bash("e", changes={"ledger.py": BUDGET}), passed=False)
    out = process(str(results), "--tasks", str(task), "--format", form).output
    assert ("agent,task,attempt,round,pf" if form == "csv" else "RigorScore") in out
    assert "hasty" in out
