"""Build knitting patterns into decks, and run both. MANUAL.md says what this has to do."""

import io
import json
import sys

from knit import assembler, deck
from knit.codes import PatternError
from knit.machine import Machine

USAGE = "loom: usage: build PATTERN DECK | run FILE | batch"


def build(pattern, path):
    """Build a pattern into a deck."""
    with open(path, "wb") as opened:
        opened.write(deck.to_bytes(assembler.assemble(pattern)))


def load(path):
    """Return the program of a deck or a pattern."""
    if path.endswith(".deck"):
        with open(path, "rb") as opened:
            return deck.from_bytes(opened.read())
    return assembler.assemble(path)


def run(path, out):
    """Run a deck or a pattern."""
    Machine(load(path), out.write).run()


def do(words, out, err):
    """Do one command and return its status."""
    try:
        if words[0] == "build":
            build(words[1], words[2])
        elif words[0] == "run":
            run(words[1], out)
        else:
            err.write(USAGE + "\n")
            return 2
    except PatternError as error:
        err.write(f"{error}\n")
        return 3
    except OSError as error:
        err.write(f"loom: system: {error}\n")
        return 1
    return 0


def batch():
    """Do the commands of standard input."""
    for line in sys.stdin:
        out, err = io.StringIO(), io.StringIO()
        status = do(json.loads(line), out, err)
        print(json.dumps({"status": status, "out": out.getvalue(), "err": err.getvalue()}))


def main():
    if sys.argv[1:2] == ["batch"]:
        batch()
        return 0
    return do(sys.argv[1:], sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
