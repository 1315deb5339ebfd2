"""Planning fidelity: was there a plan before the first edit, how good was it, and was it followed?

A plan has steps in any layout and language: items of a list, rows of a table, sentences. A step counts by the files,
functions, commands and behaviours that it names, and a plan by whether the agent turned to them afterwards. What is
copied from a request, word for word or with other words strewn in, is none; nor is a description of what is there, a
diagnosis, or an intention to look at something, as far as they can be told apart.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import combinations
from math import inf, sqrt
from typing import Literal

from pytest_evocode.process.evidence import Evidence, Measure, measured, not_measured, quoted
from pytest_evocode.process.pillars.messages import COMMON_STEM, claims, is_english, specific_words
from pytest_evocode.process.rules import FILES, PLANS
from pytest_evocode.process.trajectory.events import Event, FileEdit, FileRead, RoundActivity
from pytest_evocode.process.trajectory.file_texts import hunks_between
from pytest_evocode.process.trajectory.outputs import in_short_lines

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
        for words in map(_words, requests)
        for start in range(max(0, len(words) - SHINGLE + 1))
    }
    words = list(re.finditer(r"\w+", text))
    copied = bytearray(len(words))
    for start in range(len(words) - SHINGLE + 1):
        if tuple(word[0].lower() for word in words[start : start + SHINGLE]) in known:
            copied[start : start + SHINGLE] = b"\1" * SHINGLE
    for run in reversed(list(re.finditer(b"\1+", copied))):
        end = words[run.end() - 1].end()
        end += text[end : end + 1] in tuple(".,;:!?")
        text = text[: words[run.start()].start()] + text[end:]
    return text


_QUOTED = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"\b([A-Za-z_][\w.]*)\(\)?")
_NAME = re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+|[a-z]{2,}(?:[A-Z][a-z0-9]+)+)\b")


@dataclass(frozen=True, slots=True)
class PlanStep:
    """One step of a plan, with the files, functions and commands that it names."""

    text: str
    names: tuple[str, ...]
    listed: bool = True
    """Whether it is an item of a list, and not a part of a sentence."""

    @property
    def atomic(self) -> bool:
        """Whether the step names something, and at most one file."""
        files = {posixpath.basename(name) for name in self.names if _is_file(name)}
        return bool(self.names) and len(files) <= 1

    @property
    def looks(self) -> bool:
        """Whether the step only looks at something."""
        first = (
            PLANS["lead"]
            .sub("", self.text.strip(" ,:;-*"))
            .partition(" ")[0]
            .strip("`,:;.")
            .lower()
            .removeprefix("re-")
        )
        verbs = PLANS.words["looking"]
        stem = first.removesuffix("ing")
        if first in verbs or PLANS.find(self.text, "to_look"):
            return True
        return stem != first and not verbs.isdisjoint((stem, f"{stem}e", stem[:-1]))

    @property
    def runs_tests(self) -> bool:
        """Whether the step runs tests, and names nothing else."""
        others = [name for name in self.names if name != RUN_TESTS and not PLANS.find(name, "runs_tests")]
        return PLANS.find(self.text, "runs_tests") and not others


#: The name of what a step runs that says in whatever words that it runs the tests.
RUN_TESTS = "run tests"


def plan_steps(text: str, *, is_to_do: bool = False) -> list[PlanStep]:
    r"""Return the steps of a text in order: its items or, without a list, the parts of sentences that name something.

    An item that only heads a nested list is left out, as are descriptions and diagnoses. In a list of what is to be
    done (``is_to_do``, or by its heading or boxes to tick) less is taken for a description.

    >>> [step.text for step in plan_steps("Plan:\n1. Read a.py\n2. Fix b.py\n")]
    ['Read a.py', 'Fix b.py']
    >>> [step.text for step in plan_steps("I'll add parse() to a.py and then run pytest.")]
    ['add parse() to a.py', 'run pytest']
    >>> [step.text for step in plan_steps("| File | What |\n|---|---|\n| a.py | `parse()` |\n| b.py | tests |")]
    ['a.py: `parse()`', 'b.py: tests']
    """
    text = in_short_lines(PLANS["fence"].sub("\n", text.replace("\u2019", "'")))
    lists = list(_lists(text, is_to_do=is_to_do))
    announced = [item for is_announced, items in lists if is_announced for item in items]
    items = _leaves(announced or [item for _, items in lists for item in items])
    if not announced:
        prose = "\n".join("" if PLANS.find(line, "item", "row") else line for line in text.splitlines())
        in_prose = list(_in_prose(prose, english=is_english(text)))
        if len(in_prose) >= LEAST_STEPS or sum(len(item[0]) for item in items) < len(prose.strip()):
            return in_prose  # A list in a longer text is about something else.
    found = [PlanStep(item["text"].strip(), names_in(item["text"])) for item in items]
    if is_to_do:
        return found
    return [step for step in found if not _describes(step.text, is_headed=bool(announced))]


def _lists(text: str, *, is_to_do: bool) -> Iterator[tuple[bool, list[re.Match[str]]]]:
    """Yield the items of each list, and whether the line above it announces something to do; none that it reports.

    A list goes on where its numbers do, and below the headings and indented lines of its own.
    """
    is_to_do = is_to_do or PLANS.find(text, "checkbox")
    above, items, is_announced, reports = "", list[re.Match[str]](), is_to_do, False
    for line in _lines(text):
        item = PLANS["item"].match(line)
        if item:
            if not items and not re.match(r"\W*(?:[2-9]|\d\d)\W", line):
                is_announced = is_to_do or PLANS.find(above, "intent", "to_do")
                states = PLANS.find(above, "statement") or claims(above)
                reports = PlanStep(above, ()).looks or bool(states and not is_announced and not above.startswith("#"))
            items.append(item)
        elif line.strip() and not (items and (line[0].isspace() or "#" in items[-1][0])):
            if items and not reports:
                yield is_announced, items
            above, items = PLANS["sentence"].split(line.strip(" .!"))[-1], []
    if items and not reports:
        yield is_announced, items


def _leaves(items: list[re.Match[str]]) -> list[re.Match[str]]:
    """Return the items that do not only head a nested list."""
    depths = [-1 if "#" in item[0] else len(item["indent"]) for item in items]
    return [item for item, depth, below in zip(items, depths, [*depths[1:], -2], strict=False) if below <= depth]


def _lines(text: str) -> Iterator[str]:
    """Yield the lines of a text, the rows of its tables as items, and an item for each of (1) this and (2) that."""
    lines = text.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if PLANS.find(line, "row"):
            if not PLANS.find(line, "rule") and not PLANS.find(following, "rule"):
                cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
                yield "- " + ": ".join(cell for cell in cells if cell and not cell.isdigit())
        elif re.search(r"\(?1[.)] .*\s\(?2[.)] ", line):
            yield from re.sub(r"(?<!\S)(?=\(?\d[.)] )", "\n", line).splitlines()
        elif line.startswith("#") and PLANS["item"].match(line) and not PLANS["item"].match(following):
            yield f"{line}: {following}"  # What stands below a heading belongs to it.
        else:
            yield line


def _describes(text: str, *, is_headed: bool) -> bool:
    """Return whether an item says what is there or what is wrong, or asks, as far as its words tell."""
    plain = PLANS["marks"].sub("", text).strip()
    target = PLANS["target_first"].match(plain)
    if target is not None:
        return not is_headed and PLANS.find(target["what"], "finding")
    if PLANS.find(plain, "open", "finding_of_a_name"):
        return True
    rest = re.findall(r"[^\W\d_]{3,}", reduce(lambda text, name: text.replace(name, " "), names_in(plain), plain))
    return not is_headed and (not rest or PLANS.find(plain, "finding", "past"))


def _in_prose(text: str, *, english: bool) -> Iterator[PlanStep]:
    """Yield the steps of sentences: of one that says several, and of those that are told in an order.

    Who thinks aloud says in many sentences what comes next; a plan has more than one at once.
    """
    before: list[PlanStep] = []
    intends: object = False
    for sentence in PLANS["sentence"].split(text):
        head, _, rest = sentence.partition(":")
        obliges, orders = PLANS.find(sentence, "obliges"), PLANS["order"].search(sentence)
        # What has to be is a step where the sentence before says that something will be done.
        intends = (
            PLANS.find(sentence, "intent") or (rest.strip() and PLANS.find(head, "to_do")) or (intends and obliges)
        )
        told = not intends and not obliges and PLANS.find(sentence, "finding", "past")
        if not (intends or orders) or told or PLANS.find(sentence, "open"):
            before = []
            continue
        steps = list(_clauses(sentence, english=english))
        if orders and not orders["begins"]:
            yield from before
        if orders or len(steps) >= LEAST_STEPS:
            yield from steps
            steps, before = [], []
        before += steps


def _clauses(sentence: str, *, english: bool) -> Iterator[PlanStep]:
    """Yield the parts of a sentence that name something to do; in English the layout is that of its verbs."""
    listed = ":" in sentence.rstrip(" :") or not english or PLANS.find(sentence, "other_order", "things")
    looks = False
    for clause in PLANS["clause" if listed else "verbs"].split(sentence):
        plain = PLANS["lead"].sub("", clause.strip(" ,:;-"))
        step = PlanStep(plain, names_in(clause), listed=False)
        # What follows in the sentence is what it looks for.
        looks = step.looks or (looks and not PLANS.find(clause.strip(), "order"))
        words = specific_words(plain)
        says = step.names or len(words) >= (WORDS_OF_STEP if listed else 1) or PLANS.find(plain, "of_tests")
        if (says or (not words and PLANS.find(clause, "other_order"))) and (step.looks or not looks):
            yield step


def names_in(text: str) -> tuple[str, ...]:
    """Return the files, functions and commands that a text names, except for those that any program has.

    >>> names_in("Fix `self` and `parse_date()` in src/dates.py, then run `pytest -q`")
    ('parse_date', 'pytest -q', 'src/dates.py')
    """
    names = {name.removesuffix("()").strip() for name in _QUOTED.findall(text)}
    rest = _QUOTED.sub(" ", text)
    names.update(
        path for path in PLANS["file_path"].findall(rest) if not re.fullmatch(r"(e\.g|i\.e|etc|and/or)\.?\w?", path)
    )
    rest = PLANS["file_path"].sub(" ", rest)
    names.update(_CALL.findall(rest))
    names.update(_NAME.findall(rest))
    names = {name for name in names if _is_file(name) or specific_words(name) - PLANS.words["any_program"]}
    if PLANS.find(rest, "runs_tests"):
        names.add(RUN_TESTS)
    return tuple(sorted(names))


PlanForm = Literal["document", "tool", "message"]

#: Least number of non-blank characters in a plan (RigorBench).
LEAST_CHARACTERS = 50
#: Least number of steps.
LEAST_STEPS = 2
#: Least number of words of the request or of the later work in a step that names no file, function or command.
WORDS_OF_STEP = 2

#: By form, the best first, the value of PAC and what is said of it.
_CREATED: Mapping[PlanForm, tuple[float, str]] = {
    "document": (1.0, "a plan in a document of its own"),
    "tool": (1.0, "a plan in a list"),
    "message": (0.5, "a plan in a message"),
}


@dataclass(frozen=True, slots=True)
class FoundPlan:
    """A text that is a plan for the round."""

    event: Event
    form: PlanForm
    text: str
    shared: tuple[str, ...]
    """Words that the plan and the request share."""
    steps: tuple[PlanStep, ...]
    """The steps that name something, or are about the request, in order."""


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
    created, shown = _CREATED[plan.form]
    quality, why = decomposition(plan, names_of_work(activity))
    return {
        "PAC": measured(created, shown, (plan.event.evidence(shown), shared)),
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
    every: list[Event] = []
    for name in step.names:
        found: list[Event] = []
        if name == RUN_TESTS or PLANS.find(name, "runs_tests"):
            found += [run for run in activity.runs if run.purpose == "test" and run.at >= done and run.at > after][:1]
        elif _is_file(name):
            touched: Sequence[FileRead | FileEdit] = activity.reads if looking else activity.edits
            found += [each for each in touched if _is_path(name, each.path) and each.at > after][:1]
        elif symbol := re.match(r"[\w.$-]+", name):
            word = re.compile(rf"\b{re.escape(symbol[0].rpartition('.')[2])}\b")
            found += [edit for edit in activity.edits if edit.at > after and _is_of(edit, name, word)][:1]
            found += [run for run in activity.runs if run.at > after and word.search(run.key)][:1]
        every += found
    # A step that names several things has begun once the agent has turned to the last of them.
    if every:
        return max(every, key=lambda event: event.at)
    return None if any(map(_is_file, step.names)) else _by_words(step, activity, after)


def _by_words(step: PlanStep, activity: RoundActivity, after: int) -> Event | None:
    words = specific_words(step.text)
    for edit in activity.edits:
        if edit.at > after and edit.of_product:
            written = specific_words(f"{edit.path} " + "".join(line for hunk in edit.hunks for line in hunk.added))
            is_called_so = words & specific_words(posixpath.basename(edit.path))
            is_test = edit.role == "tests" and PLANS.find(step.text, "of_tests")
            if is_called_so or is_test or len(words & written) >= WORDS_OF_STEP:
                return edit
    return None


def _is_file(name: str) -> bool:
    """Return whether a name is that of a file, and not of a member such as `Client.rate`."""
    suffix = posixpath.splitext(name)[1].lower()
    known = any(suffix in FILES.words[kind] for kind in ("code", "data", "prose"))
    return PLANS["file_path"].fullmatch(name) is not None and ("/" in name or known)


def _is_path(name: str, path: str) -> bool:
    return path == name or path.endswith(f"/{name}") or name.endswith(f"/{path}")


def _is_of(edit: FileEdit, name: str, word: re.Pattern[str]) -> bool:
    """Return whether an edit writes a name, or is of a file that is called like it."""
    lines = (line for hunk in edit.hunks for line in (*hunk.added, *hunk.removed))
    called_so = specific_words(name) & specific_words(posixpath.basename(edit.path))
    return edit.of_product and (bool(called_so) or any(word.search(line) for line in lines))


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
        if path not in asked_for and not PLANS.find(path, "for_users")
    ]
    texts += [(plan, "tool", plan.text) for plan in activity.plans if before(plan)]
    texts += [(message, "message", message.text) for message in activity.messages if before(message)]
    candidates = [found for event, form, text in texts if (found := _as_plan(activity, event, form, text))]
    forms = list(_CREATED)

    def rank(plan: FoundPlan) -> tuple[int, int, int]:
        return forms.index(plan.form), -sum(step.atomic for step in plan.steps), -len(plan.steps)

    return min(candidates, key=rank, default=None)


def _new_text(edit: FileEdit, before: str | None) -> str:
    """Return the text of a new document, or the new lines of one that was there when the round began."""
    if before is None:
        return edit.after or ""
    return "".join(line for hunk in hunks_between(before, edit.after or "") for line in hunk.added)


def _as_plan(activity: RoundActivity, event: Event, form: PlanForm, text: str) -> FoundPlan | None:
    """Return a text as a plan: what is not copied from a request has steps that act on something named."""
    own = uncopied(text, activity.requests or (activity.instruction,))
    if len("".join(own.split())) < LEAST_CHARACTERS:
        return None
    asked = specific_words(activity.instruction)
    requests = activity.requests or (activity.instruction,)
    every = [step for step in plan_steps(own, is_to_do=form == "tool") if not says_again(step.text, requests)]
    steps = tuple(step for step in every if _is_about(step, asked, activity, event.at))
    changing = _changing(steps)
    says_own = any(_says_own(step, asked) for step in steps if not step.runs_tests)
    # Of a sentence that says two things, the second may only point at what it is about: "and update the template".
    points = len(every) >= LEAST_STEPS and not every[0].listed and is_english(own)
    enough = LEAST_STEPS - points
    if not changing or len(steps) < enough or not says_own:
        return None
    if any(edit.at > event.at and edit.of_product for edit in activity.edits):
        followed = _is_turned_to(steps, activity, event.at)
    else:  # It went no further, so its words have to say it.
        told = own.partition(steps[-1].text)[0]  # What follows a list is not about it.
        says_so = form != "message" or PLANS.find(told, "intent", "to_do", "checkbox")
        followed = says_so and (form == "tool" or sum(bool(step.names) for step in changing) >= LEAST_STEPS)
    if not followed:
        return None
    return FoundPlan(event, form, own, tuple(sorted(asked & specific_words(own))), steps)


def _is_turned_to(steps: Sequence[PlanStep], activity: RoundActivity, after: int) -> bool:
    """Return whether the agent later changed what a third of the steps are about that will change something."""
    matches = [_first_match(step, activity, after, after) for step in steps]
    return 3 * sum(isinstance(match, FileEdit) for match in matches) >= len(_changing(steps))


def _changing(steps: Sequence[PlanStep]) -> list[PlanStep]:
    return [step for step in steps if not step.looks and not step.runs_tests]


def _says_own(step: PlanStep, asked: set[str]) -> bool:
    """Return whether a step says more than words of the request and names of files; other letters always do."""
    if any(not _is_file(name) for name in step.names) or PLANS.find(step.text, "other_letters"):
        return True
    known = {word[:COMMON_STEM] for word in asked}
    return any(word[:COMMON_STEM] not in known for word in specific_words(PLANS["file_path"].sub(" ", step.text)))


def _is_about(step: PlanStep, asked: set[str], activity: RoundActivity, after: int) -> bool:
    """Return whether a step names something, or is about the request or the later work in its own words."""
    if step.names or len(specific_words(step.text) & asked) >= WORDS_OF_STEP:
        return True
    return _by_words(step, activity, after) is not None


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
    return name == RUN_TESTS or PLANS.find(name, "runs_tests") or bool(parts & known)


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
    pairs = combinations(zip(left, right, strict=True), 2)
    signs = [((a > b) - (a < b), (c > d) - (c < d)) for (a, c), (b, d) in pairs]
    scale = sqrt(sum(one * one for one, _ in signs) * sum(other * other for _, other in signs))
    return sum(one * other for one, other in signs) / scale if scale else None
