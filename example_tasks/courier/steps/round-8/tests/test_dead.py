"""Dead messages: what has expired, and what was handed out too often."""

import time

import pytest
from client import packed, until_clients_wait, until_queues_have

LONG_AGO, IN_2100 = 1_000_000_000, 4_102_444_800


def spent(client, queue="orders"):
    """Take a message, give it back, and return its handle."""
    message = client.take(queue)
    assert client.ask(f"NACK {message.handle}") == "OK"
    return message.handle


def until_dead(daemon, *ids):
    """Wait until the last records say that these died, while nobody asks for anything; return those records."""
    deadline = time.monotonic() + 20
    wanted = [["DEAD", id] for id in ids]
    while (found := sorted(daemon.records()[-len(ids) :])) != wanted and time.monotonic() < deadline:
        time.sleep(0.05)
    return found


def begin_expired(start):
    daemon = start()
    client = daemon.client()
    client.put("orders", "a", "TTL 1")
    client.put("orders", "b")
    return daemon, client


@pytest.mark.requirement("dead-expired", kind="core")
def test_expired(begun):
    """What expires is in the dead queue, with its id and body, and stays there."""
    daemon, client = begun()
    until_queues_have(client, "orders 1 0 0", "orders.dead 1 0 0")
    assert client.take("orders.dead").handle == "1 1"
    assert client.ask("NACK 1 1") == "OK"
    daemon.restart()
    client = daemon.client()
    message = client.take("orders.dead")
    assert (message.handle, message.body, client.bodies("orders")) == ("1 2", b"a", ["b"])
    assert [client.ack(message), client.take("orders.dead"), client.ack(message)] == ["OK", "EMPTY", "OK"]


@pytest.mark.requirement("dead-attempts", kind="core")
def test_too_many_attempts(courier):
    """A message that was handed out so often dies when it is given back, and not before."""
    client = courier(arguments="--max-attempts 2").client()
    client.fill("orders", "a", "b")
    assert [spent(client), spent(client), spent(client)] == ["1 1", "2 1", "1 2"]
    assert client.listed("QUEUES") == ["orders 1 0 0", "orders.dead 1 0 0"]
    message = client.take("orders")
    assert (message.handle, client.ack(message)) == ("2 2", "OK")
    assert client.listed("QUEUES") == ["orders.dead 1 0 0"]


def begin_the_end_of_the_last_lease(start):
    daemon = start("--max-attempts 1")
    client, clerk = daemon.client(), daemon.client()
    client.fill("orders", "a")
    clerk.send("TAKE orders.dead WAIT 3600 LEASE 86400\n")
    until_clients_wait(client, "orders.dead", 1)
    assert client.take("orders", "LEASE 1").handle == "1 1"
    return client, clerk


@pytest.mark.requirement("dead-attempts", kind="boundary")
def test_the_end_of_the_last_lease(begun):
    """A message dies when its last lease ends, and goes to the client that waits for the dead."""
    client, clerk = begun()
    assert clerk.taken().handle == "1 2"
    assert [client.take("orders"), client.ask("ACK 1 1"), client.ask("ACK 1 2")] == ["EMPTY", "ERR stale", "OK"]


def begin_one_who_waits_for_the_dead(start):
    client = start().client()
    client.put("orders", "a", "TTL 1")
    client.send("TAKE orders.dead WAIT 3600\n")
    return client


@pytest.mark.requirement("dead-expired", kind="boundary")
def test_one_who_waits_for_the_dead(begun):
    """A client that waits for the dead gets what expires, although nothing else happens."""
    assert begun().taken().body == b"a"


@pytest.mark.requirement("dead-attempts", kind="boundary")
def test_no_limit(shared):
    """Without the option there is no limit."""
    client = shared.client()
    (id,) = client.fill("no-limit", "a")
    assert [spent(client, "no-limit") for _ in range(12)][-1] == f"{id} 12"
    assert [client.take("no-limit.dead"), client.take("no-limit").attempt] == ["EMPTY", 13]


@pytest.mark.requirement("dead-queue", kind="core")
def test_the_dead_stay_dead(courier):
    """In the dead queue there is no limit and no end, and the order is that of the ids."""
    client = courier(arguments="--max-attempts 1").client()
    for body, options in [("a", "PRIO 1"), ("b", "PRIO 8"), ("c", "")]:
        client.put("orders", body, options)
    assert [spent(client) for _ in range(3)] == ["2 1", "3 1", "1 1"]
    assert [spent(client, "orders.dead") for _ in range(3)] == ["1 2", "1 3", "1 4"]
    assert client.bodies("orders.dead") == ["a", "b", "c"]
    assert client.listed("QUEUES") == ["orders.dead 0 3 0"]


