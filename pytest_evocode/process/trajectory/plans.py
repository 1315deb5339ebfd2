"""Plans: which of an agent's texts is one, what its steps are, and whether they came in that order."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from math import sqrt

from pytest_evocode.process.trajectory.events import Event, FileEdit, PlanForm, PlanUpdate, RoundActivity
from pytest_evocode.process.trajectory.text_changes import hunks_between
from pytest_evocode.process.trajectory.words import specific_words

#: Characters that are not blank that a plan has at least (RigorBench).
LEAST_CHARACTERS = 50
#: Words that a plan shares at least with the request; fewer where the request has fewer.
LEAST_WORDS = 3

_ITEM = re.compile(
    r"^(?P<indent>\s*)(?:[-*+\u2022]|\d+[.)]|\(\d+\)|step \d+[:.)])\s+(?:\[[ xX]\]\s*)?(?P<text>\S.*)$", re.I
)
_INTENT = re.compile(
    r"\b(plan|approach|strategy|roadmap|milestones?|i'?ll|i will|i am going to|i'm going to|we will|we'll|let me)\b|"
    r"\bfirst\b.*\b(then|next|after)\b",
    re.IGNORECASE | re.DOTALL,
)
_PATH = re.compile(r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,6}\b(?!\()")
_QUOTED = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"\b([A-Za-z_][\w.]*)\(\)?")
_NAME = re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b")
_TESTING = re.compile(
    r"\brun\b.*\b(tests?|suite|pytest)\b|\b(pytest|unittest|npm test|go test|cargo test|make test)\b", re.IGNORECASE
)
_LOOKING = re.compile(r"^\W*(read|look|inspect|study|explore|examine|understand|review|open|find)\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A text that is a plan for this round."""

    signal: Event
    form: PlanForm
    text: str
    shared: tuple[str, ...]
    """Words that it shares with the request."""


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step; ``names`` are the files, functions and commands in it."""

    text: str
    names: tuple[str, ...]

    @property
    def atomic(self) -> bool:
        """Whether it names something, and not more than one file."""
        files = {posixpath.basename(name) for name in self.names if _PATH.fullmatch(name)}
        return bool(self.names) and len(files) <= 1


def find_plan(activity: RoundActivity) -> FoundPlan | None:
    """The plan that was there before the first edit of the source: a document, else a list in a tool, else a message.

    A file's name never makes it a plan, and a text that says nothing of the task is none.
    """
    first = activity.first_source_edit
    until = first.at if first is not None else None

    def before(signal: Event) -> bool:
        return until is None or signal.at < until

    documents: dict[str, FileEdit] = {
        edit.path: edit for edit in activity.edits if edit.role == "prose" and edit.after and before(edit)
    }
    asked_for = {path for path in documents if posixpath.basename(path) in activity.instruction}
    texts: list[tuple[Event, PlanForm, str]] = [
        (edit, "document", _news(edit, activity.before.get(path)))
        for path, edit in documents.items()
        if path not in asked_for
    ]
    plans: list[PlanUpdate] = [plan for plan in activity.plans if before(plan)]
    texts += [(plan, "tool", plan.text) for plan in plans]
    texts += [(message, "message", message.text) for message in activity.messages if before(message)]
    candidates = [found for signal, form, text in texts if (found := _as_plan(activity, signal, form, text))]
    order = {"document": 0, "tool": 1, "message": 2}
    return min(candidates, key=lambda each: (order[each.form], *_rank(each.text)), default=None)


def _rank(text: str) -> tuple[int, int]:
    steps = plan_steps(text)
    return -sum(step.atomic for step in steps), -len(steps)


def _news(edit: FileEdit, before: str | None) -> str:
    """What was written: of a document that was there when the round began, the new lines."""
    if before is None:
        return edit.after or ""
    return "".join(line for hunk in hunks_between(before, edit.after or "") for line in hunk.added)


def _as_plan(activity: RoundActivity, signal: Event, form: PlanForm, text: str) -> FoundPlan | None:
    if len("".join(text.split())) < LEAST_CHARACTERS:
        return None
    asked = specific_words(activity.instruction)
    shared = asked & specific_words(text)
    if len(shared) < min(LEAST_WORDS, max(1, len(asked))):
        return None
    if form == "message" and not _INTENT.search(text) and len(plan_steps(text)) < 2:
        return None
    return FoundPlan(signal, form, text, tuple(sorted(shared)))


def plan_steps(text: str) -> list[PlanStep]:
    """The listed steps of a plan: its outermost list items that are no headings of others, in their order.

    >>> [step.text for step in plan_steps("Plan:\\n1. Read a.py\\n2. Fix b.py\\n")]
    ['Read a.py', 'Fix b.py']
    """
    items = [match for line in text.splitlines() if (match := _ITEM.match(line))]
    depths = [len(item["indent"]) for item in items]
    leaves = [
        item for item, depth, following in zip(items, depths, [*depths[1:], 0], strict=False) if following <= depth
    ]
    return [PlanStep(item["text"].strip(), names_in(item["text"])) for item in leaves]


def names_in(text: str) -> tuple[str, ...]:
    """Files, functions and commands that a text names.

    >>> names_in("Fix `parse_date()` in src/dates.py, then run `pytest -q`")
    ('parse_date', 'pytest -q', 'src/dates.py')
    """
    names = {quoted.removesuffix("()").strip() for quoted in _QUOTED.findall(text)}
    rest = _QUOTED.sub(" ", text)
    names.update(path for path in _PATH.findall(rest) if not re.fullmatch(r"(e\.g|i\.e|etc)\.?\w?", path))
    names.update(_CALL.findall(rest))
    names.update(name[0] if isinstance(name, tuple) else name for name in _NAME.findall(rest))
    if _TESTING.search(rest):
        names.add("run tests")
    return tuple(sorted(name for name in names if name))


def decomposition(text: str, known: set[str]) -> tuple[float, str]:
    """How well a plan takes the work apart, by rule: 1/3 one block, 2/3 listed steps, 1 listed atomic steps.

    An atomic step names one file, function or command; it counts where the name is in ``known``: an invented one says
    nothing of the work.
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
    return name == "run tests" or _TESTING.search(name) is not None or bool(parts & known)


