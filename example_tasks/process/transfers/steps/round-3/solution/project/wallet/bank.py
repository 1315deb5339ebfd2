"""Accounts and what is booked on them."""


class Refused(Exception):
    """Something cannot be booked; says why in the contract's words."""


class NotEnoughMoney(Refused):
    """The payer may have more another time."""

    def __init__(self):
        super().__init__("not enough money")


class Bank:
    """All accounts, with the money on them in cents."""

    def __init__(self):
        self.accounts = {}
        self.booked = 0

    def open(self, account, cents):
        """A new account."""
        if account in self.accounts:
            raise Refused("account exists")
        self.accounts[account] = cents

    def balance(self, account):
        """What is on an account now, in cents."""
        if account not in self.accounts:
            raise Refused("no such account")
        return self.accounts[account]

    def transfer(self, payer, payee, cents):
        """Book a transfer, and return its id."""
        if payer not in self.accounts or payee not in self.accounts:
            raise Refused("no such account")
        if type(cents) is not int or cents <= 0:
            raise Refused("bad amount")
        if self.accounts[payer] < cents:
            raise NotEnoughMoney()
        self.accounts[payer] -= cents
        self.accounts[payee] += cents
        self.booked += 1
        return self.booked
