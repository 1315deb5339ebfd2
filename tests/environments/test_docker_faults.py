"""What the Docker engine refuses is told as what it is."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from docker import APIClient
from docker.errors import APIError

from pytest_evocode.environments.docker.calls import faults
from pytest_evocode.environments.docker.client import EngineClient
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


@pytest.mark.parametrize(
    "full",
    [
        "could not find an available, non-overlapping IPv4 address pool",
        "all predefined address pools have been fully subnetted",
    ],
)
def test_a_network_for_which_the_engine_has_no_addresses_gets_others(
    monkeypatch: pytest.MonkeyPatch, full: str
) -> None:
    """The first of them overlaps with somebody's."""
    answers = [APIError(full), APIError("Pool overlaps with other one on this address space"), None]
    subnets = []

    def create(self: APIClient, name: str, ipam: Any = None, **settings: Any) -> dict[str, str]:
        subnets.append(ipam and ipaddress.IPv4Network(ipam["Config"][0]["Subnet"]))
        if (error := answers[len(subnets) - 1]) is not None:
            raise error
        return {"Id": name, **settings}

    monkeypatch.setattr(APIClient, "create_network", create)
    client = object.__new__(EngineClient)
    assert client.create_network("a", driver="bridge") == {"Id": "a", "driver": "bridge"}
    none, first, second = subnets
    assert none is None
    assert first != second
    assert all(each.subnet_of(ipaddress.IPv4Network("198.18.0.0/15")) for each in (first, second))


def test_a_network_that_cannot_be_made_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    """Other addresses are tried only where those of the engine are used up."""
    tried = []

    def refuse(self: APIClient, name: str, **settings: Any) -> None:
        tried.append(name)
        raise APIError(f"no {name}" if "ipam" not in settings else "overlaps")

    monkeypatch.setattr(APIClient, "create_network", refuse)
    for name in ("bridge", "address pool"):
        with pytest.raises(APIError, match=f"no {name}"):
            object.__new__(EngineClient).create_network(name)
    assert tried.count("bridge") == 1
