"""Round 10: reservations of what is still to come, and a limit to waiting."""

from __future__ import annotations

import json
import sqlite3
import time
from collections.abc import Iterator
from contextlib import contextmanager

from cases.round_7 import two_items
from suite import STOCK_HEADER, Box, case, expect

BUSY = "stock is busy"


def listed(box: Box, *rows: str) -> None:
    """Checks what `reservations` prints, with blanks in place of tabs."""
    box.run("reservations").prints(*(row.replace(" ", "\t") for row in rows))


@contextmanager
def somebody_books(box: Box) -> Iterator[None]:
    """Holds the database as one does who books, and gives up in the end."""
    connection = sqlite3.connect(box.stock / "stock.db", isolation_level=None)
    try:
        connection.execute("BEGIN IMMEDIATE")
        connection.execute("UPDATE items SET qty = qty + 100")
        yield
    finally:
        connection.close()


@case(10, "core", "back-order", "reserve gets more than there is, and says what is missing of all orders together")
def more_than_there_is(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "10", "a").prints("A-1: 10 reserved, 0 free")
    box.run("reserve", "A-1", "4", "b").prints("A-1: 14 reserved, 0 free, 4 missing")
    box.run("reserve", "A-1", "1", "a").prints("A-1: 15 reserved, 0 free, 5 missing")
    box.run("reserve", "A-2", "7", "a").prints("A-2: 7 reserved, 0 free, 3 missing")
    box.run("put", "A-1", "6").prints("A-1: 10 -> 16")
    box.run("reserve", "A-1", "1", "c").prints("A-1: 16 reserved, 0 free")


@case(10, "core", "line", "What is there goes to those who reserved first, item by item")
def first_come(box: Box) -> None:
    two_items(box)
    for sku, n, ref in (("A-1", "7", "z"), ("A-1", "5", "m"), ("A-1", "1", "a"), ("A-2", "3", "a"), ("A-2", "3", "z")):
        box.run("reserve", sku, n, ref)
    listed(box, "a A-1 1 0", "a A-2 3 3", "m A-1 5 3", "z A-1 7 7", "z A-2 3 1")


@case(10, "core", "line", "What comes in by put, import or change goes to the first who lacks something")
def comes_in(box: Box) -> None:
    two_items(box)
    for n, ref in (("9", "z"), ("5", "m"), ("4", "a")):
        box.run("reserve", "A-1", n, ref)
    listed(box, "a A-1 4 0", "m A-1 5 1", "z A-1 9 9")
    box.run("put", "A-1", "3").prints("A-1: 10 -> 13")
    listed(box, "a A-1 4 0", "m A-1 5 4", "z A-1 9 9")
    box.write("inbox/jan.csv", STOCK_HEADER, "A-1,Bolt,2,0.25,main")
    box.run("import", "jan.csv").prints("imported 1: 0 new, 1 known")
    listed(box, "a A-1 4 1", "m A-1 5 5", "z A-1 9 9")
    code = "import stockroom, sys\nwith stockroom.open_stock(sys.argv[1]) as s: s.change('A-1', 10)"
    box.python(code, str(box.stock)).prints()
    listed(box, "a A-1 4 4", "m A-1 5 5", "z A-1 9 9")


@case(10, "core", "line", "What an order gives back goes to the next in the line")
def given_back(box: Box) -> None:
    two_items(box)
    for n, ref in (("6", "c"), ("6", "b"), ("6", "a")):
        box.run("reserve", "A-1", n, ref)
    box.run("release", "c").prints("released c")
    listed(box, "a A-1 6 4", "b A-1 6 6")
    box.run("reserve", "A-1", "1", "c").prints("A-1: 13 reserved, 0 free, 3 missing")
    listed(box, "a A-1 6 4", "b A-1 6 6", "c A-1 1 0")
    box.run("ship", "b").prints("A-1: 10 -> 4")
    listed(box, "a A-1 6 4", "c A-1 1 0")


@case(10, "boundary", "line", "Who reserves more keeps the place in the line for all of it")
def keeps_place(box: Box) -> None:
    two_items(box)
    for n, ref in (("4", "z"), ("6", "a"), ("3", "z")):
        box.run("reserve", "A-1", n, ref)
    listed(box, "a A-1 6 3", "z A-1 7 7")


