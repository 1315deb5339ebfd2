"""Build knitting patterns into decks, and run both. MANUAL.md says what this has to do."""

import io
import os
import re
import sys

from knit import assembler, deck, state
from knit.codes import BUDGET, Refusal
from knit.machine import Machine

USAGE = "loom: usage: no such command, see section 1 of MANUAL.md"


def build(pattern, path):
    write_whole(path, deck.to_bytes(assembler.assemble(pattern)))


def write_whole(path, content, replace=True):
    """Write a file whole or not at all, in the place of another one or only where there is none."""
    new = None
    try:
        new = f"{path}.{os.getpid()}.new"
        with open(new, "xb") as opened:
            opened.write(content)
        if replace:
            os.replace(new, path)
        else:
            os.link(new, path)
            os.remove(new)
    except (OSError, ValueError) as error:
        if new and os.path.lexists(new):
            os.remove(new)
        raise Refusal(1, f"loom: system: {error}") from None


def load(path):
    """Return the program of a deck or a pattern."""
    return load_deck(path) if path.endswith(".deck") else assembler.assemble(path)


def load_deck(path):
    return deck.from_bytes(read(path, deck.LARGEST))


def read(path, most):
    try:
        with open(path, "rb") as opened:
            return opened.read(most)
    except (OSError, ValueError) as error:
        raise Refusal(1, f"loom: system: {error}") from None


def stop_in(words):
    """Return after how many rows the words let a run stop, and where its state goes; None where they are none."""
    rows, rest = taken(words, "--stop")
    if rows and len(rest) == 1:
        return rows, rest[0]
    check_no_more(words)
    return None, None


def go(make, words):
    """Let a machine run to its end, or to where the words say that it stops."""
    rows, target = stop_in(words)
    machine = make()
    if machine.run(rows):
        write_whole(target, state.to_bytes(machine))
        raise Refusal(6, f"loom: stopped at {machine.at}")


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
        go(lambda: Machine(load(words[1]), out.write, budget or BUDGET), rest)
    elif words[:1] == ["resume"] and len(words) >= 2:
        go(lambda: state.from_bytes(read(words[1], state.LARGEST), out.write), words[2:])
    elif words[:1] == ["list"] and len(words) == 2:
        out.write(deck.listing(load_deck(words[1])))
    elif words[:1] == ["upgrade"] and len(words) == 3:
        write_whole(words[2], deck.to_bytes(load_deck(words[1])), replace=False)
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
