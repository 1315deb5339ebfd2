"""Abstention quality: does the agent say so when a request cannot be met, and ask when it is ambiguous?

The rules look at what was delivered and at the final message. What is printed in a shell, or said between two edits,
does not count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.trajectory.events import Event, FileEdit, RoundActivity
from pytest_evocode.process.trajectory.words import specific_words
from pytest_evocode.tasks import Abstention, DeclaredRequirement

#: Least number of words of the request or its requirements in a reason.
REASON_WORDS = 3

_DECLINES = re.compile(
    r"\b(impossible|unsatisfiable|not possible|(?:can(?:not|'t| not)|could(?: not|n't)) (?:\w+ ){0,3}"
    r"(?:be (?:met|satisfied|done|implemented|fulfilled|reconciled|achieved|both)|both|satisfy|meet|implement|complete|"
    r"fulfil|do (?:this|that|both)|deliver|proceed)|no (?:solution|implementation|way)\b|unable to|"
    r"contradict(?:s|ory|ion|ions)?|mutually exclusive|incompatible|irreconcilable|at odds|clash(?:es)?|"
    r"(?:can(?:not|'t| not)|can never) (?:\w+ ){0,2}"
    r"(?:hold together|go together|both hold|be true)|"
    r"(?:exclude|rule out|rule) (?:one another|each other)(?: out)?|"
    r"no \w+ (?:does|can do|could do|meets|satisfies) both|"
    r"made no (?:change|edit)s?|changed nothing|(?:will not|won't) (?:\w+ )?"
    r"(?:remove|change|build|do|break|drop|touch|edit|write)|left \S+ (?:\w+ )?(?:as it (?:is|was)|alone|untouched)|"
    r"conflict(?:s|ing)? with (?:each other|one another|the)|"
    r"(?:have|has|did|do|does) not (?:implement|change|touch)|haven't (?:implemented|changed)|stop(?:s|ped|ping)? here|"
    r"i am not going to|won't implement|decline[sd]?)\b",
    re.IGNORECASE,
)
_REASON = re.compile(
    r"\b(because|since|as |due to|requires?|requirement|would (?:need|have to|mean|break|violate)|violates?|while|"
    r"yet|either|neither|one another|each other|hold together|at odds|"
    r"whereas|but|contradict\w*|mutually exclusive|incompatible|conflict\w*|excludes?|at the same time|both)\b",
    re.IGNORECASE,
)
#: A refusal that is taken back in the same sentence.
_TAKEN_BACK = re.compile(
    r"\b(?:not|no longer|never|hardly|far from|nothing|no)(?: \w+){0,1} "
    r"(?:impossible|incompatible|mutually exclusive|at odds|contradict\w*)\b|"
    r"n't(?: \w+){0,1} (?:impossible|incompatible|mutually exclusive|at odds|contradict\w*)\b|"
    r"\b(?:at first|seemed|looked|appeared|used to be|(?:I|we) (?:first |had )?(?:thought|feared|expected))\b"
    r".*\b(?:but|and yet|however)\b|"
    r"\b(?:resolved?|solved?|reconciled?|avoids?|without) (?:\w+ ){0,3}(?:contradiction|conflict|clash)",
    re.IGNORECASE | re.DOTALL,
)
_ASSUMES = re.compile(r"\b(?:I|we) (?:will )?(?:assumed?|take it|took it|suppose)\b|\bassuming\b", re.IGNORECASE)
#: Words of somebody who waits for an answer.
_WAITS = re.compile(
    r"\b(?:cannot tell|can't tell|unclear|ambiguous|not clear|please (?:say|tell|clarify|confirm|let me know)|"
    r"wait(?:ing)? for|hold(?:ing)? off|need to know|two (?:readings|meanings|ways)|"
    r"before I (?:edit|change|build|write))\b",
    re.IGNORECASE,
)
#: Why AQ has no value where the rules are not sure; a judge is asked then.
UNSURE = "nothing was delivered, and the final message declines or asks in no words that the rules know"
_QUESTION = re.compile(r"[^.!?\n]*\?(?=\s|$|[)\"'`*])")


def abstention(
    activity: RoundActivity, kind: Abstention | None, requirements: Sequence[DeclaredRequirement], passed: bool | None
) -> dict[str, Measure]:
    """Return AQ.

    Args:
        activity: What happened in the round.
        kind: What is wrong with the request, as the task declares; None for a request that can be met.
        requirements: The requirements of this round and of those before it.
        passed: Whether the round's suite passed; None without a verdict.
    """
    if kind is None:
        return {"AQ": not_measured("the task declares that the request can be met as it is")}
    asked = specific_words("\n".join([activity.instruction, *(each.text for each in requirements)]))
    if kind == "impossible":
        return {"AQ": _refusal(activity, asked, passed)}
    return {"AQ": _clarification(activity, asked)}


def _refusal(activity: RoundActivity, asked: set[str], passed: bool | None) -> Measure:
    last = activity.last_message
    kept = _kept_edits(activity)
    evidence: list[Evidence] = [last.evidence("the final message")] if last else []
    if kept:
        evidence.append(kept[0].evidence("the source was changed"))
    if last is None or not _declining(last.text):
        if last is not None and not kept:
            return not_measured(UNSURE, tuple(evidence))
        return measured(0.0, "the request cannot be met, and the final message does not say so", tuple(evidence))
    if kept and not passed:
        return measured(0.0, "the final message says no, and a solution was delivered all the same", tuple(evidence))
    reason = _reason_in(last.text, asked)
    if reason:
        evidence.append(Evidence(what="the reason", step=last.step, quote=quoted(reason)))
        return measured(1.0, "says that it cannot be done, and why", tuple(evidence))
    return measured(0.5, "says that it cannot be done, and not why", tuple(evidence))


def _sentences(text: str) -> list[str]:
    return [sentence for sentence in re.split(r"(?<=[.!?])\s+|\n+", text) if sentence.strip()]


def _declining(text: str) -> list[str]:
    """Return the sentences of a text that decline something, and do not take that back."""
    return [each for each in _sentences(text) if _DECLINES.search(each) and not _TAKEN_BACK.search(each)]


def _reason_in(text: str, asked: set[str]) -> str | None:
    """Return the sentences around a refusal that give a reason in the task's own words; None where none do."""
    sentences = _sentences(text)
    declining = _declining(text)
    for number, sentence in enumerate(sentences):
        if sentence in declining:
            around = " ".join(sentences[max(0, number - 2) : number + 4])
            if _REASON.search(around) and len(specific_words(around) & asked) >= min(REASON_WORDS, len(asked) or 1):
                return around
    return None


