"""``--evocode-speculate``: the next turn begins ahead of a verdict that may end the attempt."""

from __future__ import annotations

import inspect
import uuid
from typing import TYPE_CHECKING

import pytest

from tests import waking_agent
from tests.acceptance.tasks import suite_up_to

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

ENDED = "round-1 did not pass, which ends the attempt (fail-stop)"
#: Looks into the environment after every round, also after that which ends the attempt.
LOOKS = """
import pytest

@pytest.fixture(autouse=True)
def look(evocode_container):
    yield
    assert evocode_container.exec("cat log.txt").output.startswith("line-1")
"""


@pytest.mark.parametrize("ending", ["-x", pytest.param("-n1", marks=pytest.mark.slow)])
@pytest.mark.parametrize("passes", [True, False])
@pytest.mark.matrix
def test_the_turn_is_dropped_if_the_verdict_ends_the_attempt(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, passes: bool, ending: str
) -> None:
    """Suite 1 sleeps for ten minutes, and only turn 2 wakes it; the first round that fails ends the session, too."""
    moment = f"600.{uuid.uuid4().int % 10**12:012d}"
    pytester.makeconftest(f"{inspect.getsource(waking_agent)}\nMOMENT = {moment!r}\n{LOOKS}")
    suite = f"sleep {moment}\n{suite_up_to(1)}" + ("" if passes else "\necho 0 > /logs/verifier/reward.txt")
    write_task("a", 3, test={1: suite})
    arguments = ["--evocode-mode=fail-stop", "--evocode-speculate", ending, "tasks"]
    session = run_tasks(*arguments, agent=waking_agent.NAME, replay=False)
    session.has("evocode: speculating: turns begin ahead of verdicts*")
    record = session.record("a", waking_agent.NAME)
    steps = sorted(path.name for path in (session.attempt("a", waking_agent.NAME) / "steps").iterdir())
    assert not (session.attempt("a", waking_agent.NAME) / "state.json").exists()
    if passes:
        assert [each.outcome for each in record.rounds] == ["passed"] * 3
        assert steps == ["round-1", "round-2", "round-3"]
    else:
        assert session.outcomes == ({"failed": 1} if ending == "-x" else {"failed": 1, "skipped": 2})
        assert [each.outcome for each in record.rounds] == ["failed", "not reached", "not reached"]
        assert {each.cause for each in record.rounds[1:]} == {
            "round-1 did not pass, which ends the attempt (fail-stop)"
        }
        assert record.rounds[1].agent_seconds is not None  # The turn has taken that, although it does not count.
        assert steps == ["round-1"]
