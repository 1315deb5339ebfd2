"""The benchmark's scores: pure functions from the round records of one agent to numbers from 0 to 100.

Every function takes records in any order or a :class:`~pytest_evocode.metrics.grid.Grid`, of one agent and one mode,
and at least one task. Every mean is over all tasks. A round counts as not passed where it has no record, was not
reached, or broke down; one that the grid knows was not selected does not count. In the formulas p is 1 for a passed
round and 0 for any other, t a task with N_t declared rounds, i a round's index and a an attempt.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import fmean
from typing import TypeVar

from pytest_evocode.metrics import task_values
from pytest_evocode.metrics.grid import Grid, Rounds, SuiteFacts, TaskRounds, are_of_the_same_rounds, as_grid, scored
from pytest_evocode.metrics.task_values import TaskValue, reward_share, totals
from pytest_evocode.names import is_fork, scored_name
from pytest_evocode.results.records import Mode, RoundRecord
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.tasks import RewardStrategy

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Scores:
    """The scores of one agent, as in a row of the benchmark table; None where nothing was measured."""

    dataset_score: float | None
    case_score: float | None
    pinned_case_score: float | None
    """The Case Score over the cases that the reference solutions pass, where ``evocode.lock`` pins them; None where no
    task has a lock.
    """
    avg_rounds: float | None
    """Tool calls per round that has a trajectory."""
    perfect_tasks: int | None
    """How many of the ``whole_tasks`` an attempt passed all rounds of."""
    tasks: int
    seconds: float | None
    """Wall-clock time of agents and suites together, over the rounds where it was measured."""
    case_tasks: int = 0
    """How many tasks the Case Score is over: those whose suites report cases."""
    rounds: int = 0
    """How many rounds count: all that the tasks declare, as far as they were selected."""
    attempts: int = 1
    """The k of MT@k: the largest number of attempts at a task."""
    fewest_attempts: int = 1
    """The smallest number of attempts at any round, which is less where k is not the same everywhere."""
    mean_reward: float | None = None
    mt_at_k: float | None = None
    reliability: float | None = None
    """See :func:`reliability`; None where there is one attempt at each task, or none passed a round."""
    reliability_tasks: int = 0
    """How many tasks Reliability is over: those with several attempts."""
    final_round_completion: float | None = None
    hard_tasks: float | None = None
    sr: float | None = None
    sr_macro: float | None = None
    gap: float | None = None
    avg_turns: float | None = None
    """Requests to the model per attempt at a task, scaled to all its rounds; ``output_tokens`` likewise."""
    output_tokens: float | None = None
    trusting: int = 0
    """How many rounds, passed or not, have a verdict that trusts something undeclared of the agent's system."""
    undecided: int = 0
    """How many rounds have rewards of which none decides; they count nowhere where passed rounds do, but for these:"""
    undecided_failed: int = 0
    """How many of them count as not passed, because the same round was decided in another attempt."""
    decided_tasks: int = 0
    """How many tasks the Dataset Score or SR is over: those with rounds that a reward decides."""
    whole_tasks: int = 0
    """How many tasks Perfect Tasks and MT@k are over: of those the ones with an attempt that was to make all rounds."""


def scores(rounds: Rounds, single_round: Rounds = (), strategies: Mapping[str, RewardStrategy] | None = None) -> Scores:
    """Return all scores of an agent; those of a mode without records are None.

    Args:
        rounds: The rounds of chain or fail-stop mode.
        single_round: The rounds of single-round mode; one of the two must not be empty.
        strategies: The ``multi_step_reward_strategy`` of tasks, by name; ``mean`` where a task is not in it.
    """
    chain, single = as_grid(rounds), as_grid(single_round)
    either = chain if chain.tasks else single
    verdicts = [record.verdict for grid in (chain, single) for record in grid.records() if record.verdict]
    seconds = [
        part
        for record in either.records()
        for part in (record.agent_seconds, record.verifier_seconds)
        if part is not None
    ]
    return Scores(
        dataset_score=dataset_score(chain),
        case_score=case_score(chain),
        pinned_case_score=pinned_case_score(chain),
        avg_rounds=avg_rounds(either),
        perfect_tasks=perfect_tasks(chain) if whole_tasks(chain) else None,
        tasks=len(either.tasks),
        seconds=sum(seconds) if seconds else None,
        case_tasks=sum(map(task_values.has_cases, chain.tasks)),
        rounds=sum(len(task.indices) for task in either.tasks),
        attempts=max((len(task.attempts) for task in either.tasks), default=0),
        fewest_attempts=min((task.tries(index) for task in either.tasks for index in task.indices), default=0),
        mean_reward=mean_reward(chain, strategies),
        mt_at_k=mt_at_k(chain),
        reliability=reliability(chain),
        reliability_tasks=len(per_task(chain, task_values.all_of_any)),
        final_round_completion=final_round_completion(chain),
        hard_tasks=hard_tasks(chain),
        sr=sr(single),
        sr_macro=sr_macro(single),
        gap=gap(chain, single) if chain.tasks and single.tasks else None,
        avg_turns=avg_turns(either),
        output_tokens=output_tokens(either),
        trusting=sum(verdict.trusts_agent for verdict in verdicts),
        undecided=sum(record.outcome == "undecided" for record in either.records()),
        undecided_failed=sum(task.undecided_failed() for task in either.tasks),
        decided_tasks=len(either.decided().tasks),
        whole_tasks=whole_tasks(chain),
    )


