"""The cases of all rounds: round_K.py holds what round K adds, once; later suites take it from there."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Case:
    """One call of the product in an empty directory, and what it must answer."""

    id: str
    requirement: str
    kind: str  # core, boundary, error or integration
    intent: str
    argv: list[str]
    files: dict[str, str] = field(default_factory=dict)
    stdin: str = ""
    status: int = 0
    stdout: str = ""
    stderr: str = ""
    usage: bool = False  # any message that contains `usage:` will do; `stderr` is not compared
    retired_in: str | None = None  # the round from which on this is no longer required
