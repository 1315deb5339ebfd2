"""The titles of the numbers that a report shows, with a sentence on what each is: ``Index.titles`` in ``data.d.ts``."""

from __future__ import annotations

from pytest_evocode.report.html.overview.comparisons import SR_BY_TASK
from pytest_evocode.report.leaderboard import TITLES as OF_SCORES
from pytest_evocode.report.scores import TRUSTS

PERCENT = "%"

_OTHERS = {
    "reliability": "Reliability",
    "attempts_min": "k, fewest",
    "attempts_max": "k",
    "trusting": "Trusting",
    "cost_usd": "Cost",
    "tokens": "Tokens",
    "output_tokens": "Output tokens",
    "agent_seconds": "Time",
    SR_BY_TASK: "SR, by task",
}
_HELP: dict[str, tuple[str, str]] = {
    "dataset_score": (PERCENT, "The share of a task's rounds that passed, the mean over tasks and attempts."),
    "case_score": (PERCENT, "The share of cases that passed, the mean over rounds, attempts and tasks."),
    "avg_rounds": ("calls", "Tool calls of the agent per round, the mean over tasks."),
    "perfect_tasks": ("tasks", "Tasks of which one attempt passed all rounds; it grows with k."),
    "mt_at_k": (
        PERCENT,
        "The share of rounds passed up to the first failure, by the attempt that gets farthest; it grows with k.",
    ),
    "sr": (PERCENT, "The share of single rounds passed, each from the state that the reference solutions lead to."),
    "gap": ("points", "SR less MT@k: what is lost because failures of earlier rounds stay in the workspace."),
    "final_round_completion": (PERCENT, "The share of tasks whose last round an attempt passed; it grows with k."),
    "mean_reward": (PERCENT, "The reward that decides, by each task's own strategy, the mean over attempts and tasks."),
    "reliability": (PERCENT, "Of the rounds with several attempts that any of them passed, the share that all passed."),
    "tasks": ("tasks", "How many tasks count."),
    "rounds": ("rounds", "How many rounds of these tasks count."),
    "attempts_min": ("attempts", "The fewest attempts at any round."),
    "attempts_max": ("attempts", "The most attempts at any task: the k of MT@k."),
    "trusting": ("rounds", f"Rounds whose verdict trusts {TRUSTS}."),
    "cost_usd": ("USD", "What an attempt at a task costs, the mean over tasks; unknown where a round's cost is."),
    "tokens": ("tokens", "Prompt and completion tokens of an attempt at a task, the mean over tasks."),
    "output_tokens": (
        "tokens",
        "Completion tokens of an attempt at a task, the mean over tasks, scaled to all its rounds.",
    ),
    "agent_seconds": ("s", "Wall-clock time of the agent's turns in an attempt at a task, the mean over tasks."),
    SR_BY_TASK: (PERCENT, "The share of a task's single rounds that passed, the mean over tasks."),
}


def titles() -> dict[str, dict[str, str]]:
    """Return title, sentence and unit of each number, by its field; those of scores are the leaderboard's."""
    return {
        field: {"title": _OTHERS.get(field) or OF_SCORES[field], "help": help_, "unit": unit}
        for field, (unit, help_) in _HELP.items()
    }
