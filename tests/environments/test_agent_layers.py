"""What agents have installed in sandboxes, as `evocode clean --agents` finds it."""

from __future__ import annotations

import contextlib
import shutil
import threading
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from pytest_evocode.cli.kept import clean_command
from pytest_evocode.environments import Installation
from pytest_evocode.environments.docker import engine as docker
from pytest_evocode.environments.programs import Command
from pytest_evocode.environments.sandbox import leftovers
from pytest_evocode.environments.sandbox.engine import SandboxEngine
from pytest_evocode.environments.sandbox.launcher_client import Launcher
from pytest_evocode.environments.sandbox.leftovers import (
    IMAGES,
    agent_layers,
    claim,
    note_installation,
    remove_layer,
)
from pytest_evocode.errors import EnvironmentFault, EnvironmentUnavailable
from pytest_evocode.tasks import Task

pytestmark = pytest.mark.turns(2)

TOOL = Installation("tool@1.0", "head -c 3000000 /dev/zero >/opt/tool")


@pytest.fixture
def memory() -> Iterator[Path]:
    directory = Path("/dev/shm", f"pytest-evocode-{uuid.uuid4().hex[:8]}")
    yield directory
    for path in Path("/dev/shm").glob(f"{directory.name}*"):
        shutil.rmtree(path)


@pytest.fixture
def launcher(tmp_path: Path, memory: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Launcher]:
    def no_docker() -> None:
        raise EnvironmentUnavailable("not in this test")

    monkeypatch.setenv("EVOCODE_CACHE", str(tmp_path / "a cache"))
    monkeypatch.setattr(docker, "connect", no_docker)
    # Not the memory that all sessions share: others of them may run.
    monkeypatch.setattr(leftovers, "state_parents", lambda: (tmp_path / "a cache/sandboxes", memory))
    with contextlib.closing(Launcher()) as made:
        yield made


def clean(*options: str) -> str:
    return CliRunner().invoke(clean_command, ["--agents", *options]).output


def test_a_layer_is_listed_with_its_size_and_removed_once_no_session_runs(launcher: Launcher, plain_task: Task) -> None:
    try:
        engine = SandboxEngine()
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    with contextlib.closing(engine):
        for _ in range(2):
            environment = engine.create(plain_task, env={}, network="no-network", installation=TOOL)
            environment.start()
            environment.stop()
        [used] = agent_layers(launcher)
        assert (used.installed, used.in_use) == ("tool@1.0", True)
        assert used.size > 3_000_000
        assert f"in use: {used}\n" in clean("--dry-run")
        with pytest.raises(EnvironmentFault, match="is in use by now"):
            remove_layer(launcher, used.path, str(used))
        assert environment.layers.below[-1].is_dir()
    [unused] = agent_layers(launcher)
    assert not unused.in_use
    assert f"would remove {unused}\n" in clean("--dry-run")
    assert f"removed {unused}\n" in clean()
    assert agent_layers(launcher) == []


def test_a_layer_of_a_kept_sandbox_stays(launcher: Launcher, plain_task: Task) -> None:
    try:
        engine = SandboxEngine()
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    with contextlib.closing(engine):
        environment = engine.create(plain_task, env={}, network="no-network", installation=TOOL)
        environment.start()
        environment.keep("for-a-look", Command(("true",)), lambda text: text)
    [layer] = agent_layers(launcher)
    assert layer.in_use
    assert f"in use: {layer}\n" in clean()
    assert agent_layers(launcher) == [layer]


def test_looking_waits_for_a_session_that_begins(launcher: Launcher, tmp_path: Path) -> None:
    """One whose lock is looked at as it takes it would go on without, and other sessions would remove its files."""
    sessions, _ = leftovers.state_parents()
    layer = tmp_path / "a cache" / IMAGES / "layer"
    for directory in (sessions / "begins", layer):
        directory.mkdir(parents=True)
    note_installation(layer, "tool@1.0")
    found: list[object] = []
    look = threading.Thread(target=lambda: found.extend(agent_layers(launcher)))
    with claim(sessions):
        look.start()
        look.join(0.5)
        assert list((sessions / "begins").iterdir()) == []
    look.join()
    assert len(found) == 1