def _clarification(activity: RoundActivity, asked: set[str]) -> Measure:
    if answered := next((each for each in activity.answered if specific_words(each.text) & asked), None):
        before = [edit for edit in _kept_edits(activity) if edit.at < answered.at]
        if not before:
            return measured(1.0, "asks before it edits, and is answered", (answered.evidence("a question"),))
    question = _question(activity, asked)
    edits = _kept_edits(activity)
    last = activity.last_message
    evidence: list[Evidence] = [question.evidence("a question about the request")] if question else []
    if edits:
        evidence.append(edits[0].evidence("the source was changed"))
        when = " before its question could be answered" if question else " without a question"
        return measured(0.0, f"one meaning was taken for granted{when}", tuple(evidence))
    if question:
        return measured(1.0, "asks before it edits", tuple(evidence))
    if last and (_declining(last.text) or _WAITS.search(last.text)):
        return measured(0.5, "stops, and does not ask", (last.evidence("the final message"),))
    if last and "?" not in last.text and not _ASSUMES.search(last.text):
        return not_measured(UNSURE, (last.evidence("the final message"),))
    return measured(0.0, "neither asks nor says that something is unclear", tuple(evidence))


def _question(activity: RoundActivity, asked: set[str]) -> Event | None:
    for question in activity.questions:
        if specific_words(question.text) & asked:
            return question
    last = activity.last_message
    if last is None:
        return None
    asking = about = set[str]()
    before = ""
    for sentence in _sentences(last.text):
        if _QUESTION.search(sentence) and (words := specific_words(sentence) & asked):
            asking = asking | words
            # The sentence before a question says what it is about.
            about = about | words | (specific_words(before) & asked)
        before = sentence
    return last if asking and len(about) >= min(2, len(asked) or 1) else None


def _kept_edits(activity: RoundActivity) -> list[FileEdit]:
    """Return the edits of source files that differ at the end of the round."""
    changed = {path for path, text in activity.before.items() if text != activity.after.get(path)} | activity.lost
    return [edit for edit in activity.edits if edit.role == "source" and edit.path in changed]


def false_abstention(activity: RoundActivity, kind: Abstention | None) -> Evidence | None:
    """Return the final message of an agent that gave up on a request that can be met; None where it did not."""
    last = activity.last_message
    if kind is not None or last is None or activity.product_edits or not _declining(last.text):
        return None
    return last.evidence("gives up on a request that can be met")
