"""TAKE that waits, and QUEUES, by which one sees who does."""

import pytest
from client import until_clients_wait


@pytest.mark.requirement("wait", kind="core")
def test_a_message_that_comes_later(shared):
    """A client that waits gets the message once it is put."""
    worker, shop = shared.client(), shared.client()
    worker.send("TAKE later WAIT 60\n")
    until_clients_wait(shop, "later", 1)
    shop.fill("later-other", "x")
    (id,) = shop.fill("later", "a")
    message = worker.taken()
    assert (message.id, message.body, worker.ack(message)) == (id, b"a", "OK")


def begin_nothing_comes(start):
    client = start().client()
    client.send("TAKE orders WAIT 0\nTAKE orders WAIT 1\n")
    return client


@pytest.mark.requirement("wait", kind="boundary")
def test_nothing_comes(begun):
    """After the seconds, which may be none, the answer is EMPTY; what is there already comes at once."""
    client = begun()
    assert client.lines(2) == ["EMPTY", "EMPTY"]
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
def test_somebody_who_has_gone(shared):
    """A client that has gone while it waited gets nothing: the next one does."""
    shop, gone, worker = [shared.client() for _ in range(3)]
    gone.send("TAKE gone WAIT 3600\n")
    until_clients_wait(shop, "gone", 1)
    worker.send("TAKE gone WAIT 60\n")
    until_clients_wait(shop, "gone", 2)
    gone.close()
    until_clients_wait(shop, "gone", 1)
    shop.fill("gone", "a")
    assert worker.taken().body == b"a"


@pytest.mark.requirement("wait", kind="integration")
def test_requests_behind_one_that_waits(shared):
    """What a client sends while it waits is dealt with afterwards."""
    worker, shop = shared.client(), shared.client()
    worker.send("TAKE behind WAIT 60\nPUT done 1\nx\nTAKE behind WAIT 0\nQUIT\n")
    until_clients_wait(shop, "behind", 1)
    assert shop.take("done") == "EMPTY"
    (id,) = shop.fill("behind", "a")
    assert worker.taken().body == b"a"
    assert worker.lines(4) == [f"OK {id + 1}", "EMPTY", "BYE", "(closed)"]


@pytest.mark.requirement("wait", kind="error")
def test_wrong_options(shared):
    """What is no option of TAKE, or no value of one, is a bad request that takes nothing."""
    client = shared.client()
    client.fill("options", "a")
    wrong = ["WAIT", "WAIT 3601", "WAIT -1", "WAIT soon", "wait 1", "WAIT 1 2", "WAIT 1 WAIT 1", "STAY 1"]
    assert [client.ask(f"TAKE options {options}") for options in wrong] == ["ERR bad-request"] * len(wrong)
    assert client.take_body("options", "WAIT 0") == "a"


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
def test_place_of_what_is_given_back(shared):
    """A message that is given back has its old place, before younger ones."""
    client = shared.client()
    client.fill("place", "a", "b", "c")
    message = client.take("place")
    assert client.take_body("place") == "b"
    assert client.ask(f"NACK {message.handle}") == "OK"
    assert client.bodies("place") == ["a", "c"]


@pytest.mark.requirement("nack", kind="integration")
def test_given_back_to_one_who_waits(shared):
    """A message that is given back goes to the client that waits longest."""
    one, other = shared.client(), shared.client()
    one.fill("given-back", "a")
    message = one.take("given-back")
    other.send("TAKE given-back WAIT 60\n")
    until_clients_wait(one, "given-back", 1)
    assert one.ask(f"NACK {message.handle}") == "OK"
    assert (other.taken().body, one.take("given-back")) == (b"a", "EMPTY")


@pytest.mark.requirement("nack", kind="error", retired="round-3")
def test_not_held(client):
    """What this connection does not hold, it cannot give back."""
    client.fill("orders", "a")
    assert client.ask("NACK 1") == "ERR not-held"
    client.take("orders")
    assert [client.ask("NACK 1"), client.ask("NACK 1"), client.ask("NACK 2")] == ["OK", "ERR not-held", "ERR not-held"]
