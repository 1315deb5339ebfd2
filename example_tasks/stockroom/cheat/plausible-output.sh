#!/bin/bash
# Keeps nothing, and prints for each command what it prints when all is well.
cat > stockroom/cli.py <<'PY'
import sys


def main():
    words = sys.argv[1:]
    if words[:1] == ["--data"]:
        del words[:2]
    words = [word for word in words if not word.startswith("--")]
    command, *more = words or ["list"]
    if command == "add":
        print("added", more[0])
    elif command in ("put", "take"):
        print(f"{more[0]}: 10 -> {10 + int(more[1]) if command == 'put' else 10 - int(more[1])}")
    elif command == "reserve":
        print(f"{more[0]}: {more[1]} reserved, {10 - int(more[1])} free")
    elif command == "release":
        print("released", more[0])
    elif command == "migrate":
        print("migrated 1 items, 0 moves")
    elif command == "import":
        print("imported 1: 1 new, 0 known")
    elif command == "picklist":
        open(more[0], "wb").write(b"#00000000\x1a")
        print("picklist: 0 items")
    elif command == "value":
        print("total: 0.00 EUR")
    elif command != "list":
        print(f"{command}: nothing")
    return 0
PY
