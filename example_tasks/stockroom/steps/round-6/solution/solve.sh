#!/bin/bash
# Closes the auditors' holes (import, stockroom.conf, formulas) and adds the log.
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
    "errors.py",
    ("class RetiredError", '''class ImportRefusedError(StockError):
    """A supplier file that must not be read."""

    exit_status = 4


class RetiredError'''),
)
edit(
    "importer.py",
    (
        '''    path = os.path.join(stock.directory, "inbox", name)
    if not os.path.exists(path):
        raise StockError(f"no such import: {name}")
''',
        "    path = allowed(os.path.join(stock.directory, \"inbox\"), name)\n",
    ),
    ("to_new_row, check_header=True)", "to_new_row, name=name, check_header=True)"),
    ("import StockError\n", "import ImportRefusedError, StockError\n"),
    (
        "def to_row(",
        '''def allowed(inbox, name):
    """The real path of a file that may be imported."""
    inbox = os.path.realpath(inbox)
    path = os.path.realpath(os.path.join(inbox, name))
    if os.path.commonpath([inbox, path]) != inbox:
        raise ImportRefusedError(f"import outside inbox: {name}")
    if not os.path.isfile(path):
        raise StockError(f"no such import: {name}")
    if os.path.getsize(path) > LARGEST:
        raise ImportRefusedError(f"import too large: {name}")
    return path


def to_row(''',
    ),
    ("\n\ndef run(", "\nLARGEST = 5_000_000\n\n\ndef run("),
)
edit(
    "csvfile.py",
    ("convert, *, check_header=False):", "convert, *, name=None, check_header=False):"),
    ("    name = os.path.basename(path)\n", "    name = name or os.path.basename(path)\n"),
)
edit(
    "reports.py",
    (
        "    return [csvfile.line(row) for row in [Item._fields, *map(item_fields, stock.store.all())]]\n",
        '''    rows = [[harmless(field) for field in item_fields(item)] for item in stock.store.all()]
    return [csvfile.line(row) for row in [Item._fields, *rows]]


def harmless(field):
    """A text that no spreadsheet takes for a formula."""
    if isinstance(field, str) and field.startswith(("=", "+", "-", "@", "\\t", "\\r")):
        return "'" + field
    return field
''',
    ),
)
edit(
    "cli.py",
    ("from stockroom import importer, migrate,", "from stockroom import importer, log, migrate,"),
    (
        '''    try:
        lines = lines_of(args[0], args[1:], options)
    except StockError as error:
        sys.stderr.write(f"error: {error}\\n")
        return error.exit_status
    sys.stdout.write("".join(f"{line}\\n" for line in lines))
    return 0
''',
        '''    entry = log.Entry(args)
    try:
        lines = lines_of(args[0], args[1:], options)
        sys.stdout.write("".join(f"{line}\\n" for line in lines))
        status = 0
    except StockError as error:
        sys.stderr.write(f"error: {error}\\n")
        entry.error = str(error)
        status = error.exit_status
    entry.append(status)
    return status
''',
    ),
)
edit(
    "../README.md",
    ("3 a file cannot be read, 5", "3 a file cannot be read, 4 a supplier file is\nrefused, 5"),
    (
        "    import stockroom\n    with",
        "If `$STOCKROOM_LOG` names a file, each command appends one line of JSON to it: `at`, `command`, `sku`, `exit`,\n"
        "`error` and `ms`.\n\n    import stockroom\n    with",
    ),
)
EDIT
