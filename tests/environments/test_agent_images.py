"""The images in which agents' programs are installed, as `evocode clean --agents` finds them."""

from __future__ import annotations

import contextlib
import uuid

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments import Installation
from pytest_evocode.environments.docker.calls import remove
from pytest_evocode.environments.docker.engine import DockerEngine, connect
from pytest_evocode.environments.docker.images import AgentImage, agent_images
from pytest_evocode.tasks import Task

pytestmark = [pytest.mark.turns(2), pytest.mark.docker]


def test_an_agents_image_is_listed_with_its_size_and_removed_once_nothing_uses_it(plain_task: Task) -> None:
    name = f"tool-{uuid.uuid4()}@1.0"
    installation = Installation(name, f"# {name}\nhead -c 3000000 /dev/zero >/opt/tool")

    def found() -> list[AgentImage]:
        return [image for image in agent_images(client) if image.installed == name]

    with contextlib.closing(DockerEngine()) as engine, contextlib.closing(connect()) as client:
        environment = engine.create(plain_task, env={}, network="no-network", installation=installation)
        environment.start()
        [used] = found()
        assert used.in_use
        assert used.size > 3_000_000
        listed = CliRunner().invoke(clean_command, ["--agents", "--dry-run"]).output
        assert f"in use: {used}\n" in listed
        environment.stop()
        [unused] = found()
        assert not unused.in_use
        listed = CliRunner().invoke(clean_command, ["--agents", "--dry-run"]).output
        assert f"would remove {unused}\n" in listed
        remove(client, "image", unused.name, force=False)
        assert found() == []
