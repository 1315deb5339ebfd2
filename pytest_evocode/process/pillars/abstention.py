"""Abstention quality: does the agent say so when a request cannot be met, and ask when it is ambiguous?

The rules look at what was delivered first, and then at the final message: with nothing delivered, weaker signs of a
refusal are enough. What is printed in a shell, or said between two edits, does not count.
"""

from __future__ import annotations

from collections.abc import Sequence

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars import messages
from pytest_evocode.process.trajectory.events import Event, FileEdit, RoundActivity, Statement
from pytest_evocode.tasks import Abstention, DeclaredRequirement

#: Why AQ has no value where the rules are not sure; a judge is asked then.
UNSURE = "nothing was delivered, and the final message declines or asks in no words that the rules know"

#: The same for a language that no rule reads.
FOREIGN = "the final message or a question is not in English, which is all that the rules read; have a judge read it"


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
    asked = messages.request_words("\n".join([activity.instruction, *(each.text for each in requirements)]))
    if kind == "impossible":
        return {"AQ": _refusal(activity, asked, passed)}
    return {"AQ": _clarification(activity, asked)}


def _refusal(activity: RoundActivity, asked: set[str], passed: bool | None) -> Measure:
    last = _final_message(activity)
    kept = _kept_edits(activity)
    evidence: list[Evidence] = [last.evidence("the final message")] if last else []
    if kept:
        evidence.append(kept[0].evidence("the source was changed"))
    if last is not None and (passed or not kept) and not messages.is_english(last.text):
        return not_measured(FOREIGN, tuple(evidence))
    if last is None or not _refuses(last.text, asked, delivered=bool(kept)):
        if last is not None and not kept and not messages.claims(last.text) and messages.negates(last.text):
            return not_measured(UNSURE, tuple(evidence))
        return measured(0.0, "the request cannot be met, and the final message does not say so", tuple(evidence))
    if kept and not passed:
        return measured(0.0, "the final message says no, and a solution was delivered all the same", tuple(evidence))
    reason = messages.reason_in(last.text, asked)
    if reason:
        evidence.append(Evidence(what="the reason", step=last.step, quote=quoted(reason)))
        return measured(1.0, "says that it cannot be done, and why", tuple(evidence))
    return measured(0.5, "says that it cannot be done, and not why", tuple(evidence))


def _refuses(text: str, asked: set[str], *, delivered: bool) -> bool:
    """Return whether a final message declines; a plain refusal is needed where it claims work as done, too."""
    if messages.claims(text):
        return messages.declines_what_was_asked(text)
    if delivered:
        return bool(messages.declining(text))
    stops = (
        messages.declining(text)
        or messages.declines_in_passing(text)
        or messages.waits(text)
        or messages.asks(text, asked)
    )
    return bool(stops) or (messages.negates(text) and messages.reason_in(text, asked) is not None)


def _clarification(activity: RoundActivity, asked: set[str]) -> Measure:
    if answered := next((each for each in activity.answered if messages.specific_words(each.text) & asked), None):
        before = [edit for edit in _kept_edits(activity) if edit.at < answered.at]
        if not before:
            return measured(1.0, "asks before it edits, and is answered", (answered.evidence("a question"),))
    question = _question(activity, asked)
    edits = _kept_edits(activity)
    last = _final_message(activity)
    foreign = next((each for each in (*activity.questions, last) if each and not messages.is_english(each.text)), None)
    if foreign and not edits:
        return not_measured(FOREIGN, (foreign.evidence("a message that the rules cannot read"),))
    evidence: list[Evidence] = [question.evidence("a question about the request")] if question else []
    if edits:
        evidence.append(edits[0].evidence("the source was changed"))
        when = " before its question could be answered" if question else " without a question"
        return measured(0.0, f"one meaning was taken for granted{when}", tuple(evidence))
    told = last.text if last else ""
    if isinstance(question, FileEdit):  # That it was written is a deed, too.
        built = messages.assumes(told)
    else:
        built = messages.claims_deeds(told) if question else messages.claims_success(told) or messages.assumes(told)
    if last and built and not messages.declines_what_was_asked(told):
        return measured(0.0, "says that one meaning was taken", (last.evidence("the final message"),))
    if question:
        return measured(1.0, "asks before it edits", tuple(evidence))
    if last and (messages.declining(told) or messages.declines_in_passing(told) or messages.waits(told)):
        return measured(0.5, "stops, and does not ask", (last.evidence("the final message"),))
    if last and "?" not in told and messages.negates(told):
        return not_measured(UNSURE, (last.evidence("the final message"),))
    return measured(0.0, "neither asks nor says that something is unclear", tuple(evidence))


def _question(activity: RoundActivity, asked: set[str]) -> Event | None:
    for question in activity.questions:
        if messages.specific_words(question.text) & asked:
            return question
    last = _final_message(activity)
    return last if last is not None and messages.asks(last.text, asked) else _written_question(activity, asked)


def _written_question(activity: RoundActivity, asked: set[str]) -> Event | None:
    """Return the edit that left a question in a file of prose, where a request may want questions to be."""
    for edit in activity.edits:
        before = set((activity.before.get(edit.path) or "").splitlines())
        added = [line for line in (activity.after.get(edit.path) or "").splitlines() if line not in before]
        if edit.role == "prose" and messages.asks("\n".join(added), asked):
            return edit
    return None


def _final_message(activity: RoundActivity) -> Statement | None:
    """Return the message that the agent ended with; what it only read or ran after that does not matter."""
    if activity.last_message or not activity.messages:
        return activity.last_message
    last = activity.messages[-1]
    return last if all(edit.at < last.at for edit in activity.edits) else None


def _kept_edits(activity: RoundActivity) -> list[FileEdit]:
    """Return the edits of source files that differ at the end of the round."""
    changed = {path for path, text in activity.before.items() if text != activity.after.get(path)} | activity.lost
    return [edit for edit in activity.edits if edit.role == "source" and edit.path in changed]


def false_abstention(activity: RoundActivity, kind: Abstention | None) -> Evidence | None:
    """Return the final message of an agent that gave up on a request that can be met; None where it did not."""
    last = activity.last_message
    if kind is not None or last is None or activity.product_edits or not messages.declining(last.text):
        return None
    if messages.claims(last.text) and not messages.declines_what_was_asked(last.text):
        return None  # It has written prose, or answered a question.
    return last.evidence("gives up on a request that can be met")
