"""Read the steps of a plan: what each will do, and to which file, function or command.

A description of what is there, a diagnosis and an intention to look at something announce no change, and have no such
step.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass

_ITEM = re.compile(
    r"^(?P<indent>\s*)(?:[-*+\u2022]|\d+[.)]|\(\d+\)|(?:step|phase|part) \d+[:.)])\s+(?:\[[ xX]\]\s*)?"
    r"(?P<text>\S.*)$",
    re.I,
)
FILE_PATH = re.compile(
    r"(?<![\w/.-])(?:[\w.-]+/)*[\w-]+\.[A-Za-z]\w{0,6}\b(?!\()|(?<![\w/.-])(?:[A-Za-z_][\w-]*/)+[A-Za-z_][\w-]*\b"
)
RUNS_TESTS = re.compile(
    r"\b(?:re-?)?run\b.*\b(tests?|suite|pytest)\b|\b(pytest|unittest|npm test|go test|cargo test|make test)\b", re.I
)
_QUOTED = re.compile(r"`([^`\n]+)`")
_CALL = re.compile(r"\b([A-Za-z_][\w.]*)\(\)?")
_NAME = re.compile(r"\b([a-z]+(?:_[a-z0-9]+)+|[A-Z][a-z0-9]+(?:[A-Z][a-z0-9]*)+)\b")
_MARKS = re.compile(r"^[\s*_>#-]+|\*\*")
_LOOKS = (
    "read look inspect study explore examine understand review open find check see investigate analyze analyse figure "
    "locate search identify reproduce gather list view learn consider familiarize"
)
_ACTS = (
    "accept adapt add adjust allow answer append apply assert build bump cache calculate call change clean clear "
    "close collect combine commit compare compile compute configure convert copy correct count cover create cut "
    "declare decode define delete deprecate derive detect disable document drop dump emit enable encode enforce "
    "ensure escape expire export expose extend extract fail fall fetch fill filter finish fix flush format "
    "generate give guard handle hook ignore implement import include increase initialise initialize inline insert "
    "install introduce join keep let limit load lock log look-up make map mark memoize merge migrate modify move "
    "mutate normalise normalize open-up order override parse pass persist pin point prefer prepare preserve "
    "prevent print propagate pull push put quantize raise re-run record reduce refactor refuse register reject "
    "release remove rename reorder repair replace report rerun reset resolve restore restrict retry return reuse "
    "rewrite roll round run save scale scope send separate serialise serialize set show simplify skip sort split "
    "store strip substitute sum support swap switch take teach tell test track transform trim truncate turn type "
    "unify unwrap update upgrade use validate warn wire wrap write "
)
_ACTS += "remember expect draw forget begin credit mention inject embed patch wait stream subtract multiply divide "
_LOOKING = frozenset(_LOOKS.split())
_ACTING = frozenset(_ACTS.split())
#: What may stand before the verb of a step.
_LEAD = re.compile(
    r"^(?:(?:then|next|first(?:ly)?|second(?:ly)?|third(?:ly)?|finally|lastly|last|after that|afterwards|also|and|now|"
    r"so|step \d+|in [`\w./-]+|to [^,]{3,40},|(?:i|we)(?:'ll| will| would| shall| am going to|'m going to| need to| "
    r"have to| should| want to|'d| intend to| plan to| propose to| aim to)|"
    r"(?:i am|i'm|we are|we're) planning to|(?:the|my|our) (?:plan|idea|approach|strategy|intention) is(?: to)?|"
    r"(?:(?:my|our) )?(?:plan|approach|strategy|next steps?)(?=:)|let me|let's|need to|"
    r"want to|going to|will|would|must|should|only|simply|just|"
    r"plan to|to have|begin(?:s)? by|start(?:s)? by|carefully|instead)\b[\s,:.-]*)+",
    re.IGNORECASE,
)
_INTENT = re.compile(
    r"\b(?:i|we)(?:'ll| will| would| shall| am going to|'m going to| need to|'d| intend to| plan to|"
    r" propose to| aim to)\b|(?:\bi am|\bi'm|\bwe are|\bwe're) planning to\b|\blet me\b|"
    r"\b(?:my|our) (?:plan|approach|strategy|intention)\b|\bthe (?:plan|idea|approach|intention) is(?: to)?\b|"
    r"^\W*(?:plan|approach|strategy|next steps?):",
    re.IGNORECASE,
)
#: A heading over what will be done.
_TO_DO = re.compile(
    r"^[\s#*_]*(?:(?:the |my |our )?(?:plan|approach|strategy|to-?do|tasks?|steps?|next steps?|work plan|"
    r"implementation plan)(?: (?:for|of|to) .{3,60})?|"
    r"(?:what|how) (?:i|we)(?:'ll| will| am going to| intend to| plan to) (?:do|change|build|write|make|go)\b.{0,60}|"
    r"(?:i|we)(?:'ll| will| am going to| intend to| plan to) (?:do|change|build|write|make)\b.{0,40}|"
    r"what (?:has to|must|needs to|is to) "
    r"(?:be done|change|happen).{0,40}|(?:files|things|changes) to (?:change|do|make|touch|write).{0,40})\s*[:*_]*\s*$",
    re.IGNORECASE | re.MULTILINE,
)
_CHECKBOX = re.compile(r"^[^\S\n]*(?:[-*+]|\d+[.)])\s+\[ \]\s", re.MULTILINE)
#: Words of a finding, an observation or a description.
_FINDING = re.compile(
    r"\b(?:is|are|was|were|does|do|did|has|have)(?: not|n't)?\b|\bnever\b|\bmissing\b|\bwrong(?:ly)?\b|\bbugs?\b|"
    r"\bfails?\b|\bbroken\b|\bbecause\b|\bcauses?d?\b|\bincorrect(?:ly)?\b|\bcrash(?:es)?\b|\bwhy\b",
    re.IGNORECASE,
)
_TARGET_FIRST = re.compile(
    r"^(?P<target>`[^`]+`|[\w./-]*\w[./]\w[\w./-]*(?:\(\))?)\s*(?:\([^)]*\))?\s*(?::|-|--|\u2013|\u2014|=>|->)\s+(?P<what>\S.*)$"
)
_THIRD_PERSON = re.compile(r"^(?:[a-z]+(?<!s)s|contains?|holds?|has|is|are)\b", re.IGNORECASE)
_COMMAND = re.compile(
    r"`?(?:make|python3?|npm|npx|yarn|pnpm|go|cargo|pytest|tox|mvn|gradle|\./gradlew|bundle|rake|ctest|cmake|dotnet|mix)\b"
)
#: An item that begins with a name, behind three words at most.
_NAMED_FIRST = re.compile(r"(?:[a-z]+ ){0,3}(?:`[^`]+`|[\w./:-]*\w[./_:(]+\w[\w./-]*(?:\(\))?)", re.IGNORECASE)
_CLAUSE = re.compile(
    r"(?<=[a-z0-9`)])[.;!?]+(?:\s+|$)|,?\s+(?:and )?(?:then|finally|after that|next)\b|,\s+(?:and\s+)?|\s+and\s+|\n+",
    re.I,
)


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
        files = {posixpath.basename(name) for name in self.names if FILE_PATH.fullmatch(name)}
        return bool(self.names) and len(files) <= 1

    @property
    def acts(self) -> bool:
        """Whether the step announces something that will be done."""
        return bool(self.verb)

    @property
    def looks(self) -> bool:
        """Whether the step only looks at something."""
        return self.verb in _LOOKING

    @property
    def runs_tests(self) -> bool:
        """Whether the step runs tests."""
        return self.verb in ("run", "rerun", "re-run", "test") and RUNS_TESTS.search(self.text) is not None


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
    items = [match for line in text.splitlines() if (match := _ITEM.match(line))]
    depths = [len(item["indent"]) for item in items]
    leaves = [
        item for item, depth, following in zip(items, depths, [*depths[1:], 0], strict=False) if following <= depth
    ]
    if leaves:
        is_to_do = is_to_do or _CHECKBOX.search(text) is not None or _is_headed(text)
        return [_listed(item["text"].strip(), is_to_do) for item in leaves]
    return list(_clauses(text))


def _items_on_lines(line: str) -> str:
    """Divide a line with a list in it: (1) this; (2) that."""
    return re.sub(r"(?<!\S)(?=\(\d+\) )", "\n", line) if "(1) " in line and "(2) " in line else line


def _is_headed(text: str) -> bool:
    """Return whether the first list has a heading that says that this will be done."""
    lines = text.splitlines()
    first = next(number for number, line in enumerate(lines) if _ITEM.match(line))
    return any(_TO_DO.search(line) for line in lines[:first])


def _listed(text: str, is_to_do: bool) -> PlanStep:
    plain = _MARKS.sub("", text).strip()
    target = _TARGET_FIRST.match(plain)
    if target is not None and (what := target["what"]):
        verb = _verb(what)
        if not verb and not _FINDING.search(what) and (is_to_do or not _THIRD_PERSON.match(what)):
            verb = "change"  # `path: what is to be there`.
        return PlanStep(text, names_in(plain), verb)
    return PlanStep(text, names_in(plain), _verb(plain) or (_verb_of_target(plain) if is_to_do else ""))


def _verb_of_target(plain: str) -> str:
    """Return what is to be done with what an item names, where it has no verb of its own."""
    names = names_in(plain)
    if not names or _FINDING.search(plain):
        return ""
    if RUNS_TESTS.search(plain) or _COMMAND.match(plain):
        return "run"
    starts = _NAMED_FIRST.match(plain) is not None
    return "change" if starts and not _THIRD_PERSON.match(plain) else ""


def _clauses(text: str) -> Iterator[PlanStep]:
    """Yield the clauses of the sentences in which the agent says what it will do."""
    for sentence in re.split(r"(?<=[a-z0-9`)])[.!?]+(?:\s+|$)|\n\s*\n", text):
        if not _INTENT.search(sentence):
            continue
        started = False
        for clause in re.split(_CLAUSE, sentence[_INTENT.search(sentence).start() :]):  # type: ignore[union-attr]
            plain = _LEAD.sub("", clause.strip(" ,:;-"))
            verb = _verb(clause) if started or _INTENT.search(clause) else ""
            if verb:
                started = True
                yield PlanStep(plain, names_in(clause), verb, listed=False)


def _verb(text: str) -> str:
    """Return the verb of what a text announces; empty where it announces nothing."""
    first = _LEAD.sub("", text.strip(" ,:;-*")).partition(" ")[0].strip("`,:;.").lower()
    if first in _LOOKING or first in _ACTING:
        return first
    if first.endswith("ing") and _LEAD.match(text) and (stem := _base_of(first)):
        return stem
    return ""


def _base_of(gerund: str) -> str:
    stem = gerund.removesuffix("ing")
    doubled = stem[:-1] if len(stem) > 2 and stem[-1] == stem[-2] else stem
    return next((each for each in (stem, f"{stem}e", doubled) if each in _LOOKING | _ACTING), "")


def names_in(text: str) -> tuple[str, ...]:
    """Return the files, functions and commands that a text names.

    >>> names_in("Fix `parse_date()` in src/dates.py, then run `pytest -q`")
    ('parse_date', 'pytest -q', 'src/dates.py')
    """
    names = {name.removesuffix("()").strip() for name in _QUOTED.findall(text)}
    rest = _QUOTED.sub(" ", text)
    names.update(path for path in FILE_PATH.findall(rest) if not re.fullmatch(r"(e\.g|i\.e|etc|and/or)\.?\w?", path))
    names.update(_CALL.findall(rest))
    names.update(_NAME.findall(rest))
    if RUNS_TESTS.search(rest):
        names.add("run tests")
    return tuple(sorted(name for name in names if name))
