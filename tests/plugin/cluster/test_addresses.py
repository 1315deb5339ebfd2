"""An address at which no cluster is, is one message at once, where Ray itself tries for minutes."""

from __future__ import annotations

import socket

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.plugin.cluster.ray_cluster import check_address, refusal

pytestmark = pytest.mark.every_python


@pytest.mark.parametrize("address", ["127.0.0.1:{}", "ray://127.0.0.1:{}"])
def test_an_address_where_nothing_listens_is_refused(address: str) -> None:
    with socket.socket() as bound:  # Nobody else can have the port, and nothing listens.
        bound.bind(("127.0.0.1", 0))
        named = address.format(bound.getsockname()[1])
        with pytest.raises(UsageError) as refused:
            check_address(named)
        assert str(refused.value).startswith(f"--evocode-cluster=ray:{named}: nothing answers there (")
        bound.listen()
        check_address(named)


@pytest.mark.parametrize("address", ["http://head:8265", "https://head:8265"])
def test_an_address_for_jobs_is_refused_with_how_to_submit_one(address: str) -> None:
    with pytest.raises(UsageError, match=f"ray job submit --address {address} -- pytest --evocode-cluster=ray:auto"):
        check_address(address)


@pytest.mark.parametrize("address", ["", "auto", "local", "127.0.0.1:none"])
def test_other_addresses_are_left_to_ray(address: str) -> None:
    check_address(address)


@pytest.mark.parametrize(
    ("address", "mode", "is_told"),
    [("head:6379", None, True), ("head:6379", "token", False), ("auto", None, False), ("", None, False)],
)
def test_an_address_that_refuses_may_want_a_token(
    address: str, mode: str | None, is_told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    if mode is not None:
        monkeypatch.setenv("RAY_AUTH_MODE", mode)
    said = str(refusal(address, ConnectionError("Failed to connect")))
    assert "Failed to connect" in said
    assert ("export RAY_AUTH_MODE=token" in said) is is_told