def per_task(rounds: Rounds, value: Callable[[TaskRounds], T | None]) -> list[T]:
    """Return a value of each (agent, task), without those where nothing was measured."""
    return [found for found in map(value, as_grid(rounds).tasks) if found is not None]


def _percent(rounds: Rounds, value: TaskValue) -> float | None:
    found = _mean_of(rounds, value)
    return None if found is None else 100 * found


def _mean_of(rounds: Rounds, value: TaskValue) -> float | None:
    found = per_task(rounds, value)
    return fmean(found) if found else None


def dataset_score(rounds: Rounds) -> float | None:
    """Return ``100 * mean_t(sum_i p / N_t)``, the mean over attempts inside the task (EvoCode-Bench's Dataset Score).

    Rounds that no reward decides are left out, here and wherever passed rounds count; None where that is all.

    >>> from pytest_evocode.metrics.grid import Grid
    >>> from pytest_evocode.results.records import RoundRecord
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=4, outcome="passed")
    >>> dataset_score([record]), dataset_score(Grid.of([record], selected={"t": 4, "u": 9}))
    (25.0, 12.5)
    """
    return _percent(rounds, task_values.passed_share)


def case_score(rounds: Rounds) -> float | None:
    """Return ``100 * mean_t mean_i(s / c)``, with s of c cases passed.

    Tasks whose suites report no cases are left out, and so are rounds that passed without any; None where that is all.

    >>> from pytest_evocode.results.records import Case, RoundRecord, Verdict
    >>> records = [RoundRecord(task=task, agent="a", attempt=1, round="r1", index=1, declared_rounds=1,
    ...     outcome="failed", verdict=Verdict(reward=0, rewards={}, cases=cases))
    ...     for task, cases in [("t", [Case(id="x", status="passed"), Case(id="y", status="failed")]), ("u", [])]]
    >>> case_score(records), case_score(records[1:])
    (50.0, None)
    """
    return _percent(rounds, task_values.case_share)


def pinned_case_score(rounds: Rounds) -> float | None:
    """Return the Case Score with the pinned numbers of cases for c, so that a crash cannot shrink it.

    A round that is not pinned counts as in :func:`case_score`. None where no round is pinned.

    >>> from pytest_evocode.results.records import Case, RoundRecord, Verdict
    >>> verdict = Verdict(reward=0, rewards={}, cases=(Case(id="x", status="passed"),), pinned=(1, 4))
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=1, outcome="failed",
    ...     verdict=verdict)
    >>> case_score([record]), pinned_case_score([record])
    (100.0, 25.0)
    """
    grid = as_grid(rounds)
    if all(record.verdict is None or record.verdict.pinned is None for record in grid.records()):
        return None
    return _percent(grid, task_values.pinned_case_share)


def avg_rounds(rounds: Rounds) -> float | None:
    """Return ``mean_t mean_i`` of tool calls, over rounds with a trajectory; None where no task has one."""
    return _mean_of(rounds, task_values.tool_calls_per_round)


def avg_turns(rounds: Rounds) -> float | None:
    """Return Avg Turns of EvoCode-Bench's older leaderboard: ``mean_t N_t * mean_i`` of requests to the model.

    The inner mean is over the rounds, of all attempts, of which it is known. So rounds that were not reached count at
    the rate of the others, where a plain sum would make an agent that fails early look thrifty. None where it is known
    of no round.

    >>> from pytest_evocode.results.records import RoundRecord, Usage
    >>> records = [RoundRecord(task="t", agent="a", attempt=1, round=f"r{i}", index=i, declared_rounds=4,
    ...     outcome="passed", usage=Usage(requests=requests)) for i, requests in [(1, 10), (2, 20)]]
    >>> avg_turns(records)
    60.0
    """
    return _mean_of(rounds, task_values.turns)


