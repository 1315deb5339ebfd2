"""What a session writes below its results directory."""

from __future__ import annotations

import json
import platform
import re
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pydantic import TypeAdapter

from pytest_evocode.results.directory import STAMP, write_run
from pytest_evocode.results.records import Case, RunRecord
from pytest_evocode.trajectories.atif import Trajectory

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

FAILS = "echo 0 > /logs/verifier/reward.txt"


def files_below(directory: Path) -> list[str]:
    """The relative paths of all files, sorted."""
    return sorted(path.relative_to(directory).as_posix() for path in directory.rglob("*") if path.is_file())


def test_records_files_and_artifacts_of_attempts_are_what_happened_in_them(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 4, solve={2: "sed -i /line-1/d log.txt; echo wrong >> log.txt", 3: "exit 1"})
    write_task("final", 2, test={1: FAILS}, toml='multi_step_reward_strategy = "final"')
    write_task("given", 1, test={1: "echo some; echo words >&2; echo 0.25 > /logs/verifier/reward.txt"})
    write_task("no-verdict", 1, test={1: "echo said; true"})
    write_task(
        "artifacts",
        2,
        toml='artifacts = ["/app/log.txt", "/app/missing", '
        '{ source = "/app/out", destination = "kept/out", exclude = ["*.tmp", "cache"] }]',
        step={2: 'artifacts = ["/app/late.txt"]'},
        solve={
            1: "echo line-1 > log.txt; echo extra > /logs/artifacts/extra.txt; "
            "mkdir -p out/sub out/cache; touch out/a.txt out/b.tmp out/sub/c.txt out/cache/d",
            2: "echo line-2 >> log.txt; touch late.txt",
        },
    )
    write_task(
        "leads-out",
        1,
        toml='artifacts = ["/app/out"]',
        solve={1: "mkdir out; ln -s /etc/passwd out/link; touch log.txt"},
    )
    session = run_tasks("tasks")
    check_records(session)
    check_files(session)
    check_artifacts(session)


def check_records(session: Session) -> None:
    record = session.record("a")
    assert [round_.outcome for round_ in record.rounds] == ["passed", "failed", "error", "not reached"]
    assert record.declared_rounds == ("round-1", "round-2", "round-3", "round-4")
    assert record.environment == "sandbox"
    assert datetime.fromisoformat(record.started) <= datetime.fromisoformat(record.finished)
    assert record.rewards == {"reward": 0.25}
    # The other strategy takes the last round's.
    assert session.record("final").rewards == {"reward": 1.0}
    assert session.record("no-verdict").rounds[0].verdict is None


def check_files(session: Session) -> None:
    """Cases are whole, and reward and output are as the suite gave them; an error leaves what there is."""
    text = (session.attempt("a") / "steps/round-2/verifier/cases.json").read_text()
    cases = TypeAdapter(list[Case]).validate_json(text)
    assert [(case.id, case.origin, case.status, case.failure) for case in cases] == [
        ("has-line-1", "round-1", "failed", "regression"),
        ("has-line-2", "round-2", "failed", "new miss"),
    ]
    assert (cases[0].intent, cases[0].expected, cases[0].actual) == ("line 1 is kept", "line-1", "wrong")
    verifier = session.attempt("given") / "steps/round-1/verifier"
    assert (verifier / "reward.txt").read_text() == "0.25\n"
    assert (verifier / "test-stdout.txt").read_text() == "some\nwords\n"
    assert files_below(session.attempt("no-verdict")) == [
        "result.json",
        "steps/round-1/round.json",
        "steps/round-1/verifier/test-stdout.txt",
    ]


def check_artifacts(session: Session) -> None:
    """What was declared is collected, and what leads out is left out and said."""
    steps = session.attempt("artifacts") / "steps"
    common = ["extra.txt", "kept/out/a.txt", "kept/out/sub/c.txt", "log.txt"]
    assert files_below(steps / "round-1/artifacts") == common
    assert files_below(steps / "round-2/artifacts") == sorted([*common, "late.txt"])
    assert (steps / "round-1/artifacts/log.txt").read_text() == "line-1\n"
    session.has("*artifact left out: out/link: *")
    assert [round_.passed for round_ in session.record("artifacts").rounds] == [True, True]
    verdict = session.record("leads-out").rounds[0].verdict
    assert verdict is not None
    assert [flag for flag in verdict.flags if "artifact" in flag] == [
        "artifact left out: out/link: neither a file nor a directory"
    ]
    assert files_below(session.attempt("leads-out") / "steps/round-1/artifacts") == []


