"""Make a copy of the task whose last reference has one fault: mutants.py NUMBER DIRECTORY, or nothing for a list.

Run `pytest --evocode-agent=oracle DIRECTORY -k round-10` on it; the round has to fail.
"""

import shutil
import sys
from pathlib import Path

TASK = Path(__file__).resolve().parents[1]
# The module, a passage of it as round 10 leaves it, and what stands there instead.
MUTANTS = [
    # The grammar.
    ("requests.py", "{1,32}", "{1,31}"),
    ("requests.py", "[A-Za-z0-9-]", "[A-Za-z0-9_-]"),
    ("requests.py", "[1-9][0-9]{0,6}", "[0-9]{1,7}"),
    ("requests.py", "int(word) > LARGEST", "int(word) > LARGEST + 1"),
    ("requests.py", "int(word) > LARGEST", "int(word) >= LARGEST"),
    ("requests.py", "len(words) < len(form)", "len(words) > len(form)"),
    ("requests.py", "if len(given) % 2 or not", "if not"),
    ("requests.py", "known = iter(options)", "known = list(options)"),
    ("requests.py", "    if word not in ORDERS:\n", "    if False:\n"),
    ("requests.py", '"STOP": {"BY": name},', '"STOP": {"BY": name, "UNTIL": number},'),
    (
        "requests.py",
        '    "STOP": (side, name, name, number, number, number),',
        '    "STOP": (name, name, name, number, number, number),',
    ),
    ("__main__.py", "1):", "0):"),
    ("__main__.py", "return 3", "return 1"),
    ("__main__.py", '        print(f"bourse: {damaged}", file=sys.stderr)\n', ""),
    # Levels.
    ("levels.py", "(-order.left, order.came, order)", "(order.left, order.came, order)"),
    ("levels.py", "order.left == -size and ", "order.left and "),
    ("levels.py", " and order.came == came:", ":"),
    ("levels.py", "insort(self.keys, key)", "self.keys.append(key)"),
    ("levels.py", "[: -most - 1 : -1]", "[: -most : -1]"),
    ("levels.py", "        level.count += 1\n", "        level.count = 1\n"),
    ("levels.py", "        level.total -= quantity\n", ""),
    ("levels.py", "        self.sums.add(order.price, -quantity)\n", ""),
    ("levels.py", "        self.sums.add(order.price, order.left)\n", "        self.sums.add(order.price, 1)\n"),
    ("levels.py", "start = 0 if sums is self._sums[-1] else price // 100 * 100", "start = price // 100 * 100"),
    ("levels.py", "self.sums.below(price + 1)", "self.sums.below(price)"),
    ("levels.py", "- self.sums.below(price)", "- self.sums.below(price + 1)"),
    (
        "levels.py",
        "        if order.left:\n            level.enter(order)\n        else:",
        "        if not order.left:",
    ),
    # The engine.
    ("market.py", "other.keys[-1] >= limit", "other.keys[-1] > limit"),
    ("market.py", "min(order.left, resting.left)", "resting.left"),
    ("market.py", "            order.had += quantity\n", ""),
    ("market.py", "            resting.had += quantity\n", ""),
    ("market.py", "self._trades.add(order.good, resting.price", "self._trades.add(order.good, order.price"),
    ("market.py", "self.stops.traded(order.good, resting.price)", "self.stops.traded(order.good, order.price)"),
    ("market.py", "if order.by and order.by == resting.by:", "if order.by == resting.by:"),
    ("market.py", "if order.by and order.by == resting.by:", "if False:"),
    ("market.py", "                return False\n", "                return True\n"),
    ("market.py", "left = quantity - order.had", "left = quantity"),
    ("market.py", "        if left <= 0:", "        if left < 0:"),
    ("market.py", "price == order.price and left <= order.left", "left <= order.left"),
    ("market.py", "and left <= order.left", "and left < order.left"),
    ("market.py", "and left <= order.left", ""),
    ("market.py", "            self._enter(order)\n            self._wake()\n", "            self._enter(order)\n"),
    (
        "market.py",
        "        self._enter(Order(side, id, *arguments, **options))\n        self._wake()\n",
        "        self._enter(Order(side, id, *arguments, **options))\n",
    ),
    ("market.py", "if time < self.clock_stands:", "if time <= self.clock_stands:"),
    ("market.py", "        self.clock_stands = time\n", ""),
    ("market.py", "self._ends[0][0] < time", "self._ends[0][0] <= time"),
    ("market.py", "if order.level is not None and order.came == came:", "if order.level is not None:"),
    ("market.py", "if order.level is not None and order.came == came:", "if order.came == came:"),
    ("market.py", "(order.until, order.came, order)", "(order.until, -order.came, order)"),
    ("market.py", 'if options.get("until", self.clock_stands) < self.clock_stands:', "if False:"),
    ("market.py", "        self._used.add(id)\n", ""),
    ("market.py", "return sorted(id for id in self._used", "return list(id for id in self._used"),
    ("market.py", " and id not in self.stops)", ")"),
    ("market.py", "stop.price, stop.quantity, stop.by", "stop.price, stop.quantity"),
    ("market.py", "                del self._members[order.by][order.id]", "                pass"),
    ("market.py", "if id not in self._used:\n            raise", "if False:\n            raise"),
    # Trades and stops.
    ("trades.py", "number > len(self._trades) or ", "number > len(self._trades) + 1 or "),
    ("trades.py", " or self._trades[number - 1] is None", ""),
    ("trades.py", "        self._goods[good].total -= quantity\n", ""),
    ("trades.py", "        while self._trades[heap[0][1]] is None:\n            heappop(heap)\n", ""),
    ("trades.py", "heappush(there.highs, (-price, number))", "heappush(there.highs, (price, number))"),
    ("stops.py", "<= distance", "< distance"),
    (
        "stops.py",
        "                if stop.waits:\n                    heappush(self._woken, (came, stop))",
        "                heappush(self._woken, (came, stop))",
    ),
    ("stops.py", "heappush(self._woken, (came, stop))", "self._woken.append((came, stop))"),
    ("stops.py", '("ASK", -price)', '("ASK", price)'),
    ("stops.py", 'if stop.side == "BID" else -stop.trigger', 'if stop.side == "BID" else stop.trigger'),
    # Books.
    (
        "books.py",
        'OLDER = ("bourse 1", "bourse 2", "bourse 3", "bourse 4")',
        'OLDER = ("bourse 1", "bourse 2", "bourse 3")',
    ),
    ("books.py", 'WITHOUT_CLOCK = ("bourse 1", "bourse 2")', 'WITHOUT_CLOCK = ("bourse 1",)'),
    ("books.py", 'WITHOUT_CLOCK = ("bourse 1", "bourse 2")', 'WITHOUT_CLOCK = ("bourse 1", "bourse 2", "bourse 3")'),
    ("books.py", "                market.clock_stands = clock(line)\n", ""),
    ("books.py", "enumerate(lines, 2)", "enumerate(lines, 1)"),
    ("books.py", "        if order.had:\n", "        if False:\n"),
    ("books.py", "        if order.until:\n", "        if False:\n"),
    ("books.py", "        if order.by:\n", "        if False:\n"),
    ("books.py", 'f"{line} BY {stop.by}" if stop.by else line', "line"),
    ("books.py", '    lines += [f"USED {id}" for id in market.used()]\n', ""),
    ("books.py", '                raise Refused("not an order")\n', "                pass\n"),
    # What is right, and slow.
    ("levels.py", "insort(self.keys, key)", "self.keys.append(key); self.keys.sort(key=lambda each: each)"),
    (
        "levels.py",
        "            yield self.levels[key]",
        "            yield self.levels[sorted(self.levels)[self.keys.index(key)]]",
    ),
    (
        "market.py",
        "for order in self._members.get(member, {}).values():",
        "for order in [each for each in self._orders.values() if each.by == member]:",
    ),
    (
        "market.py",
        "self._side(side, good).volume(price)",
        "sum(each.left for each in self._orders.values() if (each.side, each.good) == (side, good)"
        " and (each.price - price) * self._side(side, good).sign >= 0)",
    ),
    (
        "market.py",
        '        if id in self._used:\n            raise Refused("duplicate")',
        '        if any(each == id for each in self._used):\n            raise Refused("duplicate")',
    ),
    (
        "stops.py",
        "            while triggers and triggers[0][0]",
        "            triggers and triggers.sort(key=lambda each: each[0])\n"
        "            while triggers and triggers[0][0]",
    ),
    (
        "trades.py",
        'return f"{self._first(there.lows)}',
        'there.lows.sort(key=lambda each: each[0])\n        return f"{self._first(there.lows)}',
    ),
    (
        "market.py",
        "        self.clock_stands = time\n",
        "        self.clock_stands = time\n        any(0 < order.until < time for order in self._orders.values())\n",
    ),
]


def last_modules() -> dict[str, str]:
    """Return the modules as the last round leaves them."""
    texts = {}
    for number in range(1, 11):
        for path in (TASK / f"steps/round-{number}/solution/bourse").glob("*.py"):
            texts[path.name] = path.read_text()
    return texts


def mutated(texts: dict[str, str], number: int) -> tuple[str, str]:
    """Return the module that a mutant changes and its text."""
    name, old, new = MUTANTS[number]
    if texts[name].count(old) != 1:
        raise SystemExit(f"mutants.py: {texts[name].count(old)} times in {name}: {old!r}")
    return name, texts[name].replace(old, new)


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
    (directory / f"steps/round-10/solution/bourse/{name}").write_text(text)


if __name__ == "__main__":
    main()
