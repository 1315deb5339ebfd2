"""Every kind of agent: how it is driven, which API it speaks, and how far and with which version it was tried."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict

_TABLE = Path(__file__).with_name("tried.toml")
_LINK = re.compile(r"\[(.+?)\]\((.+?)\)")
_NUMBERS = ("no", "one", "two", "three", "four", "five")


class AgentKind(BaseModel):
    """One kind of agent."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    agent: str = ""
    """What ``--evocode-agent`` takes; empty for a program that cannot be run."""
    program: str = ""
    """The name of a program of others."""
    executable: str = ""
    """What a shell calls that program by."""
    driven: str = ""
    package: str = ""
    """Registry and name of the program's package, such as ``npm:cline``."""
    api: str = ""
    version: str = ""
    """The version of the program that was tried."""
    rounds: int = 0
    """How many rounds of a conversation were played with it; 0 for a program that was not tried."""
    note: str = ""
    """What to know, in Markdown."""

    @property
    def tried(self) -> str:
        """How far a program was tried, in words; empty for what is none."""
        if not self.program:
            return ""
        return f"{self.version}, {_NUMBERS[self.rounds]} rounds" if self.rounds else "not tried"


@cache
def agent_kinds() -> tuple[AgentKind, ...]:
    """Return all kinds, in the order of the table."""
    return tuple(AgentKind(**kind) for kind in tomllib.loads(_TABLE.read_text(encoding="utf-8"))["kinds"])


def rows_of_kinds() -> Iterator[tuple[str, str, str, str, str]]:
    """Yield the rows of a table of all kinds in plain text, the head first."""
    yield ("agent", "driven", "API", "tried", "what to know")
    for kind in agent_kinds():
        yield (kind.agent or kind.program, kind.driven, kind.api, kind.tried, _LINK.sub(r"\1, \2", kind.note))


def markdown_of_programs() -> Iterator[str]:
    """Yield a table of the programs of others in Markdown; each that can be run has a section with its command."""
    yield from ("| program | driven | from | tried | what to know |", "|---|---|---|---|---|")
    for kind in agent_kinds():
        if kind.program:
            name = f"[{kind.program}](#{kind.program.lower().replace(' ', '-')})" if kind.agent else kind.program
            tried = f"{kind.tried}, {kind.api}" if kind.rounds else kind.tried
            registry = kind.package.partition(":")[0] or "its maker's site"
            yield f"| {name} | {kind.driven} | {registry} | {tried} | {kind.note} |"
