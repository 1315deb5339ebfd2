"""TAKE that waits, and QUEUES, by which one sees who does."""

import pytest
from client import until_clients_wait


@pytest.mark.requirement("wait", kind="core")
def test_a_message_that_comes_later(courier):
    """A client that waits gets the message once it is put."""
    daemon = courier()
    worker, shop = daemon.client(), daemon.client()
    worker.send("TAKE orders WAIT 60\n")
    until_clients_wait(shop, "orders", 1)
    shop.fill("returns", "x")
    shop.fill("orders", "a")
    message = worker.taken()
    assert (message.id, message.body, worker.ack(message)) == (2, b"a", "OK")


@pytest.mark.requirement("wait", kind="boundary")
def test_nothing_comes(client):
    """After the seconds, which may be none, the answer is EMPTY; what is there already comes at once."""
    assert [client.take("orders", "WAIT 0"), client.take("orders", "WAIT 1")] == ["EMPTY", "EMPTY"]
    client.fill("orders", "a")
    assert client.take_body("orders", "WAIT 3600") == "a"


@pytest.mark.requirement("wait-order", kind="core")
def test_in_the_order_of_waiting(courier):
    """Clients that wait for one queue are served in the order in which they began."""
    daemon = courier()
    shop, *workers = [daemon.client() for _ in range(5)]
    for number, worker in enumerate(workers, 1):
        worker.send("TAKE orders WAIT 60\n")
        until_clients_wait(shop, "orders", number)
    shop.send("".join(f"PUT orders 1\n{body}\n" for body in "abcd") + "TAKE orders\n")
    assert shop.lines(5) == ["OK 1", "OK 2", "OK 3", "OK 4", "EMPTY"]
    assert [worker.taken().body for worker in workers] == [b"a", b"b", b"c", b"d"]


@pytest.mark.requirement("wait-order", kind="boundary")
def test_somebody_who_has_gone(courier):
    """A client that has gone while it waited gets nothing: the next one does."""
    daemon = courier()
    shop, gone, worker = [daemon.client() for _ in range(3)]
    gone.send("TAKE orders WAIT 3600\n")
    until_clients_wait(shop, "orders", 1)
    worker.send("TAKE orders WAIT 60\n")
    until_clients_wait(shop, "orders", 2)
    gone.close()
    until_clients_wait(shop, "orders", 1)
    shop.fill("orders", "a")
    assert worker.taken().body == b"a"


@pytest.mark.requirement("wait", kind="integration")
def test_requests_behind_one_that_waits(courier):
    """What a client sends while it waits is dealt with afterwards."""
    daemon = courier()
    worker, shop = daemon.client(), daemon.client()
    worker.send("TAKE orders WAIT 60\nPUT done 1\nx\nTAKE orders WAIT 0\nQUIT\n")
    until_clients_wait(shop, "orders", 1)
    assert shop.take("done") == "EMPTY"
    shop.fill("orders", "a")
    assert worker.taken().body == b"a"
    assert worker.lines(4) == ["OK 2", "EMPTY", "BYE", "(closed)"]


@pytest.mark.requirement("wait", kind="error")
def test_wrong_options(client):
    """What is no option of TAKE, or no value of one, is a bad request that takes nothing."""
    client.fill("orders", "a")
    wrong = ["WAIT", "WAIT 3601", "WAIT -1", "WAIT soon", "wait 1", "WAIT 1 2", "WAIT 1 WAIT 1", "STAY 1"]
    assert [client.ask(f"TAKE orders {options}") for options in wrong] == ["ERR bad-request"] * len(wrong)
    assert client.take_body("orders", "WAIT 0") == "a"


@pytest.mark.requirement("queues", kind="core")
def test_queues(courier):
    """QUEUES has a line for each queue with messages or clients, by name."""
    daemon = courier()
    client, worker = daemon.client(), daemon.client()
    assert client.ask("QUEUES") == "OK 0"
    client.fill("orders", "a", "b", "c")
    client.fill("b", "x")
    client.fill("a-1", "y")
    client.take("orders")
    client.ack(client.take("b"))
    worker.send("TAKE 0-none WAIT 60\n")
    until_clients_wait(client, "0-none", 1)
    assert client.listed("QUEUES") == ["0-none 0 0 1", "a-1 1 0 0", "orders 2 1 0"]


@pytest.mark.requirement("nack", kind="core")
def test_given_back(courier):
    """A message that is given back is to be had again, and is kept by a daemon that is killed."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a")
    message = client.take("orders")
    assert client.ask(f"NACK {message.handle}") == "OK"
    assert client.listed("QUEUES") == ["orders 1 0 0"]
    daemon.restart()
    assert daemon.client().bodies("orders") == ["a"]


@pytest.mark.requirement("nack-place", kind="core", retired="round-5")
def test_place_of_what_is_given_back(client):
    """A message that is given back has its old place, before younger ones."""
    client.fill("orders", "a", "b", "c")
    message = client.take("orders")
    assert client.take_body("orders") == "b"
    assert client.ask(f"NACK {message.handle}") == "OK"
    assert client.bodies("orders") == ["a", "c"]


@pytest.mark.requirement("nack", kind="integration")
def test_given_back_to_one_who_waits(courier):
    """A message that is given back goes to the client that waits longest."""
    daemon = courier()
    one, other = daemon.client(), daemon.client()
    one.fill("orders", "a")
    message = one.take("orders")
    other.send("TAKE orders WAIT 60\n")
    until_clients_wait(one, "orders", 1)
    assert one.ask(f"NACK {message.handle}") == "OK"
    assert (other.taken().body, one.take("orders")) == (b"a", "EMPTY")


@pytest.mark.requirement("nack", kind="error", retired="round-3")
def test_not_held(client):
    """What this connection does not hold, it cannot give back."""
    client.fill("orders", "a")
    assert client.ask("NACK 1") == "ERR not-held"
    client.take("orders")
    assert [client.ask("NACK 1"), client.ask("NACK 1"), client.ask("NACK 2")] == ["OK", "ERR not-held", "ERR not-held"]
