"""What the program should answer, worked out in another way: with fractions, and from all that was sent at once."""

from datetime import UTC, datetime
from fractions import Fraction
from itertools import pairwise
from math import floor
from random import Random
from typing import NamedTuple

import pytest
from files import decimal, workshop, write

UNITS = 1000  # What is stored, of a cubic metre or a kilowatt hour.
ROUND = 100_000 * UNITS  # Where five digits begin again.


class Sent(NamedTuple):
    """A reading that somebody sent."""

    meter: str
    kind: str
    moment: datetime
    value: int


class Exchange(NamedTuple):
    """A meter that was exchanged: what the old one showed last, and the new one first."""

    meter: str
    moment: datetime
    old: int
    new: int


def stamp(moment):
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def month_start(index):
    """Return the beginning of a month; 0 is January 2024."""
    return datetime(2024 + index // 12, index % 12 + 1, 1, tzinfo=UTC)


def kept(sent):
    """Return the readings that are left of all that was sent, the last one for each moment of a meter."""
    return {(each.meter, each.moment): each for each in sent}.values()


def readings(sent):
    """Return the rows of the view `readings`, by meter and moment."""
    return sorted((each.meter, each.kind, stamp(each.moment), each.value) for each in kept(sent))


def consumed(events):
    """Return what was consumed until each moment, and the readings that are not believed; events are of one meter."""
    points, doubted, shown, total = [], [], None, 0
    for each in sorted(events, key=lambda event: event.moment):
        value = each.old if isinstance(each, Exchange) else each.value
        if shown is not None and value < shown:
            if shown >= 90_000 * UNITS and value < 10_000 * UNITS:
                total += ROUND
            elif isinstance(each, Exchange):
                shown = value
            else:
                doubted.append(each)
                continue
        total += value - (value if shown is None else shown)
        points.append((each.moment, total))
        shown = each.new if isinstance(each, Exchange) else value
    return points, doubted


def shown_at(points, moment):
    """Return what was consumed until a moment, rounded, and whether it is estimated; None where nothing is known."""
    if not points or moment < points[0][0] or moment > points[-1][0]:
        return None
    before = max(point for point in points if point[0] <= moment)
    after = min(point for point in points if point[0] >= moment)
    if before[0] == after[0]:
        return before[1], False
    part = Fraction((moment - before[0]).total_seconds()) / Fraction((after[0] - before[0]).total_seconds())
    return floor(before[1] + part * (after[1] - before[1]) + Fraction(1, 2)), True


def monthly(sent, exchanges=()):
    """Return the rows of the view `monthly`, by meter and month."""
    rows = []
    by_meter = {}
    for each in [*kept(sent), *exchanges]:
        by_meter.setdefault(each.meter, []).append(each)
    kinds = {each.meter: each.kind for each in sent}
    for meter, events in sorted(by_meter.items()):
        points, _ = consumed(events)
        for index in range(-3, 30):
            first, last = shown_at(points, month_start(index)), shown_at(points, month_start(index + 1))
            if first and last:
                month = month_start(index).strftime("%Y-%m")
                rows.append((meter, kinds[meter], month, last[0] - first[0], int(first[1] or last[1])))
    return rows


def suspects(sent, exchanges=()):
    """Return the rows of the view `suspects`, by meter and moment."""
    kept_ones = kept(sent)
    rows = []
    for meter in {each.meter for each in kept_ones}:
        events = [each for each in [*kept_ones, *exchanges] if each.meter == meter]
        rows += [(each.meter, each.kind, stamp(each.moment), each.value) for each in consumed(events)[1]]
    return sorted(rows)


def newest(files):
    """Return the readings that count of files, which are (when it was issued or None, its readings in their order)."""
    best = {}
    for issued, sent in files:
        rank = issued.timestamp() if issued else float("-inf")
        for each in kept(sent):
            key = each.meter, each.moment
            best[key] = max(best.get(key, (rank, each.value, each)), (rank, each.value, each))
    return [each for _, _, each in best.values()]


def cost(sent, exchanges, prices, meter, month):
    """Return what a meter owes for a month; prices are (kind, day, cents as a text), the day a moment."""
    events = [each for each in [*kept(sent), *exchanges] if each.meter == meter]
    kind = next(each.kind for each in events if isinstance(each, Sent))
    points, _ = consumed(events)
    index = (int(month[:4]) - 2024) * 12 + int(month[5:]) - 1
    begin, end = month_start(index), month_start(index + 1)
    mine = sorted((day, Fraction(cents)) for each, day, cents in prices if each == kind)
    changes = [begin, *(day for day, _ in mine if begin < day < end), end]
    total = Fraction(0)
    for since, until in pairwise(changes):
        price = [cents for day, cents in mine if day <= since][-1]
        total += Fraction(shown_at(points, until)[0] - shown_at(points, since)[0], UNITS) * price
    return round(total)  # Halves to even, as Python has it.


class Town:
    """Meters and what their suppliers and the workshop send, by a seed.

    With `busy` some meters are exchanged and some go round.
    """

    def __init__(self, seed, meters=12, most=9, *, busy=False):
        self.seed = seed
        self.random = Random(seed)
        self.busy = busy
        self.meters = {}
        self.sent = []
        self.exchanges = []
        for number in range(meters):
            supplier = self.random.choice(["aqua", "volt", "norda"])
            kind = {"aqua": "water", "volt": "power"}.get(supplier) or self.random.choice(["water", "power"])
            name = {"aqua": "W-ü", "volt": "P, ö-", "norda": "N-"}[supplier] + f"{seed}-{number}"
            self.meters[name] = supplier
            self._read(name, kind, most)

    def _read(self, name, kind, most):
        high = self.busy and self.random.random() < 0.4
        value = ROUND - self.random.randrange(1, 2_000 * UNITS) if high else self.random.randrange(50_000 * UNITS)
        first = month_start(0).timestamp()
        moments = {first + 60 * self.random.randrange(200 * 24 * 60) for _ in range(self.random.randrange(2, most + 1))}
        moments |= {month_start(index).timestamp() for index in range(7) if self.random.random() < 0.4}
        for seconds in sorted(moments):
            if self.busy and self.random.random() < 0.15 and seconds - 60 not in moments:
                old, value = (value + self._used()) % ROUND, self.random.randrange(100 * UNITS)
                self.exchanges.append(Exchange(name, datetime.fromtimestamp(seconds - 60, UTC), old, value))
            value = (value + self._used()) % ROUND
            self.sent.append(Sent(name, kind, datetime.fromtimestamp(seconds, UTC), value))

    def _used(self):
        return self.random.choice([0, 1, 17, self.random.randrange(900 * UNITS)])

    def files(self, sent=None, issued=None):
        """Return a file of each supplier with these readings, in any order, some of them twice."""
        texts = []
        for supplier in ("aqua", "volt", "norda"):
            mine = [each for each in (self.sent if sent is None else sent) if self.meters[each.meter] == supplier]
            mine = self.random.sample(mine, len(mine)) + mine[:2]
            texts.append(write(supplier, mine, self.random.randrange(-3, 4), issued))
        return texts

    def imported(self, *calls, **more):
        """Return a parameter of a test whose fixture `seen` has imported files of the town."""
        return pytest.param(self, id=str(self.seed), marks=pytest.mark.imports(*calls, **more))

    def workshop(self):
        """Return the list of the workshop."""
        return workshop(
            *(
                f'"{each.meter}",{stamp(each.moment)},{decimal(each.old, ".")},{decimal(each.new, ".")}'
                for each in self.random.sample(self.exchanges, len(self.exchanges))
            )
        )

    def versions(self, issues):
        """Return (when it was issued, readings) for each issue, with half of all readings, many with less."""
        batches = []
        for issued in issues:
            batch, before = [], {}
            for each in self.sent:
                low = before.get(each.meter, each.value)
                before[each.meter] = each.value
                if self.random.random() < 0.5:
                    batch.append(each._replace(value=self.random.choice([each.value, (low + each.value) // 2, low])))
            batches.append((issued, batch))
        return batches

    def with_slips(self):
        """Return all readings, of which some have lost a digit."""
        return [each._replace(value=each.value // 10) if self.random.random() < 0.15 else each for each in self.sent]
