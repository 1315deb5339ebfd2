"""How files of the three kinds are read; what old/read.awk makes of them is what they mean."""

import re
from collections import namedtuple

KINDS = ("crd", "log", "tsv")
Observation = namedtuple("Observation", "night late time object observer magnitude seconds number note")
CARD_DATE = re.compile("[0-9]{6}")
CARD_TIME = re.compile("[0-9]{4}")
LOG_DATE = re.compile(r"[0-9]{2}\.[0-9]{2}\.[0-9]{4}")
LOG_TIME = re.compile("[0-9]{2}:[0-9]{2}")
TABLE_TIME = re.compile("[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}")
LOG_UNIT = re.compile("# *exposure +(s|min) *")
NUMBER = re.compile(r" *([-+]?([0-9]+\.?[0-9]*|\.[0-9]+))")


def kind_of(name):
    return name.rpartition(".")[2] if "." in name else ""


def read(name, content):
    """Return the observations of a file in the order of its lines, with a character for each byte."""
    lines = content.decode("latin-1").split("\n")
    if not lines[-1]:
        lines.pop()
    lines = [line.removesuffix("\r") for line in lines]
    return {"crd": read_cards, "log": read_log, "tsv": read_table}[kind_of(name)](lines)


def read_cards(lines):
    found, going_on = [], False
    for line in lines:
        card = line.replace("\t", " ")
        if card.startswith("+"):
            if going_on:
                found[-1] = add_note(found[-1], card[1:])
            continue
        day, clock = card[5:11], card[12:16]
        going_on = not card.startswith("*") and bool(CARD_DATE.fullmatch(day) and CARD_TIME.fullmatch(clock))
        if going_on:
            century = "20" if day[4:] < "50" else "19"
            found.append(
                observation(
                    f"{century}{day[4:]}-{day[2:4]}-{day[:2]}",
                    f"{clock[:2]}:{clock[2:]}",
                    card[17:29],
                    card[30:33],
                    card[34:38],
                    seconds(card[39:42], 60),
                    card[:4],
                    card[43:],
                )
            )
    return found


def read_log(lines):
    found, unit, held = [], 60, ""
    for line in lines:
        line = held + line.replace("\t", " ")
        if line.endswith("\\"):
            held = line[:-1]
            continue
        held = ""
        if line.startswith("#"):
            directive = LOG_UNIT.fullmatch(line)
            if directive:
                unit = 1 if directive[1] == "s" else 60
            continue
        fields = line.split(";", 7)
        if len(fields) >= 7 and LOG_DATE.fullmatch(fields[1]) and LOG_TIME.fullmatch(fields[2]):
            number, date, time, name, observer, magnitude, exposure, *note = fields
            found.append(
                observation(
                    f"{date[6:]}-{date[3:5]}-{date[:2]}",
                    time,
                    name,
                    observer,
                    magnitude.replace(",", ".", 1),
                    seconds(exposure, unit),
                    number,
                    "".join(note),
                )
            )
    return found


def read_table(lines):
    found, going_on = [], False
    columns = lines[0].split("\t") if lines else []
    for line in lines[1:]:
        if line.startswith("\t"):
            if going_on:
                found[-1] = add_note(found[-1], line[1:].replace("\t", " "))
            continue
        row = dict(zip(columns, line.split("\t"), strict=False))
        time = row.get("ut", "")
        going_on = bool(TABLE_TIME.fullmatch(time))
        if going_on:
            found.append(
                observation(
                    evening(*time.split("T")),
                    time[11:],
                    row.get("object", ""),
                    row.get("observer", ""),
                    row.get("mag", ""),
                    seconds(row.get("exp", ""), 1),
                    row.get("id", ""),
                    row.get("note", ""),
                )
            )
    return found


def observation(night, time, name, observer, magnitude, exposure, number, note):
    texts = [text.strip(" ") for text in (name, observer, magnitude, number, note)]
    return Observation(night, int(time < "12:00"), time, *texts[:3], exposure, *texts[3:])


def add_note(observation, text):
    return observation._replace(note=f"{observation.note} {text.strip(' ')}")


def seconds(text, unit):
    """Return what awk makes of an exposure: the number that the text begins with, cut to whole seconds."""
    number = NUMBER.match(text)
    return int(float(number[1]) * unit) if number else 0


def evening(date, time):
    """Return the night to which a moment belongs: before noon, that of the evening before."""
    return date if time >= "12:00" else day_before(date)


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


def days(year, month):
    if month == 2:
        return 29 if year % 4 == 0 and (year % 100 or year % 400 == 0) else 28
    return 30 if month in (4, 6, 9, 11) else 31
