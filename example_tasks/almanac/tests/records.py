"""Files as the observatory has them, and many of them by a seed, with what was seen."""

from random import Random
from typing import NamedTuple

DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]


def card(number, date, time, name, observer, magnitude, exposure, note=""):
    """Return a card, of a date such as "020306" and an exposure in minutes."""
    return f"{number:>4} {date} {time} {name:<12} {observer:<3} {magnitude:>4} {exposure:>3} {note}"


def cards(*lines):
    return "".join(f"{line}\r\n" for line in lines).encode("latin-1")


def load(files):
    """Return the call that imports files, in their order."""
    return f"import {' '.join(files)}"


def log(*lines):
    return "".join(f"{line}\n" for line in lines).encode("latin-1")


def table(*lines, columns="id ut object observer mag exp note"):
    return "".join(
        f"{line}\n" for line in [columns.replace(" ", "\t"), *(line.replace("|", "\t") for line in lines)]
    ).encode()


class Seen(NamedTuple):
    """An observation as it should be understood, and where it begins."""

    night: str
    late: bool  # After midnight.
    time: str
    name: str
    observer: str
    magnitude: str
    seconds: int
    number: str
    note: str
    file: str
    line: int

    def listed(self):
        return (
            f"{self.night} {self.time} {self.name[:12]:<12} {self.observer[:3]:<3} {self.magnitude:>5}"
            f" {self.seconds:>6}s {self.number}\n"
        )


def listing(seen):
    """Return what `list` prints: by moment, and of one moment by the files' names and lines."""
    return "".join(each.listed() for each in in_order(seen))


def in_order(seen):
    return sorted(seen, key=lambda each: (each.night, each.late, each.time, each.file, each.line))


def next_day(night):
    year, month, day = (int(part) for part in night.split("-"))
    last = DAYS[month - 1] + (month == 2 and year % 4 == 0)
    day, month = (day + 1, month) if day < last else (1, month + 1)
    year, month = (year, month) if month < 13 else (year + 1, 1)
    return f"{year}-{month:02}-{day:02}"


def moment(seen):
    """Return when it was, in universal time."""
    return f"{next_day(seen.night) if seen.late else seen.night}T{seen.time}"


class Records:
    """Some files with many observations, by a seed.

    They hold nothing about which the user changes his mind, but with `wild`: then as he wants it in the end.
    """

    def __init__(self, seed, *, wild=False, count=14):
        self.random = Random(seed)
        self.wild = wild
        self.files = {}
        self.seen = []
        self.leftovers = []
        self.number = 100
        for name in ("a.crd", "b.log", "c.tsv", "d.crd", "e.log", "f.tsv"):
            self.name = name
            self.lines = []
            self.unit = 60
            self.columns = ["id", "ut", "object", "observer", "mag", "exp", "note"]
            if name.endswith("tsv"):
                self.random.shuffle(self.columns)
                self.lines.append("\t".join(self.columns))
            for _ in range(count):
                self._write(self._see())
                self._noise()
            encoding = "utf-8" if name.endswith("tsv") else "latin-1"
            self.files[name] = "".join(line + self._end() for line in self.lines).encode(encoding)

    def _end(self):
        return self.random.choice(["\n", "\r\n"])

    def _see(self):
        choice = self.random.choice
        year = {"a": 1999, "b": 2008, "c": 2012, "d": 2003, "e": 2010, "f": 2012}[self.name[0]]
        month = choice([1, 2, 6, 7, 12] if self.wild or year != 2010 else [1, 2, 6])
        day = choice([1, 2, 3, DAYS[month - 1] - 1, DAYS[month - 1]])
        late = choice([True, False])
        time = f"{choice(range(0, 6)) if late else choice(range(18, 24)):02}:{choice(['00', '30', '59'])}"
        names = ["T CrB", "R Leo", "a long name of a star", "U Gem"]
        observers = ["HJK", "HA", "LONG"]
        if self.wild:
            names += ["Häufchen", "ÄÖÜäöüßéèêïÿ", "R\xa0Leo"]
            observers += ["MÜL", "ÅSÖ"]
            if self.name.endswith("tsv"):
                names += ["χ Cyg", "β Lyrae Scheliak", "ΩΩΩΩΩΩΩΩΩΩΩΩΩΩ"]
        self.number += 1
        card_like = self.name.endswith("crd")
        name = choice(names)
        return Seen(
            f"{year}-{month:02}-{day:02}",
            late,
            time,
            name[:12].strip(" ") if card_like else name,
            choice(observers)[: 3 if card_like else 9],
            choice(["10.2", "9.8", "<9.5", "-1.4", "0.0", ""]),
            choice([6, 246, 30, 90, 126, 1200] if self.wild else [30, 90, 120, 600, 1200]),
            f"{self.number:04}",
            " ".join(self.random.sample(["clear", "with a friend", "Dunst", "1;2", "moon"], choice([0, 0, 1, 2, 3]))),
            self.name,
            len(self.lines) + 1,
        )

    def _exposure(self, seconds, unit):
        text = f"{seconds / unit:.1f}".removesuffix(".0")
        return text.replace(".", self.random.choice(".,")) if self.wild else text

    def _write(self, seen):
        split = seen.note.split(" ", 1) if self.random.random() < 0.7 else [seen.note]
        if self.name.endswith("crd"):
            date = seen.night[8:] + seen.night[5:7] + seen.night[2:4]
            time = seen.time.replace(":", "")
            exposure = self._exposure(seen.seconds, 60)
            self.lines += [
                card(seen.number, date, time, seen.name, seen.observer, seen.magnitude, exposure, split[0]),
                *(f"+  {part}" for part in split[1:]),
            ]
        elif self.name.endswith("log"):
            if self.random.random() < 0.3:
                self.unit = self.random.choice([1, 60])
                self.lines.append(f"#  exposure {'s' if self.unit == 1 else 'min'}")
                seen = seen._replace(line=seen.line + 1)
            date = seen.night
            if seen.night > "2010-06-30" and seen.late:
                date = next_day(date)
            date = f"{date[8:]}.{date[5:7]}.{date[:4]}"
            exposure = self._exposure(seen.seconds, self.unit)
            fields = [seen.number, date, seen.time, f" {seen.name}", seen.observer, seen.magnitude, exposure, seen.note]
            if self.random.random() < 0.5:
                fields[5] = seen.magnitude.replace(".", ",")
            text = ";".join(fields[: None if seen.note else 7])
            cut = self.random.randrange(len(text)) if self.random.random() < 0.3 else 0
            self.lines += [f"{text[:cut]}\\", text[cut:]] if cut else [text]
        else:
            exposure = str(seen.seconds)
            values = [seen.number, moment(seen), seen.name, seen.observer, seen.magnitude, exposure, split[0]]
            row = dict(zip(["id", "ut", "object", "observer", "mag", "exp", "note"], values, strict=True))
            text = "\t".join(row[column] for column in self.columns)
            if text.startswith("\t"):  # That would go on with the note before.
                row[self.columns[0]] = " "
                text = "\t".join(row[column] for column in self.columns)
            self.lines += [text, *(f"\t{part}" for part in split[1:])]
        self.seen.append(seen)

    def _noise(self):
        comment = "* not a card" if self.name.endswith("crd") else "# not a line"
        noise = self.random.choice([None, None, None, comment, "", "  ", "no observation at all"])
        if noise is not None:
            self.lines.append(noise)
        if noise and noise.startswith("no "):
            self.leftovers.append(f"{self.name}:{len(self.lines)}: {noise}\n")
