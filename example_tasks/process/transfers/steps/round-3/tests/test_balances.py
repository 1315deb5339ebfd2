"""Version 5 of the contract."""

import pytest
from words import booked, refused, transfer

ADA = {"op": "balance", "account": "ada"}


@pytest.mark.requirement("C6", kind="core")
def test_balance_of_a_booking(wallet):
    """A booking is answered with what it left, and a repeat with the very same bytes."""
    asked = transfer("a", 120), transfer("b", 100), transfer("a", 120)
    assert wallet(*asked) == [booked(1, 380), booked(2, 280), booked(1, 380)]


@pytest.mark.requirement("C6", kind="boundary")
def test_payer_is_payee(wallet):
    """Who pays himself has as much as before."""
    assert wallet(transfer("a", 120, "ada", "ada")) == [booked(1, 500)]


@pytest.mark.requirement("C7", kind="core")
def test_balance_of_the_moment(wallet):
    """A balance is that of the moment it is asked for; repeats have not changed it."""
    asked = ADA, transfer("a", 120), transfer("a", 120), ADA, {"op": "balance", "account": "eve"}
    now = [f'{{"ok":true,"balance":{cents}}}' for cents in (500, 380)]
    assert wallet(*asked) == [now[0], booked(1, 380), booked(1, 380), now[1], refused("no such account")]


@pytest.mark.requirement("forgotten", kind="core")
def test_not_enough_money_is_forgotten(wallet):
    """A transfer that there was not enough money for is tried anew, and its key is free for another one."""
    asked = transfer("a", 100, "bob", "ada"), transfer("b", 200), transfer("a", 100, "bob", "ada"), transfer("a", 7)
    assert wallet(*asked) == [refused("not enough money"), booked(1, 300), booked(2, 100), refused("key used")]


@pytest.mark.requirement("C6", kind="error")
def test_refusals_have_no_balance(wallet):
    """Refusals are as before, and other ones than for lack of money are remembered."""
    asked = transfer("a", 1, payee="eve"), {"op": "open", "account": "eve", "cents": 1}, transfer("a", 1, payee="eve")
    assert wallet(*asked) == [refused("no such account"), '{"ok":true}', refused("no such account")]