def output_tokens(rounds: Rounds) -> float | None:
    """Return Output Tok. of EvoCode-Bench's older leaderboard: completion tokens as in :func:`avg_turns`."""
    return _mean_of(rounds, task_values.output_tokens)


def perfect_tasks(rounds: Rounds) -> int:
    """Return how many tasks have an attempt in which every declared round passed."""
    return sum(per_task(rounds, task_values.is_perfect))


def whole_tasks(rounds: Rounds) -> int:
    """Return how many tasks Perfect Tasks and MT@k are over: those with an attempt that was to make all rounds."""
    return len(per_task(rounds, task_values.is_perfect))


def mt_at_k(rounds: Rounds, *, fail_stop: bool = True) -> float | None:
    """Return ``100 * mean_t mean_i max_a p`` over the k attempts that there are, whatever mode they ran in.

    With ``fail_stop``, the paper's rule, p is 0 after an attempt's first round that is not passed. Without, a round
    that is passed later in chain mode counts too, as in EvoCode-Bench's ``compute_metrics.py``. Tasks that were
    selected in part only are left out.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> rows = [(1, "passed"), (2, "failed"), (3, "passed")]
    >>> records = [RoundRecord(task="t", agent="a", attempt=1, round=f"r{i}", index=i, declared_rounds=4,
    ...     outcome=outcome) for i, outcome in rows]
    >>> mt_at_k(records), mt_at_k(records, fail_stop=False)
    (25.0, 50.0)
    """
    return _percent(rounds, task_values.fail_stop_share if fail_stop else task_values.best_share)


def reliability(rounds: Rounds) -> float | None:
    """Return Reliability: of the rounds that any attempt passed, the share that all attempts passed, 0 to 100.

    Only rounds with at least two attempts count. None where there are none, or no attempt passed any of them. Source:
    EvoCode-Bench, the paper's reliability ratio (G.9). It is no chance that k attempts pass, which is pass^k of
    :mod:`~pytest_evocode.metrics.over_attempts`.

    >>> from pytest_evocode.results.records import RoundRecord
    >>> rows = [(1, 1, "passed"), (1, 2, "passed"), (2, 1, "passed"), (2, 2, "failed")]
    >>> records = [RoundRecord(task="t", agent="a", attempt=attempt, round=f"r{i}", index=i, declared_rounds=2,
    ...     outcome=outcome) for attempt, i, outcome in rows]
    >>> reliability(records), reliability(records[:2])
    (50.0, None)
    """
    all_passed, any_passed = totals(per_task(rounds, task_values.all_of_any))
    return 100 * all_passed / any_passed if any_passed else None


def sr(single_round: Rounds) -> float | None:
    """Return ``100 * sum_{t,i} p / sum_t N_t`` of single-round mode: over rounds and not over tasks, as published.

    Where there are several attempts at a round, p is their mean.
    """
    passed, declared = totals(per_task(single_round, task_values.passed_of))
    return 100 * passed / declared if declared else None


def sr_macro(single_round: Rounds) -> float | None:
    """Return ``100 * mean_t(sum_i p / N_t)`` of single-round mode: the mean over tasks in place of rounds."""
    return _percent(single_round, task_values.passed_share)


def gap(rounds: Rounds, single_round: Rounds) -> float | None:
    """Return ``SR - MT@k`` in points; None where the two modes were not run on the same tasks and whole chains."""
    chain, single = as_grid(rounds), as_grid(single_round)
    if not are_of_the_same_rounds(chain, single) or whole_tasks(chain) < len(chain.decided().tasks):
        return None
    rate, through = sr(single), mt_at_k(chain)
    return None if rate is None or through is None else rate - through


def final_round_completion(rounds: Rounds) -> float | None:
    """Return Comp: ``100 *`` the share of tasks where an attempt passed the last declared round.

    Tasks of which that round was not selected are left out; None where that is all of them.
    """
    return _percent(rounds, task_values.is_complete)


def hard_tasks(rounds: Rounds) -> float | None:
    """Return ``100 *`` the share of tasks of whose rounds at most half are passed, on the mean over attempts."""
    return _percent(rounds, task_values.is_hard)


