"""What only the agent's program says of its commands is a claim: it may have made that up."""

from __future__ import annotations

import pytest

from pytest_evocode.process.scores.rigor_score import AttemptProcess, RoundProcess
from pytest_evocode.process.scores.summary import as_json, by_task, summarise_agent
from pytest_evocode.report.process import agent_lines
from tests.process.trajectories import BUDGET, PLAN, Recording, score

PASSED = "=== 1 passed in 0.10s ==="


def played(*, told: bool) -> RoundProcess:
    """Score a round in which tests passed, by the word of the environment or of the program (``told``)."""
    recording = Recording().write("notes.md", PLAN).bash("edit", changes={"ledger.py": BUDGET})
    for _ in range(2):
        recording.call("bash", {"command": "pytest"}, PASSED, action={"exit_code": 0, "changes": [], "told": told})
    return score(recording.say("The budget is there."))


def test_recovery_by_results_that_the_program_has_told_is_claimed() -> None:
    parts = played(told=True).pillars["re"].parts
    assert {part.certainty for part in parts.values() if part.value is not None} == {"claimed"}
    assert played(told=True).extended["RR"].certainty == "claimed"


def test_recovery_by_results_that_the_environment_has_seen_is_parsed() -> None:
    parts = played(told=False).pillars["re"].parts
    assert {part.certainty for part in parts.values() if part.value is not None} == {"parsed"}


def test_a_score_tells_how_much_of_it_is_claimed() -> None:
    told, seen = played(told=True).score(), played(told=False).score()
    assert told is not None
    assert seen is not None
    assert (told.value, seen.claimed) == (seen.value, 0)
    assert told.claimed == pytest.approx(0.2 * 0.65, abs=0.08)
    attempt = AttemptProcess(task="t", agent="a", attempt=1, rounds=(played(told=True),))
    agents = {agent: summarise_agent(each) for agent, each in by_task([attempt]).items()}
    assert any("% claimed" in line.replace(" %", "%") for line in agent_lines(agents))
    assert [row["claimed"] for row in as_json(agents)] == [told.claimed]
