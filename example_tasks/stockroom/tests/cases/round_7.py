"""Round 7: reservations, and version 3 of the database."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterable
from pathlib import Path

from suite import MOVES_HEADER, STOCK_HEADER, Box, case, expect

# Seconds. The request says 10; see round 3.
LIMIT = 60
MOVES = ["id", "at", "sku", "delta", "note", "qty_after"]
RESERVATIONS = ["id", "ref", "sku", "qty"]
AT = "2024-03-01T12:00:00Z"
Item = tuple[str, str, int, int, str]
Booking = tuple[str, int]


def old_database(path: Path, version: int, items: Iterable[Item], bookings: Iterable[Booking]) -> None:
    """A stock.db of version 1 or 2; ids of bookings count from 1."""
    price = {1: "price_cents", 2: "price_mills"}[version]
    connection = sqlite3.connect(path)
    with connection:
        connection.execute(
            f"CREATE TABLE items(sku TEXT PRIMARY KEY, name TEXT, qty INTEGER, {price} INTEGER, location TEXT)"
        )
        connection.execute("CREATE TABLE moves(id INTEGER PRIMARY KEY, at TEXT, sku TEXT, delta INTEGER, note TEXT)")
        connection.executemany("INSERT INTO items VALUES (?, ?, ?, ?, ?)", items)
        rows = ((AT, sku, delta) for sku, delta in bookings)
        connection.executemany("INSERT INTO moves(at, sku, delta, note) VALUES (?, ?, ?, 'old')", rows)
        connection.execute(f"PRAGMA user_version = {version}")
    connection.close()


def reserved(box: Box, *rows: tuple[str, str, int]) -> None:
    """Checks what the reservations are, as (ref, sku, qty)."""
    expect("reservations", box.query("SELECT ref, sku, qty FROM reservations ORDER BY ref, sku"), list(rows))


def two_items(box: Box) -> None:
    """A-1 with 10 pieces, A-2 with 4."""
    box.migrated("A-1,Bolt,10,0.25,main", "A-2,Nut,4,0.10,Yard")


@case(7, "core", "reserve", "reserve says what is reserved by all orders and what is free")
def reserve(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "3", "shop 1").prints("A-1: 3 reserved, 7 free")
    box.run("reserve", "A-1", "5", "shop 2").prints("A-1: 8 reserved, 2 free")
    box.run("reserve", "A-2", "4", "shop 1").prints("A-2: 4 reserved, 0 free")
    box.run("reserve", "A-1", "2", "shop 1").prints("A-1: 10 reserved, 0 free")
    reserved(box, ("shop 1", "A-1", 5), ("shop 1", "A-2", 4), ("shop 2", "A-1", 5))


@case(7, "core", "schema-3", "A second reserve adds to the order's row, and ids are in the order of the first ones")
def one_row_each(box: Box) -> None:
    two_items(box)
    for sku, ref in (("A-2", "z"), ("A-1", "z"), ("A-2", "a"), ("A-2", "z")):
        box.run("reserve", sku, "1", ref)
    rows = box.query("SELECT ref, sku, qty FROM reservations ORDER BY id")
    expect("reservations", rows, [("z", "A-2", 2), ("z", "A-1", 1), ("a", "A-2", 1)])


@case(7, "core", "reservations", "reservations lists by order, then by SKU", retired_in=10)
def listed(box: Box) -> None:
    two_items(box)
    for sku, n, ref in (("A-2", "2", "b"), ("A-1", "3", "b"), ("A-2", "1", "B")):
        box.run("reserve", sku, n, ref)
    box.run("reservations").prints("B\tA-2\t1", "b\tA-1\t3", "b\tA-2\t2")


@case(7, "boundary", "reservations", "The name of an order is any text, and stays one line on the screen")
def nasty_order(box: Box) -> None:
    box.run("add", 'A,"1"\n', "Bolt", "5", "1").prints('added A,"1"\n')
    ref = 'shop\t"1",\r\nrush'
    box.run("reserve", 'A,"1"\n', "2", ref).prints('A,"1"\n: 2 reserved, 3 free')
    line = box.run("reservations").out
    expect("reservations", line.split("\t")[:3], ['shop\\t"1",\\r\\nrush', 'A,"1"\\n', line.split("\t")[2]])
    box.run("ship", ref).prints('A,"1"\n: 5 -> 3')
    expect("note", box.query("SELECT note FROM moves"), [(f"ship {ref}",)])
    box.run("reserve", 'A,"1"\n', "2", b"\xff").fails(1, "not valid UTF-8")


@case(7, "error", "reserve", "What is not free cannot be reserved", retired_in=10)
def not_free(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "11", "a").fails(1, "not enough stock: A-1 has 10")
    box.run("reserve", "A-1", "8", "a").prints("A-1: 8 reserved, 2 free")
    for ref in ("a", "b"):
        box.run("reserve", "A-1", "3", ref).fails(1, "not enough stock: A-1 has 10, 8 reserved")
    reserved(box, ("a", "A-1", 8))


@case(7, "error", "reserve", "Quantities that are no whole number above 0, and unknown SKUs, reserve nothing")
def bad_reserve(box: Box) -> None:
    two_items(box)
    for text in ("0", "-1", "1.5", "x", ""):
        box.run("reserve", "--", "A-1", text, "a").fails(1, f"bad quantity: {text}")
    box.run("reserve", "A-9", "1", "a").fails(1, "unknown sku: A-9")
    reserved(box)


@case(7, "core", "reserved-stock", "take leaves what is reserved, and says so only where something is")
def take_leaves_reserved(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "6", "a").prints("A-1: 6 reserved, 4 free")
    box.run("take", "A-1", "5").fails(1, "not enough stock: A-1 has 10, 6 reserved")
    box.run("take", "A-1", "4").prints("A-1: 10 -> 6")
    box.run("take", "A-1", "1").fails(1, "not enough stock: A-1 has 6, 6 reserved")
    box.run("take", "A-2", "5").fails(1, "not enough stock: A-2 has 4")
    box.run("put", "A-1", "1").prints("A-1: 6 -> 7")
    box.run("take", "A-1", "1").prints("A-1: 7 -> 6")


@case(7, "core", "release", "release gives back all that an order has, and only that")
def release(box: Box) -> None:
    two_items(box)
    for sku, ref in (("A-1", "a"), ("A-2", "a"), ("A-1", "b")):
        box.run("reserve", sku, "4", ref)
    box.run("release", "a").prints("released a")
    reserved(box, ("b", "A-1", 4))
    box.run("take", "A-2", "4").prints("A-2: 4 -> 0")
    box.run("take", "A-1", "7").fails(1, "not enough stock: A-1 has 10, 4 reserved")
    expect("bookings", box.query("SELECT sku, delta FROM moves"), [("A-2", -4)])


@case(7, "core", "ship", "ship books what an order has, one booking for each item, by SKU")
def ship(box: Box) -> None:
    two_items(box)
    for sku, n, ref in (("A-2", "1", "a"), ("A-1", "3", "a"), ("A-2", "3", "a"), ("A-1", "2", "b")):
        box.run("reserve", sku, n, ref)
    box.run("ship", "a").prints("A-1: 10 -> 7", "A-2: 4 -> 0")
    bookings = box.query("SELECT sku, delta, note, qty_after FROM moves ORDER BY id")
    expect("bookings", sorted(bookings), [("A-1", -3, "ship a", 7), ("A-2", -4, "ship a", 0)])
    reserved(box, ("b", "A-1", 2))
    expect("history", box.run("history", "A-2").out.split("\t", 1)[-1], "-4\tship a\n")
    box.run("ship", "a").fails(1, "unknown order: a")


@case(7, "error", "unknown-order", "An order that has nothing is unknown")
def unknown_order(box: Box) -> None:
    two_items(box)
    for command in ("release", "ship"):
        box.run(command, "a").fails(1, "unknown order: a")
    box.run("reserve", "A-1", "1", "a").prints("A-1: 1 reserved, 9 free")
    box.run("release", "a").prints("released a")
    for command in ("release", "ship"):
        box.run(command, "a").fails(1, "unknown order: a")


@case(7, "boundary", "reserved-stock", "Other commands show what is on the shelf, reserved or not")
def still_on_the_shelf(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "9", "a").prints("A-1: 9 reserved, 1 free")
    box.run("list").prints("A-1\tBolt\t10\t0.25\tmain", "A-2\tNut\t4\t0.10\tYard")
    box.run("show", "A-1").prints("sku: A-1", "name: Bolt", "qty: 10", "price: 0.25", "location: main")
    box.run("value").prints("total: 2.90 EUR")
    box.run("locations").prints("Yard\t1\t4\t0.40", "main\t1\t10\t2.50")
    box.run("history", "A-1").prints()


@case(7, "boundary", "reserved-stock", "low counts what is on the shelf", retired_in=9)
def low_counts_the_shelf(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "9", "a").prints("A-1: 9 reserved, 1 free")
    box.run("low").prints("A-2\t4")


LIBRARY = """
import stockroom, sys
stock = stockroom.open_stock(sys.argv[1])
print(stock.reserve("A-1", 3, "a"), stock.reserve("A-1", 2, "a"), stock.reserve("A-2", 1, "b"))
print([(row["ref"], row["sku"], row["qty"]) for row in stock.reservations()])
stock.close()
stockroom.load(sys.argv[1])
print(stockroom.reservations())
print(stockroom.reserve("A-2", 4, "c"), stockroom.reserve("A-1", 1, "c"))
try:
    stockroom.change("A-2", -1)
