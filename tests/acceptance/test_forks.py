"""``--evocode-fork-from``: an agent goes on from what another one left after a round."""

from __future__ import annotations

import json
import shutil
import sys
from typing import TYPE_CHECKING

import pytest
from click.testing import CliRunner

from pytest_evocode.cli import main
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord
from tests.inner_sessions import UNUSED

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow]

ENVIRONMENTS = ["sandbox", pytest.param("docker", marks=pytest.mark.docker)]
# Each remembers its turns in this conversation, and appends its line, but for those rounds in which it does otherwise.
AGENTS = """
import json, os, signal, time
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
        if index == 4 and (HERE / "die").exists():
            while not is_noted(self.name, 3):
                time.sleep(0.01)
            os.killpg(0, signal.SIGKILL)
        return RoundTranscript()

    def save_state(self):
        return self.remembers

    def load_state(self, state):
        self.remembers = state

def is_noted(agent, index):
    states = HERE.glob(f"evocode-results/a/harbor_jobs/{agent}/*/*/state.json")
    return any(turn["index"] == index for state in states for turn in json.loads(state.read_text())["turns"])

def pytest_evocode_make_agent(name):
    return Scripted(name) if name in OTHERWISE else None
"""


@pytest.fixture(autouse=True)
def _agents(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(AGENTS)


def turns(session: Session | pytest.Pytester, agent: str) -> list[str]:
    """What the agent remembered in each turn, and found in ``log.txt``."""
    directory = session.path if isinstance(session, pytest.Pytester) else session.directory
    return (directory / f"turns-{agent}").read_text().splitlines()


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
    rows = {row["name"]: row for row in json.loads(tables("results", "--json"))["rows"]}
    assert {name: row["scores"]["dataset_score"] for name, row in rows.items()} == {
        "careless": 25.0,
        "steady": 100.0,
        "steady (from careless:round-1)": 100.0,
    }
    assert rows["steady (from careless:round-1)"]["scores"]["rounds"] == 3
    assert rows["steady (from careless:round-1)"]["from_round"] == "careless:round-1"
    # It is no part of a whole attempt, and displaces none.
    assert [row["partial"] for row in rows.values()] == [[], [], []]
    ranking = tables("leaderboard", "--format=text")
    assert "modes differ: chain (steady, careless); chain from careless:round-1 (" in ranking


def test_the_view_tells_a_bad_state_from_what_an_agent_cannot_do(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 3)
    agents = [f"--evocode-agent={each}" for each in ("careless", "lost")]
    run_tasks("--evocode-snapshots", *agents, "tasks", agent="steady")
    run_tasks("--evocode-fork-from=careless:round-2", "--evocode-agent=careless", "tasks", agent="steady")
    run_tasks("--evocode-fork-from=steady:round-2", "tasks", agent="lost")
    found = [
        (each["point"], each["agent"], each["round"], each["reading"])
        for each in json.loads(tables("results", "--view", "forks", "--json"))["forks"]
    ]
    assert found == [
        ("careless:round-2", "careless", "round-3", "passes neither with nor without its conversation"),
        ("careless:round-2", "steady", "round-3", "inherited a bad state"),
        ("steady:round-2", "lost", "round-3", "cannot do the round"),
    ]
    line = tables("results", "--view", "forks").splitlines()[2]
    assert " ".join(line.split()) == "a careless:round-2 steady round-3 0/1 0/1 0/1 0/1 1/1 inherited a bad state"


@pytest.mark.parametrize("beside", ["-n2", "--evocode-jobs=2"])
def test_every_attempt_goes_on_from_that_of_its_number_also_side_by_side(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, beside: str
) -> None:
    write_task("a", 3)
    with pytester.path.joinpath("conftest.py").open("a") as file:
        file.write(
            "\n\nOTHERWISE['numbered'] = {1: 'echo line-1 >> log.txt; echo $RANDOM-$RANDOM-$RANDOM >> log.txt'}\n"
        )
    first = run_tasks("--evocode-snapshots", "--evocode-attempts=2", "tasks", agent="numbered")
    left = sorted(line.split("] ")[1] for line in turns(first, "numbered") if line.startswith("[1, 2]"))
    session = run_tasks(beside, "--evocode-attempts=2", "--evocode-fork-from=numbered:1", "tasks", agent="steady")
    assert session.outcomes == {"passed": 4, "skipped": 2}
    assert sorted(line.split("] ")[1] for line in turns(session, "steady") if line.startswith("[2]")) == left
    assert len(set(left)) == 2
    for number in (1, 2):
        source = session.record("a", "steady", number).forked_from
        assert source is not None
        assert source.attempt == number


def test_what_cannot_be_forked_says_why(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 3)
    first = run_tasks("--evocode-snapshots", "tasks", agent="careless")
    attempt = first.attempt("a", "careless")

    def refuses(fork: str, message: str, *more: str) -> None:
        session = run_tasks(f"--evocode-fork-from={fork}", "--collect-only", *more, "tasks", agent="steady")
        assert session.outcomes["errors"] == 1
        session.has(f"*--evocode-fork-from={fork.replace(':2', ':round-2')}: {message}*")

    refuses("nobody:2", "*evocode-results has no attempt at a by nobody; there are attempts by careless")
    refuses("careless:round-9", "a has no such round; its rounds are round-1, round-2, round-3")
    refuses("careless:round-3", "round-3 is the last round of a, and none is left to go on with")
    refuses("careless:2", "careless has no attempt 2 at a, *it has 1; ask for no more", "--evocode-attempts=2")
    refuses("careless:2@other", "*evocode-results has no run other by careless at a")
    snapshot = attempt / "steps/round-2/snapshot.json"
    kept = snapshot.read_text()
    snapshot.unlink()
    refuses("careless:2", "*the files that round-2 was left with were not kept; run careless anew with --evocode-snap")
    snapshot.write_text(kept)
    result = attempt / "result.json"
    record = json.loads(result.read_text())
    for changed, message in (
        ({"mode": "single-round"}, "*its rounds were run each by itself"),
        ({"from_round": "round-2"}, "*it began later itself (round-2), and only whole chains can be forked from"),
        ({"rounds": record["rounds"][:1]}, "*there is no verdict on round-2, which that attempt has not reached"),
    ):
        result.write_text(json.dumps(record | changed))
        refuses("careless:2", message)
    result.unlink()
    refuses("careless:2", f"*it has not ended; continue it with --evocode-resume={first.run.run}")
    result.write_text(json.dumps(record))
    # What only an engine knows is an error of the attempt, before the agent's first turn.
    for changed, message in (
        ({"environment": "docker"}, "*round-2 of *was left in docker; add --evocode-env=docker*"),
        ({"reference": "gone"}, "*round-2 of *are not on this machine, or were removed by evocode clean --kept*"),
        ({"image": "another"}, "*the image of *is another one now, which round-2 of *was not left in*"),
    ):
        snapshot.write_text(json.dumps(json.loads(kept) | changed))
        session = run_tasks("--evocode-fork-from=careless:2", "tasks", agent="steady")
        session.has(message)
        assert session.outcomes == {"skipped": 2, "errors": 1}
    snapshot.write_text(kept)
    (task / "steps/round-3/instruction.md").write_text("Something else.")
    refuses("careless:2", "*the files of a have changed since, so nothing could be compared; restore them, or run *")
    assert not (first.directory / "turns-steady").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--evocode-fork-from=a"], "*write it as AGENT:ROUND, such as gpt-5:round-3, or AGENT:ROUND@RUN*"),
        (["--evocode-fork-from=a:2", "--evocode-mode=single-round"], "*is about chains*leave one of them out"),
        (["--evocode-fork-from=a:2", "--evocode-from=round-2"], "*and --evocode-from begins where*leave one out"),
        (["--evocode-fork-from=a:2", "--evocode-cluster=ray"], "*and --evocode-cluster makes attempts on machines*"),
        (["--evocode-fork-from=a:2", "--evocode-check"], "*leave out --evocode-fork-from*"),
    ],
)
def test_what_cannot_be_meant_is_refused(run_tasks: RunTasks, arguments: list[str], message: str) -> None:
    session = run_tasks(*arguments, "tasks", agent=None if "--evocode-check" in arguments else "steady")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([message])