@case(10, "core", "not-ready", "An order of which something is missing is not shipped, and nothing of it is booked")
def not_ready(box: Box) -> None:
    two_items(box)
    for sku, n, ref in (("A-1", "10", "a"), ("A-2", "6", "a"), ("A-1", "3", "b"), ("A-2", "1", "b")):
        box.run("reserve", sku, n, ref)
    box.run("ship", "a").fails(1, "not ready: a lacks 2 of A-2")
    box.run("ship", "b").fails(1, "not ready: b lacks 3 of A-1")
    expect("bookings", box.query("SELECT * FROM moves"), [])
    listed(box, "a A-1 10 10", "a A-2 6 4", "b A-1 3 0", "b A-2 1 0")
    box.run("put", "A-2", "2").prints("A-2: 4 -> 6")
    box.run("ship", "a").prints("A-1: 10 -> 0", "A-2: 6 -> 0")
    listed(box, "b A-1 3 0", "b A-2 1 0")


@case(10, "core", "partial", "ship --partial books what is ready and leaves the rest in its place")
def partial(box: Box) -> None:
    two_items(box)
    for sku, n, ref in (("A-1", "12", "z"), ("A-2", "4", "z"), ("A-1", "5", "a"), ("A-2", "5", "a")):
        box.run("reserve", sku, n, ref)
    box.run("ship", "--partial", "z").prints("A-1: 10 -> 0", "A-2: 4 -> 0")
    listed(box, "a A-1 5 0", "a A-2 5 0", "z A-1 2 0")
    rows = box.query("SELECT sku, delta, note, qty_after FROM moves ORDER BY sku")
    expect("bookings", rows, [("A-1", -10, "ship z", 0), ("A-2", -4, "ship z", 0)])
    box.run("put", "A-1", "3").prints("A-1: 0 -> 3")
    listed(box, "a A-1 5 1", "a A-2 5 0", "z A-1 2 2")
    box.run("ship", "a", "--partial").prints("A-1: 3 -> 2")
    box.run("ship", "--partial", "z").prints("A-1: 2 -> 0")
    listed(box, "a A-1 4 0", "a A-2 5 0")
    box.run("ship", "z").fails(1, "unknown order: z")


@case(
    10, "error", "partial", "Where nothing is ready there is nothing to ship, and an order without anything is unknown"
)
def nothing_ready(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "10", "a").prints("A-1: 10 reserved, 0 free")
    box.run("reserve", "A-1", "1", "b").prints("A-1: 11 reserved, 0 free, 1 missing")
    box.run("ship", "--partial", "b").fails(1, "nothing ready: b")
    box.run("ship", "--partial", "c").fails(1, "unknown order: c")
    box.run("release", "b").prints("released b")
    listed(box, "a A-1 10 10")


@case(10, "boundary", "back-order", "take gets what is free only, and low is never below 0")
def take_and_low(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "12", "a").prints("A-1: 12 reserved, 0 free, 2 missing")
    box.run("take", "A-1", "1").fails(1, "not enough stock: A-1 has 10, 12 reserved")
    box.run("low").prints("A-1\t0", "A-2\t4")
    box.run("put", "A-1", "1").prints("A-1: 10 -> 11")
    box.run("take", "A-1", "1").fails(1, "not enough stock: A-1 has 11, 12 reserved")
    box.run("put", "A-1", "3").prints("A-1: 11 -> 14")
    box.run("take", "A-1", "3").fails(1, "not enough stock: A-1 has 14, 12 reserved")
    box.run("take", "A-1", "2").prints("A-1: 14 -> 12")


@case(10, "integration", "line", "Reservations of the seventh round have their places by their ids")
def old_reservations(box: Box) -> None:
    two_items(box)
    connection = sqlite3.connect(box.stock / "stock.db")
    with connection:
        rows = [(9, "a", "A-1", 6), (2, "z", "A-1", 3), (5, "m", "A-1", 4)]
        connection.executemany("INSERT INTO reservations VALUES (?, ?, ?, ?)", rows)
    connection.close()
    listed(box, "a A-1 6 3", "m A-1 4 4", "z A-1 3 3")
    box.run("reserve", "A-1", "1", "b").prints("A-1: 14 reserved, 0 free, 4 missing")
    listed(box, "a A-1 6 3", "b A-1 1 0", "m A-1 4 4", "z A-1 3 3")
    expect("user_version", box.query("PRAGMA user_version"), [(3,)])


