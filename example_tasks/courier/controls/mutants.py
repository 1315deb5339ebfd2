"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-agent=oracle DIRECTORY -k round-10` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
# The module, a passage of it as round 10 leaves it, and what stands there instead.
MUTANTS = [
    # Framing.
    ("wire.py", "LONGEST_LINE = 1024", "LONGEST_LINE = 4096"),
    ("wire.py", "LONGEST_BODY = 65536", "LONGEST_BODY = 65535"),
    ("wire.py", "request.length > LONGEST_BODY", "request.length > LONGEST_BODY + 1"),
    ("wire.py", "[a-z0-9-]{1,64}", "[a-z0-9-]{1,63}"),
    ("wire.py", "[a-z0-9-]{1,64}", "[a-z0-9_-]{1,64}"),
    ("wire.py", "[A-Za-z0-9][A-Za-z0-9._-]{0,63}", "[A-Za-z0-9._-]{1,64}"),
    ("wire.py", "range(3601)", "range(1, 3601)"),
    ("wire.py", "range(3601)", "range(3602)"),
    ("wire.py", "LEASE = range(1, 86401)", "LEASE = range(1, 86400)"),
    ("wire.py", "LEASE = range(1, 86401)", "LEASE = range(0, 86401)"),
    ("wire.py", '"PRIO": range(10)', '"PRIO": range(11)'),
    ("wire.py", '"TTL": range(1, 31536001)', '"TTL": range(31536001)'),
    ("wire.py", "known.pop(option, None)", "known.get(option)"),
    ("wire.py", "range(1, 101)", "range(1, 100)"),
    ("wire.py", "range(1, 101)", "range(101)"),
    ("wire.py", 'not in ("PUT", "ACK", "NACK")', 'not in ("PUT", "ACK", "NACK", "TAKE")'),
    (
        "wire.py",
        "            self._missing = int(words[2])",
        "            self._missing = min(int(words[2]), LONGEST_BODY)",
    ),
    (
        "wire.py",
        "        if self._bytes[self._missing] != ord",
        "        if False and self._bytes[self._missing] != ord",
    ),
    ("wire.py", "if refused.final:", "if not refused.final:"),
    ("wire.py", 'if command == "PUT" and not QUEUE', 'if command == "PULL" and not QUEUE'),
    ("wire.py", "    prio = 5", "    prio = 4"),
    ("wire.py", "    lease = 60", "    lease = 0"),
    # The journal.
    ("journal.py", "        if torn:", "        if False:"),
    ("journal.py", "if end > len(lines):", "if end > len(lines) + 1:"),
    ("journal.py", "                        del lines[index:]\n", ""),
    ("journal.py", " and index >= end:", ":"),
    ("journal.py", "if len(records) > 1:", "if len(records) > 0:"),
    ("journal.py", "        self._file.close()\n        self._open()\n", ""),
    (
        "journal.py",
        "        os.replace(self._new, self._path)",
        "        __import__('shutil').copy(self._new, self._path)",
    ),
    ("journal.py", "        except ValueError:\n", "        except KeyError:\n"),
    ("journal.py", "journal:{index + 1}:", "journal:{index}:"),
    # Messages.
    (
        "store.py",
        "        if key and (queue, key) in self._keys:",
        "        if key and key in {each[1] for each in self._keys}:",
    ),
    ("store.py", "        if id in self._gone and self._gone[id][0] == attempt:", "        if id in self._gone:"),
    ("store.py", "        self._give_back(message)\n        self._settle()\n", "        self._give_back(message)\n"),
    ("store.py", "        message.until = 0\n        self._place_last(message)\n", "        message.until = 0\n"),
    (
        "store.py",
        "        self._place_last(message)\n        if message.key",
        "        message.place = message.id\n        if message.key",
    ),
    ("store.py", "(0, self.id) if self.dead else (-self.prio, self.place)", "(-self.prio, self.place)"),
    ("store.py", "            message.attempt += 1\n", "            message.attempt = max(1, message.attempt)\n"),
    (
        "store.py",
        "            if message.purged:\n                self._remove(message.id, None)\n            elif",
        "            if",
    ),
    ("store.py", "elif not message.dead and (", "elif ("),
    ("store.py", "message.attempt >= self._most_attempts", "message.attempt + 1 >= self._most_attempts"),
    ("store.py", '                self._journal.append("DEAD", message.id)\n', ""),
    ("store.py", "if message.name == queue]", "if message.queue == queue]"),
    ("store.py", "        return 0 < self.expires <= now", "        return False"),
    ("store.py", "        return 0 < self.expires <= now", "        return self.expires <= now"),
    ("store.py", "message.attempt != attempt or not", "not"),
    ("store.py", " or not message.is_leased(time.time()):", ":"),
    ("store.py", "for time in (message.until, message.expires)", "for time in (message.until,)"),
    ("store.py", "for time in (message.until, message.expires)", "for time in (message.expires,)"),
    ("store.py", "            vars(self).update(kept)\n", ""),
    (
        "store.py",
        "                self._remove(self._message(id).id, 1)",
        "                self._remove(self._message(id).id, 0)",
    ),
    ("store.py", 'prio="5", expires', 'prio="0", expires'),
    ("store.py", '        yield "DEAD", message.id\n', "        pass\n"),
    ("store.py", '            yield "PURGE", name\n', "            pass\n"),
    (
        "store.py",
        "key=lambda message: message.place)\n        purged",
        "key=lambda message: message.id)\n        purged",
    ),
    ("store.py", 'yield "GONE", id, "-" if attempt is None else attempt', 'yield "GONE", id, attempt or 1'),
    ("store.py", 'attempt, queue, key or "-"\n', 'attempt, queue, "-"\n'),
    (
        "store.py",
        '        yield "TAKE", message.id, message.attempt, message.until\n',
        '        yield "TAKE", message.id, message.attempt, 0\n',
    ),
    ("store.py", "        self._last_id = max(self._last_id, message.id)", "        self._last_id = message.id"),
    (
        "store.py",
        "        journal.replay(self._apply)\n        self._settle()\n",
        "        journal.replay(self._apply)\n",
    ),
    (
        "store.py",
        "expires = math.ceil(time.time() + ttl) if ttl else 0",
        "expires = math.ceil(time.time()) + ttl * 1000 if ttl else 0",
    ),
    (
        "store.py",
        '        self._journal.append("TAKE", id, attempt, until)\n',
        '        self._journal.append("TAKE", id, attempt + 1, until)\n',
    ),
    # The daemon.
    ("server.py", "                    connection.ending = True\n", ""),
    ("server.py", "if not request.wait:", "if request.wait < 2:"),
    ("server.py", " and not self._is_waiting(connection):", ":"),
    ("server.py", "                connection.ending = refused.final\n", ""),
    ("server.py", "min(seconds, lease)", "seconds"),
    ("server.py", "        for waiter in self._waiters[:]:", "        for waiter in self._waiters[::-1]:"),
    ("server.py", "for name in sorted(counts)", "for name in counts"),
    ("server.py", "            counts.setdefault(waiter.request.queue, [0, 0, 0])[2] += 1", "            pass"),
    ("server.py", "enumerate(request.requests, 1)", "enumerate(request.requests)"),
    ("server.py", "        signal.signal(signal.SIGTERM, self._stop)\n", ""),
]


