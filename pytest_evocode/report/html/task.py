"""A task as the viewer shows it: requirements, cases through all rounds and attempts: ``TaskData`` in ``data.d.ts``.

Its Markdown is a tree, ``Written``: the viewer makes the elements, and none is HTML.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from pytest_evocode.errors import TaskError
from pytest_evocode.metrics.failures import failing_cases
from pytest_evocode.report.html.bounded import bounded
from pytest_evocode.report.html.cells import LETTERS
from pytest_evocode.report.task import pinned_requirements
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.tasks import Requirement, Task
from pytest_evocode.tasks.lockfile import NOT_PINNED, Pins, read_pins

if TYPE_CHECKING:
    from markdown_it.tree import SyntaxTreeNode

_NOT_RUN = "."
_TEXT, _ID = 100_000, 1000  # characters
_GONE = "The task was not found; name its directory with --tasks to see its instructions."


@dataclass(frozen=True, slots=True)
class CaseFacts:
    """What does not change of a case from round to round."""

    origin: str
    requirement: str
    kind: str
    intent: str


@dataclass(frozen=True, slots=True)
class Lineage:
    """How the cases of one attempt went, without their texts, so that it takes little memory."""

    id: str
    """The attempt's id."""
    declared_rounds: tuple[str, ...]
    cases: dict[str, CaseFacts]
    """By the case's id."""
    rounds: dict[int, dict[str, str]]
    """By index of the round and id of the case: a character, as ``TaskData.attempts`` has them."""


def lineage_of(attempt: StoredAttempt, *, id: str) -> Lineage:
    """Return how the cases of an attempt went; the attempt has its cases.

    Args:
        attempt: The attempt.
        id: Its id.
    """
    record = attempt.record
    kinds: dict[int, dict[str, str]] = {}
    for round_, case, kind in failing_cases(record.rounds):
        kinds.setdefault(round_.index, {})[case.id] = LETTERS[kind]
    cases: dict[str, CaseFacts] = {}
    rounds: dict[int, dict[str, str]] = {}
    for round_ in record.rounds:
        if round_.verdict is None:
            continue
        went = rounds[round_.index] = {}
        failing = kinds.get(round_.index, {})
        for case in round_.verdict.cases:
            name = case.id
            if name not in cases:
                cases[name] = CaseFacts(case.origin, case.requirement, case.kind, case.intent)
            went[name] = "p" if case.status == "passed" else failing.get(name, "k")
    return Lineage(id, record.declared_rounds, cases, rounds)


def task_data(name: str, lineages: Iterable[Lineage], task: Task | None, *, id: str, note: str = "") -> dict[str, Any]:
    """Return what the viewer shows of a task, as JSON values.

    Args:
        name: The task's name.
        lineages: Those of its attempts, in the order of the index.
        task: The task's directory, read; None where it is not found, or is not valid.
        id: The task's id.
        note: Why there is no task; empty has a sentence of its own.
    """
    lineages = list(lineages)
    notes = [note] if note else [] if task is not None else [_GONE]
    names = _round_names(lineages, task)
    pins = _read_pins(task, notes)
    facts = _case_facts(lineages, pins)
    suites = {name: pins.of(name) or _observed(lineages, names, name, facts) for name in names}
    requirements = _requirements(task, suites, names)
    numbers = {requirement.id: number for number, requirement in enumerate(requirements)}
    index = {name: number for number, name in enumerate(names, start=1)}
    cases = sorted(facts, key=lambda each: _first_round(each, suites, index))
    of_requirement: dict[int, list[int]] = {}
    for number, case in enumerate(cases):
        if (at := numbers.get(_requirement_of(facts[case]))) is not None:
            of_requirement.setdefault(at, []).append(number)
    return {
        "id": id,
        "name": name,
        "rounds": _rounds_data(task, suites, notes),
        "note": "\n".join(notes),
        "requirements": [
            {
                "id": bounded(requirement.id, _ID),
                "introduced": index.get(requirement.introduced, 1),
                "retired": index.get(requirement.retired),
                "kinds": _kinds(task, requirement, [facts[cases[at]] for at in of_requirement.get(number, ())]),
                "cases": of_requirement.get(number, []),
            }
            for number, requirement in enumerate(requirements)
        ],
        "cases": [_case_data(case, facts[case], numbers) for case in cases],
        "attempts": [_attempt_data(lineage, cases) for lineage in lineages],
    }


def _attempt_data(lineage: Lineage, cases: Sequence[str]) -> dict[str, Any]:
    rounds = {
        str(index): "".join([went.get(case, _NOT_RUN) for case in cases])
        for index, went in sorted(lineage.rounds.items())
    }
    return {"id": lineage.id, "rounds": rounds}


def _case_data(case: str, facts: CaseFacts, numbers: Mapping[str, int]) -> dict[str, Any]:
    return {
        "id": bounded(case, _ID),
        "origin": bounded(facts.origin, _ID),
        "requirement": numbers.get(_requirement_of(facts)),
        "kind": bounded(facts.kind, _ID),
        "intent": bounded(facts.intent, _TEXT),
    }


def _requirement_of(facts: CaseFacts) -> str:
    """Return the requirement that a case checks; one that names none belongs to the round that required it first."""
    return facts.requirement or facts.origin


def _round_names(lineages: Sequence[Lineage], task: Task | None) -> tuple[str, ...]:
    if task is not None:
        return tuple(round_.name for round_ in task.rounds)
    most = max((lineage.declared_rounds for lineage in lineages), key=len, default=())
    return tuple(name or f"round {index}" for index, name in enumerate(most, start=1))


