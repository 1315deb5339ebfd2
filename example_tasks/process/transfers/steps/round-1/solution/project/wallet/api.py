"""The contract: from the line of a request to the line of its answer."""

import json

from wallet.bank import Bank, Refused


class Api:
    """Answers requests."""

    def __init__(self):
        self.bank = Bank()
        self.seen = {}
        """By key: what a transfer asked for, and its first answer."""

    def answer(self, line):
        """The answer to a request, without the end of the line."""
        try:
            request = json.loads(line)
            operation = {"open": self.open, "transfer": self.transfer}[request["op"]]
            found = operation(request)
        except Refused as error:
            found = refusal(error)
        except (ValueError, LookupError, TypeError):
            found = {"ok": False, "error": "not a request"}
        return json.dumps(found, separators=(",", ":"))

    def open(self, request):
        """C2."""
        self.bank.open(request["account"], request["cents"])
        return {"ok": True}

    def transfer(self, request):
        """C3 and C4."""
        key, asked = request["key"], (request["from"], request["to"], request["cents"])
        if key not in self.seen:
            self.seen[key] = asked, self.book(*asked)
        asked_first, first_answer = self.seen[key]
        if asked != asked_first:
            raise Refused("key used")
        return first_answer

    def book(self, payer, payee, cents):
        """The first answer to a transfer."""
        try:
            return {"ok": True, "id": self.bank.transfer(payer, payee, cents)}
        except Refused as error:
            return refusal(error)


def refusal(error):
    """The answer when something is refused."""
    return {"ok": False, "error": str(error)}
