"""Rounds without a ``test.sh``: what a session says of them."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.acceptance.tasks import FORK

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(2)


def keeps(line: int, marker: str = "") -> str:
    """Tests of a round that append a line to log.txt, the first with a marker."""
    return f'''
from pathlib import Path

import pytest

{marker or f'@pytest.mark.requirement("line-{line}", kind="core")'}
def test_line(record_property):
    """Line {line} is kept.

    Whatever comes later.
    """
    lines = Path("log.txt").read_text().splitlines()
    record_property("input", "log.txt")
    record_property("expected", "line-{line}")
    record_property("actual", lines[-1])
    assert "line-{line}" in lines

def test_log():
    assert Path("log.txt").exists()
'''


NATIVE = {1: keeps(1), 2: keeps(2), 3: keeps(3)}
BREAKS_ROUND_1 = "sed -i /line-1/d log.txt; echo line-2 >> log.txt"
LOG = '[verifier]\nuser = "nobody"\n'
PLACE = '[metadata.evocode]\nverify_in = "in-place"\n'


def test_failing_cases_are_told_and_recorded_with_all_that_their_tests_say(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 3, native=NATIVE, solve={2: BREAKS_ROUND_1, 3: "echo wrong >> log.txt"})
    write_task("recorded", 1, native=NATIVE, solve={1: "echo wrong > log.txt"})
    old = keeps(1, '@pytest.mark.requirement("line-1", retired="line-2")')
    write_task("stale", 2, native={1: old, 2: NATIVE[2]}, solve={2: "true"})
    session = run_tasks("--json-report", "tasks")
    assert session.outcomes == {"passed": 2, "failed": 4}
    session.has(
        "round-2 failed: 1 of 4 cases failed (0 new misses, 1 regression)",
        "regressions: passed in an earlier round of this attempt (1)",
        "  round-1/test_native.py::test_line [[]round-1 line-1 core]",
        "      Line 1 is kept.",
        "      input: log.txt",
        "      expected: line-1",
        "      actual: line-2",
        "      AssertionError: assert 'line-1' in [[]'line-2'[]]",
        "round-3 failed: 2 of 6 cases failed (1 new miss, 1 regression)",
        "new misses: first required in this round (1)",
        "  round-3/test_native.py::test_line [[]round-3 line-3 core]",
        "regressions: passed in an earlier round of this attempt (1)",
        "  round-1/test_native.py::test_line [[]round-1 line-1 core]",
    )
    session.has(
        "round-2 failed: 1 of 3 cases failed (0 new misses, 0 regressions, 1 stale)",
        "stale: what these replace is still there (1)",
        "  round-2/test_native.py::test_line [[]round-2 line-2 core]",
    )
    check_recorded(session)


def check_recorded(session: Session) -> None:
    """Cases are in the report and in the file of a round's cases."""
    wanted: list[dict[str, Any]] = [
        {
            "id": "round-1/test_native.py::test_line",
            "status": "failed",
            "origin": "round-1",
            "requirement": "line-1",
            "kind": "core",
            "intent": "Line 1 is kept.",
            "input": "log.txt",
            "expected": "line-1",
            "actual": "wrong",
            "reason": "AssertionError: assert 'line-1' in ['wrong']",
            "failure": "new miss",
        },
        {"id": "round-1/test_native.py::test_log", "status": "passed", "origin": "round-1"},
    ]
    (test,) = (each for each in session.json_report()["tests"] if "tasks/recorded/" in each["nodeid"])
    (cases,) = (entry["evocode_cases"] for entry in test["user_properties"] if "evocode_cases" in entry)
    assert cases == wanted
    written = json.loads((session.attempt("recorded") / "steps/round-1/verifier/cases.json").read_text())
    assert [{name: value for name, value in case.items() if value} for case in written] == wanted
    assert "1 failed, 1 passed" in (session.attempt("recorded") / "steps/round-1/verifier/test-stdout.txt").read_text()


