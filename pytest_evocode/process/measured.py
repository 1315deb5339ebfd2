"""How often the rules for words and outputs are right: precision and recall on turns held back from their author.

``rules/measured.toml`` has the counts; ``python -m benchmarks.turn_labels --write`` makes it anew.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from math import sqrt
from pathlib import Path

FILE = Path(__file__).with_name("rules") / "measured.toml"
#: By label in the corpus, the pillar that rests on it and what it is called; no pillar rests on a doubt.
PILLAR = {
    "plan": ("pf", "plans"),
    "test_run": ("re", "runs of tests"),
    "passed": ("re", "tests passed"),
    "failed": ("re", "tests failed"),
    "clarification": ("aq", "questions"),
    "abstention": ("aq", "refusals"),
    "success": ("aq", "claims of success"),
}
#: Least bound of an interval of what may be relied on.
LEAST = 0.8
_Z = 1.959964


@dataclass
class Score:
    """What was found of what there is, in the turns that could be read."""

    turns: int = 0
    unread: int = 0
    there: int = 0
    found: int = 0
    right: int = 0

    def add(self, there: int, found: int, right: int) -> None:
        """Count a turn."""
        self.turns += 1
        self.there += there
        self.found += found
        self.right += right

    @property
    def precision(self) -> str:
        """The share of what was found that is right, with its interval."""
        return share(self.right, self.found)

    @property
    def recall(self) -> str:
        """The share of what there is that was found, with its interval."""
        return share(self.right, self.there)

    @property
    def is_sure(self) -> bool:
        """Whether both are known to be high enough to rely on."""
        return all(of and wilson(self.right, of)[0] >= LEAST for of in (self.found, self.there))


def wilson(right: int, of: int) -> tuple[float, float]:
    """Return Wilson's 95 % interval of a share.

    >>> [round(bound, 2) for bound in wilson(9, 10)]
    [0.6, 0.98]
    """
    middle = (right + _Z**2 / 2) / (of + _Z**2)
    half = _Z / (of + _Z**2) * sqrt(right * (of - right) / of + _Z**2 / 4)
    return middle - half, middle + half


def share(right: int, of: int) -> str:
    """Return a share with its interval; n/a of nothing.

    >>> share(9, 10), share(0, 0)
    ('.90 [.60, .98]', 'n/a')
    """
    if not of:
        return "n/a"
    low, high = wilson(right, of)
    return f"{_short(right / of)} [{_short(low)}, {_short(high)}]"


def _short(value: float) -> str:
    return f"{max(0.0, value):.2f}".replace("0.", ".", 1)


@cache
def scores() -> dict[str, dict[str, Score]]:
    """Return the scores by label and by class of language; ``all`` for all classes."""
    content = tomllib.loads(FILE.read_text(encoding="utf-8"))
    return {label: {name: Score(**each) for name, each in classes.items()} for label, classes in content.items()}


def measured_lines(pillars: Iterable[str]) -> Iterator[str]:
    """Yield, for what some pillars rest on, how often it is right."""
    chosen = set(pillars)
    found = [(pillar, name, scores()[label]["all"]) for label, (pillar, name) in PILLAR.items() if pillar in chosen]
    if not found:
        return
    yield "How often the rules are right, on turns that were held back from their author, with 95 % intervals:"
    for pillar, name, each in found:
        unread = f"; {each.unread} turns in other languages are not read" if each.unread else ""
        mark = "" if each.is_sure else " *"
        told = f"precision {each.precision}, recall {each.recall} of {each.turns} turns"
        yield f"  {pillar.upper()}, {name}: {told}{unread}{mark}"
    if not all(each.is_sure for _, _, each in found):
        yield f"  * may be under {LEAST:g}: not for single attempts"
