"""Start the daemon: python3 -m courier --data DIR [--port PORT] [--max-attempts N]."""

import getopt
import sys

from courier.journal import Damage, Journal
from courier.server import Server
from courier.store import Store


def main():
    options = dict(getopt.getopt(sys.argv[1:], "", ["data=", "port=", "max-attempts="])[0])
    try:
        store = Store(Journal(options["--data"]), float(options.get("--max-attempts", "inf")))
    except Damage as damage:
        print(damage, file=sys.stderr)
        return 3
    Server(store, int(options.get("--port", 0))).run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
