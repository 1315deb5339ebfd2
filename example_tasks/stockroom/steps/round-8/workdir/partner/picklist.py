#!/usr/bin/env python3
# ruff: noqa: SIM115, UP031
# PICKLIST 2.3   Huber Spedition   2009-11-04
# picklist.py STOCK.CSV OUTPUT
# DO NOT CHANGE ANYTHING HERE, the terminals at the gate are very particular.
import csv
import sys


def field(text, width):
    text = "".join(" " if ord(c) < 32 else c for c in text)
    return text[:width] + " " * (width - len(text))


rows = list(csv.reader(open(sys.argv[1], encoding="utf-8", newline="")))[1:]
rows.sort(key=lambda r: (r[4].upper(), r[0]))
lines = []
place = None
count = 0
for sku, name, qty, price, location in rows:
    if qty == "0":
        continue
    if location != place:
        lines.append("*" + field(location, 12))
        place = location
    euro = ("%.2f" % float(price)).replace(".", ",")
    lines.append(field(sku, 8) + field(name, 20) + "%6s" % qty + euro.rjust(10))
    count = count + 1
data = b""
for line in lines:
    data = data + line.encode("latin-1", "replace") + b"\r\n"
check = 0
for byte in data:
    check = (check * 31 + byte) % 9973
data = data + ("#%04d%04d" % (count, check)).encode("ascii") + b"\x1a"
open(sys.argv[2], "wb").write(data)
