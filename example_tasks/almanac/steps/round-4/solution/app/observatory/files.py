"""How files of the three kinds are read; what old/read.awk made of them is what they mean, but where we know better."""

import re
from collections import namedtuple

KINDS = ("crd", "log", "tsv")
MARK = b"\xef\xbb\xbf"
# Since then the notebook has the date of the moment, and no longer that of the evening.
NOTEBOOK_MOMENTS = "2010-07-01"
Observation = namedtuple("Observation", "night late time date object observer magnitude seconds number note line")
CARD_DATE = re.compile("[0-9]{6}")
CARD_TIME = re.compile("[0-9]{4}")
LOG_DATE = re.compile(r"[0-9]{2}\.[0-9]{2}\.[0-9]{4}")
LOG_TIME = re.compile("[0-9]{2}:[0-9]{2}")
TABLE_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}")
LOG_UNIT = re.compile("# *exposure +(s|min) *")
NUMBER = re.compile(r" *([-+]?([0-9]+\.?[0-9]*|\.[0-9]+))")


def kind_of(name):
    return name.rpartition(".")[2] if "." in name else ""


class Reader:
    """What there is in a file: its observations, and the lines that are nothing, by their numbers."""

    def __init__(self, name, content):
        self.observations = []
        self.leftovers = []
        kind = kind_of(name)
        lines = content.removeprefix(MARK if kind == "tsv" else b"").split(b"\n")
        if not lines[-1]:
            lines.pop()
        texts = [text_of(line.removesuffix(b"\r"), kind) for line in lines]
        {"crd": self._read_cards, "log": self._read_log, "tsv": self._read_table}[kind](texts)

    def _read_cards(self, lines):
        going_on = False
        for number, line in enumerate(lines, 1):
            card = line.replace("\t", " ")
            if card.startswith("+"):
                self._go_on(going_on, number, line)
                continue
            day, clock = card[5:11], card[12:16]
            going_on = not card.startswith("*") and bool(CARD_DATE.fullmatch(day) and CARD_TIME.fullmatch(clock))
            if going_on:
                century = "20" if day[4:] < "50" else "19"
                texts = card[17:29], card[30:33], card[34:38], card[:4], card[43:]
                evening = f"{century}{day[4:]}-{day[2:4]}-{day[:2]}"
                self._add(number, evening, None, f"{clock[:2]}:{clock[2:]}", texts, seconds(card[39:42], 60))
            elif not card.startswith("*"):
                self._pass_over((number, line))

    def _read_log(self, lines):
        unit, held = 60, []
        for number, line in enumerate(lines, 1):
            held.append((number, line))
            if line.endswith("\\"):
                continue
            together, held = held, []
            whole = "".join(text.removesuffix("\\") for _, text in together[:-1]) + line
            whole = whole.replace("\t", " ")
            fields = whole.split(";", 7)
            if whole.startswith("#"):
                directive = LOG_UNIT.fullmatch(whole)
                if directive:
                    unit = 1 if directive[1] == "s" else 60
            elif len(fields) >= 7 and LOG_DATE.fullmatch(fields[1]) and LOG_TIME.fullmatch(fields[2]):
                count, date, time, name, observer, magnitude, exposure, *note = fields
                texts = name, observer, magnitude.replace(",", ".", 1), count, "".join(note)
                date = f"{date[6:]}-{date[3:5]}-{date[:2]}"
                evening, moment = (date, None) if date < NOTEBOOK_MOMENTS else (None, date)
                self._add(together[0][0], evening, moment, time, texts, seconds(exposure, unit))
            else:
                self._pass_over(*together)
        self._pass_over(*held)

    def _read_table(self, lines):
        going_on = False
        columns = lines[0].split("\t") if lines else []
        for number, line in enumerate(lines[1:], 2):
            if line.startswith("\t"):
                self._go_on(going_on, number, line)
                continue
            row = dict(zip(columns, line.split("\t"), strict=False))
            time = row.get("ut", "")
            going_on = bool(TABLE_TIME.fullmatch(time))
            if going_on:
                texts = (row.get(column, "") for column in ("object", "observer", "mag", "id", "note"))
                self._add(number, None, time[:10], time[11:], texts, seconds(row.get("exp", ""), 1))
            elif not line.startswith("#"):
                self._pass_over((number, line))

    def _add(self, line, evening, date, time, texts, exposure):
        """Keep an observation, of which either the night or the date of the moment is known."""
        late = time < "12:00"
        if evening is None:
            evening = day_before(date) if late else date
        else:
            date = day_after(evening) if late else evening
        name, observer, magnitude, number, note = (text.strip(" ") for text in texts)
        self.observations.append(
            Observation(evening, int(late), time, date, name, observer, magnitude, exposure, number, note, line)
        )

    def _go_on(self, going_on, number, line):
        """Add a line to the note before it, or pass over it where there is none."""
        if going_on:
            last = self.observations[-1]
            text = line[1:].replace("\t", " ").strip(" ")
            self.observations[-1] = last._replace(note=f"{last.note} {text}")
        else:
            self._pass_over((number, line))

    def _pass_over(self, *lines):
        if any(text.strip(" \t") for _, text in lines):
            self.leftovers += lines


def text_of(line, kind):
    """Return the text of a line: UTF-8 in tables, where it can be read as such, and Latin-1 everywhere else."""
    if kind == "tsv":
        try:
            return line.decode()
        except UnicodeDecodeError:
            pass
    return line.decode("latin-1")


def seconds(text, unit):
    """Return what awk makes of an exposure: the number that the text begins with, cut to whole seconds."""
    number = NUMBER.match(text)
    return int(float(number[1]) * unit) if number else 0


def day_before(date):
    """Return the day before, also of dates that do not exist."""
    year, month, day = (int(part) for part in date.split("-"))
    day -= 1
    if day < 1:
        month -= 1
        if month < 1:
            year, month = year - 1, 12
        day = days(year, month)
    return f"{year:04}-{month:02}-{day:02}"


def day_after(date):
    year, month, day = (int(part) for part in date.split("-"))
    day += 1
    if day > days(year, month):
        month, day = month + 1, 1
        if month > 12:
            year, month = year + 1, 1
    return f"{year:04}-{month:02}-{day:02}"


def is_date(text):
    """Say whether a text is a date that exists, such as 2010-07-01."""
    if not re.fullmatch("[0-9]{4}-[0-9]{2}-[0-9]{2}", text):
        return False
    year, month, day = (int(part) for part in text.split("-"))
    return 1 <= month <= 12 and 1 <= day <= days(year, month)


def days(year, month):
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
