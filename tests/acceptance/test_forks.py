"""``--evocode-fork-from``: an agent goes on from what another one left after a round."""

from __future__ import annotations

import json
import shutil
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from pytest_evocode.results.records import RoundRecord

if TYPE_CHECKING:
    from pathlib import Path

    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
# Each remembers its turns in this conversation, and appends its line, but for those rounds in which it does otherwise.
AGENTS = """
from pathlib import Path
from pytest_evocode.agents import RoundTranscript

HERE = Path(__file__).parent
OTHERWISE = {
    "careless": {2: "true"},
    "steady": {},
    "clumsy": {4: "sed -i /line-1/d log.txt"},
    "lost": {3: "true"},
}

class Scripted:
    def __init__(self, name):
        self.name = name
        self.remembers = []

    def run_round(self, context):
        index = context.round.index
        self.remembers.append(index)
        found = context.environment.exec("cat log.txt").output.split()
        with (HERE / f"turns-{self.name}").open("a") as file:
            file.write(f"{self.remembers} {' '.join(found)}\\n")
        context.environment.exec(OTHERWISE[self.name].get(index, f"echo line-{index} >> log.txt"))
        return RoundTranscript()

    def save_state(self):
        return self.remembers

    def load_state(self, state):
        self.remembers = state

def pytest_evocode_make_agent(name):
    return Scripted(name) if name in OTHERWISE else None
"""


@pytest.fixture(autouse=True)
def _agents(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(AGENTS)


def turns(session: Session, agent: str) -> list[str]:
    """What the agent remembered in each turn, and found in ``log.txt``."""
    return (session.directory / f"turns-{agent}").read_text().splitlines()


def failures(record: RoundRecord) -> dict[str, str | None]:
    """By case, how it stands to earlier rounds, of those that did not pass."""
    assert record.verdict is not None
    return {case.id: case.failure for case in record.verdict.cases if case.failing}


def tables(*arguments: str) -> str:
    found = CliRunner().invoke(main, [*arguments])
    assert found.exit_code == 0, found.output
    return found.output


@pytest.mark.parametrize("env", ENVIRONMENTS)
def test_a_fork_goes_on_from_the_state_of_another_agent_and_is_held_against_its_verdicts(
    write_task: WriteTask, run_tasks: RunTasks, env: str
) -> None:
    write_task("a", 4)
    first = run_tasks("--evocode-snapshots", "tasks", agent="careless", env=env)
    assert first.outcomes == {"passed": 1, "failed": 3}
    before = {path: path.read_bytes() for path in first.attempt("a", "careless").rglob("*") if path.is_file()}
    session = run_tasks("--evocode-fork-from=careless:round-3", "-rs", "tasks", agent="clumsy", env=env)

    # A new conversation, in the files of the other.
    assert turns(session, "clumsy") == ["[4] line-1 line-3"]
    assert session.outcomes == {"skipped": 3, "failed": 1}
    session.has(
        "evocode: mode from careless:round-3: attempts go on from what careless left after round-3; *not count",
        f"evocode: 1 attempt goes on from what careless left after round-3 in the run {first.run.run}, *",
        "SKIPPED*forked from careless after round-3",
    )
    record = session.record("a", "clumsy")
    assert [round_.round for round_ in record.rounds] == ["round-4"]
    # Line 1 passed before, line 2 never did, and line 4 was not asked for before.
    assert failures(record.rounds[0]) == {
        "has-line-1": "regression",
        "has-line-2": "carried",
        "has-line-4": "new miss",
    }
    source = record.forked_from
    assert source is not None
    assert (source.point, source.agent, source.round, source.index, source.attempt, source.run) == (
        *("careless:round-3", "careless", "round-3", 3, 1, first.run.run),
    )
    assert source.made_by["spec"] == "careless"
    attempt = first.results / f"a/harbor_jobs/careless/{source.run}/a__a1"
    assert source.snapshot == json.loads((attempt / "steps/round-3/snapshot.json").read_text())["reference"]
    assert source.outcomes == {"round-1": "passed", "round-2": "failed", "round-3": "failed"}
    assert (record.from_round, record.rewards) == ("round-4", {"reward": 0.0})
    assert session.run.fork_from == "careless:round-3"
    assert before == {path: path.read_bytes() for path in before}


def test_forks_are_a_row_of_their_own_beside_whole_attempts(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 4)
    run_tasks("--evocode-snapshots", "tasks", agent="careless")
    run_tasks("tasks", agent="steady")
    session = run_tasks("--evocode-fork-from=careless:1", "tasks", agent="steady")
    assert session.outcomes == {"passed": 3, "skipped": 1}
    session.has("steady (from careless:round-1) *100.0 *")
    rows = {row["name"]: row for row in json.loads(tables("results", "--json"))}
    assert {name: row["scores"]["dataset_score"] for name, row in rows.items()} == {
        "careless": 25.0,
        "steady": 100.0,
        "steady (from careless:round-1)": 100.0,
    }
    assert rows["steady (from careless:round-1)"]["scores"]["rounds"] == 3
    assert rows["steady (from careless:round-1)"]["from_round"] == "careless:round-1"
    # It is no part of a whole attempt, and displaces none.
    assert [row["partial"] for row in rows.values()] == [[], [], []]
    assert "modes: chain (careless, steady); chain from careless:round-1" in tables("leaderboard")
