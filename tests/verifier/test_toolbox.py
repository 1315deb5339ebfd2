"""pytest is made ready in an image: once for each kind of Python, or a message says why it cannot be."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.cache import cache_directory
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import Task, load_task
from pytest_evocode.verifier import find_toolbox
from tests.verifier.conftest import run_native_suite

MakeTask = Callable[[str], Task]


@pytest.fixture
def make_task(tmp_path: Path) -> MakeTask:
    """Write and load a task with a native suite, and with an image that runs a command."""

    def make(run: str) -> Task:
        directory = tmp_path / "task"
        for name, text in {
            "task.toml": "",
            "instruction.md": "Write the program.\n",
            "environment/Dockerfile": f"FROM debian:bookworm-slim\nWORKDIR /app\nRUN {run}\n",
            "tests/test_a.py": "def test_x():\n    pass\n",
        }.items():
            (directory / name).parent.mkdir(parents=True, exist_ok=True)
            (directory / name).write_text(text)
        return load_task(directory)

    return make


def fakes(says: str) -> str:
    """A command after which the image has for Python what prints ``says``."""
    return " && ".join(
        f"""printf '#!/bin/sh\\necho "%s"\\n' "{says}" > {path} && chmod 755 {path}"""
        for path in ("/usr/local/bin/python", "/usr/local/bin/python3")
    )


def refusal(engine: Engine, task: Task) -> str:
    """What the author is told; it names the Dockerfile."""
    with pytest.raises(TaskError) as caught:
        find_toolbox(engine, task)
    assert caught.value.path == task.dockerfile
    return caught.value.message


def test_images_with_the_same_python_share_a_toolbox(engine: Engine, make_task: MakeTask) -> None:
    one = find_toolbox(engine, make_task("echo one"))
    two = find_toolbox(engine, make_task("echo two"))
    assert one == two
    assert Path(one.python).is_absolute()
    assert sorted(path.name for path in one.directory.iterdir()) == ["modules", "suite.pyc"]


def test_an_image_without_python_needs_one(engine: Engine, make_task: MakeTask) -> None:
    said = refusal(engine, make_task("rm -f /usr/bin/python* /usr/local/bin/python*"))
    assert said.startswith(
        "the image has no Python, which a native suite needs; install python3 (3.10 or newer), or write test.sh. "
    )


def test_something_else_by_the_name_of_python_is_none(engine: Engine, make_task: MakeTask) -> None:
    assert refusal(engine, make_task(fakes("hello"))).endswith("python said: hello")


@pytest.mark.parametrize(
    ("says", "version"), [("['', [2, 7, 18], '']", "2.7.18"), ("['/opt/python3', [3, 9, 2], 'cpython-39']", "3.9.2")]
)
@pytest.mark.matrix
def test_a_python_that_is_too_old_is_told_with_its_version(
    engine: Engine, make_task: MakeTask, says: str, version: str
) -> None:
    assert refusal(engine, make_task(fakes(says))) == (
        f"the image's python3 is Python {version}, and a native suite needs 3.10 or newer; install a newer one, or "
        "write test.sh"
    )


def test_a_python_with_half_of_its_library_is_told_with_what_it_said(engine: Engine, make_task: MakeTask) -> None:
    said = refusal(engine, make_task("rm -rf /usr/lib/python3*/argparse.py"))
    assert "cannot run pytest, which a native suite needs; install a whole Python, or write test.sh. It said:" in said
    assert said.endswith("No module named 'argparse'")


@pytest.mark.nightly
def test_a_python_may_miss_what_pytest_can_do_without(engine: Engine, tmp_path: Path) -> None:
    run = run_native_suite(
        engine,
        tmp_path / "task",
        {"round-1/test_a.py": "def test_x():\n    pass\n"},
        image="RUN cd /usr/lib/python3.*/ && rm -rf ctypes lib-dynload/_ctypes* lib-dynload/_hashlib*",
    )
    assert run.verdict is not None, run.fault
    assert run.verdict.passed


@pytest.mark.nightly
def test_a_cache_that_was_cleared_is_filled_again(engine: Engine, make_task: MakeTask) -> None:
    task = make_task("echo one")
    before = find_toolbox(engine, task)
    shutil.rmtree(cache_directory() / "toolboxes")
    assert find_toolbox(engine, task) == before
    assert before.directory.is_dir()
