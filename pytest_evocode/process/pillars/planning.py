"""Planning fidelity: was there a plan before the first edit, how good was it, and was it followed?

A plan has steps: what each will do, and to which file, function or command. A description of what is there, a
diagnosis and an intention to look at something announce no change, and have no such step. What is copied from a
request, word for word or with other words strewn in, is none either.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import inf, sqrt
from typing import Literal

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars.messages import claims, specific_words
from pytest_evocode.process.rules import PLANS
from pytest_evocode.process.trajectory.events import Event, FileEdit, RoundActivity
from pytest_evocode.process.trajectory.file_texts import hunks_between

#: Words in a row that count as copied.
SHINGLE = 6
#: Least share of the words of a step, or of the request's sentence, that stand in the other in the same order.
SHARE = 0.75
#: The same for sentences of fewer words, of which neither may have much else.
SHORT = 4
SHARE_OF_SHORT = 0.6

_SENTENCE = re.compile(r"(?<=[.:;!?])\s+|\n\s*\n|\n(?=\s*[-*\d])")


def says_again(step: str, requests: Sequence[str]) -> bool:
    """Return whether a step of a plan is a sentence of a request, with words put in or left out.

    Who plans takes words from the request, but not its sentences from the first word to the last.

    >>> request = "Amounts of a recipe are shown as fractions in lowest terms."
    >>> says_again("Implement amounts of a really recipe are shown as really fractions in lowest terms", [request])
    True
    >>> says_again("Show the amounts of a recipe in `text.py` as fractions, with lowest terms from gcd", [request])
    False
    """
    words = _words(step)
    for request in requests:
        for sentence in map(_words, _SENTENCE.split(request)):
            common = _common(words, sentence)
            whole = common >= SHINGLE and common >= SHARE * min(len(words), len(sentence))
            short = common >= SHORT and common >= SHARE_OF_SHORT * max(len(words), len(sentence))
            if whole or short:
                return True
    return False


def _words(text: str) -> list[str]:
    return [word.lower() for word in re.findall(r"\w+", text)]


def _common(one: Sequence[str], other: Sequence[str]) -> int:
    """Return the length of the longest common subsequence.

    The rows of the usual table are kept as bits (Hyyrö 2004), because requests and plans can have thousands of words.
    """
    places: dict[str, int] = {}
    for place, word in enumerate(other):
        places[word] = places.get(word, 0) | 1 << place
    whole = row = (1 << len(other)) - 1
    for word in one:
        both = row & places.get(word, 0)
        row = ((row + both) | (row - both)) & whole
    return len(other) - row.bit_count()


def uncopied(text: str, requests: Sequence[str]) -> str:
    r"""Return a text without the runs of six words or more that stand in a request in the same order.

    >>> uncopied("First: one two three four five six seven.\nThen b.py", ["One two three four five six seven"])
    'First: \nThen b.py'
    """
    known = {
        tuple(words[start : start + SHINGLE])
        for request in requests
        if (words := [word.lower() for word in re.findall(r"\w+", request)])
        for start in range(max(0, len(words) - SHINGLE + 1))
    }
    words = list(re.finditer(r"\w+", text))
    copied = bytearray(len(words))
    for start in range(len(words) - SHINGLE + 1):
        if tuple(word[0].lower() for word in words[start : start + SHINGLE]) in known:
            copied[start : start + SHINGLE] = b"\1" * SHINGLE
    kept, place, number = [], 0, 0
    while number < len(words):
        if not copied[number]:
            number += 1
            continue
        kept.append(text[place : words[number].start()])
        while number < len(words) and copied[number]:
            place = words[number].end()
            number += 1
        if place < len(text) and text[place] in ".,;:!?":
            place += 1
    return "".join([*kept, text[place:]])


_QUOTED = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"\b([A-Za-z_][\w.]*)\(\)?")
_NAME = re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan, with the files, functions and commands that it names."""

    text: str
    names: tuple[str, ...]
    verb: str = ""
    """What it will do; empty for an item that announces nothing."""
    listed: bool = True
    """Whether it is an item of a list, and not a clause of a sentence."""

    @property
    def atomic(self) -> bool:
        """Whether the step names something, and at most one file."""
        files = {posixpath.basename(name) for name in self.names if PLANS["file_path"].fullmatch(name)}
        return bool(self.names) and len(files) <= 1

    @property
    def acts(self) -> bool:
        """Whether the step announces something that will be done."""
        return bool(self.verb)

    @property
    def looks(self) -> bool:
        """Whether the step only looks at something."""
        return self.verb in PLANS.words["looking"]

    @property
    def runs_tests(self) -> bool:
        """Whether the step runs tests."""
        return self.verb in ("run", "rerun", "re-run", "test") and PLANS.find(self.text, "runs_tests")


