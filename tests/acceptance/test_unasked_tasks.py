"""Tasks in sessions that were not asked to run any: pytest is kept out of them, and whatever is beside them runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.test_collecting_tasks import HOSTILE
from tests.inner_sessions import UNUSED

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

ROUND_TESTS = "tasks/a/steps/round-1/tests"
SOLUTION = {"steps/round-1/solution/test_product.py": "raise RuntimeError('imported on the host')"}


@pytest.fixture(autouse=True)
def _repository(pytester: pytest.Pytester, write_task: WriteTask) -> None:
    """A repository with two tasks, one of them single-step, and unit tests."""
    write_task("a", 2, files=HOSTILE | SOLUTION)
    write_task("single", 0, files={"instruction.md": "Write it.", **HOSTILE})
    pytester.mkdir("unit").joinpath("test_unit.py").write_text("def test_unit(shared): assert shared == 1")
    pytester.makeconftest("import pytest\n@pytest.fixture\ndef shared(): return 1")


@pytest.fixture(name="run")
def _run(run_tasks: RunTasks) -> RunTasks:
    def run(*arguments: str, subprocess: bool = False) -> Session:
        return run_tasks(*arguments, agent=None, env=None, subprocess=subprocess)

    return run  # type: ignore[return-value]


@pytest.mark.parametrize(
    "arguments",
    [
        (),
        (".",),
        ("tasks", "unit"),
        ("tasks/a", "unit/test_unit.py::test_unit"),
        ("--rootdir=tasks/a", "--confcutdir=.", "."),
        ("--import-mode=importlib", "--doctest-modules", "--doctest-glob=*.md"),
        ("--confcutdir=.", "--keep-duplicates", ".", "tasks/single"),
        ("-o", "testpaths=tasks/a unit"),
        ("-o", "testpaths=tasks/* unit"),
        ("-o", "python_files=*.py", "unit", "tasks"),
    ],
    ids=" ".join,
)
@pytest.mark.matrix
def test_the_tests_beside_tasks_run(run: RunTasks, arguments: tuple[str, ...]) -> None:
    session = run(*arguments)
    assert session.outcomes == {"passed": 1}, session.text
    assert session.exit_status == 0
    session.lacks("*evocode:*")


@pytest.mark.slow
@pytest.mark.nightly
def test_the_tests_beside_tasks_run_in_workers(run: RunTasks) -> None:
    session = run("-n1", subprocess=True)
    assert session.outcomes == {"passed": 1}, session.text


def test_the_value_of_an_option_may_be_longer_than_a_path(pytester: pytest.Pytester, run: RunTasks) -> None:
    pytester.makeconftest("def pytest_addoption(parser): parser.addoption('--mine')\n")
    (pytester.path / "unit/test_unit.py").write_text("def test_unit(): pass")
    assert run("--mine", "x" * 5000, "unit", "tasks").outcomes == {"passed": 1}


def test_a_task_named_like_a_test_directory_is_left_alone_as_well(
    pytester: pytest.Pytester, write_task: WriteTask, run: RunTasks
) -> None:
    write_task("a", 1, files=HOSTILE).rename(pytester.path / "tests-of-agents")
    assert run().outcomes == {"passed": 1}


@pytest.mark.parametrize("argument", ["tasks", "tasks/a", "tasks/single"])
@pytest.mark.matrix
def test_nothing_but_tasks_is_no_test_and_says_what_to_add(run: RunTasks, argument: str) -> None:
    session = run(argument)
    assert session.exit_status == pytest.ExitCode.NO_TESTS_COLLECTED
    session.has("evocode: tasks run with an agent only: add --evocode-agent=oracle (or another), or --evocode-check")


def test_pytest_can_be_started_in_a_task(run: RunTasks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir("tasks/single")
    session = run()
    assert session.exit_status == pytest.ExitCode.NO_TESTS_COLLECTED
    session.has("*add --evocode-agent=oracle*")


@pytest.mark.parametrize(
    ("argument", "says"),
    [
        ("tasks/a/task.toml::oracle::round-1", "round-1 is a round of a task, *; add --evocode-agent=oracle"),
        ("tasks/a/task.toml::oracle.2", "oracle.2 is an attempt of a task, *; add --evocode-agent=oracle"),
        ("tasks/a/task.toml::gpt-5::round-1", "*; add --evocode-agent=AGENT for the one called gpt-5 here"),
        ("tasks/a/task.toml::check::lint", "this is a check of a task; add --evocode-check"),
        ("tasks/a/task.toml::warm::image", "this is made ready for later runs; add --evocode-warm"),
        ("tasks/a/task.toml", "tasks run with an agent only; add --evocode-agent=oracle (or another)*"),
    ],
)
@pytest.mark.matrix
def test_a_round_without_its_agent_is_a_usage_error_that_says_which(run: RunTasks, argument: str, says: str) -> None:
    session = run(argument, "unit")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([f"ERROR: {argument}: {says}"])
    assert session.text.count("ERROR") == 1


@pytest.mark.parametrize("argument", [ROUND_TESTS, f"{ROUND_TESTS}/test_round.py::test_it", "tasks/a/test_root.py"])
@pytest.mark.matrix
def test_what_lies_in_a_task_is_refused_when_named(run: RunTasks, argument: str) -> None:
    session = run(argument)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines(
        [f"ERROR: {argument} belongs to the task */tasks/a, *: pytest --evocode-agent=oracle tasks/a"]
    )
    assert "imported on the host" not in session.text


def test_what_lies_in_a_task_is_refused_where_pytest_is_started_there(
    run: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(ROUND_TESTS)
    session = run()
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert f"pytest --evocode-agent=oracle {os.path.relpath('../../..')}" in session.text


@pytest.mark.parametrize("toml", ["[[steps]]\nrun = 'make'", "[task]\ncmds = []", "version = 3", ""])
@pytest.mark.matrix
def test_a_task_file_of_another_tool_keeps_no_test_from_running(
    pytester: pytest.Pytester, run: RunTasks, toml: str
) -> None:
    (pytester.path / "unit/task.toml").write_text(toml)
    (pytester.path / "unit/steps").mkdir()
    (pytester.path / "task.toml").write_text(toml)
    assert run().outcomes == {"passed": 1}
    assert run("unit/test_unit.py").outcomes == {"passed": 1}


def test_a_task_file_of_another_tool_hides_no_task_from_an_agent(
    pytester: pytest.Pytester, run_tasks: RunTasks
) -> None:
    (pytester.path / "task.toml").write_text("[task]\ncmds = []")
    session = run_tasks("--collect-only", "-q", "tasks/a", "unit")
    assert [line for line in session.result.outlines if "::" in line] == [
        "tasks/a/task.toml::oracle::round-1",
        "tasks/a/task.toml::oracle::round-2",
        "unit/test_unit.py::test_unit",
    ]


@pytest.mark.nightly  # It says that the tests above have something to find.
def test_without_the_plugin_pytest_collects_what_it_finds(pytester: pytest.Pytester) -> None:
    result = pytester.runpytest_subprocess("-p", "no:evocode", *UNUSED, str(Path(ROUND_TESTS, "test_round.py")))
    result.stderr.fnmatch_lines(["*imported on the host*"])
