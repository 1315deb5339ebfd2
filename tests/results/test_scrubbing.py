"""Records lose the host's secrets and stay records."""

from __future__ import annotations

from pytest_evocode.results.records import Case, RoundRecord, Verdict
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.secrets import Scrubber
from pytest_evocode.trajectories.atif import AgentInfo, Step, Trajectory

KEY = "sk-0123456789"
SCRUBBER = Scrubber({"API_KEY": KEY})


def record(said: str) -> RoundRecord:
    case = Case(id=said, status="failed", reason=said, failure="regression")
    verdict = Verdict(reward=0.5, rewards={"reward": 0.5, said: 1.0}, cases=(case,), flags=(said,))
    return RoundRecord(
        task="ledger",
        agent="oracle",
        attempt=1,
        round="round-1",
        index=1,
        declared_rounds=1,
        outcome="failed",
        cause=said,
        verdict=verdict,
    )


def test_every_text_of_a_record_is_scrubbed() -> None:
    assert scrubbed(record(f"<{KEY}>"), SCRUBBER) == record("<[API_KEY]>")


def test_a_record_without_secrets_is_the_same_object() -> None:
    clean = record("nothing")
    assert scrubbed(clean, SCRUBBER) is clean


def test_a_record_stays_valid_whatever_words_are_secret() -> None:
    scrubber = Scrubber({"A_PASSWORD": "regression", "B_PASSWORD": "ledger-x"})
    clean = record("a regression").model_copy(update={"task": "ledger-x"})
    found = scrubbed(clean, scrubber)
    assert RoundRecord.model_validate(found.model_dump(mode="json")) == found
    assert found.verdict is not None
    assert (found.task, found.verdict.cases[0].failure, found.cause) == ("ledger-x", "regression", "a [A_PASSWORD]")


def test_a_trajectory_is_scrubbed_with_fields_of_later_versions() -> None:
    def talk(said: str) -> Trajectory:
        step = Step.model_validate({"step_id": 1, "source": "agent", "message": [said], "later": {said: [said, 7]}})
        agent = AgentInfo(name="a", version="1", model_name=said)
        return Trajectory(session_id=said, agent=agent, steps=(step,))

    assert scrubbed(talk(KEY), SCRUBBER) == talk("[API_KEY]")