def plan_steps(text: str, *, is_to_do: bool = False) -> list[PlanStep]:
    r"""Return the steps of a plan in order: its list items or, without a list, the clauses that announce something.

    An item that only heads a nested list is left out. In a list of what is to be done (``is_to_do``, or by its heading
    or boxes to tick) an item that only names a file, a function or a command announces a change or a run.

    >>> [step.text for step in plan_steps("Plan:\n1. Read a.py\n2. Fix b.py\n")]
    ['Read a.py', 'Fix b.py']
    >>> [(step.text, step.verb) for step in plan_steps("I'll add parse() to a.py and then run pytest.")]
    [('add parse() to a.py', 'add'), ('run pytest', 'run')]
    """
    text = "\n".join(map(_items_on_lines, text.splitlines()))
    items = [match for line in text.splitlines() if (match := PLANS["item"].match(line))]
    depths = [len(item["indent"]) for item in items]
    leaves = [
        item for item, depth, following in zip(items, depths, [*depths[1:], 0], strict=False) if following <= depth
    ]
    if leaves:
        is_to_do = is_to_do or PLANS.find(text, "checkbox") or _is_headed(text)
        return [_listed(item["text"].strip(), is_to_do) for item in leaves]
    return list(_clauses(text))


def _items_on_lines(line: str) -> str:
    """Divide a line with a list in it: (1) this; (2) that."""
    return re.sub(r"(?<!\S)(?=\(\d+\) )", "\n", line) if "(1) " in line and "(2) " in line else line


def _is_headed(text: str) -> bool:
    """Return whether the first list has a heading that says that this will be done."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if PLANS["item"].match(line))
    return any(PLANS.find(line, "to_do") for line in lines[:first])


def _listed(text: str, is_to_do: bool) -> PlanStep:
    plain = PLANS["marks"].sub("", text).strip()
    target = PLANS["target_first"].match(plain)
    if target is not None and (what := target["what"]):
        verb = _verb(what)
        if not verb and not PLANS.find(what, "finding") and (is_to_do or not PLANS["third_person"].match(what)):
            verb = "change"  # `path: what is to be there`.
        return PlanStep(text, names_in(plain), verb)
    return PlanStep(text, names_in(plain), _verb(plain) or (_verb_of_target(plain) if is_to_do else ""))


def _verb_of_target(plain: str) -> str:
    """Return what is to be done with what an item names, where it has no verb of its own."""
    names = names_in(plain)
    if not names or PLANS.find(plain, "finding"):
        return ""
    if PLANS.find(plain, "runs_tests") or PLANS["command"].match(plain):
        return "run"
    starts = PLANS["named_first"].match(plain) is not None
    return "change" if starts and not PLANS["third_person"].match(plain) else ""


def _clauses(text: str) -> Iterator[PlanStep]:
    """Yield the clauses of the sentences in which the agent says what it will do."""
    for sentence in re.split(r"(?<=[a-z0-9`)])[.!?]+(?:\s+|$)|\n\s*\n", text):
        if not PLANS.find(sentence, "intent"):
            continue
        started = False
        for clause in re.split(PLANS["clause"], sentence[PLANS["intent"].search(sentence).start() :]):  # type: ignore[union-attr]
            plain = PLANS["lead"].sub("", clause.strip(" ,:;-"))
            verb = _verb(clause) if started or PLANS.find(clause, "intent") else ""
            if verb:
                started = True
                yield PlanStep(plain, names_in(clause), verb, listed=False)


def _verb(text: str) -> str:
    """Return the verb of what a text announces; empty where it announces nothing."""
    first = PLANS["lead"].sub("", text.strip(" ,:;-*")).partition(" ")[0].strip("`,:;.").lower()
    if first in PLANS.words["looking"] or first in PLANS.words["acting"]:
        return first
    if first.endswith("ing") and PLANS["lead"].match(text) and (stem := _base_of(first)):
        return stem
    return ""


def _base_of(gerund: str) -> str:
    stem = gerund.removesuffix("ing")
    doubled = stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem
    return next(
        (each for each in (stem, f"{stem}e", doubled) if each in PLANS.words["looking"] | PLANS.words["acting"]), ""
    )


def names_in(text: str) -> tuple[str, ...]:
    """Return the files, functions and commands that a text names.

    >>> names_in("Fix `parse_date()` in src/dates.py, then run `pytest -q`")
    ('parse_date', 'pytest -q', 'src/dates.py')
    """
    names = {name.removesuffix("()").strip() for name in _QUOTED.findall(text)}
    rest = _QUOTED.sub(" ", text)
    names.update(
        path for path in PLANS["file_path"].findall(rest) if not re.fullmatch(r"(e\.g|i\.e|etc|and/or)\.?\w?", path)
    )
    names.update(_CALL.findall(rest))
    names.update(_NAME.findall(rest))
    if PLANS.find(rest, "runs_tests"):
        names.add("run tests")
    return tuple(sorted(name for name in names if name))


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
        if name == "run tests" or PLANS.find(name, "runs_tests"):
            found += [run for run in activity.runs if run.purpose == "test" and run.at >= done and run.at > after][:1]
        elif looking and PLANS["file_path"].fullmatch(name):
            found += [read for read in activity.reads if _is_path(name, read.path) and read.at > after][:1]
        elif PLANS["file_path"].fullmatch(name):
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
    return name == "run tests" or PLANS.find(name, "runs_tests") or bool(parts & known)


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
