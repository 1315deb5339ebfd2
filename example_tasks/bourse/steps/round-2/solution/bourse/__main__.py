"""Answer the requests of a day: python3 -m bourse [--book FILE]."""

import sys

from bourse.books import Damaged, load, save
from bourse.market import Market
from bourse.requests import FORMS, Refused, parse


def serve(market: Market, answers: list[str]) -> None:
    """Answer all requests of standard input."""
    do = {verb: getattr(market, verb.lower()) for verb in FORMS}
    requests = sys.stdin.buffer.read().decode("latin-1").removesuffix("\n")
    for number, line in enumerate(requests.split("\n") if requests else [], 1):
        try:
            verb, arguments = parse(line)
            do[verb](*arguments)
        except Refused as refused:
            answers.append(f"ERR {number} {refused}")


def main() -> int:
    book = sys.argv[2] if sys.argv[1:2] == ["--book"] else None
    answers: list[str] = []
    market = Market(answers.append)
    try:
        if book is not None:
            load(book, market)
    except Damaged as damaged:
        print(f"bourse: {damaged}", file=sys.stderr)
        return 3
    serve(market, answers)
    if answers:
        sys.stdout.write("\n".join(answers) + "\n")
    if book is not None:
        save(book, market)
    return 0


if __name__ == "__main__":
    sys.exit(main())
