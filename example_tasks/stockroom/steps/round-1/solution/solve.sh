#!/bin/bash
# Stops the data losses: real CSV, whole files or none, all of the history.
set -euo pipefail
cp /solution/stockroom/*.py stockroom/

python3 - <<'EDIT'
from pathlib import Path

def edit(name, *pairs):
    path = Path("stockroom") / name
    text = path.read_text(encoding="utf-8")
    for old, new in pairs:
        assert old in text, (name, old)
        text = text.replace(old, new)
    path.write_text(text, encoding="utf-8")

edit(
    "items.py",
    ("    if find(sku) is not None:\n", "    check_text(sku, name, location or \"\")\n    if find(sku) is not None:\n"),
    ("    item = known(sku)\n    if item", "    check_text(note)\n    item = known(sku)\n    if item"),
    (
        "def find(sku):",
        "def check_text(*texts):\n"
        "    try:\n"
        '        "".join(texts).encode("utf-8")\n'
        "    except UnicodeEncodeError:\n"
        '        raise StockError("not valid UTF-8") from None\n\n\n'
        "def find(sku):",
    ),
)
edit(
    "cli.py",
    ('["sku,name,qty,price,location"] + reports.list_lines(",")', "reports.csv_lines()"),
    ('reports.list_lines("\\t")', "reports.list_lines()"),
    ("        return 1\n", "        return e.exit_status\n"),
)
EDIT
