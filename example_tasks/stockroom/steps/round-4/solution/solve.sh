#!/bin/bash
# Mills in place of cents, version 1 databases upgraded when opened, no SKU twice in a supplier file.
set -euo pipefail
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
    "money.py",
    ("DIGITS = 2", "DIGITS = 3"),
    (
        'def render(units):\n    return f"{units // UNIT}.{units % UNIT:0{DIGITS}d}"\n',
        'def render(units):\n'
        '    """Two decimals, three where the third says something."""\n'
        '    text = f"{units // UNIT}.{units % UNIT:0{DIGITS}d}"\n'
        '    return text.removesuffix("0")\n',
    ),
)
edit(
    "sqlitestore.py",
    ("VERSION = 1", "VERSION = 2"),
    ("price_cents", "price_mills"),
    ("from stockroom.records", "from stockroom.errors import DataError\nfrom stockroom.records"),
    (
        "class SqliteStore:",
        '''def upgrade(connection):
    """Brings version 1 to version 2, in one transaction; what is newer is refused."""
    if version(connection) == VERSION:
        return
    connection.execute("BEGIN IMMEDIATE")
    found = version(connection)  # again: another process may have been here first
    if found == 1:
        connection.execute("ALTER TABLE items RENAME COLUMN price_cents TO price_mills")
        connection.execute("UPDATE items SET price_mills = price_mills * 10")
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    if found not in (1, VERSION):
        connection.close()
        raise DataError(f"stock.db has version {found}, expected {VERSION}")


def version(connection):
    return connection.execute("PRAGMA user_version").fetchone()[0]


class SqliteStore:''',
    ),
    ("timeout=5, isolation_level=None)\n", "timeout=5, isolation_level=None)\n        upgrade(self.connection)\n"),
)
edit(
    "csvstore.py",
    (
        "                records.append(convert(*fields))\n",
        "                try:\n"
        "                    records.append(convert(*fields))\n"
        "                except StockError as error:\n"
        '                    raise DataError(f"{name} line {begin}: {error}") from None\n',
    ),
    ("import DataError", "import DataError, StockError"),
)
edit(
    "importer.py",
    (
        "    rows = csvstore.read(path, Item, to_row, check_header=True)\n",
        '''    seen = set()

    def to_new_row(*fields):
        row = to_row(*fields)
        if row.sku in seen:
            raise StockError(f"duplicate sku: {row.sku}")
        seen.add(row.sku)
        return row

    rows = csvstore.read(path, Item, to_new_row, check_header=True)
''',
    ),
)
EDIT
