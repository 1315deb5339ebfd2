"""Start the daemon: python3 -m courier --data DIR [--port PORT]."""

import argparse
import sys

from courier.journal import Damage, Journal
from courier.server import Server
from courier.store import Store


def main():
    parser = argparse.ArgumentParser(prog="courier")
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    try:
        store = Store(Journal(options.data))
    except Damage as damage:
        print(damage, file=sys.stderr)
        return 3
    Server(store, options.port).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
