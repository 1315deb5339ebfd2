"""Trials of others in which links, pipes and devices lie: nothing outside is read, and what is refused is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evocode.results.loading import load_results
from pytest_evocode.results.records import AttemptRecord
from tests.result_trees import write_files
from tests.results.foreign.harbor_trials import outcomes, result_of, suite, trajectory

REWARD, OUTPUT, CASES = "verifier/reward.txt", "verifier/test-stdout.txt", "verifier/ctrf.json"
TRAJECTORY = "agent/trajectory.json"
FILES = {REWARD: "1", OUTPUT: suite(4, 4), TRAJECTORY: trajectory(3)}


@pytest.fixture
def step(tmp_path: Path) -> Path:
    """The directory of the only step of a trial, which passes four cases with three tool calls."""
    step = tmp_path / "job" / "trial__x" / "steps" / "round-1"
    values = result_of("trial__x", step_results=[{"step_name": "round-1"}])
    write_files(step.parents[1], {"result.json": values})
    write_files(step, FILES)
    return step


@pytest.fixture
def elsewhere(tmp_path: Path) -> Path:
    """A directory that looks like a step's, beside the trial."""
    write_files(tmp_path / "elsewhere", {**FILES, CASES: "{}"})
    return tmp_path / "elsewhere"


def loaded(tmp_path: Path) -> tuple[AttemptRecord, list[str]]:
    found = load_results([tmp_path / "job"], cases=True)
    (attempt,) = found.attempts
    return attempt.record, found.problems


def test_a_link_that_stays_in_the_trial_is_followed(step: Path, tmp_path: Path) -> None:
    os.rename(step / OUTPUT, step / "verifier" / "output")
    (step / OUTPUT).symlink_to("output")
    record, problems = loaded(tmp_path)
    assert (outcomes(record), record.rounds[0].case_counts, problems) == (["passed"], (4, 4), [])


@pytest.mark.parametrize("name", [OUTPUT, TRAJECTORY])
@pytest.mark.parametrize("of", ["file", "directory"])
def test_a_file_that_a_link_leads_out_to_is_refused_and_named(
    step: Path, elsewhere: Path, tmp_path: Path, name: str, of: str
) -> None:
    if of == "file":
        (step / name).unlink()
        (step / name).symlink_to(elsewhere / name)
    else:
        os.rename((step / name).parent, tmp_path / "aside")
        (step / name).parent.symlink_to((elsewhere / name).parent)
    record, problems = loaded(tmp_path)
    (round_,) = record.rounds
    refused = step / (REWARD if of == "directory" and name == OUTPUT else name)
    assert f"{refused}: it lies outside of {step.parents[1]}; not read, and the trial counts without it" in problems
    seen = {OUTPUT: round_.case_counts != (0, 0), TRAJECTORY: round_.tool_calls is not None}
    assert not seen[name]


def test_a_reward_that_a_link_leads_out_to_is_no_reward(step: Path, elsewhere: Path, tmp_path: Path) -> None:
    (step / REWARD).unlink()
    (step / REWARD).symlink_to(elsewhere / REWARD)
    record, _ = loaded(tmp_path)
    assert outcomes(record) == ["error"]
    assert record.rounds[0].cause.startswith("reward.txt is not read: it lies outside of")


def test_rounds_are_not_named_by_a_directory_elsewhere(step: Path, elsewhere: Path, tmp_path: Path) -> None:
    os.rename(step.parent, tmp_path / "aside")
    step.parent.symlink_to(elsewhere)
    record, _ = loaded(tmp_path)
    assert record.declared_rounds == ("round-1",)
    assert outcomes(record) == ["error"]


@pytest.mark.parametrize("name", [REWARD, OUTPUT, TRAJECTORY])
@pytest.mark.parametrize("what", ["pipe", "device"])
def test_a_pipe_or_a_device_is_not_read(step: Path, tmp_path: Path, name: str, what: str) -> None:
    (step / name).unlink()
    if what == "pipe":
        os.mkfifo(step / name)
    else:
        (step / name).symlink_to("/dev/zero")
    record, problems = loaded(tmp_path)
    told = [*problems, record.rounds[0].cause]
    assert any(f"{Path(name).name}" in line and "not a regular file" in line for line in told)


def test_old_results_that_a_link_leads_out_to_are_a_damaged_trial(step: Path, tmp_path: Path) -> None:
    write_files(tmp_path / "elsewhere", {"results.json": [{"round": 1, "reward": 1.0}]})
    trial = step.parents[1]
    (trial / "verifier").mkdir()
    (trial / "verifier/multiround_results.json").symlink_to(tmp_path / "elsewhere" / "results.json")
    found = load_results([tmp_path / "job"])
    assert found.attempts == []
    (problem,) = found.problems
    assert "multiround_results.json cannot be read: it lies outside of" in problem
