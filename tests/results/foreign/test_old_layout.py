"""Results of EvoCode-Bench from before Harbor had steps: ``verifier/multiround_results.json``."""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.results.loading import load_results
from tests.result_trees import write_files
from tests.results.foreign.harbor_trials import JOB, load, outcomes, result_of, suite

OLD_TOML = "[metadata.multiround]\nnum_rounds = 4\n"
ENTRIES = [
    {"round": 1, "reward": 1.0, "status": "completed"},
    {"round": 2, "reward": 0.0, "status": "completed"},
]


def old_trial(tmp_path: Path, entries: object = ENTRIES, **verifier: object) -> Path:
    """A trial of the old layout; its task has four rounds."""
    write_files(tmp_path / "mesh", {"task.toml": OLD_TOML})
    steps = [
        {"source": "agent", "tool_calls": [{}, {}], "extra": {"round": 1}},
        {"source": "agent", "extra": {"round": 2}},
    ]
    trial = tmp_path / "mesh/harbor_jobs/gpt" / JOB / "t"
    write_files(
        trial,
        {
            "result.json": result_of("t", config={"task": {"path": "x"}, "verifier": verifier}),
            "verifier/multiround_results.json": entries,
            "verifier/round_1_test-stdout.txt": suite(2, 2),
            "verifier/round_2_test-stdout.txt": suite(1, 3),
            "verifier/reward.txt": "0.25",
            "agent/trajectory.json": {"steps": steps},
        },
    )
    return trial


def test_the_old_layout_is_an_attempt_in_fail_stop_mode(tmp_path: Path) -> None:
    old_trial(tmp_path)
    results = load_results([tmp_path])
    (attempt,) = results.attempts
    record = attempt.record
    assert (attempt.layout, record.mode, record.agent, record.task) == ("multiround", "fail-stop", "gpt", "mesh")
    assert record.declared_rounds == ("round_1", "round_2", "round_3", "round_4")
    assert outcomes(record) == ["passed", "failed", "not reached", "not reached"]
    assert [round_.case_counts for round_ in record.rounds] == [(2, 2), (1, 3), (0, 0), (0, 0)]
    assert [round_.tool_calls for round_ in record.rounds] == [2, 0, None, None]


def test_the_old_layout_counts_a_round_without_reward_as_an_error(tmp_path: Path) -> None:
    old_trial(tmp_path, [{"round": 1, "reward": None, "status": "failed"}, "?", {"status": "completed"}])
    assert outcomes(load(tmp_path)) == ["error", "not reached", "not reached", "not reached"]


@pytest.mark.parametrize(
    ("verifier", "mode", "begin", "rounds"),
    [
        ({"multiround_start_round": 2}, "fail-stop", "round_2", [2, 3, 4]),
        ({"multiround_start_round": 2, "multiround_max_round": 2}, "single-round", "round_2", [2]),
        # It goes on with another trial, whose rounds it has as its own.
        ({"multiround_start_round": 2, "multiround_resume_source": "/x"}, "fail-stop", None, [1, 2, 3, 4]),
    ],
)
def test_the_old_layout_has_windows_too(
    tmp_path: Path, verifier: dict[str, object], mode: str, begin: str | None, rounds: list[int]
) -> None:
    old_trial(tmp_path, **verifier)
    record = load(tmp_path)
    assert (record.mode, record.from_round, [round_.index for round_ in record.rounds]) == (mode, begin, rounds)


@pytest.mark.parametrize(("entries", "why"), [("{", "is not JSON"), ({"round": 1}, "is JSON, but not a list")])
def test_damaged_old_results_are_named(tmp_path: Path, entries: object, why: str) -> None:
    trial = old_trial(tmp_path, entries)
    results = load_results([tmp_path])
    assert results.attempts == []
    assert f"{trial.resolve()}/result.json: verifier/multiround_results.json {why}" in results.problems[0]
