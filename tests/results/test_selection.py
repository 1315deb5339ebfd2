"""Which run goes on when none is named, what is left of it, and what its record says was selected."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import AttemptState, RunRecord, TaskFacts, TurnRecord
from pytest_evocode.results.selection import SelectedAttempt, progress_of, run_to_continue, with_selected
from pytest_evocode.tasks.lockfile import content_hash
from tests.result_trees import write_attempt, write_session

RUNS = [f"2026-0{month}-01__00-00-00" for month in (1, 2, 3)]
OLD, NEW, NEWEST = RUNS
FACTS = TaskFacts(rounds=("round-1", "round-2", "round-3"))
WANTED = SelectedAttempt("a", "gpt", 1, FACTS, (1, 2, 3), Path("a"))
RUN = RunRecord(run=NEW, started="", arguments=(), environment="sandbox")


def fits_all(run: RunRecord) -> bool:
    return True


def chosen(results: Path, *selected: SelectedAttempt) -> str | None:
    found = run_to_continue(results, selected or (WANTED,), fits_all, {})
    return None if found is None else found.run


def write_run(results: Path, run: str, task: str = "a", agent: str = "gpt", outcomes: str = "p") -> None:
    """A run with one attempt, which is at its end where it has an outcome for each of three rounds."""
    write_session(results, {task: {agent: [1]}}, run=run)
    if outcomes:
        write_attempt(results, task, agent, outcomes, of=3, run=run, finished=len(outcomes) == 3)
        if len(outcomes) < 3:
            write_state(results, run, task, agent, turn=len(outcomes))


def write_state(results: Path, run: str, task: str = "a", agent: str = "gpt", *, turn: int) -> None:
    turns = (TurnRecord(index=turn, snapshot="", timed_out=False, tool_calls=None, agent_seconds=1.0),)
    state = AttemptState(environment="sandbox", task_hash="", turns=turns)
    AttemptDirectory.of(results, task, agent, run, 1).write_state(state)


@pytest.mark.parametrize("other", [("b", "gpt"), ("a", "nop")], ids=["task", "agent"])
def test_a_run_of_another_task_or_agent_does_not_go_on(tmp_path: Path, other: tuple[str, str]) -> None:
    write_run(tmp_path, OLD)
    write_run(tmp_path, NEW, *other)
    write_session(tmp_path, {}, run=NEWEST)
    assert chosen(tmp_path) == OLD


def test_a_run_of_which_nothing_is_left_to_do_does_not_go_on_before_one_that_was_broken_off(tmp_path: Path) -> None:
    write_run(tmp_path, OLD)
    write_run(tmp_path, NEW, outcomes="pfp")
    assert chosen(tmp_path) == OLD


def test_a_run_that_left_nothing_does_not_go_on_before_one_that_did(tmp_path: Path) -> None:
    write_run(tmp_path, OLD)
    write_run(tmp_path, NEW, outcomes="")
    assert chosen(tmp_path) == OLD


def test_of_unfinished_runs_the_newest_goes_on(tmp_path: Path) -> None:
    for run in RUNS:
        write_run(tmp_path, run)
    (tmp_path / f"runs/{NEWEST}.json").write_text("{")  # A damaged record is passed over.
    assert chosen(tmp_path) == NEW


def test_a_run_that_is_at_its_end_is_repeated_where_there_is_no_other(tmp_path: Path) -> None:
    write_run(tmp_path, OLD, outcomes="ppp")
    write_run(tmp_path, NEW, outcomes="ppp")
    assert chosen(tmp_path) == NEW
    assert chosen(tmp_path, replace(WANTED, task="b")) is None


def test_a_partial_attempt_that_has_ended_is_no_unfinished_one(tmp_path: Path) -> None:
    """To go on with it would play all rounds again."""
    write_run(tmp_path, OLD, outcomes="ppp")
    write_attempt(tmp_path, "a", outcomes="p", of=3, run=NEW)
    assert chosen(tmp_path) == OLD


def test_rounds_before_a_known_state_are_not_left_to_do(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", outcomes="p", first=3, of=3, run=NEW)
    found = progress_of(tmp_path, RUN, [WANTED])
    assert found is not None
    assert (found.kept, found.to_go, found.unfinished) == (1, 0, False)


def test_a_run_with_the_sessions_options_comes_first(tmp_path: Path) -> None:
    for run in (OLD, NEW):
        write_run(tmp_path, run)
    found = run_to_continue(tmp_path, [WANTED], lambda run: run.run == OLD, {})
    assert found is not None
    assert found.run == OLD


def test_a_run_by_another_agent_of_the_name_goes_on_only_where_there_is_no_other(tmp_path: Path) -> None:
    """Two efforts of a model are in one directory, and only the agent that began an attempt can continue it."""
    high, low = ({"spec": "openai/gpt", "options": {"effort": effort}} for effort in ("high", "low"))
    for run, agent in ((OLD, high), (NEW, low)):
        write_run(tmp_path, run)
        write_session(tmp_path, {"a": {"gpt": [1]}}, run=run, agents={"gpt": agent})
    for agent, run in ((high, OLD), (low, NEW), ({}, NEW)):
        found = run_to_continue(tmp_path, [WANTED], fits_all, {"gpt": agent})
        assert found is not None
        assert found.run == run


@pytest.mark.parametrize(
    ("outcomes", "turn", "kept"),
    [("pf", 2, 2), ("p", 2, 2), ("", 1, 1), ("pfp", None, 3), ("pe-", None, 0)],
    ids=["done", "without a verdict", "one turn", "ended", "a fault in the end"],
)
def test_what_is_kept_is_counted_as_it_is_resumed(tmp_path: Path, outcomes: str, turn: int | None, kept: int) -> None:
    write_attempt(tmp_path, "a", outcomes=outcomes, of=3, run=NEW, finished=turn is None)
    if turn is not None:
        write_state(tmp_path, NEW, turn=turn)
    found = progress_of(tmp_path, RUN, [WANTED, replace(WANTED, number=2)])
    assert found is not None
    assert (found.kept, found.to_go) == (kept, 6 - kept)


def test_a_partial_attempt_that_has_ended_begins_anew_for_further_rounds(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", outcomes="p", of=3, run=NEW)
    for rounds, kept in (((1,), 1), ((1, 2), 0)):
        found = progress_of(tmp_path, RUN, [replace(WANTED, rounds=rounds)])
        assert found is not None
        assert found.kept == kept


def test_single_rounds_are_kept_one_by_one(tmp_path: Path) -> None:
    write_attempt(tmp_path, "a", outcomes="p", first=2, of=3, run=NEW, mode="single-round")
    found = progress_of(tmp_path, RUN, [replace(WANTED, single=True)])
    assert found is not None
    assert (found.kept, found.to_go) == (1, 2)


def test_the_record_keeps_what_is_known_of_tasks_that_earlier_sessions_of_the_run_selected(tmp_path: Path) -> None:
    tasks = [write_task(tmp_path / name) for name in "ab"]
    first = with_selected(RUN, [replace(WANTED, task=path.name, directory=path) for path in tasks])
    assert {task: (known.facts, known.task_hash) for task, known in first.tasks.items()} == {
        path.name: (FACTS, content_hash(path)) for path in tasks
    }
    (tasks[1] / "task.toml").write_text("# changed")
    again = with_selected(first, [replace(WANTED, task="b", directory=tasks[1])])
    assert (again.tasks["a"], again.tasks["b"].task_hash) == (first.tasks["a"], content_hash(tasks[1]))
    assert again.tasks["b"].task_hash != first.tasks["b"].task_hash


def write_task(directory: Path) -> Path:
    directory.mkdir()
    (directory / "task.toml").write_text(f"# {directory.name}")
    return directory


def test_the_record_says_which_rounds_were_selected_where_that_is_not_all() -> None:
    first = with_selected(RUN, [replace(WANTED, rounds=(1,)), replace(WANTED, number=2)])
    assert (first.selected, first.partial) == ({"a": {"gpt": (1, 2)}}, {"a": {"gpt": {1: (1,)}}})
    assert with_selected(first, [replace(WANTED, rounds=(1, 2))]).partial == {"a": {"gpt": {1: (1, 2)}}}
    # An attempt that is resumed with all rounds is whole, and stays so.
    whole = with_selected(first, [WANTED])
    assert whole.partial == {}
    assert with_selected(whole, [replace(WANTED, rounds=(1,))]).partial == {}
    assert with_selected(RUN, [replace(WANTED, rounds=(2, 3), begin=2)]).partial == {}
    # Rounds that are run only because others need them were not selected.
    brought = with_selected(first, [replace(WANTED, rounds=(1, 2, 3), brought_along=(1, 2))])
    assert brought.partial == {"a": {"gpt": {1: (1, 3)}}}


def test_an_agent_of_a_run_stays_who_began_it() -> None:
    """Else an attempt that was never begun would be another agent's, which was refused the others."""
    begun, other = {"spec": "openai/gpt"}, {"spec": "anthropic/gpt"}
    run = with_selected(RUN, [WANTED], {"gpt": begun})
    assert with_selected(run, [WANTED], {"gpt": other, "new": other}).agents == {"gpt": begun, "new": other}
