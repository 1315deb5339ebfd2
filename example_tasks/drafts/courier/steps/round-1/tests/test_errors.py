"""What is wrong with a request, and what becomes of its connection."""

import pytest


@pytest.mark.requirement("errors", kind="error")
def test_unknown_commands(client):
    """What is no command is called so, and the connection can be used on."""
    assert [client.ask(request) for request in ("FETCH orders", "take orders")] == ["ERR unknown-command"] * 2
    assert client.put("orders", "a") == "OK 1"


@pytest.mark.requirement("errors", kind="error")
def test_bad_requests(client):
    """Words too few or too many, names and numbers that are none: nothing is done, and the connection goes on."""
    client.fill("q" * 64, "a")
    wrong = [
        "",
        "TAKE",
        "TAKE Orders",
        "TAKE orders ",
        "TAKE  orders",
        f"TAKE {'q' * 65}",
        "TAKE a_b",
        "ACK one",
        "ACK -1",
        "QUIT now",
    ]
    assert [client.ask(request) for request in wrong] == ["ERR bad-request"] * len(wrong)
    assert client.bodies("q" * 64) == ["a"]


@pytest.mark.requirement("refused-body", kind="error")
@pytest.mark.parametrize(
    ("line", "length", "answer"),
    [
        ("PUT Orders", 13, "ERR bad-request"),
        ("PUT orders", 65537, "ERR too-large"),
    ],
    ids=["queue", "too-large"],
)
def test_body_of_a_refused_put(client, line, length, answer):
    """The body of a PUT that is refused is thrown away, and what follows it is a request."""
    client.send(f"{line} {length}\n" + "PUT orders 0\n".ljust(length, "x") + "\nPUT orders 1\na\n")
    assert client.lines(2) == [answer, "OK 1"]
    assert client.bodies("orders") == ["a"]


@pytest.mark.requirement("closing", kind="error")
@pytest.mark.parametrize(
    "sent",
    [["PUT orders five\n", "PUT orders\n"], ["PUT orders 3\nabcd"], ["TAKE " + "o" * 1020]],
    ids=["no-length", "no-line-feed", "long-line"],
)
def test_closed_after_an_error(courier, sent):
    """Where nobody knows where the next request begins, the connection is closed, and the others go on."""
    daemon = courier()
    other = daemon.client()
    for request in sent:
        client = daemon.client()
        client.send(request)
        assert client.lines(2) == ["ERR bad-request", "(closed)"]
    assert other.put("orders", "a") == "OK 1"
    assert other.bodies("orders") == ["a"]
