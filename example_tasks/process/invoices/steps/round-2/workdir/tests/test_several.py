import tempfile
import unittest
from pathlib import Path

from invoices.invoice import read_invoice
from invoices.totals import show_total

HARBOUR = "customer: Harbour Ltd\nnumber: 1\n100 x 1.00 hook\n"
PIER = "customer: Pier\nnumber: 1\n2 x 10.00 mop\n"


class SeveralTest(unittest.TestCase):
    def test_two_customers(self):
        with tempfile.TemporaryDirectory() as directory:
            paths = [Path(directory, name) for name in ("harbour.txt", "pier.txt")]
            for path, text in zip(paths, (HARBOUR, PIER), strict=True):
                path.write_text(text)
            shown = [show_total(invoice) for invoice in map(read_invoice, paths)]
        self.assertEqual(shown, ["Harbour Ltd 1: 104.72", "Pier 1: 23.80"])
