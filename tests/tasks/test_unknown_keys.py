"""What nothing here reads of a task.toml is a warning: unknown keys in any table, wrong values of keys without use."""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import tomli
from pydantic import BaseModel

from pytest_evocode.errors import TaskError, TaskWarning
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.config_text import Keys, toml_text
from pytest_evocode.tasks.fields import UNREAD
from pytest_evocode.tasks.loading import read_task_file
from pytest_evocode.tasks.model import FreeSection, TaskConfig
from tests.tasks.test_compatibility import models_in
from tests.tasks.test_schema import ALL_KEYS

WriteTask = Callable[..., Path]

VALUES = [2.0, "x", True, [], [{"a": 1}], {"deep": {"er": 1}}]
#: Keys of published tasks, each in a table of Harbor's.
WILD = """
version = "2.0"
workstream = "payments"
[task]
name = "org/ledger"
format = "multi-turn"
workstream = "payments"
language = "go"
[environment]
type = "docker"
[[steps]]
name = "round-1"
dependencies = []
network_mode = "public"
[[steps]]
name = "round-2"
dependencies = ["round-1"]
inherit_prior_session = true
"""


def tables(value: object, model: type[BaseModel], at: Keys = ()) -> Iterator[tuple[Keys, type[BaseModel]]]:
    """Yield where each table is in what a task.toml says, with the model that reads it."""
    if isinstance(value, dict):
        yield at, model
        for key, below in value.items():
            field = model.model_fields.get(key)
            for inner in [] if field is None else models_in(field.annotation):
                is_mapping = "dict[" in str(field.annotation) if field is not None else False
                for name, each in below.items() if is_mapping else [(None, below)]:
                    yield from tables(each, inner, (*at, key) if name is None else (*at, key, name))
    elif isinstance(value, list):
        for index, each in enumerate(value):
            yield from tables(each, model, (*at, index))


def at(data: Any, keys: Sequence[str | int]) -> Any:
    for key in keys:
        data = data[key]
    return data


WHOLE = tomli.loads(ALL_KEYS)
TABLES = [keys for keys, model in tables(WHOLE, TaskConfig) if not issubclass(model, FreeSection)]


