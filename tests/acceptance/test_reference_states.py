"""The oracle begins a round at the state that earlier solutions led to, without playing these again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.environments.reference_index import ReferenceIndex
from pytest_evocode.tasks import load_task
from pytest_evocode.trial.reference_states import ReferenceStates
from pytest_evocode.trial.trial import RoundSelection, Trial

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.slow, pytest.mark.usefixtures("cache")]

EITHER = pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
NO_NETWORK = 'environment.network_mode = "no-network"'


def one(round_: str, agent: str = "oracle") -> str:
    """The node id of a round."""
    return f"tasks/a/task.toml::{agent}::{round_}"


def clean(*arguments: str) -> list[str]:
    argv = [sys.executable, "-c", "from pytest_evocode.cli import main; main()", "clean", *arguments]
    said = subprocess.run(argv, check=True, capture_output=True, text=True).stdout.splitlines()
    return [line for line in said if "reference state" in line]


@EITHER
@pytest.mark.matrix
def test_a_single_round_begins_where_the_solutions_before_it_led(
    write_task: WriteTask, play_tasks: RunTasks, env: str
) -> None:
    write_task("a", 4, toml=NO_NETWORK)
    assert play_tasks("tasks", env=env).outcomes == {"passed": 4}
    session = play_tasks("-rs", one("round-3"), env=env)
    assert session.outcomes == {"passed": 1, "skipped": 2}
    session.has("*not needed: the reference state after round-2 is known*")
    assert [record.round for record in session.record().rounds] == ["round-3"]
    # Its suite wants the lines of all rounds up to 3.
    assert [case.status for case in session.record().rounds[0].verdict.cases] == ["passed"] * 3  # type: ignore[union-attr]
    try:
        assert len(clean("--dry-run")) == 4
    finally:
        clean()
    assert clean("--dry-run") == []
    assert play_tasks(one("round-3"), env=env).outcomes == {"passed": 3}
    clean()


def test_the_nearest_state_that_is_known_is_where_it_begins(write_task: WriteTask, play_tasks: RunTasks) -> None:
    task = write_task("a", 4)
    play_tasks("tasks")
    (task / "steps/round-3/solution/solve.sh").write_text("echo line-3 >> log.txt; touch new\n")
    session = play_tasks(one("round-4"))
    assert session.outcomes == {"passed": 2, "skipped": 2}
    assert [record.round for record in session.record().rounds] == ["round-3", "round-4"]


@pytest.mark.parametrize("changed", ["task.toml", "environment/Dockerfile", "steps/round-1/solution/solve.sh"])
@pytest.mark.matrix
def test_other_contents_lead_to_another_state(write_task: WriteTask, play_tasks: RunTasks, changed: str) -> None:
    task = write_task("a", 2)
    play_tasks("tasks")
    with (task / changed).open("a") as file:
        file.write("# changed\n")
    assert play_tasks(one("round-2")).outcomes == {"passed": 2}


def test_another_value_of_a_variable_leads_to_another_state(
    write_task: WriteTask, play_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_task("a", 2, toml='[solution.env]\nWORD = "${WORD}"')
    for word, outcomes in (("one", {"passed": 2}), ("one", {"passed": 1, "skipped": 1}), ("two", {"passed": 2})):
        monkeypatch.setenv("WORD", word)
        assert play_tasks(one("round-2")).outcomes == outcomes


def test_only_the_oracle_begins_there(write_task: WriteTask, play_tasks: RunTasks) -> None:
    write_task("a", 2)
    play_tasks("tasks")
    assert play_tasks(one("round-2", "nop"), agent="nop").outcomes == {"failed": 2}


def test_a_whole_run_plays_every_solution(write_task: WriteTask, play_tasks: RunTasks) -> None:
    write_task("a", 3)
    for _ in range(2):
        assert play_tasks("tasks").outcomes == {"passed": 3}


@pytest.mark.nightly
def test_workers_share_the_states(write_task: WriteTask, play_tasks: RunTasks) -> None:
    for name in ("a", "b"):
        write_task(name, 3)
    assert play_tasks("-n2", "tasks").outcomes == {"passed": 6}
    assert play_tasks("-n2", "-k", "round-3", "tasks").outcomes == {"passed": 2, "skipped": 4}


@pytest.fixture
def engine(cache: Path) -> Engine:
    """A sandbox engine."""
    return choose_engine("sandbox")[0]


def test_the_states_longest_unused_make_way(write_task: WriteTask, engine: Engine) -> None:
    task = load_task(write_task("a", 4, solve=dict.fromkeys((1, 2, 3), "head -c 1000000 /dev/urandom > $RANDOM")))
    kept = ReferenceStates(engine, task, {}, limit=2_500_000)
    environment = engine.create(task, env={}, network=None)
    environment.start()
    try:
        for index in (1, 2, 3):
            environment.exec(f"head -c 1000000 /dev/urandom > /app/{index}")
            snapshot = environment.snapshot()
            kept.keep(index, snapshot)
            snapshot.discard()
        # 1 and 2 MB were within the limit only until the third came, which is never the one to go.
        assert [index for index in (1, 2, 3) if kept.find(index)] == [3]
        assert [state.round for state in ReferenceIndex("sandbox").oldest_first()] == ["round-3"]
    finally:
        environment.stop()
        engine.close()


def test_a_state_that_is_gone_is_made_anew(write_task: WriteTask, play_tasks: RunTasks, cache: Path) -> None:
    write_task("a", 2)
    play_tasks("tasks")
    (key,) = (state.key for state in ReferenceIndex("sandbox").oldest_first() if state.round == "round-1")
    state = cache / "sandboxes-references" / key
    subprocess.run(["rm", "-r", state], check=True)
    assert play_tasks(one("round-2")).outcomes == {"passed": 2}
    assert state.is_dir()


def test_a_trial_tells_where_it_begins(write_task: WriteTask, play_tasks: RunTasks, engine: Engine) -> None:
    task = load_task(write_task("a", 3))
    from pytest_evocode.trial.trial import TrialOptions

    options = TrialOptions(references=True)
    try:
        assert [record.index for record in Trial(task, OracleAgent(), engine, options=options).run()] == [1, 2, 3]
        with Trial(task, OracleAgent(), engine, rounds=RoundSelection(first_wanted=3), options=options) as trial:
            assert trial.first_played() == 3
            assert trial.wait(3).passed
    finally:
        engine.close()


def test_it_can_be_told_to_play_them_all(write_task: WriteTask, play_tasks: RunTasks) -> None:
    write_task("a", 2)
    play_tasks("tasks")
    assert play_tasks(one("round-2"), replay=True).outcomes == {"passed": 2}


def test_an_environment_that_does_not_start_there_is_an_error_of_the_first_round_that_is_run(
    write_task: WriteTask, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
    from pytest_evocode.errors import EnvironmentFault
    from pytest_evocode.trial.trial import TrialOptions

    def fail(self: SandboxEnvironment) -> None:
        raise EnvironmentFault("no")

    task = load_task(write_task("a", 4))
    options = TrialOptions(references=True)
    try:
        list(Trial(task, OracleAgent(), engine, rounds=RoundSelection(last=2), options=options).run())
        monkeypatch.setattr(SandboxEnvironment, "start", fail)
        with Trial(task, OracleAgent(), engine, rounds=RoundSelection(first_wanted=3), options=options) as trial:
            assert trial.first_played() == 3
            assert (trial.wait(3).outcome, trial.wait(3).cause) == ("error", "no")
            assert trial.wait(4).outcome == "not reached"
    finally:
        engine.close()


def test_a_state_that_its_suite_does_not_accept_is_not_kept(write_task: WriteTask, play_tasks: RunTasks) -> None:
    task = write_task("a", 2, solve={1: "true"})
    play_tasks("tasks")
    assert play_tasks(one("round-2")).outcomes == {"failed": 2}
    assert (task / "task.toml").is_file()


def test_a_state_that_cannot_be_kept_or_dropped_is_nobodys_error(
    write_task: WriteTask, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_evocode.environments.sandbox.engine import SandboxEngine
    from pytest_evocode.errors import EnvironmentFault
    from pytest_evocode.trial.trial import TrialOptions

    def fail(self: SandboxEngine, *arguments: object) -> int:
        raise EnvironmentFault("no")

    task = load_task(write_task("a", 3))
    options = TrialOptions(references=True)
    monkeypatch.setattr("pytest_evocode.trial.reference_states.LIMIT", 0)
    try:
        for name in ("drop_reference_state", "keep_reference_state"):
            monkeypatch.setattr(SandboxEngine, name, fail)
            assert all(record.passed for record in Trial(task, OracleAgent(), engine, options=options).run())
    finally:
        engine.close()
