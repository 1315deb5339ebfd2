"""``evocode.lock``: the cases that the reference solutions pass, written down and counted by."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.tasks.lockfile import content_hash

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = [pytest.mark.turns(2), pytest.mark.slow]

NATIVE = {
    1: """
from pathlib import Path
import pytest

LINES = Path("log.txt").read_text().splitlines()

@pytest.mark.requirement("first")
@pytest.mark.parametrize("n", [1, 2])
def test_first(n):
    assert "line-1" in LINES
""",
    2: """
from pathlib import Path

def test_second():
    assert "line-2" in Path("log.txt").read_text() if Path("log.txt").exists() else ""
""",
}
PINNED = {
    "round-1": {"round-1/test_native.py::test_first[1]": "first", "round-1/test_native.py::test_first[2]": "first"},
    "round-2": {
        "round-1/test_native.py::test_first[1]": "first",
        "round-1/test_native.py::test_first[2]": "first",
        "round-2/test_native.py::test_second": "",
    },
}


def pin(run_tasks: RunTasks, *arguments: str) -> Session:
    return run_tasks("--evocode-pin", *arguments, "tasks", agent=None)


def lock(task: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((task / "evocode.lock").read_text())
    return found


@pytest.mark.parametrize("workers", [pytest.param((), id="alone"), pytest.param(("-n", "2"), id="workers")])
@pytest.mark.matrix
def test_a_clean_run_of_the_oracle_is_pinned(
    write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    native, script = write_task("a", 2, native=NATIVE), write_task("b", 2)
    session = pin(run_tasks, *workers)
    assert session.outcomes == {"passed": 4}
    session.has(
        f"evocode: pinned: {native}/evocode.lock, 5 cases in 2 of 2 rounds",
        f"evocode: pinned: {script}/evocode.lock, 3 cases in 2 of 2 rounds",
    )
    written = lock(native)
    assert written["image"]
    assert {**written, "image": ""} == {
        "version": 1,
        "task_hash": content_hash(native),
        "environment": "sandbox",
        "image": "",
        "rounds": PINNED,
    }
    assert lock(script)["rounds"] == {
        "round-1": {"has-line-1": ""},
        "round-2": {"has-line-1": "", "has-line-2": ""},
    }


@pytest.mark.nightly
def test_what_the_oracle_does_not_pass_is_not_pinned(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 2, native=NATIVE, solve={2: "true"})
    good = write_task("b", 1, native={1: NATIVE[2].replace("line-2", "line-1")})
    broken = write_task("c", 1, native={1: "import nosuch\n\ndef test_x():\n    pass\n"})
    session = pin(run_tasks)
    session.has(
        "evocode: not pinned: a: round-2 did not pass (failed)",
        f"evocode: pinned: {good}/evocode.lock, 1 cases in 1 of 1 rounds",
        "evocode: not pinned: c: round-1 did not pass (error)",
    )
    assert not (broken / "evocode.lock").exists()
    assert session.exit_status == 1


def test_rounds_that_pass_are_not_enough_for_a_task_to_be_pinned(
    write_task: WriteTask, run_tasks: RunTasks, pytester: pytest.Pytester
) -> None:
    """One round was not selected, two have no case that passed, and a task changes meanwhile."""
    passes = "echo 1 > /logs/verifier/reward.txt"
    changing = write_task("changing", 2)
    empty = write_task("empty", 3, test={2: passes, 3: f"echo CASE_RESULT case_id=x status=fail; {passes}"})
    partial = write_task("partial", 2)
    pytester.makeconftest(f"""
        def pytest_runtest_logreport(report):
            if report.when == "call" and "changing" in report.nodeid and report.nodeid.endswith("round-1"):
                with open({str(changing / "steps/round-2/instruction.md")!r}, "a") as file:
                    file.write("More.")
    """)
    session = pin(run_tasks, "-k", "not partial or round-1")
    assert session.outcomes == {"passed": 6, "deselected": 1}
    session.has(
        "evocode: not pinned: changing: its files changed meanwhile; run it again",
        "evocode: not pinned: empty: round-2, round-3 passed without a case that passed, so there is nothing to pin: "
        "have test.sh print a line 'CASE_RESULT case_id=NAME status=success' for each case, or write ctrf.json, "
        "report.json or junit.xml to /logs/verifier",
        "evocode: not pinned: partial: round-2 was not selected",
    )
    assert session.exit_status == 1
    assert not any((task / "evocode.lock").exists() for task in (changing, empty, partial))


def test_agents_are_counted_by_the_pinned_cases_until_the_task_changes(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    """The native suite cannot be imported without log.txt, and the script breaks off there after its first case."""
    script = """
        echo CASE_RESULT case_id=one status=success
        echo 0 > /logs/verifier/reward.txt
        cat log.txt || exit 1
        echo CASE_RESULT case_id=two status=success
        echo 1 > /logs/verifier/reward.txt
    """
    task = write_task("a", 2, native=NATIVE)
    write_task("b", 1, test={1: script})
    # A lock that is stale is written anew.
    (task / "evocode.lock").write_text('{"task_hash": "", "environment": "", "image": "", "rounds": {}}')
    assert pin(run_tasks).outcomes == {"passed": 3}
    pinned = lock(task)
    assert pinned["rounds"] == PINNED
    # It holds whatever Python leaves behind.
    for directory in ("__pycache__", ".pytest_cache"):
        (task / "steps/round-1/tests" / directory).mkdir()
        (task / "steps/round-1/tests" / directory / "left").touch()
    session = run_tasks("--evocode-agent=oracle", "--evocode-agent=nop", "--evocode-replay", "tasks", agent=None)
    assert session.outcomes == {"passed": 3, "failed": 3}
    session.has(
        "round-1 failed: 2 of 2 cases failed (2 new misses, 0 regressions)",
        "  round-1/test_native.py::test_first[[]1[]] [[]round-1 first]",
        "      not run: *steps/round-1/tests/test_native.py:5: does not import: FileNotFoundError: *",
        "round-2 failed: 3 of 3 cases failed (1 new miss, 0 regressions, 2 carried)",
        "agent * Pinned Case Score *",
        "oracle * 100.0 * 100.0 * 100.0 *",
        "nop * 0.0 * 50.0 * 25.0 *",
    )
    # Neither crash shrinks the number of cases.
    assert session.run.scores["nop"]["case_score"] == 50.0
    assert session.run.scores["nop"]["pinned_case_score"] == 25.0
    (task / "steps/round-2/instruction.md").write_text("Something else.")
    session = run_tasks("-W", "default", "tasks/a/task.toml::nop::round-1", agent="nop")
    session.has(f"*{task}/evocode.lock: stale, the task has changed since; pin it again with --evocode-pin")
    session.has(f"*{task}/evocode.lock:1: PytestWarning*")
    assert session.outcomes["failed"] == 1
    assert session.run.scores["nop"]["pinned_case_score"] is None
    session.lacks("*Pinned Case Score*")
    assert lock(task) == pinned


@pytest.mark.nightly  # By day tests/trial/test_control_runs.py has whose fault it is.
def test_without_a_lock_a_suite_that_the_agent_keeps_from_being_imported_is_a_failure(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, native=NATIVE)
    # It gives no verdict, which the reference solution shows to be the agent's doing.
    assert run_tasks("tasks", agent="nop").outcomes == {"failed": 2}


def test_a_lock_that_is_none_is_an_error_of_the_task(write_task: WriteTask, run_tasks: RunTasks) -> None:
    junk = {
        "": "Invalid JSON: EOF while parsing a value at line 1 column 0",
        "[]": "Input should be an object",
        '{"version": 1}': "task_hash: Field required and 3 more",
        '{"version": 2, "task_hash": "", "environment": "", "image": "", "rounds": {}}': "version: Input should be 1",
        '{"task_hash": "", "environment": "", "image": "", "rounds": {"round-1": ["a"]}}': (
            "rounds.round-1: Input should be *"
        ),
    }
    tasks = {write_task(f"task-{number}", 1): text for number, text in enumerate(junk)}
    for task, text in tasks.items():
        (task / "evocode.lock").write_text(text)
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 5}
    session.has(
        *(
            f"{task}/evocode.lock: cannot be read ({junk[text]}); remove it, and write it anew with --evocode-pin"
            for task, text in tasks.items()
        )
    )
