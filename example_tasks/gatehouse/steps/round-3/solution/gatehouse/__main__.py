"""The command line."""

import argparse
import os
import sys

from gatehouse import accounts, store, web


def main():
    parser = argparse.ArgumentParser(prog="gatehouse", description="Lends keys and rooms.")
    parser.add_argument("--data", required=True, help="directory of all that is kept")
    parser.add_argument("--port", type=int, default=8080)
    parser.add_argument("--link-days", type=int, default=7, help="how long a link in a mail works")
    parser.add_argument("--add-user", metavar="NAME", help="add a person, with the password from standard input")
    parser.add_argument("--full-name", default="")
    parser.add_argument("--role", choices=["member", "staff"], default="member")
    options = parser.parse_args()
    os.makedirs(options.data, exist_ok=True)
    store.prepare(options.data)
    if options.add_user:
        db = store.connect(options.data)
        password = sys.stdin.readline().rstrip("\n")
        accounts.add_user(db, options.add_user, options.full_name, options.role, password)
        db.commit()
        return
    web.serve(options.data, options.port, options.link_days)


if __name__ == "__main__":
    main()
