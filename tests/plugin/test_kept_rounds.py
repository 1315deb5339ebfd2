"""What a session keeps of reported rounds: every record as it was, in little memory."""

from __future__ import annotations

import tracemalloc
from hashlib import sha256

import pytest

from pytest_evocode.plugin.kept_rounds import (
    KeptProperties,
    KeptRound,
    KeptRounds,
    RoundPlace,
    read_record,
    report_properties,
)
from pytest_evocode.results.records import Case, RoundRecord, Verdict

pytestmark = pytest.mark.every_python


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


def test_all_records_have_counts_in_place_of_cases_and_each_can_be_had_whole() -> None:
    rounds = KeptRounds()
    for attempt in (1, 2):
        rounds.add(f"gpt.{attempt}", record(attempt))
    assert rounds.without_cases() == [record(1).without_cases(), record(2).without_cases()]
    assert rounds.record("gpt.1") == rounds.whole(RoundPlace("ledger", "gpt", 1, 1)) == record(1)
    assert rounds.record("gpt.2") == rounds.whole(RoundPlace("ledger", "gpt", 2, 1)) == record(2)
    assert rounds.record("gpt.3") is rounds.whole(RoundPlace("ledger", "gpt", 3, 1)) is None


def test_a_later_record_of_a_round_takes_the_place_of_the_first() -> None:
    rounds = KeptRounds()
    rounds.add("gpt.1", record())
    assert rounds.record("gpt.1") == record()
    assert rounds.without_cases() == [record().without_cases()]
    rounds.add("gpt.1", record(cases=3))
    assert rounds.record("gpt.1") == rounds.whole(RoundPlace("ledger", "gpt", 1, 1)) == record(cases=3)
    assert rounds.without_cases() == [record(cases=3).without_cases()]


def test_the_properties_of_a_report_are_read_as_they_were() -> None:
    properties = [*report_properties(record(), "fail-stop"), ("mine", [1])]
    kept = KeptProperties(KeptRound(record()), properties)
    assert len(kept) == len(properties)
    assert dict(kept) == dict(properties)
    assert kept[0] == properties[0]
    assert kept == [*properties[:2], *properties[2:]]
    assert kept != properties[:2]
    assert kept + properties == [*properties, *properties]
    report = pytest.TestReport("id", ("f", 1, "d"), {}, "passed", None, "call", user_properties=kept)
    assert read_record(report) == record()


def test_a_round_with_hundreds_of_cases_is_kept_in_a_few_kilobytes() -> None:
    cases = tuple(
        Case(id=f"{sha256(bytes([number])).hexdigest()} {number}", status="passed", origin="round-1", intent="x" * 100)
        for number in range(200)
    )
    rounds = KeptRounds()
    verdict = Verdict(reward=1.0, rewards={"reward": 1.0}, cases=cases)
    tracemalloc.start()
    try:
        for attempt in range(201):
            rounds.add(f"gpt.{attempt}", record(attempt).model_copy(update={"verdict": verdict}))
            if attempt == 0:
                first, _ = tracemalloc.get_traced_memory()
        taken = tracemalloc.get_traced_memory()[0] - first
    finally:
        tracemalloc.stop()
    # The names alone have 6 KB by themselves, in each.
    assert taken < 200 * 3000
