"""Find the sentences of a message that claim work as done, or say which meaning was taken for granted."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_evocode.process.pillars.sentences import own_words, sentences

#: Past forms with which somebody says that something was made; all others end in -ed.
_MADE = (
    "wrote|written|built|made|set(?! out)|put(?! (?:the|a|this|one) question)|rewrote|rewritten|cut|split|brought|gave|"
    "let(?! you)"
)
#: Words in -ed that make nothing: looking, thinking, trying and stopping, and words that are no verbs in the past.
_MAKES_NOTHING = frozenset({
    "looked", "searched", "checked", "examined", "investigated", "considered", "reviewed", "analysed", "analyzed",
    "inspected", "explored", "studied", "compared", "tried", "attempted", "stopped", "paused", "halted", "decided",
    "declined", "refused", "refrained", "abstained", "skipped", "avoided", "wanted", "needed", "hoped", "noticed",
    "noted", "realised", "realized", "concluded", "reverted", "restored", "traced", "verified", "assumed",
    "guessed", "wondered", "asked", "waited", "postponed", "listed", "opened", "scanned", "walked", "watched",
    "worked", "reported", "confirmed", "proved", "showed", "explained", "described", "outlined", "sketched",
    "drafted", "summarised", "summarized", "collected", "identified", "narrowed", "discovered", "learned",
    "encountered", "preferred", "liked", "failed", "struggled", "feared", "expected", "planned", "intended",
    "promised", "proposed", "suggested", "recommended", "started", "tested", "profiled", "measured", "reproduced",
    "figured", "reached", "received", "mentioned", "supposed", "interpreted", "believed", "called", "used",
    "prepared", "marked", "required", "based", "need", "indeed", "proceed", "exceed", "speed", "feed", "embed",
    "shed", "red", "seed", "bed", "experimented", "played", "researched", "debated", "weighed", "toyed", "wrestled",
    "pondered", "tinkered", "simulated", "estimated", "calculated", "computed", "counted", "consulted", "discussed",
    "contacted", "raised", "flagged", "debugged", "browsed", "skimmed", "revisited", "doubted", "allowed",
    "permitted", "authorized", "authorised", "concerned", "convinced", "scared", "worried", "puzzled", "surprised",
    "blocked", "agreed", "ended", "arrived", "turned", "referred", "demonstrated", "derived", "deduced", "inferred",
    "followed", "stepped", "focused", "related", "detailed", "requested", "attached", "stated", "mixed", "nested",
    "limited", "unrelated", "argued", "admitted", "acknowledged", "apologized", "apologised", "hesitated",
    "contemplated",
})  # fmt: skip
_ADVERBS = r"(?:(?:also|now|just|already|then|went ahead and|successfully|therefore|simply|finally|only) )*"
_FIRST_PERSON = re.compile(
    rf"\b(?:I|we)(?:'ve| have)? {_ADVERBS}(?P<verb>\w+ed|{_MADE})\b(?! (?:no|nothing|not|none)\b)", re.IGNORECASE
)
#: A sentence or a list item that begins with what was done.
_ELLIPTIC = re.compile(
    r"^\W*(?:THOUGHT: ?)?(?P<verb>Done|Finished|Wrote|Built|Made|Rewrote|[A-Z][a-z-]+ed)\b(?! (?:no|nothing)\b)"
)
_PARTICIPLE = re.compile(r"^\W*[A-Z]\w+ed\b[^,;:]{0,40}, (?:it|this|that|the|they|you|we)\b")
_PASSIVE = re.compile(r"\b(?:has|have) (?:\w+ )?been (?:\w+ly )?(?P<verb>\w+ed|written|built|made|put|set)\b", re.I)
_STATE = re.compile(
    r"\b(?:is|are) (?:now )?(?:set up|done|complete|completed|finished|ready|in place|implemented|live|fixed|working|"
    r"covered|all in|up and running)\b|\b(?:all|\d+|existing|new|the) (?:\w+ ){0,2}tests? (?:\w+ )?pass(?:es)?\b|"
    r"\ball (?:are )?green\b|\bworks (?:now|as expected|offline|fine)\b|\beverything (?:works|you asked)|"
    r"\btask (?:is )?complete\b|\b\d+ passed\b|"
    r"(?:\b\d+|^\W*\w+) (?:\w+ ){0,3}(?:added|removed|updated|changed|implemented|fixed|adjusted|adapted|replaced)\b"
    r"(?! (?:no|nothing)\b)",
    re.IGNORECASE,
)
#: What the product does now.
_DOES_NOW = re.compile(
    r"(?<!\bright )\b(?:is|are|has|have|can|does|will) now\b|(?<!right )\bnow (?:\w+ly )?(?!is\b|was\b)\w+s\b",
    re.IGNORECASE,
)
_NOW = re.compile(
    r"(?<!\bright )(?<!\bfor )(?<!\buntil )(?<!\bby )(?<!\bjust )\bnow\b(?! that\b)(?!,? (?:I|we|you)\b)", re.IGNORECASE
)
_NEGATION = re.compile(r"\b(?:not|no|never|nothing|none|neither|nobody|without|cannot)\b|n't\b", re.IGNORECASE)
_UNREAL = re.compile(
    r"\b(?:if|once|until|unless|when|whether|would|could|should|may|might|before|after|as soon as)\b", re.IGNORECASE
)
_CLAUSE = re.compile(r"[,;:.()]|\bbut\b|\band\b")

#: What tells of something that was made; the other signs may tell how things are.
_DEEDS = (_FIRST_PERSON, _ELLIPTIC, _DOES_NOW)

_ASSUMES = re.compile(
    r"\b(?:I|we)(?:'ve| have|'ll| will|'d)? (?:\w+ )?(?:assum\w+|take it|took\b.{1,60}\b(?:to mean|as|for)\b|took it|"
    r"suppos\w+|interpret\w*|understood|went (?:with|for|ahead)|read (?:it|this|that|the request) as|chose|picked|"
    r"opted for|settled on)|\bassuming\b|\b(?:interpreted|understood|taken|read) (?:as|to mean)\b",
    re.IGNORECASE,
)


def claims(text: str) -> list[str]:
    """Return the sentences of a message that say what was made, or what the product does now.

    >>> claims("I've added a cache. I looked at `a.py`. Nothing has been changed. It now accepts dates.")
    ["I've added a cache.", 'It now accepts dates.']
    """
    return [each for each in sentences(text) if _is_claim(own_words(each), (*_DEEDS, _STATE, _PASSIVE))]


def claims_deeds(text: str) -> bool:
    """Return whether a message says what its author made, or what the product does now, and not only how things are.

    >>> claims_deeds("I added a cache."), claims_deeds("The reference is complete, the tutorial is outdated.")
    (True, False)
    """
    return any(_is_claim(own_words(each), _DEEDS) for each in sentences(text))


def assumes(text: str) -> bool:
    """Return whether a message says which meaning was taken for granted.

    >>> assumes("I took 'report' to mean the weekly one."), assumes("What do you mean?")
    (True, False)
    """
    return any(_ASSUMES.search(own_words(each)) for each in sentences(text))


def _is_claim(sentence: str, patterns: Sequence[re.Pattern[str]]) -> bool:
    if sentence.rstrip().endswith("?"):
        return False
    for pattern in patterns:
        for match in pattern.finditer(sentence):
            verb = match["verb"].lower() if "verb" in pattern.groupindex else ""
            if pattern is _ELLIPTIC and (_UNREAL.search(sentence) or _PARTICIPLE.search(sentence)):
                continue  # As in "Aligned columns would break it" and "Scaled to fit, it leaves a border".
            clause = _CLAUSE.split(sentence[: match.start()])[-1] + match[0]
            if verb not in _MAKES_NOTHING and not _NEGATION.search(clause) and not _UNREAL.search(clause):
                return True
    return _NOW.search(sentence) is not None and not _NEGATION.search(sentence) and not _UNREAL.search(sentence)
