"""BATCH: several requests as one."""

import pytest
from client import packed, until_clients_wait

IN_2100 = 4_102_444_800


@pytest.mark.requirement("batch", kind="core")
def test_all_of_them(courier):
    """A batch is answered by OK and the answers of its requests, and all of it is there after a kill."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b")
    client.take("orders")
    client.take("orders")
    client.send("BATCH 4\nACK 1 1\nPUT carrier 4 KEY k\nload\nNACK 2 1\nPUT carrier 4 KEY k\nload\nTAKE carrier\n")
    assert client.lines(5) == ["OK 4", "OK", "OK 3", "OK", "OK 3"]
    assert client.taken().handle == "3 1"
    daemon.restart()
    client = daemon.client()
    assert client.listed("QUEUES") == ["carrier 0 1 0", "orders 1 0 0"]
    assert [client.take("orders").handle, client.ask("ACK 1 1"), client.put("orders")] == ["2 2", "OK", "OK 4"]


@pytest.mark.requirement("batch", kind="error")
def test_none_of_them(courier):
    """Where one request is refused nothing has changed: messages, keys, ids, places, journal."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b", "c")
    client.take("orders")
    client.take("orders")
    before = daemon.journal()
    client.send("BATCH 5\nACK 1 1\nPUT orders 1 KEY k\nx\nNACK 2 1\nACK 3 1\nACK 7 7\n")
    assert client.line() == "ERR batch 4 stale"
    assert (daemon.journal(), client.listed("QUEUES")) == (before, ["orders 1 2 0"])
    assert [client.put("orders", "d", "KEY k"), client.ask("NACK 1 1"), client.ask("ACK 2 1")] == ["OK 4", "OK", "OK"]
    assert client.bodies("orders") == ["c", "d", "a"]


@pytest.mark.requirement("batch", kind="boundary")
def test_each_sees_those_before_it(shared):
    """A request of a batch finds what those before it have done."""
    client = shared.client()
    client.fill("sees", "a")
    handle = client.take("sees").handle
    ack, nack = f"ACK {handle}\n", f"NACK {handle}\n"
    client.send(f"BATCH 2\n{ack}{nack}BATCH 2\n{nack}{ack}BATCH 2\n{ack}{ack}")
    assert client.lines(5) == ["ERR batch 2 stale", "ERR batch 2 stale", "OK 2", "OK", "OK"]


@pytest.mark.requirement("batch", kind="error")
def test_what_is_wrong_with_a_request(client):
    """The first wrong request is named, what is after it belongs to the batch, and what is after that does not."""
    batches = [
        ("BATCH 2\nPUT orders 1\na\nTAKE orders\n", "ERR batch 2 bad-request"),
        ("BATCH 3\nPUT Orders 5\nQUIT\n\nPUT orders 1\na\nACK 9 1\n", "ERR batch 1 bad-request"),
        ("BATCH 3\nPUT orders 1\na\nSING\nQUIT\n", "ERR batch 2 unknown-command"),
        (f"BATCH 2\nPUT orders 65537\n{'x' * 65537}\nPUT orders 1\na\n", "ERR batch 1 too-large"),
        ("BATCH 1\n\n", "ERR batch 1 bad-request"),
    ]
    for request, answer in batches:
        client.send(request)
        assert client.line() == answer
    assert [client.ask("QUEUES"), client.put("orders")] == ["OK 0", "OK 1"]


@pytest.mark.requirement("batch", kind="error")
def test_wrong_numbers(client):
    """A batch has 1 to 100 requests; where the number is wrong, there is none, and requests are requests."""
    wrong = ["BATCH", "BATCH 0", "BATCH 101", "BATCH two", "BATCH 2 2"]
    assert [client.ask(request) for request in wrong] == ["ERR bad-request"] * len(wrong)
    client.send("BATCH 100\n" + "PUT orders 1\na\n" * 100)
    assert client.lines(101) == ["OK 100", *(f"OK {id}" for id in range(1, 101))]


@pytest.mark.requirement("batch", kind="error")
def test_closed_in_a_batch(shared):
    """Where nobody knows where the next request begins, a batch ends with its connection, and has done nothing."""
    client = shared.client()
    client.send("BATCH 3\nPUT closed-batch 1\na\nPUT closed-batch x\n")
    assert client.lines(2) == ["ERR bad-request", "(closed)"]
    assert shared.client().take("closed-batch") == "EMPTY"


@pytest.mark.requirement("batch", kind="integration")
def test_nobody_sees_some_of_it(courier):
    """As long as a batch is not whole, nothing is done, and others go on; then those who wait are served."""
    daemon = courier()
    client, worker, other = [daemon.client() for _ in range(3)]
    worker.send("TAKE orders WAIT 60\n")
    until_clients_wait(other, "orders", 1)
    client.send("BATCH 2\nPUT orders 1 PRIO 1\na\n")
    assert other.listed("QUEUES") == ["orders 0 0 1"]
    assert other.put("returns", "x") == "OK 1"
    client.send("PUT orders 1 PRIO 2\nb\n")
    assert client.lines(3) == ["OK 2", "OK 2", "OK 3"]
    assert worker.taken().body == b"b"


@pytest.mark.requirement("batch-journal", kind="core")
def test_records(courier):
    """A batch is announced with the number of its records, which those that changed nothing have none of."""
    daemon = courier()
    client = daemon.client()
    again = "PUT a 0 KEY k\n\n"
    client.send(f"BATCH 3\n{again}{again}PUT b 0\n\nBATCH 2\n{again}PUT c 0\n\nBATCH 1\n{again}")
    assert client.lines(9) == ["OK 3", "OK 1", "OK 1", "OK 2", "OK 2", "OK 1", "OK 3", "OK 1", "OK 1"]
    assert [record[:2] for record in daemon.records()] == [["BATCH", "2"], ["PUT", "1"], ["PUT", "2"], ["PUT", "3"]]


@pytest.mark.requirement("batch-journal", kind="boundary")
@pytest.mark.parametrize(
    "rest",
    ["", "ACK 1 1\n", f"ACK 1 1\nPUT 3 orders {packed('c')} - 5 -\nPUT 4"],
    ids=["announced", "one-of-three", "torn"],
)
def test_half_a_batch(courier, rest):
    """A batch that has fewer records than it announces does not count, and does not spoil what is appended after it."""
    journal = f"BATCH 2\nPUT 1 orders {packed('a')}\nPUT 2 orders {packed('b')}\nTAKE 1 1 {IN_2100}\nBATCH 3\n{rest}"
    daemon = courier(journal=journal)
    client = daemon.client()
    assert [client.put("orders", "c"), client.put("orders", "d"), client.put("orders", "e")] == ["OK 3", "OK 4", "OK 5"]
    daemon.restart()
    client = daemon.client()
    assert [client.ask("NACK 1 1"), client.bodies("orders")] == ["OK", ["b", "c", "d", "e", "a"]]


@pytest.mark.requirement("batch-journal", kind="error")
def test_damage_in_a_batch(refused):
    """A line of a batch that is no record is damage, with its own number."""
    journal = "PUT 1 orders -\nBATCH 2\nPUT 2 orders\nPUT 3 orders -\nPUT 4 orders -\n"
    status, output, errors, left = refused(journal)
    assert (status, output, errors[:10], left) == (3, "", "journal:3:", journal)
