"""The command line."""

import sys

from invoices.chart import bar_lines
from invoices.invoice import read_invoice
from invoices.totals import show_total


def main(arguments):
    command, *paths = arguments
    invoices = [read_invoice(path) for path in paths]
    lines = bar_lines(invoices) if command == "chart" else map(show_total, invoices)
    print("\n".join(lines))


if __name__ == "__main__":
    main(sys.argv[1:])
