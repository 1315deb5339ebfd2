"""What Harbor can do and we cannot yet is refused by name, never ignored."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import load_task

WriteTask = Callable[..., Path]


def test_a_key_we_cannot_act_on_is_refused(write_task: WriteTask) -> None:
    toml = "[verifier.environment]\ncpus = 1\n"
    directory = write_task(toml, steps=(), files={"tests/test_it.py": ""}, without=["tests/test.sh"])
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    assert str(caught.value).startswith(f"{directory}/task.toml:1: not supported yet: verifier.environment: ")
    assert caught.value.line == 1


@pytest.mark.parametrize(
    ("toml", "key", "line"),
    [
        ('[environment]\nos = "windows"', "environment.os", 2),
        ('[environment.tpu]\ntype = "v6e"\ntopology = "2x4"', "environment.tpu", 1),
        ("artifacts = ['C:\\app\\out']", "artifacts[#1].source", 1),
        ("artifacts = [{ source = 'c:/app' }]", "artifacts[#1].source", 1),
        ("[environment]\nworkdir = 'C:\\app'", "environment.workdir", 2),
    ],
)
def test_windows_and_tpus_are_refused_for_good(write_task: WriteTask, toml: str, key: str, line: int) -> None:
    directory = write_task(toml, steps=())
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    assert str(caught.value).startswith(f"{directory}/task.toml:{line}: not supported: {key}: ")


def test_all_unsupported_keys_are_named_at_once(write_task: WriteTask) -> None:
    tpu = 'tpu = { type = "v6e", topology = "2x4" }'
    directory = write_task(f'[environment]\nworkdir = "C:/app"\n{tpu}\n', steps=())
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    named = [line.split(": ")[2] for line in str(caught.value).splitlines()]
    assert named == ["environment.workdir", "environment.tpu"]


def test_settings_that_ask_for_nothing_are_fine(write_task: WriteTask) -> None:
    toml = """
artifacts = [{ source = "/app/out", service = "main" }]
[environment]
gpus = 0
gpu_types = []
os = "Linux"
mcp_servers = []
allowed_hosts = []
network_mode = "no-network"
[verifier]
environment_mode = "shared"
collect = []
[metadata.evocode]
verify_in = "clean"
[[steps]]
name = "round-1"
agent = { network_mode = "no-network" }
"""
    assert load_task(write_task(toml, steps=("round-1",))).rounds
