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
from pytest_evocode.process.trajectory.events import Event, FileEdit, RoundActivity
from pytest_evocode.process.trajectory.text_changes import hunks_between
from pytest_evocode.process.trajectory.words import specific_words

PlanForm = Literal["document", "tool", "message"]

#: Least number of non-blank characters in a plan (RigorBench).
LEAST_CHARACTERS = 50
#: Least number of words that a plan shares with the request; fewer where the request has fewer.
LEAST_WORDS = 3

_ITEM = re.compile(
    r"^(?P<indent>\s*)(?:[-*+\u2022]|\d+[.)]|\(\d+\)|step \d+[:.)])\s+(?:\[[ xX]\]\s*)?(?P<text>\S.*)$", re.I
)
_INTENT = re.compile(
    r"\b(plan|approach|strategy|roadmap|milestones?|i'?ll|i will|i am going to|i'm going to|we will|we'll|let me)\b|"
    r"\bfirst\b.*\b(then|next|after)\b",
    re.IGNORECASE | re.DOTALL,
)
_FILE_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,6}\b(?!\()")
_QUOTED = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"\b([A-Za-z_][\w.]*)\(\)?")
_NAME = re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b")
_RUNS_TESTS = re.compile(
    r"\brun\b.*\b(tests?|suite|pytest)\b|\b(pytest|unittest|npm test|go test|cargo test|make test)\b", re.IGNORECASE
)
_LOOKING = re.compile(r"^\W*(read|look|inspect|study|explore|examine|understand|review|open|find)\b", re.IGNORECASE)
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


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan, with the files, functions and commands that it names."""

    text: str
    names: tuple[str, ...]

    @property
    def atomic(self) -> bool:
        """Whether the step names something, and at most one file."""
        files = {posixpath.basename(name) for name in self.names if _FILE_PATH.fullmatch(name)}
        return bool(self.names) and len(files) <= 1


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
    quality, why = decomposition(plan.text, names_of_work(activity))
    return {
        "PAC": measured(_CREATED[plan.form], _SHOWN[plan.form], (plan.event.evidence(_SHOWN[plan.form]), shared)),
        "DQ": measured(quality, why, (Evidence(what=why, step=plan.event.step, quote=quoted(plan.text)),)),
        "PEA": _alignment(plan, activity),
    }


def _alignment(plan: FoundPlan, activity: RoundActivity) -> Measure:
    steps = plan_steps(plan.text)
    matches = [_first_match(step, activity, plan.event.at) for step in steps]
    pairs = [(number, match) for number, match in enumerate(matches) if match is not None]
    evidence = tuple(match.evidence(f"step {number + 1} of the plan: {steps[number].text}") for number, match in pairs)
    if len(pairs) < 2:
        return not_measured(f"{len(pairs)} of {len(steps)} steps of the plan can be found in what was done", evidence)
    tau = kendall_tau_b([number for number, _ in pairs], [match.at for _, match in pairs])
    if tau is None:
        return not_measured("all steps of the plan that can be found were done at once", evidence)
    return measured((tau + 1) / 2, f"tau-b = {tau:.3f} over {len(pairs)} of {len(steps)} steps", evidence)


def _first_match(step: PlanStep, activity: RoundActivity, after: int) -> Event | None:
    """Return the first thing that the agent did after the plan that the step is about."""
    looking = _LOOKING.match(step.text) is not None
    found: list[Event] = []
    for name in step.names:
        if name == "run tests" or _RUNS_TESTS.search(name):
            found += [run for run in activity.runs if run.purpose == "test" and run.at > after][:1]
        elif looking and _FILE_PATH.fullmatch(name):
            found += [read for read in activity.reads if _is_path(name, read.path) and read.at > after][:1]
        elif _FILE_PATH.fullmatch(name):
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
    return min(candidates, key=lambda each: (order[each.form], *_rank(each.text)), default=None)


def _rank(text: str) -> tuple[int, int]:
    steps = plan_steps(text)
    return -sum(step.atomic for step in steps), -len(steps)


def _new_text(edit: FileEdit, before: str | None) -> str:
    """Return the text of a new document, or the new lines of one that was there when the round began."""
    if before is None:
        return edit.after or ""
    return "".join(line for hunk in hunks_between(before, edit.after or "") for line in hunk.added)


def _as_plan(activity: RoundActivity, event: Event, form: PlanForm, text: str) -> FoundPlan | None:
    if len("".join(text.split())) < LEAST_CHARACTERS:
        return None
    asked = specific_words(activity.instruction)
    shared = asked & specific_words(text)
    if len(shared) < min(LEAST_WORDS, max(1, len(asked))):
        return None
    if form == "message" and not _INTENT.search(text) and len(plan_steps(text)) < 2:
        return None
    return FoundPlan(event, form, text, tuple(sorted(shared)))


def plan_steps(text: str) -> list[PlanStep]:
    r"""Return the listed steps of a plan in order: its list items, without those that only head a nested list.

    >>> [step.text for step in plan_steps("Plan:\n1. Read a.py\n2. Fix b.py\n")]
    ['Read a.py', 'Fix b.py']
    """
    items = [match for line in text.splitlines() if (match := _ITEM.match(line))]
    depths = [len(item["indent"]) for item in items]
    leaves = [
        item for item, depth, following in zip(items, depths, [*depths[1:], 0], strict=False) if following <= depth
    ]
    return [PlanStep(item["text"].strip(), names_in(item["text"])) for item in leaves]


def names_in(text: str) -> tuple[str, ...]:
    """Return the files, functions and commands that a text names.

    >>> names_in("Fix `parse_date()` in src/dates.py, then run `pytest -q`")
    ('parse_date', 'pytest -q', 'src/dates.py')
    """
    names = {name.removesuffix("()").strip() for name in _QUOTED.findall(text)}
    rest = _QUOTED.sub(" ", text)
    names.update(path for path in _FILE_PATH.findall(rest) if not re.fullmatch(r"(e\.g|i\.e|etc)\.?\w?", path))
    names.update(_CALL.findall(rest))
    names.update(_NAME.findall(rest))
    if _RUNS_TESTS.search(rest):
        names.add("run tests")
    return tuple(sorted(name for name in names if name))


def decomposition(text: str, known: set[str]) -> tuple[float, str]:
    """Rate how well a plan divides the work, and say why: 1/3 one block, 2/3 listed steps, 1 listed atomic steps.

    An atomic step names one file, function or command that is in ``known``; an invented name says nothing about the
    work.
    """
    steps = plan_steps(text)
    if len(steps) < 2:
        return 1 / 3, "one block"
    vague = [step for step in steps if not (step.atomic and any(_is_known(name, known) for name in step.names))]
    if vague:
        return 2 / 3, f"{len(steps)} listed steps, {len(vague)} of them without one thing that is there"
    return 1.0, f"{len(steps)} listed steps, each naming one thing"


def _is_known(name: str, known: set[str]) -> bool:
    parts = {name, posixpath.basename(name), name.partition(" ")[0], name.rpartition(".")[2]}
    return name == "run tests" or _RUNS_TESTS.search(name) is not None or bool(parts & known)


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
