"""Read an agent's message: what it claims as done, what it asks, what it declines and why.

A sentence declines *plainly* or *in passing*. The plain ones say of the request that it cannot be met, or of their
author that something is not done. Those in passing only say that something cannot be, excludes something or would
take something: they decline if nothing was delivered, and may be about the product's behaviour if something was. What
is quoted declines nothing, nor does what the same sentence takes back.

A question may stand without a question mark: "please tell me which", "I need to know whether".
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from collections.abc import Set as AbstractSet

from pytest_evocode.process.rules import MESSAGES, PLANS

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9]*")
_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")


def specific_words(text: str) -> set[str]:
    """Return the specific words of a text in lower case and without endings; names are split into their words.

    >>> sorted(specific_words("Implement parse_amount() so that negative amounts in brackets are read"))
    ['amount', 'bracket', 'negative', 'parse']
    """
    found = set()
    for match in _WORD.finditer(_CAMEL.sub(" ", text.replace("_", " "))):
        word = match[0].lower()
        if len(word) > 2 and word not in PLANS.words["stop_words"]:
            found.add(_stem(word))
    return found - PLANS.words["stop_words"]


def _stem(word: str) -> str:
    for ending, shortest in (("ies", 6), ("sses", 7), ("ing", 7), ("ed", 6), ("es", 6), ("s", 4)):
        if word.endswith(ending) and len(word) >= shortest and not word.endswith("ss"):
            return word[: -len(ending)] + ("y" if ending == "ies" else "")
    return word


#: More than this share of the words of a text in English are among the most common ones, and in no other language.
ENGLISH = 0.1


def is_english(text: str) -> bool:
    """Return whether a text is in English, the only language that the rules for messages read.

    Detectors of languages are no help here: they are unsure of a message of one sentence, and take seconds to load.

    >>> is_english("Done."), is_english("Das geht nicht: ein Byte hat nur 256 Werte."), is_english("`a.py`")
    (True, False, True)
    """
    words = re.findall(r"[^\W\d_]+", " ".join(own_words(each).replace("NAME", "") for each in sentences(text)).lower())
    common = (PLANS.words["stop_words"] | MESSAGES.words["common"]) - MESSAGES.words["elsewhere"]
    return not words or sum(word in common for word in words) > ENGLISH * len(words)


#: Two words of at least this length that begin alike are the same word: `verify` and `verifiable`.
COMMON_STEM = 4

#: Most characters of a sentence. A longer line is no sentence; rules would be asked of its parts for minutes.
_LONGEST = 1000


def sentences(text: str) -> list[str]:
    """Return the sentences and lines of a text, without blocks of code and quoted lines.

    >>> sentences("I stopped. Why? **See below**:")
    ['I stopped.', 'Why?', 'See below:']
    """
    plain = MESSAGES["emphasis"].sub("", MESSAGES["blocks"].sub("\n", text.replace("\u2019", "'")))
    plain = "\n" + re.sub(r"\n[^\S\n]+", "\n", plain.strip())
    found = [sentence for sentence in MESSAGES["end"].split(plain) if sentence and sentence.strip()]
    return [each[start : start + _LONGEST] for each in found for start in range(0, len(each), _LONGEST)]


def own_words(sentence: str) -> str:
    """Return a sentence without what it quotes, and with contractions written out; code in it becomes the word NAME.

    >>> own_words("The 'conflict' is in `a.py`, we've left it, dont ask.")
    "The 'conflict' is in NAME, we have left it, do not ask."
    """
    plain = MESSAGES["quotes"].sub(" ", MESSAGES["code"].sub("NAME", sentence))
    for whole, contractions in MESSAGES.tables["contractions"].items():
        for contraction in contractions:
            plain = re.sub(rf"\b{contraction}\b", whole, plain, flags=re.IGNORECASE)
    return plain


def negates(text: str) -> bool:
    """Return whether a text denies anything: one that does not can decline nothing.

    >>> negates("The list is sorted by name."), negates("There is no such list.")
    (False, True)
    """
    return any(MESSAGES.find(own_words(each), "denies") for each in sentences(text))


def request_words(text: str) -> set[str]:
    """Return the specific words of a request and its numbers.

    >>> sorted(request_words("At most 64 bytes"))
    ['64', 'byte']
    """
    return specific_words(text) | set(MESSAGES["number"].findall(text))


def shared_words(text: str, asked: AbstractSet[str]) -> set[str]:
    """Return the specific words of the request that a text uses, in whatever form.

    >>> sorted(shared_words("It has to be verified by a server.", {"verifiable", "server", "secret"}))
    ['server', 'verifiable']
    """
    words = request_words(text)
    stems = {word[:COMMON_STEM] for word in words if len(word) >= COMMON_STEM}
    return {word for word in asked if word in words or (len(word) >= COMMON_STEM and word[:COMMON_STEM] in stems)}


#: The rules for what tells of something that was made; the other signs may tell how things are.
_DEEDS = ("first_person", "elliptic", "does_now")


def claims(text: str) -> list[str]:
    """Return the sentences of a message that say what was made, or what the product does now.

    >>> claims("I've added a cache. I looked at `a.py`. Nothing has been changed. It now accepts dates.")
    ["I've added a cache.", 'It now accepts dates.']
    """
    return [each for each in sentences(text) if _is_claim(own_words(each), (*_DEEDS, "state", "passive"))]


#: Most sentences of a message that only says how things are now; a longer one is a report on what was there.
SHORT_MESSAGE = 4


def claims_success(text: str) -> bool:
    """Return whether a final message says that something is done or works.

    Who ends with plain statements, and with no question, doubt, denial or intention, says how things are now.

    >>> claims_success("Sums are exact, from the file to the report."), claims_success("Let me look at the sums.")
    (True, False)
    """
    if claims(text):
        return True
    # "A list that cannot be read prints nothing" denies nothing of its author.
    every = [MESSAGES["relative"].sub("", own_words(each)) for each in sentences(text)]
    not_so = any(
        MESSAGES.find(own, "direct", "indirect", "waits", "doubts", "denies", "declines", "stands_still", "hints")
        or MESSAGES.find(own, "falls_short")
        or PLANS.find(own, "intent")
        for own in every
    )
    return 0 < len(every) <= SHORT_MESSAGE and not not_so and not assumes(text)


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
    return any(MESSAGES.find(own_words(each), "assumes") for each in sentences(text))


def _is_claim(sentence: str, rules: Sequence[str]) -> bool:
    if sentence.rstrip().endswith("?"):
        return False
    for rule in rules:
        for match in MESSAGES[rule].finditer(sentence):
            verb = match.groupdict().get("verb", "").lower()
            if rule == "elliptic" and MESSAGES.find(sentence, "unreal", "participle"):
                continue  # As in "Aligned columns would break it" and "Scaled to fit, it leaves a border".
            # A condition that stands farther off is about something else.
            clause = " ".join([*MESSAGES["clause"].split(sentence[: match.start()])[-1].split()[-6:], match[0]])
            if verb not in MESSAGES.words["makes_nothing"] and not MESSAGES.find(clause, "negation", "unreal"):
                return True
    return MESSAGES.find(sentence, "now") and not MESSAGES.find(sentence, "negation", "unreal")


def asks(text: str, asked: AbstractSet[str]) -> bool | None:
    """Return whether a message puts a question about the request; None where the rules cannot read it.

    Another language is known by the question mark only. Its last sentence may be an offer of more work; a question
    that something is told about is none.

    >>> asks("Which format should the export have?", {"export"}), asks("Is there anything else?", {"export"})
    (True, False)
    >>> asks("Ist das brutto oder netto? Davon hängt es ab.", {"export"}), asks("Fertig. Soll ich aufräumen?", set())
    (True, None)
    """
    every = sentences(text)
    elsewhere = not is_english(text)
    offers = ("courtesy", "offers") if claims_success(_told(every)) else ("courtesy",)  # After the work.
    for number, sentence in enumerate(every):
        own = own_words(sentence)
        if not MESSAGES.find(own, "direct", "indirect") or MESSAGES.find(own, *offers):
            continue
        if elsewhere:
            return True if every[number + 1 :] else None
        if MESSAGES.find(own, "content", "indirect") or shared_words(sentence, asked):
            return True
    return False


def _told(every: Sequence[str]) -> str:
    """Return what a message says beside its questions."""
    return "\n".join(each for each in every if not MESSAGES.find(own_words(each), "direct"))


def waits(text: str) -> bool:
    """Return whether a message says that something is unclear, or that its author waits for an answer.

    >>> waits("I am holding off until the goal is clear."), waits("Done.")
    (True, False)
    """
    return any(MESSAGES.find(own, "waits", "indirect") for own in map(own_words, sentences(text)))


#: Least number of words and numbers of the request or its requirements in a reason.
REASON_WORDS = 2
#: Length of an explanation for which one such word is enough.
EXPLANATION_WORDS = 15


def declining(text: str) -> list[str]:
    """Return the sentences of a text that plainly decline something, and do not take that back.

    >>> declining("I have left the code as it was. This is not impossible.")
    ['I have left the code as it was.']
    """
    return [each for each in sentences(text) if _says(own_words(each), "declines", "stands_still")]


def declines_in_passing(text: str) -> list[str]:
    """Return the sentences of a text that decline in passing, and do not take that back.

    >>> declines_in_passing("A field of one byte has no way to hold 300 values.")
    ['A field of one byte has no way to hold 300 values.']
    """
    return [each for each in sentences(text) if _says(own_words(each), "hints")]


def declines_what_was_asked(text: str) -> bool:
    """Return whether a text that also claims work as done declines all the same: nothing at all, or not as requested.

    >>> declines_what_was_asked("I added a note. The requirements contradict each other, so I changed no code.")
    True
    >>> declines_what_was_asked("I added sessions. It is impossible to read notes without one.")
    False
    """
    for sentence in map(own_words, sentences(text)):
        still = MESSAGES.find(sentence, "at_all") and not MESSAGES.find(sentence, "not_needed")
        if still and _says(sentence, "stands_still"):
            return True
        if MESSAGES.find(sentence, "of_the_request") and _says(sentence, "declines"):
            return True
    return False


def gives_up(text: str) -> bool:
    """Return whether a final message says that the request, or a part of it, is not done.

    Who asks the user instead of that, with a question mark, has not given up.

    >>> gives_up("I left the code as it was."), gives_up("I left the code as it was. Which of the two is it?")
    (True, False)
    """
    if any(
        MESSAGES.find(own, "direct") and not MESSAGES.find(own, "courtesy") for own in map(own_words, sentences(text))
    ):
        return False
    return declines_what_was_asked(text) if claims(text) else bool(declining(text))


def doubts(text: str) -> bool:
    """Return whether a message says that something of its own was not verified, or may be otherwise.

    >>> doubts("Done. I could not run the tests."), doubts("Done. All tests pass.")
    (True, False)
    """
    every = [own_words(each) for each in sentences(text)]
    return assumes(text) or any(MESSAGES.find(own, "doubts") and not MESSAGES.find(own, "direct") for own in every)


def _says(sentence: str, *rules: str) -> bool:
    """Return whether a sentence says what one of some rules finds, and does not take it back."""
    return MESSAGES.find(sentence, *rules) and not MESSAGES.find(sentence, "taken_back")


def reason_in(text: str, asked: AbstractSet[str]) -> str | None:
    """Return the sentences that give a reason in the task's own words; None where none do.

    A refusal that only repeats what was asked for gives no reason, nor does one that says that nothing was changed.
    """
    every = [each for each in sentences(text) if not MESSAGES.find(each, "offer") and not _says_no_more(each)]
    kept = [MESSAGES["echo"].sub(" ", each) for each in every]
    told = " ".join(kept)
    shared = len(shared_words(told, asked))
    if any(MESSAGES.find(each, "reason") for each in kept) and shared >= min(REASON_WORDS, len(asked) or 1):
        return told
    # A longer explanation may use other words.
    explained = [
        each
        for each in kept
        if MESSAGES.find(each, "reason") and not _says(own_words(each), "declines", "stands_still")
    ]
    return told if shared and sum(len(each.split()) for each in explained) >= EXPLANATION_WORDS else None


def _says_no_more(sentence: str) -> bool:
    """Return whether a sentence is only about what its author did not do."""
    own = own_words(sentence)
    return MESSAGES.find(own, "stands_still") and not MESSAGES.find(own, "declines", "hints")
