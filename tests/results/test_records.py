"""Records are the same after a way through JSON, and take no key they do not know."""

from __future__ import annotations

import pytest
from pydantic import BaseModel, ValidationError

from pytest_evocode.results.records import AttemptRecord, Case, RoundRecord, RunRecord, Verdict

pytestmark = pytest.mark.every_python

CASE = Case(
    id="r2-sum",
    status="failed",
    origin="round-2",
    requirement="R7",
    kind="boundary",
    intent="sums",
    scenario="two\nrows",
    input='"1" \\ 2',
    expected="caf\u00e9",
    actual="\U0001f600",
    reason="off by one",
    failure="regression",
)
VERDICT = Verdict(
    reward=1 / 3, rewards={"reward": 1 / 3, "style": 1.0}, cases=(CASE,), flags=("odd", "odder"), timed_out=True
)
FULL_ROUND = RoundRecord(
    task="ledger",
    agent="oracle",
    attempt=2,
    round="round-2",
    index=2,
    declared_rounds=7,
    outcome="failed",
    cause="the suite was stopped",
    verdict=VERDICT,
    timed_out="verifier",
    tool_calls=0,
    agent_seconds=0.1,
    verifier_seconds=1e-9,
)
BARE_ROUND = RoundRecord(
    task="t", agent="a", attempt=1, round="round-1", index=1, declared_rounds=1, outcome="not reached"
)
ATTEMPT = AttemptRecord(
    task="ledger",
    agent="oracle",
    attempt=2,
    environment="sandbox",
    started="2026-01-02T03:04:05.678+01:00",
    finished="2026-01-02T03:04:06.000+01:00",
    declared_rounds=("round-1", "round-2"),
    rewards={"reward": 0.1 + 0.2},
    rounds=(BARE_ROUND, FULL_ROUND),
)
RUN = RunRecord(
    run="2026-01-02__03-04-05",
    started="2026-01-02T03:04:05.678+01:00",
    finished=None,
    arguments=("-q", "tasks/"),
    environment="docker",
    attempts=("ledger/harbor_jobs/oracle/2026-01-02__03-04-05/ledger__a1",),
    scores={"oracle": {"dataset_score": 200 / 3, "perfect_tasks": 1, "avg_rounds": None}},
)
RECORDS = [CASE, Case(id="", status="passed"), VERDICT, FULL_ROUND, BARE_ROUND, ATTEMPT, RUN]


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_survives_json(record: BaseModel) -> None:
    assert type(record).model_validate_json(record.model_dump_json()) == record
    assert type(record).model_validate(record.model_dump(mode="json")) == record


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_refuses_a_key_it_does_not_know(record: BaseModel) -> None:
    with pytest.raises(ValidationError, match="surprise"):
        type(record).model_validate({**record.model_dump(), "surprise": 1})


def test_a_record_in_a_record_refuses_a_key_it_does_not_know() -> None:
    values = ATTEMPT.model_dump(mode="json")
    values["rounds"][1]["verdict"]["cases"][0]["surprise"] = 1
    with pytest.raises(ValidationError, match=r"rounds\.1\.verdict\.cases\.0\.surprise"):
        AttemptRecord.model_validate(values)


@pytest.mark.parametrize("record", RECORDS, ids=lambda record: type(record).__name__)
def test_a_record_cannot_be_changed(record: BaseModel) -> None:
    name = next(iter(type(record).model_fields))
    with pytest.raises(ValidationError, match="frozen"):
        setattr(record, name, getattr(record, name))


def test_attempts_and_runs_say_which_version_of_the_format_they_are() -> None:
    assert (ATTEMPT.model_dump()["version"], RUN.model_dump()["version"]) == (4, 4)


def test_what_is_unknown_is_null_and_never_zero() -> None:
    values = BARE_ROUND.model_dump(mode="json")
    assert {name: values[name] for name in ("tool_calls", "agent_seconds", "verifier_seconds", "verdict")} == {
        "tool_calls": None,
        "agent_seconds": None,
        "verifier_seconds": None,
        "verdict": None,
    }


@pytest.mark.parametrize(
    ("field", "value"), [("outcome", "maybe"), ("timed_out", "both"), ("index", "one"), ("verdict", {"reward": 1})]
)
def test_a_round_refuses_values_that_mean_nothing(field: str, value: object) -> None:
    with pytest.raises(ValidationError):
        RoundRecord.model_validate({**BARE_ROUND.model_dump(), field: value})


@pytest.mark.parametrize(
    ("statuses", "counts"),
    [((), (0, 0)), (("passed", "failed", "skipped", "error", "passed"), (2, 5)), (("skipped",), (0, 1))],
)
def test_case_counts_are_passed_cases_and_all_cases(statuses: tuple[str, ...], counts: tuple[int, int]) -> None:
    cases = [{"id": str(number), "status": status} for number, status in enumerate(statuses)]
    verdict = Verdict.model_validate({"reward": 0, "rewards": {}, "cases": cases})
    assert BARE_ROUND.model_copy(update={"verdict": verdict}).case_counts == counts
    assert BARE_ROUND.case_counts == (0, 0)


def test_only_the_outcome_says_that_a_round_passed() -> None:
    assert not FULL_ROUND.passed
    assert FULL_ROUND.model_copy(update={"outcome": "passed"}).passed
