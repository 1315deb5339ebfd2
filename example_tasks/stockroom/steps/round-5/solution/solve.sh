#!/bin/bash
# The CSV storage and list --csv go; what migrate and supplier files need to read CSV stays.
set -euo pipefail
cp /solution/stockroom/*.py stockroom/
cp /solution/README.md README.md
rm stockroom/csvstore.py

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
    "errors.py",
    ('    exit_status = 3\n', '''    exit_status = 3


class RetiredError(StockError):
    """The directory is kept in a way that is no longer supported."""

    exit_status = 5
'''),
)
edit(
    "stock.py",
    ("from stockroom.csvstore import CsvStore\n", ""),
    ("import StockError\n", "import RetiredError, StockError\n"),
    ("from stockroom import config, money\n", "from stockroom import config, money, sqlitestore\n"),
    ('"""The stock of one directory, whichever way it is stored."""', '"""The stock of one directory."""'),
    (
        "from stock.db if there is one, else from the CSV files.",
        "from stock.db, which a new directory gets.",
    ),
    (
        '''    settings = config.read(directory)
    database = os.path.join(directory, "stock.db")
    store = SqliteStore(database) if os.path.exists(database) else CsvStore(directory)
    return Stock(directory, settings, store)
''',
        '''    database = os.path.join(directory, "stock.db")
    if not os.path.exists(database) and os.path.exists(os.path.join(directory, "stock.csv")):
        raise RetiredError("CSV storage is retired, run migrate first")
    settings = config.read(directory)
    if not os.path.exists(database):
        sqlitestore.create(database)
    return Stock(directory, settings, SqliteStore(database))
''',
    ),
)
edit("importer.py", ("csvstore", "csvfile"))
edit(
    "sqlitestore.py",
    (
        '''    """An empty database."""
    connection = sqlite3.connect(path)
    connection.executescript(f"BEGIN; {SCHEMA} PRAGMA user_version = {VERSION}; COMMIT;")
    connection.close()
''',
        '''    """An empty database, unless another process was faster."""
    connection = sqlite3.connect(path, timeout=5, isolation_level=None)
    connection.execute("BEGIN IMMEDIATE")
    if version(connection) == 0:
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute(f"PRAGMA user_version = {VERSION}")
    connection.execute("COMMIT")
    connection.close()
''',
    ),
    ('SCHEMA = """\nCREATE', 'SCHEMA = (\n    "CREATE'),
    (' location TEXT);\nCREATE', ' location TEXT)",\n    "CREATE'),
    (' note TEXT);\n"""\n', ' note TEXT)",\n)\n'),
)
edit(
    "cli.py",
    (
        "reports.csv_lines(stock) if options.csv else reports.list_lines(stock)",
        "reports.LISTS[options.format](stock)",
    ),
    (
        "    try:\n        lines = lines_of",
        '''    if options.csv:
        sys.stderr.write("error: --csv is retired, use --format csv\\n")
        return 2
    if options.format not in reports.LISTS:
        sys.stderr.write(f"error: unknown format: {options.format}\\n")
        return 2
    try:
        lines = lines_of''',
    ),
    (
        '    parser.add_option("--csv", action="store_true")\n',
        '    parser.add_option("--format", default="text")\n'
        '    parser.add_option("--csv", action="store_true", help=SUPPRESS_HELP)\n',
    ),
    ("from optparse import OptionParser", "from optparse import SUPPRESS_HELP, OptionParser"),
)
EDIT
