"""Answers the requests on standard input."""

import sys

from wallet.api import Api

api = Api()
for line in sys.stdin:
    print(api.answer(line), flush=True)