def test_all_tables_of_the_format_are_tried() -> None:
    tried = {model for _, model in tables(WHOLE, TaskConfig)}

    def known(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
        yield model
        for field in model.model_fields.values():
            for inner in models_in(field.annotation):
                yield from known(inner)

    assert tried == set(known(TaskConfig))


@pytest.mark.parametrize("keys", TABLES, ids=lambda keys: ".".join(map(str, keys)) or "top")
def test_an_unknown_key_of_any_table_with_any_value_is_passed_over(tmp_path: Path, keys: Keys) -> None:
    key = "x" + "".join(random.choices("abcdefghij", k=12))
    data = copy.deepcopy(WHOLE)
    at(data, keys)[key] = random.choice(VALUES)
    (tmp_path / "task.toml").write_text(toml_text(data))
    file = read_task_file(tmp_path)
    (problem,) = file.passed_over
    assert problem.keys == (*keys, key)
    assert problem.message.startswith("unknown key; known here: ")
    assert file.config == TaskConfig.model_validate(WHOLE)


def unread(model: type[BaseModel] = TaskConfig, at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for name, field in model.model_fields.items():
        if UNREAD in field.metadata:
            yield (*at, name)
        for inner in models_in(field.annotation):
            if "tuple[" not in str(field.annotation):
                yield from unread(inner, (*at, name))


@pytest.mark.parametrize("keys", [*unread()], ids=".".join)
def test_a_wrong_value_of_a_key_that_nothing_reads_is_passed_over(tmp_path: Path, keys: tuple[str, ...]) -> None:
    data = {name: value for name, value in WHOLE.items() if name != "version"}
    data = copy.deepcopy(data)
    at(data, keys[:-1])[keys[-1]] = 12.5
    (tmp_path / "task.toml").write_text(toml_text(data))
    file = read_task_file(tmp_path)
    (problem,) = file.passed_over
    assert problem.keys == keys
    assert problem.message.startswith("must be ")
    assert problem.message.endswith(", not 12.5")


@pytest.mark.parametrize("name", ["", "name = 3\nauthors = [{ mail = 'x' }, 'B']\n"])
def test_a_table_that_nothing_reads_may_lack_what_belongs_there(write_task: WriteTask, name: str) -> None:
    with pytest.warns(TaskWarning):
        assert load_task(write_task(f"[task]\n{name}version = 1", steps=())).config.task is None


def test_keys_of_published_tasks_load_with_a_line_each(write_task: WriteTask) -> None:
    task = load_task(write_task(WILD), unknown_keys="ignore")
    assert [(error.line, error.message.partition(":")[0]) for error in task.unread] == [
        (2, "version"),
        (3, "workstream"),
        (6, "task.format"),
        (7, "task.workstream"),
        (8, "task.language"),
        (10, "environment.type"),
        (13, "steps[round-1].dependencies"),
        (14, "steps[round-1].network_mode"),
        (17, "steps[round-2].dependencies"),
    ]
    assert [error.message for error in task.unread if "did you mean" in error.message] == []


def test_each_is_one_warning_of_its_line(write_task: WriteTask) -> None:
    directory = write_task("[agent]\ntimeout_secs = 5\n\nfast = true", steps=())
    with pytest.warns(TaskWarning) as told:
        load_task(directory)
    assert [(each.filename, each.lineno, str(each.message)) for each in told] == [
        (f"{directory}/task.toml", 2, 'agent.timeout_secs: unknown key; did you mean "timeout_sec"?'),
        (
            f"{directory}/task.toml",
            4,
            "agent.fast: unknown key; known here: allowed_hosts, network_mode, timeout_sec, user",
        ),
    ]


def test_a_task_without_any_is_loaded_without_a_warning(write_task: WriteTask) -> None:
    assert load_task(write_task()).unread == ()  # Warnings are errors here.


@pytest.mark.parametrize(
    ("toml", "near"),
    [
        ("[task]\nlanguage = 'go'\nname = 'o/t'", ""),
        ("tags = []", ""),
        ("[[sources]]\nname = 'x'", ""),  # As of data, and "source" is text.
        ("sources = 'https://example.org'", "source"),
        ("[environment]\ntype = 'docker'", ""),
        ("[verifier]\ntimeout = 5", "timeout_sec"),
        ("[environment]\ncpu = 5", "cpus"),
        ("[[steps]]\nname = 'a'\nverifer = {}", "verifier"),
        ("[agent]\nworkdir = '/app'", ""),  # Of another table.
    ],
)
def test_only_a_key_of_the_same_table_that_is_close_is_suggested(tmp_path: Path, toml: str, near: str) -> None:
    (tmp_path / "task.toml").write_text(toml)
    hints = [each.message.rpartition("did you mean ")[2] for each in read_task_file(tmp_path).passed_over]
    assert hints[0] == f'"{near}"?' if near else hints[0].startswith("unknown key; known here: ")


def test_what_is_read_has_to_be_right_and_then_all_that_is_wrong_is_named(write_task: WriteTask) -> None:
    toml = "[agent]\ntimeout_sec = 'ten'\nfast = true\n[environment]\nenv = { version = 3 }"
    with pytest.raises(TaskError) as caught:
        load_task(write_task(toml, steps=()))
    named = [line.split(": ")[1] for line in str(caught.value).splitlines()]
    assert named == ["agent.timeout_sec", "agent.fast", "environment.env.version"]


def test_they_are_an_error_where_that_is_wanted(write_task: WriteTask) -> None:
    directory = write_task(WILD)
    lines = [f"{each}" for each in load_task(directory, unknown_keys="ignore").unread]
    with pytest.raises(TaskError) as caught:
        load_task(directory, unknown_keys="error")
    assert str(caught.value).splitlines() == lines


@pytest.mark.parametrize(
    "more", [{}, {"verifier": {"environment": {"os": "windows"}}, "artifacts": ["C:\\app\\out"], "colour": "blue"}]
)
def test_a_task_for_windows_is_refused_in_one_line(write_task: WriteTask, more: Mapping[str, Any]) -> None:
    files = {"tests/test.bat": "exit 0\r\n", "solution/solve.bat": "exit 0\r\n"}
    toml = toml_text({**more, "environment": {"os": "windows", "workdir": "C:\\app"}})
    directory = write_task(toml, steps=(), files=files, without=["tests/test.sh", "solution/solve.sh"])
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    assert str(caught.value).endswith(': not supported: environment.os: only "linux" environments can be started')
    assert "\n" not in str(caught.value)
