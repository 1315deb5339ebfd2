"""Round 6: the auditors' findings and the log."""

from __future__ import annotations

import json
import os
import re

from suite import STOCK_HEADER, Box, Mismatch, case, expect

ROW = "A-1,Bolt,7,0.25,main"
LISTED = "A-1\tBolt\t7\t0.25\tmain"


@case(6, "core", "inbox", "A name that leads out of the inbox is refused, one that stays inside works")
def import_outside(box: Box) -> None:
    box.run("add", "A-1", "Bolt", "7", "0.25").prints("added A-1")
    box.write("inbox/jan.csv", STOCK_HEADER, "A-2,Nut,1,0.10,main")
    box.write("inbox/2024/feb.csv", STOCK_HEADER, "A-3,Pin,1,0.10,main")
    secret = box.write("secret.csv", STOCK_HEADER, ROW)
    box.write("inbox-old/jan.csv", STOCK_HEADER, ROW)
    for name in (str(secret), "../inbox-old/jan.csv", "2024/../../there.csv"):
        box.run("import", name).fails(4, f"import outside inbox: {name}")
    box.run("import", "../secret.csv", "--dry-run").fails(4, "import outside inbox: ../secret.csv")
    box.run("import", "2024/feb.csv").prints("imported 1: 1 new, 0 known")
    box.run("import", "2024/../jan.csv").prints("imported 1: 1 new, 0 known")
    box.run("list").prints(LISTED, "A-2\tNut\t1\t0.10\tmain", "A-3\tPin\t1\t0.10\tmain")


@case(6, "boundary", "inbox", "Links are followed, pipes and directories do not exist, huge files are refused")
def import_odd_files(box: Box) -> None:
    box.run("add", "A-1", "Bolt", "7", "0.25").prints("added A-1")
    secret = box.write("secret.csv", STOCK_HEADER, ROW)
    real = box.stock.parent / "delivered"
    (real / "folder").mkdir(parents=True)
    (box.stock / "inbox").symlink_to(real)
    (real / "link.csv").symlink_to(secret)
    (real / "good.csv").write_text(f"{STOCK_HEADER}\nA-2,Nut,1,0.10,main\n")
    (real / "alias.csv").symlink_to("good.csv")
    (real / "huge.csv").write_text(f"{STOCK_HEADER}\n".ljust(5_000_001, "\n"))
    os.mkfifo(real / "pipe.csv")
    box.run("import", "link.csv").fails(4, "import outside inbox: link.csv")
    box.run("import", "pipe.csv", limit=30).fails(1, "no such import: pipe.csv")
    box.run("import", "folder").fails(1, "no such import: folder")
    box.run("import", "huge.csv").fails(4, "import too large: huge.csv")
    box.run("import", "alias.csv").prints("imported 1: 1 new, 0 known")


@case(6, "core", "configuration", "stockroom.conf is JSON with comments and last commas, and is never executed")
def configuration(box: Box) -> None:
    conf = ["// our hall", "{", '  "currency": "CHF",', "   // { nothing", '  "location": "a//b, }\\u00e9",']
    box.write("stockroom.conf", *conf, '  "low": 9, "old": [true, null, 1,],', "}")
    box.run("add", "A-1", "Bolt", "8", "0.25").prints("added A-1")
    box.run("list").prints("A-1\tBolt\t8\t0.25\ta//b, }é")
    box.run("value").prints("total: 2.00 CHF")
    box.run("low").prints("A-1\t8")
    pwned = box.stock / "pwned"
    attack = f'{{"currency": str(open({str(pwned)!r}, "w"))}}'
    for text in (attack, "{'low': 1}", '{"low": "1"}', "[]"):
        box.write("stockroom.conf", text)
        box.run("list").fails(3, "stockroom.conf: cannot read")
    expect("executed", pwned.exists(), False)


@case(6, "error", "formulas", "Texts that a spreadsheet would run get a quote in front, in CSV only")
def formulas(box: Box) -> None:
    rows = ["-1,+cmd,1,1,@Yard", 'B,"=1,2",1,1,a=b', 'C,"\tx",1,1,', '"D","\rx",1,1,main']
    box.migrated(*rows)
    box.run("list", "--format", "csv").prints(
        STOCK_HEADER, "'-1,'+cmd,1,1.00,'@Yard", 'B,"\'=1,2",1,1.00,a=b', "C,'\tx,1,1.00,", 'D,"\'\rx",1,1.00,main'
    )
    box.run("list").prints(
        "-1\t+cmd\t1\t1.00\t@Yard", "B\t=1,2\t1\t1.00\ta=b", "C\t\\tx\t1\t1.00\t", "D\t\\rx\t1\t1.00\tmain"
    )
    listed = json.loads(box.run("list", "--format", "json").out or "null")
    expect("names in JSON", [item["name"] for item in listed], ["+cmd", "=1,2", "\tx", "\rx"])


@case(6, "core", "log", "Each command leaves exactly one line of JSON in the log")
def log_lines(box: Box) -> None:
    path = box.stock.parent / "log.jsonl"
    log = {"STOCKROOM_LOG": str(path)}
    odd = 'A\n{"exit": 0}\u2028'
    box.run("add", odd, "Bolt", "7", "0.25", env=log).prints(f"added {odd}")
    box.run("take", odd, "9", env=log).fails(1, f"not enough stock: {odd} has 7")
    box.run("list", env=log)
    box.run("import", "../x", env=log).fails(4, "import outside inbox: ../x")
    box.run("show", b"\xff", env=log)
    box.run("list", "--csv", env=log).fails(2, "--csv is retired, use --format csv")
    box.run("list")
    text = path.read_text() if path.is_file() else "no log"
    try:
        entries = [json.loads(line) for line in text.removesuffix("\n").split("\n")]
    except ValueError:
        raise Mismatch("log", "lines of JSON", text) from None
    expect("keys", {tuple(sorted(entry)) for entry in entries}, {("at", "command", "error", "exit", "ms", "sku")})
    seen = [(entry["command"], entry["sku"], entry["exit"], entry["error"]) for entry in entries]
    wanted = [
        ("add", odd, 0, None),
        ("take", odd, 1, f"not enough stock: {odd} has 7"),
        ("list", None, 0, None),
        ("import", None, 4, "import outside inbox: ../x"),
    ]
    expect("entries", seen[:4], wanted)
    expect("entry with a SKU that is not UTF-8", [(entry[0], entry[2]) for entry in seen[4:]], [("show", 1)])
    times = [re.sub(r"\d", "9", entry["at"]) for entry in entries]
    expect("times", set(times), {"9999-99-99T99:99:99Z"})
    expect("ms", [type(entry["ms"]) is int and 0 <= entry["ms"] < 60_000 for entry in entries], [True] * 5)


@case(6, "error", "log", "A log that cannot be written stops no command")
def log_unwritable(box: Box) -> None:
    log = {"STOCKROOM_LOG": str(box.stock.parent)}
    added = box.run("add", "A-1", "Bolt", "7", "0.25", env=log)
    warning = "warning: cannot write log\n"
    expect("add with a bad log", (added.status, added.out, added.err), (0, "added A-1\n", warning))
    failed = box.run("take", "A-1", "8", env=log)
    error = f"error: not enough stock: A-1 has 7\n{warning}"
    expect("take with a bad log", (failed.status, failed.out, failed.err), (1, "", error))
    box.run("list").prints(LISTED)