def mutated(texts: dict[str, str], number: int) -> tuple[str, str]:
    """Return the module that a mutant changes and its text."""
    name, old, new = MUTANTS[number]
    if texts[name].count(old) != 1:
        raise SystemExit(f"mutants.py: {texts[name].count(old)} times in {name}: {old!r}")
    return name, texts[name].replace(old, new)


def last_modules() -> dict[str, str]:
    """Return the modules as the last round leaves them."""
    texts = {}
    for number in range(1, 11):
        for path in (TASK / f"steps/round-{number}/solution/courier").glob("*.py"):
            texts[path.name] = path.read_text()
    return texts


def main() -> None:
    if len(sys.argv) != 3:
        for number, (name, old, new) in enumerate(MUTANTS):
            print(f"{number:3} {name}: {old!r} -> {new!r}")
        return
    name, text = mutated(last_modules(), int(sys.argv[1]))
    directory = Path(sys.argv[2])
    shutil.copytree(TASK, directory, ignore=shutil.ignore_patterns("controls", "evocode.lock"))
    config = directory / "task.toml"
    config.write_text(config.read_text().partition("\n")[2])  # Without the schema, which is beside the original.
    (directory / f"steps/round-10/solution/courier/{name}").write_text(text)


if __name__ == "__main__":
    main()
