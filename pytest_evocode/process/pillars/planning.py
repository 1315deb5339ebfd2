"""Planning fidelity: was there a plan before the first edit, how good was it, and was it followed?"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt
from typing import Literal

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars.claims import claims
from pytest_evocode.process.pillars.copied_words import says_again, uncopied
from pytest_evocode.process.pillars.plan_steps import FILE_PATH, RUNS_TESTS, PlanStep, names_in, plan_steps
from pytest_evocode.process.trajectory.events import Event, FileEdit, RoundActivity
from pytest_evocode.process.trajectory.text_changes import hunks_between
from pytest_evocode.process.trajectory.words import specific_words

PlanForm = Literal["document", "tool", "message"]

#: Least number of non-blank characters in a plan (RigorBench).
LEAST_CHARACTERS = 50
#: Least number of words that a plan shares with the request; fewer where the request has fewer.
LEAST_WORDS = 3
#: Least number of steps that act on something.
LEAST_STEPS = 2
#: Least number of the request's words in a step that names no file, function or command.
WORDS_OF_STEP = 2

_CREATED = {"document": 1.0, "tool": 1.0, "message": 0.5}
_SHOWN = {"document": "a plan in a document of its own", "tool": "a plan in a list", "message": "a plan in a message"}


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A text that is a plan for the round."""

    event: Event
    form: PlanForm
    text: str
    shared: tuple[str, ...]
    """Words that the plan and the request share."""
    steps: tuple[PlanStep, ...]
    """The steps that act on something, in order."""


def planning(activity: RoundActivity) -> dict[str, Measure]:
    """Return PAC, DQ and PEA."""
    plan = find_plan(activity)
    if plan is None:
        first = activity.first_source_edit
        evidence = (first.evidence("the first edit of the source"),) if first else ()
        return {
            "PAC": measured(0.0, "no plan of the task before the first edit of the source", evidence),
            "DQ": measured(0.0, "no plan"),
            "PEA": not_measured("no plan"),
        }
    shared = Evidence(what="words it shares with the request", quote=quoted(", ".join(plan.shared)))
    quality, why = decomposition(plan, names_of_work(activity))
    return {
        "PAC": measured(_CREATED[plan.form], _SHOWN[plan.form], (plan.event.evidence(_SHOWN[plan.form]), shared)),
        "DQ": measured(quality, why, (Evidence(what=why, step=plan.event.step, quote=quoted(plan.text)),)),
        "PEA": _alignment(plan, activity),
    }


def _alignment(plan: FoundPlan, activity: RoundActivity) -> Measure:
    steps = plan.steps
    matches: list[Event | None] = []
    for step in steps:
        # Who runs the tests after every edit follows a plan that ends with a run of the tests.
        done = max((match.at for match in matches if match is not None), default=plan.event.at)
        matches.append(_first_match(step, activity, plan.event.at, done))
    pairs = [(number, match) for number, match in enumerate(matches) if match is not None]
    evidence = tuple(match.evidence(f"step {number + 1} of the plan: {steps[number].text}") for number, match in pairs)
    if len(pairs) < 2:
        return not_measured(f"{len(pairs)} of {len(steps)} steps of the plan can be found in what was done", evidence)
    tau = kendall_tau_b([number for number, _ in pairs], [match.at for _, match in pairs])
    if tau is None:
        return not_measured("all steps of the plan that can be found were done at once", evidence)
    return measured((tau + 1) / 2, f"tau-b = {tau:.3f} over {len(pairs)} of {len(steps)} steps", evidence)


def _first_match(step: PlanStep, activity: RoundActivity, after: int, done: int) -> Event | None:
    """Return the first thing that the agent did after the plan that the step is about.

    Of test runs it is the first since ``done``, when the steps before this one had begun.
    """
    looking = step.looks
    found: list[Event] = []
    for name in step.names:
        if name == "run tests" or RUNS_TESTS.search(name):
            found += [run for run in activity.runs if run.purpose == "test" and run.at >= done and run.at > after][:1]
        elif looking and FILE_PATH.fullmatch(name):
            found += [read for read in activity.reads if _is_path(name, read.path) and read.at > after][:1]
        elif FILE_PATH.fullmatch(name):
            found += [edit for edit in activity.edits if _is_path(name, edit.path) and edit.at > after][:1]
        else:
            word = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
            found += [edit for edit in activity.edits if edit.at > after and _writes(edit, word)][:1]
            found += [run for run in activity.runs if run.at > after and word.search(run.key)][:1]
    # A step that names several things has begun once the agent has turned to the last of them.
    if found:
        return max(found, key=lambda event: event.at)
    return _by_words(step, activity, after) if not step.names else None


def _by_words(step: PlanStep, activity: RoundActivity, after: int) -> Event | None:
    words = specific_words(step.text)
    for edit in activity.edits:
        if edit.at > after and edit.of_product:
            written = specific_words(f"{edit.path} " + "".join(line for hunk in edit.hunks for line in hunk.added))
            if len(words & written) >= 2:
                return edit
    return None


def _is_path(name: str, path: str) -> bool:
    return path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}")


def _writes(edit: FileEdit, word: re.Pattern[str]) -> bool:
    return edit.of_product and any(word.search(line) for hunk in edit.hunks for line in (*hunk.added, *hunk.removed))


