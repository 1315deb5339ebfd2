"""Round 2: an SQLite database behind the same commands and functions."""

from __future__ import annotations

from suite import MOVES_HEADER, STOCK_HEADER, WORKSPACE, Box, case, expect

ROWS = ['A-1,"Pipe, 5""",7,0.25,main', "A-2,Cable,0,12.50,Hall 2"]
LISTED = ['A-1\tPipe, 5"\t7\t0.25\tmain', "A-2\tCable\t0\t12.50\tHall 2"]


@case(2, "core", "migrate", "migrate carries items and moves over, and the commands go on with them")
def migrate(box: Box) -> None:
    stock = box.write("stock.csv", STOCK_HEADER, *ROWS).read_bytes()
    moves = box.write("moves.csv", MOVES_HEADER, '2024-03-01T12:00:00Z,A-1,3,"a, b"').read_bytes()
    box.run("migrate").prints("migrated 2 items, 1 moves")
    expect("stock.csv.bak", (box.stock / "stock.csv.bak").read_bytes(), stock)
    expect("moves.csv.bak", (box.stock / "moves.csv.bak").read_bytes(), moves)
    box.run("list").prints(*LISTED)
    box.run("put", "A-1", "2").prints("A-1: 7 -> 9")
    lines = box.run("history", "A-1").out.splitlines()
    expect("first move", lines[:1], ["2024-03-01T12:00:00Z\t+3\ta, b"])
    expect("second move", [line.split("\t")[1:] for line in lines[1:]], [["+2", ""]])
    box.run("migrate").prints("already migrated")
    box.run("show", "A-1").prints("sku: A-1", 'name: Pipe, 5"', "qty: 9", "price: 0.25", "location: main")
    expect("files", {path.name for path in box.stock.glob("*.csv")}, set())


@case(2, "core", "cents", "The database has the agreed schema in whole cents, other prices are refused", retired_in=4)
def cents(box: Box) -> None:
    box.write("moves.csv", MOVES_HEADER, "2024-03-01T12:00:00Z,A-2,4,delivery")
    box.write("stock.csv", STOCK_HEADER, *ROWS)
    for price in ("1.005", "1.", "-1", "nan"):
        box.run("add", "--", "A-3", "Lamp", "1", price).fails(1, f"bad price: {price}")
    box.run("migrate").prints("migrated 2 items, 1 moves")
    box.run("add", "A-3", "Lamp", "1", "1.005").fails(1, "bad price: 1.005")
    columns = [row[1:3] for row in box.query("PRAGMA table_info(items)")]
    wanted = [("sku", "TEXT"), ("name", "TEXT"), ("qty", "INTEGER"), ("price_cents", "INTEGER"), ("location", "TEXT")]
    expect("columns of items", columns, wanted)
    items = box.query("SELECT sku, qty, price_cents FROM items ORDER BY sku")
    expect("items", items, [("A-1", 7, 25), ("A-2", 0, 1250)])
    expect("moves", box.query("SELECT * FROM moves"), [(1, "2024-03-01T12:00:00Z", "A-2", 4, "delivery")])
    expect("user_version", box.query("PRAGMA user_version"), [(1,)])


@case(2, "error", "migrate", "A migration that cannot work leaves everything as it was")
def migrate_refused(box: Box) -> None:
    box.run("migrate").fails(1, "nothing to migrate")
    path = box.write("stock.csv", STOCK_HEADER, *ROWS, "B-1,Washer, zinc,4,0.10,main")
    before = path.read_bytes()
    box.run("migrate").fails(3, "stock.csv line 4: cannot read record")
    expect("files", [entry.name for entry in box.stock.glob("*.db")], [])
    expect("stock.csv", path.read_bytes(), before)


