"""The oracle begins a round at the state that earlier solutions led to, without playing these again."""

from __future__ import annotations

import shutil
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.environments.reference_index import ReferenceIndex
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.context import TrialOptions
from pytest_evocode.trial.references import ReferenceStates
from pytest_evocode.trial.trial import Trial
from tests.click_runner import separating_runner

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("cache")]

EITHER = pytest.mark.parametrize("env", ["sandbox", pytest.param("docker", marks=pytest.mark.docker)])
NO_NETWORK = 'environment.network_mode = "no-network"'


def one(round_: str, agent: str = "oracle") -> str:
    """The node id of a round."""
    return f"tasks/a/task.toml::{agent}::{round_}"


def clean(*arguments: str) -> list[str]:
    # The status is 1 where what a session of another test left cannot be removed, as when that test does so itself.
    said = separating_runner().invoke(clean_command, arguments, catch_exceptions=False)
    assert "reference state" not in said.stderr
    return [line for line in said.stdout.splitlines() if "reference state" in line]


@pytest.fixture
def engine(cache: Path) -> Engine:
    """A sandbox engine."""
    return choose_engine("sandbox")[0]


@EITHER
@pytest.mark.matrix
def test_a_single_round_begins_where_the_solutions_before_it_led(
    write_task: WriteTask, play_tasks: RunTasks, env: str
) -> None:
    write_task("a", 3, toml=NO_NETWORK)
    counting = "† Not all rounds were selected, only these count: a round-3"
    session = play_tasks(one("round-3"), env=env)
    assert session.outcomes == {"passed": 3}
    session.has(counting)
    session = play_tasks("-rs", one("round-3"), env=env)
    assert session.outcomes == {"passed": 1, "skipped": 2}
    session.has(counting)
    session.has("*not needed: the reference state after round-2 is known*")
    assert [record.round for record in session.record().rounds] == ["round-3"]
    # Its suite wants the lines of all rounds up to 3.
    assert [case.status for case in session.record().rounds[0].verdict.cases] == ["passed"] * 3  # type: ignore[union-attr]
    try:
        assert len(clean("--dry-run")) == 3
    finally:
        clean()
    assert clean("--dry-run") == []
    assert play_tasks(one("round-3"), env=env).outcomes == {"passed": 3}
    clean()


@pytest.mark.nightly
def test_a_state_is_of_all_that_led_to_it_and_the_nearest_one_that_is_known_is_where_a_round_begins(
    write_task: WriteTask, play_tasks: RunTasks, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = write_task("a", 3, toml='[solution.env]\nWORD = "${WORD}"')
    monkeypatch.setenv("WORD", "one")
    play_tasks("tasks")
    for word, outcomes in (("one", {"passed": 1, "skipped": 1}), ("two", {"passed": 2})):
        monkeypatch.setenv("WORD", word)
        assert play_tasks(one("round-2")).outcomes == outcomes
    (directory / "steps/round-2/solution/solve.sh").write_text("echo line-2 >> log.txt; touch new\n")
    session = play_tasks(one("round-3"))
    assert session.outcomes == {"passed": 2, "skipped": 1}
    assert [record.round for record in session.record().rounds] == ["round-2", "round-3"]

    def is_known() -> bool:
        states = ReferenceStates(engine, load_task(directory), {"WORD": "two"})
        with states.held():
            return states.find(1) is not None

    with closing(engine):
        assert is_known()
        for changed in ("steps/round-1/solution/solve.sh", "environment/Dockerfile", "task.toml"):
            before = (directory / changed).read_text()
            (directory / changed).write_text(f"{before}# changed\n")
            assert not is_known(), changed
            (directory / changed).write_text(before)
        assert is_known()
    (directory / "steps/round-1/solution/solve.sh").write_text("echo line-1 >> log.txt; touch new\n")
    assert play_tasks(one("round-3")).outcomes == {"passed": 3}


@pytest.mark.nightly
def test_rounds_begin_there_for_the_oracle_alone_where_a_suite_accepted_the_state_and_it_is_still_there(
    write_task: WriteTask, play_tasks: RunTasks, cache: Path
) -> None:
    write_task("a", 2)
    write_task("refused", 2, solve={1: "true"})
    refused = one("round-2").replace("tasks/a", "tasks/refused")
    for _ in range(2):  # A whole run plays every solution.
        assert play_tasks("tasks/a").outcomes == {"passed": 2}
    play_tasks("tasks/refused")
    assert play_tasks(one("round-2"), refused).outcomes == {"passed": 1, "skipped": 1, "failed": 2}
    assert play_tasks(one("round-2", "nop"), agent="nop").outcomes == {"failed": 2}
    assert play_tasks(one("round-2"), replay=True).outcomes == {"passed": 2}
    (key,) = (
        state.key for state in ReferenceIndex("sandbox").oldest_first() if (state.task, state.round) == ("a", "round-1")
    )
    state = cache / "sandboxes-references" / key
    shutil.rmtree(state)
    assert play_tasks(one("round-2")).outcomes == {"passed": 2}
    assert state.is_dir()


@pytest.mark.nightly
def test_workers_share_the_states(write_task: WriteTask, play_tasks: RunTasks) -> None:
    for name in ("a", "b"):
        write_task(name, 3)
    assert play_tasks("-n2", "tasks").outcomes == {"passed": 6}
    assert play_tasks("-n2", "-k", "round-3", "tasks").outcomes == {"passed": 2, "skipped": 4}


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


def test_a_trial_tells_where_it_begins(write_task: WriteTask, play_tasks: RunTasks, engine: Engine) -> None:
    task = load_task(write_task("a", 2))
    options = TrialOptions(references=True)
    try:
        assert [record.index for record in Trial(task, OracleAgent(), engine, options=options).run()] == [1, 2]
        with Trial(task, OracleAgent(), engine, rounds=RoundSelection(first_wanted=2), options=options) as trial:
            assert trial.first_played() == 2
            assert trial.wait(2).passed
    finally:
        engine.close()


def test_an_environment_that_does_not_start_there_is_an_error_of_the_first_round_that_is_run(
    write_task: WriteTask, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_evocode.environments.sandbox.environment import SandboxEnvironment
    from pytest_evocode.errors import EnvironmentFault

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


def test_a_state_that_cannot_be_kept_or_dropped_is_nobodys_error(
    write_task: WriteTask, engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    from pytest_evocode.environments.sandbox.engine import SandboxEngine
    from pytest_evocode.errors import EnvironmentFault

    def fail(self: SandboxEngine, *arguments: object) -> int:
        raise EnvironmentFault("no")

    task = load_task(write_task("a", 2))
    options = TrialOptions(references=True)
    monkeypatch.setattr("pytest_evocode.trial.references.LIMIT", 0)
    try:
        for name in ("drop_reference_state", "keep_reference_state"):
            monkeypatch.setattr(SandboxEngine, name, fail)
            assert all(record.passed for record in Trial(task, OracleAgent(), engine, options=options).run())
    finally:
        engine.close()
