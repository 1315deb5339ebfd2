"""What is told of attempts that were verified again."""

from __future__ import annotations

from pathlib import Path

from pytest_evocode.cli.directories import score_changes, scored_together
from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.results.loading import load_results
from tests.result_trees import write_attempt


def test_attempts_of_several_runs_and_agents_of_one_name_have_scores_each(tmp_path: Path) -> None:
    for number, effort in enumerate(("high", "high", "low"), 1):
        made_by = {"spec": "openai/gpt-5", "options": {"effort": effort}}
        write_attempt(tmp_path, agent="gpt-5", outcomes="pf", run=f"2026-01-0{number}__00-00-00", made_by=made_by)
    results = load_results([tmp_path])
    passed = {"outcome": "passed"}
    regraded = {
        attempt.path: [(round_, round_.model_copy(update=passed)) for round_ in attempt.record.rounds]
        for attempt in results.attempts
    }
    assert score_changes(scored_together(score_table(results, all_runs=True).rows, regraded)) == {
        label: {"before": 50.0, "after": 100.0} for label in ("gpt-5 effort=high", "gpt-5 effort=low")
    }
