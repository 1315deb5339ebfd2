"""The command line."""

import os
import sys
from optparse import OptionParser

from stockroom import importer, migrate, money, reports
from stockroom.errors import StockError
from stockroom.stock import open_stock, quantity

ARGUMENTS = {
    "add": 4,
    "put": 2,
    "take": 2,
    "show": 1,
    "list": 0,
    "history": 1,
    "value": 0,
    "low": 0,
    "locations": 0,
    "import": 1,
    "migrate": 0,
}


def book(stock, sku, text, sign, note):
    amount = quantity(text)
    new = stock.change(sku, sign * amount, note)
    return [f"{sku}: {new - sign * amount} -> {new}"]


def run(stock, command, args, options):
    if command == "add":
        stock.add_item(*args, options.location)
        return [f"added {args[0]}"]
    if command == "put":
        return book(stock, *args, 1, options.note)
    if command == "take":
        return book(stock, *args, -1, options.note)
    if command == "import":
        return [f"imported {importer.run(stock, args[0])}"]
    if command == "show":
        return reports.show_lines(stock, args[0])
    if command == "list":
        return reports.csv_lines(stock) if options.csv else reports.list_lines(stock)
    if command == "history":
        return reports.history_lines(stock, args[0])
    if command == "value":
        return [f"total: {money.render(stock.total())} {stock.settings['currency']}"]
    if command == "low":
        return reports.low_lines(stock)
    return reports.location_lines(stock)


def lines_of(command, args, options):
    if command == "migrate":
        return [migrate.run(options.data)]
    stock = open_stock(options.data)
    try:
        lines = run(stock, command, args, options)
        if command in ("add", "put", "take"):
            stock.save()
        return lines
    finally:
        stock.close()


def main(argv=None):
    parser = OptionParser(usage="%prog [--data DIR] COMMAND [ARGUMENTS]", prog="stockroom")
    parser.add_option("--data", default=os.environ.get("STOCKROOM_DATA") or ".")
    parser.add_option("--location")
    parser.add_option("--note", default="")
    parser.add_option("--csv", action="store_true")
    options, args = parser.parse_args(argv)
    if not args or args[0] not in ARGUMENTS or len(args) - 1 != ARGUMENTS[args[0]]:
        parser.error("commands: " + " ".join(sorted(ARGUMENTS)))
    try:
        lines = lines_of(args[0], args[1:], options)
    except StockError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    return 0
