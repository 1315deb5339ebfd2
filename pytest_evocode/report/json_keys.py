"""What the JSON of ``evocode results`` and ``evocode compare`` has: each key with its meaning, for the documentation.

Keys with a dot are those of an object in another one; where objects are named by tasks, metrics or groups, that name
is left out.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from pytest_evocode.report.score_columns import COLUMNS

_IDENTITY = {
    "name": "what tables call it: the label, older contents of tasks, the mode",
    "agent": "the agent's name",
    "label": "the name with what tells agents of one name apart",
    "identity": "the hash of who the agent is",
    "conditions": "what can change a verdict: engine, strict, how suites are judged, settings; null is not said",
    "contents": "the hash of each task's contents",
}
_TAKEN = "over all rounds of all attempts: `value`, of how many rounds it is `known`, `of` how many that were begun"
RESULTS_KEYS: Mapping[str, str] = {
    "rows": "a list: one row for each agent and mode",
    **{f"rows.{key}": text for key, text in _IDENTITY.items()},
    "rows.mode": "`chain`, `fail-stop` or `single-round`",
    "rows.from_round": "the round that chains begin with; null is the first",
    **{
        f"rows.scores.{field}": COLUMNS[field].help.removesuffix(".")
        for field in (
            "dataset_score",
            "case_score",
            "pinned_case_score",
            "avg_rounds",
            "perfect_tasks",
            "mt_at_k",
            "sr",
            "sr_macro",
            "gap",
            "final_round_completion",
            "hard_tasks",
            "mean_reward",
            "reliability",
            "avg_turns",
            "output_tokens",
            "seconds",
            "tasks",
            "rounds",
        )
    },
    "rows.scores.case_tasks": "how many tasks the Case Score is over",
    "rows.scores.attempts": "the most attempts at a task, the k of MT@k",
    "rows.scores.fewest_attempts": "the fewest attempts at a round",
    "rows.scores.reliability_tasks": "how many tasks Reliability is over",
    "rows.scores.trusting": "rounds whose verdict trusts the agent's system",
    "rows.scores.undecided": "rounds that no reward decides",
    "rows.scores.undecided_failed": "how many of them count as not passed",
    "rows.scores.decided_tasks": "how many tasks the Dataset Score or SR is over",
    "rows.scores.whole_tasks": "how many tasks Perfect Tasks and MT@k are over",
    "rows.without_faults": "scores without the rounds that infrastructure errors kept from a verdict; null without any",
    "rows.best_of_attempts": "MT@k as EvoCode-Bench's `compute_metrics.py` has it",
    "rows.rewards": "the means of rewards by their names",
    "rows.spending.rounds": "rounds that were begun, of all attempts",
    **{
        f"rows.spending.{name}": f"{what}, {_TAKEN}"
        for name, what in {
            "prompt_tokens": "tokens that models were sent",
            "cached_tokens": "the part of them that the provider had cached",
            "completion_tokens": "tokens that models generated",
            "requests": "requests to the model",
            "cost_usd": "US dollars",
            "tool_calls": "tool calls",
            "agent_seconds": "seconds of agents' turns, without suites",
            "verifier_seconds": "seconds of suites",
        }.items()
    },
    "rows.over_attempts": "by score, what several attempts say of it; null with one at each task",
    "rows.flaky": "rounds whose verdict differs although nothing else does",
    "rows.partial": "attempts of which not all rounds were selected, and whether they count",
    "rows.waiting": "attempts that wait for a later session, of which the rounds so far count",
    "rows.missing": "attempts that left nothing and count as not passed",
    "unscored": "a list: attempts that no score counts",
    "unscored.task": "the attempt's task; `agent`, `attempt` and `run` likewise",
    "unscored.agent": "who made it",
    "unscored.attempt": "its number",
    "unscored.run": "its run",
    "unscored.state": "`never started` or `unfinished`",
    "unscored.why": "the reason",
    "unscored.rounds": "the outcomes of its rounds",
    "unscored.usage": "what it used of models",
    "unscored.directory": "where it lies",
}
"""Of ``evocode results --json``."""
COMPARE_KEYS: Mapping[str, str] = {
    **{f"first.{key}": f"of A: {text}" for key, text in _IDENTITY.items()},
    "first.in": "the directory, run or name that was given for it",
    "second": "the same of B",
    "changed_tasks": "tasks whose contents differ and that are compared all the same",
    "regression": "whether B is worse, by the rule",
    "regression_rule": "`noise`, `score`, `round` or `interval`",
    "metrics.tasks": "how many tasks are compared",
    "metrics.first": "the value of A; `second` that of B",
    "metrics.second": "the value of B",
    "metrics.difference": "B less A, the mean over tasks",
    "metrics.interval": "its 95 % interval; null below five tasks",
    "metrics.interval_method": "how that was found",
    "metrics.won": "tasks at which B is better",
    "metrics.lost": "tasks at which A is better",
    "metrics.tied": "tasks at which they are equal",
    "metrics.p_value": "how often chance makes a difference as large",
    "metrics.p_lower": "how often chance makes B as much worse",
    "metrics.p_adjusted": "the p-value as adjusted by Holm for several pairs",
    "no_interval": "why there is no interval; null where there is one",
    "attempts": "the fewest and the most attempts at a task, of `first` and `second`",
    "left_out": "metrics that are not compared because the numbers of attempts differ",
    "faults": "rounds that infrastructure errors kept from a verdict, of `first` and `second`",
    "flips": "rounds that only one passes, with the shares of attempts that do",
    "flips_p_value": "McNemar's test over rounds",
    "flips_by_task_p_value": "the same by task",
    "alpha": "the p-value up to which a difference is seen",
    "detectable": "the smallest difference that is seen, by upper bounds of what varies",
    "detectable_as_observed": "the same by what was observed",
    "wanted": "what a difference of 5 points takes",
    "only_first": "tasks that only A has; `only_second` likewise",
    "only_second": "tasks that only B has",
    "undecided": "tasks that no reward decides on one side",
}
"""Of each pair of ``evocode compare --json``."""


def keys_of(values: Any, described: Mapping[str, str], path: str = "") -> Iterator[str]:
    """Yield the keys of JSON values by their paths, as far down as they are described."""
    if isinstance(values, list):
        for each in values:
            yield from keys_of(each, described, path)
    elif isinstance(values, dict):
        for key, value in values.items():
            name = f"{path}.{key}" if path else str(key)
            if any(each.startswith(f"{name}.") for each in described):
                yield from keys_of(value, described, name)
            else:
                yield name


def markdown_of_keys() -> Iterator[str]:
    """Yield the tables for the documentation."""
    for command, described in (("results", RESULTS_KEYS), ("compare", COMPARE_KEYS)):
        yield from ("", f"`evocode {command} --json`", "", "| key | meaning |", "|---|---|")
        yield from (f"| `{key}` | {text} |" for key, text in described.items())
