"""Harnesses: the rules, prompt and skills that surround a model, so that two of them on one model can be compared."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from pytest_evocode.agents.words import NUDGES
from pytest_evocode.errors import UsageError

#: What a model is told whose reply was cut off, and how often one after the other.
CUT_OFF = NUDGES["cut off"]
CUT_REPLIES = 3


class HarnessOptions(BaseModel):
    """Options of every agent that has a model."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    rules: Path | None = None
    """File that the agent reads as its rules: part of the shell agent's system prompt, and where an installed CLI looks
    for its user's own. It is no file of the workspace, and in no recorded diff."""
    prompt: Path | None = None
    """File with what the agent is told before the first instruction; it replaces the shell agent's system prompt."""
    skills: Path | None = None
    """Directory with one directory per skill, each with a SKILL.md that begins with its ``name`` and ``description``
    between two lines ``---``."""
    mcp: Path | None = None
    """JSON file of MCP servers, in the form of Claude Code's .mcp.json, beside those of the task."""


@dataclass(frozen=True, slots=True)
class Skill:
    """What a model is told of a skill; it reads the rest in ``directory``, relative to the skills' directory."""

    name: str
    description: str
    directory: str


def read_file(path: Path) -> str:
    """Read a file of a harness; raises UsageError where it is not readable as UTF-8."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"{path} cannot be read: {error}; it has to be UTF-8 text") from None


def check_files(*files: Path | None, skills: Path | None = None) -> None:
    """Raise UsageError where a file or the skills of a harness cannot be read."""
    for path in files:
        if path is not None:
            read_file(path)
    if skills is not None:
        read_skills(skills)


def read_skills(directory: Path) -> list[Skill]:
    """Return the skills of a directory in order of name.

    Each SKILL.md begins with a block between two lines ``---`` that has ``name:`` and ``description:``.

    Raises:
        UsageError: There is no skill, or one has no description.
    """
    found = []
    for path in sorted(directory.glob("*/SKILL.md")):
        head = skill_head(read_file(path))
        if "description" not in head:
            raise UsageError(f"{path}:1: it has to begin with a block between --- lines that has a description:")
        found.append(Skill(head.get("name", path.parent.name), head["description"], path.parent.name))
    if not found:
        raise UsageError(f"{directory}: no skills found; a skill is a directory with a SKILL.md")
    return found


def skill_head(text: str) -> dict[str, str]:
    """Return what the first block of a SKILL.md, between two lines ``---``, says; empty where there is none."""
    lines = text.splitlines()
    if not lines or lines[0].strip() != "---":
        return {}
    head: dict[str, str] = {}
    key = ""
    for line in lines[1:]:
        if line.strip() == "---":
            return head
        if line[:1].isspace() and key:  # A value over several lines.
            head[key] = f"{head[key]} {line.strip()}".removeprefix("> ").removeprefix("| ")
        else:
            key, _, value = line.partition(":")
            key = key.strip()
            head[key] = value.strip().strip("\"'")
    return {}
