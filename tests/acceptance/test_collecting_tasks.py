"""What pytest collects from task directories, and what it leaves alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks, Session
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.turns(3)


EXPLOSIVE = "raise RuntimeError('imported on the host')"
HOSTILE = {
    "conftest.py": EXPLOSIVE,
    "test_root.py": EXPLOSIVE,
    "__init__.py": EXPLOSIVE,
    "tests/conftest.py": EXPLOSIVE,
    "tests/test_shared.py": EXPLOSIVE,
    "steps/round-1/conftest.py": EXPLOSIVE,
    "steps/round-1/tests/conftest.py": EXPLOSIVE,
    "steps/round-1/tests/test_round.py": EXPLOSIVE,
    "steps/round-1/tests/__init__.py": EXPLOSIVE,
}


def node_ids(session: Session) -> list[str]:
    """The node ids that ``--collect-only -q`` listed."""
    return [line for line in session.result.outlines if "::" in line]


def test_node_ids_have_task_attempt_and_round_with_attempts_in_the_order_given_and_tasks_by_name(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("b", 1)
    write_task("a", 2)
    session = run_tasks("--collect-only", "-q", "--evocode-agent=oracle", "--evocode-attempts=3", "tasks", agent="nop")
    expected = [
        f"tasks/{task}/task.toml::{attempt}::round-{index}"
        for task, rounds in (("a", 2), ("b", 1))
        for attempt in ("nop", "nop.2", "nop.3", "oracle", "oracle.2", "oracle.3")
        for index in range(1, rounds + 1)
    ]
    assert node_ids(session) == expected


def test_rounds_come_in_the_order_of_their_entries(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 2)
    task.joinpath("task.toml").write_text('[[steps]]\nname = "round-2"\n[[steps]]\nname = "round-1"\n')
    session = run_tasks("--collect-only", "-q", "tasks")
    assert [node_id.rpartition("::")[2] for node_id in node_ids(session)] == ["round-2", "round-1"]


def test_a_task_without_steps_is_one_round(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task(
        "single",
        0,
        files={
            "instruction.md": "Write done.",
            "solution/solve.sh": "echo done > done.txt",
            "tests/test.sh": "grep -q done done.txt && echo 1 > /logs/verifier/reward.txt",
        },
    )
    session = run_tasks("-v", "tasks")
    session.has("tasks/single/task.toml::oracle::round-1 PASSED*")
    assert session.exit_status == 0


def test_collecting_only_starts_nothing(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    write_task("a", 1, dockerfile="FROM scratch\nRUN false\n")
    session = run_tasks("--collect-only", "-q", "tasks", env="docker")
    assert node_ids(session) == ["tasks/a/task.toml::oracle::round-1"]
    assert session.exit_status == 0
    assert not session.results.exists()
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    "argument",
    ["tasks", "tasks/a", "tasks/a/task.toml", "tasks/a/task.toml::oracle::round-1", "tasks/a/../a"],
)
@pytest.mark.matrix
def test_nothing_below_a_task_is_imported(write_task: WriteTask, run_tasks: RunTasks, argument: str) -> None:
    write_task("a", 1, files=HOSTILE)
    session = run_tasks("--collect-only", "-q", argument)
    assert node_ids(session) == ["tasks/a/task.toml::oracle::round-1"]
    session.lacks("*imported on the host*")


@pytest.mark.parametrize(
    "argument",
    [
        "tasks/a/steps/round-1/tests",
        "tasks/a/tests",
        "tasks/a/steps",
        "tasks/a/tests/test_shared.py",
        "tasks/a/test_root.py",
    ],
)
@pytest.mark.matrix
def test_nothing_below_a_task_is_imported_when_named(write_task: WriteTask, run_tasks: RunTasks, argument: str) -> None:
    write_task("a", 1, files=HOSTILE)
    session = run_tasks("--collect-only", "-q", argument)
    assert "imported on the host" not in session.text


@pytest.mark.parametrize("below", ["steps/round-1/tests", "steps/round-1", "tests", "."])
@pytest.mark.matrix
def test_nothing_below_a_task_is_imported_when_pytest_is_started_in_it(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch, below: str
) -> None:
    monkeypatch.chdir(write_task("a", 1, files=HOSTILE) / below)
    session = run_tasks("--collect-only", "-q")
    assert "imported on the host" not in session.text


def test_pytest_can_be_started_in_a_task(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(write_task("a", 1, files=HOSTILE))
    session = run_tasks("-v")
    session.has("task.toml::oracle::round-1 PASSED*")


@pytest.mark.parametrize("argument", ["tasks", "tasks/", "tasks/test-first"])
@pytest.mark.matrix
def test_nothing_below_a_task_named_like_a_test_directory_is_imported(
    write_task: WriteTask, run_tasks: RunTasks, argument: str
) -> None:
    write_task("test-first", 1, files=HOSTILE)
    session = run_tasks("--collect-only", "-q", argument)
    assert node_ids(session) == ["tasks/test-first/task.toml::oracle::round-1"]


def test_a_start_inside_a_task_says_where_to_start_instead(
    write_task: WriteTask, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = write_task("a", 1)
    monkeypatch.chdir(task / "steps")
    run_tasks().has(f"*{task}/steps belongs to the task {task}; start pytest there or above")


def test_a_conftest_beside_the_tasks_is_loaded_and_its_hooks_see_the_rounds(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, files=HOSTILE)
    (pytester.path / "tasks/conftest.py").write_text(
        "def pytest_report_header(): return 'conftest of tasks'\n"
        "def pytest_runtest_call(item): print('hook sees', item.nodeid)"
    )
    run_tasks("-s", "tasks/a").has("conftest of tasks", "*hook sees tasks/a/task.toml::oracle::round-1*")


def test_without_an_agent_the_plugin_does_nothing(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makeconftest(
        "def pytest_unconfigure(config): print('session plugin:', config.pluginmanager.get_plugin('evocode-session'))"
    )
    pytester.makepyfile("def test_ordinary(): pass")
    session = run_tasks("-s", agent=None, env=None)
    assert session.outcomes == {"passed": 1}
    session.has("session plugin: None")
    session.lacks("*evocode:*")
    session.lacks("*task.toml*")
    assert not session.results.exists()


def test_a_broken_task_is_one_error_that_is_not_the_agents_and_the_others_run(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    write_task("broken", 2, toml="[agent]\ntimeout_sec = 0")
    write_task("c", 1)
    session = run_tasks("tasks")
    assert session.outcomes == {"passed": 2, "errors": 1}
    assert session.exit_status == 1
    session.has(
        "*ERROR collecting tasks/broken/task.toml*",
        "*tasks/broken/task.toml:2: agent.timeout_sec: must be more than 0, not 0*",
        "oracle * 100.0 * 2/2 *",
    )


UNKNOWN = "[agent]\ntimeout_secs = 5\n[environment]\ntype = 'docker'"


@pytest.mark.parametrize("workers", [(), ("-n2",)])
@pytest.mark.matrix
def test_keys_that_nothing_reads_are_a_warning_each_and_the_task_runs(
    write_task: WriteTask, run_tasks: RunTasks, workers: tuple[str, ...]
) -> None:
    for name in "ab":
        write_task(name, 1, toml=UNKNOWN)
    session = run_tasks("tasks", "-W", "default::pytest_evocode.TaskWarning", *workers)
    assert session.outcomes == {"passed": 2, "warnings": 4}
    for name in "ab":
        hint = 'TaskWarning: agent.timeout_secs: unknown key; did you mean "timeout_sec"?'
        assert session.text.count(f"tasks/{name}/task.toml:2: {hint}") == 1
        assert session.text.count(f"tasks/{name}/task.toml:4: TaskWarning: environment.type: unknown key; known") == 1


@pytest.mark.parametrize(
    ("arguments", "outcomes"),
    [
        (("-o", "evocode_strict_keys=true"), {"errors": 1}),
        (("-W", "error::pytest_evocode.TaskWarning"), {"errors": 1}),
        (("-W", "ignore::pytest_evocode.TaskWarning"), {"passed": 1}),
    ],
)
@pytest.mark.matrix
def test_they_are_an_error_or_nothing_where_a_setting_or_a_filter_says_so(
    write_task: WriteTask, run_tasks: RunTasks, arguments: tuple[str, ...], outcomes: dict[str, int]
) -> None:
    task = write_task("a", 1, toml=UNKNOWN)
    session = run_tasks("tasks", *arguments)
    assert session.outcomes == outcomes
    if "errors" in outcomes:
        session.has(f"{task}/task.toml:2: agent.timeout_secs: unk*", f"{task}/task.toml:4: environment.type: unk*")
        session.lacks("*Traceback*")


def test_only_broken_tasks_are_an_error_too(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("broken", 1, toml="no toml")
    session = run_tasks("tasks")
    assert session.outcomes == {"errors": 1}
    assert session.exit_status == 1


def test_a_broken_ordinary_test_module_interrupts_the_session(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    write_task("broken", 2, toml="no toml")
    pytester.makepyfile("import no_such_module")
    session = run_tasks()
    assert session.exit_status == pytest.ExitCode.INTERRUPTED
    assert session.outcomes == {"errors": 2}


def test_ordinary_tests_run_beside_tasks_with_the_garbage_collector_that_rests_while_tasks_are_collected(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makepyfile(
        test_ordinary="import gc\nWAS = gc.isenabled()\n"
        "def test_collector(): assert (WAS, gc.isenabled()) == (False, True)\ndef test_bad(): assert 0"
    )
    session = run_tasks("-v")
    assert session.outcomes == {"passed": 2, "failed": 1}
    session.has(
        "tasks/a/task.toml::oracle::round-1 PASSED*",
        "test_ordinary.py::test_collector PASSED*",
        "test_ordinary.py::test_bad FAILED*",
    )
    session.has("oracle * 100.0 *")


def test_a_task_file_and_an_absolute_path_can_be_arguments(write_task: WriteTask, run_tasks: RunTasks) -> None:
    task = write_task("a", 2)
    write_task("b", 1)
    write_task("c", 1)
    session = run_tasks("--collect-only", "-q", str(task), "tasks/b/task.toml")
    names = [("a", 1), ("a", 2), ("b", 1)]
    assert node_ids(session) == [f"tasks/{name}/task.toml::oracle::round-{index}" for name, index in names]


def test_a_task_below_a_symlink_is_collected_once(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1, files=HOSTILE)
    os.symlink(pytester.path / "tasks", pytester.path / "linked")
    session = run_tasks("--collect-only", "-q", "linked")
    assert node_ids(session) == ["linked/a/task.toml::oracle::round-1"]


def test_a_task_in_a_task_is_part_of_it(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1, files={"environment/inner/task.toml": "", "steps/round-1/task.toml": ""})
    assert node_ids(run_tasks("--collect-only", "-q", "tasks")) == ["tasks/a/task.toml::oracle::round-1"]


def test_ignored_tasks_are_not_collected(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    write_task("b", 1)
    write_task("c", 1)
    session = run_tasks("--collect-only", "-q", "--ignore=tasks/a", "--ignore-glob=*/b*", "tasks")
    assert node_ids(session) == ["tasks/c/task.toml::oracle::round-1"]


def test_a_second_task_of_one_name_is_refused(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    write_task("a", 1).rename(pytester.path / "tasks/b")
    (pytester.path / "others").mkdir()
    second = (pytester.path / "tasks/b").rename(pytester.path / "others/a")
    first = write_task("a", 1)
    session = run_tasks("--collect-only", "-q", "tasks", "others", "tasks/a/task.toml::oracle::round-1")
    session.has(
        f"*{second} and {first} are both called a, *; rename one of the directories, or run them in two sessions*"
    )
    assert node_ids(session) == ["tasks/a/task.toml::oracle::round-1"]
    assert node_ids(run_tasks("--collect-only", "-q", "others")) == ["others/a/task.toml::oracle::round-1"]


def test_an_unknown_round_is_a_usage_error(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("tasks/a/task.toml::oracle::round-7")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "tasks/a/task.toml::oracle::round-7" in session.text


def test_an_agents_name_is_made_fit_for_node_ids(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    pytester.makeconftest(
        """
        from pytest_evocode.agents import make_agent

        def pytest_evocode_make_agent(name):
            return make_agent("nop") if name.startswith("vendor/") else None
        """
    )
    session = run_tasks("--collect-only", "-q", "tasks", agent="vendor/model 4:large@x[1]")
    assert node_ids(session) == ["tasks/a/task.toml::model-4-large-x-1::round-1"]


def test_the_first_line_of_each_request_is_listed_where_that_is_asked_for(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 2, files={"steps/round-2/instruction.md": "Add a \x1b[2Jtotal to it.\n\nAnd more.\n"})
    session = run_tasks("--collect-only", "-v", "tasks")
    session.has("*<RoundItem round-2>", r"*Add a \x1b[[]2Jtotal to it.")
    assert "And more" not in session.text
    assert "Be the test" not in session.text
    assert "total to it" not in run_tasks("--collect-only", "tasks").text
