"""What is wrong with a request, and what becomes of its connection."""

import pytest


@pytest.mark.requirement("errors", kind="error")
def test_unknown_commands(shared):
    """What is no command is called so, and the connection can be used on."""
    client = shared.client()
    assert [client.ask(request) for request in ("FETCH orders", "take orders")] == ["ERR unknown-command"] * 2
    client.fill("unknown", "a")


@pytest.mark.requirement("errors", kind="error")
def test_bad_requests(shared):
    """Words too few or too many, names and numbers that are none: nothing is done, and the connection goes on."""
    client = shared.client()
    client.fill("q" * 64, "a")
    wrong = [
        "",
        "TAKE",
        "TAKE Orders",
        f"TAKE {'q' * 64} ",
        f"TAKE  {'q' * 64}",
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
        ("PUT Orders", 20, "ERR bad-request"),
        ("PUT orders", 65537, "ERR too-large"),
    ],
    ids=["queue", "too-large"],
)
def test_body_of_a_refused_put(shared, line, length, answer):
    """The body of a PUT that is refused is thrown away, and what follows it is a request."""
    client, queue = shared.client(), f"refused-{length}"
    client.send(f"{line} {length}\n" + f"PUT {queue} 0\n".ljust(length, "x") + f"\nPUT {queue} 1\na\n")
    assert [client.line(), client.line()[:3], client.bodies(queue)] == [answer, "OK ", ["a"]]


@pytest.mark.requirement("closing", kind="error")
@pytest.mark.parametrize(
    "sent",
    [["PUT orders five\n", "PUT orders\n"], ["PUT orders 3\nabcd"], ["TAKE " + "o" * 1100 + "\n"]],
    ids=["no-length", "no-line-feed", "long-line"],
)
def test_closed_after_an_error(shared, sent):
    """Where nobody knows where the next request begins, the connection is closed, and the others go on."""
    other = shared.client()
    for request in sent:
        client = shared.client()
        client.send(request)
        assert client.lines(2) == ["ERR bad-request", "(closed)"]
    other.fill("closed", "a")
    assert other.bodies("closed") == ["a"]
