"""What the Docker engine refuses is told as what it is."""

from __future__ import annotations

import pytest
from docker.errors import APIError

from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.errors import EnvironmentFault


@pytest.mark.parametrize(
    ("reason", "said"),
    [
        (
            'runc create failed: exec: "bash": executable file not found in $PATH',
            "a container needs bash and finds none; if the task's image has none, install it in its "
            "environment/Dockerfile",
        ),
        ("no space left on device", "Docker failed while starting a container: no space left on device"),
    ],
)
def test_an_image_without_bash_is_no_failure_of_the_engine(reason: str, said: str) -> None:
    with pytest.raises(EnvironmentFault) as raised, faults("starting a container"):
        raise APIError("refused", explanation=reason)
    assert str(raised.value) == said
