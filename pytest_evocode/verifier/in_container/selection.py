"""Selects the tests of a round's cumulative native suite, and describes each for the report."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.verifier.in_container.memory import TESTS
from pytest_evocode.verifier.in_container.protocol import Plan

KINDS = ("core", "boundary", "error", "integration")
DESCRIPTIONS = ("scenario", "input", "expected", "actual")
LONGEST = 4 * 2**10  # characters of one text in the report
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class Selection:
    """Takes those of the collected tests that a round requires; what it goes by is in :class:`Plan`."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.rounds = plan["rounds"]
        self.wanted: list[pytest.Item] = []
        self.problems: list[str] = []
        """What is wrong with the suite, whatever the workspace is like."""
        self.unlike: list[str] = []
        """The cases that would run, were they called otherwise."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Deselect what the round does not require and put the rest into the order of rounds."""
        counts = Counter(item.nodeid for item in items)
        for item in items:
            self.problems += self.wrong_markers(item)
            if counts[item.nodeid] > 1:
                self.problems.append(f"{place_of(item)}: {counts[item.nodeid]} cases are called {item.nodeid}")
        wanted = [] if self.problems else [item for item in items if self.is_wanted(item)]
        wanted.sort(key=lambda item: self.rounds.index(self.origin(item.path)))
        if self.plan["backwards"]:
            wanted.reverse()
        kept = set(map(id, wanted))
        config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
        items[:] = self.wanted = wanted

    def is_wanted(self, item: pytest.Item) -> bool:
        """Return whether an item is to run."""
        if self.retirement(item) != self.plan["retired"]:
            return False
        if self.plan["cases"] and item.nodeid not in self.plan["cases"]:
            return False
        if self.plan["patterns"] and not is_called(item.nodeid, self.plan["patterns"]):
            self.unlike.append(item.nodeid)
            return False
        return not self.plan["only"] or self.origin(item.path) == self.plan["only"]

    def origin(self, path: Path) -> str:
        """Return the round that a test came with."""
        first = path.relative_to(TESTS).parts[0]
        return first if first in self.rounds else self.plan["shared"]

    def retirement(self, item: pytest.Item) -> str | None:
        """Return the round that retired an item, None where none of those up to now has."""
        name = self.round_of(argument(item, "retired"))
        return name if name in self.rounds else None

    def round_of(self, retired: str) -> str | None:
        """Return the round that a round's name or a requirement's id stands for."""
        return retired if retired in self.plan["all_rounds"] else self.plan["introduced"].get(retired)

    def wrong_markers(self, item: pytest.Item) -> Iterator[str]:
        """Yield what is wrong with the item's markers; the host reads only those that are written out literally."""
        all_rounds = self.plan["all_rounds"]
        for marker in item.iter_markers("requirement"):
            if not is_sound(marker):
                given = [*map(repr, marker.args), *(f"{name}={value!r}" for name, value in marker.kwargs.items())]
                yield (
                    f"{place_of(item)}: pytest.mark.requirement({', '.join(given)}) is wrong; "
                    'write requirement("id", kind="core", retired="round-9"), kind and retired only where needed'
                )
            elif retired := marker.kwargs.get("retired"):
                round_ = self.round_of(retired)
                if round_ is None:
                    known = ", ".join([*all_rounds, *sorted(self.plan["introduced"])])
                    wrong = f"names no round of the task and no requirement; there are: {known}"
                elif all_rounds.index(round_) <= all_rounds.index(self.origin(item.path)):
                    wrong = f"means from {round_} on, and the test comes no earlier; name a later round"
                else:
                    continue
                yield f'{place_of(item)}: retired="{retired}" {wrong}'

    def pytest_json_runtest_metadata(self, item: pytest.Item, call: pytest.CallInfo[None]) -> dict[str, str]:
        """Return what the report says of a test besides its outcome."""
        if call.when == "setup":
            return {
                "origin": self.origin(item.path),
                "requirement": argument(item, 0),
                "kind": argument(item, "kind"),
                "retired": argument(item, "retired"),
                "intent": shortened(intent_of(item)),
            }
        if call.when == "teardown":
            return {name: shortened(value) for name, value in item.user_properties if name in DESCRIPTIONS}
        return {}


def is_called(id: str, patterns: Iterable[str]) -> bool:
    """Return whether a case's id, its part behind the file or its function is as one of the patterns says.

    In these ``*`` and ``?`` stand for others, and brackets for themselves, because ids have them.

    >>> is_called("round-1/test_cli.py::test_price[light]", ["test_pr*"]), is_called("a.py::test_b[c]", ["test_b[c]"])
    (True, True)
    >>> is_called("round-1/test_cli.py::TestCli::test_price", ["test_price"]), is_called("a.py::test_b", ["test"])
    (True, False)
    """
    inside = id.partition("::")[2]
    function, bracket, values = inside.partition("[")
    test = function.rpartition("::")[2]
    names = (id, inside, function, f"{test}{bracket}{values}", test)
    return any(fnmatchcase(name, pattern.replace("[", "[[]")) for pattern in patterns for name in names)


def is_sound(marker: pytest.Mark) -> bool:
    """Return whether a requirement marker has the arguments that it takes."""
    values = {"kind": "core", "retired": "-", **marker.kwargs}
    if len(marker.args) != 1 or not all(isinstance(value, str) and value for value in (*marker.args, *values.values())):
        return False
    return bool(_ID.fullmatch(marker.args[0])) and values.keys() == {"kind", "retired"} and values["kind"] in KINDS


def argument(item: pytest.Item, name: str | int) -> str:
    """Return an argument of an item's requirement marker, empty where it has no marker or the marker no such argument.

    The marker of a parameter set goes before that of the function, then come the class and the module. Of several on
    one of these the one on top counts, and of a list the last.
    """
    for node in item.iter_parents():
        for marker in reversed(node.own_markers):
            if marker.name == "requirement":
                found = marker.args[name] if isinstance(name, int) else marker.kwargs.get(name, "")
                return str(found)
    return ""


def place_of(node: pytest.Item | pytest.Collector) -> str:
    """Return the file of a test, relative to the tests, and its line."""
    location = getattr(node, "location", None)
    return f"{location[0]}:{(location[1] or 0) + 1}" if location else node.nodeid


def intent_of(item: pytest.Item) -> str:
    """Return the first paragraph of a test's docstring, in one line."""
    text: str = getattr(getattr(item, "obj", None), "__doc__", None) or ""
    return " ".join(text.strip().partition("\n\n")[0].split())


def shortened(value: Any, longest: int = LONGEST) -> str:
    """Return a value as text, without the middle where it is long."""
    text = str(value)
    return text if len(text) <= longest else f"{text[: longest // 2]}\n[...]\n{text[-longest // 2 :]}"
