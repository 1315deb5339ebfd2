"""Records of all versions are read, and what is no record is told apart."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from pytest_evocode.errors import RecordFault
from pytest_evocode.results.parsing import parse_object, read_record
from pytest_evocode.results.records import RECORD_VERSION, AttemptRecord, RoundRecord, RunRecord

#: As version 1 wrote them: without what came later, and with the cases in result.json.
ROUND_1: dict[str, Any] = {
    "task": "ledger",
    "agent": "oracle",
    "attempt": 1,
    "round": "round-1",
    "index": 1,
    "declared_rounds": 2,
    "outcome": "failed",
    "cause": "",
    "verdict": {
        "reward": 0.0,
        "rewards": {"reward": 0.0},
        "cases": [{"id": "a", "status": "passed"}, {"id": "b", "status": "skipped"}, {"id": "c", "status": "failed"}],
        "pinned": None,
        "flags": [],
        "timed_out": False,
    },
    "timed_out": None,
    "tool_calls": None,
    "agent_seconds": 0.5,
    "verifier_seconds": None,
}
ATTEMPT_1: dict[str, Any] = {
    "version": 1,
    "task": "ledger",
    "agent": "oracle",
    "attempt": 1,
    "environment": "sandbox",
    "task_hash": "",
    "started": "2026-01-02T03:04:05.678+01:00",
    "finished": "2026-01-02T03:04:06.000+01:00",
    "declared_rounds": ["round-1", "round-2"],
    "rewards": {"reward": 0.0},
    "rounds": [ROUND_1],
}
RUN_1: dict[str, Any] = {
    "version": 1,
    "run": "2026-01-02__03-04-05",
    "started": "2026-01-02T03:04:05.678+01:00",
    "finished": None,
    "arguments": ["-q"],
    "environment": "docker",
    "exit_status": None,
    "attempts": [],
    "scores": {},
}


def parsed(values: object) -> dict[str, Any]:
    return parse_object(json.dumps(values).encode())


def test_an_attempt_of_version_1_is_a_chain_with_its_cases() -> None:
    record = read_record(AttemptRecord, parsed(ATTEMPT_1))
    assert (record.version, record.mode, record.from_round, record.facts) == (1, "chain", None, None)
    assert record.rounds[0].verdict is not None
    assert [case.id for case in record.rounds[0].verdict.cases] == ["a", "b", "c"]
    assert record.rounds[0].case_counts == (1, 3)


def test_the_cases_of_version_1_are_counted_where_they_are_not_wanted() -> None:
    record = read_record(AttemptRecord, parsed(ATTEMPT_1), cases=False)
    assert record.rounds[0].verdict is not None
    assert record.rounds[0].verdict.cases == ()
    assert record.rounds[0].case_counts == (1, 3)


def test_a_round_without_a_version_is_one_of_version_1() -> None:
    assert read_record(RoundRecord, parsed(ROUND_1)).case_counts == (1, 3)


def test_a_run_of_version_1_does_not_tell_what_was_selected() -> None:
    record = read_record(RunRecord, parsed(RUN_1))
    assert (record.mode, record.selected, record.shard) == ("chain", {}, None)


@pytest.mark.parametrize(
    ("said", "rests_on", "trusts"),
    [
        ({"changed_tools": ["/bin/sh"]}, None, ("/bin/sh",)),
        ({"rests_on": "clean", "changed_tools": ["/app/a.pth"]}, "clean", ("/app/a.pth",)),
        ({"rests_on": "fork", "changed_tools": ["/bin/sh"]}, "in-place", ("/", "/bin/sh")),
        ({"rests_on": "place", "changed_tools": []}, "in-place", ("/",)),
        ({"rests_on": "artifacts", "changed_tools": ["/bin/sh"]}, "clean", ()),
        ({"rests_on": "separate", "changed_tools": ["/bin/sh"]}, "separate", ()),
    ],
)
def test_what_verdicts_of_earlier_versions_trusted_is_said_in_today_s_words(
    said: dict[str, object], rests_on: str | None, trusts: tuple[str, ...]
) -> None:
    record = read_record(RoundRecord, parsed({**ROUND_1, "verdict": {"reward": 1, "rewards": {}, **said}}))
    assert record.verdict is not None
    assert (record.verdict.rests_on, record.verdict.trusts) == (rests_on, trusts)


@pytest.mark.parametrize(("kind", "values"), [(AttemptRecord, ATTEMPT_1), (RunRecord, RUN_1), (RoundRecord, ROUND_1)])
def test_a_later_version_is_not_guessed_at(kind: Any, values: dict[str, Any]) -> None:
    later = RECORD_VERSION + 1
    with pytest.raises(RecordFault, match=rf"version {later} of the format; this one reads up to .* {RECORD_VERSION}"):
        read_record(kind, parsed({**values, "version": later, "what_it_has_new": 1}))


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "does not say which version"),
        ({**ATTEMPT_1, "version": "1"}, "does not say which version"),
        ({**ATTEMPT_1, "version": True}, "does not say which version"),
        ({**ATTEMPT_1, "version": 0}, "does not say which version"),
        ({**ATTEMPT_1, "attempt": "one"}, "attempt: Input should be a valid integer"),
        ({**ATTEMPT_1, "surprise": 1}, "surprise: Extra inputs are not permitted"),
        ({**ATTEMPT_1, "rounds": [7]}, "rounds.0: Input should be"),
        ({**ATTEMPT_1, "rounds": 7}, "rounds: Input should be"),
        ({**ATTEMPT_1, "rounds": [{**ROUND_1, "verdict": 3, "index": None}]}, "rounds.0.index: .* and 1 more"),
        ({**ATTEMPT_1, "rounds": [{**ROUND_1, "verdict": {"cases": 5}}]}, "rounds.0.verdict.reward: Field required"),
    ],
)
@pytest.mark.parametrize("cases", [True, False])
def test_what_is_no_record_is_told_in_one_line(values: dict[str, Any], message: str, cases: bool) -> None:
    with pytest.raises(RecordFault, match=message) as caught:
        read_record(AttemptRecord, parsed(values), cases=cases)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (b"", "it is not JSON"),
        (b'{"a": ', "it is not JSON"),
        (b"\xff{}", "it is not JSON"),
        (b"[]", "not an object (list)"),
    ],
)
def test_what_is_no_json_object_is_told(data: bytes, message: str) -> None:
    with pytest.raises(RecordFault, match=re.escape(message)):
        parse_object(data)
