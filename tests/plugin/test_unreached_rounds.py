"""What a session counts of selected rounds that were not reported, and of attempts that were never begun."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.plugin.kept_rounds import RoundPlace
from pytest_evocode.plugin.session import as_recorded, not_reached
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import TaskFacts
from pytest_evocode.results.selection import SelectedAttempt, read_selected, selected_as_json
from tests.result_trees import write_attempt

pytestmark = pytest.mark.every_python

FACTS = TaskFacts(rounds=("round-1", "round-2", "round-3"), change_types=(("conflict",), (), ()), activity="Migration")
CHAIN = SelectedAttempt("a", "gpt", 1, FACTS, (1, 2, 3), Path("tasks/a"))


def indices(*selected: SelectedAttempt, reported: set[int], never_begun: bool = True) -> list[tuple[int, int]]:
    """Number of the attempt and index of each round that was not reached; ``reported`` are rounds of attempt 1."""
    places = {RoundPlace("a", "gpt", 1, index) for index in reported}
    found = not_reached(selected, places, never_begun=never_begun)
    assert all((each.task, each.agent, each.attempt, each.index) == place for place, each in found.items())
    assert all(
        (each.outcome, each.round, each.declared_rounds) == ("not reached", f"round-{each.index}", 3)
        for each in found.values()
    )
    return [(number, index) for _, _, number, index in found]


def test_all_selected_rounds_of_an_attempt_count_that_was_never_begun() -> None:
    part = replace(CHAIN, number=2, rounds=(1, 2))
    assert indices(CHAIN, part, reported=set()) == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2)]
    assert indices(CHAIN, part, reported={1, 2}) == [(1, 3), (2, 1), (2, 2)]


def test_a_shard_counts_its_own_attempts() -> None:
    assert indices(CHAIN, replace(CHAIN, number=2, elsewhere=True), reported={1, 2}) == [(1, 3)]


def test_rounds_that_an_oracle_left_out_were_not_needed() -> None:
    assert indices(CHAIN, reported={2}) == [(1, 3)]
    assert indices(replace(CHAIN, single=True), reported={2}) == [(1, 1), (1, 3)]


def test_what_was_never_begun_does_not_count_where_nothing_is_recorded() -> None:
    assert indices(CHAIN, replace(CHAIN, number=2), reported={1}, never_begun=False) == [(1, 2), (1, 3)]


def test_workers_tell_all_of_it() -> None:
    selected = (CHAIN, replace(CHAIN, number=2, elsewhere=True))
    assert read_selected(selected_as_json(selected).encode()) == selected


def test_a_round_that_was_written_and_not_reported_counts_as_it_was_written(tmp_path: Path) -> None:
    path = write_attempt(tmp_path, "a", outcomes="pf", of=3, finished=False)
    selected = not_reached((replace(CHAIN, single=True),), set(), never_begun=True).values()
    found = [as_recorded(AttemptDirectory(path), record).outcome for record in selected]
    assert found == ["passed", "failed", "not reached"]
