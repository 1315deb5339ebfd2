"""Tables of scores by agent and mode, or by groups of tasks and rounds, and what is to be said below them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from pytest_evocode.metrics.breakdown import Group
from pytest_evocode.metrics.faults import Faults, FlakyRound
from pytest_evocode.metrics.grid import Rounds
from pytest_evocode.metrics.intervals import NO_INTERVAL, Interval
from pytest_evocode.metrics.scores import Scores, mean_rewards
from pytest_evocode.metrics.spending import Amount, Spending
from pytest_evocode.names import attempt_name
from pytest_evocode.report.tables import NOT_MEASURED, aligned, counted, format_number, join_first
from pytest_evocode.results.records import DecidingRule, RoundRecord

LEFT_OUT: dict[str, Callable[[Faults], float | None]] = {
    "Dataset Score": lambda found: found.dataset_score,
    "Case Score": lambda found: found.case_score,
    "SR": lambda found: found.sr,
}
"""The scores that have a second column, by the title of their first."""
SUFFIX = " w/o faults"
"""Behind the title of a score with infrastructure errors left out."""


def fault_lines(faults: Mapping[str, Faults | None]) -> Iterator[str]:
    """Yield what the columns of faults are, where there are any, and what they leave out of each row."""
    found = {name: each for name, each in faults.items() if each is not None}
    if not found:
        return
    yield (
        "w/o faults: without the rounds that ended in an infrastructure error, and without those that were not reached "
        "because of one; elsewhere they count as not passed"
    )
    for name, each in found.items():
        yield f"  {name}: {describe_faults(each)}"


def describe_faults(found: Faults) -> str:
    """Return how much is left out, in one line.

    >>> describe_faults(Faults(errors=1, not_reached=3, attempts=1, tasks=1))
    '1 error and 3 rounds not reached; nothing is left of 1 attempt and 1 task'
    """
    text = counted(found.errors, "error")
    if found.not_reached:
        text += f" and {counted(found.not_reached, 'round')} not reached"
    if found.attempts:
        text += f"; nothing is left of {counted(found.attempts, 'attempt')}"
    if found.tasks:
        text += f" and {counted(found.tasks, 'task')}"
    return text


_SHOWN_ROUNDS = 20
_SHOWN_CASES = 3


def flaky_lines(found: Sequence[FlakyRound]) -> Iterator[str]:
    r"""Yield a line for each flaky round below a head, as far as they fit; nothing without any.

    >>> found = FlakyRound("ledger", "oracle", "round-3", 3, None, 1, 2, ("total", "balance"))
    >>> print(*flaky_lines([found]), sep="\n")
    1 flaky round, whose verdict differs although nothing else does; pytest --evocode-check looks for the reason:
      ledger oracle round-3: 1 of 2 attempts passed (differing: total, balance)
    """
    if not found:
        return
    head = (
        "1 flaky round, whose verdict differs"
        if len(found) == 1
        else f"{len(found)} flaky rounds, whose verdicts differ"
    )
    yield f"{head} although nothing else does; pytest --evocode-check looks for the reason:"
    for each in found[:_SHOWN_ROUNDS]:
        attempt, what = each.agent, "attempts"
        if each.attempt is not None:
            attempt, what = attempt_name(each.agent, each.attempt), "runs of its suite"
        more = " and more" if len(each.differing) > _SHOWN_CASES else ""
        cases = f" (differing: {', '.join(each.differing[:_SHOWN_CASES])}{more})" if each.differing else ""
        yield f"  {each.task} {attempt} {each.round}: {each.passed} of {each.of} {what} passed{cases}"
    if len(found) > _SHOWN_ROUNDS:
        yield f"  and {len(found) - _SHOWN_ROUNDS} more"


def format_part(part: int | None, tasks: int) -> str:
    """Return a number of tasks, such as ``9/26``."""
    return NOT_MEASURED if part is None else f"{part}/{tasks}"


_OF_GROUPS: dict[str, Callable[[Scores | Group], str]] = {
    "Dataset Score": lambda row: format_number(row.dataset_score),
    "Case Score": lambda row: format_number(row.case_score),
    "Pinned Case Score": lambda row: format_number(row.pinned_case_score),
    "Avg Rounds": lambda row: format_number(row.avg_rounds),
    "Perfect Tasks": lambda row: format_part(row.perfect_tasks, row.decided_tasks),
    "MT@k": lambda row: format_number(row.mt_at_k),
}
_OF_SINGLE_GROUPS: dict[str, Callable[[Scores | Group], str]] = {
    "SR": lambda row: format_number(row.sr),
    "SR macro": lambda row: format_number(row.sr_macro),
}
_COLUMNS: dict[str, Callable[[Scores], str]] = {
    **_OF_GROUPS,
    "Comp": lambda row: format_number(row.final_round_completion),
    **_OF_SINGLE_GROUPS,
    "Gap": lambda row: format_number(row.gap),
    "k": lambda row: format_range(row.fewest_attempts, row.attempts),
    "time": lambda row: format_number(row.seconds, " s"),
}
SPENT: dict[str, Callable[[Spending], str]] = {
    "prompt tokens": lambda row: _amount(row.prompt_tokens, "{:,.0f}"),
    "completion tokens": lambda row: _amount(row.completion_tokens, "{:,.0f}"),
    "cost": lambda row: _amount(row.cost_usd, "${:,.4f}"),
}
#: Columns with scores that a suite's word decides: with :data:`MARK` where that trusts the agent's system.
_MARKED = ("Dataset Score", "Case Score", "Pinned Case Score", "Perfect Tasks", "MT@k", "Comp", "SR", "SR macro")
MARK = "*"
TRUSTS = "the agent's system: paths that the task does not declare, or all of it (in place)"
"""What marked verdicts trust."""
_Intervals = Mapping[str, Mapping[str, Interval | str]]
"""By the names of rows and of scores, with the reason where there is none."""
#: Columns of intervals, each behind that of the score whose name it is of.
_INTERVALS = {"95 %": "dataset_score", "SR 95 %": "sr"}
_FAULTS: dict[str, Callable[[Faults], float | None]] = {title + SUFFIX: value for title, value in LEFT_OUT.items()}
#: Columns that are left out where no agent has a number in them.
_IF_MEASURED = ("Pinned Case Score", "SR", "SR macro", "Gap", *_INTERVALS, *SPENT, *_FAULTS)


def score_rows(
    scores: Mapping[str, Scores],
    spent: Mapping[str, Spending],
    intervals: _Intervals | None = None,
    titles: Sequence[str] = ("Dataset Score", "95 %", *_OF_GROUPS, "Comp", "SR", "SR 95 %", *_COLUMNS, *SPENT),
    faults: Mapping[str, Faults | None] | None = None,
) -> list[tuple[str, ...]]:
    """Return a head and a row for each agent, without the columns that no agent has a number in.

    Args:
        scores: The scores by the name of their row.
        spent: The tokens and costs by the name of their row.
        intervals: 95 % intervals, or why there is none, by the name of their row and of their score.
        titles: The columns. Where a row has faults, its scores without them follow those that have a second column.
        faults: What infrastructure errors did, by the name of their row.
    """
    faults = faults or {}
    cells = {name: {title: cell(row) for title, cell in _COLUMNS.items()} for name, row in scores.items()}
    for name, row in cells.items():
        row |= {title: cell(spent[name]) for title, cell in SPENT.items()}
        row |= {title: _interval((intervals or {}).get(name, {}).get(score)) for title, score in _INTERVALS.items()}
        row |= _fault_cells(row, faults.get(name))
        if scores[name].trusting:
            row |= {title: marked(row[title]) for title in (*_MARKED, *_FAULTS)}
    empty = {title for title in _IF_MEASURED if all(row[title] == NOT_MEASURED for row in cells.values())}
    titles = _with_faults(dict.fromkeys(titles)) if any(faults.values()) else titles
    shown = [title for title in dict.fromkeys(titles) if title not in empty]
    return [("agent", *shown), *((name, *(row[title] for title in shown)) for name, row in cells.items())]


def _fault_cells(row: Mapping[str, str], found: Faults | None) -> dict[str, str]:
    """Return the cells of the scores without faults, which without any are those of the scores."""
    if found is None:
        return {**{title + SUFFIX: row[title] for title in LEFT_OUT}, "faults": "0"}
    return {**{title: format_number(value(found)) for title, value in _FAULTS.items()}, "faults": str(found.rounds)}


def _with_faults(titles: Iterable[str]) -> list[str]:
    """Return the columns with the scores without faults behind those with them and their intervals."""
    found = list(titles)
    for title in LEFT_OUT:
        if title in found:
            place = found.index(title) + 1
            found.insert(place + (found[place : place + 1] in [[each] for each in _INTERVALS]), title + SUFFIX)
    return [*found, "faults"]


def interval_lines(intervals: _Intervals | None) -> Iterator[str]:
    """Yield why there is no interval, where a score of a row has none.

    >>> list(interval_lines({"gpt": {"dataset_score": NO_INTERVAL, "sr": ""}})), list(interval_lines(None))
    (['95 %: no interval below 5 tasks'], [])
    """
    if any(row.get(score) == NO_INTERVAL for row in (intervals or {}).values() for score in _INTERVALS.values()):
        yield f"95 %: {NO_INTERVAL}"


def _interval(found: Interval | str | None) -> str:
    return format_interval(found if isinstance(found, Interval) else None)


def intervals_json(found: Mapping[str, Interval | str]) -> dict[str, Any]:
    """Return intervals ready for JSON, and by which method each was found, or why there is none."""
    known = {name: each for name, each in found.items() if isinstance(each, Interval)}
    return {
        "intervals": {name: [known[name].low, known[name].high] if name in known else None for name in found},
        "interval_notes": {name: each.method if isinstance(each, Interval) else each for name, each in found.items()},
    }


def marked(cell: str) -> str:
    """Return a cell with the mark of scores that trust the agent's system, unless nothing was measured.

    >>> marked("66.7"), marked("n/a")
    ('66.7*', 'n/a')
    """
    return cell if cell == NOT_MEASURED else cell + MARK


def mark_lines(scores: Mapping[str, Scores], records: Iterable[RoundRecord] = ()) -> Iterator[str]:
    """Yield what the mark means, where a row has one; with ``records``, in which rounds."""
    rounds = sum(row.trusting for row in scores.values())
    if rounds:
        yield f"{MARK} {trusting_rounds(rounds)}; round.json lists them, and --evocode-strict carries none"
    found = [record for record in records if record.verdict and record.verdict.trusts_agent]
    if found:
        yield f"  {join_first(sorted(map(_trusting_round, found)))}"


def _trusting_round(record: RoundRecord) -> str:
    how = " (in place)" if record.verdict and record.verdict.rests_on == "in-place" else ""
    return f"{record.place}{how}"


def trusting_rounds(count: int) -> str:
    """Return what is said of so many rounds whose verdict trusts the agent's system.

    >>> trusting_rounds(1)
    "the verdict of 1 round trusts the agent's system: paths that the task does not declare, or all of it (in place)"
    """
    return f"the verdict of 1 round trusts {TRUSTS}" if count == 1 else f"the verdicts of {count} rounds trust {TRUSTS}"


def case_lines(scores: Mapping[str, Scores]) -> Iterator[str]:
    """Yield over how many tasks the Case Score is, where a row has tasks whose suites report no cases."""
    found = {name: row for name, row in scores.items() if row.case_score is not None and row.case_tasks < row.tasks}
    for name, row in found.items():
        yield f"Case Score of {name}: over {row.case_tasks} of {row.tasks} tasks, those whose suites report cases"


def undecided_lines(scores: Mapping[str, Scores], rounds: Mapping[str, Rounds]) -> Iterator[str]:
    """Yield how many rounds no reward decides, and the means of all rewards by key, where a row has any such round.

    ``rounds`` are those of each row, whose means are made as Harbor makes them.
    """
    for name, row in scores.items():
        if row.undecided:
            number = "1 round is" if row.undecided == 1 else f"{row.undecided} rounds are"
            yield (
                f"{number} undecided for {name}, and {_counted_as(row)}; "
                f"the other scores are over {row.decided_tasks} of {row.tasks} tasks: "
                "name the reward that decides with --evocode-reward-key"
            )
            means = mean_rewards(rounds.get(name, ())).items()
            yield f"mean rewards of {name}: {', '.join(f'{key} {format_number(mean)}' for key, mean in means)}"


_RULES: dict[DecidingRule, str] = {
    "named": "the task or the session names it",
    "min_reward": "it is the smallest of those that min_reward names",
    "smallest": "it is the smallest; another one can be named with --evocode-reward-key",
}


def deciding_lines(records: Iterable[RoundRecord]) -> Iterator[str]:
    """Yield which of several rewards decided in which tasks, and why, in a line for all tasks where that is the same.

    >>> from pytest_evocode.results.records import Verdict
    >>> rewards, task = {"tests": 1.0, "style": 0.5}, {"task": "t", "agent": "a", "attempt": 1, "declared_rounds": 1}
    >>> verdict = Verdict(reward=0.5, rewards=rewards, deciding_key="style", deciding_rule="smallest")
    >>> list(deciding_lines([RoundRecord(**task, round="r", index=1, outcome="failed", verdict=verdict)]))
    ['several rewards in t: style decides, it is the smallest; another one can be named with --evocode-reward-key']
    """
    keys: dict[tuple[str, DecidingRule], set[str]] = defaultdict(set)
    for record in records:
        if record.verdict is not None and record.verdict.deciding_rule is not None:
            keys[record.task, record.verdict.deciding_rule].add(record.verdict.deciding_key)
    tasks: dict[tuple[tuple[str, ...], DecidingRule], list[str]] = defaultdict(list)
    for (task, rule), found in keys.items():
        tasks[tuple(sorted(found)), rule].append(task)
    for (found_keys, rule), names in tasks.items():
        yield f"several rewards in {join_first(names)}: {' or '.join(found_keys)} decides, {_RULES[rule]}"


def _counted_as(row: Scores) -> str:
    """Return how the undecided rounds of a row count."""
    if not row.undecided_failed:
        return "left out"
    some = "" if row.undecided_failed == row.undecided else f"left out, but for {row.undecided_failed} "
    return f"{some}counted as not passed, because the same was decided in another attempt"


def attempts_lines(scores: Mapping[str, Scores]) -> Iterator[str]:
    """Yield which columns cannot be compared between rows, where these have different numbers of attempts."""
    if len({(row.fewest_attempts, row.attempts) for row in scores.values() if row.mt_at_k is not None}) > 1:
        yield "k is not the same for all: Perfect Tasks, MT@k, Comp and Gap depend on it; compare them for equal k only"


def group_lines(by: str, groups: Mapping[str, Group]) -> Iterator[str]:
    """Yield the table of an agent's scores by group, such as by task; ``by`` is the title of its first column."""
    titles = ["Dataset Score", "Case Score", "Avg Rounds", "Perfect Tasks", "MT@k"]
    if any(group.sr is not None for group in groups.values()):
        titles = [*_OF_SINGLE_GROUPS, "Avg Rounds"]
    cells = _OF_GROUPS | _OF_SINGLE_GROUPS
    rows: list[tuple[str, ...]] = [(by, *titles, "tasks", "rounds")]
    rows += [
        (name, *(cells[title](group) for title in titles), str(group.tasks), str(group.rounds))
        for name, group in groups.items()
    ]
    yield from aligned(rows)


def format_range(low: int, high: int) -> str:
    """Return a number that need not be the same everywhere.

    >>> format_range(4, 4), format_range(1, 4)
    ('4', '1-4')
    """
    return str(high) if low == high else f"{low}-{high}"


def format_interval(found: Interval | None) -> str:
    """Return the ends of an interval, or ``n/a``.

    >>> format_interval(Interval(12.345, 50.0, "any")), format_interval(None)
    ('12.3..50.0', 'n/a')
    """
    return NOT_MEASURED if found is None else f"{found.low:.1f}..{found.high:.1f}"


def _amount(amount: Amount | None, form: str) -> str:
    """Return a sum, with a plus sign where it lacks the rounds whose amount is not known."""
    return NOT_MEASURED if amount is None else form.format(amount.value) + ("" if amount.complete else "+")
