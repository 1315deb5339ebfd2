"""Fixtures and plugins of the whole test suite."""

from __future__ import annotations

import pytest

pytest_plugins = ["pytester"]


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
