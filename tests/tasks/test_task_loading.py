"""A task directory becomes a Task with its rounds in order."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.tasks import load_task

pytestmark = pytest.mark.every_python

WriteTask = Callable[..., Path]


def test_rounds_come_in_the_order_of_the_steps_table(write_task: WriteTask) -> None:
    toml = '[[steps]]\nname = "b"\n[[steps]]\nname = "a"\n'
    task = load_task(write_task(toml, steps=("a", "b")))
    assert [(round_.index, round_.name) for round_ in task.rounds] == [(1, "b"), (2, "a")]


def test_a_round_knows_where_its_files_are(write_task: WriteTask) -> None:
    directory = write_task(files={"steps/round-2/workdir/setup.sh": "true", "tests/common.sh": ""})
    first, second = load_task(directory).rounds
    step = directory / "steps" / "round-2"
    assert (second.directory, second.instruction) == (step, step / "instruction.md")
    assert second.solution == step / "solution"
    assert (first.workdir, second.workdir) == (None, step / "workdir")
    assert second.tests == (directory / "tests", step / "tests")


def test_a_task_without_steps_is_one_round_at_its_root(write_task: WriteTask) -> None:
    directory = write_task("[agent]\ntimeout_sec = 5\n", steps=())
    (only,) = load_task(directory).rounds
    assert (only.index, only.name, only.directory) == (1, "round-1", directory)
    assert only.instruction == directory / "instruction.md"
    assert (only.solution, only.workdir, only.tests) == (directory / "solution", None, (directory / "tests",))
    assert only.agent_timeout == 5


def test_an_empty_task_file_is_a_single_step_task_with_defaults(write_task: WriteTask) -> None:
    task = load_task(write_task("", steps=()))
    assert (task.config.schema_version, task.reward_strategy, task.reward_key) == ("1.4", "mean", None)
    assert task.rounds[0].verifier_timeout == 600
    assert task.rounds[0].agent_timeout is None


def test_a_missing_solution_is_left_to_the_oracle(write_task: WriteTask) -> None:
    directory = write_task(without=["steps/round-1/solution/solve.sh"])
    first, second = load_task(directory).rounds
    assert first.solution is None
    assert second.solution is not None


def test_shared_tests_alone_can_verify_every_round(write_task: WriteTask) -> None:
    missing = ["steps/round-1/tests/test.sh", "steps/round-2/tests/test.sh"]
    directory = write_task(without=missing, files={"tests/test.sh": "true", "steps/round-2/tests/cases.txt": "1"})
    first, second = load_task(directory).rounds
    assert first.tests == (directory / "tests",)
    assert second.tests == (directory / "tests", directory / "steps/round-2/tests")


def test_the_task_is_called_like_its_directory(write_task: WriteTask, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = write_task(name="café")
    monkeypatch.chdir(directory)
    assert load_task(directory).name == "café"
    assert load_task(Path()).name == "café"
    assert load_task(Path("steps/..")).name == "café"


def test_the_environment_is_a_dockerfile_or_an_image(write_task: WriteTask) -> None:
    task = load_task(write_task(name="built"))
    assert task.environment_directory == task.directory / "environment"
    assert task.dockerfile == task.directory / "environment" / "Dockerfile"
    toml = '[environment]\ndocker_image = "python:3.12"\n'
    pulled = load_task(write_task(toml, steps=(), without=["environment/Dockerfile"], name="pulled"))
    assert pulled.dockerfile is None
    assert pulled.config.environment.docker_image == "python:3.12"


@pytest.mark.parametrize("key", ["schema_version", "version"])
@pytest.mark.parametrize("version", ["1.0", "1.1", "1.2", "1.3", "1.4"])
def test_schema_versions_one_are_known_under_both_names(write_task: WriteTask, key: str, version: str) -> None:
    assert load_task(write_task(f'{key} = "{version}"', steps=())).config.schema_version == version


def test_old_sizes_and_a_byte_order_mark_are_read(write_task: WriteTask) -> None:
    toml = '\ufeff[environment]\nmemory = "2G"\nstorage = "512M"\n'
    environment = load_task(write_task(toml, steps=())).config.environment
    assert (environment.memory_mb, environment.storage_mb) == (2048, 512)


def test_metadata_is_free_beside_what_we_read(write_task: WriteTask) -> None:
    toml = (
        'metadata.difficulty = "hard"\nmetadata.copy = { json = 1979-05-27 }\n'
        'metadata.evocode = { reward_key = "correct", process = { build = "make" } }\n'
    )
    task = load_task(write_task(toml, steps=()))
    assert task.reward_key == "correct"
    assert task.process.build == "make"
    assert (task.config.metadata.model_extra or {})["difficulty"] == "hard"


def test_hidden_and_cache_directories_are_no_steps(write_task: WriteTask) -> None:
    directory = write_task(files={"steps/.git/config": "", "steps/__pycache__/x.pyc": "", "steps/README.md": ""})
    assert len(load_task(directory).rounds) == 2
