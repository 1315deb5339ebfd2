"""TOUCH: a lease that goes on."""

import pytest
from client import packed


@pytest.mark.requirement("touch", kind="core")
def test_a_lease_goes_on(courier):
    """A lease is as long as TOUCH says from then on: longer than it was, and shorter as well."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a")
    assert client.take("orders", "LEASE 1000").handle == "1 1"
    assert [client.ask("TOUCH 1 1 86400"), client.ask("TOUCH 1 1 1")] == ["OK", "OK"]
    assert client.take("orders", "WAIT 60").handle == "1 2"
    assert client.ask("TOUCH 1 1 60") == "ERR stale"


@pytest.mark.requirement("touch", kind="integration")
def test_it_outlives_the_daemon(courier):
    """A touched lease is a record with the same attempt and a later end, and is there after a restart."""
    daemon = courier(journal=f"PUT 1 orders {packed('a')}\n")
    client = daemon.client()
    client.take("orders", "LEASE 100")
    assert client.ask("TOUCH 1 1 9000") == "OK"
    taken, touched = daemon.records()[1:]
    assert taken[:3] == touched[:3] == ["TAKE", "1", "1"]
    assert int(touched[3]) - int(taken[3]) > 8000
    daemon.restart()
    client = daemon.client()
    assert [client.take("orders"), client.ask("TOUCH 1 1 60"), client.ask("ACK 1 1")] == ["EMPTY", "OK", "OK"]


@pytest.mark.requirement("touch", kind="error")
def test_stale(client):
    """What is not leased with this attempt cannot be touched: free, given back, acknowledged, taken by another."""
    client.fill("orders", "a", "b")
    answers = [client.ask("TOUCH 1 1 60"), client.ask("TOUCH 1 0 60"), client.ask("TOUCH 3 1 60")]
    client.take("orders")
    client.take("orders")
    assert [client.ask("ACK 1 1"), client.ask("NACK 2 1")] == ["OK", "OK"]
    answers += [client.ask("TOUCH 1 1 60"), client.ask("TOUCH 2 1 60"), client.ask("TOUCH 2 2 60")]
    assert answers == ["ERR stale"] * 6
    assert client.take("orders").handle == "2 2"


@pytest.mark.requirement("touch", kind="error")
def test_wrong_lines(client):
    """A lease is touched by id and attempt, for 1 to 86400 seconds."""
    client.fill("orders", "a")
    client.take("orders")
    wrong = ["TOUCH 1 1", "TOUCH 1 1 0", "TOUCH 1 1 86401", "TOUCH 1 1 60 60", "TOUCH 1 1 LEASE 60", "TOUCH 1 1 long"]
    assert [client.ask(request) for request in wrong] == ["ERR bad-request"] * len(wrong)
    assert client.ask("TOUCH 1 1 86400") == "OK"