def test_a_dry_run_and_collecting_show_forks_and_rounds_before_are_left_out_without_any_after(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3)
    first = run_tasks("--evocode-snapshots", "tasks", agent="careless")
    told = f"evocode: 1 attempt goes on from what careless left after round-2 in the run {first.run.run}, *"
    fork = f"--evocode-fork-from=careless:2@{first.run.run}"
    run_tasks(fork, "--collect-only", "tasks", agent="steady").has(told)
    dry = run_tasks(fork, "--evocode-dry-run", "tasks", agent="steady")
    dry.has(told, "agent *attempts *rounds *", "steady *1 *1 *")
    alone = run_tasks(fork, "tasks/a/task.toml::steady::round-1", agent="steady")
    assert alone.exit_status == pytest.ExitCode.NO_TESTS_COLLECTED
    picked = run_tasks(fork, "tasks/a/task.toml::steady::round-3", agent="steady")
    assert picked.outcomes == {"failed": 1, "skipped": 2}
    assert picked.run.fork_from == f"careless:round-2@{first.run.run}"


def test_a_killed_fork_goes_on_with_what_it_remembers(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 4)
    first = run_tasks("--evocode-snapshots", "tasks", agent="careless")
    assert first.run.fork_from is None
    pytester.path.joinpath("die").touch()
    fork, other = "--evocode-fork-from=careless:2", "--evocode-fork-from=careless:1"
    script = f"setsid --wait {sys.executable} -m pytest {' '.join(UNUSED)} --evocode-agent=clumsy --evocode-env=sandbox"
    pytester.run("sh", "-c", f"{script} {fork} tasks")
    pytester.path.joinpath("die").unlink()
    assert turns(pytester, "clumsy") == ["[3] line-1", "[3, 4] line-1 line-3"]
    (run,) = {path.parent.name for path in pytester.path.glob("evocode-results/a/harbor_jobs/clumsy/*/a__a1")}
    refused = run_tasks(other, f"--evocode-resume={run}", "tasks", agent="clumsy")
    refused.result.stderr.fnmatch_lines(["*was begun with --evocode-fork-from=careless:round-2; continue it with that"])
    # It goes on from the state that it began in, whatever other attempts there are by now.
    run_tasks("--evocode-snapshots", "tasks", agent="careless")
    session = run_tasks(fork, f"--evocode-resume={run}", "tasks", agent="clumsy", replay=False)
    assert turns(session, "clumsy")[2:] == ["[3, 4] line-1 line-3"]
    (path,) = pytester.path.glob("evocode-results/a/harbor_jobs/clumsy/*/a__a1")
    record = AttemptDirectory(path).read_attempt()
    assert record is not None
    assert record.forked_from is not None
    assert record.forked_from.run == first.run.run
    rounds = record.rounds
    assert [round_.outcome for round_ in rounds] == ["failed", "failed"]
    assert failures(rounds[1]) == {"has-line-1": "regression", "has-line-2": "carried", "has-line-4": "new miss"}


