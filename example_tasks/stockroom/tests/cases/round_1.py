"""Round 1: no more data losses, and nothing else changes."""

from __future__ import annotations

import re

from suite import MOVES_HEADER, STOCK_HEADER, Box, Mismatch, case, expect

NASTY = 'M6, "zinc"\nEVIL,Row,5,1.00,main\r'
NASTY_SHOWN = 'M6, "zinc"\\nEVIL,Row,5,1.00,main\\r'


@case(1, "core", "text", "Commas, quotes and line ends in any text come back as they went in, one record a line")
def text_survives(box: Box) -> None:
    box.run("add", "B,1", NASTY, "10", "0.25", "--location", 'Hall "2", left').prints("added B,1")
    box.run("put", "B,1", "2", "--note", 'order 7, "rush"\nnew\tline').prints("B,1: 10 -> 12")
    box.run("add", "C-2", "Cable", "1", "3").prints("added C-2")
    shown = ["sku: B,1", f"name: {NASTY_SHOWN}", "qty: 12", "price: 0.25", 'location: Hall "2", left']
    box.run("show", "B,1").prints(*shown)
    box.run("list").prints(
        f'B,1\t{NASTY_SHOWN}\t12\t0.25\tHall "2", left',
        "C-2\tCable\t1\t3.00\tmain",
    )
    history = box.run("history", "B,1")
    expect("note", history.out.split("\t", 1)[-1], '+2\torder 7, "rush"\\nnew\\tline\n')
    code = "import stockroom, sys; stockroom.load(sys.argv[1]); print(ascii(stockroom.find('B,1')['name']))"
    box.python(code, str(box.stock)).prints(ascii(NASTY))


@case(1, "core", "text", "list --csv quotes a field that needs it", retired_in=5)
def list_csv(box: Box) -> None:
    box.run("add", "A-1", 'Pipe, 5"', "3", "2.5").prints("added A-1")
    box.run("add", "A-2", "a\rb", "1", "1").prints("added A-2")
    rows = box.run("list", "--csv")
    rows.prints(STOCK_HEADER, 'A-1,"Pipe, 5""",3,2.50,main', 'A-2,"a\rb",1,1.00,main')


@case(1, "boundary", "text", "Files without special characters stay byte for byte the same", retired_in=5)
def plain_files_unchanged(box: Box) -> None:
    lines = [STOCK_HEADER, "A-1,Bolt,7,0.25,main", "A-2,5' pipe,0,12.50,Hall 2", "Ä-3,Öse,3,1.00,"]
    path = box.write("stock.csv", *lines)
    moves = [MOVES_HEADER, "2024-03-01T12:00:00Z,A-1,3,delivery", "2024-03-02T12:00:00Z,A-1,-1,"]
    box.write("moves.csv", *moves)
    before = path.read_bytes()
    box.run("put", "A-1", "5", "--note", "count").prints("A-1: 7 -> 12")
    box.run("take", "A-1", "5").prints("A-1: 12 -> 7")
    expect("stock.csv", path.read_bytes(), before)
    after = (box.stock / "moves.csv").read_bytes().decode()
    after = re.sub(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ,A-1,(5,count|-5,)\n", r"now,\1\n", after)
    expect("moves.csv", after, "\n".join([*moves, "now,5,count", "now,-5,", ""]))


@case(1, "error", "rows", "A row that cannot be read stops every command and nothing is written", retired_in=5)
def unreadable_row(box: Box) -> None:
    good = 'A-1,5" pipe,7,0.25,main'
    box.write("stock.csv", STOCK_HEADER, good)
    box.run("list").prints('A-1\t5" pipe\t7\t0.25\tmain')
    two_lines = 'A-2,"two\nlines",1,1.00,main'
    for bad in ["B-1,Washer, zinc,4,0.10,main", "B-1,Washer,x,0.10,main", 'B-1,"Big" bolt,4,0.10,main', "B-1"]:
        path = box.write("stock.csv", STOCK_HEADER, good, "", two_lines, bad)
        before = path.read_bytes()
        for command in (["list"], ["put", "A-1", "1"]):
            box.run(*command).fails(3, "stock.csv line 6: cannot read record")
        expect("stock.csv", path.read_bytes(), before)
    box.write("stock.csv", STOCK_HEADER, good)
    box.write("moves.csv", MOVES_HEADER, "2024-03-01T12:00:00Z,A-1,three,")
    box.run("put", "A-1", "1").fails(3, "moves.csv line 2: cannot read record")


@case(1, "core", "history", "history keeps the bookings of all commands and all items")
def history_kept(box: Box) -> None:
    for sku in ("A-1", "A-2"):
        box.run("add", sku, "Thing", "5", "1").prints(f"added {sku}")
    box.run("put", "A-1", "3", "--note", "first").prints("A-1: 5 -> 8")
    box.run("take", "A-2", "1", "--note", "other").prints("A-2: 5 -> 4")
    box.run("take", "A-1", "2").prints("A-1: 8 -> 6")
    lines = box.run("history", "A-1").out.splitlines()
    if not all(re.match(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\dZ\t", line) for line in lines):
        raise Mismatch("history A-1", "UTC times like 2024-03-01T12:00:00Z", lines)
    expect("history A-1", [line.split("\t")[1:] for line in lines], [["+3", "first"], ["-2", ""]])
    expect("history A-2", box.run("history", "A-2").out.split("\t", 1)[-1], "-1\tother\n")


@case(1, "core", "whole-files", "A new file takes the place of the old one, which is not written into", retired_in=5)
def another_file(box: Box) -> None:
    before = box.write("stock.csv", STOCK_HEADER, "A-1,Bolt,7,0.25,main").read_bytes()
    box.write("moves.csv", MOVES_HEADER, "2024-03-01T12:00:00Z,A-1,3,delivery")
    kept = [box.stock.parent / name for name in ("stock.kept", "moves.kept")]
    for path in kept:
        path.hardlink_to(box.stock / path.with_suffix(".csv").name)
    box.run("put", "A-1", "5").prints("A-1: 7 -> 12")
    moves = f"{MOVES_HEADER}\n2024-03-01T12:00:00Z,A-1,3,delivery\n".encode()
    expect("the old files, under other names", [path.read_bytes() for path in kept], [before, moves])
    expect("files", sorted(path.name for path in box.stock.iterdir()), ["moves.csv", "stock.csv"])


@case(1, "error", "whole-files", "Text that is not UTF-8 is refused before anything is written")
def invalid_utf8(box: Box) -> None:
    box.run("add", "A-1", "Öse", "5", "1").prints("added A-1")
    box.run("add", "A-2", b"caf\xe9", "1", "1").fails(1, "not valid UTF-8")
    box.run("put", "A-1", "1", "--note", b"\xff").fails(1, "not valid UTF-8")
    box.run("list").prints("A-1\tÖse\t5\t1.00\tmain")
