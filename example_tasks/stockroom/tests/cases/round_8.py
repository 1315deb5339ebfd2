"""Round 8: the haulier's pick list, byte for byte, and bookings that nobody can put back."""

from __future__ import annotations

import random
import sqlite3
from pathlib import Path

from suite import WORKSPACE, Box, case, expect

# Seconds. The request says 5; see round 3.
LIMIT = 30
PLAIN = ["A-1,Bolt,7,0.25,Hall 2", "A-2,Cable 3 m,120,12.50,Hall 1", "A-3,Lamp,1,1,Hall 2"]
PLAIN_LINES = [
    b"*Hall 1      ",
    b"A-2     Cable 3 m              120     12,50",
    b"*Hall 2      ",
    b"A-1     Bolt                     7      0,25",
    b"A-3     Lamp                     1      1,00",
]


def complete(lines: list[bytes], number: int) -> bytes:
    """The list with its last line."""
    data = b"".join(line + b"\r\n" for line in lines)
    check = 0
    for byte in data:
        check = (check * 31 + byte) % 9973
    return data + b"#%04d%04d\x1a" % (number, check)


def picklist(box: Box, items: int, data: Path | None = None) -> bytes:
    """What the command writes."""
    path = box.stock.parent / "gate.txt"
    box.run("picklist", str(path), data=data, limit=LIMIT).prints(f"picklist: {items} items")
    return path.read_bytes() if path.is_file() else b"no such file"


@case(8, "core", "picklist", "Items stand below their location, in columns, with a comma in prices")
def plain(box: Box) -> None:
    box.migrated(*PLAIN)
    expect("pick list", picklist(box, 3), complete(PLAIN_LINES, 3))


@case(
    8, "boundary", "picklist", "Locations are in the order of their capitals, and stand there again after another one"
)
def order(box: Box) -> None:
    box.migrated(
        "A-1,a,1,1,yard", "A-2,b,1,1,Yard", "A-3,c,1,1,yard", "a-0,d,1,1,Straße", "B-1,e,1,1,STRASSE", "C,f,1,1,"
    )
    lines = [
        b"*            ",
        b"C       f                        1      1,00",
        b"*STRASSE     ",
        b"B-1     e                        1      1,00",
        b"*Stra\xdfe      ",
        b"a-0     d                        1      1,00",
        b"*yard        ",
        b"A-1     a                        1      1,00",
        b"*Yard        ",
        b"A-2     b                        1      1,00",
        b"*yard        ",
        b"A-3     c                        1      1,00",
    ]
    expect("pick list", picklist(box, 6), complete(lines, 6))


@case(8, "boundary", "picklist", "Long texts are cut, large numbers are not, and what Latin-1 lacks is a question mark")
def width(box: Box) -> None:
    box.migrated(
        "123456789,A name of more than twenty characters,1234567,1,A location of more",
        "Ö-€,Öse 8 mm \u2013 „neu“,2,12345678.90,Straße €",
    )
    lines = [
        b"*A location o",
        b"12345678A name of more than 1234567      1,00",
        b"*Stra\xdfe ?    ",
        b"\xd6-?     \xd6se 8 mm ? ?neu?         212345678,90",
    ]
    expect("pick list", picklist(box, 2), complete(lines, 2))


@case(8, "boundary", "picklist", "Line ends and other control characters are blanks, formulas stay")
def controls(box: Box) -> None:
    box.migrated('"A\r\n1","tab\there, ""x""",1,1,"Hall\n2"', "=1,+cmd,1,1,@Yard", "D,a\x7f\x01b,1,1,Z\x85")
    lines = [
        b"*@Yard       ",
        b"=1      +cmd                     1      1,00",
        b"*Hall 2      ",
        b'A  1    tab here, "x"            1      1,00',
        b"*Z\x85          ",
        b"D       a\x7f b                     1      1,00",
    ]
    expect("pick list", picklist(box, 3), complete(lines, 3))


@case(8, "core", "picklist-prices", "Mills are rounded as the tool rounds them")
def rounding(box: Box) -> None:
    prices = {"0.005": "0,01", "0.015": "0,01", "0.025": "0,03", "0.125": "0,12", "0.375": "0,38", "1.005": "1,00"}
    prices |= {"2.675": "2,67", "2.685": "2,69", "0.004": "0,00", "8.995": "8,99", "1.115": "1,11", "0.999": "1,00"}
    box.migrated(*(f"P-{number:02d},x,1,{price},m" for number, price in enumerate(prices)))
    lines = [f"P-{number:02d}    x                        1{price:>10}" for number, price in enumerate(prices.values())]
    expect("pick list", picklist(box, len(prices)), complete([b"*m           ", *map(str.encode, lines)], len(prices)))


@case(8, "boundary", "picklist", "What is not on the shelf is not picked, and an empty list has its last line")
def nothing(box: Box) -> None:
    expect("pick list", picklist(box, 0), b"#00000000\x1a")
    box.run("add", "A-1", "Bolt", "0", "1").prints("added A-1")
    expect("pick list", picklist(box, 0), b"#00000000\x1a")
    box.run("add", "A-2", "Nut", "3", "1").prints("added A-2")
    line = b"A-2     Nut                      3      1,00"
    expect("pick list", picklist(box, 1), complete([b"*main        ", line], 1))


