"""What a session keeps of reported rounds: every record as it was, in little memory."""

from __future__ import annotations

import gc
import tracemalloc

import pytest

from pytest_evocode.plugin.kept_rounds import KeptProperties, KeptRound, KeptRounds, Place
from pytest_evocode.plugin.report_properties import read_record, report_properties
from pytest_evocode.results.records import Case, RoundRecord, Verdict


def record(attempt: int = 1, *, agent: str = "gpt", cases: int = 2) -> RoundRecord:
    found = (
        Case(id=f"test_{number}", status="failed", origin="round-1", reason=f"expected {number}", failure="new miss")
        for number in range(cases)
    )
    return RoundRecord(
        task="ledger",
        agent=agent,
        attempt=attempt,
        round="round-1",
        index=1,
        declared_rounds=2,
        outcome="failed",
        verdict=Verdict(reward=0.5, rewards={"reward": 0.5}, cases=tuple(found), flags=("odd",)),
    )


@pytest.mark.parametrize(
    "kept",
    [
        record(),
        record(cases=0),
        record().without_cases(),
        record().model_copy(update={"verdict": None, "outcome": "error", "cause": "no engine"}),
    ],
    ids=["cases", "no-case", "counts", "no-verdict"],
)
def test_a_record_comes_back_as_it_was(kept: RoundRecord) -> None:
    assert KeptRound(kept).record() == kept
    assert KeptRound(kept).without_cases() == kept.without_cases()


def test_cases_are_there_for_the_agents_that_are_named() -> None:
    rounds = KeptRounds()
    for agent in ("gpt", "oracle"):
        rounds.add(f"{agent}.1", record(agent=agent))
    of_gpt, of_oracle = rounds.records(with_cases={"oracle"})
    assert (of_gpt, of_oracle) == (record().without_cases(), record(agent="oracle"))
    assert rounds.whole(Place.of(of_gpt)) == rounds.record("gpt.1") == record()
    assert rounds.whole(Place("ledger", "gpt", 2, 1)) is rounds.record("gpt.2") is None


def test_a_later_record_of_a_round_takes_the_place_of_the_first() -> None:
    rounds = KeptRounds()
    rounds.add("gpt.1", record())
    assert rounds.records(with_cases=()) == [record().without_cases()]
    rounds.add("gpt.1", record(cases=3))
    assert rounds.record("gpt.1") == record(cases=3)
    assert rounds.records(with_cases={"gpt"}) == [record(cases=3)]


def test_the_properties_of_a_report_are_read_as_they_were() -> None:
    properties = [*report_properties(record(), "fail-stop"), ("mine", [1])]
    kept = KeptProperties(KeptRound(record()), properties)
    assert len(kept) == len(properties)
    assert dict(kept) == dict(properties)
    assert kept[0] == properties[0]
    report = pytest.TestReport("id", ("f", 1, "d"), {}, "passed", None, "call", user_properties=kept)
    assert read_record(report) == record()


def test_a_round_with_hundreds_of_cases_is_kept_in_a_few_kilobytes() -> None:
    rounds = KeptRounds()
    tracemalloc.start()
    try:
        for attempt in range(200):
            rounds.add(f"gpt.{attempt}", record(attempt, cases=500))
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    newest = 700_000  # The last record is at hand as it is.
    assert taken < newest + 200 * 5000
