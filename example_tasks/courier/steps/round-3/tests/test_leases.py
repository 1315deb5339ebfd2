"""Leases: who has a message does not depend on a connection."""

import pytest
from client import packed

LONG_AGO, IN_2100 = 1_000_000_000, 4_102_444_800


@pytest.mark.requirement("lease", kind="core")
def test_answer_to_take(client):
    """TAKE answers with id, attempt and length, and then the body and a LF."""
    client.put("orders", "two tents")
    client.send("TAKE orders\nNACK 1 1\nTAKE orders\nTAKE orders\n")
    assert client.lines(6) == ["MSG 1 1 9", "two tents", "OK", "MSG 1 2 9", "two tents", "EMPTY"]


@pytest.mark.requirement("lease", kind="core")
def test_a_connection_that_ends_changes_nothing(shared):
    """What a connection has taken stays leased when it ends, and any other may acknowledge it."""
    gone = shared.client()
    one, two = gone.fill("ends", "a", "b")
    gone.take("ends")
    gone.take("ends")
    assert gone.ask("QUIT") == "BYE"
    other = shared.client()
    assert [other.take("ends"), other.ask(f"ACK {one} 1"), other.ask(f"NACK {two} 1")] == ["EMPTY", "OK", "OK"]
    assert other.take("ends").handle == f"{two} 2"


def begin_the_end_of_a_lease(start):
    daemon = start()
    late, other = daemon.client(), daemon.client()
    late.fill("orders", "a")
    assert late.take("orders", "LEASE 1").handle == "1 1"
    other.send("TAKE orders LEASE 86400 WAIT 3600\n")
    return late, other


@pytest.mark.requirement("lease-end", kind="core")
def test_the_end_of_a_lease(begun):
    """A message whose lease has ended goes to a client that waits, with the next attempt, and the old one is stale."""
    late, other = begun()
    again = other.taken()
    assert (again.handle, again.body) == ("1 2", b"a")
    assert [late.ask("ACK 1 1"), late.ask("NACK 1 1"), late.ask("ACK 1 2")] == ["ERR stale", "ERR stale", "OK"]
    assert late.take("orders") == "EMPTY"


@pytest.mark.requirement("lease-end", kind="boundary")
def test_place_after_a_lease(courier):
    """A message whose lease has ended is before younger ones again."""
    journal = f"PUT 1 orders {packed('a')}\nPUT 2 orders {packed('b')}\nTAKE 1 1 {LONG_AGO}\n"
    client = courier(journal=journal).client()
    assert [client.take("orders").handle, client.take("orders").handle] == ["1 2", "2 1"]


@pytest.mark.requirement("lease-end", kind="error")
def test_stale(shared):
    """A lease is named by id and attempt, and is good for one NACK."""
    client = shared.client()
    a, b = client.fill("stale", "a", "b")
    client.take("stale")
    requests = [f"ACK {a} 2", f"ACK {a} 0", f"NACK {a} 2", f"ACK {b} 1", f"NACK {b} 0", f"ACK {b + 1} 1"]
    requests += [f"NACK {a} 1", f"NACK {a} 1", f"ACK {a} 1"]
    assert [client.ask(request) for request in requests] == ["ERR stale"] * 6 + ["OK"] + ["ERR stale"] * 2
    assert sorted(client.bodies("stale")) == ["a", "b"]


@pytest.mark.requirement("acknowledged-once", kind="error", retired="round-4")
def test_acknowledged_is_stale(client):
    """What is gone cannot be acknowledged again."""
    client.fill("orders", "a")
    assert client.take("orders").handle == "1 1"
    assert [client.ask("ACK 1 1"), client.ask("ACK 1 1")] == ["OK", "ERR stale"]


@pytest.mark.requirement("lease", kind="integration")
def test_leases_outlive_the_daemon(courier):
    """Leases and attempts go on in the next daemon."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b", "c")
    assert [client.take("orders", "LEASE 86400").handle for _ in range(2)] == ["1 1", "2 1"]
    assert client.ask("NACK 2 1") == "OK"
    daemon.restart()
    client = daemon.client()
    assert client.listed("QUEUES") == ["orders 2 1 0"]
    assert client.ask("ACK 1 1") == "OK"
    assert sorted(client.take("orders").handle for _ in range(2)) == ["2 2", "3 1"]


@pytest.mark.requirement("lease-journal", kind="core")
def test_records(courier):
    """TAKE, NACK and ACK are records before they are answered, with attempt and the end of the lease."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a")
    client.take("orders", "LEASE 1000")
    client.ask("NACK 1 1")
    client.take("orders")
    client.ask("NACK 1 2")
    client.take("orders", "LEASE 3000")
    client.ask("ACK 1 3")
    records = daemon.records()[1:]
    assert [record[:3] for record in records] == [
        ["TAKE", "1", "1"],
        ["NACK", "1", "1"],
        ["TAKE", "1", "2"],
        ["NACK", "1", "2"],
        ["TAKE", "1", "3"],
        ["ACK", "1", "3"],
    ]
    first, usual, second = (int(record[3]) for record in records[::2])
    assert LONG_AGO < usual < first < second < IN_2100
    assert 900 < first - usual <= 941  # 1000 and 60 seconds, the second on a slow machine somewhat later.
    assert [len(record) for record in records] == [4, 3, 4, 3, 4, 3]


@pytest.mark.requirement("lease-journal", kind="integration")
def test_leases_of_a_journal(courier):
    """A daemon goes on from the leases that a journal has, whether they have ended or not."""
    puts = "".join(f"PUT {id} orders {packed(body)}\n" for id, body in enumerate("abcd", 1))
    leases = f"TAKE 1 1 {LONG_AGO}\nTAKE 1 2 {IN_2100}\nTAKE 2 1 {IN_2100}\nNACK 2 1\n"
    leases += f"TAKE 3 1 {IN_2100}\nACK 3 1\nTAKE 4 1 {LONG_AGO}\nTAKE 4 2 {LONG_AGO}\n"
    client = courier(journal=puts + leases).client()
    assert sorted(client.take("orders").handle for _ in range(2)) == ["2 2", "4 3"]
    assert [client.take("orders"), client.ask("ACK 4 2"), client.ask("ACK 1 2")] == ["EMPTY", "ERR stale", "OK"]


@pytest.mark.requirement("lease-journal", kind="boundary")
def test_journal_of_two_editions(courier):
    """Records of edition 1 and of edition 3 may stand in one journal."""
    daemon = courier(
        journal=f"PUT 1 orders {packed('a')}\nPUT 2 orders {packed('b')}\nPUT 3 orders {packed('c')}\nACK 2\n"
    )
    client = daemon.client()
    assert client.ack(client.take("orders")) == "OK"
    daemon.restart()
    client = daemon.client()
    assert [client.take("orders").handle, client.take("orders"), client.put("orders")] == ["3 1", "EMPTY", "OK 4"]


@pytest.mark.requirement("lease", kind="error")
def test_wrong_lines(shared):
    """Leases are of 1 to 86400 seconds, and ACK and NACK name an attempt."""
    client = shared.client()
    (id,) = client.fill("lease-lines", "a")
    wrong = ["LEASE 0", "LEASE 86401", "LEASE 5 LEASE 5", "WAIT 5 LEASE"]
    wrong = [f"TAKE lease-lines {options}" for options in wrong] + ["ACK 1", "NACK 1", "NACK 1 1 1"]
    assert [client.ask(request) for request in wrong] == ["ERR bad-request"] * len(wrong)
    assert client.take("lease-lines", "LEASE 86400").handle == f"{id} 1"
