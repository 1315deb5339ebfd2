"""Make a copy of the task whose reference solutions are those of a control: make.py CONTROL DIRECTORY.

What each control is, and what it has to score, is in the README.
"""

import argparse
import shutil
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
NOTHING = "#!/bin/bash\nexit 0\n"

# From which round on which passage of a module is another one.
NEVER_RETIRES = [
    # A connection that ends gives back what it has taken.
    (3, "server.py", "        self.closed = False\n", "        self.closed = False\n        self.taken = []\n"),
    (
        3,
        "server.py",
        "        connection.closed = True\n",
        "        connection.closed = True\n"
        "        for id, attempt in connection.taken:\n"
        "            try:\n"
        "                self._store.nack(id, attempt)\n"
        "            except Refused:\n"
        "                pass\n",
    ),
    (
        3,
        "server.py",
        "        if message is not None:\n            return handed_out(message)\n",
        "        if message is not None:\n"
        "            connection.taken.append((message.id, message.attempt))\n"
        "            return handed_out(message)\n",
    ),
    # A second ACK is refused.
    (4, "store.py", "        if self._acknowledged.get(id) == attempt:\n            return\n", ""),
    (10, "store.py", "        if id in self._gone and self._gone[id][0] == attempt:\n            return\n", ""),
    # What is given back keeps its place.
    (5, "store.py", "        message.until = 0\n        self._place_last(message)\n", "        message.until = 0\n"),
    # What has expired is removed.
    (8, "store.py", "            if message.purged:\n", "            if message.purged or message.is_expired(now):\n"),
    # LEN is answered.
    (10, "wire.py", '    "COMPACT": (),\n', '    "COMPACT": (),\n    "LEN": ("queue",),\n'),
    (
        10,
        "server.py",
        "    def _compact(",
        "    def _len(self, connection, request):\n"
        '        return line("OK", self._store.queues().get(request.queue, [0, 0])[0])\n\n'
        "    def _compact(",
    ),
]
# Each round breaks one requirement of an earlier one, and leaves it broken.
REGRESSES = [
    # durable: records stay in the memory of the daemon until there are many.
    (2, "journal.py", "        self._file.flush()\n        os.fsync(self._file.fileno())\n", ""),
    (3, "wire.py", "len(self._bytes) > LONGEST_LINE", "len(self._bytes) > 64 * LONGEST_LINE"),  # closing
    (4, "store.py", "self._last_id = max(self._last_id, message.id)", "self._last_id = len(self._messages)"),  # ids
    (
        5,
        "server.py",
        "        for waiter in self._waiters[:]:",
        "        for waiter in self._waiters[::-1]:",
    ),  # wait-order
    (6, "store.py", "            return self._keys[queue, key]\n", "            pass\n"),  # key
    (7, "store.py", "(-message.prio, message.place)", "(message.prio, message.place)"),  # priority
    (8, "store.py", '        self._journal.append("TAKE", id, attempt, until)\n', ""),  # touch
    (9, "store.py", '            self._journal.append("PURGE", queue)\n', ""),  # purge-journal
    (
        10,
        "store.py",
        "message.attempt >= self._most_attempts",
        "message.attempt > self._most_attempts",
    ),  # dead-attempts
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("control", choices=["only-round-1", "never-retires", "regresses"])
    parser.add_argument("directory", type=Path)
    options = parser.parse_args()
    shutil.copytree(TASK, options.directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    schema = "#:schema ../../pytest_evocode/tasks/task.schema.json\n"
    config = options.directory / "task.toml"
    config.write_text(config.read_text().replace(schema, ""))
    if options.control == "only-round-1":
        for step in (options.directory / "steps").iterdir():
            if step.name != "round-1":
                (step / "solution/solve.sh").write_text(NOTHING)
        return
    for number, name, old, new in NEVER_RETIRES if options.control == "never-retires" else REGRESSES:
        swap(options.directory, number, name, old, new)


def swap(task: Path, number: int, name: str, old: str, new: str) -> None:
    """Change a module as rounds from this number on leave it."""
    text = ""
    for each in range(1, 11):
        solution = task / f"steps/round-{each}/solution/courier/{name}"
        if solution.exists():
            text = solution.read_text()
        if each < number:
            continue
        if each == number or solution.exists():
            count = text.count(old)
            if count > 1 or (count == 0 and each == number):
                raise SystemExit(f"make.py: {count} times in {name} of round-{each}: {old!r}")
            text = text.replace(old, new)
            solution.parent.mkdir(exist_ok=True)
            solution.write_text(text)


if __name__ == "__main__":
    main()
