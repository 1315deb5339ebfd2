"""The grammar: lines of words become requests."""

import re
from collections.abc import Callable, Mapping

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
    "DEPTH": (name, number),
    "CHANGE": (name, number, number),
    "OPEN": (name,),
    "CLEAR": (name,),
    "CLOCK": (number,),
}
ORDERS = ("BID", "ASK")
OPTIONS: dict[str, Callable] = {"BY": name, "UNTIL": number}
BOOK_OPTIONS: dict[str, Callable] = {**OPTIONS, "HAD": number}


def parse(line: str, options: Mapping[str, Callable] = OPTIONS) -> tuple[str, list, dict]:
    """Return the request of a line, without its end, its arguments, and the options of an order in lower case."""
    verb, *words = line.split(" ")
    form = FORMS.get(verb)
    if form is None or len(words) < len(form):
        raise Refused("request")
    given = words[len(form) :]
    if given:
        known = iter(options if verb in ORDERS else ())
        if len(given) % 2 or not all(option in known for option in given[::2]):
            raise Refused("request")
    arguments = [read(word) for read, word in zip(form, words, strict=False)]
    return (
        verb,
        arguments,
        {option.lower(): options[option](word) for option, word in zip(given[::2], given[1::2], strict=True)},
    )
