"""Round 9: corrections. Good rows are booked and bad ones put aside; low looks at what is free."""

from __future__ import annotations

import json
import random

from suite import STOCK_HEADER, Box, case, expect

LIMIT = 30  # seconds, see round 3
KNOWN = "A-1,Bolt,7,0.25,main"
LISTED = "A-1\tBolt\t7\t0.25\tmain"


def supplied(box: Box, data: bytes, name: str = "jan.csv") -> None:
    """Puts a supplier file into the inbox."""
    path = box.stock / "inbox" / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(data)


def rejects(box: Box, printed: str, *faults: str, name: str = "jan.csv", flags: tuple[str, ...] = ()) -> None:
    """Imports, and checks what is printed; a fault is `2: cannot read record`."""
    done = box.run("import", name, *flags, limit=LIMIT)
    lines = [f"rejected: {name} line {fault}\n" for fault in faults]
    error = f"error: {name}: {len(faults)} rows rejected\n"
    expect(f"import {name}", (done.status, done.out, done.err), (7, f"{printed}\n", "".join(lines) + error))


def put_aside(box: Box, name: str = "jan.csv") -> bytes:
    """The rejected rows."""
    path = box.stock / "inbox" / f"{name}.rejected"
    return path.read_bytes() if path.is_file() else b"no such file"


@case(9, "core", "rejected", "Good rows are booked, bad ones are put aside and told, with status 7")
def good_rows(box: Box) -> None:
    box.migrated(KNOWN)
    bad = ["A-3,Lamp,-1,1,main", "A-4,Pin,1,0.0005,main", 'A-5,"M6" nut,1,1,main', "A-6,short"]
    box.write(
        "inbox/jan.csv", STOCK_HEADER, "A-1,Bolt,5,0.30,Yard", bad[0], "", bad[1], "A-2,Nut,1,0.10,main", *bad[2:]
    )
    lines = [f"{number}: cannot read record" for number in (3, 5, 7, 8)]
    rejects(box, "imported 2: 1 new, 1 known", *lines)
    box.run("list").prints("A-1\tBolt\t12\t0.30\tmain", "A-2\tNut\t1\t0.10\tmain")
    expect("history", box.run("history", "A-1").out.split("\t", 1)[-1], "+5\timport jan.csv\n")
    expect("jan.csv.rejected", put_aside(box), "".join(f"{line}\n" for line in [STOCK_HEADER, *bad]).encode())


@case(9, "core", "rejected", "All rows of a SKU that has more than one are bad, wherever they stand")
def duplicates(box: Box) -> None:
    box.migrated(KNOWN)
    rows = [
        "A-1,Bolt,5,0.30,main",
        "A-2,Nut,1,1,main",
        "A-3,Pin,1,1,main",
        "A-2,Nut,2,1,main",
        "A-1,Bolt,x,1,main",
        "A-2,Nut,1,1,main",
    ]
    box.write("inbox/jan.csv", STOCK_HEADER, *rows)
    faults = ["3: duplicate sku: A-2", "5: duplicate sku: A-2", "6: cannot read record", "7: duplicate sku: A-2"]
    rejects(box, "imported 2: 1 new, 1 known", *faults)
    box.run("list").prints("A-1\tBolt\t12\t0.30\tmain", "A-3\tPin\t1\t1.00\tmain")
    aside = [STOCK_HEADER, rows[1], rows[3], rows[4], rows[5]]
    expect("jan.csv.rejected", put_aside(box), "".join(f"{line}\n" for line in aside).encode())


