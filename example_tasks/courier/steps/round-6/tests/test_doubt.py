"""Edition 6 contradicts itself about PURGE, and nothing brings back what was purged."""

import re

import pytest


@pytest.mark.requirement("purge-doubt", kind="core", retired="round-7")
def test_question_is_asked(workspace):
    """QUESTIONS.md asks what PURGE does to messages that are leased."""
    questions = workspace.read_text("QUESTIONS.md")
    for word in ("PURGE", "lease", r"\b3\b", r"\b4\b"):
        assert re.search(word, questions, re.IGNORECASE), f"QUESTIONS.md does not mention {word}"


@pytest.mark.requirement("purge-doubt", kind="boundary")
def test_an_acknowledgement_after_a_purge(courier):
    """A worker can acknowledge what he has, whatever PURGE answers, also in the next daemon."""
    daemon = courier()
    client = daemon.client()
    client.fill("orders", "a", "b", "c")
    assert [client.take("orders").handle, client.take("orders").handle] == ["1 1", "2 1"]
    client.ask("PURGE orders")
    assert client.ask("ACK 1 1") == "OK"
    daemon.restart()
    assert daemon.client().ask("ACK 2 1") == "OK"


@pytest.mark.requirement("purge-doubt", kind="boundary", retired="round-7")
def test_given_back_after_a_purge(client):
    """As long as nobody knows, a message that is given back after a PURGE is not removed."""
    client.fill("orders", "a")
    assert client.take("orders").handle == "1 1"
    client.ask("PURGE orders")
    assert [client.ask("NACK 1 1"), client.take_body("orders")] == ["OK", "a"]
