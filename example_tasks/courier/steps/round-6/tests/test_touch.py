"""TOUCH: a lease that goes on."""

import pytest
from client import packed


def begin_a_lease_goes_on(start):
    client = start().client()
    client.fill("orders", "a", "b")
    # All at once, so that the short lease has not ended when it is touched.
    client.send("TAKE orders LEASE 1000\nTAKE orders LEASE 1\nTOUCH 2 1 86400\nTOUCH 1 1 86400\nTOUCH 1 1 1\n")
    assert [client.taken().handle, client.taken().handle, *client.lines(3)] == ["1 1", "2 1", "OK", "OK", "OK"]
    client.send("TAKE orders WAIT 3600 LEASE 86400\nTAKE orders\n")
    return client


@pytest.mark.requirement("touch", kind="core")
def test_a_lease_goes_on(begun):
    """A lease is as long as TOUCH says from then on: longer than it was, and shorter as well."""
    client = begun()
    assert [client.taken().handle, client.taken()] == ["1 2", "EMPTY"]
    assert [client.ask("TOUCH 1 1 60"), client.ask("ACK 2 1")] == ["ERR stale", "OK"]


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
def test_stale(shared):
    """What is not leased with this attempt cannot be touched: free, given back, acknowledged, taken by another."""
    client = shared.client()
    a, b = client.fill("touch", "a", "b")
    answers = [client.ask(f"TOUCH {a} 1 60"), client.ask(f"TOUCH {a} 0 60"), client.ask(f"TOUCH {b + 1} 1 60")]
    client.take("touch")
    client.take("touch")
    assert [client.ask(f"ACK {a} 1"), client.ask(f"NACK {b} 1")] == ["OK", "OK"]
    answers += [client.ask(f"TOUCH {a} 1 60"), client.ask(f"TOUCH {b} 1 60"), client.ask(f"TOUCH {b} 2 60")]
    assert answers == ["ERR stale"] * 6
    assert client.take("touch").handle == f"{b} 2"


@pytest.mark.requirement("touch", kind="error")
def test_wrong_lines(shared):
    """A lease is touched by id and attempt, for 1 to 86400 seconds."""
    client = shared.client()
    client.fill("touch-lines", "a")
    handle = client.take("touch-lines").handle
    wrong = ["", " 0", " 86401", " 60 60", " LEASE 60", " long"]
    assert [client.ask(f"TOUCH {handle}{rest}") for rest in wrong] == ["ERR bad-request"] * len(wrong)
    assert client.ask(f"TOUCH {handle} 86400") == "OK"