@pytest.mark.requirement("dead-queue", kind="integration")
def test_purges(courier):
    """A queue and its dead are purged apart; what a purge removes does not die."""
    daemon = courier(arguments="--max-attempts 1")
    client = daemon.client()
    client.fill("orders", "a", "b", "c")
    assert [spent(client), client.take("orders").handle] == ["1 1", "2 1"]
    assert [client.ask("PURGE orders"), client.ask("NACK 2 1")] == ["OK 1", "OK"]
    assert client.listed("QUEUES") == ["orders.dead 1 0 0"]
    assert [client.ask("PURGE orders.dead"), client.ask("QUEUES")] == ["OK 1", "OK 0"]
    daemon.restart()
    assert daemon.client().ask("QUEUES") == "OK 0"


@pytest.mark.requirement("dead-journal", kind="core")
def test_records(courier):
    """A death is a record, and it is there before somebody can know of it; keys are those of the queue still."""
    daemon = courier(arguments="--max-attempts 1")
    client = daemon.client()
    client.put("orders", "a", "KEY k")
    spent(client)
    assert client.take("orders.dead").handle == "1 2"
    assert [record[0] for record in daemon.records()] == ["PUT", "TAKE", "NACK", "DEAD", "TAKE"]
    assert daemon.records()[3] == ["DEAD", "1"]
    assert client.put("orders", "a", "KEY k") == "OK 1"


@pytest.mark.requirement("dead-journal", kind="integration")
def test_another_option(courier):
    """With another option or without, what is dead stays dead; what has had too many attempts dies at the start."""
    daemon = courier(arguments="--max-attempts 1")
    client = daemon.client()
    client.fill("orders", "a", "b")
    spent(client)
    daemon.end("SIGKILL")
    daemon.arguments = ""
    daemon.start()
    client = daemon.client()
    assert [spent(client), spent(client)] == ["2 1", "2 2"]
    daemon.end("SIGKILL")
    daemon.arguments = "--max-attempts 2"
    daemon.start()
    assert until_dead(daemon, "2") == [["DEAD", "2"]]
    assert daemon.client().listed("QUEUES") == ["orders.dead 2 0 0"]


@pytest.mark.requirement("dead-journal", kind="boundary")
def test_journals_of_earlier_editions(courier):
    """What a journal has as expired or spent dies when the daemon starts, unless it is leased."""
    journal = "".join(f"PUT {id} orders {packed('a')}\n" for id in (1, 2, 3))
    journal += f"PUT 4 orders {packed('b')} - 9 {LONG_AGO}\nPUT 5 orders {packed('c')} k 9 {LONG_AGO}\n"
    journal += "".join(f"TAKE {id} {attempt} {LONG_AGO}\n" for attempt in (1, 2) for id in (1, 2, 3))
    journal += f"TAKE 1 3 {LONG_AGO}\nTAKE 3 3 {IN_2100}\nTAKE 5 1 {IN_2100}\n"
    daemon = courier(journal=journal, arguments="--max-attempts 3")
    assert until_dead(daemon, "1", "4") == [["DEAD", "1"], ["DEAD", "4"]]
    client = daemon.client()
    assert client.listed("QUEUES") == ["orders 1 2 0", "orders.dead 2 0 0"]
    assert [client.ask("ACK 3 3"), client.ask("NACK 5 1"), client.take("orders").handle] == ["OK", "OK", "2 3"]
    assert [client.take("orders.dead").handle for _ in range(3)] == ["1 4", "4 1", "5 2"]


@pytest.mark.requirement("dead-queue", kind="error")
def test_nobody_puts_into_the_dead_queue(shared):
    """A dead queue stands wherever a queue does, but only the daemon puts into one."""
    client = shared.client()
    assert [client.put("nobody.dead", "QUIT"), client.ask("TAKE nobody.dead.dead"), client.ask("TAKE .dead")] == [
        "ERR bad-request"
    ] * 3
    assert [client.ask("TAKE nobody.dead"), client.ask("PURGE nobody.dead")] == ["EMPTY", "OK 0"]
