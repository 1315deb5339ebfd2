"""Harbor's own models and viewer read our results."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.results.harbor_files import write_jobs
from pytest_evocode.results.records import RunRecord, Usage
from tests.result_trees import RUN, write_attempt, write_session

USAGE = Usage(prompt_tokens=10, cached_tokens=4, completion_tokens=2, cost_usd=0.5, requests=1)


def harbor(module: str, name: str) -> Any:
    # By name, because there is no such package where types are checked.
    return getattr(importlib.import_module(f"harbor.{module}"), name)


@pytest.fixture
def results(tmp_path: Path) -> Path:
    made_by = {"spec": "openai/gpt-5", "harness": {"name": "evocode", "version": "1"}}
    write_attempt(tmp_path, outcomes="pfe-", usage=USAGE, made_by=made_by, environment="docker")
    write_attempt(tmp_path, outcomes="pppp", number=2, cases=["pp", "p"])
    session = write_session(tmp_path, {"ledger": {"gpt": [1, 2, 3]}})
    write_jobs(tmp_path, RunRecord.model_validate_json(session.read_bytes()))
    return tmp_path


def test_an_attempt_is_a_trial_result(results: Path) -> None:
    trial_result = harbor("models.trial.result", "TrialResult")
    paths = sorted(results.glob("*/harbor_jobs/*/*/*/result.json"))
    first, second = (trial_result.model_validate_json(path.read_bytes()) for path in paths)
    assert first.verifier_result.rewards == {"reward": 0.25}
    assert [step.step_name for step in first.step_results] == ["round-1", "round-2", "round-3"]
    assert first.compute_token_cost_totals() == (30, 12, 6, 1.5)
    assert first.agent_info.model_info.provider == "openai"
    assert second.exception_info is None


def test_a_job_is_what_harbor_makes_of_its_trials(results: Path) -> None:
    job = results / f"ledger/harbor_jobs/gpt/{RUN}"
    job_result = harbor("models.job.result", "JobResult").model_validate_json((job / "result.json").read_bytes())
    harbor("models.job.config", "JobConfig").model_validate_json((job / "config.json").read_bytes())
    trial_result = harbor("models.trial.result", "TrialResult")
    trials = [trial_result.model_validate_json(path.read_bytes()) for path in sorted(job.glob("*/result.json"))]
    own = harbor("models.job.result", "JobStats").from_trial_results(trials, n_total_trials=3).model_dump(mode="json")
    found = job_result.stats.model_dump(mode="json")
    for name, evaluation in found["evals"].items():
        of_trials = [each for each in trials if name.startswith(f"{each.agent_info.name}__")]
        rewards = [each.verifier_result and each.verifier_result.rewards for each in of_trials]
        if len(found["evals"]) == 1:
            own["evals"][name]["metrics"] = [harbor("metrics.mean", "Mean")().compute(rewards)]
        else:
            own["evals"][name]["metrics"] = evaluation["metrics"]
    assert json.loads(json.dumps(found)) == json.loads(json.dumps(own))


def test_harbors_viewer_opens_a_job(results: Path) -> None:
    scanner = harbor("viewer.scanner", "JobScanner")(results / "ledger/harbor_jobs/gpt")
    assert scanner.list_jobs() == [RUN]
    assert scanner.get_job_result(RUN).n_total_trials == 3
    assert scanner.get_job_config(RUN).job_name == RUN
    names = scanner.list_trials(RUN)
    assert names == ["ledger__a1", "ledger__a2"]
    assert all(scanner.get_trial_result(RUN, name) is not None for name in names)
