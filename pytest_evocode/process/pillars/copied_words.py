"""Find what a plan has copied from a request, word for word or with other words strewn in."""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Words in a row that count as copied.
SHINGLE = 6
#: Least share of the words of a step, or of the request's sentence, that stand in the other in the same order.
SHARE = 0.75
#: The same for sentences of fewer words, of which neither may have much else.
SHORT = 4
SHARE_OF_SHORT = 0.6

_SENTENCE = re.compile(r"(?<=[.:;!?])\s+|\n\s*\n|\n(?=\s*[-*\d])")


def says_again(step: str, requests: Sequence[str]) -> bool:
    """Return whether a step of a plan is a sentence of a request, with words put in or left out.

    Who plans takes words from the request, but not its sentences from the first word to the last.

    >>> request = "Amounts of a recipe are shown as fractions in lowest terms."
    >>> says_again("Implement amounts of a really recipe are shown as really fractions in lowest terms", [request])
    True
    >>> says_again("Show the amounts of a recipe in `text.py` as fractions, with lowest terms from gcd", [request])
    False
    """
    words = _words(step)
    for request in requests:
        for sentence in map(_words, _SENTENCE.split(request)):
            common = _common(words, sentence)
            whole = common >= SHINGLE and common >= SHARE * min(len(words), len(sentence))
            short = common >= SHORT and common >= SHARE_OF_SHORT * max(len(words), len(sentence))
            if whole or short:
                return True
    return False


def _words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\w+", text)]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    The rows of the usual table are kept as bits (Hyyrö 2004), because requests and plans can have thousands of words.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(other):
        places[word] = places.get(word, 0) | 1 << place
    whole = row = (1 << len(other)) - 1
    for word in one:
        both = row & places.get(word, 0)
        row = ((row + both) | (row - both)) & whole
    return len(other) - row.bit_count()


def uncopied(text: str, requests: Sequence[str]) -> str:
    r"""Return a text without the runs of six words or more that stand in a request in the same order.

    >>> uncopied("First: one two three four five six seven.\nThen b.py", ["One two three four five six seven"])
    'First: \nThen b.py'
    """
    known = {
        tuple(words[start : start + SHINGLE])
        for request in requests
        if (words := [word.lower() for word in re.findall(r"\w+", request)])
        for start in range(max(0, len(words) - SHINGLE + 1))
    }
    words = list(re.finditer(r"\w+", text))
    copied = bytearray(len(words))
    for start in range(len(words) - SHINGLE + 1):
        if tuple(word[0].lower() for word in words[start : start + SHINGLE]) in known:
            copied[start : start + SHINGLE] = b"\1" * SHINGLE
    kept, place, number = [], 0, 0
    while number < len(words):
        if not copied[number]:
            number += 1
            continue
        kept.append(text[place : words[number].start()])
        while number < len(words) and copied[number]:
            place = words[number].end()
            number += 1
        if place < len(text) and text[place] in ".,;:!?":
            place += 1
    return "".join([*kept, text[place:]])
