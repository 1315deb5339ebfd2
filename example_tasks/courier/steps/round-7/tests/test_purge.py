"""PURGE, as edition 7 has it."""

import pytest
from client import packed, until_queues_have


@pytest.mark.requirement("purge", kind="core")
def test_what_is_free_is_removed(courier):
    """PURGE removes what is not leased, of this queue alone, and says how many; what is put later is there."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b", "c", "d")
    client.fill("returns", "x")
    client.take("orders")
    client.ask("NACK " + client.take("orders").handle)
    assert [client.ask("PURGE orders"), client.ask("PURGE orders"), client.ask("PURGE none")] == [
        "OK 3",
        "OK 0",
        "OK 0",
    ]
    client.fill("orders", "e")
    assert (client.listed("QUEUES"), client.bodies("orders")) == (["orders 1 1 0", "returns 1 0 0"], ["e"])
    daemon.restart()
    assert daemon.client().listed("QUEUES") == ["orders 0 2 0", "returns 1 0 0"]


@pytest.mark.requirement("purge", kind="boundary")
def test_leased_ones_stay_with_their_workers(courier):
    """What is leased can be touched and acknowledged; given back, it is gone, in this daemon and in the next."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b", "c")
    for _ in range(3):
        client.take("orders")
    assert client.ask("PURGE orders") == "OK 0"
    assert [client.ask("TOUCH 1 1 60"), client.ask("ACK 1 1"), client.ask("NACK 2 1")] == ["OK", "OK", "OK"]
    assert [client.take("orders"), client.listed("QUEUES")] == ["EMPTY", ["orders 0 1 0"]]
    daemon.restart()
    client = daemon.client()
    assert [client.ask("TOUCH 3 1 60"), client.ask("NACK 3 1"), client.take("orders"), client.ask("QUEUES")] == [
        "OK",
        "OK",
        "EMPTY",
        "OK 0",
    ]
    assert [client.ask("ACK 3 1"), client.ask("ACK 2 1"), client.ask("ACK 1 1")] == ["ERR stale", "ERR stale", "OK"]


def begin_the_end_of_a_lease(start):
    daemon = start()
    client, other = daemon.client(), daemon.client()
    client.fill("orders", "a")
    client.take("orders")
    assert [client.ask("PURGE orders"), client.ask("TOUCH 1 1 1")] == ["OK 0", "OK"]
    other.send("TAKE orders WAIT 3600\n")
    return client, other


@pytest.mark.requirement("purge", kind="boundary")
def test_the_end_of_a_lease(begun):
    """What was purged while it was leased is gone when its lease ends, and nobody who waits gets it."""
    client, other = begun()
    until_queues_have(client, "orders 0 0 1")
    assert [client.ask("ACK 1 1"), client.put("orders", "b"), other.taken().body] == ["ERR stale", "OK 2", b"b"]


@pytest.mark.requirement("purge", kind="integration")
def test_ids_and_keys_are_remembered(courier):
    """What was purged had an id and a key, and neither is given again."""
    daemon = courier()
    client = daemon.client()
    client.put("orders", "a", "KEY k")
    client.put("orders", "b")
    assert client.ask("PURGE orders") == "OK 2"
    daemon.restart()
    client = daemon.client()
    assert [client.put("orders", "a", "KEY k"), client.put("orders", "c"), client.bodies("orders")] == [
        "OK 1",
        "OK 3",
        ["c"],
    ]


@pytest.mark.requirement("purge-journal", kind="core")
def test_records(courier):
    """A purge is one record, none where it changes nothing, and that of a journal counts for what stands before it."""
    puts = "".join(f"PUT {id} orders {packed(body)} - 5\n" for id, body in enumerate("abc", 1))
    leases = "TAKE 1 1 4102444800\nTAKE 2 1 1000000000\n"
    daemon = courier(journal=f"{puts}{leases}PURGE orders\nPUT 4 orders {packed('d')} - 5\n")
    client = daemon.client()
    assert (client.listed("QUEUES"), client.ask("NACK 1 1"), client.bodies("orders")) == (["orders 1 1 0"], "OK", ["d"])
    client.fill("returns", "x")
    assert client.ask("PURGE returns") == "OK 1"
    assert daemon.records()[-1] == ["PURGE", "returns"]
    before = daemon.journal()
    assert [client.ask("PURGE returns"), client.ask("PURGE none"), daemon.journal() == before] == ["OK 0", "OK 0", True]


@pytest.mark.requirement("purge", kind="error")
def test_wrong_lines(shared):
    """PURGE has the name of one queue."""
    client = shared.client()
    client.fill("purge-lines", "a")
    wrong = ["PURGE", "PURGE Purge-lines", "PURGE purge-lines purge-lines", "PURGE *"]
    assert [client.ask(request) for request in wrong] == ["ERR bad-request"] * 4
    assert [client.ask("PURGE purge-lines"), client.take("purge-lines")] == ["OK 1", "EMPTY"]
