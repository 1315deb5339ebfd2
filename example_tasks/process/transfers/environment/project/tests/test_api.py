import json
import unittest

from wallet.api import Api

OPEN_ADA = '{"op": "open", "account": "ada", "cents": 500}'
OPEN_BOB = '{"op": "open", "account": "bob", "cents": 0}'


def transfer(key, cents, payer="ada", payee="bob"):
    return json.dumps({"op": "transfer", "key": key, "from": payer, "to": payee, "cents": cents})


class ApiTest(unittest.TestCase):
    def answers(self, *requests):
        api = Api()
        return [api.answer(request) for request in (OPEN_ADA, OPEN_BOB, *requests)][2:]

    def test_c2_account_exists(self):
        self.assertEqual(self.answers(OPEN_ADA), ['{"ok":false,"error":"account exists"}'])

    def test_c3_ids_count_what_was_booked(self):
        self.assertEqual(
            self.answers(transfer("a", 120), transfer("b", 1000), transfer("c", 380)),
            ['{"ok":true,"id":1}', '{"ok":false,"error":"not enough money"}', '{"ok":true,"id":2}'],
        )

    def test_c5_no_request(self):
        for line in ("", "[]", '{"op": "close"}', '{"op": "transfer", "key": "a"}'):
            self.assertEqual(self.answers(line), ['{"ok":false,"error":"not a request"}'])