def test_a_run_has_harbors_tree_and_says_how_it_was_called_and_continued_and_what_it_ran_with(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, toml='artifacts = ["/app/log.txt"]')
    session = run_tasks("tasks")
    run = session.run
    datetime.strptime(run.run[:-3], f"{STAMP}-%f")
    verifier = ["cases.json", "reward.txt", "test-stdout.txt"]
    attempt = [
        "result.json",
        *(f"steps/round-{index}/{name}" for index in (1, 2) for name in ("artifacts/log.txt", "round.json")),
        *(f"steps/round-{index}/verifier/{name}" for index in (1, 2) for name in verifier),
    ]
    job = [f"a/harbor_jobs/oracle/{run.run}/{name}" for name in ("config.json", "result.json")]
    assert files_below(session.results) == sorted(
        [*(f"a/harbor_jobs/oracle/{run.run}/a__a1/{name}" for name in attempt), *job, f"runs/{run.run}.json"]
    )
    assert "--evocode-agent=oracle" in run.arguments
    assert run.arguments[-1] == "tasks"
    assert (run.environment, run.exit_status) == ("sandbox", 0)
    assert run.finished is not None
    assert run.scores["oracle"]["perfect_tasks"] == 1
    assert run.versions.keys() == {
        "pytest-evocode",
        "Python",
        "pytest",
        "platform",
        "bubblewrap",
        "kernel",
        "host's system",
    }
    assert run.versions["pytest"] == (pytest.__version__,)
    assert run.versions["kernel"] == (platform.release(),)
    assert re.fullmatch(r"\d+(\.\d+)+", run.versions["bubblewrap"][0])
    earlier = {**run.versions, "Python": ("3.11.0",), "tool": ("1",)}
    write_run(session.results, run.model_copy(update={"versions": earlier}))
    write_task("late", 1)
    continued = run_tasks("--evocode-resume", "tasks").run
    assert continued.versions == {**earlier, "Python": ("3.11.0", platform.python_version())}
    assert "--evocode-resume" in continued.arguments
    assert continued.earlier_arguments == (run.arguments,)
    write_run(session.results, continued.model_copy(update={"earlier_arguments": (("first",), *[("other",)] * 80)}))
    write_task("later", 1)
    bounded = run_tasks("--evocode-resume", "tasks").run.earlier_arguments
    assert bounded == (("first",), *[("other",)] * 49, continued.arguments)


@pytest.mark.nightly
def test_two_sessions_in_one_second_are_two_runs(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-fail-under=0", "tasks")
    # Runs of the seconds to come, as if other sessions had taken them.
    taken = session.results / "runs"
    started = datetime.strptime(session.run.run[:-10], STAMP)
    for seconds in range(1, 60):
        (taken / f"{(started + timedelta(seconds=seconds)).strftime(STAMP)}.json").write_text("another session's")
    before = {path.name for path in taken.iterdir()}
    run_tasks("tasks")
    (new,) = {path.name for path in taken.iterdir()} - before
    assert RunRecord.model_validate_json((taken / new).read_text()).exit_status == 0
    assert sum(path.read_text() == "another session's" for path in taken.iterdir()) == 59
    assert len(list((session.results / "a/harbor_jobs/oracle").iterdir())) == 2


def test_results_go_where_they_are_told_to(
    write_task: WriteTask, run_tasks: RunTasks, tmp_path: Path, pytester: pytest.Pytester
) -> None:
    write_task("a", 1)
    run_tasks(f"--evocode-results={tmp_path}/deep/down", "tasks").has(
        f"evocode: results *{tmp_path.name}/deep/down, run *"
    )
    assert {path.name for path in (tmp_path / "deep/down").iterdir()} == {"a", "runs"}
    assert not (pytester.path / "evocode-results").exists()


@pytest.mark.docker
@pytest.mark.nightly
def test_artifacts_come_out_of_docker(write_task: WriteTask, run_tasks: RunTasks) -> None:
    toml = 'artifacts = [{ source = "/app", exclude = ["*.tmp"] }]'
    write_task("a", 1, toml=toml, solve={1: "echo line-1 > log.txt; touch x.tmp; ln -s / link"})
    session = run_tasks("tasks", env="docker")
    assert session.outcomes == {"passed": 1}
    assert files_below(session.attempt() / "steps/round-1/artifacts") == ["app/log.txt"]
    versions = session.run.versions
    assert versions.keys() >= {"Docker", "kernel", "Python"}
    assert all(each for (each,) in versions.values())


def test_a_trajectory_is_written_per_round(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        from pytest_evocode.agents import RoundTranscript
        from pytest_evocode.trajectories.atif import AgentInfo, Step, Trajectory

        class Talking:
            name = "talking"

            def run_round(self, context):
                step = Step(step_id=1, source="user", message=context.instruction)
                info = AgentInfo(name="talking", version="1")
                return RoundTranscript(trajectory=Trajectory(session_id="s", agent=info, steps=(step,)))

        def pytest_evocode_make_agent(name):
            return Talking() if name == "vendor/talking" else None
        """
    )
    write_task("a", 2)
    session = run_tasks("tasks", agent="vendor/talking")
    for index in (1, 2):
        path = session.attempt(agent="talking") / f"steps/round-{index}/agent/trajectory.json"
        trajectory = Trajectory.model_validate_json(path.read_text())
        assert [step.message for step in trajectory.steps] == [f"Append line-{index} to log.txt.\n"]


@pytest.mark.nightly
def test_an_interrupted_session_leaves_whole_files(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    pytester.makeconftest(
        """
        def pytest_runtest_logreport(report):
            if report.nodeid.endswith("round-2") and report.when == "teardown":
                raise KeyboardInterrupt
        """
    )
    write_task("a", 4, solve={4: "sleep 600"})
    session = run_tasks("tasks", subprocess=True)
    assert session.exit_status == pytest.ExitCode.INTERRUPTED
    # The suite of round 3 may have ended by then, though pytest was not told.
    recorded = (session.attempt() / "steps/round-3/round.json").exists()
    session.has(f"a *.  .  {'.' if recorded else '-'}  -")
    session.lacks("*Not all rounds were selected*")
    assert session.run.exit_status == pytest.ExitCode.INTERRUPTED
    for path in session.results.rglob("*"):
        assert not path.name.startswith(".")
        if path.suffix == ".json":
            json.loads(path.read_text())
    assert (session.attempt() / "steps/round-2/verifier/reward.txt").read_text() == "1.0\n"
    assert not (session.attempt() / "result.json").exists()
