"""Divide an agent's message into sentences, and tell which of its words are those of the request."""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from pytest_evocode.process.trajectory.words import specific_words

#: Two words of at least this length that begin alike are the same word: `verify` and `verifiable`.
COMMON_STEM = 4

#: Text of somebody else: blocks of code, quoted lines, and what stands in quotation marks.
_BLOCKS = re.compile(r"```.*?(?:```|\Z)|^[^\S\n]*>.*$", re.DOTALL | re.MULTILINE)
_QUOTES = re.compile(r"\"[^\"\n]*\"|\u201c[^\u201d\n]*\u201d")
#: In this order; those of `would` and `had`, and of `is` and `has`, are not told apart.
_CONTRACTIONS = tuple(
    (re.compile(rf"\b{contraction}", re.IGNORECASE), whole)
    for contraction, whole in (
        (r"(?:can't|cant)\b", "cannot"), (r"(?:won't|wont)\b", "will not"), (r"(?:ain't)\b", "is not"),
        (r"(do|did|does|is|are|was|were|have|has|had|could|would|should|must|need)n'?t\b", r"\1 not"),
        (r"(I|we|you|they)'ve\b", r"\1 have"), (r"I'm\b", "I am"), (r"(we|you|they)'re\b", r"\1 are"),
        (r"(I|we|you|they|it)'ll\b", r"\1 will"), (r"(I|we|you|they|it)'d\b", r"\1 would"),
        (r"(it|that|there|this|what|here|nothing)'s\b", r"\1 is"),
    )
)  # fmt: skip
#: What denies something. `Never`, `no` and `without` praise a product as often: no file is lost, without any lock.
_NEGATION = re.compile(
    r"\b(?:not|neither|nor|none|nobody|cannot|nope|un\w+able|impossible|no (?:room|way|chance|sense|point|such|"
    r"idea))\b|^\W*no\b",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"(?<![\w.])\d+(?:\.\d+)?(?=\b|[a-z%])")
_CODE = re.compile(r"`[^`\n]*`")
#: Neither the number of a list's item nor an abbreviation ends a sentence.
_END = re.compile(
    r"(?:(?<=[.!?])|(?<=[.!?][\"')*\u201d]))(?<!\n\d\.)(?<!\n\d\d\.)(?<!e\.g\.)(?<!i\.e\.)(?<!vs\.)\s+|\n+"
)
#: Most characters of a sentence. A longer line is no sentence; rules would be asked of its parts for minutes.
_LONGEST = 1000
_EMPHASIS = re.compile(r"\*\*|__|(?<!\w)\*(?=\w)|(?<=\w)\*(?!\w)")


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, without blocks of code and quoted lines.

    >>> sentences("I stopped. Why? **See below**:")
    ['I stopped.', 'Why?', 'See below:']
    """
    plain = _EMPHASIS.sub("", _BLOCKS.sub("\n", text.replace("\u2019", "'")))
    plain = "\n" + re.sub(r"\n[^\S\n]+", "\n", plain.strip())
    found = [sentence for sentence in _END.split(plain) if sentence and sentence.strip()]
    return [each[start : start + _LONGEST] for each in found for start in range(0, len(each), _LONGEST)]


def own_words(sentence: str) -> str:
    """Return a sentence without what it quotes, and with contractions written out; code in it becomes the word NAME.

    >>> own_words("The 'conflict' is in `a.py`, we've left it, dont ask.")
    "The 'conflict' is in NAME, we have left it, do not ask."
    """
    plain = _QUOTES.sub(" ", _CODE.sub("NAME", sentence))
    for contraction, whole in _CONTRACTIONS:
        plain = contraction.sub(whole, plain)
    return plain


def negates(text: str) -> bool:
    """Return whether a text denies anything: one that does not can decline nothing.

    >>> negates("The list is sorted by name."), negates("There is no such list.")
    (False, True)
    """
    return any(_NEGATION.search(own_words(each)) for each in sentences(text))


def request_words(text: str) -> set[str]:
    """Return the specific words of a request and its numbers.

    >>> sorted(request_words("At most 64 bytes"))
    ['64', 'byte']
    """
    return specific_words(text) | set(_NUMBER.findall(text))


def shared_words(text: str, asked: AbstractSet[str]) -> set[str]:
    """Return the specific words of the request that a text uses, in whatever form.

    >>> sorted(shared_words("It has to be verified by a server.", {"verifiable", "server", "secret"}))
    ['server', 'verifiable']
    """
    words = request_words(text)
    stems = {word[:COMMON_STEM] for word in words if len(word) >= COMMON_STEM}
    return {word for word in asked if word in words or (len(word) >= COMMON_STEM and word[:COMMON_STEM] in stems)}
