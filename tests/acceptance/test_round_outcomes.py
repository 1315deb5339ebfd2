"""Passed, failed, skipped or an error: what a session says of each round."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)

FAILS = "echo 0 > /logs/verifier/reward.txt"
#: A solution of round 2 that does its own work and undoes that of round 1.
BREAKS_ROUND_1 = "sed -i /line-1/d log.txt; echo line-2 >> log.txt"


def told(session: Session, task: str, index: int) -> pytest.LineMatcher:
    """What is printed of a failed round, below its headline."""
    lines = session.result.outlines
    (start,) = (at for at, line in enumerate(lines) if re.fullmatch(f"_+ {task} oracle round-{index} _+", line))
    end = next(at for at, line in enumerate(lines) if at > start and re.match("___|===", line))
    return pytest.LineMatcher(lines[start + 1 : end])


def test_a_failed_round_names_its_cases_its_reward_and_its_suites_output(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, solve={2: "echo wrong >> log.txt"})
    write_task("bare", 1, test={1: "echo what the suite says; echo 0.25 > /logs/verifier/reward.txt"})
    write_task("contradicted", 1, test={1: f"echo 'CASE_RESULT case_id=x status=success'; {FAILS}"})
    odd = "echo CASE_RESULT case_id=x status=failed; echo CASE_SUMMARY total_cases=2"
    write_task("odd", 1, test={1: f"{odd}; echo 1 > /logs/verifier/reward.txt"})
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 2, "failed": 3}
    assert session.exit_status == session.run.exit_status == 1
    told(session, "a", 2).fnmatch_lines(
        [
            "round-2 failed: 1 of 2 cases failed (1 new miss, 0 regressions)",
            "new misses: first required in this round (1)",
            "  has-line-2 [[]round-2 core]",
            "      line 2 is kept",
            "      expected: line-2",
            "      actual: wrong",
            "suite output: *",
        ]
    )
    bare = told(session, "bare", 1)
    bare.fnmatch_lines(["round-1 failed: reward 0.25, no failed case reported"])
    (line,) = (line for line in bare.lines if line.startswith("suite output: "))
    with open(line.removeprefix("suite output: "), encoding="utf-8") as file:
        assert file.read() == "what the suite says\n"
    # A reward that contradicts its cases is kept and flagged, and flags of passed rounds are printed too.
    told(session, "contradicted", 1).fnmatch_lines(["note: the reward is 0, but none of 1 cases failed"])
    session.has(
        "*= evocode notes on passed rounds =*",
        "odd, oracle, round-1: CASE_SUMMARY says total_cases=2, its CASE_RESULT lines give 1",
        "odd, oracle, round-1: the reward is 1, but 1 of 1 cases failed",
        "*= evocode benchmark =*",
        "FAILED tasks/a/task.toml::oracle::round-2 - round-2 failed: 1 of 2 cases failed*",
    )


def test_new_misses_regressions_and_what_later_rounds_carry_are_told_apart(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("apart", 2, solve={2: "rm log.txt; touch log.txt"})
    write_task("broken", 4, solve={2: BREAKS_ROUND_1, 4: "sed -i 1iline-1 log.txt; echo line-4 >> log.txt"})
    write_task("never", 3, solve={1: "touch log.txt"})
    session = run_tasks("tasks")
    # No failed round stops the chain.
    assert session.outcomes == {"passed": 3, "failed": 6}
    told(session, "apart", 2).fnmatch_lines(
        [
            "round-2 failed: 2 of 2 cases failed (1 new miss, 1 regression)",
            "new misses: *(1)",
            "  has-line-2*",
            "regressions: *(1)",
            "  has-line-1*",
        ]
    )
    broken = told(session, "broken", 2)
    broken.fnmatch_lines(
        [
            "round-2 failed: 1 of 2 cases failed (0 new misses, 1 regression)",
            "regressions: passed in an earlier round of this attempt (1)",
            "  has-line-1 [[]round-1 core]",
        ]
    )
    broken.no_fnmatch_line("new misses: *")
    told(session, "broken", 3).fnmatch_lines(
        [
            "round-3 failed: 1 of 3 cases failed (0 new misses, 1 regression)",
            "regressions: passed in an earlier round of this attempt (1)",
            "  has-line-1 [[]round-1 core]",
        ]
    )
    rounds = session.record("never").rounds
    kinds = [[case.failure for case in record.verdict.cases] for record in rounds if record.verdict]
    assert kinds == [["new miss"], ["carried", None], ["carried", None, None]]


def test_vv_shows_all_of_what_a_case_says(write_task: WriteTask, run_tasks: RunTasks) -> None:
    line = r"""echo 'CASE_RESULT case_id=x status=fail failure_reason="'$(seq -s '\n' 3000)'"'"""
    write_task("a", 1, test={1: f"{line}; {FAILS}"})
    run_tasks("tasks").has("      24", "      ... at least * more lines, use '-vv' to show", "suite output: *")
    run_tasks("-vv", "tasks").has("      3000", "suite output: *", "CASE_RESULT case_id=x *1500*")


@pytest.mark.parametrize("style", ["native", "auto", "long", "short"])
@pytest.mark.matrix
def test_every_traceback_style_shows_the_cases_and_no_source(
    write_task: WriteTask, run_tasks: RunTasks, style: str
) -> None:
    write_task("a", 1, solve={1: "echo wrong > log.txt"})
    session = run_tasks(f"--tb={style}", "tasks")
    session.has("*has-line-1*", "*expected: line-1", "*actual: wrong")
    session.lacks("*RoundFailed*")
    session.lacks("*.py:[0-9]*")


@pytest.mark.parametrize(
    ("style", "line"),
    [
        ("line", "*round-1 failed: 1 of 1 cases failed*"),
        ("no", "FAILED tasks/a/task.toml::oracle::round-1 - round-1 failed: 1 of 1 cases failed*"),
    ],
)
@pytest.mark.matrix
def test_tb_line_is_one_line_for_a_round_and_tb_no_the_summarys(
    write_task: WriteTask, run_tasks: RunTasks, style: str, line: str
) -> None:
    write_task("a", 1, solve={1: "echo wrong > log.txt"})
    session = run_tasks(f"--tb={style}", "tasks")
    session.has(line)
    session.lacks("*expected: line-1*")


@pytest.mark.parametrize(("option", "failures"), [("-x", 1), ("--maxfail=2", 2)])
@pytest.mark.matrix
def test_a_session_stops_at_so_many_failed_rounds(
    write_task: WriteTask, run_tasks: RunTasks, option: str, failures: int
) -> None:
    write_task("a", 3, test={1: FAILS, 2: FAILS, 3: FAILS})
    write_task("b", 1)
    session = run_tasks(option, "tasks")
    assert session.outcomes == {"failed": failures}
    assert session.exit_status == 1
    session.has(f"*stopping after {failures} failures*")
    assert not (session.results / "b").exists()


def test_q_leaves_out_header_and_grid_of_passed_rounds(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2)
    session = run_tasks("-q", "tasks")
    assert session.outcomes == {"passed": 2}
    assert session.exit_status == 0
    session.has("..*", "agent * Dataset Score*", "oracle * 100.0 *", "2 passed in *")
    session.lacks("evocode: *")
    session.lacks("round *1*2")


def test_qq_still_shows_failures_and_the_score(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, test={1: FAILS})
    session = run_tasks("-qq", "tasks")
    session.has("round-1 failed: reward 0, no failed case reported", "oracle * 0.0 *")
    session.lacks("*in *s")


@pytest.mark.parametrize("option", ["-rA", "-rs"])
@pytest.mark.matrix
def test_rounds_are_listed_by_node_id_with_their_own_durations_and_with_reasons(
    write_task: WriteTask, run_tasks: RunTasks, option: str
) -> None:
    write_task("a", 3, test={1: FAILS}, step={1: "min_reward = 1.0"})
    write_task("b", 1, solve={1: "sleep 0.6; echo line-1 >> log.txt"})
    session = run_tasks("-v", option, "--durations=5", "--durations-min=0.5", "tasks")
    session.has(
        "tasks/a/task.toml::oracle::round-1 FAILED *25%*",
        "tasks/b/task.toml::oracle::round-1 PASSED *100%*",
        "*slowest 5 durations*",
        "*s call * tasks/b/task.toml::oracle::round-1",
        "*short test summary info*",
        *(["PASSED tasks/b/task.toml::oracle::round-1"] if option == "-rA" else []),
        "SKIPPED [[]2[]] tasks/a/task.toml:1: not reached: round-1 stayed below its min_reward",
        *(["FAILED tasks/a/task.toml::oracle::round-1 - round-1 failed: reward 0*"] if option == "-rA" else []),
    )
    if option == "-rs":
        session.lacks("FAILED *")