@case(
    9,
    "boundary",
    "rejected",
    "Bad rows are put aside byte for byte: line ends, quotes, lines in a field, no last line feed",
)
def byte_for_byte(box: Box) -> None:
    box.migrated(KNOWN)
    header = STOCK_HEADER.encode() + b"\r\n"
    several = b'"B\r\n1","two\nlines",-1,1,main\r\n'
    broken = b'B-2,"a\nb" c,1,1,main\n'
    quoted = b'"B-3","plain",x,"1",main\r\n'
    last = b"B-4, blanks ,1,1"
    supplied(box, header + several + b"A-1,Bolt,1,0.25,main\r\n" + broken + quoted + b"\r\n" + last)
    rejects(box, "imported 1: 0 new, 1 known", *(f"{n}: cannot read record" for n in (2, 6, 8, 10)))
    expect("jan.csv.rejected", put_aside(box), header + several + broken + quoted + last + b"\n")
    box.run("list").prints("A-1\tBolt\t8\t0.25\tmain")


@case(9, "boundary", "rejected", "A quote that is never closed takes the rest of the file")
def never_closed(box: Box) -> None:
    box.migrated(KNOWN)
    rest = b'A-2,"Nut,1,1,main\nA-3,Pin,1,1,main\n\nA-4,x,1,1,main'
    supplied(box, f"{STOCK_HEADER}\n{KNOWN}\n".encode() + rest)
    rejects(box, "imported 1: 0 new, 1 known", "3: cannot read record")
    expect("jan.csv.rejected", put_aside(box), f"{STOCK_HEADER}\n".encode() + rest + b"\n")
    box.run("list").prints("A-1\tBolt\t14\t0.25\tmain")
    rest = b'A-2,"Nut' + b",1,1,main\nA-3,Pin,1,1,main" * 10_000
    supplied(box, f"{STOCK_HEADER}\n{KNOWN}\n".encode() + rest)
    rejects(box, "imported 1: 0 new, 1 known", "3: cannot read record")
    expect("size of jan.csv.rejected", len(put_aside(box)), len(STOCK_HEADER) + 1 + len(rest) + 1)


@case(9, "boundary", "rejected", "A row that is not valid UTF-8 is bad, and put aside as it is")
def not_utf8(box: Box) -> None:
    box.migrated(KNOWN)
    bad = b"A-2,caf\xe9,1,1,main\n"
    supplied(box, f"{STOCK_HEADER}\n".encode() + bad + "A-3,Öse,1,1,main\n".encode())
    rejects(box, "imported 1: 1 new, 0 known", "2: cannot read record")
    expect("jan.csv.rejected", put_aside(box), f"{STOCK_HEADER}\n".encode() + bad)
    box.run("list").prints(LISTED, "A-3\tÖse\t1\t1.00\tmain")


@case(9, "integration", "rejected", "What was put aside can be corrected and imported, and is replaced by the next")
def corrected(box: Box) -> None:
    box.migrated(KNOWN)
    box.write("inbox/jan.csv", STOCK_HEADER, "A-2,Nut,x,0.10,main", "A-3,Pin,2,1,main", "A-4,Lamp,-2,1,main")
    rejects(box, "imported 1: 1 new, 0 known", "2: cannot read record", "4: cannot read record")
    path = box.stock / "inbox" / "jan.csv.rejected"
    text = path.read_text() if path.is_file() else ""
    path.write_text(text.replace(",x,", ",5,"))
    rejects(box, "imported 1: 1 new, 0 known", "3: cannot read record", name="jan.csv.rejected")
    expect("rejected again", put_aside(box, "jan.csv.rejected"), f"{STOCK_HEADER}\nA-4,Lamp,-2,1,main\n".encode())
    box.run("list").prints(LISTED, "A-2\tNut\t5\t0.10\tmain", "A-3\tPin\t2\t1.00\tmain")
    box.write("inbox/jan.csv", STOCK_HEADER, "A-1,Bolt,1.5,1,main")
    rejects(box, "imported 0: 0 new, 0 known", "2: cannot read record")
    expect("replaced", put_aside(box), f"{STOCK_HEADER}\nA-1,Bolt,1.5,1,main\n".encode())


