"""Results directories that earlier versions wrote are read, of each version of the records one.

``versions/`` has what ``--evocode-agent=nop`` left of a task of three rounds, written by the last commit with that
version, without output and trajectories. Version 1 had no directory of this form; ``test_parsing.py`` has its records.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from pytest_evocode.metrics.scores import scores
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.parsing import parse_object, read_record
from pytest_evocode.results.records import RECORD_VERSION, AttemptRecord, RunRecord

VERSIONS = Path(__file__).with_name("versions")


def test_there_are_results_of_every_version_before_today_s() -> None:
    assert {int(path.name) for path in VERSIONS.iterdir()} == set(range(2, RECORD_VERSION)), (
        "keep in tests/results/versions/ what the last commit with the version before writes"
    )


@pytest.mark.parametrize("version", range(2, RECORD_VERSION))
def test_results_of_an_earlier_version_are_read_with_their_scores(version: int) -> None:
    directory = VERSIONS / str(version)
    results = load_results([directory])
    (attempt,) = results.attempts
    assert [(each.round, each.outcome, each.case_counts) for each in attempt.record.rounds] == [
        ("round-1", "failed", (1, 4)),
        ("round-2", "failed", (1, 7)),
        ("round-3", "failed", (1, 10)),
    ]
    assert [run.record.exit_status for run in results.runs] == [1]
    found = scores(attempt.record.rounds)
    assert (found.dataset_score, found.perfect_tasks) == (0.0, 0)
    assert found.case_score == pytest.approx(100 * (1 / 4 + 1 / 7 + 1 / 10) / 3)


@pytest.mark.parametrize("version", range(2, RECORD_VERSION))
def test_records_of_an_earlier_version_keep_their_version(version: int) -> None:
    (run,) = (VERSIONS / str(version)).glob("runs/*.json")
    assert read_record(RunRecord, parse_object(run.read_bytes())).version == version
    (attempt,) = (VERSIONS / str(version)).glob("*/harbor_jobs/*/*/*__a1/result.json")
    assert read_record(AttemptRecord, parse_object(attempt.read_bytes())).version == version
