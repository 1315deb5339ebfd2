"""What the pages of commands, docs/clis.md and docs/providers.md, tell to type and to write, section by section."""

from __future__ import annotations

import itertools
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evocode.agents.specs import Option

ROOT = Path(__file__).parents[2]
CLIS, PROVIDERS = ROOT / "docs" / "clis.md", ROOT / "docs" / "providers.md"


@dataclass
class Block:
    """What a section tells to type, and to write into pyproject.toml."""

    extras: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    arguments: list[str] = field(default_factory=list)
    toml: str = ""

    @property
    def spec(self) -> str:
        """What ``--evocode-agent`` is given."""
        [spec] = (
            each.removeprefix("--evocode-agent=") for each in self.arguments if each.startswith("--evocode-agent=")
        )
        return spec

    @property
    def options(self) -> dict[str, Option]:
        """The options of the agent, as they are given after ``--evocode-agent-option``."""
        given = [each for before, each in itertools.pairwise(self.arguments) if before == "--evocode-agent-option"]
        return {name: Option(value, "the page") for name, _, value in (each.partition("=") for each in given)}


def blocks(page: Path) -> dict[str, Block]:
    """What each section of a page with a command says, by its heading."""
    found = {}
    for section in page.read_text().split("\n## ")[1:]:
        heading, _, text = section.partition("\n")
        declared = re.findall(r"```\{literalinclude\} (\S+\.toml)$", text, re.MULTILINE)
        toml = "".join((page.parent / name).read_text() for name in declared)
        toml += "".join(re.findall(r"```toml\n(.*?)```", text, re.DOTALL))
        block = Block(toml=toml)
        lines = "\n".join(line[4:] for line in text.splitlines() if line.startswith("    ")).replace("\\\n", "")
        for line in lines.splitlines():
            if installed := re.fullmatch(r"pip install 'pytest-evocode\[(\w+)\]'", line):
                block.extras.append(installed[1])
            elif line.startswith("export "):
                name, _, value = line.removeprefix("export ").partition("=")
                block.variables[name] = value
            elif line.startswith("pytest "):
                block.arguments = shlex.split(line)[1:]
        if block.arguments:
            found[heading] = block
    return found


def rows(page: Path) -> dict[str, list[str]]:
    """A page's table: the cells of each row by the heading that its first one links to."""
    found = {}
    for line in page.read_text().splitlines():
        if row := re.match(r"\| \[(.+?)\]\(#.+?\) \|(.*)\|$", line):
            found[row[1]] = [cell.strip() for cell in row[2].split("|")]
    return found