@case(9, "boundary", "rejected", "Where nothing is bad nothing is put aside, and what was put aside stays")
def nothing_bad(box: Box) -> None:
    box.migrated(KNOWN)
    box.write("inbox/jan.csv", STOCK_HEADER, KNOWN, "A-2,x,x,x,x")
    rejects(box, "imported 1: 0 new, 1 known", "3: cannot read record")
    old = put_aside(box)
    box.write("inbox/jan.csv", STOCK_HEADER, KNOWN)
    box.write("inbox/feb.csv", STOCK_HEADER)
    box.run("import", "jan.csv").prints("imported 1: 0 new, 1 known")
    box.run("import", "feb.csv").prints("imported 0: 0 new, 0 known")
    expect("jan.csv.rejected", put_aside(box), old)
    names = sorted(path.name for path in (box.stock / "inbox").iterdir())
    expect("inbox", names, ["feb.csv", "jan.csv", "jan.csv.rejected"])


@case(9, "core", "strict", "With --strict it is the whole file or nothing, and the first fault is told")
def strict(box: Box) -> None:
    box.migrated(KNOWN)
    two_lines = 'A-2,"two\nlines",1,1.00,main'
    box.write("inbox/jan.csv", STOCK_HEADER, "A-1,Bolt,5,0.30,main", two_lines, "A-1,Bolt,2,0.30,main", "A-9,bad")
    box.write("inbox/feb.csv", STOCK_HEADER, "A-3,Bolt,5,0.30,main", "A-4,Bolt,x,1,main", "A-3,Bolt,5,0.30,main")
    for flags in (["--strict"], ["--dry-run", "--strict"]):
        box.run("import", "jan.csv", *flags).fails(3, "jan.csv line 5: duplicate sku: A-1")
        box.run("import", "feb.csv", *flags).fails(3, "feb.csv line 3: cannot read record")
    box.run("list").prints(LISTED)
    expect("inbox", sorted(path.name for path in (box.stock / "inbox").iterdir()), ["feb.csv", "jan.csv"])
    box.write("inbox/mar.csv", STOCK_HEADER, "A-3,Bolt,5,0.30,main")
    box.run("import", "--strict", "mar.csv").prints("imported 1: 1 new, 0 known")


@case(9, "core", "rejected-dry-run", "--dry-run tells the same, and writes nothing")
def dry(box: Box) -> None:
    box.migrated(KNOWN)
    box.write("inbox/jan.csv", STOCK_HEADER, KNOWN, "A-2,Nut,x,1,main", "A-3,Pin,1,1,main", "A-3,Pin,1,1,main")
    faults = ["3: cannot read record", "4: duplicate sku: A-3", "5: duplicate sku: A-3"]
    rejects(box, "would import 1: 0 new, 1 known", *faults, flags=("--dry-run",))
    expect("inbox", [path.name for path in (box.stock / "inbox").iterdir()], ["jan.csv"])
    box.run("list").prints(LISTED)
    rejects(box, "imported 1: 0 new, 1 known", *faults)


@case(9, "error", "rejected-unwritable", "Nothing is booked when the bad rows cannot be put aside")
def unwritable(box: Box) -> None:
    box.migrated(KNOWN)
    box.write("inbox/jan.csv", STOCK_HEADER, KNOWN, "A-2,Nut,x,1,main")
    (box.stock / "inbox" / "jan.csv.rejected").mkdir()
    box.run("import", "jan.csv").fails(6, "cannot write: jan.csv.rejected")
    box.run("list").prints(LISTED)
    box.run("history", "A-1").prints()


