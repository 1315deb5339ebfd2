"""Names of agents and attempts in node ids and directories, of reports, and of the file that makes a task."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

#: The file that makes a directory a task.
TASK_FILE = "task.toml"
#: The conversation that an agent begins a round from, beside the round's instruction.
TRAJECTORY_FILE = "trajectory.json"
#: Where an HTML report goes unless another directory is named.
REPORT_DIRECTORY = "evocode-report"


def attempt_name(agent: str, number: int) -> str:
    """Return the name of an attempt in node ids, made of the agent's id and the attempt's number.

    >>> attempt_name("oracle", 1), attempt_name("oracle", 2)
    ('oracle', 'oracle.2')
    """
    return agent if number == 1 else f"{agent}.{number}"


def protocol(mode: str, from_round: str | None) -> str:
    """Return what scores cannot be compared across: the mode, and the round that chains begin with.

    >>> protocol("chain", None), protocol("fail-stop", None), protocol("chain", "round-3")
    ('', 'fail-stop', 'from round-3')
    """
    parts = [mode] if mode != "chain" else []
    return ", ".join([*parts, f"from {from_round}"] if from_round else parts)


def scored_name(agent: str, mode: str, from_round: str | None) -> str:
    """Return the heading of an agent's scores: its name, and the mode where that is not a whole chain.

    >>> scored_name("gpt", "chain", None), scored_name("gpt", "fail-stop", "round-3")
    ('gpt', 'gpt (fail-stop, from round-3)')
    """
    suffix = protocol(mode, from_round)
    return f"{agent} ({suffix})" if suffix else agent


class ForkPoint(NamedTuple):
    """The round of another agent whose state attempts are forked from.

    >>> ForkPoint.parse("gpt:3"), ForkPoint.parse("gpt:tax@2026-11-29__10-00-00").run
    (ForkPoint(agent='gpt', round='round-3', run=''), '2026-11-29__10-00-00')
    """

    agent: str
    round: str
    run: str = ""
    """The run whose attempts are meant; empty for the newest that count."""

    @classmethod
    def parse(cls, text: str) -> ForkPoint:
        """Return what a text such as ``A:round-3``, ``A:3`` or ``A:round-3@RUN`` names; raises ValueError."""
        match = re.fullmatch(r"([^:@/]+):([^:@/]+)(?:@([^@/]+))?", text)
        if match is None:
            raise ValueError(text)
        agent, name, run = match.groups(default="")
        return cls(agent, f"round-{name}" if name.isdecimal() else name, run)

    @property
    def label(self) -> str:
        """The agent and the round, which forks of one kind have in common: ``A:round-3``."""
        return f"{self.agent}:{self.round}"

    @property
    def text(self) -> str:
        """All of it, as the option takes it."""
        return f"{self.label}@{self.run}" if self.run else self.label

    def index_in(self, rounds: Sequence[str]) -> int | None:
        """Return the place, from 1, of the round among a task's; ``round-3`` is the third where none is called so.

        >>> [ForkPoint.parse("gpt:2").index_in(names) for names in (("round-2", "b"), ("a", "b"), ("a",))]
        [1, 2, None]
        """
        if self.round in rounds:
            return rounds.index(self.round) + 1
        number = self.round.removeprefix("round-")
        return int(number) if number.isdecimal() and 1 <= int(number) <= len(rounds) else None


def first_played(start: str, rounds: Sequence[str]) -> int | None:
    """Return the place, from 1, of the round that chains begin with, by their start: a round's name, or ``A:round-3``.

    None where the rounds of the task, whose names are given, do not tell.

    >>> first_played("b", ("a", "b", "c")), first_played("gpt:b", ("a", "b", "c")), first_played("gpt:d", ("a",))
    (2, 3, None)
    """
    if start in rounds:
        return rounds.index(start) + 1
    if not is_fork(start) or (index := ForkPoint.parse(start).index_in(rounds)) is None:
        return None
    return index + 1


def is_fork(start: str | None) -> bool:
    """Return whether chains begin in a state of another agent's attempts, by their start.

    >>> is_fork("gpt:round-3"), is_fork("round-3"), is_fork(None)
    (True, False, False)
    """
    return start is not None and ":" in start


def agent_id(agent: str) -> str:
    """Return an agent's id, which node ids and directories use.

    >>> agent_id("anthropic/claude-opus-4-8"), agent_id("codex:openai/gpt-5"), agent_id("replay:results/a/ledger__a1")
    ('claude-opus-4-8', 'codex-gpt-5', 'replay')
    """
    kind, colon, rest = agent.partition(":")
    if colon and "/" not in kind:
        last = rest.rpartition("/")[2]
        agent = kind if kind == "replay" else last if kind == "cmd" else f"{kind}-{last}"
    return re.sub(r"[^A-Za-z0-9._-]+", "-", agent.rpartition("/")[2]).strip("-.") or "agent"


def natural_key(name: str) -> list[tuple[int, str]]:
    """Return a key that sorts numbers in names by their value.

    >>> sorted(["round-10", "round-9", "extra"], key=natural_key)
    ['extra', 'round-9', 'round-10']
    """
    return [(int(part), "") if part.isdecimal() else (-1, part) for part in re.split(r"(\d+)", name)]
