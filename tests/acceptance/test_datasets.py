"""Sessions with the tasks of a repository that is named by URL and commit."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.sessions import RunTasks
from tests.acceptance.tasks import task_writer
from tests.acceptance.test_collecting_tasks import EXPLOSIVE, node_ids
from tests.environments.test_datasets import git


@pytest.fixture(name="dataset")
def _dataset(cache: Path, tmp_path: Path) -> str:
    """A repository with two tasks, and what cannot be imported beside them."""
    repository = tmp_path / "corpus"
    for name in ("a", "b"):
        task_writer(repository)(name, 1)
    for name in ("conftest.py", "tasks/test_it.py", "tasks/conftest.py"):
        (repository / name).write_text(f"{EXPLOSIVE}  # evocode")
    (repository / "pytest.ini").write_text("[pytest]\naddopts = --no-such-option\nevocode_no_such = 1\n")
    git(repository, "init", "--quiet")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "all")
    return f"git+{repository}@{git(repository, 'rev-parse', 'HEAD')}#tasks"


def rounds(dataset: str) -> list[str]:
    """The node ids of the repository's rounds."""
    commit = dataset.partition("@")[2][:12]
    return [f"corpus-{commit}/tasks/{name}/task.toml::oracle::round-1" for name in ("a", "b")]


def test_tasks_of_a_dataset_are_collected_alone_or_beside_what_pytest_is_called_with(
    pytester: pytest.Pytester, dataset: str, run_tasks: RunTasks
) -> None:
    pytester.makepyfile(test_own="def test_own(): pass")
    alone = run_tasks("--collect-only", "-q", f"--evocode-dataset={dataset}")
    assert (node_ids(alone), alone.exit_status) == (rounds(dataset), 0), alone.text
    beside = run_tasks("--collect-only", "-q", f"--evocode-dataset={dataset}", "test_own.py")
    assert (node_ids(beside), beside.exit_status) == (["test_own.py::test_own", *rounds(dataset)], 0), beside.text


def test_a_node_id_of_a_dataset_selects_its_round(dataset: str, run_tasks: RunTasks) -> None:
    first, second = rounds(dataset)
    one = run_tasks("--collect-only", "-q", f"--evocode-dataset={dataset}", second)
    assert (node_ids(one), one.exit_status) == ([second], 0), one.text
    task = run_tasks("--collect-only", "-q", f"--evocode-dataset={dataset}", first.partition("/task.toml")[0])
    assert (node_ids(task), task.exit_status) == ([first], 0), task.text


def test_workers_run_a_dataset_that_is_here_without_its_source(
    tmp_path: Path, dataset: str, run_tasks: RunTasks
) -> None:
    assert run_tasks("--collect-only", "-q", f"--evocode-dataset={dataset}").exit_status == 0
    (tmp_path / "corpus").rename(tmp_path / "gone")
    session = run_tasks("-n2", "-v", f"--evocode-dataset={dataset}", subprocess=True)
    assert session.outcomes == {"passed": 2}, session.text
    assert all(f"PASSED {each}" in session.text for each in rounds(dataset))
    assert session.record("a").task == "a"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (("--evocode-agent=oracle", "--evocode-dataset={short}"), "*a dataset is pinned*all 40 digits*"),
        (("--evocode-dataset={dataset}",), "*names tasks, which an agent runs; add --evocode-agent=oracle*"),
        (("--evocode-pin", "--evocode-dataset={dataset}"), "*a dataset stays as it is*"),
    ],
    ids=["short", "agent", "pin"],
)
def test_a_dataset_that_is_not_pinned_or_cannot_be_used_is_one_error(
    dataset: str, run_tasks: RunTasks, arguments: tuple[str, ...], why: str
) -> None:
    given = [each.format(dataset=dataset, short=dataset.partition("@")[0] + "@main") for each in arguments]
    session = run_tasks(*given, agent=None, env=None)
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    session.result.stderr.fnmatch_lines([why])
