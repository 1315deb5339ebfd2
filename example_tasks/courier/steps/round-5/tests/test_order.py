"""The order of a queue: priorities, and what is given back goes behind."""

import pytest
from client import packed


@pytest.mark.requirement("priority", kind="core")
def test_higher_first(shared):
    """Messages come by priority, those of one priority in the order of their PUTs; 5 is that of a PUT without one."""
    client = shared.client()
    for body, options in [
        ("a", ""),
        ("b", "PRIO 4"),
        ("c", "PRIO 9"),
        ("d", "PRIO 5"),
        ("e", "PRIO 9"),
        ("f", "PRIO 0"),
        ("g", ""),
    ]:
        client.put("higher", body, options)
    assert client.bodies("higher") == ["c", "e", "a", "d", "g", "b", "f"]


@pytest.mark.requirement("priority", kind="integration")
def test_order_after_a_restart(courier):
    """The order is that of before when the daemon was killed: priorities, and who was given back."""
    daemon = courier()
    client = daemon.client()
    for body, options in [("a", ""), ("b", ""), ("c", "KEY k PRIO 6"), ("d", "PRIO 6 KEY l"), ("e", "")]:
        client.put("orders", body, options)
    first, second = client.take("orders"), client.take("orders")
    third = client.take("orders")
    for message in (first, third):
        assert client.ask(f"NACK {message.handle}") == "OK"
    daemon.restart()
    client = daemon.client()
    assert client.bodies("orders") == ["c", "b", "e", "a"]
    assert client.ask(f"ACK {second.handle}") == "OK"


@pytest.mark.requirement("nack-place", kind="core")
def test_given_back_goes_behind(shared):
    """What is given back comes after all that are there, also those that are leased, and before what is put later."""
    client = shared.client()
    client.fill("behind-all", "a", "b", "c")
    first, second = client.take("behind-all"), client.take("behind-all")
    assert client.ask(f"NACK {first.handle}") == "OK"
    client.fill("behind-all", "d")
    assert client.ask(f"NACK {second.handle}") == "OK"
    assert client.bodies("behind-all") == ["c", "a", "d", "b"]


@pytest.mark.requirement("nack-place", kind="boundary")
def test_given_back_among_its_own(shared):
    """What is given back stays before messages of a lower priority."""
    client = shared.client()
    for body, options in [("a", "PRIO 7"), ("b", "PRIO 3"), ("c", "PRIO 7")]:
        client.put("among", body, options)
    assert client.ask(f"NACK {client.take('among').handle}") == "OK"
    assert client.bodies("among") == ["c", "a", "b"]


@pytest.mark.requirement("nack-place", kind="boundary")
def test_a_lease_that_ends_keeps_the_place(courier):
    """A lease that ends changes no place, in whatever order leases began, and NACKs of old journals go behind."""
    puts = "".join(f"PUT {id} orders {packed(body)}\n" for id, body in enumerate("abcd", 1))
    client = courier(
        journal=f"{puts}TAKE 2 1 1000000000\nTAKE 1 1 1000000000\nTAKE 3 1 4102444800\nNACK 3 1\n"
    ).client()
    assert client.bodies("orders") == ["a", "b", "d", "c"]


@pytest.mark.requirement("priority-journal", kind="core")
def test_journal_of_all_editions(courier):
    """Records of all editions stand in one journal: without a key, with one, with one and a priority."""
    journal = f"PUT 1 orders {packed('a')}\nPUT 2 orders {packed('b')} 9\nPUT 3 orders {packed('c')} - 6\n"
    daemon = courier(journal=f"{journal}PUT 4 orders - k 4\n")
    client = daemon.client()
    assert [client.put("orders", "", "KEY 9"), client.put("orders", "", "KEY k"), client.put("orders", "e")] == [
        "OK 2",
        "OK 4",
        "OK 5",
    ]
    assert daemon.records()[4][:6] == ["PUT", "5", "orders", packed("e"), "-", "5"]
    assert client.bodies("orders") == ["c", "a", "b", "e", ""]


@pytest.mark.requirement("priority-journal", kind="boundary")
def test_records(courier):
    """A PUT is recorded with key and priority, in this order, whatever the order in the request."""
    daemon = courier()
    client = daemon.client()
    for options in ("PRIO 0 KEY k", "KEY l PRIO 9", "PRIO 3"):
        client.put("orders", "a", options)
    assert [record[4:6] for record in daemon.records()] == [["k", "0"], ["l", "9"], ["-", "3"]]


@pytest.mark.requirement("priority", kind="error")
def test_wrong_priorities(shared):
    """A priority is 0 to 9."""
    client = shared.client()
    wrong = ["PRIO", "PRIO 10", "PRIO -1", "PRIO high", "PRIO 1 PRIO 1", "KEY k PRIO 1 KEY k"]
    assert [client.put("priorities", "QUIT", options) for options in wrong] == ["ERR bad-request"] * len(wrong)
    assert [client.put("priorities", "a", "KEY k PRIO 1")[:3], client.bodies("priorities")] == ["OK ", ["a"]]
