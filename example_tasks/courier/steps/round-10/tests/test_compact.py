"""COMPACT: a shorter journal, and nothing else is different."""

import pytest
from client import packed, until_queues_have

LONG_AGO, IN_2100 = 1_000_000_000, 4_102_444_800


def compacted(daemon, client):
    """Compact the journal, kill the daemon, and return a client of the next one."""
    assert client.ask("COMPACT") == "OK"
    daemon.restart()
    return daemon.client()


@pytest.mark.requirement("compact", kind="core")
def test_what_is_gone(courier):
    """Messages that are gone are one GONE each, with what is to be remembered, and their bodies are nowhere."""
    daemon = courier()
    client = daemon.client()
    client.put("orders", "secret", "KEY k")
    client.fill("orders", "secret", "kept", "secret")
    for _ in range(2):
        client.ack(client.take("orders"))
    assert client.take("orders").body == b"kept"
    assert [client.ask("PURGE orders"), client.ask("COMPACT")] == ["OK 1", "OK"]
    records = daemon.records()
    gone = [record for record in records if record[0] == "GONE"]
    assert sorted(gone) == [
        ["GONE", "1", "1", "orders", "k"],
        ["GONE", "2", "1", "orders", "-"],
        ["GONE", "4", "-", "orders", "-"],
    ]
    assert [record[1] for record in records if record[0] not in ("GONE", "PURGE")] == ["3", "3"]
    assert packed("secret") not in daemon.journal()


@pytest.mark.requirement("compact", kind="core")
def test_asking_again(courier):
    """Keys, ids and acknowledgements are remembered, whatever has become of their messages."""
    daemon = courier()
    client = daemon.client()
    for number in range(3):
        client.put("orders", "a", f"KEY k{number}")
    client.ask("NACK " + client.take("orders").handle)
    client.ack(client.take("orders"))
    client.ask("PURGE orders")
    client = compacted(daemon, client)
    assert [client.ask("ACK 2 1"), client.ask("ACK 2 2"), client.ask("ACK 1 1")] == ["OK", "ERR stale", "ERR stale"]
    assert [client.put("orders", "a", f"KEY k{number}") for number in range(3)] == ["OK 1", "OK 2", "OK 3"]
    assert [client.put("orders", "b"), client.bodies("orders")] == ["OK 4", ["b"]]


@pytest.mark.requirement("compact", kind="core")
def test_order(courier):
    """Priorities and places are those of before."""
    daemon = courier()
    client = daemon.client()
    for body, options in [("a", ""), ("b", ""), ("c", "PRIO 9"), ("d", ""), ("e", "PRIO 9"), ("f", "")]:
        client.put("orders", body, options)
    taken = [client.take("orders").handle for _ in range(4)]
    for handle in (taken[3], taken[0], taken[2]):
        assert client.ask(f"NACK {handle}") == "OK"
    client = compacted(daemon, client)
    assert client.bodies("orders") == ["c", "d", "f", "b", "a"]
    assert client.ask(f"ACK {taken[1]}") == "OK"


@pytest.mark.requirement("compact", kind="integration")
def test_leases_and_attempts(courier):
    """Leases go on, attempts are counted on, and what is given back later goes behind."""
    puts = "".join(f"PUT {id} orders {packed(body)}\n" for id, body in enumerate("abc", 1))
    daemon = courier(journal=f"{puts}TAKE 1 6 {IN_2100}\nTAKE 2 3 {LONG_AGO}\nTAKE 3 1 {IN_2100}\nNACK 3 1\n")
    client = compacted(daemon, daemon.client())
    assert client.listed("QUEUES") == ["orders 2 1 0"]
    assert [client.take("orders").handle, client.ask("NACK 1 6"), client.take("orders").handle] == ["2 4", "OK", "3 2"]
    assert client.take("orders").handle == "1 7"


