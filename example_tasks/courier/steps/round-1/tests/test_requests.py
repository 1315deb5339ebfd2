"""Requests and answers of edition 1."""

import time

import pytest


@pytest.mark.requirement("put", kind="core")
def test_ids(client):
    """Ids count from 1 in the order of the PUTs, over all queues."""
    assert [client.put("orders", "one"), client.put("returns", "two"), client.put("orders", "three")] == [
        "OK 1",
        "OK 2",
        "OK 3",
    ]


@pytest.mark.requirement("take", kind="core", retired="round-3")
def test_answer_to_take(client):
    """TAKE answers with the id and the length, and then the body and a LF."""
    client.put("orders", "two tents")
    client.send("TAKE orders\nTAKE orders\n")
    assert client.lines(3) == ["MSG 1 9", "two tents", "EMPTY"]


@pytest.mark.requirement("take", kind="core")
def test_oldest_first(shared):
    """A queue hands out its own messages, by their ids, each once."""
    client = shared.client()
    client.fill("oldest", "a", "b")
    client.fill("others", "x")
    client.fill("oldest", "c")
    assert (client.bodies("oldest"), client.bodies("others"), client.bodies("none")) == (["a", "b", "c"], ["x"], [])


@pytest.mark.requirement("bodies", kind="boundary")
@pytest.mark.parametrize(
    "body",
    [b"", b"\nACK 1\nQUIT\n", bytes(range(256)) * 256],
    ids=["empty", "like-requests", "longest"],
)
def test_any_body(shared, body):
    """A body is so many bytes, whatever they are, up to 65536."""
    client, queue = shared.client(), f"bodies-{len(body)}"
    answer, message = client.put(queue, body), client.take(queue)
    assert (answer, message.body, client.ack(message)) == (f"OK {message.id}", body, "OK")


@pytest.mark.requirement("ack", kind="core")
def test_acknowledged_is_gone(courier):
    """What was acknowledged comes back neither when its connection ends nor when the daemon does."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b")
    assert client.ack(client.take("orders")) == "OK"
    daemon.restart()
    assert daemon.client().bodies("orders") == ["b"]


@pytest.mark.requirement("ack", kind="error", retired="round-3")
def test_not_held(courier):
    """Only the connection that holds a message may acknowledge it, and only once."""
    daemon = courier()
    one, other = daemon.client(), daemon.client()
    one.fill("orders", "a", "b")
    assert one.take_body("orders") == "a"
    assert [each.ask("ACK 1") for each in (other, one, one)] == ["ERR not-held", "OK", "ERR not-held"]
    assert [one.ask("ACK 2"), one.ask("ACK 77")] == ["ERR not-held", "ERR not-held"]
    assert one.take_body("orders") == "b"


@pytest.mark.requirement("hold", kind="core", retired="round-3")
def test_a_connection_that_ends_lets_go(courier):
    """What a connection held is to be had again, in its old place, once that has ended."""
    daemon = courier()
    gone, other = daemon.client(), daemon.client()
    other.fill("orders", "a", "b", "c")
    assert [gone.take_body("orders"), gone.take_body("orders")] == ["a", "b"]
    assert other.ask("LEN orders") == "OK 1"
    assert gone.ask("QUIT") == "BYE"
    for _ in range(200):  # The daemon hears of it when it does.
        if other.ask("LEN orders") == "OK 3":
            break
        time.sleep(0.05)
    assert other.bodies("orders") == ["a", "b", "c"]


@pytest.mark.requirement("hold", kind="core")
def test_held_is_not_handed_out(shared):
    """Nobody gets a message that is handed out."""
    one, other = shared.client(), shared.client()
    one.fill("held", "a", "b")
    assert [one.take_body("held"), other.take_body("held")] == ["a", "b"]
    assert [one.take_body("held"), other.take_body("held")] == ["EMPTY", "EMPTY"]


@pytest.mark.requirement("len", kind="core", retired="round-10")
def test_len(shared):
    """LEN counts what is there for taking."""
    client = shared.client()
    client.fill("len", "a", "b", "c")
    message = client.take("len")
    assert [client.ask("LEN len"), client.ask("LEN len-none")] == ["OK 2", "OK 0"]
    assert client.ack(message) == "OK"
    assert client.ask("LEN len") == "OK 2"


@pytest.mark.requirement("quit", kind="core")
def test_quit(shared):
    """QUIT is answered, and ends the connection with nothing behind."""
    client = shared.client()
    client.send("QUIT\nPUT quit 1\na\n")
    assert [*client.lines(2), shared.client().take("quit")] == ["BYE", "(closed)", "EMPTY"]


@pytest.mark.requirement("pipeline", kind="core")
def test_requests_without_waiting(client):
    """Requests that come at once are answered in their order."""
    client.send("PUT a 1\nx\nPUT b 2\nyz\nTAKE c\nPUT a 0\n\nQUIT\n")
    assert client.lines(6) == ["OK 1", "OK 2", "EMPTY", "OK 3", "BYE", "(closed)"]


@pytest.mark.requirement("pipeline", kind="boundary")
def test_requests_in_pieces(shared):
    """A request may come in pieces, and a client in the middle of one keeps nobody waiting."""
    slow, other = shared.client(), shared.client()
    slow.send("PUT pieces 5\nab")
    other.fill("pieces", "quick")
    slow.send("cde")
    other.fill("pieces", "quicker")
    slow.send("\nTAKE pie")
    assert slow.line()[:3] == "OK "
    slow.send("ces\n")
    assert [slow.taken().body, *other.bodies("pieces")] == [b"quick", "quicker", "abcde"]
