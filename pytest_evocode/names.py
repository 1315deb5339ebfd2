"""Names of agents and attempts in node ids and directories, of reports, and of the file that makes a task."""

from __future__ import annotations

import re

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