@case(9, "integration", "rejected", "A rejected file has its line in the log, and lies in the folder of its file")
def rejected_in_log(box: Box) -> None:
    box.migrated(KNOWN)
    box.write("inbox/jan.csv", STOCK_HEADER, KNOWN, "A-2,Nut,x,1,main")
    folder = box.stock / "inbox" / "2024"
    folder.mkdir()
    (folder / "jan.csv").write_bytes((box.stock / "inbox" / "jan.csv").read_bytes())
    path = box.stock.parent / "log.jsonl"
    done = box.run("import", "2024/jan.csv", env={"STOCKROOM_LOG": str(path)})
    error = "2024/jan.csv: 1 rows rejected"
    lines = f"rejected: 2024/jan.csv line 3: cannot read record\nerror: {error}\n"
    expect("import", (done.status, done.out, done.err), (7, "imported 1: 0 new, 1 known\n", lines))
    entry = json.loads((path.read_text() if path.is_file() else "") or "{}")
    keys = ("command", "sku", "exit", "error")
    expect("log", [entry.get(key) for key in keys], ["import", None, 7, error])
    expect("rejected", put_aside(box, "2024/jan.csv"), f"{STOCK_HEADER}\nA-2,Nut,x,1,main\n".encode())


@case(9, "integration", "speed", "10,000 rows of which every other is bad stay within the limit")
def many_bad(box: Box) -> None:
    box.migrated()
    rows = [f"S-{n:05d},Item {n},{2 if n % 2 else 'x'},0.25,main" for n in range(9_000)]
    twice = [f"T-{n // 2:05d},Item {n},2,0.25,main" for n in range(1_000)]
    box.write("inbox/night.csv", STOCK_HEADER, *rows, *twice)
    faults = [f"{n + 2}: cannot read record" for n in range(0, 9_000, 2)]
    faults += [f"{n + 9_002}: duplicate sku: T-{n // 2:05d}" for n in range(1_000)]
    rejects(box, "imported 4500: 4500 new, 0 known", *faults, name="night.csv")


@case(9, "integration", "rejected", "Of files at random, what is booked and what is put aside make up the whole")
def at_random(box: Box) -> None:
    rng = random.Random(9)
    box.migrated()
    good = bad = 0
    lines = []
    booked: dict[str, int] = {}
    for number in range(200):
        sku = f"R-{number:03d}"
        kind = rng.choice(["good", "good", "good", "lines", "qty", "price", "fields", "quotes"])
        qty = rng.randrange(50)
        row = {
            "good": f"{sku},n,{qty},1,main",
            "lines": f'{sku},"a\n\nb ""c""",{qty},1.5,main',
            "qty": f"{sku},n,{qty}.0,1,main",
            "price": f"{sku},n,{qty},1.,main",
            "fields": f"{sku},n,{qty},1,main,",
            "quotes": f'"{sku}" ,n,{qty},1,main',
        }[kind]
        lines.append((kind in ("good", "lines"), row))
        if lines[-1][0]:
            booked[sku] = qty
    good = len(booked)
    bad = len(lines) - good
    box.write("inbox/jan.csv", STOCK_HEADER, *(row for _, row in lines))
    done = box.run("import", "jan.csv")
    told = (done.status, done.out, done.err.splitlines()[-1:], len(done.err.splitlines()))
    expect(
        "import",
        told,
        (7, f"imported {good}: {good} new, 0 known\n", [f"error: jan.csv: {bad} rows rejected"], bad + 1),
    )
    aside = "".join(f"{row}\n" for ok, row in [(False, STOCK_HEADER), *lines] if not ok)
    expect("jan.csv.rejected", put_aside(box), aside.encode())
    expect("items", dict(box.query("SELECT sku, qty FROM items")), booked)


@case(9, "core", "low-free", "low looks at what is free, everything else at what is on the shelf")
def low_free(box: Box) -> None:
    box.migrated("A-1,Bolt,10,0.25,main", "A-2,Nut,4,0.10,Yard", "A-3,Pin,10,1,Yard", "A-4,Lamp,5,1,Yard")
    for sku, n, ref in (("A-1", "4", "a"), ("A-1", "5", "b"), ("A-2", "4", "a"), ("A-3", "5", "a")):
        box.run("reserve", sku, n, ref)
    box.run("low").prints("A-1\t1", "A-2\t0")
    box.run("release", "b").prints("released b")
    box.run("ship", "a").prints("A-1: 10 -> 6", "A-2: 4 -> 0", "A-3: 10 -> 5")
    box.run("low").prints("A-2\t0")
