"""Results have what Harbor's programs read; tests/harbor_package checks it against the package itself."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.results.harbor_files import write_job_of, write_jobs
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import RunRecord, Usage
from tests.result_trees import RUN, write_attempt, write_session

USAGE = Usage(prompt_tokens=10, cached_tokens=4, completion_tokens=2, cost_usd=0.5, requests=1)
MADE_BY = {"spec": "openai/gpt-5", "options": {"effort": "high"}, "harness": {"name": "evocode", "version": "1"}}


def job(root: Path, agent: str = "gpt") -> Path:
    return root / f"ledger/harbor_jobs/{agent}/{RUN}"


def read(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return found


def run_of(session: Path) -> RunRecord:
    return RunRecord.model_validate_json(session.read_bytes())


def test_an_attempt_is_a_trial_with_a_step_for_each_round_that_was_reached(tmp_path: Path) -> None:
    path = write_attempt(tmp_path, outcomes="pfe-", made_by=MADE_BY, usage=USAGE, environment="docker")
    found = read(path / "result.json")
    assert (found["task_name"], found["trial_name"], found["task_id"]) == ("ledger", "ledger__a1", {"path": "ledger"})
    assert found["agent_info"] == {
        "name": "gpt",
        "version": "1",
        "model_info": {"name": "gpt-5", "provider": "openai"},
    }
    assert found["config"]["agent"] == {"name": "gpt", "model_name": "openai/gpt-5", "kwargs": {"effort": "high"}}
    assert found["config"]["environment"] == {"type": "docker"}
    assert found["verifier_result"] == {"rewards": {"reward": 0.25}}
    steps = found["step_results"]
    assert [step["step_name"] for step in steps] == ["round-1", "round-2", "round-3"]
    assert [step["verifier_result"] and step["verifier_result"]["rewards"] for step in steps] == [
        {"reward": 1.0},
        {"reward": 0.0},
        None,
    ]
    assert steps[0]["agent_result"] == {
        "n_input_tokens": 10,
        "n_cache_tokens": 4,
        "n_output_tokens": 2,
        "cost_usd": 0.5,
    }
    assert [step["exception_info"] and step["exception_info"]["exception_type"] for step in steps] == [
        None,
        None,
        "InfrastructureError",
    ]
    assert found["exception_info"]["exception_message"] == "the engine is down"
    assert str(tmp_path) not in json.dumps(found), "results can be moved"


def test_what_is_there_for_harbor_is_not_read(tmp_path: Path) -> None:
    path = write_attempt(tmp_path, outcomes="pf", made_by=MADE_BY) / "result.json"
    (before,) = load_results([tmp_path]).attempts
    values = read(path)
    path.write_text(json.dumps({**values, "task_name": 7, "config": {"surprise": 1}, "step_results": "lost"}))
    (after,) = load_results([tmp_path]).attempts
    assert after.record == before.record
    path.write_text(json.dumps({name: values[name] for name in values if name not in ("config", "id", "task_name")}))
    (older,) = load_results([tmp_path]).attempts
    assert older.record == before.record, "records of earlier versions have none of it"


def test_the_attempts_of_a_run_are_a_job(tmp_path: Path) -> None:
    for number, outcomes in ((1, "pp"), (2, "pe")):
        write_attempt(tmp_path, outcomes=outcomes, number=number, usage=USAGE, made_by=MADE_BY)
    session = write_session(tmp_path, {"ledger": {"gpt": [1, 2, 3]}, "elsewhere": {"gpt": [1]}})
    write_jobs(tmp_path, run_of(session))
    found = read(job(tmp_path) / "result.json")
    assert found["n_total_trials"] == 3
    stats = found["stats"]
    assert [stats[f"n_{name}_trials"] for name in ("completed", "errored", "pending")] == [2, 1, 1]
    assert (stats["n_input_tokens"], stats["cost_usd"]) == (40, 2.0)
    (evaluation,) = stats["evals"].values()
    assert list(stats["evals"]) == ["gpt__gpt-5__adhoc"]
    assert evaluation["metrics"] == [{"mean": 0.75}]
    assert evaluation["reward_stats"] == {"reward": {"1.0": ["ledger__a1"], "0.5": ["ledger__a2"]}}
    assert evaluation["exception_stats"] == {"InfrastructureError": ["ledger__a2"]}
    assert read(job(tmp_path) / "config.json")["job_name"] == RUN
    assert len(load_results([tmp_path]).attempts) == 2
    assert load_results([tmp_path]).problems == []


def test_a_job_follows_an_attempt_that_is_changed(tmp_path: Path) -> None:
    path = write_attempt(tmp_path, outcomes="pp")
    write_jobs(tmp_path, run_of(write_session(tmp_path, {"ledger": {"gpt": [1]}})))
    write_attempt(tmp_path, outcomes="pf")
    write_job_of(path)
    (evaluation,) = read(job(tmp_path) / "result.json")["stats"]["evals"].values()
    assert evaluation["metrics"] == [{"mean": 0.5}]


@pytest.mark.parametrize("contents", ["", "[]", "{}"])
def test_a_job_is_written_beside_a_damaged_attempt(tmp_path: Path, contents: str) -> None:
    write_attempt(tmp_path, number=1)
    (write_attempt(tmp_path, number=2) / "result.json").write_text(contents)
    write_jobs(tmp_path, run_of(write_session(tmp_path, {"ledger": {"gpt": [1, 2]}})))
    stats = read(job(tmp_path) / "result.json")["stats"]
    assert (stats["n_completed_trials"], stats["n_pending_trials"]) == (1, 1)


@pytest.mark.parametrize(
    "edited",
    [
        {"step_results": None},
        {"step_results": "lost"},
        {"step_results": [7]},
        {"config": {"surprise": 1}},
        {"agent_info": {"name": ["gpt"]}},
        {"verifier_result": {"rewards": {"reward": "high"}}},
        {"exception_info": {}},
    ],
)
def test_a_job_is_written_beside_an_attempt_that_was_edited(tmp_path: Path, edited: dict[str, object]) -> None:
    write_attempt(tmp_path, number=1, outcomes="p", made_by=MADE_BY)
    file = write_attempt(tmp_path, number=2, outcomes="p", made_by=MADE_BY) / "result.json"
    file.write_text(json.dumps({**read(file), **edited}))
    write_jobs(tmp_path, run_of(write_session(tmp_path, {"ledger": {"gpt": [1, 2]}})))
    assert read(job(tmp_path) / "result.json")["stats"]["n_completed_trials"] == 1
