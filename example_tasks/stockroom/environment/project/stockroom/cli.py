"""The command line."""
import os
import sys
from optparse import OptionParser

from stockroom import config, importer, items, reports, storage
from stockroom.errors import StockError

ARGUMENTS = {
    "add": 4, "put": 2, "take": 2, "show": 1, "list": 0, "history": 1,
    "value": 0, "low": 0, "locations": 0, "import": 1,
}


def book(sku, text, sign, note):
    amount = items.number(text)
    new = items.change(sku, sign * amount, note)
    storage.save()
    return ["%s: %d -> %d" % (sku, new - sign * amount, new)]


def run(command, args, options):
    if command == "add":
        items.add_item(args[0], args[1], args[2], args[3], options.location)
        storage.save()
        return ["added %s" % args[0]]
    if command == "put":
        return book(args[0], args[1], 1, options.note)
    if command == "take":
        return book(args[0], args[1], -1, options.note)
    if command == "show":
        return reports.show_lines(args[0])
    if command == "list" and options.csv:
        return ["sku,name,qty,price,location"] + reports.list_lines(",")
    if command == "list":
        return reports.list_lines("\t")
    if command == "history":
        return reports.history_lines(args[0])
    if command == "value":
        return ["total: %.2f %s" % (reports.total_value(), config.settings["currency"])]
    if command == "low":
        return reports.low_lines()
    if command == "locations":
        return reports.location_lines()
    return ["imported %d" % importer.run(args[0])]


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
        storage.load(options.data)
        lines = run(args[0], args[1:], options)
    except StockError as e:
        sys.stderr.write("error: %s\n" % e)
        return 1
    for line in lines:
        sys.stdout.write(line + "\n")
    return 0