except stockroom.StockError as error:
    print(error)
print(stockroom.ship("c"))
stockroom.reserve("A-1", 4, "d")
stockroom.save()
print(sorted(stockroom.find("A-1")) == ["location", "name", "price", "qty", "sku"], stockroom.find("A-1")["qty"])
stockroom.release("d")
"""


@case(7, "integration", "library", "Reservations from Python, as functions and as methods, and nothing before save")
def library_reserves(box: Box) -> None:
    two_items(box)
    box.python(LIBRARY, str(box.stock)).prints(
        "7 5 3",
        "[('a', 'A-1', 5), ('b', 'A-2', 1)]",
        "[]",
        "0 9",
        "not enough stock: A-2 has 4, 4 reserved",
        "[('A-1', 10, 9), ('A-2', 4, 0)]",
        "True 9",
    )
    reserved(box, ("d", "A-1", 4))


@case(7, "integration", "two-at-once", "A reserve waits for the other one and works with what that one left")
def reserve_waits(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-2", "1", "a").prints("A-2: 1 reserved, 3 free")
    other = sqlite3.connect(box.stock / "stock.db", isolation_level=None)
    try:
        other.execute("BEGIN IMMEDIATE")
        other.execute("UPDATE items SET qty = 12 WHERE sku = 'A-1'")
        process = box.start(["-m", "stockroom", "--data", str(box.stock), "reserve", "A-1", "11", "b"], {})
        time.sleep(0.4)
        other.execute("COMMIT")
    finally:
        other.close()
    box.finish(process).prints("A-1: 11 reserved, 1 free")


@case(7, "core", "qty-after", "Every booking has the quantity after it, of whatever kind it is")
def every_booking(box: Box) -> None:
    two_items(box)
    box.run("put", "A-1", "5").prints("A-1: 10 -> 15")
    box.run("take", "A-1", "1").prints("A-1: 15 -> 14")
    box.write("inbox/jan.csv", STOCK_HEADER, "A-1,Bolt,6,0.30,main", "A-3,Pin,2,1,main")
    box.run("import", "jan.csv").prints("imported 2: 1 new, 1 known")
    box.run("reserve", "A-1", "20", "a").prints("A-1: 20 reserved, 0 free")
    box.run("ship", "a").prints("A-1: 20 -> 0")
    code = "import stockroom, sys\nwith stockroom.open_stock(sys.argv[1]) as s: s.change('A-1', 2), s.change('A-1', 1)"
    box.python(code, str(box.stock)).prints()
    after = box.query("SELECT delta, qty_after FROM moves ORDER BY id")
    expect("bookings", after, [(5, 15), (-1, 14), (6, 20), (-20, 0), (2, 2), (1, 3)])


@case(7, "core", "schema-3", "A new directory and a migrated one have version 3")
def version_3(box: Box) -> None:
    new = box.stock.parent / "new"
    new.mkdir()
    box.run("list", data=new).prints()
    box.write("moves.csv", MOVES_HEADER, f"{AT},A-1,4,delivery", f"{AT},GONE,1,", f"{AT},A-1,-1,")
    box.write("stock.csv", STOCK_HEADER, "A-1,Bolt,7,0.25,main")
    box.run("migrate").prints("migrated 1 items, 3 moves")
    for place in (new, box.stock):
        connection = sqlite3.connect(place / "stock.db")
        columns = [[row[1] for row in connection.execute(f"PRAGMA table_info({t})")] for t in ("moves", "reservations")]
        version = connection.execute("PRAGMA user_version").fetchone()
        connection.close()
        expect("columns, version", (columns, version), ([MOVES, RESERVATIONS], (3,)))
    after = box.query("SELECT sku, delta, qty_after FROM moves ORDER BY id")
    expect("moves", after, [("A-1", 4, 8), ("GONE", 1, None), ("A-1", -1, 7)])


@case(7, "core", "upgrade-3", "A version 1 database gets mills and counts back, by a command that only reads")
def from_version_1(box: Box) -> None:
    items = [("A-1", "Bolt", 8, 25, "main"), ("A-2", "Öse", 3, 1250, "Yard")]
    bookings = [("A-1", 3), ("A-2", 1), ("A-1", -2), ("A-1", 10), ("A-2", -4)]
    old_database(box.stock / "stock.db", 1, items, bookings)
    box.run("list").prints("A-1\tBolt\t8\t0.25\tmain", "A-2\tÖse\t3\t12.50\tYard")
    expect("user_version", box.query("PRAGMA user_version"), [(3,)])
    expect("mills", box.query("SELECT price_mills FROM items ORDER BY sku"), [(250,), (12500,)])
    rows = box.query("SELECT * FROM moves ORDER BY id")
    after = [0, 7, -2, 8, 3]
    wanted = [(n, AT, *booking, "old", after[n - 1]) for n, booking in enumerate(bookings, 1)]
    expect("moves", rows, wanted)
    expect("columns", [row[1] for row in box.query("PRAGMA table_info(moves)")], MOVES)
    box.run("reserve", "A-1", "8", "a").prints("A-1: 8 reserved, 0 free")


@case(
    7, "boundary", "upgrade-3", "A version 2 database keeps its mills, gaps in ids, and bookings of items that are gone"
)
def from_version_2(box: Box) -> None:
    path = box.stock / "stock.db"
    old_database(path, 2, [("A-1", "Bolt", 8, 5, "main")], [("A-1", 1), ("A-1", 5), ("GONE", 3), ("A-1", 2)])
    connection = sqlite3.connect(path)
    with connection:
        connection.execute("DELETE FROM moves WHERE id = 2")
    connection.close()
    box.run("put", "A-1", "4").prints("A-1: 8 -> 12")
    rows = box.query("SELECT id, sku, delta, qty_after FROM moves ORDER BY id")
    expect("moves", rows, [(1, "A-1", 1, 6), (3, "GONE", 3, None), (4, "A-1", 2, 8), (5, "A-1", 4, 12)])
    box.run("show", "A-1").prints("sku: A-1", "name: Bolt", "qty: 12", "price: 0.005", "location: main")


@case(7, "core", "upgrade-3", "10,000 items with 50,000 bookings are upgraded within the limit")
def upgrade_of_many(box: Box) -> None:
    items = [(f"S-{n:05d}", "Item", 5, 250, "main") for n in range(10_000)]
    old_database(box.stock / "stock.db", 2, items, ((f"S-{n % 10_000:05d}", 1) for n in range(50_000)))
    box.run("show", "S-00007", limit=LIMIT).prints(
        "sku: S-00007", "name: Item", "qty: 5", "price: 0.25", "location: main"
    )
    expect("first", box.query("SELECT qty_after FROM moves WHERE id IN (1, 50000) ORDER BY id"), [(1,), (5,)])


@case(7, "error", "upgrade-3", "A database from the future is refused and not touched")
def future_database(box: Box) -> None:
    path = box.stock / "stock.db"
    old_database(path, 2, [("A-1", "Bolt", 8, 5, "main")], [])
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 4")
    connection.close()
    before = path.read_bytes()
    for command in (["list"], ["put", "A-1", "1"], ["reservations"]):
        box.run(*command).fails(3, "stock.db has version 4, expected 3")
    code = """
import stockroom, sys
for call in (stockroom.open_stock, stockroom.load):
    try:
        call(sys.argv[1])
    except stockroom.StockError as error:
        print(error)
"""
    box.python(code, str(box.stock)).prints(*["stock.db has version 4, expected 3"] * 2)
    expect("stock.db unchanged", path.read_bytes() == before, True)


@case(7, "integration", "reserve-log", "The log has the SKU of a reserve, and no other of these")
def reserve_in_log(box: Box) -> None:
    two_items(box)
    path = box.stock.parent / "log.jsonl"
    log = {"STOCKROOM_LOG": str(path)}
    for command in ("reserve A-1 1 a", "reservations", "release a", "ship a"):
        box.run(*command.split(), env=log)
    text = path.read_text() if path.is_file() else ""
    entries = [json.loads(line) for line in text.splitlines()]
    wanted = [("reserve", "A-1", 0), ("reservations", None, 0), ("release", None, 0), ("ship", None, 1)]
    expect("log", [(entry["command"], entry["sku"], entry["exit"]) for entry in entries], wanted)
