"""Engines and tasks for the environment tests: real sandboxes, real containers, nothing of the user's cache."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

from pytest_evocode.environments import Engine, Environment
from pytest_evocode.errors import EnvironmentUnavailable
from pytest_evocode.tasks import Network, Task, load_task

if TYPE_CHECKING:
    from pytest_evocode.environments.docker.engine import DockerEngine

DOCKERFILE = """\
FROM python:3.11-slim-bookworm
ENV GREETING="hello from the image" WHO=image
WORKDIR /app
RUN echo original > /app/from-image && mkdir -p /app/tree/sub && echo deep > /app/tree/sub/leaf
"""
BASE = "python:3.11-slim-bookworm"
ENGINES = (
    "sandbox",
    pytest.param("sandbox-rootless", marks=pytest.mark.slow),
    pytest.param("docker", marks=pytest.mark.docker),
)


def pytest_itemcollected(item: pytest.Item) -> None:
    """By day run them all only where a change reaches the environments."""
    item.add_marker(pytest.mark.guards("environments"))


class MakeTask(Protocol):
    """Writes a one-round task and loads it."""

    def __call__(
        self, dockerfile: str | None = DOCKERFILE, *, files: Mapping[str, str | bytes] = {}, toml: str = ""
    ) -> Task: ...


class MakeEnvironment(Protocol):
    """Creates and starts an environment that is stopped when the test ends."""

    def __call__(
        self, task: Task | None = None, *, env: Mapping[str, str] = {}, network: Network | None = None
    ) -> Environment: ...


@pytest.fixture(scope="session", autouse=True)
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A cache of this session's own."""
    directory = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOCODE_CACHE", str(directory))
        yield directory


@pytest.fixture(scope="session")
def make_task(tmp_path_factory: pytest.TempPathFactory) -> MakeTask:
    """``files`` go into the build context."""

    def make(dockerfile: str | None = DOCKERFILE, *, files: Mapping[str, str | bytes] = {}, toml: str = "") -> Task:
        directory = tmp_path_factory.mktemp("task")
        context: dict[str, str | bytes] = {"environment/Dockerfile": dockerfile} if dockerfile is not None else {}
        context |= {f"environment/{name}": contents for name, contents in files.items()}
        context |= {"task.toml": toml, "instruction.md": "Do it.\n", "tests/test.sh": "true\n"}
        for name, contents in context.items():
            path = directory / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(contents if isinstance(contents, bytes) else contents.encode())
        return load_task(directory)

    return make


def start_engine(kind: str) -> Engine:
    """An engine by its name in ``ENGINES``; skips with the reason where this machine has none."""
    from pytest_evocode.environments.docker.engine import DockerEngine
    from pytest_evocode.environments.sandbox.engine import SandboxEngine

    if kind == "sandbox-rootless" and os.getuid() != 0:
        pytest.skip("the sandbox is rootless for this user anyway")
    try:
        if kind == "docker":
            return DockerEngine()
        return SandboxEngine(rootless=True if kind == "sandbox-rootless" else None)
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))


@pytest.fixture(scope="session", params=ENGINES)
def engine(request: pytest.FixtureRequest, cache: Path) -> Iterator[Engine]:
    """Every engine in turn."""
    started = start_engine(request.param)
    yield started
    started.close()


@pytest.fixture(scope="session", params=ENGINES[:2])
def sandbox_engine(request: pytest.FixtureRequest, cache: Path) -> Iterator[Engine]:
    """The sandbox as the current user and, for root, without using root's rights."""
    started = start_engine(request.param)
    yield started
    started.close()


@pytest.fixture(scope="session")
def plain_task(make_task: MakeTask) -> Task:
    """The task of :data:`DOCKERFILE`."""
    return make_task()


@pytest.fixture
def make_environment(engine: Engine, plain_task: Task) -> Iterator[MakeEnvironment]:
    """For tests that want an environment of their own kind."""
    made: list[Environment] = []

    def make(task: Task | None = None, *, env: Mapping[str, str] = {}, network: Network | None = None) -> Environment:
        environment = engine.create(task or plain_task, env=env, network=network)
        made.append(environment)
        environment.start()
        return environment

    yield make
    for environment in made:
        environment.stop()


@pytest.fixture
def environment(make_environment: MakeEnvironment) -> Environment:
    """A started environment of the plain task."""
    return make_environment()


@pytest.fixture(scope="session")
def shared(engine: Engine, plain_task: Task) -> Iterator[Environment]:
    """One started environment for tests that leave nothing behind."""
    environment = engine.create(plain_task, env={"WHO": "task", "FROM_TASK": "yes"}, network="no-network")
    environment.start()
    yield environment
    environment.stop()


@pytest.fixture(scope="module")
def docker(cache: Path) -> Iterator[DockerEngine]:
    """An engine of this module's own."""
    from pytest_evocode.environments.docker.engine import DockerEngine

    try:
        engine = DockerEngine()
    except EnvironmentUnavailable as error:
        pytest.skip(str(error))
    yield engine
    engine.close()
