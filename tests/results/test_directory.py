"""The results directory: where files go, and what they hold."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, tzinfo
from pathlib import Path

import pytest

from pytest_evocode.results.directory import STAMP, AttemptDirectory, claim_run, now, write_run
from pytest_evocode.results.records import AttemptRecord, Case, RoundRecord, RunRecord, Verdict
from pytest_evocode.trajectories.atif import AgentInfo, Step, ToolCall, Trajectory

RUN = "2026-01-02__03-04-05"
ROUND = RoundRecord(
    task="ledger",
    agent="oracle",
    attempt=2,
    round="round-1",
    index=1,
    declared_rounds=2,
    outcome="failed",
    verdict=Verdict(
        reward=1 / 3,
        rewards={"reward": 1 / 3},
        cases=(Case(id="a", status="passed"), Case(id="b", status="failed", reason="why", failure="new miss")),
    ),
)
TRAJECTORY = Trajectory(
    session_id="s",
    agent=AgentInfo(name="a", version="1"),
    steps=(
        Step(step_id=1, source="user", message="do"),
        Step(
            step_id=2,
            source="agent",
            tool_calls=(ToolCall(tool_call_id="1", function_name="f", arguments={"path": None}),),
        ),
    ),
)
ATTEMPT = AttemptRecord(
    task="ledger",
    agent="oracle",
    attempt=2,
    environment="sandbox",
    started=now(),
    finished=now(),
    declared_rounds=("round-1", "round-2"),
    rewards={"reward": 1 / 6},
    rounds=(ROUND,),
)
NEW_RUN = RunRecord(run="", started=now(), arguments=("-q",), environment="sandbox")


@pytest.fixture
def directory(tmp_path: Path) -> AttemptDirectory:
    return AttemptDirectory.of(tmp_path / "results", "ledger", "oracle", RUN, 2)


def files(root: Path) -> list[str]:
    return sorted(path.relative_to(root).as_posix() for path in root.rglob("*") if not path.is_dir())


def test_an_attempt_is_where_harbors_scripts_look_for_it(tmp_path: Path, directory: AttemptDirectory) -> None:
    directory.write_trajectory("round-1", TRAJECTORY)
    directory.write_round(ROUND, output="said\n", done=True)
    directory.write_attempt(ATTEMPT)
    attempt = f"ledger/harbor_jobs/oracle/{RUN}/ledger__a2"
    assert files(tmp_path / "results") == [
        f"{attempt}/result.json",
        f"{attempt}/steps/round-1/agent/trajectory.json",
        f"{attempt}/steps/round-1/round.json",
        f"{attempt}/steps/round-1/verifier/cases.json",
        f"{attempt}/steps/round-1/verifier/reward.txt",
        f"{attempt}/steps/round-1/verifier/test-stdout.txt",
    ]
    assert directory.artifacts("round-1") == tmp_path / "results" / attempt / "steps/round-1/artifacts"
    summary = "CASE_SUMMARY total_cases=2 success_count=1 fail_count=1\n"
    assert directory.verifier_output("round-1").read_text() == f"said\n{summary}"


def test_what_is_written_can_be_read_again(directory: AttemptDirectory) -> None:
    directory.write_trajectory("round-1", TRAJECTORY)
    directory.write_round(ROUND, output="", done=True)
    directory.write_attempt(ATTEMPT)
    assert directory.read_attempt() == ATTEMPT
    assert directory.read_rounds(["round-1", "round-2"]) == {"round-1": ROUND}
    step = directory.path / "steps/round-1"
    assert Trajectory.model_validate_json((step / "agent/trajectory.json").read_text()) == TRAJECTORY
    assert float((step / "verifier/reward.txt").read_text()) == 1 / 3
    assert json.loads((step / "verifier/cases.json").read_text()) == [
        {"id": "a", "status": "passed"},
        {"id": "b", "status": "failed", "reason": "why", "failure": "new miss"},
    ]


def test_a_trajectory_has_no_nulls_where_others_read_lists(directory: AttemptDirectory) -> None:
    directory.write_trajectory("round-1", TRAJECTORY)
    written = json.loads((directory.path / "steps/round-1/agent/trajectory.json").read_text())
    assert [len(step.get("tool_calls", [])) for step in written["steps"]] == [0, 1]
    assert written["steps"][1]["tool_calls"][0]["arguments"] == {"path": None}
    assert "final_metrics" not in written


def test_the_reward_on_disk_is_no_pass_of_a_round_that_was_failed_all_the_same(directory: AttemptDirectory) -> None:
    """A strict session does that, and other scripts know nothing but this file."""
    verdict = Verdict(reward=1.0, rewards={"reward": 1.0})
    directory.write_round(ROUND.model_copy(update={"verdict": verdict}), output="", done=True)
    assert (directory.path / "steps/round-1/verifier/reward.txt").read_text() == "0.0\n"
    assert directory.read_rounds(["round-1"])["round-1"].verdict == verdict


@pytest.mark.parametrize(
    ("output", "written"),
    [
        ("", "CASE_SUMMARY total_cases=2 success_count=1 fail_count=1\n"),
        ("said", "said\nCASE_SUMMARY total_cases=2 success_count=1 fail_count=1\n"),
        ("CASE_SUMMARY total_cases=9 success_count=8 fail_count=1\nbye", None),
    ],
)
def test_output_ends_with_the_totals_unless_the_suite_gave_some(
    directory: AttemptDirectory, output: str, written: str | None
) -> None:
    directory.write_round(ROUND, output=output, done=True)
    assert directory.verifier_output("round-1").read_text() == (written or output)


def test_output_of_a_suite_without_cases_is_left_alone(directory: AttemptDirectory) -> None:
    directory.write_round(ROUND.model_copy(update={"verdict": None}), output="Traceback", done=True)
    assert directory.verifier_output("round-1").read_text() == "Traceback"


def test_an_attempt_on_disk_has_the_numbers_of_the_cases_and_a_reader_the_cases(directory: AttemptDirectory) -> None:
    directory.write_round(ROUND, output="", done=True)
    directory.write_attempt(ATTEMPT)
    (round_,) = json.loads((directory.path / "result.json").read_text())["rounds"]
    assert (round_["verdict"]["cases"], round_["verdict"]["counts"]) == ([], [1, 2])
    assert directory.read_attempt() == ATTEMPT


def test_a_round_without_a_verdict_has_no_reward(directory: AttemptDirectory) -> None:
    error = ROUND.model_copy(update={"outcome": "error", "verdict": None})
    directory.write_round(error, output="Traceback", done=False)
    assert files(directory.path) == ["steps/round-1/verifier/test-stdout.txt"]


def test_a_round_that_was_not_reached_leaves_nothing(directory: AttemptDirectory) -> None:
    unreached = ROUND.model_copy(update={"outcome": "not reached", "verdict": None})
    directory.write_round(unreached, output=None, done=False)
    assert not directory.path.exists()


def test_text_that_is_not_valid_unicode_is_written_all_the_same(directory: AttemptDirectory) -> None:
    broken = ROUND.model_copy(update={"cause": "half \ud800 and caf\u00e9"})
    step = Step(step_id=1, source="agent", message="\udfff", extra={"nested": ["\ud83d"]})
    directory.write_trajectory("round-1", TRAJECTORY.model_copy(update={"steps": (step,)}))
    directory.write_round(broken, output="\ud800", done=True)
    directory.write_attempt(ATTEMPT.model_copy(update={"rounds": (broken,)}))
    read = AttemptRecord.model_validate_json((directory.path / "result.json").read_text(encoding="utf-8"))
    assert read.rounds[0].cause == "half ? and caf\u00e9"


def test_an_argument_that_is_not_valid_unicode_does_not_keep_a_run_from_starting(tmp_path: Path) -> None:
    named = claim_run(tmp_path, NEW_RUN.model_copy(update={"arguments": (os.fsdecode(b"caf\xe9"),)}))
    read = RunRecord.model_validate_json((tmp_path / f"runs/{named.run}.json").read_text(encoding="utf-8"))
    assert read.arguments == ("caf?",)


def test_files_can_be_read_by_everybody(tmp_path: Path, directory: AttemptDirectory) -> None:
    before = os.umask(0o077)
    try:
        directory.write_trajectory("round-1", TRAJECTORY)
        directory.write_round(ROUND, output="said", done=True)
        directory.write_attempt(ATTEMPT)
        claim_run(tmp_path / "results", NEW_RUN)
    finally:
        os.umask(before)
    modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*") if path.is_file()}
    assert len(modes) == 7
    assert set(modes.values()) == {0o644}


# Runs.


def test_a_run_is_named_after_its_time(tmp_path: Path) -> None:
    before = datetime.now()
    named = claim_run(tmp_path, NEW_RUN)
    assert before <= datetime.strptime(named.run[:-3], f"{STAMP}-%f") <= datetime.now()
    assert re.fullmatch(r"\d{4}-\d\d-\d\d__\d\d-\d\d-\d\d-\d{9}", named.run)
    assert files(tmp_path) == [f"runs/{named.run}.json"]
    assert RunRecord.model_validate_json((tmp_path / f"runs/{named.run}.json").read_text()) == named


def test_the_end_of_a_run_replaces_its_first_record(tmp_path: Path) -> None:
    named = claim_run(tmp_path, NEW_RUN)
    ended = named.model_copy(update={"finished": now(), "exit_status": 1})
    write_run(tmp_path, ended)
    assert files(tmp_path) == [f"runs/{named.run}.json"]
    assert RunRecord.model_validate_json((tmp_path / f"runs/{named.run}.json").read_text()) == ended


def test_runs_that_start_in_one_second_get_names_of_their_own(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        runs = [claimed.run for claimed in pool.map(lambda _: claim_run(tmp_path, NEW_RUN), range(24))]
    assert len(set(runs)) == 24
    assert files(tmp_path) == sorted(f"runs/{run}.json" for run in runs)
    for run in runs:
        assert RunRecord.model_validate_json((tmp_path / f"runs/{run}.json").read_text()).run == run


def test_runs_of_several_machines_that_start_at_one_moment_get_names_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Stopped(datetime):
        @classmethod
        def now(cls, tz: tzinfo | None = None) -> Stopped:
            return cls(2026, 11, 29, 15)

    monkeypatch.setattr("pytest_evocode.results.directory.datetime", Stopped)
    runs = {claim_run(tmp_path / str(machine), NEW_RUN).run for machine in range(3)}
    assert len(runs) > 1
    assert all(run.startswith("2026-11-29__15-00-00-000000") for run in runs)


def test_processes_that_start_at_once_get_names_of_their_own(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from pathlib import Path\n"
        "from pytest_evocode.results.records import RunRecord\n"
        "from pytest_evocode.results.directory import claim_run\n"
        "record = RunRecord(run='', started='', arguments=(), environment='sandbox')\n"
        "sys.stdin.read()\n"
        "print(claim_run(Path(sys.argv[1]), record).run)\n"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    processes = [subprocess.Popen(command, text=True, **pipes) for _ in range(4)]  # type: ignore[call-overload]
    for process in processes:
        process.stdin.close()  # All of them wait for it, so that they claim together.
    names = set()
    for process in processes:
        with process:
            names.add(process.stdout.read().strip())
    assert len(names) == 4
    assert files(tmp_path) == sorted(f"runs/{name}.json" for name in names)


def test_the_time_in_records_has_an_offset() -> None:
    assert datetime.fromisoformat(now()).utcoffset() is not None
