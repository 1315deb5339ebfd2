"""Results of Harbor are loaded as if they were ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.results.foreign import read_task_directories
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import RoundRecord, TaskFacts, Usage
from tests.result_trees import write_files
from tests.results.foreign.harbor_trials import JOB, TASK_TOML, load, outcomes, result_of, suite, trajectory


def test_a_trial_of_several_steps_is_an_attempt(tmp_path: Path) -> None:
    write_files(
        tmp_path / "mesh",
        {
            "task.toml": TASK_TOML,
            f"harbor_jobs/gpt-5.5/{JOB}/config.json": {"job_name": JOB},
            f"harbor_jobs/gpt-5.5/{JOB}/result.json": {"n_total_trials": 1, "stats": {}},
        },
    )
    trial = tmp_path / "mesh/harbor_jobs/gpt-5.5" / JOB / "mesh__abcdefg"
    seconds = {"started_at": "2026-06-20T01:02:04Z", "finished_at": "2026-06-20T01:02:14.500000Z"}
    steps = [
        {"step_name": "round-1", "agent_execution": seconds, "agent_result": {"n_input_tokens": 9, "cost_usd": 0.25}},
        {"step_name": "round-2", "verifier": seconds},
    ]
    write_files(
        trial,
        {
            "result.json": result_of("mesh__abcdefg", step_results=steps),
            "config.json": {},
            "steps/round-1/verifier/reward.txt": "1\n",
            "steps/round-1/verifier/test-stdout.txt": suite(4, 4),
            "steps/round-1/agent/trajectory.json": trajectory(2, 0, 3),
            "steps/round-2/verifier/reward.json": {"reward": 0, "style": 0.5},
            "steps/round-2/verifier/reward.txt": "1\n",
            "steps/round-2/verifier/test-stdout.txt": suite(3, 4),
        },
    )
    record = load(tmp_path, cases=True)
    assert (record.task, record.agent, record.attempt, record.mode) == ("mesh", "gpt-5.5", 1, "chain")
    assert (record.environment, record.task_hash, record.started) == ("docker", "abc", "2026-06-20T01:02:04Z")
    assert record.declared_rounds == ("round-1", "round-2", "round-3")
    assert record.facts == TaskFacts(
        rounds=("round-1", "round-2", "round-3"),
        change_types=((), ("correction", "conflict"), ()),
        activity="Construction",
        interaction="Explorative",
        category="systems",
        difficulty="hard",
    )
    assert outcomes(record) == ["passed", "failed", "not reached"]
    first, second, third = record.rounds
    assert (first.tool_calls, first.usage) == (5, Usage(prompt_tokens=9, cost_usd=0.25))
    assert (first.agent_seconds, first.verifier_seconds) == (10.5, None)
    assert (second.tool_calls, second.usage, second.verifier_seconds) == (None, None, 10.5)
    assert second.verdict is not None
    assert second.verdict.rewards == {"reward": 0.0, "style": 0.5}  # reward.json wins over the text, as in Harbor.
    assert [(case.id, case.status, case.reason) for case in second.verdict.cases][-1] == ("c4", "failed", "why")
    assert [round_.case_counts for round_ in record.rounds] == [(4, 4), (3, 4), (0, 0)]
    assert third.declared_rounds == 3
    # Harbor's own mean is over the rounds that have a verdict; ours is over all.
    assert record.rewards == {"reward": pytest.approx(1 / 3), "style": pytest.approx(0.5 / 3)}


def test_a_trial_whose_final_round_has_no_verdict_has_a_reward_of_zero_as_ours_have(tmp_path: Path) -> None:
    write_files(tmp_path / "mesh", {"task.toml": 'multi_step_reward_strategy = "final"\n' + TASK_TOML})
    write_files(
        tmp_path / "mesh/harbor_jobs/gpt-5.5" / JOB / "mesh__abcdefg",
        {"result.json": result_of("mesh__abcdefg"), "steps/round-1/verifier/reward.txt": "1\n"},
    )
    assert load(tmp_path).rewards == {"reward": 0.0}


def test_the_attempts_of_a_job_are_numbered(tmp_path: Path) -> None:
    for task, name in (("a", "a__xyz"), ("a", "a__abc"), ("b", "b__abc")):
        config = {"task": {"path": f"data/{task}"}}
        write_files(
            tmp_path / "jobs" / JOB / name,
            {"result.json": result_of(name, config=config), "steps/round-1/verifier/reward.txt": "1"},
        )
    results = load_results([tmp_path / "jobs"])
    found = [(each.record.task, each.record.attempt, each.path.name, each.run) for each in results.attempts]
    assert found == [("a", 1, "a__abc", JOB), ("a", 2, "a__xyz", JOB), ("b", 1, "b__abc", JOB)]
    assert {round_.attempt for round_ in results.attempts[1].record.rounds} == {2}


@pytest.mark.parametrize(
    ("info", "agent"),
    [
        ({"name": "terminus-2", "version": "2", "model_info": {"name": "gpt-5.5"}}, "terminus-2__gpt-5.5"),
        ({"name": "codex", "version": "1", "model_info": None}, "codex"),
        ({"name": "oracle", "version": "1", "model_info": {"name": "oracle"}}, "oracle"),
        ({"name": "claude-code", "version": "1", "model_info": {"name": "anthropic/opus"}}, "claude-code__opus"),
    ],
)
def test_outside_of_harbor_jobs_an_agent_is_named_with_its_model(
    tmp_path: Path, info: dict[str, Any], agent: str
) -> None:
    write_files(
        tmp_path / "t__a", {"result.json": result_of("t__a", agent_info=info), "steps/r/verifier/reward.txt": "1"}
    )
    assert load(tmp_path).agent == agent


@pytest.mark.parametrize(
    ("config", "task"),
    [
        ({"task": {"path": "data/mesh/"}}, "mesh"),
        ({"task": {"name": "org/mesh"}}, "service-mesh"),
        ({}, "service-mesh"),
    ],
)
def test_outside_of_harbor_jobs_a_task_is_named_by_its_directory(
    tmp_path: Path, config: dict[str, Any], task: str
) -> None:
    values = result_of("t__a", config=config, task_name="org/service-mesh")
    write_files(tmp_path / "t__a", {"result.json": values, "steps/r/verifier/reward.txt": "1"})
    assert load(tmp_path).task == task


def test_without_task_toml_the_rounds_are_those_that_were_begun(tmp_path: Path) -> None:
    steps = [{"step_name": "warm-up"}, {"step_name": "main"}]
    files = {f"steps/{name}/verifier/reward.txt": "1" for name in ("main", "warm-up", "round-10", "round-9")}
    write_files(tmp_path / "t", {"result.json": result_of("t", step_results=steps), **files})
    record = load(tmp_path)
    assert record.declared_rounds == ("warm-up", "main", "round-9", "round-10")
    assert record.facts is None


def test_a_task_directory_that_is_named_says_what_was_declared(tmp_path: Path) -> None:
    write_files(tmp_path / "tasks/mesh", {"task.toml": TASK_TOML})
    write_files(tmp_path / "jobs/t", {"result.json": result_of("t"), "steps/round-1/verifier/reward.txt": "1"})
    record = load(tmp_path / "jobs", tasks=read_task_directories(tmp_path / "tasks"))
    assert outcomes(record) == ["passed", "not reached", "not reached"]
    assert {round_.declared_rounds for round_ in record.rounds} == {3}


def test_a_task_that_lies_where_the_trial_says_it_does_is_read(tmp_path: Path) -> None:
    write_files(tmp_path / "elsewhere/mesh", {"task.toml": TASK_TOML})
    values = result_of("t", config={"task": {"path": str(tmp_path / "elsewhere/mesh")}})
    write_files(tmp_path / "jobs/t", {"result.json": values, "steps/round-1/verifier/reward.txt": "1"})
    assert load(tmp_path / "jobs").declared_rounds == ("round-1", "round-2", "round-3")


def only_round(
    tmp_path: Path, files: dict[str, object], step: dict[str, Any] | None = None, **options: Any
) -> RoundRecord:
    """The round of a trial of one step with these files below ``steps/round-1``."""
    values = result_of("t", step_results=[{"step_name": "round-1", **(step or {})}])
    write_files(
        tmp_path / "t", {"result.json": values, **{f"steps/round-1/{name}": text for name, text in files.items()}}
    )
    (record,) = load(tmp_path, **options).rounds
    return record


@pytest.mark.parametrize(
    ("files", "outcome", "cause"),
    [
        ({"verifier/reward.txt": "0.9995"}, "passed", ""),
        ({"verifier/reward.txt": "0.99"}, "failed", ""),
        ({"verifier/reward.json": {"reward": 1}}, "passed", ""),
        ({"verifier/reward.txt": ""}, "error", "reward.txt is empty"),
        ({"verifier/reward.txt": "nan"}, "error", "not a finite number"),
        ({"verifier/reward.json": "{"}, "error", "reward.json is not JSON"),
        ({"verifier/x": ""}, "error", "there is no reward"),
    ],
)
def test_the_reward_decides(tmp_path: Path, files: dict[str, object], outcome: str, cause: str) -> None:
    record = only_round(tmp_path, files)
    assert record.outcome == outcome
    assert cause in record.cause
    assert bool(record.cause) == (outcome == "error")


@pytest.mark.parametrize(
    ("minimum", "outcome"),
    [("{ tests = 0.5 }", "passed"), ("{ tests = 0.5, style = 0.5 }", "failed"), ("0.5", "failed")],
)
def test_of_several_rewards_the_smallest_that_min_reward_names_decides_as_in_our_own_runs(
    tmp_path: Path, minimum: str, outcome: str
) -> None:
    toml = TASK_TOML.replace('name = "round-1"\n', f'name = "round-1"\nmin_reward = {minimum}\n')
    write_files(tmp_path / "tasks/mesh", {"task.toml": toml})
    write_files(
        tmp_path / "jobs/t",
        {"result.json": result_of("t"), "steps/round-1/verifier/reward.json": {"tests": 1, "style": 0.25}},
    )
    tasks = read_task_directories(tmp_path / "tasks")
    assert outcomes(load(tmp_path / "jobs", tasks=tasks))[0] == outcome


def test_the_reward_of_a_trial_whose_files_are_gone_is_that_of_its_result(tmp_path: Path) -> None:
    step = {"verifier_result": {"rewards": {"reward": 1.0}}}
    assert only_round(tmp_path, {"verifier/x": ""}, step).outcome == "passed"


@pytest.mark.parametrize(
    ("exception", "fault", "timed_out"),
    [
        ("AgentTimeoutError", "agent", "agent"),
        ("NonZeroAgentExitCodeError", "agent", None),
        ("VerifierTimeoutError", "infrastructure", "verifier"),
        ("ApiConnectionClosedError", "infrastructure", None),
    ],
)
def test_an_exception_says_whose_fault_a_round_without_reward_is(
    tmp_path: Path, exception: str, fault: str, timed_out: str | None
) -> None:
    info = {"exception_type": exception, "exception_message": "it was", "exception_traceback": "", "occurred_at": ""}
    record = only_round(tmp_path, {"verifier/x": ""}, {"exception_info": info})
    assert (record.outcome, record.cause) == ("error", f"{exception}: it was")
    assert (record.fault, record.timed_out) == (fault, timed_out)


def test_an_agent_that_ran_out_of_time_is_judged_by_its_reward_all_the_same(tmp_path: Path) -> None:
    info = {"exception_type": "AgentTimeoutError", "exception_message": "it was"}
    record = only_round(tmp_path, {"verifier/reward.txt": "1"}, {"exception_info": info})
    assert (record.outcome, record.fault, record.timed_out, record.cause) == ("passed", None, "agent", "")


@pytest.mark.parametrize(
    ("files", "counts"),
    [
        ({"test-stdout.txt": suite(2, 5)}, (2, 5)),
        # The totals decide where they differ from the lines, and the first of them.
        ({"test-stdout.txt": suite(2, 5).replace("total_cases=5", "total_cases=9") + suite(1, 1)}, (2, 9)),
        # A suite that broke off before its totals has passed nothing.
        ({"test-stdout.txt": suite(3, 3).partition("CASE_SUMMARY")[0]}, (0, 3)),
        ({"test-stdout.txt": "  CASE_SUMMARY total_cases=1 success_count=1 fail_count=0"}, (0, 0)),
        (
            {
                "ctrf.json": {
                    "results": {"tests": [{"name": "x", "status": "passed"}, {"name": "y", "status": "other"}]}
                }
            },
            (1, 2),
        ),
        ({"ctrf.json": "{", "test-stdout.txt": "?"}, (0, 0)),
        ({}, (0, 0)),
    ],
)
@pytest.mark.parametrize("cases", [True, False])
def test_the_suites_own_totals_count(
    tmp_path: Path, files: dict[str, object], counts: tuple[int, int], cases: bool
) -> None:
    below = {f"verifier/{name}": content for name, content in files.items()}
    record = only_round(tmp_path, {"verifier/reward.txt": "0", **below}, cases=cases)
    assert record.case_counts == counts
    assert record.verdict is not None
    assert bool(record.verdict.cases) == (cases and counts[1] > 0)


STEP = {"source": "agent", "tool_calls": [{}, {}], "metrics": {"prompt_tokens": 10, "completion_tokens": 3}}


@pytest.mark.parametrize(
    ("told", "content", "calls", "usage"),
    [
        ({}, trajectory(1, 2), 3, None),
        ({}, trajectory(), 0, None),
        (
            {},
            [STEP, {"source": "agent", "tool_calls": "one"}],
            3,
            Usage(prompt_tokens=10, completion_tokens=3, requests=1),
        ),
        ({}, {"steps": [STEP, {**STEP, "metrics": {"prompt_tokens": 1}}]}, 4, Usage(prompt_tokens=11, requests=2)),
        (
            {},
            trajectory(1, final_metrics={"total_prompt_tokens": 7, "total_cached_tokens": 5, "total_cost_usd": None}),
            1,
            Usage(prompt_tokens=7, cached_tokens=5),
        ),
        (
            {"n_input_tokens": 1, "n_cache_tokens": 2, "n_output_tokens": 3, "cost_usd": 0.5},
            {"steps": [STEP]},
            2,
            Usage(prompt_tokens=1, cached_tokens=2, completion_tokens=3, cost_usd=0.5),
        ),
        ({}, "{", None, None),
        ({}, {"steps": 7}, None, None),
    ],
)
def test_trajectories_tell_tool_calls_and_tokens(
    tmp_path: Path, told: dict[str, Any], content: object, calls: int | None, usage: Usage | None
) -> None:
    files = {"verifier/reward.txt": "1", "agent/trajectory.json": content}
    record = only_round(tmp_path, files, {"agent_result": told})
    assert (record.tool_calls, record.usage) == (calls, usage)


@pytest.mark.parametrize(
    ("first", "last", "mode", "begin", "rounds"),
    [
        (None, None, "chain", None, [1, 2, 3]),
        (1, 3, "chain", None, [1, 2, 3]),
        (2, None, "chain", "round-2", [2, 3]),
        (2, 3, "chain", "round-2", [2, 3]),
        (2, 2, "single-round", "round-2", [2]),
        (1, 1, "single-round", None, [1]),
        (None, 1, "single-round", None, [1]),
    ],
)
def test_a_trial_of_a_part_of_the_steps_is_of_another_mode(
    tmp_path: Path, first: int | None, last: int | None, mode: str, begin: str | None, rounds: list[int]
) -> None:
    window = {"multi_step_start_step": first, "multi_step_end_step": last}
    values = result_of("t", config={"task": {"path": "x/mesh"}, **window})
    write_files(tmp_path / "mesh", {"task.toml": TASK_TOML})
    write_files(tmp_path / "mesh/harbor_jobs/m/j/t", {"result.json": values, "steps/round-2/verifier/reward.txt": "1"})
    record = load(tmp_path)
    assert (record.mode, record.from_round) == (mode, begin)
    assert [round_.index for round_ in record.rounds] == rounds


def test_a_trial_that_still_runs_counts_as_far_as_it_is(tmp_path: Path) -> None:
    config = {
        "trial_name": "t",
        "task": {"path": "data/mesh"},
        "agent": {"name": "codex", "model_name": "openai/gpt-5.5"},
    }
    write_files(
        tmp_path / "t", {"config.json": config, "steps/round-1/verifier/reward.txt": "1", "steps/round-2/agent/x": ""}
    )
    (attempt,) = load_results([tmp_path]).attempts
    assert not attempt.finished
    assert (attempt.record.task, attempt.record.agent) == ("mesh", "codex__gpt-5.5")
    assert outcomes(attempt.record) == ["passed", "error"]


def test_a_trial_of_a_task_without_steps_has_one_round(tmp_path: Path) -> None:
    files = {
        "verifier/reward.txt": "1",
        "verifier/test-stdout.txt": suite(1, 1),
        "agent/trajectory.json": trajectory(4),
    }
    write_files(tmp_path / "t", {"result.json": result_of("t"), **files})
    (record,) = load(tmp_path).rounds
    assert (record.round, record.outcome, record.tool_calls, record.case_counts) == ("round-1", "passed", 4, (1, 1))


@pytest.mark.parametrize("text", ["{", "[]"])
def test_a_damaged_trial_is_named(tmp_path: Path, text: str) -> None:
    write_files(tmp_path / "t", {"result.json": text, "steps/round-1/verifier/reward.txt": "1"})
    results = load_results([tmp_path])
    assert results.attempts == []
    assert results.problems[0].startswith(f"{tmp_path.resolve()}/t/result.json: it is ")


def test_a_trial_says_what_made_its_agent(tmp_path: Path) -> None:
    agent = {"name": "terminus-2", "kwargs": {"reasoning_effort": "high"}}
    write_files(
        tmp_path / "t__a",
        {
            "result.json": result_of("t__a", config={"task": {"path": "data/mesh"}, "agent": agent}),
            "steps/r/verifier/reward.txt": "1",
        },
    )
    assert load(tmp_path).made_by == {
        "harness": {"name": "terminus-2", "version": "2"},
        "model": "openai/gpt-5.5",
        "options": {"reasoning_effort": "high"},
    }
