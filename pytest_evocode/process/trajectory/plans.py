"""Find the plan among an agent's texts, take it apart into steps, and rate how well it divides the work."""

from __future__ import annotations

import posixpath
import re
from dataclasses import dataclass
from typing import Literal

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
FILE_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,6}\b(?!\()")
_QUOTED = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"\b([A-Za-z_][\w.]*)\(\)?")
_NAME = re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b")
RUNS_TESTS = re.compile(
    r"\brun\b.*\b(tests?|suite|pytest)\b|\b(pytest|unittest|npm test|go test|cargo test|make test)\b", re.IGNORECASE
)


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
        files = {posixpath.basename(name) for name in self.names if FILE_PATH.fullmatch(name)}
        return bool(self.names) and len(files) <= 1


def find_plan(activity: RoundActivity) -> FoundPlan | None:
    """Return the plan made before the first edit of the source: a document, else a tool's list, else a message.

    A file is no plan because of its name alone, nor is a text that says nothing about the task.
    """
    first = activity.first_source_edit
    until = first.at if first is not None else None

    def before(event: Event) -> bool:
        return until is None or event.at < until

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
    names = {quoted.removesuffix("()").strip() for quoted in _QUOTED.findall(text)}
    rest = _QUOTED.sub(" ", text)
    names.update(path for path in FILE_PATH.findall(rest) if not re.fullmatch(r"(e\.g|i\.e|etc)\.?\w?", path))
    names.update(_CALL.findall(rest))
    names.update(name[0] if isinstance(name, tuple) else name for name in _NAME.findall(rest))
    if RUNS_TESTS.search(rest):
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
