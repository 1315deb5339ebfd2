"""Find the questions in a message that somebody has to answer before the work can begin, and who waits for an answer.

A question may stand without a question mark: "please tell me which", "I need to know whether".
"""

from __future__ import annotations

import re
from collections.abc import Set as AbstractSet

from pytest_evocode.process.pillars.sentences import own_words, sentences, shared_words

_DIRECT = re.compile(r"\?(?=\s|$|[)\"'`*,;:])")
#: A request for an answer.
_INDIRECT = re.compile(
    r"\b(?:please|kindly|could you|can you|would you)\b.{0,60}?\b(?:say|tell|clarify|confirm|let me know|decide|choose|"
    r"pick|advise|specify|explain|describe|indicate|provide|share|answer|give|point|state)\b|"
    r"\b(?:tell me|let me know|say|advise|confirm|specify|clarify|decide) (?:\w+ ){0,2}"
    r"(?:which|what|whether|how|who|whom|when|where|if)\b|"
    r"\bI(?:'d| would)? (?:\w+ )?(?:need|like|want|have)(?: \w+){0,4} (?:to know|to be sure|to understand|"
    r"to ask|to hear|from you|decisions?|answers?|clarifications?|confirmation|input|question)\b|"
    r"\bneed (?:your|a|an|some|more) (?:\w+ )?(?:decision|answer|confirmation|clarification|input|details?|"
    r"information)|"
    r"\b(?:grateful|thankful|appreciate)\b.*\b(?:clarif|answer|detail|decision)\w*|"
    r"\b(?:questions?|clarifications?)\b.*(?::|\bbefore\b)|\bI(?:'m| am) (?:asking|wondering)\b|"
    r"\b(?:do not|don't) know (?:which|what|whether|how|who)\b|^\W*(?:open )?questions?\b|"
    r"\bI(?:'d| would)? need\b[^.]*[:(]|\bI(?:'d| would)? need the\b|\bwant to know\b|\basking (?:the user|you|for)\b|"
    r"\b(?:which|what) (?:of (?:these|them|the)|one)\b.*\b(?:is (?:meant|wanted|right)|you (?:mean|want))",
    re.IGNORECASE,
)
#: What asks about the content, and not for leave to go on.
_CONTENT = re.compile(
    r"\b(?:which|what|who|whom|whose|how|when|where|whether|or|either|mean|meant|why|per|by|than|against)\b|"
    r"^\W*(?:and |so |but )?(?:can|could|would|do|did|have|will) you\b",
    re.IGNORECASE,
)
#: Questions that end a report, and ask for praise, leave or further work.
_COURTESY = re.compile(
    r"\banything else\b|\b(?:(?:shall|should|may|can) I|want me to|like me to) "
    r"(?:go on|go ahead|proceed|continue|start|commit|push)\b(?!.*\bor\b)|\bwhat you (?:meant|had in mind|wanted)\b|"
    r"\bwhat do you think\b|\b(?:any|have) (?:other )?questions\b|\bdoes (?:that|this) (?:help|work|sound|look)\b|"
    r"\bif (?:you|there)\b.*\b(?:questions?|problems?|issues?)\b|\bis (?:that|this) (?:ok|okay|fine|alright)\b|"
    r"\blet me know if (?:you(?:'d| would)? (?:like|want|need|prefer|rather)|there|anything|it|that)",
    re.IGNORECASE,
)
#: Words of somebody who waits for an answer, or finds something unclear.
_WAITS = re.compile(
    r"\b(?:cannot tell|can't tell|unclear|ambiguous|not clear|isn't (?:obvious|clear)|not (?:obvious|specified)|"
    r"wait(?:ing)? for|hold(?:ing)? off|held off|need to know|two (?:readings|meanings|ways|interpretations)|"
    r"not enough information|could mean|can be read|could be (?:a lot|many|several)|many ways|several (?:meanings|"
    r"readings|ways|of them)|under-?specified|unspecified|vague|left open|open question|don't want to guess|"
    r"dont want to guess|not sure (?:what|I understand)|enough to go on|I(?:'d| would)? need\b|(?:is|are) unknown|"
    r"without knowing|until (?:you|the|this|that|it)\b.*\b(?:clear|answer\w*|decid\w+|tell|told|say)|"
    r"before I (?:\w+ )?(?:edit|change|build|write|start|implement|touch|begin|run|proceed|do))\b",
    re.IGNORECASE,
)


def asks(text: str, asked: AbstractSet[str]) -> bool:
    """Return whether a message puts a question about the request.

    >>> asks("Which format should the export have?", {"export"}), asks("Is there anything else?", {"export"})
    (True, False)
    """
    every = sentences(text)
    for number, sentence in enumerate(every):
        own = own_words(sentence)
        if not (_DIRECT.search(sentence) or _INDIRECT.search(own)) or _COURTESY.search(own):
            continue
        if any(pattern.search(own) for pattern in (_CONTENT, _INDIRECT)) or shared_words(sentence, asked):
            return True
        if _lists(every[number + 1 :]):  # Of what is asked for.
            return True
    return False


def _lists(following: list[str]) -> bool:
    return len(following) >= 2 and all(re.match(r"\s*(?:[-*\u2022]|\(?\w{1,2}[.)])\s", each) for each in following[:2])


def waits(text: str) -> bool:
    """Return whether a message says that something is unclear, or that its author waits for an answer.

    >>> waits("I am holding off until the goal is clear."), waits("Done.")
    (True, False)
    """
    return any(_WAITS.search(own) or _INDIRECT.search(own) for own in map(own_words, sentences(text)))