MODEL = """
import random, stockroom, sys
rng = random.Random(10)
stock = stockroom.open_stock(sys.argv[1])
shelf, line = {"A-1": 10, "A-2": 4}, []  # [ref, sku, n], who came first stands first

def ready():
    rest, found = dict(shelf), []
    for ref, sku, n in line:
        there = min(n, rest[sku])
        rest[sku] -= there
        found.append((ref, sku, n, there))
    return sorted(found)

def told(call, *arguments, **options):
    try:
        return call(*arguments, **options)
    except stockroom.StockError as error:
        return str(error)

for step in range(400):
    sku, ref, n = rng.choice(["A-1", "A-2"]), rng.choice("abcd"), rng.randrange(1, 9)
    what = rng.choice(["put", "take", "reserve", "reserve", "release", "ship", "partial"])
    mine = [row for row in ready() if row[0] == ref]
    reserved = sum(row[2] for row in line if row[1] == sku)
    if what == "put":
        shelf[sku] += n
        done, wanted = told(stock.change, sku, n), shelf[sku]
    elif what == "take":
        done, wanted = told(stock.change, sku, -n), shelf[sku] - n
        if n > shelf[sku] - reserved:
            more = f", {reserved} reserved" if reserved else ""
            wanted = f"not enough stock: {sku} has {shelf[sku]}{more}"
        else:
            shelf[sku] -= n
    elif what == "reserve":
        row = next((row for row in line if row[:2] == [ref, sku]), None)
        if row:
            row[2] += n
        else:
            line.append([ref, sku, n])
        done, wanted = told(stock.reserve, sku, n, ref), max(0, shelf[sku] - reserved - n)
    elif what == "release":
        done, wanted = told(stock.release, ref), "" if mine else f"unknown order: {ref}"
        done = done if isinstance(done, str) else ""
        line = [row for row in line if row[0] != ref]
    else:
        done = told(stock.ship, ref, partial=True) if what == "partial" else told(stock.ship, ref)
        lacks = [row for row in mine if row[3] < row[2]]
        if not mine:
            wanted = f"unknown order: {ref}"
        elif what == "ship" and lacks:
            wanted = f"not ready: {ref} lacks {lacks[0][2] - lacks[0][3]} of {lacks[0][1]}"
        elif not any(row[3] for row in mine):
            wanted = f"nothing ready: {ref}"
        else:
            wanted = [(row[1], shelf[row[1]], shelf[row[1]] - row[3]) for row in mine if row[3]]
            for _, item, _, there in mine:
                shelf[item] -= there
                next(row for row in line if row[:2] == [ref, item])[2] -= there
            line = [row for row in line if row[2]]
    assert done == wanted, (step, what, sku, ref, n, done, wanted)
    found = [(row["ref"], row["sku"], row["qty"], row["ready"]) for row in stock.reservations()]
    assert found == ready(), (step, what, sku, ref, n, found, ready())
stock.close()
print("as wanted")
"""


@case(10, "integration", "line", "400 steps at random leave what a simple model of the line has")
def at_random(box: Box) -> None:
    two_items(box)
    box.python(MODEL, str(box.stock)).prints("as wanted")
    listed(box)


@case(10, "core", "busy", "Who cannot begin to book fails after the time to wait, and has changed nothing")
def busy(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "1", "a").prints("A-1: 1 reserved, 9 free")
    box.write("inbox/jan.csv", STOCK_HEADER, "A-1,Bolt,2,0.25,main")
    box.write("stockroom.conf", '{"wait": 0}')
    with somebody_books(box):
        for command in (
            "put A-1 1",
            "take A-1 1",
            "add A-3 Pin 1 1",
            "import jan.csv",
            "reserve A-1 1 b",
            "release a",
            "ship a",
        ):
            box.run(*command.split(), limit=4).fails(8, BUSY)
    box.run("put", "A-1", "1").prints("A-1: 10 -> 11")
    listed(box, "a A-1 1 1")
    expect("items", len(box.query("SELECT * FROM items")), 2)