def names_of_work(activity: RoundActivity) -> set[str]:
    """All names in the request, in the workspace without its prose, and in what the agent ran."""
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


def first_matches(steps: Sequence[PlanStep], activity: RoundActivity, after: int) -> list[Event | None]:
    """For each step the first thing the agent did after the plan that the step is about."""
    return [_first_match(step, activity, after) for step in steps]


def _first_match(step: PlanStep, activity: RoundActivity, after: int) -> Event | None:
    looking = _LOOKING.match(step.text) is not None
    found: list[Event] = []
    for name in step.names:
        if name == "run tests" or _TESTING.search(name):
            found += [run for run in activity.runs if run.purpose == "test" and run.at > after][:1]
        elif looking and _PATH.fullmatch(name):
            found += [read for read in activity.reads if _is_path(name, read.path) and read.at > after][:1]
        elif _PATH.fullmatch(name):
            found += [edit for edit in activity.edits if _is_path(name, edit.path) and edit.at > after][:1]
        else:
            word = re.compile(rf"\b{re.escape(name.rpartition('.')[2])}\b")
            found += [edit for edit in activity.edits if edit.at > after and _writes(edit, word)][:1]
            found += [run for run in activity.runs if run.at > after and word.search(run.key)][:1]
    # All of what a step names has begun where the last of it has.
    if found:
        return max(found, key=lambda signal: signal.at)
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


def kendall_tau_b(left: Sequence[float], right: Sequence[float]) -> float | None:
    """Kendall's rank correlation with ties, -1 to 1; None where one side is all ties (Kendall 1945, tau-b).

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
