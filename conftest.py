"""Fixtures and plugins of the whole test suite."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pytest_evocode.environments import Engine

pytest_plugins = ["pytester"]


def pytest_configure() -> None:
    """Let the programs that tests start have a signal's default action, however this session was started.

    What ``nohup`` or a shell starts in the background ignores some of them, and so would all its children.
    """
    for number, handler in ((signal.SIGINT, signal.default_int_handler), (signal.SIGQUIT, signal.SIG_DFL)):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, handler)


@pytest.fixture(scope="session")
def why_no_docker() -> str | None:
    """Why no Docker engine can be had, None where one answers."""
    from pytest_evocode.environments.docker.engine import connect
    from pytest_evocode.errors import EnvironmentUnavailable

    try:
        connect().close()
    except EnvironmentUnavailable as error:
        return str(error)
    return None


@pytest.fixture(autouse=True)
def _skip_without_docker(request: pytest.FixtureRequest) -> None:
    if request.node.get_closest_marker("docker") and (why := request.getfixturevalue("why_no_docker")):
        pytest.skip(why)


@pytest.fixture(scope="session")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Engine]:
    """A sandbox engine with a cache of its own; skips where none can be had."""
    from pytest_evocode.environments import choose_engine
    from pytest_evocode.errors import EnvironmentUnavailable

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVOCODE_CACHE", str(tmp_path_factory.mktemp("cache")))
        try:
            engine, _ = choose_engine("sandbox")
        except EnvironmentUnavailable as error:
            pytest.skip(str(error))
        yield engine
        engine.close()
