"""Round 4: corrections. Mills, not cents; a SKU twice in a supplier file is a mistake."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from suite import MOVES_HEADER, STOCK_HEADER, Box, case, expect

ITEMS = "CREATE TABLE items(sku TEXT PRIMARY KEY, name TEXT, qty INTEGER, {price} INTEGER, location TEXT)"
MOVES = "CREATE TABLE moves(id INTEGER PRIMARY KEY, at TEXT, sku TEXT, delta INTEGER, note TEXT)"
COLUMNS = ["sku", "name", "qty", "price_mills", "location"]


def database(path: Path, version: int, price: str) -> None:
    """A stock.db as an earlier or later version of the program would leave it."""
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(ITEMS.format(price=price))
        connection.execute(MOVES)
        connection.execute("INSERT INTO items VALUES ('A-1', 'Bolt', 8, 25, 'main'), ('A-2', 'Öse', 3, 1250, 'Yard')")
        connection.execute("INSERT INTO moves VALUES (1, '2024-03-01T12:00:00Z', 'A-1', 3, 'delivery')")
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


SUMS = """
import stockroom, sys
stock = stockroom.open_stock(sys.argv[1])
print(stock.find("A-1")["price"], stock.total_value())
"""


@case(4, "core", "mills", "Prices have up to three decimals and sums are exact")
def three_decimals(box: Box) -> None:
    box.migrated("A-1,Screw,3,0.005,main")
    box.run("add", "A-2", "Bolt", "4", "0.25").prints("added A-2")
    box.run("add", "A-3", "Nail", "1001", "0.001", "--location", "Yard").prints("added A-3")
    box.write("inbox/jan.csv", STOCK_HEADER, "A-2,Bolt,1,0.2,main", "A-4,Pin,2,1.230,Yard")
    box.run("import", "jan.csv").prints("imported 2: 1 new, 1 known")
    box.run("list").prints(
        "A-1\tScrew\t3\t0.005\tmain",
        "A-2\tBolt\t5\t0.20\tmain",
        "A-3\tNail\t1001\t0.001\tYard",
        "A-4\tPin\t2\t1.23\tYard",
    )
    box.run("show", "A-1").prints("sku: A-1", "name: Screw", "qty: 3", "price: 0.005", "location: main")
    box.run("value").prints("total: 4.476 EUR")
    box.run("locations").prints("Yard\t2\t1003\t3.461", "main\t2\t8\t1.015")
    box.python(SUMS, str(box.stock)).prints("0.005 4.476")


@case(4, "error", "mills", "A fourth decimal is refused")
def four_decimals(box: Box) -> None:
    box.migrated("A-1,Screw,3,0.005,main")
    for price in ("0.0005", "1.", "-1"):
        box.run("add", "--", "A-2", "Bolt", "4", price).fails(1, f"bad price: {price}")
    box.run("list").prints("A-1\tScrew\t3\t0.005\tmain")


@case(4, "error", "mills", "A supplier file with a fourth decimal is refused", retired_in=9)
def four_decimals_supplied(box: Box) -> None:
    box.migrated("A-1,Screw,3,0.005,main")
    box.write("inbox/jan.csv", STOCK_HEADER, "A-1,Screw,1,0.0050,main")
    box.run("import", "jan.csv").fails(3, "jan.csv line 2: cannot read record")


@case(4, "core", "schema-2", "migrate writes the schema with mills")
def mills_schema(box: Box) -> None:
    box.write("moves.csv", MOVES_HEADER, "2024-03-01T12:00:00Z,A-2,4,delivery")
    box.write("stock.csv", STOCK_HEADER, "A-1,Screw,7,0.005,main", "A-2,Cable,0,12.50,Hall 2")
    box.run("migrate").prints("migrated 2 items, 1 moves")
    columns = [row[1] for row in box.query("PRAGMA table_info(items)")]
    expect("columns of items", columns, COLUMNS)
    expect("items", box.query("SELECT sku, price_mills FROM items ORDER BY sku"), [("A-1", 5), ("A-2", 12500)])
    moves = box.query("SELECT id, at, sku, delta, note FROM moves")
    expect("moves", moves, [(1, "2024-03-01T12:00:00Z", "A-2", 4, "delivery")])


@case(4, "core", "version-2", "migrate and the upgrade leave version 2, with the moves as they are", retired_in=7)
def version_2(box: Box) -> None:
    other = box.stock.parent / "other"
    other.mkdir()
    database(other / "stock.db", 1, "price_cents")
    box.run("list", data=other)
    box.migrated("A-1,Screw,7,0.005,main")
    for path in (other / "stock.db", box.stock / "stock.db"):
        connection = sqlite3.connect(path)
        version = connection.execute("PRAGMA user_version").fetchone()
        columns = [row[1] for row in connection.execute("PRAGMA table_info(moves)")]
        connection.close()
        expect("version, columns of moves", (version, columns), ((2,), ["id", "at", "sku", "delta", "note"]))


@case(4, "core", "upgrade", "The first command that opens a version 1 database upgrades it, a reading one too")
def upgrade(box: Box) -> None:
    database(box.stock / "stock.db", 1, "price_cents")
    box.run("value").prints("total: 39.50 EUR")
    expect("columns of items", [row[1] for row in box.query("PRAGMA table_info(items)")], COLUMNS)
    expect("mills", box.query("SELECT price_mills FROM items ORDER BY sku"), [(250,), (12500,)])
    box.run("list").prints("A-1\tBolt\t8\t0.25\tmain", "A-2\tÖse\t3\t12.50\tYard")
    box.run("history", "A-1").prints("2024-03-01T12:00:00Z\t+3\tdelivery")
    box.run("put", "A-2", "1").prints("A-2: 3 -> 4")
    box.run("migrate").prints("already migrated")


@case(4, "error", "upgrade", "A database from the future is refused and not touched", retired_in=7)
def newer_database(box: Box) -> None:
    path = box.stock / "stock.db"
    database(path, 7, "price_mills")
    before = path.read_bytes()
    for command in (["list"], ["put", "A-1", "1"]):
        box.run(*command).fails(3, "stock.db has version 7, expected 2")
    code = """
import stockroom, sys
for call in (stockroom.open_stock, stockroom.load):
    try:
        call(sys.argv[1])
    except stockroom.StockError as error:
        print(error)
"""
    box.python(code, str(box.stock)).prints(*["stock.db has version 7, expected 2"] * 2)
    expect("stock.db unchanged", path.read_bytes() == before, True)


@case(4, "error", "import", "A SKU twice in a supplier file is refused, the first fault is reported", retired_in=9)
def duplicate_in_import(box: Box) -> None:
    box.migrated("A-1,Bolt,7,0.25,main")
    two_lines = 'A-2,"two\nlines",1,1.00,main'
    box.write("inbox/jan.csv", STOCK_HEADER, "A-1,Bolt,5,0.30,main", two_lines, "A-1,Bolt,2,0.30,main", "A-9,bad")
    for flags in ([], ["--dry-run"]):
        box.run("import", "jan.csv", *flags).fails(3, "jan.csv line 5: duplicate sku: A-1")
    box.write("inbox/feb.csv", STOCK_HEADER, "A-3,Bolt,5,0.30,main", "A-4,Bolt,x,1,main", "A-3,Bolt,5,0.30,main")
    box.run("import", "feb.csv").fails(3, "feb.csv line 3: cannot read record")
    box.run("list").prints("A-1\tBolt\t7\t0.25\tmain")