def find_plan(activity: RoundActivity) -> FoundPlan | None:
    """Return the plan made before the first edit of the source: a document, else a tool's list, else a message.

    A file is no plan because of its name alone, nor is a text that says nothing about the task.
    """
    first = activity.first_source_edit
    until = first.at if first is not None else inf

    def before(event: Event) -> bool:
        return event.at < until

    documents: dict[str, FileEdit] = {
        edit.path: edit for edit in activity.edits if edit.role == "prose" and edit.after and before(edit)
    }
    asked_for = {path for path in documents if posixpath.basename(path) in activity.instruction}
    texts: list[tuple[Event, PlanForm, str]] = [
        (edit, "document", _new_text(edit, activity.before.get(path)))
        for path, edit in documents.items()
        if path not in asked_for
    ]
    texts += [(plan, "tool", plan.text) for plan in activity.plans if before(plan)]
    texts += [(message, "message", message.text) for message in activity.messages if before(message)]
    candidates = [found for event, form, text in texts if (found := _as_plan(activity, event, form, text))]
    order = {"document": 0, "tool": 1, "message": 2}
    return min(candidates, key=lambda each: (order[each.form], *_rank(each)), default=None)


def _rank(plan: FoundPlan) -> tuple[int, int]:
    return -sum(step.atomic for step in plan.steps), -len(plan.steps)


def _new_text(edit: FileEdit, before: str | None) -> str:
    """Return the text of a new document, or the new lines of one that was there when the round began."""
    if before is None:
        return edit.after or ""
    return "".join(line for hunk in hunks_between(before, edit.after or "") for line in hunk.added)


def _as_plan(activity: RoundActivity, event: Event, form: PlanForm, text: str) -> FoundPlan | None:
    """Return a text as a plan: what is not copied from a request has steps that act on something named."""
    own = uncopied(text, activity.requests or (activity.instruction,))
    if form == "message":
        own = _without_reports(own)
    if len("".join(own.split())) < LEAST_CHARACTERS:
        return None
    asked = specific_words(activity.instruction)
    shared = asked & specific_words(own)
    if len(shared) < min(LEAST_WORDS, max(1, len(asked))):
        return None
    requests = activity.requests or (activity.instruction,)
    steps = tuple(
        step
        for step in plan_steps(own, is_to_do=form == "tool")
        if step.acts and _is_about(step, asked) and not says_again(step.text, requests)
    )
    changing = [step for step in steps if not step.looks and not step.runs_tests]
    if not changing or len(steps) < LEAST_STEPS:
        return None
    return FoundPlan(event, form, own, tuple(sorted(shared)), steps)


def _without_reports(text: str) -> str:
    """Return a text without the lists below a line that tells of work done: "All tests pass now:"."""
    kept: list[str] = []
    reports = False
    for line in text.splitlines():
        is_item = re.match(r"\s*(?:[-*+\u2022]|\d+[.)])\s", line) is not None
        if line.strip() and not is_item:
            reports = line.rstrip().endswith(":") and bool(claims(line))
        if not reports:
            kept.append(line)
    return "\n".join(kept)


def _is_about(step: PlanStep, asked: set[str]) -> bool:
    """Return whether a step names something, or is about the request in its own words."""
    return bool(step.names) or len(specific_words(step.text) & asked) >= WORDS_OF_STEP


def decomposition(plan: FoundPlan, known: set[str]) -> tuple[float, str]:
    """Rate how well a plan divides the work, and say why: 1/3 one block, 2/3 listed steps, 1 listed atomic steps.

    An atomic step names one file, function or command that is in ``known``; an invented name says nothing about the
    work.
    """
    steps = [step for step in plan.steps if step.listed]
    if len(steps) < LEAST_STEPS:
        return 1 / 3, "one block"
    vague = [step for step in steps if not (step.atomic and any(_is_known(name, known) for name in step.names))]
    idle = len([step for step in plan_steps(plan.text, is_to_do=plan.form == "tool") if step.listed]) - len(steps)
    if vague or idle:
        less = f", {len(vague)} of them without one thing that is there" if vague else ""
        return 2 / 3, f"{len(steps)} listed steps{less}{f', and {idle} items that are none' if idle else ''}"
    return 1.0, f"{len(steps)} listed steps, each naming one thing"


def _is_known(name: str, known: set[str]) -> bool:
    parts = {name, posixpath.basename(name), name.partition(" ")[0], name.rpartition(".")[2]}
    return name == "run tests" or RUNS_TESTS.search(name) is not None or bool(parts & known)


def names_of_work(activity: RoundActivity) -> set[str]:
    """Return all names in the request, in the workspace except for its prose, and in the commands that were run."""
    names = set(names_in(activity.instruction))
    prose = {edit.path for edit in activity.edits if edit.role == "prose"}
    paths = {*activity.workspace, *activity.before, *(read.path for read in activity.reads)} - prose
    names |= paths | {posixpath.basename(path) for path in paths}
    for path, text in activity.workspace.items():
        if path not in prose:
            names.update(re.findall(r"\w+", text))
    for run in activity.runs:
        names.update(run.key.split())
    return names


# Not scipy's, which is a download of 35 MB.
def kendall_tau_b(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Return Kendall's rank correlation with ties (tau-b, 1945), from -1 to 1; None where one side is all ties.

    >>> kendall_tau_b([1, 2, 3], [1, 2, 3]), kendall_tau_b([1, 2, 3], [3, 2, 1])
    (1.0, -1.0)
    """
    concordant = discordant = left_ties = right_ties = 0
    for i, j in combinations(range(len(left)), 2):
        a, b = left[i] - left[j], right[i] - right[j]
        if a == 0 or b == 0:
            left_ties += a == 0
            right_ties += b == 0
        elif (a > 0) == (b > 0):
            concordant += 1
        else:
            discordant += 1
    pairs = len(left) * (len(left) - 1) // 2
    scale = sqrt((pairs - left_ties) * (pairs - right_ties))
    return (concordant - discordant) / scale if scale else None
