"""Build knitting patterns into decks, and run both. MANUAL.md says what this has to do."""

import io
import os
import re
import sys

from knit import assembler, deck
from knit.codes import BUDGET, Refusal
from knit.machine import Machine

USAGE = "loom: usage: no such command, see section 1 of MANUAL.md"


def build(pattern, path):
    write_whole(path, deck.to_bytes(assembler.assemble(pattern)))


def write_whole(path, content):
    """Write a file whole or not at all."""
    new = None
    try:
        new = f"{path}.{os.getpid()}.new"
        with open(new, "xb") as opened:
            opened.write(content)
        os.replace(new, path)
    except (OSError, ValueError) as error:
        if new and os.path.lexists(new):
            os.remove(new)
        raise Refusal(1, f"loom: system: {error}") from None


def load(path):
    """Return the program of a deck or a pattern."""
    return load_deck(path) if path.endswith(".deck") else assembler.assemble(path)


def load_deck(path):
    try:
        with open(path, "rb") as opened:
            content = opened.read(deck.LARGEST)
    except (OSError, ValueError) as error:
        raise Refusal(1, f"loom: system: {error}") from None
    return deck.from_bytes(content)


def taken(words, option):
    """Return the value of an option, a positive number, that is next in the words, and the words behind it."""
    if words[:1] == [option] and len(words) > 1 and re.fullmatch("[0-9]{1,9}", words[1]) and int(words[1]):
        return int(words[1]), words[2:]
    return None, words


def command(words, out):
    """Do one command, which prints to `out`."""
    if words[:1] == ["build"] and len(words) == 3:
        build(words[1], words[2])
    elif words[:1] == ["run"] and len(words) >= 2:
        budget, rest = taken(words[2:], "--budget")
        check_no_more(rest)
        Machine(load(words[1]), out.write, budget or BUDGET).run()
    elif words[:1] == ["list"] and len(words) == 2:
        out.write(deck.listing(load_deck(words[1])))
    elif words[:1] == ["upgrade"] and len(words) == 2:
        # Sections 1 and 5 contradict each other, see QUESTIONS.md: nothing is done that cannot be undone.
        raise Refusal(1, "loom: system: upgrade has to wait until the manual says what becomes of the deck")
    else:
        raise Refusal(2, USAGE)


def check_no_more(words):
    if words:
        raise Refusal(2, USAGE)


def do(words, out, err):
    """Do one command and return its status."""
    try:
        command(words, out)
    except Refusal as refusal:
        text = "".join(c if c.isprintable() or "\udc80" <= c <= "\udcff" else "?" for c in refusal.text)
        err.write(text + "\n")
        return refusal.status
    return 0


def batch():
    import json

    for line in sys.stdin.buffer:
        try:
            words = json.loads(line)
        except (ValueError, RecursionError):
            words = None
        if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
            words = []
        out, err = io.StringIO(), io.StringIO()
        status = do(words, out, err)
        print(json.dumps({"status": status, "out": out.getvalue(), "err": err.getvalue()}), flush=True)


def main():
    sys.stderr.reconfigure(errors="surrogateescape")
    if sys.argv[1:] == ["batch"]:
        batch()
        return 0
    return do(sys.argv[1:], sys.stdout, sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