def _read_pins(task: Task | None, notes: list[str]) -> Pins:
    if task is None:
        return NOT_PINNED
    try:
        return read_pins(task.directory)
    except TaskError as error:
        notes.append(str(error))
    except OSError as error:
        notes.append(f"{error.filename}: it cannot be read: {error.strerror}")
    return NOT_PINNED


def _case_facts(lineages: Sequence[Lineage], pins: Pins) -> dict[str, CaseFacts]:
    """Return all cases that were run or are pinned, by their ids."""
    found: dict[str, CaseFacts] = {}
    for lineage in lineages:
        for case, facts in lineage.cases.items():
            found.setdefault(case, facts)
    for suite in pins.rounds.values():
        for case, requirement in suite.items():
            found.setdefault(case, CaseFacts("", requirement, "", ""))
    return found


def _observed(
    lineages: Sequence[Lineage], names: Sequence[str], name: str, facts: Mapping[str, CaseFacts]
) -> dict[str, str]:
    """Return the cases that any attempt ran in a round, with their requirements."""
    index = names.index(name) + 1
    ids = dict.fromkeys(case for lineage in lineages for case in lineage.rounds.get(index, ()))
    return {case: _requirement_of(facts[case]) for case in ids}


def _requirements(
    task: Task | None, suites: Mapping[str, Mapping[str, str]], names: Sequence[str]
) -> list[Requirement]:
    """Return the requirements in the order in which they are introduced: those written in tests, then by cases."""
    declared = task.requirements if task is not None else ()
    known = {requirement.id for requirement in declared}
    ran = {name: suite for name, suite in suites.items() if suite}
    of_cases = [each for each in pinned_requirements(ran, names) if each.id not in known]
    return sorted([*declared, *of_cases], key=lambda each: names.index(each.introduced))


def _first_round(case: str, suites: Mapping[str, Mapping[str, str]], index: Mapping[str, int]) -> int:
    return next((index[name] for name, suite in suites.items() if case in suite), len(index) + 1)


def _kinds(task: Task | None, requirement: Requirement, cases: Iterable[CaseFacts]) -> list[str]:
    tests = task.tests if task is not None else ()
    kinds = [test.kind for test in tests if test.requirement == requirement.id]
    return [bounded(kind, _ID) for kind in dict.fromkeys([*kinds, *(case.kind for case in cases)]) if kind]


def _rounds_data(
    task: Task | None, suites: Mapping[str, Mapping[str, str]], notes: list[str]
) -> list[dict[str, Any]] | None:
    if task is None:
        return None
    found = []
    for round_ in task.rounds:
        try:
            instruction = bounded(round_.instruction.read_text(encoding="utf-8", errors="replace"), _TEXT)
        except OSError as error:
            notes.append(f"{round_.instruction}: it cannot be read: {error.strerror}; restore it")
            instruction = ""
        found.append(
            {
                "name": round_.name,
                "instruction": instruction,
                "written": written(instruction),
                "change_types": list(round_.change_types),
                "suite": [bounded(case, _ID) for case in suites[round_.name]],
            }
        )
    return found


Written: TypeAlias = "str | dict[str, Any]"

#: What a token becomes; all others are passed over for what is in them.
_TAGS = {
    "paragraph": "p",
    "strong": "strong",
    "em": "em",
    "s": "s",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "ordered_list": "ol",
    "list_item": "li",
    "hr": "hr",
    "hardbreak": "br",
    "table": "table",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
}
_ABOVE = 3
"""Levels of the page's own headings."""
_SCHEMES = ("http://", "https://")


def written(text: str) -> list[Written]:
    """Return the elements of a text in Markdown; HTML in it stays text, and no image is one.

    >>> written("a *b*")
    [{'tag': 'p', 'href': '', 'children': ['a ', {'tag': 'em', 'href': '', 'children': ['b']}]}]
    """
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

    parser = MarkdownIt("commonmark", {"html": False}).enable(["table", "strikethrough"])
    return _children(SyntaxTreeNode(parser.parse(text)).children)


def _children(nodes: Sequence[SyntaxTreeNode]) -> list[Written]:
    found: list[Written] = []
    for each in (each for node in nodes for each in _node(node)):
        # Texts side by side are one.
        if isinstance(each, str) and found and isinstance(found[-1], str):
            found[-1] += each
        else:
            found.append(each)
    return found


def _node(node: SyntaxTreeNode) -> Iterator[Written]:
    if node.type in ("text", "softbreak"):
        yield node.content or "\n"
    elif node.type in ("code_inline", "code_block", "fence"):
        yield _element("code" if node.type == "code_inline" else "pre", [node.content])
    elif node.type == "image":
        yield f"[image: {node.content or node.attrGet('src')}]"
    elif node.type == "heading":
        yield _element(f"h{min(6, int(node.tag[1:]) + _ABOVE)}", _children(node.children))
    elif node.type == "link":
        address = str(node.attrGet("href") or "")
        yield from _link(address, _children(node.children))
    elif node.type == "paragraph" and node.hidden:  # Of a list whose items are close to one another.
        yield from _children(node.children)
    elif node.type in _TAGS:
        yield _element(_TAGS[node.type], _children(node.children))
    else:
        yield from _children(node.children)


def _link(address: str, children: list[Written]) -> Iterator[Written]:
    """Yield a link to a page of the web; any other is its text, with where it leads."""
    if address.lower().startswith(_SCHEMES):
        yield _element("a", children, address)
    else:
        yield from [*children, f" ({address})"] if address and children != [address] else children


def _element(tag: str, children: list[Written], href: str = "") -> Written:
    return {"tag": tag, "href": href, "children": children}
