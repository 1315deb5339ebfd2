"""Of corpora with settings, conftest files and tests of their own a session with tasks takes only their tasks."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import WriteTask, task_writer
from tests.acceptance.test_collecting_tasks import EXPLOSIVE, node_ids

SETTINGS = {
    "pytest.ini": "[pytest]\nasyncio_mode = auto\nstrict_config = true\naddopts = --no-such-option --strict-markers\n",
    "pyproject.toml": "[tool.pytest.ini_options]\nasyncio_mode = 'auto'\nstrict = true\naddopts = '--cov=x -n 3'\n",
    "tox.ini": "[pytest]\nasyncio_mode = auto\naddopts = --strict-config\nfilterwarnings = error\n",
    "setup.cfg": "[tool:pytest]\nasyncio_mode = auto\nstrict_config = true\npython_files = *.py\n",
}
ROUND = "task.toml::oracle::round-1"


@pytest.fixture(name="corpus")
def _corpus(pytester: pytest.Pytester) -> Path:
    """A clone of a corpus below where pytest is started, with a task, and tests that cannot be imported here."""
    corpus = pytester.mkdir("corpus")
    task_writer(corpus)("a", 1)
    (corpus / ".git").mkdir()
    (corpus / "tests").mkdir()
    for name in ("conftest.py", "__init__.py", "test_it.py", "tests/conftest.py", "tests/test_it.py"):
        (corpus / name).write_text(EXPLOSIVE)
    return corpus


def collected(run_tasks: RunTasks, *arguments: str) -> list[str]:
    """The rounds that are collected by a session that nothing ends."""
    session = run_tasks("--collect-only", "-q", *arguments)
    assert session.exit_status == 0, session.text
    assert "imported on the host" not in session.text
    return node_ids(session)


@pytest.mark.parametrize("name", SETTINGS)
@pytest.mark.parametrize("argument", ["corpus", "corpus/tasks", "corpus/tasks/a", f"corpus/tasks/a/{ROUND}"])
@pytest.mark.matrix("name")
def test_settings_of_a_corpus_end_no_session(corpus: Path, run_tasks: RunTasks, name: str, argument: str) -> None:
    (corpus / name).write_text(SETTINGS[name])
    assert collected(run_tasks, argument) == [f"corpus/tasks/a/{ROUND}"]


@pytest.mark.parametrize("arguments", [(), (".",), ("corpus",), ("corpus", "test_own.py")], ids=" ".join)
def test_of_a_clone_only_tasks_are_collected_beside_the_users_own_tests(
    pytester: pytest.Pytester, corpus: Path, run_tasks: RunTasks, arguments: tuple[str, ...]
) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    own = [] if arguments == ("corpus",) else ["test_own.py::test_own"]
    assert collected(run_tasks, *arguments) == [f"corpus/tasks/a/{ROUND}", *own]


def test_a_corpus_elsewhere_has_its_node_ids_from_its_own_directory(
    pytester: pytest.Pytester, corpus: Path, run_tasks: RunTasks, monkeypatch: pytest.MonkeyPatch
) -> None:
    (corpus / "pytest.ini").write_text(SETTINGS["pytest.ini"])
    monkeypatch.chdir(pytester.mkdir("project"))
    assert collected(run_tasks, str(corpus)) == [f"tasks/a/{ROUND}"]
    assert collected(run_tasks, str(corpus / "tasks")) == [f"a/{ROUND}"]


def test_a_directory_with_settings_that_is_named_is_a_corpus_without_being_a_clone(
    corpus: Path, run_tasks: RunTasks
) -> None:
    (corpus / ".git").rmdir()
    (corpus / "pytest.ini").write_text(SETTINGS["pytest.ini"])
    session = run_tasks("--collect-only", "corpus")
    assert session.exit_status == 0, session.text
    session.has("rootdir: *", "evocode: only the tasks of corpus: settings, conftest.py files and tests there are not*")


def test_settings_of_where_pytest_is_started_count_with_their_options_and_conftest_files(
    pytester: pytest.Pytester, corpus: Path, run_tasks: RunTasks
) -> None:
    (corpus / "pytest.ini").write_text(SETTINGS["pytest.ini"])
    pytester.makeini(
        "[pytest]\naddopts = --evocode-attempts=2 -p own_plugin\nevocode_reward_key = quality\npythonpath = ."
    )
    pytester.makepyfile(own_plugin="def pytest_report_header(): return 'a plugin of their own'")
    pytester.makeconftest("def pytest_report_header(): return 'a conftest of their own'")
    session = run_tasks("--collect-only", "corpus")
    session.has("rootdir: *", "configfile: *.ini", "evocode: agent oracle (2 attempts each)*")
    session.has("a plugin of their own")
    session.has("a conftest of their own")


def test_workers_go_by_the_same_settings(pytester: pytest.Pytester, corpus: Path, run_tasks: RunTasks) -> None:
    (corpus / "pytest.ini").write_text(SETTINGS["pytest.ini"])
    pytester.makeini("[pytest]\naddopts = --evocode-attempts=2")
    session = run_tasks("-n2", "-v", "corpus", subprocess=True)
    assert session.outcomes == {"passed": 2}, session.text
    assert "imported on the host" not in session.text


@pytest.mark.parametrize("name", ["pytest.ini", "conftest.py"])
def test_a_project_that_speaks_of_the_plugin_is_the_users_own(corpus: Path, run_tasks: RunTasks, name: str) -> None:
    own = {"pytest.ini": "[pytest]\nevocode_reward_key = quality\n", "conftest.py": "# For pytest-evocode.\n"}
    for each in ("conftest.py", "__init__.py", "tests/conftest.py", "tests/test_it.py"):
        (corpus / each).unlink()
    (corpus / "test_it.py").write_text("def test_it(): pass")
    (corpus / name).write_text(own[name])
    root = "" if name == "pytest.ini" else "corpus/"
    assert collected(run_tasks, "corpus") == [f"{root}tasks/a/{ROUND}", f"{root}test_it.py::test_it"]


def test_a_test_module_that_is_named_runs_with_what_its_project_has_for_it(corpus: Path, run_tasks: RunTasks) -> None:
    (corpus / "conftest.py").write_text("import pytest\n@pytest.fixture\ndef shared(): pass")
    (corpus / "__init__.py").write_text("")
    (corpus / "test_it.py").write_text("def test_it(shared): pass")
    session = run_tasks("corpus/test_it.py")
    assert session.outcomes == {"passed": 1}, session.text


@pytest.mark.parametrize(
    "more", ["strict_config = true", "filterwarnings = error", "addopts = --cov=src --cov-x tasks -v"]
)
def test_settings_for_plugins_that_are_not_here_are_told_where_a_corpus_is_started_in(
    pytester: pytest.Pytester, write_task: WriteTask, run_tasks: RunTasks, more: str
) -> None:
    write_task("a", 1)
    pytester.makeini(f"[pytest]\nasyncio_mode = auto\n{more}")
    unknown = "asyncio_mode, --cov=src, --cov-x, tasks" if "addopts" in more else "asyncio_mode"
    session = run_tasks("--collect-only", "tasks")
    assert session.exit_status == 0, session.text
    session.has(f"evocode: *tox.ini: {unknown}: of no plugin that is here, and without effect")
    asked = run_tasks("--strict-config", "--collect-only", "tasks")
    assert asked.exit_status == pytest.ExitCode.USAGE_ERROR


def test_without_an_agent_pytest_takes_what_it_finds(
    pytester: pytest.Pytester, corpus: Path, run_tasks: RunTasks
) -> None:
    for each in ("conftest.py", "tests/conftest.py", "tests/test_it.py", "__init__.py"):
        (corpus / each).write_text("")
    (corpus / "test_it.py").write_text("def test_it(): pass")
    (corpus / "pytest.ini").write_text("[pytest]\naddopts = -v\n")
    session = run_tasks("corpus", agent=None, env=None)
    session.has("configfile: pytest.ini", "*test_it.py::test_it PASSED*")
