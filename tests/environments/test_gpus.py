"""GPUs: what Docker is asked for, and what is said where there are none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.environments.docker.container_settings import gpus_of, has_gpus
from pytest_evocode.environments.docker.engine import DockerEngine
from pytest_evocode.errors import EnvironmentFault
from tests.environments.conftest import BASE, MakeTask

GPUS = "[environment]\ngpus = 2\n"


@pytest.mark.parametrize(
    ("info", "has"),
    [
        ({"Runtimes": {"runc": {}, "nvidia": {}}}, True),
        ({"DiscoveredDevices": [{"Source": "cdi", "ID": "nvidia.com/gpu=0"}]}, True),
        ({"Runtimes": {"runc": {}}, "DiscoveredDevices": None}, False),
    ],
)
def test_an_engine_has_them_by_its_runtime_or_its_devices(info: Mapping[str, Any], has: bool) -> None:
    assert has_gpus(info) is has


def test_an_engine_without_them_is_named(make_task: MakeTask) -> None:
    task = make_task(toml=GPUS)
    assert gpus_of(task, "engine 28.0", available=True) == 2
    with pytest.raises(EnvironmentFault, match=r"task.toml: environment.gpus = 2: Docker, engine 28.0, has no GPUs"):
        gpus_of(task, "engine 28.0", available=False)


@pytest.mark.parametrize("engine", ["sandbox"], indirect=True)
def test_the_sandbox_refuses_them(engine: Engine, make_task: MakeTask) -> None:
    with pytest.raises(EnvironmentFault, match=r"this task needs Docker: environment.gpus = 2, and the sandbox has no"):
        engine.create(make_task(toml=GPUS), env={}, network=None)


@pytest.mark.docker
def test_docker_is_asked_for_as_many(
    docker: DockerEngine, make_task: MakeTask, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []
    client: Any = docker._client
    create = client.create_container

    def create_container(*arguments: Any, host_config: dict[str, Any], **options: Any) -> Any:
        asked.extend(host_config.pop("DeviceRequests", ()))
        return create(*arguments, host_config=host_config, **options)

    monkeypatch.setattr(docker, "_has_gpus", True)
    monkeypatch.setattr(client, "create_container", create_container)
    task = make_task(None, toml=f'{GPUS}docker_image = "{BASE}"\n')
    environment = docker.create(task, env={}, network="no-network")
    try:
        environment.start()
        snapshot = environment.snapshot()
        fork = environment.fork(snapshot, network="no-network")
        fork.start()
        fork.stop()
        snapshot.discard()
    finally:
        environment.stop()
    wanted = {"Driver": "", "Count": 2, "DeviceIDs": [], "Capabilities": [["gpu"]], "Options": {}}
    assert asked == [wanted, wanted]
