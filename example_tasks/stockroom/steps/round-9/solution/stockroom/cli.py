"""The command line."""

import os
import sys
from optparse import SUPPRESS_HELP, OptionParser

from stockroom import files, haulage, importer, log, migrate, money, reports
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
    "reserve": 3,
    "release": 1,
    "ship": 1,
    "reservations": 0,
    "picklist": 1,
    "migrate": 0,
}
CHANGING = ("add", "put", "take", "reserve", "release", "ship")


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
        return [importer.run(stock, args[0], dry_run=options.dry_run, strict=options.strict)]
    if command == "reserve":
        free = stock.reserve(*args)
        return [f"{args[0]}: {stock.store.reserved(args[0])} reserved, {free} free"]
    if command == "release":
        stock.release(args[0])
        return [f"released {args[0]}"]
    if command == "ship":
        return [f"{sku}: {old} -> {new}" for sku, old, new in stock.ship(args[0])]
    if command == "reservations":
        return reports.reservation_lines(stock)
    if command == "picklist":
        data, number = haulage.made_of(stock.store.all())
        files.replace(args[0], data, args[0])
        return [f"picklist: {number} items"]
    if command == "show":
        return reports.show_lines(stock, args[0])
    if command == "list":
        return reports.LISTS[options.format](stock)
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
        if command in CHANGING:
            stock.save()
        return lines
    finally:
        stock.close()


def main(argv=None):
    parser = OptionParser(usage="%prog [--data DIR] COMMAND [ARGUMENTS]", prog="stockroom")
    parser.add_option("--data", default=os.environ.get("STOCKROOM_DATA") or ".")
    parser.add_option("--location")
    parser.add_option("--note", default="")
    parser.add_option("--format", default="text")
    parser.add_option("--csv", action="store_true", help=SUPPRESS_HELP)
    parser.add_option("--dry-run", action="store_true")
    parser.add_option("--strict", action="store_true")
    options, args = parser.parse_args(argv)
    if not args or args[0] not in ARGUMENTS or len(args) - 1 != ARGUMENTS[args[0]]:
        parser.error("commands: " + " ".join(sorted(ARGUMENTS)))
    if options.csv:
        sys.stderr.write("error: --csv is retired, use --format csv\n")
        return 2
    if options.format not in reports.LISTS:
        sys.stderr.write(f"error: unknown format: {options.format}\n")
        return 2
    entry = log.Entry(args)
    try:
        lines = lines_of(args[0], args[1:], options)
        status = 0
    except StockError as error:
        lines = error.done
        sys.stderr.write("".join(f"{line}\n" for line in (*error.details, f"error: {error}")))
        entry.error = str(error)
        status = error.exit_status
    sys.stdout.write("".join(f"{line}\n" for line in lines))
    entry.append(status)
    return status
