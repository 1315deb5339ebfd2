"""The contract's words."""


def transfer(key, cents, payer="ada", payee="bob"):
    """A request to book something."""
    return {"op": "transfer", "key": key, "from": payer, "to": payee, "cents": cents}


def booked(id, balance=None):
    """The answer to a transfer that was booked; since version 5 with a balance."""
    return f'{{"ok":true,"id":{id}}}' if balance is None else f'{{"ok":true,"id":{id},"balance":{balance}}}'


def refused(error):
    """The answer to a request that was refused."""
    return f'{{"ok":false,"error":"{error}"}}'
