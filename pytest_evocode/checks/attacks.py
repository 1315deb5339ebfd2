"""The attacks that need no idea of the task: those of ``attacks.toml``, and those made of what is visible."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import tomli

from pytest_evocode.checks.generic_cheats import GENERIC, Visible


@dataclass(frozen=True, slots=True)
class Attack:
    """A way to the points without the work."""

    name: str
    tries: str
    """What it tries to do, in words."""
    script: str = ""
    """What is run in place of the agent."""
    files: Callable[[Visible], dict[str, str]] = lambda visible: {}
    """What is laid into the workspace before that: texts by relative paths."""
    in_checks: bool = False
    """Whether it is one of the generic cheats that every task is checked with."""


def _in_words(make: Callable[[Visible], dict[str, str]]) -> str:
    words = (make.__doc__ or "").rstrip(".")
    return words[:1].lower() + words[1:]


ATTACKS: Mapping[str, Attack] = {
    each.name: each
    for each in (
        *(Attack(name, _in_words(make), files=make, in_checks=True) for name, make in GENERIC.items()),
        *(Attack(**each) for each in tomli.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["attack"]),
    )
}
"""All of them by name."""
