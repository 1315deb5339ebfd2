"""The contract: from the line of a request to the line of its answer."""

import json

from wallet.bank import Bank, Refused


class Api:
    """Answers requests."""

    def __init__(self):
        self.bank = Bank()

    def answer(self, line):
        """The answer to a request, without the end of the line."""
        try:
            request = json.loads(line)
            operation = {"open": self.open, "transfer": self.transfer}[request["op"]]
            found = operation(request)
        except Refused as error:
            found = {"ok": False, "error": str(error)}
        except (ValueError, LookupError, TypeError):
            found = {"ok": False, "error": "not a request"}
        return json.dumps(found, separators=(",", ":"))

    def open(self, request):
        """C2."""
        self.bank.open(request["account"], request["cents"])
        return {"ok": True}

    def transfer(self, request):
        """C3."""
        request["key"]
        return {"ok": True, "id": self.bank.transfer(request["from"], request["to"], request["cents"])}
