"""Round 5: the CSV storage and list --csv are gone."""

from __future__ import annotations

import json

from suite import MOVES_HEADER, STOCK_HEADER, Box, Mismatch, case, expect

RETIRED = "CSV storage is retired, run migrate first"
ROW = "A-1,Bolt,7,0.25,main"
COMMANDS = ["add B 2 3 4", "put A-1 1", "value", "import jan.csv"]


@case(5, "core", "csv-retired", "A directory with CSV files only is refused and left alone")
def csv_refused(box: Box) -> None:
    box.write("inbox/jan.csv", STOCK_HEADER, ROW)
    path = box.write("stock.csv", STOCK_HEADER, ROW)
    before = path.read_bytes()
    for command in COMMANDS:
        box.run(*command.split()).fails(5, RETIRED)
    path.write_bytes(b"not even, a stock file\n\xff")
    box.run("list").fails(5, RETIRED)
    path.write_bytes(before)
    expect("files", sorted(entry.name for entry in box.stock.iterdir()), ["inbox", "stock.csv"])
    box.run("migrate").prints("migrated 1 items, 0 moves")
    box.run("list").prints("A-1\tBolt\t7\t0.25\tmain")


@case(5, "integration", "csv-retired", "load and open_stock refuse a directory with CSV files only")
def library_refused(box: Box) -> None:
    box.write("stock.csv", STOCK_HEADER, ROW)
    code = """
import stockroom, sys
for call in (stockroom.open_stock, stockroom.load):
    try:
        call(sys.argv[1])
    except stockroom.StockError as error:
        print(error)
"""
    box.python(code, str(box.stock)).prints(RETIRED, RETIRED)
    expect("stock.db", (box.stock / "stock.db").exists(), False)


@case(5, "core", "new-directory", "A new directory gets a database, and no CSV files any more")
def new_directory(box: Box) -> None:
    box.run("list").prints()
    expect("items", box.query("SELECT * FROM items"), [])
    box.run("add", "A-1", "Bolt", "7", "0.25").prints("added A-1")
    box.run("put", "A-1", "1").prints("A-1: 7 -> 8")
    expect("items", box.query("SELECT * FROM items"), [("A-1", "Bolt", 8, 250, "main")])
    expect("CSV files", list(box.stock.glob("*.csv")), [])
    box.run("migrate").prints("already migrated")


@case(5, "boundary", "version-2", "The database of a new directory has version 2", retired_in=7)
def new_version(box: Box) -> None:
    box.run("list").prints()
    expect("user_version", box.query("PRAGMA user_version"), [(2,)])


@case(5, "boundary", "csv-retired", "CSV files beside a database do not matter and are left alone")
def csv_beside_database(box: Box) -> None:
    box.migrated(ROW)
    stock = box.write("stock.csv", STOCK_HEADER, "A-1,Old,1,9,Yard", "broken")
    moves = box.write("moves.csv", MOVES_HEADER, "broken")
    before = (stock.read_bytes(), moves.read_bytes())
    box.run("take", "A-1", "2").prints("A-1: 7 -> 5")
    box.run("list").prints("A-1\tBolt\t5\t0.25\tmain")
    expect("CSV files", (stock.read_bytes(), moves.read_bytes()), before)
    box.run("list", "--format", "text").prints("A-1\tBolt\t5\t0.25\tmain")


@case(5, "error", "csv-flag-retired", "list --csv and unknown formats are refused, whatever is in the directory")
def flag_refused(box: Box) -> None:
    box.migrated(ROW)
    nowhere = box.stock.parent / "nowhere"
    for place in (box.stock, nowhere):
        box.run("list", "--csv", data=place).fails(2, "--csv is retired, use --format csv")
        box.run("list", "--format", "xml", data=place).fails(2, "unknown format: xml")
    box.run("list", data=nowhere).fails(1, f"no such directory: {nowhere}")


@case(5, "core", "formats", "list --format prints text, CSV and JSON")
def formats(box: Box) -> None:
    box.migrated('A-1,"Pipe, 5""",7,0.25,main', "A-2,Öse,0,0.005,")
    box.run("list", "--format", "csv").prints(STOCK_HEADER, 'A-1,"Pipe, 5""",7,0.25,main', "A-2,Öse,0,0.005,")
    box.run("list", "--format", "text").prints('A-1\tPipe, 5"\t7\t0.25\tmain', "A-2\tÖse\t0\t0.005\t")
    printed = box.run("list", "--format", "json")
    try:
        listed = json.loads(printed.out)
    except ValueError:
        raise Mismatch("list --format json", "JSON", (printed.status, printed.out, printed.err)) from None
    first = {"sku": "A-1", "name": 'Pipe, 5"', "qty": 7, "price": "0.25", "location": "main"}
    second = {"sku": "A-2", "name": "Öse", "qty": 0, "price": "0.005", "location": ""}
    expect("list --format json", listed, [first, second])
