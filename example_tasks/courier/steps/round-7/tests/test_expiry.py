"""Messages that expire."""

import pytest
from client import packed, until_queues_have

LONG_AGO, IN_2100 = 1_000_000_000, 4_102_444_800


def begin_expired_is_not_handed_out(start):
    client = start().client()
    client.put("orders", "a", "TTL 1")
    client.put("orders", "b", "TTL 31536000")
    client.put("orders", "c")
    return client


@pytest.mark.requirement("ttl", kind="core")
def test_expired_is_not_handed_out(begun):
    """A message whose time is over is no message of the queue any more; one without or with more time is."""
    client = begun()
    until_queues_have(client, "orders 2 0 0")
    assert client.bodies("orders") == ["b", "c"]


@pytest.mark.requirement("ttl-gone", kind="core", retired="round-8")
def test_expired_is_gone(courier):
    """What has expired leaves nothing but its id and its key."""
    journal = f"PUT 1 orders {packed('a')} k 5 {LONG_AGO}\nPUT 2 orders {packed('b')} - 5 {LONG_AGO}\n"
    client = courier(journal=journal).client()
    assert [client.ask("QUEUES"), client.take("orders"), client.ask("PURGE orders")] == ["OK 0", "EMPTY", "OK 0"]
    assert [client.put("orders", "a", "KEY k"), client.put("orders", "c")] == ["OK 1", "OK 3"]


@pytest.mark.requirement("ttl", kind="boundary")
def test_expired_while_it_is_leased(courier):
    """What expires while it is leased stays with its worker, and is not handed out again once he gives it back."""
    journal = "".join(f"PUT {id} orders {packed('a')} - 5 {LONG_AGO}\nTAKE {id} 1 {IN_2100}\n" for id in (1, 2))
    client = courier(journal=journal).client()
    assert client.listed("QUEUES") == ["orders 0 2 0"]
    assert [client.ask("TOUCH 1 1 60"), client.ask("ACK 1 1"), client.ask("NACK 2 1")] == ["OK", "OK", "OK"]
    assert [client.take("orders"), client.ask("ACK 2 1"), client.ask("ACK 1 1")] == ["EMPTY", "ERR stale", "OK"]


@pytest.mark.requirement("ttl-journal", kind="core")
def test_records(courier):
    """The seventh word of a PUT is when it expires, or a hyphen."""
    daemon = courier()
    client = daemon.client()
    for options in ("TTL 1000", "PRIO 3 TTL 5000 KEY k", ""):
        client.put("orders", "a", options)
    records = daemon.records()
    assert [record[4:6] for record in records] == [["-", "5"], ["k", "3"], ["-", "5"]]
    first, second, third = [record[6] for record in records]
    assert (third, 3990 < int(second) - int(first) < 4100, LONG_AGO < int(first) < IN_2100) == ("-", True, True)


@pytest.mark.requirement("ttl-journal", kind="integration")
def test_time_goes_on_without_a_daemon(courier):
    """What a journal says about the end counts, and records of earlier editions never expire."""
    journal = f"PUT 1 orders {packed('a')}\nPUT 2 orders {packed('b')} k 7\nPUT 3 orders {packed('c')} - 9 {LONG_AGO}\n"
    daemon = courier(journal=f"{journal}PUT 4 orders {packed('d')} - 9 {IN_2100}\nPUT 5 orders {packed('e')} - 1 -\n")
    assert daemon.client().bodies("orders") == ["d", "b", "a", "e"]


@pytest.mark.requirement("ttl", kind="error")
def test_wrong_times(shared):
    """A message lives from 1 second to a year."""
    client = shared.client()
    wrong = ["TTL", "TTL 0", "TTL 31536001", "TTL -1", "TTL 5 TTL 5"]
    assert [client.put("times", "QUIT", options) for options in wrong] == ["ERR bad-request"] * len(wrong)
    assert [client.put("times", "a", "TTL 31536000")[:3], client.bodies("times")] == ["OK ", ["a"]]