@case(8, "integration", "picklist", "Stocks at random have the list that the tool would make")
def at_random(box: Box) -> None:
    rng = random.Random(8)
    letters = "abcXYZ 019-ÄößéŁ€\"'\u017f"
    items = []
    for number in range(300):
        name = "".join(rng.choices(letters, k=rng.randrange(30)))
        place = rng.choice(["Hall 1", "hall 1", "HALL 1", "Łódź", "łódź", "Straße", "strasse 2", "Ä"])
        items.append(
            (f"{number % 7}-{number:03d}", name, rng.choice([0, 1, 20, 999_999]), rng.randrange(100_000), place)
        )
    rows = [
        f'{sku},"{name.replace(chr(34), 2 * chr(34))}",{qty},{mills / 1000:.3f},{place}'
        for sku, name, qty, mills, place in items
    ]
    box.migrated(*rows)
    lines: list[str] = []
    last = ""
    picked = [item for item in items if item[2]]
    for sku, name, qty, mills, place in sorted(picked, key=lambda item: (item[4].upper(), item[0])):
        if place != last:
            lines.append("*" + place.ljust(12))
        last = place
        lines.append(
            sku.ljust(8)
            + name.ljust(20)[:20]
            + str(qty).rjust(6)
            + ("%.2f" % (mills / 1000)).rjust(10).replace(".", ",")
        )
    expect(
        "pick list",
        picklist(box, len(picked)),
        complete([line.encode("latin-1", "replace") for line in lines], len(picked)),
    )


@case(8, "integration", "picklist", "What is reserved is on the list like all else")
def with_reservations(box: Box) -> None:
    box.migrated(*PLAIN)
    box.run("reserve", "A-1", "7", "a").prints("A-1: 7 reserved, 0 free")
    expect("pick list", picklist(box, 3), complete(PLAIN_LINES, 3))


@case(8, "core", "speed", "The list of 10,000 items is there within the limit")
def many_picked(box: Box) -> None:
    box.migrated(*(f"S-{n:05d},Item {n},2,0.25,Shelf {n:05d}" for n in range(10_000)))
    written = picklist(box, 10_000)
    expect("size, number", (len(written), written[-10:-5]), (10_000 * (15 + 46) + 11, b"10000"))


@case(
    8, "error", "picklist-file", "A list that cannot be written leaves what was there, and a new one replaces the old"
)
def file(box: Box) -> None:
    box.migrated(*PLAIN)
    place = box.stock.parent / "out"
    (place / "folder").mkdir(parents=True)
    for name in ("folder", "nowhere/gate.txt"):
        box.run("picklist", f"out/{name}").fails(6, f"cannot write: out/{name}")
    old = place / "gate.txt"
    old.write_bytes(b"old" * 1000)
    (place / "kept").hardlink_to(old)
    box.run("picklist", "out/gate.txt").prints("picklist: 3 items")
    expect("pick list", old.read_bytes(), complete(PLAIN_LINES, 3))
    expect("the old file, under another name", (place / "kept").read_bytes(), b"old" * 1000)
    expect("files", sorted(path.name for path in place.iterdir()), ["folder", "gate.txt", "kept"])


@case(8, "integration", "picklist", "picklist in Python returns the bytes, as a function and as a method")
def library_picklist(box: Box) -> None:
    box.migrated(*PLAIN)
    code = """
import stockroom, sys
stock = stockroom.open_stock(sys.argv[1])
stock.change("A-1", -7)
print(stock.picklist())
stockroom.load(sys.argv[1])
print(stockroom.picklist())
"""
    less = complete(PLAIN_LINES[:3] + PLAIN_LINES[4:], 2)
    box.python(code, str(box.stock)).prints(str(less), str(complete(PLAIN_LINES, 3)))


@case(8, "boundary", "warehouse", "No booking of the warehouse is made up, and no quantity has changed")
def nothing_made_up(box: Box) -> None:
    connection = sqlite3.connect(f"file:{WORKSPACE}/warehouse/stock.db?mode=ro", uri=True)
    try:
        moves = connection.execute("SELECT at, sku, delta, note FROM moves ORDER BY id").fetchall()
        units = connection.execute("SELECT COUNT(*), SUM(qty) FROM items").fetchone()
    finally:
        connection.close()
    wanted = [
        ("2024-02-26T07:12:44Z", "W-003", 40, "delivery 118"),
        ("2024-02-26T07:15:02Z", "W-017", 12, "delivery 118"),
        ("2024-02-27T15:40:31Z", "W-003", -6, "order 2041"),
        ("2024-02-29T09:00:10Z", "W-030", -1, ""),
        ("2024-03-01T12:00:00Z", "W-003", -2, "order 2055"),
    ]
    expect("bookings of the warehouse", moves, wanted)
    expect("items, units", units, (40, 1810))
    expect("end of its pick list", picklist(box, 40, WORKSPACE / "warehouse")[-10:], b"#00406357\x1a")
