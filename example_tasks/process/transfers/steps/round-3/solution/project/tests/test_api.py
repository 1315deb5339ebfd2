import json
import unittest

from wallet.api import Api

OPEN_ADA = '{"op": "open", "account": "ada", "cents": 500}'
OPEN_BOB = '{"op": "open", "account": "bob", "cents": 0}'


def transfer(key, cents, payer="ada", payee="bob"):
    return json.dumps({"op": "transfer", "key": key, "from": payer, "to": payee, "cents": cents})


def booked(id, balance):
    return f'{{"ok":true,"id":{id},"balance":{balance}}}'


class ApiTest(unittest.TestCase):
    def answers(self, *requests):
        api = Api()
        return [api.answer(request) for request in (OPEN_ADA, OPEN_BOB, *requests)][2:]

    def test_c2_account_exists(self):
        self.assertEqual(self.answers(OPEN_ADA), ['{"ok":false,"error":"account exists"}'])

    def test_c3_ids_count_what_was_booked(self):
        self.assertEqual(
            self.answers(transfer("a", 120), transfer("b", 1000), transfer("c", 380)),
            [booked(1, 380), '{"ok":false,"error":"not enough money"}', booked(2, 0)],
        )

    def test_c4_a_repeat_books_nothing_and_is_answered_as_before(self):
        requests = transfer("a", 120), transfer("b", 100), transfer("a", 120), transfer("c", 280), transfer("a", 120)
        first = booked(1, 380)
        self.assertEqual(self.answers(*requests), [first, booked(2, 280), first, booked(3, 0), first])

    def test_c4_refusals_are_repeated_too(self):
        requests = (
            transfer("a", 1, payee="eve"),
            '{"op": "open", "account": "eve", "cents": 0}',
            transfer("a", 1, payee="eve"),
        )
        first, _, repeat = self.answers(*requests)
        self.assertEqual(first, '{"ok":false,"error":"no such account"}')
        self.assertEqual(repeat, first)

    def test_c4_not_enough_money_is_tried_anew(self):
        requests = transfer("a", 100, "bob", "ada"), transfer("b", 200), transfer("a", 100, "bob", "ada")
        self.assertEqual(self.answers(*requests)[2], booked(2, 100))

    def test_c4_another_transfer_with_a_used_key(self):
        requests = transfer("a", 120), transfer("a", 121), transfer("a", 120)
        used = '{"ok":false,"error":"key used"}'
        self.assertEqual(self.answers(*requests), [booked(1, 380), used, booked(1, 380)])

    def test_c7_balance_of_the_moment(self):
        ada, eve = (json.dumps({"op": "balance", "account": name}) for name in ("ada", "eve"))
        self.assertEqual(
            self.answers(ada, transfer("a", 120), ada, eve),
            [
                '{"ok":true,"balance":500}',
                booked(1, 380),
                '{"ok":true,"balance":380}',
                '{"ok":false,"error":"no such account"}',
            ],
        )

    def test_c5_no_request(self):
        for line in ("", "[]", '{"op": "close"}', '{"op": "transfer", "key": "a"}'):
            self.assertEqual(self.answers(line), ['{"ok":false,"error":"not a request"}'])
