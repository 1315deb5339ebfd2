"""A session builds the images of its later attempts while the first ones run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.environments.sandbox.images import SandboxImages
from pytest_evocode.tasks import Task
from pytest_evocode.trial.warming import ImagesAhead
from tests.acceptance.tasks import DOCKERFILE

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks whose images sessions of this process begin with ahead of their use."""
    names: list[str] = []
    begin = ImagesAhead.begin

    def remember(self: ImagesAhead, wanted: Iterable[Callable[[], Any]]) -> None:
        wanted = list(wanted)
        names.extend(each()[0].name for each in wanted)
        begin(self, wanted)

    monkeypatch.setattr(ImagesAhead, "begin", remember)
    return names


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tasks whose images were built in this process, which begins without any."""
    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "cache"))
    names: list[str] = []
    fill = SandboxImages._fill

    def remember(self: SandboxImages, directory: Path, task: Task, *arguments: Any) -> None:
        names.append(task.name)
        fill(self, directory, task, *arguments)

    monkeypatch.setattr(SandboxImages, "_fill", remember)
    return names


@pytest.mark.nightly
def test_images_are_built_ahead_and_one_that_cannot_be_is_an_error_of_its_own_task_and_built_once(
    write_task: WriteTask, run_tasks: RunTasks, begun: list[str], built: list[str]
) -> None:
    write_task("a", 1)
    write_task("b", 1, dockerfile=f"{DOCKERFILE}RUN echo last words; false\n")
    session = run_tasks("--evocode-attempts=2", "tasks")
    assert session.outcomes == {"passed": 2, "errors": 2}
    session.has("tasks/a/task.toml .*", "*b/environment/Dockerfile:3: replayed on *", "last words")
    assert begun == ["a", "b"]
    assert sorted(built) == ["a", "b"]
    assert [record.outcome for record in session.record("b", number=2).rounds] == ["error"]


@pytest.mark.slow
@pytest.mark.nightly
def test_workers_find_what_is_built_ahead_and_what_failed_to_be(
    write_task: WriteTask, run_tasks: RunTasks, built: list[str]
) -> None:
    for name in ("a", "b", "c"):
        write_task(name, 1, dockerfile=f"{DOCKERFILE}RUN sleep 1; echo {name}\n")
    write_task("d", 1, dockerfile=f"{DOCKERFILE}RUN sleep 1; false\n")
    session = run_tasks("-n1", "tasks")
    assert session.outcomes == {"passed": 3, "errors": 1}
    session.has("*d/environment/Dockerfile:3: replayed on *")
    assert "d" in built  # By this process, which hands the attempts out.


def test_one_image_is_left_to_the_attempt_that_needs_it(
    write_task: WriteTask, run_tasks: RunTasks, begun: list[str]
) -> None:
    write_task("a", 1)
    write_task("b", 1)
    assert run_tasks("--evocode-attempts=2", "-k", "b and oracle", "tasks").outcomes == {"passed": 2, "deselected": 2}
    assert begun == []
