"""C4, and the clauses around it."""

import pytest
from words import booked, refused, transfer


@pytest.mark.requirement("C4", kind="core", retired="C6")
def test_repeat(wallet):
    """A repeat books nothing, and has the first answer's bytes whatever has happened in between."""
    asked = (
        transfer("a", 120),
        transfer("b", 380),
        transfer("a", 120),
        transfer("c", 500, "bob", "ada"),
        transfer("a", 120),
    )
    assert wallet(*asked) == [booked(1), booked(2), booked(1), booked(3), booked(1)]


@pytest.mark.requirement("C4", kind="boundary", retired="round-3")
def test_refusals_are_repeated(wallet):
    """A refusal is repeated even when the transfer would be possible by now."""
    asked = transfer("a", 100, "bob", "ada"), transfer("b", 200), transfer("a", 100, "bob", "ada")
    assert wallet(*asked) == [refused("not enough money"), booked(1), refused("not enough money")]


@pytest.mark.requirement("C4", kind="error", retired="C6")
def test_used_key(wallet):
    """Another transfer with the same key is refused, and the first answer stays."""
    asked = transfer("a", 120), transfer("a", 121), transfer("a", 120, "bob", "ada"), transfer("a", 120)
    assert wallet(*asked) == [booked(1), refused("key used"), refused("key used"), booked(1)]


@pytest.mark.requirement("C4", kind="error")
def test_other_clauses(wallet):
    """Refusals are those of C3, in its order, and what is no request has no key."""
    asked = (
        transfer("a", 0, "ada", "eve"),
        transfer("b", 1.5),
        transfer("a", 0, "ada", "eve"),
        '{"op":"transfer","key":"c"}',
    )
    reasons = "no such account", "bad amount", "no such account", "not a request"
    assert wallet(*asked) == [refused(reason) for reason in reasons]


@pytest.mark.requirement("own-tests", kind="integration")
def test_own_tests_pass(workspace):
    """The project's own tests pass."""
    done = workspace.run("python3 -m unittest discover -s tests -t .")
    assert done.exit_code == 0, done.stderr
    assert "Ran 0 tests" not in done.stderr
