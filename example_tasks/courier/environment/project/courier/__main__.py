"""Start the daemon: python3 -m courier --data DIR [--port PORT]."""

import argparse

from courier.server import serve

if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="courier")
    parser.add_argument("--data", required=True, metavar="DIR")
    parser.add_argument("--port", type=int, default=0)
    options = parser.parse_args()
    serve(options.data, options.port)
