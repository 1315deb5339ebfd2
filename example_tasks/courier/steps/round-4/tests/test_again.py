"""Asking again is harmless: ACK, and PUT with a key."""

import pytest
from client import packed


@pytest.mark.requirement("ack-again", kind="core")
def test_acknowledged_again(courier):
    """An ACK that is repeated is answered with OK, by any connection, and after a restart."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b")
    client.take("orders")
    assert [client.ask("ACK 1 1"), client.ask("ACK 1 1"), daemon.client().ask("ACK 1 1")] == ["OK"] * 3
    daemon.restart()
    client = daemon.client()
    assert [client.ask("ACK 1 1"), client.take_body("orders"), client.take("orders")] == ["OK", "b", "EMPTY"]


@pytest.mark.requirement("ack-again", kind="error")
def test_acknowledged_by_somebody_else(shared):
    """What was acknowledged with one attempt is stale for every other, and cannot be given back."""
    client = shared.client()
    (id,) = client.fill("somebody-else", "a")
    client.ask("NACK " + client.take("somebody-else").handle)
    assert client.ack(client.take("somebody-else")) == "OK"
    requests = [f"ACK {id} 1", f"ACK {id} 3", f"NACK {id} 2", f"NACK {id} 1", f"ACK {id + 1} 1", f"ACK {id} 2"]
    assert [client.ask(request) for request in requests] == ["ERR stale"] * 5 + ["OK"]


@pytest.mark.requirement("ack-again", kind="boundary")
def test_acknowledged_before(courier):
    """What a journal has as acknowledged can be acknowledged again: with attempt 1 where the record names none."""
    journal = "PUT 1 orders -\nPUT 2 orders -\nACK 1\nTAKE 2 1 1000000000\nTAKE 2 2 4102444800\nACK 2 2\n"
    client = courier(journal=journal).client()
    requests = ["ACK 1 1", "ACK 1 2", "ACK 2 1", "ACK 2 2"]
    assert [client.ask(request) for request in requests] == ["OK", "ERR stale", "ERR stale", "OK"]


@pytest.mark.requirement("nothing-changed", kind="boundary")
def test_no_record_of_what_changed_nothing(courier):
    """A request that is repeated leaves the journal as it is."""
    daemon = courier()
    client = daemon.client()
    client.put("orders", "a", "KEY k")
    client.ack(client.take("orders"))
    before = daemon.journal()
    assert [client.put("orders", "a", "KEY k"), client.ask("ACK 1 1"), client.take("orders")] == ["OK 1", "OK", "EMPTY"]
    assert daemon.journal() == before


@pytest.mark.requirement("key", kind="core")
def test_put_again(shared):
    """A PUT with a key that the queue has had keeps nothing, and names the message that is there."""
    client, queue = shared.client(), "put-again"
    first = client.put(queue, "a", "KEY shop-7")
    second, third = client.put(queue, "b"), client.put(queue, "c", "KEY shop-7")
    assert first.startswith("OK ")
    assert second != first == third
    fourth, fifth = client.put(queue, "d", "KEY Shop-7"), client.put(queue, "b")
    assert len({first, second, fourth, fifth}) == 4
    assert client.bodies(queue) == ["a", "b", "d", "b"]


@pytest.mark.requirement("key", kind="boundary")
def test_another_queue(shared):
    """The same key in another queue is another one."""
    client = shared.client()
    first, other, again = [client.put(queue, queue, "KEY k") for queue in ("key-1", "key-2", "key-1")]
    assert [first[:3], other[:3]] == ["OK ", "OK "]
    assert other != first == again
    assert client.bodies("key-2") == ["key-2"]


@pytest.mark.requirement("key", kind="integration")
def test_put_again_after_everything(courier):
    """A key is remembered although its message is acknowledged and the daemon was killed."""
    daemon = courier()
    client = daemon.client()
    client.put("orders", "a", "KEY k")
    client.put("orders", "b", "KEY l")
    client.ack(client.take("orders"))
    daemon.restart()
    client = daemon.client()
    answers = [
        client.put("orders", "a", "KEY k"),
        client.put("orders", "b", "KEY l"),
        client.put("orders", "c", "KEY m"),
    ]
    assert (answers, client.bodies("orders")) == (["OK 1", "OK 2", "OK 3"], ["b", "c"])


@pytest.mark.requirement("key-journal", kind="integration")
def test_keys_of_a_journal(courier):
    """The key is the fifth word of a PUT, and that of a journal is known; a message may have been put without one."""
    journal = f"PUT 1 orders {packed('a')} k.1\nPUT 2 orders {packed('b')}\nTAKE 1 1 4102444800\nACK 1 1\n"
    daemon = courier(journal=journal)
    client = daemon.client()
    assert [client.put("orders", "a", "KEY k.1"), client.put("orders", "c", "KEY l_2")] == ["OK 1", "OK 3"]
    assert daemon.records()[4][:5] == ["PUT", "3", "orders", packed("c"), "l_2"]


@pytest.mark.requirement("key", kind="error")
def test_wrong_keys(shared):
    """What is no key is a bad request, and the body behind it is thrown away."""
    client = shared.client()
    wrong = ["KEY", "KEY -k", "KEY a+b", f"KEY {'k' * 65}", "KEY k KEY k", "KEYS k"]
    assert [client.put("keys", "QUIT", options) for options in wrong] == ["ERR bad-request"] * len(wrong)
    assert client.put("keys", "a", f"KEY {'k' * 64}")[:3] == "OK "
    assert client.bodies("keys") == ["a"]