@case(2, "boundary", "migrate", "migrate reads as strictly as every command, also the moves, and skips no row")
def migrate_strictly(box: Box) -> None:
    bad = ['B-1,"Big" bolt,4,0.10,main', "B-1,Nut,4,0.10", "B-1,Nut,4,ten,main", 'B-1,"Nut,4,0.10,main', ",,,,,"]
    for row in bad:
        box.write("stock.csv", STOCK_HEADER, 'A-1,"two\nlines",7,0.25,main', "", row, "C-1,Pin,1,1.00,main")
        box.run("migrate").fails(3, "stock.csv line 5: cannot read record")
    box.write("stock.csv", STOCK_HEADER, *ROWS)
    box.write("moves.csv", MOVES_HEADER, "2024-03-01T12:00:00Z,A-1,3,", "2024-03-01T12:00:00Z,A-1,three,")
    box.run("migrate").fails(3, "moves.csv line 3: cannot read record")
    expect("files", sorted(path.name for path in box.stock.iterdir()), ["moves.csv", "stock.csv"])


@case(2, "boundary", "both-kinds", "A directory that was not migrated goes on with its CSV files", retired_in=5)
def csv_goes_on(box: Box) -> None:
    box.write("stock.csv", STOCK_HEADER, *ROWS)
    box.run("put", "A-1", "1").prints("A-1: 7 -> 8")
    rows = [ROWS[0].replace(",7,", ",8,"), ROWS[1]]
    expect("stock.csv", (box.stock / "stock.csv").read_text().splitlines(), [STOCK_HEADER, *rows])
    expect("moves.csv", (box.stock / "moves.csv").exists(), True)
    expect("stock.db", (box.stock / "stock.db").exists(), False)
    box.run("migrate").prints("migrated 2 items, 1 moves")


LIBRARY = """
import sys, pathlib, stockroom
one, two = sys.argv[1:]
assert stockroom.load(one) == 1
stockroom.add_item("B-1", "Bolt", 10, "0.25", location="Yard")
assert stockroom.change("B-1", -3, "order 17") == 7
a, b = stockroom.open_stock(one), stockroom.open_stock(two)
assert a.find("B-1") is None, "not saved yet"
a.close()
stockroom.save()
a = stockroom.open_stock(one)
assert a.find("B-1") == {"sku": "B-1", "name": "Bolt", "qty": 7, "price": 0.25, "location": "Yard"}
b.add_item("C-1", "Cable", 100000, 0.1)
assert [i["sku"] for i in b.all_items()] == ["A-1", "C-1"], b.all_items()
assert b.total_value() == 10000.25, b.total_value()
assert stockroom.total_value() == 2.0, stockroom.total_value()
a.close(); b.close()
try:
    with stockroom.open_stock(two) as stock:
        assert stock.find("C-1") is None, "closed without saving"
        stock.change("A-1", 4)
        stock.change("A-1", -99)
except stockroom.StockError as error:
    print(error)
with stockroom.open_stock(two) as stock:
    print(stock.find("A-1")["qty"])
    stock.change("A-1", 4)
with stockroom.open_stock(two) as stock:
    print(stock.find("A-1")["qty"])
"""


@case(2, "integration", "library", "Several stocks are open in one process, and nothing is stored before save")
def library(box: Box) -> None:
    box.migrated("A-1,Bolt,1,0.25,main")
    other = box.stock.parent / "other"
    other.mkdir()
    (other / "stock.csv").write_text(f"{STOCK_HEADER}\nA-1,Bolt,1,0.25,main\n")
    box.run("migrate", data=other).prints("migrated 1 items, 0 moves")
    box.python(LIBRARY, str(box.stock), str(other)).prints("not enough stock: A-1 has 5", "1", "5")


@case(2, "integration", "warehouse", "The warehouse delivered with this round is repaired and migrated")
def warehouse(box: Box) -> None:
    place = WORKSPACE / "warehouse"
    expect("files", [(place / name).is_file() for name in ("stock.db", "stock.csv", "moves.csv")], [True, False, False])
    box.run("value", data=place).prints("total: 21210.80 EUR")
    shown = ["sku: W-017", "name: Washer, M8, zinc", "qty: 89", "price: 19.26", "location: Yard"]
    box.run("show", "W-017", data=place).prints(*shown)
    expect("items", len(box.run("list", data=place).out.splitlines()), 40)
    box.run("history", "W-003", data=place).prints(
        "2024-02-26T07:12:44Z\t+40\tdelivery 118",
        "2024-02-27T15:40:31Z\t-6\torder 2041",
        "2024-03-01T12:00:00Z\t-2\torder 2055",
    )
