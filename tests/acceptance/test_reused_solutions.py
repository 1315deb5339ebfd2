"""With ``--evocode-reuse`` the oracle's suites run in states that are kept, and no solution is played again."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.environments.reference_index import ReferenceIndex
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.trial import Trial, TrialOptions
from pytest_evocode.trial.references import ReferenceStates

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(3), pytest.mark.slow, pytest.mark.usefixtures("cache")]

NO_NETWORK = 'environment.network_mode = "no-network"'
NOTE = "the reference solution was not played again: the state that it leads to was kept"


@pytest.mark.parametrize("env", ["sandbox"])
def test_turns_are_taken_again_only_from_where_nothing_is_kept(
    write_task: WriteTask, play_tasks: RunTasks, pytester: pytest.Pytester, env: str
) -> None:
    pytester.makeconftest(
        """
        import pytest

        @pytest.fixture(autouse=True)
        def look(evocode_container):
            print("LOG", evocode_container.exec("cat log.txt").output.split())
        """
    )
    task = write_task("a", 3, toml=NO_NETWORK)
    for _ in range(2):  # By default turns are taken however much is kept.
        played = play_tasks("tasks", env=env)
        assert all(record.agent_seconds is not None for record in played.record().rounds)
    session = play_tasks("--evocode-reuse", "-rP", "tasks", env=env)
    assert session.outcomes == {"passed": 3}
    rounds = session.record().rounds
    assert [record.round for record in rounds] == ["round-1", "round-2", "round-3"]
    assert all(record.agent_seconds is None for record in rounds)
    assert all(record.verdict is not None and record.verdict.flags == (NOTE,) for record in rounds)
    session.has(f"a, oracle, round-1, round-2, round-3: {NOTE}")
    # The container is where the solutions led.
    session.has("LOG ['line-1', 'line-2', 'line-3']")
    # A round by itself takes no turn either.
    session = play_tasks("--evocode-reuse", "tasks/a/task.toml::oracle::round-2", env=env)
    assert session.outcomes == {"passed": 1, "skipped": 1}
    assert session.record().rounds[0].agent_seconds is None
    # Nothing of it was used up, and what comes after a change is played.
    (task / "steps/round-2/solution/solve.sh").write_text("echo line-2 >> log.txt; touch new\n")
    session = play_tasks("--evocode-reuse", "tasks", env=env)
    assert session.outcomes == {"passed": 3}
    assert [record.agent_seconds is None for record in session.record().rounds] == [True, False, False]


@pytest.mark.docker
@pytest.mark.nightly
def test_no_turn_is_taken_again_in_docker_either(
    write_task: WriteTask, play_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    test_turns_are_taken_again_only_from_where_nothing_is_kept(write_task, play_tasks, pytester, env="docker")


@pytest.mark.nightly
def test_a_suite_that_has_changed_is_run_and_may_fail(write_task: WriteTask, play_tasks: RunTasks) -> None:
    task = write_task("a", 3)
    play_tasks("tasks")
    (task / "steps/round-2/tests/test.sh").write_text("echo 0 > /logs/verifier/reward.txt\n")
    session = play_tasks("--evocode-reuse", "tasks")
    assert session.outcomes == {"passed": 2, "failed": 1}
    assert [record.outcome for record in session.record().rounds] == ["passed", "failed", "passed"]
    assert play_tasks("--evocode-reuse", "--evocode-mode=fail-stop", "tasks").outcomes == {
        "passed": 1,
        "failed": 1,
        "skipped": 1,
    }


def test_a_state_in_use_is_not_dropped(write_task: WriteTask, cache: Path) -> None:
    engine: Engine = choose_engine("sandbox")[0]
    options = TrialOptions(references=True, reuse=True)
    task, others = (
        load_task(write_task("a", 1)),
        [load_task(write_task(name, rounds)) for name, rounds in (("b", 2), ("c", 3))],
    )

    def keep_only_the_newest(task: Task) -> list[str]:
        environment = engine.create(task, env={}, network=None)
        environment.start()
        snapshot = environment.snapshot()
        ReferenceStates(engine, task, {}, limit=0).keep(1, snapshot)
        snapshot.discard()
        environment.stop()
        return sorted(state.task for state in ReferenceIndex("sandbox").oldest_first())

    try:
        list(Trial(task, OracleAgent(), engine, options=options).run())
        with Trial(task, OracleAgent(), engine, options=options) as trial:
            trial.wait_environment()
            assert keep_only_the_newest(others[0]) == ["a", "b"]
            assert trial.wait(1).passed
        assert keep_only_the_newest(others[1]) == ["c"]
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--evocode-agent=nop",), "add --evocode-agent=oracle"),
        (("--evocode-agent=oracle", "--evocode-replay"), "has every turn taken anew; leave one of them out"),
        (("--evocode-agent=oracle", "--evocode-snapshots"), "keeps what turns of this run lead to; leave one"),
    ],
)
@pytest.mark.matrix
def test_options_that_do_not_go_with_it(play_tasks: RunTasks, options: tuple[str, ...], said: str) -> None:
    session = play_tasks("--evocode-reuse", *options, agent=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([f"*{said}*"])