def mean_rewards(rounds: Rounds, strategies: Mapping[str, RewardStrategy] | None = None) -> dict[str, float]:
    """Return the mean over tasks of their trials' rewards, by key; 0 to 100 where rewards are 0 to 1.

    A key that a trial lacks counts 0 there, as in Harbor's ``mean`` over trials. Empty where no round has a verdict.

    Args:
        rounds: The rounds of one agent.
        strategies: The ``multi_step_reward_strategy`` of tasks, by name; ``mean`` where a task is not in it.

    >>> from pytest_evocode.results.records import Verdict
    >>> verdict = Verdict(reward=1, rewards={"tests": 1.0, "style": 0.5})
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=2, outcome="passed",
    ...     verdict=verdict)
    >>> mean_rewards([record]), mean_rewards([record], {"t": "final"})
    ({'style': 25.0, 'tests': 50.0}, {'style': 0.0, 'tests': 0.0})
    """
    tasks = []
    for task in as_grid(rounds).tasks:
        strategy = (strategies or {}).get(task.task, "mean")
        trials = [
            trial_rewards(attempt.values(), task.own(number), strategy) for number, attempt in task.attempts.items()
        ]
        tasks.append(_mean_by_key(trials))
    return {key: 100 * value for key, value in sorted(_mean_by_key(tasks).items())}


def mean_reward(rounds: Rounds, strategies: Mapping[str, RewardStrategy] | None = None) -> float | None:
    """Return the mean over tasks of the reward that decides each round, whatever its key; 0 to 100."""
    return _percent(rounds, partial(reward_share, strategies=strategies))


def _mean_by_key(tables: Sequence[Mapping[str, float]]) -> dict[str, float]:
    keys = {key: None for table in tables for key in table}
    return {key: fmean(table.get(key, 0.0) for table in tables) for key in keys}


@dataclass(frozen=True, slots=True)
class RunMode:
    """A mode, and what chains begin with, a round or of forks ``A:round-3``; across these scores cannot be compared."""

    mode: Mode = "chain"
    from_round: str | None = None

    def name(self, agent: str) -> str:
        """Return the heading of an agent's scores: its name, and the mode where that is not a whole chain."""
        return scored_name(agent, self.mode, self.from_round)

    def grid(self, records: Iterable[RoundRecord], suites: Mapping[str, SuiteFacts] | None = None) -> Grid:
        """Return the grid of the rounds that count, which are those from ``from_round`` on.

        A round of an attempt that has no record was not selected, and does not count; nor does one that was brought
        along or waits for a later session, or one of an attempt that no score counts. ``suites`` is what the tasks'
        suites gave in attempts of other agents.
        """
        records = [record for record in scored(records) if not (record.waiting or record.brought_along)]
        begin = {record.task: record.index for record in records if record.round == self.from_round}
        if is_fork(self.from_round):
            for record in sorted(records, key=lambda each: -each.index):
                begin[record.task] = record.index
        selected: dict[tuple[str, int], set[int]] = defaultdict(set)
        for record in records:
            selected[record.task, record.attempt].add(record.index)
        return Grid.of(records, begin=begin, partial=selected, suites=suites)

    def scores(self, records: Iterable[RoundRecord], suites: Mapping[str, SuiteFacts] | None = None) -> Scores:
        """Return the scores of one agent.

        >>> outcomes = [(1, "passed"), (2, "passed"), (3, "failed")]
        >>> records = [RoundRecord(task="t", agent="a", attempt=1, round=f"round-{index}", index=index,
        ...     declared_rounds=3, outcome=outcome) for index, outcome in outcomes]
        >>> [round(RunMode(from_round=name).scores(records).dataset_score, 1) for name in (None, "round-2")]
        [66.7, 50.0]
        >>> round(RunMode("single-round").scores(records[1:]).sr, 1)
        50.0
        """
        return scores(*self.grids(records, suites))

    def grids(
        self, records: Iterable[RoundRecord], suites: Mapping[str, SuiteFacts] | None = None
    ) -> tuple[Grid, Grid]:
        """Return the grid of chains and that of single rounds, of which one is empty."""
        grid = self.grid(records, suites)
        return (Grid(()), grid) if self.mode == "single-round" else (grid, Grid(()))

    @property
    def headline(self) -> str:
        """The title of the score that an agent is judged by."""
        return "SR" if self.mode == "single-round" else "Dataset Score"

    def score(self, records: Sequence[RoundRecord], suites: Mapping[str, SuiteFacts] | None = None) -> float | None:
        """Return the score that an agent is judged by, 0 to 100; None where no reward decides any round."""
        found = self.scores(records, suites)
        return found.sr if self.mode == "single-round" else found.dataset_score
