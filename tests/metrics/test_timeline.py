"""Where the time of a run went: the critical path, and which slots suites must have held."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.metrics.timeline import RunTimeline, Stretch, timeline
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import AttemptRecord, RoundRecord, RunRecord

Path_ = list[tuple[str, float, str]]


def iso(moment: float) -> str:
    """A moment in seconds since 1970 as records have it."""
    return datetime.fromtimestamp(moment, UTC).isoformat()


def attempt(begin: float, end: float, rounds: Sequence[Phases | None], task: str = "ledger") -> StoredAttempt:
    """An attempt at a task with the phases of its rounds."""
    names = tuple(f"round-{index}" for index in range(1, len(rounds) + 1))
    records = [
        RoundRecord(
            task=task, agent="a", attempt=1, round=name, index=index, declared_rounds=len(names), outcome="passed",
            phases=phases,
        )
        for index, (name, phases) in enumerate(zip(names, rounds, strict=True), 1)
    ]  # fmt: skip
    record = AttemptRecord(
        task=task, agent="a", attempt=1, environment="sandbox", started=iso(begin), finished=iso(end),
        declared_rounds=names, rewards={}, rounds=tuple(records),
    )  # fmt: skip
    return StoredAttempt(record, Path(task), "run", True, "evocode", tuple(range(1, len(rounds) + 1)))


def of(begin: float, end: float, *attempts: StoredAttempt) -> RunTimeline:
    """The time of a run with these attempts."""
    record = RunRecord(run="run", started=iso(begin), finished=iso(end), arguments=(), environment="sandbox")
    return timeline("run", attempts, record)


def path_of(found: RunTimeline) -> Path_:
    """The stages of a critical path with their seconds and rounds."""
    return [(link.stage, round(link.span.seconds, 3), link.round) for link in found.path]


def test_the_critical_path_leads_from_the_last_suite_to_its_turn_and_to_the_beginning() -> None:
    first = Phases(setup=1.0, agent=4.0, snapshot=0.5, bookkeeping=0.5, fork=1.0, suite=2.0, slot_seconds=3.0)
    second = Phases(agent=8.0, snapshot=0.5, fork=0.5, suite=3.0, reading=0.25, slot_seconds=3.75)
    rounds = [
        Phases(**first.known, turn_began=103.0, suite_began=109.0),
        Phases(**second.known, turn_began=109.0, suite_began=117.5),
    ]
    found = of(100.0, 123.25, attempt(102.0, 122.0, rounds))
    assert path_of(found) == [
        ("session", 2.0, ""),
        ("start", 1.0, ""),
        ("setup", 1.0, "round-1"),
        ("agent", 4.0, "round-1"),
        ("snapshot", 0.5, "round-1"),
        ("bookkeeping", 0.5, "round-1"),
        ("agent", 8.0, "round-2"),
        ("snapshot", 0.5, "round-2"),
        ("fork", 0.5, "round-2"),
        ("suite", 3.0, "round-2"),
        ("reading", 0.25, "round-2"),
        ("end", 0.75, ""),
        ("session", 1.25, ""),
    ]
    assert found.seconds_by_stage["agent"] == pytest.approx(12.0)
    assert found.untold == 0
    assert found.slots == ((Stretch(109.0, 112.0), Stretch(117.5, 121.25)),)


def test_a_suite_that_waited_for_a_slot_waited_for_the_suite_that_held_it() -> None:
    one = Phases(agent=1.0, suite=10.0, slot_seconds=10.0, turn_began=100.0, suite_began=101.0)
    waits = Phases(agent=1.0, waiting=9.0, suite=5.0, slot_seconds=5.0, turn_began=101.0, suite_began=102.0)
    found = of(100.0, 116.0, attempt(100.0, 116.0, [one, waits]))
    assert path_of(found) == [("agent", 1.0, "round-1"), ("suite", 10.0, "round-1"), ("suite", 5.0, "round-2")]
    assert found.slots == ((Stretch(101.0, 111.0), Stretch(111.0, 116.0)),)


def test_a_turn_that_waited_for_a_verdict_waited_for_that_suite() -> None:
    one = Phases(agent=1.0, suite=6.0, slot_seconds=6.0, turn_began=100.0, suite_began=101.0)
    then = Phases(agent=2.0, suite=1.0, slot_seconds=1.0, turn_began=107.0, suite_began=109.0)
    found = of(100.0, 110.0, attempt(100.0, 110.0, [one, then]))
    assert path_of(found) == [
        ("agent", 1.0, "round-1"), ("suite", 6.0, "round-1"), ("agent", 2.0, "round-2"), ("suite", 1.0, "round-2"),
    ]  # fmt: skip


def test_an_attempt_that_takes_the_place_of_another_waited_for_its_end() -> None:
    first = Phases(agent=2.0, suite=3.0, slot_seconds=3.0, turn_began=100.0, suite_began=102.0)
    second = Phases(agent=1.0, suite=4.0, slot_seconds=4.0, turn_began=105.5, suite_began=106.5)
    found = of(100.0, 110.5, attempt(100.0, 105.0, [first]), attempt(105.25, 110.5, [second], "mesh"))
    assert [(link.stage, link.attempt) for link in found.path] == [
        ("agent", "ledger a"),
        ("suite", "ledger a"),
        ("session", ""),
        ("start", "mesh a"),
        ("agent", "mesh a"),
        ("suite", "mesh a"),
    ]


def test_an_attempt_that_began_beside_the_last_suite_of_another_waited_for_the_suite_before_it() -> None:
    first = [
        Phases(agent=2.0, suite=3.0, slot_seconds=3.0, turn_began=100.0, suite_began=102.0),
        Phases(agent=1.0, suite=9.0, slot_seconds=9.0, turn_began=102.0, suite_began=103.0),
    ]
    second = Phases(agent=1.0, suite=8.0, slot_seconds=8.0, turn_began=105.5, suite_began=106.5)
    found = of(100.0, 114.5, attempt(100.0, 112.0, first), attempt(105.25, 114.5, [second], "mesh"))
    assert [(link.stage, link.attempt, link.round) for link in found.path] == [
        ("agent", "ledger a", "round-1"),
        ("suite", "ledger a", "round-1"),
        ("session", "", ""),
        ("start", "mesh a", ""),
        ("agent", "mesh a", "round-1"),
        ("suite", "mesh a", "round-1"),
    ]


def test_a_suite_that_waited_for_no_suite_of_its_run_waited_for_slots_and_made_no_fork_meanwhile() -> None:
    phases = Phases(agent=1.0, waiting=60.0, fork=1.0, suite=8.0, slot_seconds=8.5, turn_began=100.0, suite_began=101.0)
    found = of(100.0, 170.0, attempt(100.0, 170.0, [phases]))
    assert [each[:2] for each in path_of(found)] == [("agent", 1.0), ("waiting", 60.0), ("fork", 1.0), ("suite", 8.0)]


def test_an_attempt_follows_the_one_before_however_long_the_session_takes_between_them() -> None:
    first = Phases(agent=2.0, suite=3.0, slot_seconds=3.0, turn_began=100.0, suite_began=102.0)
    second = Phases(agent=1.0, suite=4.0, slot_seconds=4.0, turn_began=135.0, suite_began=136.0)
    found = of(100.0, 140.0, attempt(100.0, 105.0, [first]), attempt(135.0, 140.0, [second], "mesh"))
    assert found.seconds_by_stage == {"session": 30.0, "suite": 7.0, "agent": 3.0}


def test_an_attempt_that_was_killed_and_resumed_began_with_its_first_turn() -> None:
    """Its record tells when it was resumed."""
    first = Phases(agent=2.0, suite=3.0, slot_seconds=3.0, turn_began=100.0, suite_began=102.0)
    killed = Phases(agent=2.0, suite=1.0, slot_seconds=1.0, turn_began=105.5, suite_began=107.5)
    resumed = Phases(agent=1.0, suite=4.0, slot_seconds=4.0, turn_began=901.0, suite_began=902.0)
    found = of(100.0, 906.0, attempt(100.0, 105.0, [first]), attempt(900.0, 906.0, [killed, resumed], "mesh"))
    assert found.attempts[1].span == Stretch(105.5, 906.0)
    assert path_of(found)[:2] == [("agent", 2.0, "round-1"), ("suite", 3.0, "round-1")]


def test_no_record_tells_what_a_run_did_until_it_was_killed() -> None:
    phases = Phases(agent=2.0, suite=3.0, slot_seconds=3.0, turn_began=100.0, suite_began=102.0)
    killed = attempt(100.0, 100.0, [phases])
    killed = replace(killed, record=killed.record.model_copy(update={"started": "", "finished": ""}), finished=False)
    assert path_of(of(100.0, 150.0, killed))[-1] == ("other", 45.0, "")


def test_an_attempt_of_an_earlier_version_that_was_regraded_tells_nothing() -> None:
    regraded = Phases(agent=1.0, suite=2.0, slot_seconds=2.0, suite_began=9_000.0)
    found = of(100.0, 110.0, attempt(100.0, 110.0, [regraded]))
    assert (found.attempts, found.untold) == ((), 1)


def test_a_damaged_number_of_slots_takes_no_more_memory_than_others() -> None:
    damaged = Phases(suite=0.001, slot_seconds=1e12, turn_began=100.0, suite_began=100.0)
    assert len(of(100.0, 101.0, attempt(100.0, 101.0, [damaged])).slots) <= 4096


def test_an_attempt_that_began_when_the_last_turn_of_another_was_over_waited_for_that() -> None:
    first = Phases(agent=5.0, suite=9.0, slot_seconds=9.0, turn_began=100.0, suite_began=105.0)
    second = Phases(agent=1.0, suite=9.0, slot_seconds=9.0, turn_began=105.5, suite_began=106.5)
    found = of(100.0, 115.5, attempt(100.0, 114.0, [first]), attempt(105.25, 115.5, [second], "mesh"))
    assert [(link.stage, link.attempt) for link in found.path] == [
        ("agent", "ledger a"), ("session", ""), ("start", "mesh a"), ("agent", "mesh a"), ("suite", "mesh a"),
    ]  # fmt: skip


def test_a_suite_that_holds_two_slots_takes_two() -> None:
    wide = Phases(suite=4.0, slot_seconds=8.0, turn_began=100.0, suite_began=100.0)
    beside = Phases(suite=1.0, slot_seconds=1.0, turn_began=100.0, suite_began=101.0)
    found = of(100.0, 104.0, attempt(100.0, 104.0, [wide]), attempt(100.0, 104.0, [beside], "mesh"))
    assert found.slots == ((Stretch(100.0, 104.0),), (Stretch(100.0, 104.0),), (Stretch(101.0, 102.0),))


def test_rounds_that_do_not_tell_are_counted_and_a_suite_of_a_later_day_is_left_out() -> None:
    regraded = Phases(agent=1.0, suite=2.0, turn_began=100.0, suite_began=9_000.0)
    found = of(100.0, 101.0, attempt(100.0, 101.0, [regraded, Phases(agent=1.0), None]))
    assert (found.untold, found.span.end, found.attempts[0].suites) == (2, 101.0, ())
    assert of(100.0, 101.0, attempt(100.0, 101.0, [None])).attempts == ()


_SECONDS = st.floats(0.0, 5.0).map(lambda value: round(value, 3))


@st.composite
def some_rounds(draw: st.DrawFn, begin: float) -> list[Phases | None]:
    """Rounds in any order and of any length: clocks of machines are set back, too."""
    rounds: list[Phases | None] = []
    for _ in range(draw(st.integers(0, 4))):
        known = {
            name: draw(_SECONDS)
            for name in draw(
                st.sets(
                    st.sampled_from([*Phases(suite=0.0).known, "agent", "waiting", "fork", "setup", "slot_seconds"])
                )
            )
        }
        moments = {
            name: begin + draw(st.floats(-5.0, 20.0))
            for name in draw(st.sets(st.sampled_from(["turn_began", "suite_began"])))
        }
        rounds.append(draw(st.sampled_from([Phases(**known, **moments), None])))
    return rounds


@given(st.data())
def test_a_critical_path_has_no_gap_whatever_records_say(data: st.DataObject) -> None:
    attempts = []
    for number in range(data.draw(st.integers(1, 4))):
        begin = 100.0 + data.draw(_SECONDS)
        attempts.append(attempt(begin, begin + data.draw(_SECONDS), data.draw(some_rounds(begin)), f"task-{number}"))
    found = of(100.0, 110.0, *attempts)
    assert all(link.span.seconds > 0 for link in found.path)
    assert all(one.span.end == then.span.begin for one, then in pairwise(found.path))
    assert (found.path[0].span.begin, found.path[-1].span.end) == (found.span.begin, found.span.end)