def test_native_tests_stand_beside_rounds_with_a_script_and_at_the_top_of_a_task_of_a_single_step(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("mixed", 3, native={2: NATIVE[2]}, files={"tests/test_shared.py": "def test_shared():\n    pass\n"})
    files = {"tests/test_a.py": NATIVE[1], "instruction.md": "Append line-1 to log.txt."}
    single = write_task("single", 0, toml=FORK, files=files)
    (single / "solution").mkdir()
    (single / "solution/solve.sh").write_text("echo line-1 >> log.txt\n")
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 4}
    cases = [[case.id for case in record.verdict.cases] for record in session.record("mixed").rounds if record.verdict]
    assert cases == [
        ["has-line-1"],
        ["round-2/test_native.py::test_line", "round-2/test_native.py::test_log", "test_shared.py::test_shared"],
        ["has-line-1", "has-line-2", "has-line-3"],
    ]
    (record,) = session.record("single").rounds
    assert record.verdict is not None
    assert {(case.id, case.origin) for case in record.verdict.cases} == {
        ("test_a.py::test_line", "round-1"),
        ("test_a.py::test_log", "round-1"),
    }


def test_a_suite_in_place_as_another_user_leaves_nothing_behind(write_task: WriteTask, run_tasks: RunTasks) -> None:
    verify_in_place_as_another_user(write_task, run_tasks, "sandbox")


@pytest.mark.docker
@pytest.mark.nightly
def test_a_suite_in_place_as_another_user_leaves_nothing_behind_in_docker(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    verify_in_place_as_another_user(write_task, run_tasks, "docker")


def verify_in_place_as_another_user(write_task: WriteTask, run_tasks: RunTasks, env: str) -> None:
    look = "ls -A /tests /logs/verifier > found 2>/dev/null; echo line-2 >> log.txt"
    user = "\ndef test_user(tmp_path):\n    import os\n    assert os.getuid() == 65534\n"
    write_task(
        "a",
        2,
        native={1: NATIVE[1] + user, 2: NATIVE[2] + "\ndef test_found():\n    assert not Path('found').read_text()\n"},
        solve={2: look},
        toml=f"{LOG}{PLACE}",
    )
    assert run_tasks("tasks", env=env).outcomes == {"passed": 2}


# What the author has to correct.


def test_wrong_markers_are_errors_of_the_collection(write_task: WriteTask, run_tasks: RunTasks) -> None:
    wrong = '@pytest.mark.requirement("line-1", kind="best")'
    task = write_task("a", 2, native={1: keeps(1, wrong), 2: keeps(2, '@pytest.mark.requirement("b", retired="c")')})
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1}
    first, second = (task / f"steps/round-{index}/tests/test_native.py" for index in (1, 2))
    session.has(
        f'{first}:6: kind="best" is none of core, boundary, error, integration',
        f'{second}:6: retired="c" names no round of the task and no requirement; there are: round-1, round-2, b',
    )
    assert not (session.results / "a").exists()


@pytest.mark.nightly  # By day tests/verifier/test_native_faults.py and test_toolbox.py have the messages.
def test_a_broken_suite_is_nobodys_failure_and_an_image_without_python_an_error_before_any_turn(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    broken = write_task("broken", 2, native={1: "import nosuch\n\ndef test_x():\n    pass\n", 2: NATIVE[2]})
    dockerfile = "FROM debian:bookworm-slim\nWORKDIR /app\nRUN rm -f /usr/bin/python* /usr/local/bin/python*\n"
    bare = write_task("bare", 2, native={2: NATIVE[2]}, dockerfile=dockerfile)
    session = run_tasks("tasks", agent="nop")
    # In round 2 of the broken one a test fails by itself, so there is a verdict all the same.
    assert session.outcomes == {"errors": 2, "failed": 1, "skipped": 1}
    where = f"{broken}/steps/round-1/tests/test_native.py:1"
    said = "does not import: ModuleNotFoundError: No module named 'nosuch'"
    session.has(f"{where}: {said}", "That is no verdict, *", f"note: not counted: {where}: {said}")
    session.has(f"{bare}/environment/Dockerfile: the image has no Python, which a native suite needs; *")


@pytest.mark.docker
@pytest.mark.nightly
def test_an_image_without_python_is_an_error_in_docker(write_task: WriteTask, run_tasks: RunTasks) -> None:
    dockerfile = "FROM python:3.11-slim-bookworm\nWORKDIR /app\nRUN rm -f /usr/local/bin/python* /usr/bin/python*\n"
    task = write_task("a", 1, native=NATIVE, dockerfile=dockerfile)
    session = run_tasks("tasks", env="docker")
    session.has(f"{task}/environment/Dockerfile: the image has no Python, which a native suite needs; *")