def begin_purged_and_dead(start):
    daemon = start("--max-attempts 1")
    client = daemon.client()
    client.fill("orders", "a", "b")
    client.ask("NACK " + client.take("orders").handle)
    # These leases have to last until the case looks.
    taken = [client.take(queue, "LEASE 86400").handle for queue in ("orders.dead", "orders")]
    assert [*taken, client.ask("PURGE orders")] == ["1 2", "2 1", "OK 0"]
    client.put("orders", "c", "TTL 1")
    client.fill("orders", "d")
    return daemon, client


@pytest.mark.requirement("compact", kind="integration")
def test_purged_and_dead(begun):
    """What was purged while it is leased is so still, what is put later is not, and the dead are dead."""
    daemon, client = begun()
    until_queues_have(client, "orders 1 1 0", "orders.dead 1 1 0")
    daemon.arguments = ""
    client = compacted(daemon, client)
    assert client.listed("QUEUES") == ["orders 1 1 0", "orders.dead 1 1 0"]
    assert [client.ask("NACK 2 1"), client.ask("NACK 1 2")] == ["OK", "OK"]
    assert (client.bodies("orders"), client.bodies("orders.dead")) == (["d"], ["a", "c"])


@pytest.mark.requirement("compact", kind="boundary")
def test_what_comes_after(courier):
    """The daemon goes on in the new journal, and may compact it again; all in DIR is one file."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b")
    client.ack(client.take("orders"))
    assert [client.ask("COMPACT"), daemon.files(), client.put("orders", "c")] == ["OK", ["journal"], "OK 3"]
    daemon.restart()
    client = daemon.client()
    assert [client.ask("COMPACT"), client.ask("COMPACT"), client.put("orders", "d")] == ["OK", "OK", "OK 4"]
    assert client.ack(client.take("orders")) == "OK"
    daemon.restart()
    assert daemon.client().bodies("orders") == ["c", "d"]


@pytest.mark.requirement("compact", kind="boundary")
def test_records(courier):
    """Whatever happened to a message, it is a PUT with all its words and at most one TAKE, NACK and DEAD."""
    daemon = courier()
    client = daemon.client()
    client.put("orders", "", "KEY k PRIO 2 TTL 31536000")
    for _ in range(5):
        client.ask("NACK " + client.take("orders").handle)
    client.ask("TOUCH " + client.take("orders").handle + " 500")
    expires = daemon.records()[0][6]
    client = compacted(daemon, client)
    records = daemon.records()
    assert [record for record in records if record[0] == "PUT"] == [["PUT", "1", "orders", "-", "k", "2", expires]]
    names = [record[0] for record in records]
    assert max(names.count(name) for name in names) == 1
    assert set(names) <= {"PUT", "TAKE", "NACK"}
    assert client.ask("ACK 1 6") == "OK"


@pytest.mark.requirement("compact-journal", kind="integration")
def test_journal_with_what_is_gone(courier):
    """A daemon goes on from GONE records, wherever they stand."""
    journal = f"GONE 1 3 orders k\nPUT 2 orders {packed('b')} - 5 -\nGONE 9 - orders l\nGONE 4 2 orders -\n"
    client = courier(journal=journal).client()
    assert [client.put("orders", "", f"KEY {key}") for key in "kl"] == ["OK 1", "OK 9"]
    assert [client.ask("ACK 1 3"), client.ask("ACK 1 1"), client.ask("ACK 9 1"), client.ask("ACK 4 2")] == [
        "OK",
        "ERR stale",
        "ERR stale",
        "OK",
    ]
    assert [client.put("orders", "c"), client.bodies("orders")] == ["OK 10", ["b", "c"]]


@pytest.mark.requirement("len-withdrawn", kind="error")
def test_len_is_no_command(shared):
    """There is no LEN any more, and COMPACT has no words behind it."""
    client = shared.client()
    assert [client.ask("LEN orders"), client.ask("LEN"), client.ask("COMPACT now")] == [
        "ERR unknown-command",
        "ERR unknown-command",
        "ERR bad-request",
    ]
    assert client.ask("COMPACT") == "OK"
