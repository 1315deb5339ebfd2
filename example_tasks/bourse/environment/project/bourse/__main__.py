"""Read the requests of a day from standard input, and answer none of them yet."""

import sys


def main() -> None:
    for _line in sys.stdin:
        pass


if __name__ == "__main__":
    main()