@pytest.mark.nightly
def test_no_reference_state_comes_of_what_another_agent_left(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3, files={"environment/only-here": "this test's\n"})
    with pytester.path.joinpath("conftest.py").open("a") as file:
        file.write("\n\nOTHERWISE['tainting'] = {1: 'echo line-1 >> log.txt; echo tainted >> log.txt'}\n")
    run_tasks("--evocode-snapshots", "tasks", agent="tainting")
    fork = run_tasks("--evocode-fork-from=tainting:1", "tasks", agent="oracle", replay=False)
    assert fork.outcomes == {"passed": 2, "skipped": 1}
    session = run_tasks("--evocode-from=round-3", "tasks", agent="steady", replay=False)
    assert turns(session, "steady") == ["[3] line-1 line-2"]


@pytest.mark.nightly
def test_a_fork_that_is_verified_again_is_held_against_the_same_verdicts(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 4)
    run_tasks("--evocode-snapshots", "tasks", agent="careless")
    fork = ("--evocode-fork-from=careless:3", "--evocode-snapshots", "tasks")
    session = run_tasks(*fork, agent="clumsy")
    before = failures(session.record("a", "clumsy").rounds[0])
    assert "verified 5 rounds again" in tables("regrade")
    assert failures(session.record("a", "clumsy").rounds[0]) == before


@pytest.mark.nightly
def test_what_suites_keep_for_later_ones_is_there_in_a_fork(write_task: WriteTask, run_tasks: RunTasks) -> None:
    # Each suite passes where those before have left their lines.
    test = (
        "seq 1 $((EVOCODE_ROUND_INDEX - 1)) > /tmp/expected; touch /var/verifier/seen; reward=0\n"
        "if cmp -s /var/verifier/seen /tmp/expected; then reward=1; fi\n"
        "echo $EVOCODE_ROUND_INDEX >> /var/verifier/seen; echo $reward > /logs/verifier/reward.txt"
    )
    toml = '[metadata.evocode]\nverifier_state = ["/var/verifier"]\n'
    write_task("a", 3, toml=toml, test=dict.fromkeys((1, 2, 3), test))
    first = run_tasks("--evocode-snapshots", "tasks", agent="careless")
    assert first.outcomes == {"passed": 3}
    attempt = first.attempt("a", "careless")
    assert run_tasks("--evocode-fork-from=careless:2", "tasks", agent="steady").outcomes == {"passed": 1, "skipped": 2}
    shutil.rmtree(attempt / "verifier-state")
    run_tasks("--evocode-fork-from=careless:2", "tasks", agent="steady").has("*/var/verifier is not there any more*")
