"""A made-up benchmark: tasks with requirements and cases, and what agents did at them, from a seed."""

from __future__ import annotations

from dataclasses import dataclass, field
from random import Random

TASK_NAMES = ("ledger", "invoices", "recipes", "retention", "stations", "stockroom", "transfers")
AGENTS = ("claude-code", "codex", "mini-swe-agent", "openhands", "gemini-cli", "opencode", "aider", "shell")
ACTIVITIES = ("feature", "bug-fix", "refactoring")
CHANGE_TYPES = ("addition", "revision", "removal", "clarification")
KINDS = ("functional", "boundary", "compatibility")
CASES_PER_ROUND = 3
LIFE = 6


@dataclass
class Task:
    """A task: each round brings a requirement with three cases; every third requirement is retired after six rounds."""

    id: str
    name: str
    rounds: list[str]

    def case(self, number: int) -> str:
        return f"test_rule_{number // CASES_PER_ROUND + 1}_{'abc'[number % CASES_PER_ROUND]}"

    def active(self, index: int) -> list[int]:
        """The numbers of the cases that count in a round, from 1."""
        first = max(0, index - 12) * CASES_PER_ROUND
        cases = range(first, index * CASES_PER_ROUND)
        return [number for number in cases if not self.retired(number) or self.retired(number) > index]

    def retired(self, number: int) -> int:
        """The round from which a case does not count any more; 0 for never."""
        requirement = number // CASES_PER_ROUND
        return requirement + 1 + LIFE if requirement % 3 == 2 else 0


@dataclass
class Attempt:
    """What became of an attempt: a cell for each round and, of those with a verdict, a character for each case."""

    id: str
    row: str
    agent: str
    task: Task
    attempt: int
    run: str
    mode: str
    cells: str = ""
    verdicts: dict[int, dict[int, str]] = field(default_factory=dict)
    finished: bool = True

    def counts(self, index: int) -> tuple[int, int]:
        verdict = self.verdicts.get(index, {})
        return sum(each == "p" for each in verdict.values()), len(verdict)


def tasks(count: int, rounds: int) -> list[Task]:
    """Return tasks; every fourth has two rounds fewer."""
    found = []
    for number in range(count):
        name = TASK_NAMES[number % len(TASK_NAMES)] + (
            f"-{number // len(TASK_NAMES)}" if number >= len(TASK_NAMES) else ""
        )
        length = max(1, rounds - 2 * (number % 4 == 3))
        found.append(Task(f"t{number}-{name}", name, [f"round-{index}" for index in range(1, length + 1)]))
    return found


def play(attempt: Attempt, skill: float, random: Random, *, unfinished: bool = False) -> Attempt:
    """Fill in the cells and verdicts of an attempt by an agent that does a round well with the chance ``skill``."""
    failing: set[int] = set()
    over = False
    last = len(attempt.task.rounds)
    stop = last // 2 + 1 if unfinished else last
    for index in range(1, last + 1):
        if over or index > stop:
            attempt.cells += "?" if unfinished and index == stop + 1 else "-"
            continue
        accident = random.random()
        if accident < 0.05:
            attempt.cells += random.choice("ttbaio")
            over = attempt.mode == "fail-stop"
            continue
        verdict = _verdict(attempt.task, index, failing, skill, random)
        attempt.verdicts[index] = verdict
        attempt.cells += next((kind for kind in "rncs" if kind in verdict.values()), "p")
        over = attempt.mode == "fail-stop" and attempt.cells[-1] != "p"
    attempt.finished = not unfinished
    return attempt


def _verdict(task: Task, index: int, failing: set[int], skill: float, random: Random) -> dict[int, str]:
    verdict = {}
    breaks = random.random() > skill
    for number in task.active(index):
        new = number // CASES_PER_ROUND + 1 == index
        if number in failing:
            kind = "c" if random.random() < 0.5 else "p"
        elif new:
            kind = "n" if random.random() > 0.6 + skill * 0.4 else "p"
        else:
            kind = "r" if breaks and random.random() < 0.15 else "p"
        if kind == "c" and task.retired(number) == index + 1:
            kind = "s"
        (failing.discard if kind == "p" else failing.add)(number)
        verdict[number] = kind
    if index > 2 and random.random() < 0.1:
        verdict[next(iter(verdict))] = "k"
    return verdict
