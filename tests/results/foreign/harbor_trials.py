"""Trial directories of Harbor, written by the contract of their readers."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import AttemptRecord

JOB = "2026-06-20__01-02-03"
TASK_TOML = """
schema_version = "1.2"
[metadata]
name = "service-mesh"
difficulty = "hard"
category = "systems"
activity = "Construction"
interaction = "Explorative"
[[metadata.requirement_chain.steps]]
step = "round-2"
change_types = ["correction", "conflict"]
[[steps]]
name = "round-1"
[[steps]]
name = "round-2"
[[steps]]
name = "round-3"
"""


def result_of(trial: str, **values: Any) -> dict[str, Any]:
    """A trial's result.json as far as anybody reads it."""
    return {
        "id": "5f2b1f0c-0000-4000-8000-000000000000",
        "task_name": "service-mesh",
        "trial_name": trial,
        "trial_uri": "file:///somewhere",
        "task_id": {"path": "data/mesh"},
        "task_checksum": "abc",
        "config": {"task": {"path": "data/mesh"}, "agent": {"name": "terminus-2"}, "environment": {"type": "docker"}},
        "agent_info": {"name": "terminus-2", "version": "2", "model_info": {"name": "gpt-5.5", "provider": "openai"}},
        "started_at": "2026-06-20T01:02:04Z",
        "finished_at": "2026-06-20T01:12:04Z",
        **values,
    }


def suite(passed: int, total: int) -> str:
    lines = [
        f"CASE_RESULT case_id=c{number} origin_step=round-1 requirement_ref=R{number} case_type=core "
        f'status={"success" if number <= passed else "fail"} intent="i" scenario="s" input="" expected="e" '
        'actual="a" failure_reason="why"'
        for number in range(1, total + 1)
    ]
    summary = f"CASE_SUMMARY total_cases={total} success_count={passed} fail_count={total - passed}"
    return "\n".join(["building ...", *lines, summary, ""])


def trajectory(*calls: int, **values: Any) -> dict[str, Any]:
    """A step of the agent's for each number of calls, after one of the user's."""
    steps = [{"step_id": 1, "source": "user", "message": "do", "tool_calls": [{"tool_call_id": "no"}]}]
    steps += [
        {
            "step_id": number,
            "source": "agent",
            "message": "",
            "tool_calls": [{"tool_call_id": str(i)} for i in range(n)],
        }
        for number, n in enumerate(calls, 2)
    ]
    return {
        "schema_version": "ATIF-v1.4",
        "session_id": "s",
        "agent": {"name": "a", "version": "1"},
        "steps": steps,
        **values,
    }


def load(directory: Path, **options: Any) -> AttemptRecord:
    results = load_results([directory], **options)
    assert results.problems == []
    (attempt,) = results.attempts
    return attempt.record


def outcomes(record: AttemptRecord) -> list[str]:
    return [round_.outcome for round_ in record.rounds]
