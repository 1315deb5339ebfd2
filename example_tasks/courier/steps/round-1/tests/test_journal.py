"""The journal of edition 1, and what a daemon makes of one."""

import pytest
from client import packed


@pytest.mark.requirement("journal", kind="core")
def test_records(courier):
    """What was answered with OK is a record: put with a body in base64, and acknowledged."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "two tents", "")
    client.ack(client.take("orders"))
    records = daemon.records()
    assert [record[:4] for record in records if record[0] == "PUT"] == [
        ["PUT", "1", "orders", packed("two tents")],
        ["PUT", "2", "orders", "-"],
    ]
    assert [record[:2] for record in records if record[0] == "ACK"] == [["ACK", "1"]]


@pytest.mark.requirement("durable", kind="core")
def test_killed(courier):
    """What was answered is there after SIGKILL, with the bytes and the order that it had."""
    daemon = courier()
    daemon.client().fill("orders", "a", "", "c\n" * 500)
    daemon.restart("SIGKILL")
    assert daemon.client().bodies("orders") == ["a", "", "c\n" * 500]


@pytest.mark.requirement("ids", kind="boundary")
def test_ids_are_given_once(courier):
    """An id is not given again, although nothing is left of the messages that had the ones before."""
    daemon = courier()
    client = daemon.client()
    for body in ("a", "b"):
        client.fill("orders", body)
        client.ack(client.take("orders"))
    daemon.restart()
    assert daemon.client().put("orders", "c") == "OK 3"


@pytest.mark.requirement("terminate", kind="core")
def test_terminated(courier):
    """SIGTERM ends the daemon with status 0, clients or not, and it has printed one line."""
    daemon = courier()
    client = daemon.client()
    client.put("orders", "a")
    assert daemon.end("SIGTERM") == 0
    assert (daemon.process.output, client.line()) == (f"listening {daemon.port}\n", "(closed)")
    daemon.start()
    assert daemon.client().bodies("orders") == ["a"]


@pytest.mark.requirement("reread", kind="integration")
def test_journal_of_edition_1(courier):
    """A daemon goes on from a journal that is there."""
    journal = f"PUT 1 orders {packed('a')}\nPUT 2 returns -\nPUT 3 orders -\nACK 3\nPUT 4 orders {packed('g')}\nACK 1\n"
    client = courier(journal=journal).client()
    assert [client.put("orders", "h"), client.bodies("orders"), client.bodies("returns")] == ["OK 5", ["g", "h"], [""]]


@pytest.mark.requirement("torn", kind="boundary")
@pytest.mark.parametrize("torn", ["PUT 2 orders YQ==", "ACK 1"], ids=["put", "ack"])
def test_torn_record(courier, torn):
    """A last line without LF does not count, and what is appended after it is read by the next daemon."""
    daemon = courier(journal=f"PUT 1 orders {packed('a')}\n{torn}")
    assert daemon.client().put("orders", "b") == "OK 2"
    daemon.restart()
    client = daemon.client()
    assert (client.bodies("orders"), client.put("orders")) == (["a", "b"], "OK 3")


@pytest.mark.requirement("damage", kind="error")
def test_damaged(refused):
    """A line that is no record is named by its number, and the journal stays as it is, an unfinished line included."""
    for line in ("", "PUT 2 orders", "PUT two orders YQ==", "PUT 2 orders Y", "put 2 orders YQ=="):
        journal = f"PUT 1 orders YQ==\n{line}\nACK 1\nACK"
        status, output, errors, left = refused(journal)
        assert (status, output, errors[:10], left) == (3, "", "journal:2:", journal), line
        assert errors.count("\n") == 1
