"""The grammar: lines of words become requests."""

import re

NAME = re.compile(r"[A-Za-z0-9-]{1,32}").fullmatch
NUMBER = re.compile(r"[1-9][0-9]{0,6}").fullmatch
LARGEST = 1000000


class Refused(Exception):
    """A request that changes nothing; its text is the code."""


def name(word: str) -> str:
    if not NAME(word):
        raise Refused("word")
    return word


def number(word: str) -> int:
    if not NUMBER(word) or int(word) > LARGEST:
        raise Refused("word")
    return int(word)


FORMS = {
    "BID": (name, name, number, number),
    "ASK": (name, name, number, number),
    "CANCEL": (name,),
    "BEST": (name,),
}
ORDERS = ("BID", "ASK")


def parse(line: str) -> tuple[str, list]:
    """Return the request of a line, without its end, and its arguments."""
    verb, *words = line.split(" ")
    form = FORMS.get(verb)
    if form is None or len(words) != len(form):
        raise Refused("request")
    return verb, [read(word) for read, word in zip(form, words, strict=False)]
