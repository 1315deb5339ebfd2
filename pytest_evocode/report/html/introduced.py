"""Who broke it: the round in which a case began to fail, and the step whose edit it came with, where that is known."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pytest_evocode.process.trajectory.file_roles import FileRoles
from pytest_evocode.results.records import Case, RoundRecord

_LONGEST = 200_000  # characters of a text that names files
_PATH = re.compile(r"[\w./@+~-]+")
_ROLES = FileRoles()
_DEEPEST = 30  # directories of a path
_SHOWN = 100  # characters of a path


@dataclass(frozen=True, slots=True)
class RoundEdits:
    """What is known of the edits of one round."""

    recorded: bool
    """Whether there is a trajectory that tells of them."""
    edits: Sequence[tuple[int, str]] = ()
    """The steps with the files that they edited, in order."""
    stated: bool = False
    """Whether they are what the agent's calls said, because nothing was recorded of the files."""


class Introductions:
    """Follows the cases of an attempt through its rounds, which have to come in order."""

    def __init__(self, *, alone: bool = False) -> None:
        """Begin an attempt; ``alone`` says that each round began anew, so that none continues what another broke."""
        self._alone = alone
        self._open: dict[str, dict[str, Any]] = {}
        self._seen: dict[str, int] = {}
        self._inherited: set[str] = set()
        """Cases that failed in the state that a fork went on from, and have not passed since."""
        self._unverified: list[int] = []

    def of_round(self, record: RoundRecord, edits: RoundEdits, output: str) -> dict[int, dict[str, Any]]:
        """Return who introduced the failures of a round, by the places of its failing cases.

        Args:
            record: The round with its cases.
            edits: Its edits.
            output: What its suite printed.
        """
        if self._alone:
            self._open, self._seen, self._unverified = {}, {}, []
        cases = record.verdict.cases if record.verdict is not None else ()
        if not cases:
            self._unverified.append(record.index)
            return {}
        blame = _Blame(edits, output)
        found: dict[int, dict[str, Any]] = {}
        for place, case in enumerate(cases):
            name = case.id
            if case.failure == "carried" and name not in self._seen and not self._unverified:
                self._inherited.add(name)
            if case.status == "passed":
                self._inherited.discard(name)
                if self._open:
                    self._open.pop(name, None)
            elif case.failing and name not in self._inherited:
                known = self._open.get(name) if name else None
                found[place] = known or self._introduced(case, record.index, blame)
                if name:
                    self._open[name] = found[place]
            if case.status != "skipped":
                self._seen[name] = record.index
        return found

    def _introduced(self, case: Case, index: int, blame: _Blame) -> dict[str, Any]:
        last = self._seen.get(case.id)
        unverified = [each for each in self._unverified if each > (last or 0)]
        if last is None:
            began = "It is first checked in this round"
        elif unverified:
            began = f"It passed in round {last}"
        else:
            began = "It passed until this round"
        if unverified:
            why = f"{began}, and {_rounds(unverified)} had no verdict, so an edit made there may be to blame as well."
            return {"round": index, "step": None, "why": why}
        step, why = blame.step(case)
        return {"round": index, "step": step, "why": f"{began}; {why}."}


class _Blame:
    """Finds the step of a round that a failure came with."""

    def __init__(self, edits: RoundEdits, output: str) -> None:
        self._edits = edits
        self._output = output

    @cached_property
    def _in_output(self) -> tuple[int, str] | None:
        return _last_named(self._edits.edits, (self._output,))

    def step(self, case: Case) -> tuple[int | None, str]:
        """Return the step, None where nobody can tell, and what that rests on."""
        edits = self._edits.edits
        if not self._edits.recorded:
            return None, "what the agent edited in it was not recorded"
        if not edits:
            return None, "no edit was recorded in it"
        said = "as its calls say, " if self._edits.stated else ""
        if named := _last_named(edits, (case.reason, case.actual)):
            return named[0], f"{said}the last edit of {_short(named[1])}, which the failure names"
        steps = dict.fromkeys(step for step, _ in edits)
        if len(steps) == 1:
            return edits[0][0], f"{said}the only edit in this round"
        if len(of_product := {step for step, path in edits if _ROLES.of(path) not in ("tests", "prose")}) == 1:
            return of_product.pop(), f"{said}the only edit in this round of a file that is neither test nor prose"
        if self._in_output is not None:
            step, path = self._in_output
            return step, f"{said}the last edit of {_short(path)}, which the suite's output names"
        return None, f"{len(steps)} steps edited files in it, none of which the failure names"


def _last_named(edits: Sequence[tuple[int, str]], texts: Iterable[str]) -> tuple[int, str] | None:
    """Return the last edit of a file that texts name."""
    named: set[str] = set()
    for text in texts:
        for token in set(_PATH.findall(text[-_LONGEST:])):
            path = token.removeprefix("./").rstrip(".")
            named.add(path)
            # The workspace may be anywhere.
            parts = path.split("/", _DEEPEST) if path.startswith("/") else []
            named.update("/".join(parts[begin:]) for begin in range(1, len(parts)))
    for step, path in reversed(edits) if named else ():
        if path in named or _is_end(path, named):
            return step, path
    return None


def _is_end(path: str, named: set[str]) -> bool:
    """Return whether a file with an absolute path, as calls give it, is named relative to the working directory."""
    parts = path.split("/") if path.startswith("/") else []
    return any("/".join(parts[begin:]) in named for begin in range(1, len(parts) - 1))


def _rounds(indices: Sequence[int]) -> str:
    return f"round {indices[0]}" if len(indices) == 1 else f"rounds {', '.join(map(str, indices[:10]))}"


def _short(path: str) -> str:
    return path if len(path) <= _SHOWN else f"...{path[-_SHOWN:]}"
