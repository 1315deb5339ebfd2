"""The measure of the contract's pace: one pass over the lines on standard input."""

import heapq
import sys


def main() -> None:
    heap: list[tuple[int, int]] = []
    lines: dict[int, list[str]] = {}
    for number, line in enumerate(sys.stdin):
        lines[number] = line.split()
        heapq.heappush(heap, (len(line), number))
        sys.stdout.write(line)


if __name__ == "__main__":
    main()