@case(10, "core", "readers", "Who only reads does not care who books")
def readers(box: Box) -> None:
    two_items(box)
    box.run("reserve", "A-1", "9", "a").prints("A-1: 9 reserved, 1 free")
    box.write("stockroom.conf", '{"wait": 0}')
    with somebody_books(box):
        box.run("list").prints("A-1\tBolt\t10\t0.25\tmain", "A-2\tNut\t4\t0.10\tYard")
        box.run("value").prints("total: 2.90 EUR")
        box.run("low").prints("A-1\t1", "A-2\t4")
        listed(box, "a A-1 9 9")
        box.run("picklist", "gate.txt").prints("picklist: 2 items")
        box.run("history", "A-1").prints()


@case(10, "integration", "busy", "A booking goes on as soon as the other one is done, within the time to wait")
def waits_its_time(box: Box) -> None:
    two_items(box)
    box.write("stockroom.conf", '{"wait": 30000}')
    with somebody_books(box):
        process = box.start(["-m", "stockroom", "--data", str(box.stock), "put", "A-1", "1"], {})
        time.sleep(0.3)
    box.finish(process).prints("A-1: 10 -> 11")


@case(10, "error", "wait", "wait is a whole number that is not negative")
def bad_wait(box: Box) -> None:
    two_items(box)
    for text in ('"5"', "-1", "0.5", "null", "[]"):
        box.write("stockroom.conf", f'{{"wait": {text}}}')
        box.run("list").fails(3, "stockroom.conf: cannot read")
    box.write("stockroom.conf", '{"wait": 250,}')
    box.run("put", "A-1", "1").prints("A-1: 10 -> 11")


@case(10, "integration", "busy", "A stock that is busy is a StockError in Python, and stands in the log")
def busy_elsewhere(box: Box) -> None:
    two_items(box)
    box.write("stockroom.conf", '{"wait": 20}')
    path = box.stock.parent / "log.jsonl"
    code = """
import stockroom, sys
for book in (lambda stock: stock.change("A-1", 1), lambda stock: stock.reserve("A-1", 1, "a")):
    stock = stockroom.open_stock(sys.argv[1])
    try:
        book(stock)
        stock.save()  # Whoever keeps it all in memory until here begins to book only now.
    except stockroom.StockError as error:
        print(error)
    stock.close()
stock = stockroom.open_stock(sys.argv[1])
print(stock.find("A-1")["qty"], stock.reservations())
"""
    with somebody_books(box):
        box.python(code, str(box.stock), limit=4).prints(BUSY, BUSY, "10 []")
        box.run("put", "A-1", "1", env={"STOCKROOM_LOG": str(path)}, limit=4).fails(8, BUSY)
    entry = json.loads((path.read_text() if path.is_file() else "") or "{}")
    expect("log", [entry.get(key) for key in ("command", "sku", "exit", "error")], ["put", "A-1", 8, BUSY])


@case(10, "integration", "back-order", "reserve in Python returns what is free, and nothing is stored before save")
def library_back_order(box: Box) -> None:
    two_items(box)
    code = """
import stockroom, sys
stockroom.load(sys.argv[1])
print(stockroom.reserve("A-1", 4, "a"), stockroom.reserve("A-1", 40, "b"), stockroom.reserve("A-2", 5, "b"))
print([(row["ref"], row["sku"], row["qty"], row["ready"]) for row in stockroom.reservations()])
print(stockroom.ship("b", partial=True))
try:
    stockroom.ship("b")
except stockroom.StockError as error:
    print(error)
"""
    wanted = [("a", "A-1", 4, 4), ("b", "A-1", 40, 6), ("b", "A-2", 5, 4)]
    shipped = [("A-1", 10, 4), ("A-2", 4, 0)]
    box.python(code, str(box.stock)).prints("6 0 0", str(wanted), str(shipped), "not ready: b lacks 34 of A-1")
    listed(box)
