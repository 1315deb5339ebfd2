"""Scores as lines: tables by agent and mode, or by groups of tasks and rounds, and what is to be said below them."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from pytest_evocode.metrics.breakdown import PARTS_OF_TASKS, Group
from pytest_evocode.metrics.faults import Faults
from pytest_evocode.metrics.flaky import FlakyRound
from pytest_evocode.metrics.grid import Rounds
from pytest_evocode.metrics.intervals import NO_INTERVAL, Interval
from pytest_evocode.metrics.score_table import ApartAttempt
from pytest_evocode.metrics.scores import Scores, mean_rewards
from pytest_evocode.metrics.spending import Spending
from pytest_evocode.names import attempt_name
from pytest_evocode.report.score_columns import (
    GROUPS,
    MARK,
    RESULTS,
    SINGLE_ROUND_GROUPS,
    WITH_INTERVAL,
    depending_on_k,
    listed,
    score_columns,
    score_values,
)
from pytest_evocode.report.tables import NOT_MEASURED, counted, format_number, join_first
from pytest_evocode.report.views import Column, Table
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import DecidingRule, RoundRecord, Usage


def notes_below(
    scores: Mapping[str, Scores],
    rounds: Mapping[str, Rounds],
    records: Sequence[RoundRecord],
    faults: Mapping[str, Faults | None],
    *,
    name_marked: bool = True,
) -> Iterator[str]:
    """Yield what is to be said below a table of scores, whatever its columns.

    Args:
        scores: The scores by the name of their row.
        rounds: The rounds of each row.
        records: All records.
        faults: What infrastructure errors did, by the name of their row.
        name_marked: Whether to name the rounds whose verdict trusts the agent's system.
    """
    yield from case_lines(scores)
    yield from undecided_lines(scores, rounds)
    yield from deciding_lines(records)
    yield from mark_lines(scores, records if name_marked else ())
    yield from fault_lines(faults)


def apart_lines(found: Iterable[ApartAttempt]) -> Iterator[str]:
    r"""Yield which attempts no score counts and why, with what was used of models.

    >>> from pytest_evocode.metrics.score_table import ApartAttempt
    >>> used = Usage(prompt_tokens=1200, completion_tokens=34)
    >>> print(*apart_lines([
    ...     ApartAttempt("ledger", "gpt", 2, "RUN", "unfinished", "1 of 3 rounds judged", used),
    ...     ApartAttempt("mesh", "gpt", 1, "RUN", "never started", "no image"),
    ...     ApartAttempt("zoo", "gpt", 1, "RUN", "never started", "no image")]), sep="\n")
    not scored, unfinished: ledger gpt.2 (RUN): 1 of 3 rounds judged, 1,234 tokens
    not scored, never started: mesh gpt, zoo gpt (RUN): no image
    """
    groups: dict[tuple[str, str, str], list[ApartAttempt]] = defaultdict(list)
    for each in found:
        groups[each.state, each.run, each.why + _used(each.usage)].append(each)
    for (state, run, why), attempts in sorted(groups.items(), key=lambda each: each[0], reverse=True):
        names = join_first([f"{each.task} {attempt_name(each.agent, each.attempt)}" for each in attempts], 5)
        yield f"not scored, {state}: {names}{f' ({run})' if run else ''}: {why}"


def _used(usage: Usage | None) -> str:
    if usage is None or usage.tokens is None:
        return ""
    cost = f", ${usage.cost_usd:,.4f}" if usage.cost_usd is not None else ""
    return f", {usage.tokens:,} tokens{cost}"


def fault_lines(faults: Mapping[str, Faults | None]) -> Iterator[str]:
    """Yield what the columns of faults are, where there are any, and what they leave out of each row."""
    found = {name: each for name, each in faults.items() if each is not None}
    if not found:
        return
    yield (
        "w/o faults: without rounds that an infrastructure error ended, or kept from being reached; elsewhere these "
        "count as not passed"
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


PARTIAL = "†"
"""Behind the name of an agent with attempts of which not all rounds were selected."""
OPEN = "‡"
"""Behind the name of an agent with attempts that wait for a later session."""
_MARKED = {
    PARTIAL: "partial: where not all rounds of an attempt were selected, those that were count",
    OPEN: "with attempts that wait for a later session: only their rounds so far count",
}


def marked_name(name: str, *, partial: bool, is_open: bool) -> str:
    """Return the name of a row with the marks of what its attempts lack.

    >>> marked_name("gpt", partial=True, is_open=False)
    'gpt †'
    """
    return " ".join([name, *([PARTIAL] if partial else []), *([OPEN] if is_open else [])])


def marked_lines(*, partial: bool, is_open: bool) -> list[str]:
    """Return what the marks mean that any name has."""
    return [f"{mark} {_MARKED[mark]}" for mark, is_there in ((PARTIAL, partial), (OPEN, is_open)) if is_there]


_SPENT = {
    "prompt_tokens": ("prompt tokens", "{prompt_tokens:,.0f}", "Tokens that models were sent, over all rounds."),
    "completion_tokens": (
        "completion tokens", "{completion_tokens:,.0f}", "Tokens that models generated, over all rounds.",
    ),
    "cost_usd": ("cost", "${cost_usd:,.4f}", "US dollars over all rounds; a + says that more was spent than is known."),
}  # fmt: skip
"""The columns behind the scores, with their forms."""
TRUSTS = "the agent's system beyond what the task declares"
"""What marked verdicts trust."""
_Intervals = Mapping[str, Mapping[str, Interval | str]]
"""By the names of rows and of scores, with the reason where there is none."""


def scores_table(
    scores: Mapping[str, Scores],
    spent: Mapping[str, Spending],
    intervals: _Intervals | None = None,
    table: Sequence[str] = RESULTS,
    faults: Mapping[str, Faults | None] | None = None,
    notes: Sequence[str] = (),
    open_rows: Container[str] = (),
    partial_rows: Container[str] = (),
) -> Table:
    """Return the table of scores with a row for each agent.

    Args:
        scores: The scores by the name of their row.
        spent: The tokens and costs by the name of their row.
        intervals: 95 % intervals, or why there is none, by the name of their row and of their score.
        table: The columns. Where a row has faults, its scores without them follow those that have a second column.
        faults: What infrastructure errors did, by the name of their row.
        notes: What is to be said below.
        open_rows: The names of rows with attempts that wait for a later session.
        partial_rows: The names of rows with attempts of which not all rounds were selected.
    """
    faults = faults or {}
    with_faults = any(faults.values())
    rows = []
    for name, row in scores.items():
        ends = None if intervals is None else intervals.get(name, {})
        values = score_values(table, row, ends, faults.get(name), with_faults=with_faults)
        amounts = {field: getattr(spent[name], field) for field in _SPENT}
        sums = {field: amount and amount.value for field, amount in amounts.items()}
        complete = {f"{field}_complete": amount and amount.complete for field, amount in amounts.items()}
        pluses = {f"{field}_plus": "+" if amount and not amount.complete else "" for field, amount in amounts.items()}
        marks = {"partial": name in partial_rows, "is_open": name in open_rows}
        rows.append({"agent": name, "marks": marks, **values, **sums, **complete, **pluses})
    columns = [
        Column("agent", lambda row: marked_name(row["agent"], **row["marks"]), fields=("agent",), left=True),
        *score_columns(table, intervals=intervals is not None, with_faults=with_faults),
    ]
    for field, (title, form, help) in _SPENT.items():
        form, fields = f"{form}{{{field}_plus}}", (field, f"{field}_complete")
        columns.append(Column.form(title, form, help, fields=fields, nothing=NOT_MEASURED))
    if with_faults:
        columns.append(Column.count("faults", "faults"))
    every = {kind: any(row["marks"][kind] for row in rows) for kind in ("partial", "is_open")}
    notes = [*marked_lines(**every), *notes]
    return Table("scores", "Scores", columns, rows, notes=notes)


def interval_lines(intervals: _Intervals | None) -> Iterator[str]:
    """Yield why there is no interval, where a score of a row has none.

    >>> list(interval_lines({"gpt": {"dataset_score": NO_INTERVAL, "sr": ""}})), list(interval_lines(None))
    (['95 %: no interval below 5 tasks'], [])
    """
    if any(row.get(score) == NO_INTERVAL for row in (intervals or {}).values() for score in WITH_INTERVAL):
        yield f"95 %: {NO_INTERVAL}"


def intervals_json(found: Mapping[str, Interval | str]) -> dict[str, Any]:
    """Return intervals ready for JSON, and by which method each was found, or why there is none."""
    known = {name: each for name, each in found.items() if isinstance(each, Interval)}
    return {
        "intervals": {name: [known[name].low, known[name].high] if name in known else None for name in found},
        "interval_notes": {name: each.method if isinstance(each, Interval) else each for name, each in found.items()},
    }


def mark_lines(scores: Mapping[str, Scores], records: Iterable[RoundRecord] = ()) -> Iterator[str]:
    """Yield what the mark means, where a row has one; with ``records``, in which rounds."""
    rounds = sum(row.trusting for row in scores.values())
    if rounds:
        yield f"{MARK} {trusting_rounds(rounds)}; round.json lists them, and --evocode-strict brings none over"
    found = [record for record in records if record.verdict and record.verdict.trusts_agent]
    if found:
        yield f"  {join_first(sorted(map(_trusting_round, found)))}"


def _trusting_round(record: RoundRecord) -> str:
    how = " (in place)" if record.verdict and record.verdict.rests_on == "in-place" else ""
    return f"{record.place}{how}"


def trusting_rounds(count: int) -> str:
    """Return what is said of so many rounds whose verdict trusts the agent's system.

    >>> trusting_rounds(1)
    "the verdict of 1 round trusts the agent's system beyond what the task declares"
    """
    return f"the verdict of 1 round trusts {TRUSTS}" if count == 1 else f"the verdicts of {count} rounds trust {TRUSTS}"


def cut_lines(attempts: Mapping[str, Iterable[StoredAttempt]]) -> Iterator[str]:
    """Yield, for each agent, how many of its attempts a budget cut, and which of its limits."""
    for name, of_agent in attempts.items():
        yield from _cut(name, [("total-cost" if each.waiting else "", each.record.rounds) for each in of_agent])


def cut_lines_of_session(records: Mapping[str, Sequence[RoundRecord]]) -> Iterator[str]:
    """Yield the same of the records of a session, by agent."""
    for name, of_agent in records.items():
        attempts: dict[tuple[str, int], list[RoundRecord]] = defaultdict(list)
        for record in of_agent:
            attempts[record.task, record.attempt].append(record)
        yield from _cut(name, [("", rounds) for rounds in attempts.values()])


def _cut(name: str, attempts: Sequence[tuple[str, Sequence[RoundRecord]]]) -> Iterator[str]:
    limits = [{waits_at, *(cutting_limit(each) for each in rounds)} - {""} for waits_at, rounds in attempts]
    by_limit = Counter(limit for found in limits for limit in found)
    if cut := sum(map(bool, limits)):
        told = ", ".join(f"by {limit}: {counted(number, 'attempt')}" for limit, number in sorted(by_limit.items()))
        yield f"cut by their budget: {cut} of {counted(len(attempts), 'attempt')} of {name} ({told})"


_BUDGET = "budget: "


def cutting_limit(record: RoundRecord) -> str:
    """Return the limit of a budget that ended a turn, or at which its round waits, such as ``tokens``; empty is none.

    >>> about = {"task": "t", "agent": "a", "attempt": 1, "round": "r", "index": 1, "declared_rounds": 1}
    >>> cutting_limit(RoundRecord(**about, outcome="failed", stopped="budget: tokens 210 of 200 used in the round"))
    'tokens'
    """
    text = record.waiting or record.stopped
    return text.removeprefix(_BUDGET).partition(" ")[0] if text.startswith(_BUDGET) else ""


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
        names = listed(depending_on_k(RESULTS))
        yield f"k is not the same for all: {names} depend on it; compare them for equal k only"


def groups_table(by: str, agent: Column, groups: Mapping[str, Mapping[str, Group]]) -> Table:
    """Return the scores of agents by group, such as by task; ``by`` is the title of the groups."""
    single = {any(group.sr is not None for group in found.values()) for found in groups.values()}
    fields = [*(GROUPS if False in single else ()), *(SINGLE_ROUND_GROUPS if True in single else ())]
    if by in PARTS_OF_TASKS:
        fields = [field for field in fields if field != "mt_at_k"]
    scores = score_columns(dict.fromkeys(fields))
    if len(single) == 2:
        scores = (replace(each, nothing=NOT_MEASURED) for each in scores)
    columns = (
        agent,
        Column.text(by, "group"),
        *scores,
        Column.count("tasks", "tasks", "How many tasks have such rounds."),
        Column.count("rounds", "rounds", "How many rounds these are."),
    )
    rows = [
        {**asdict(group), "agent": name, "group": key, "trusting": 0}
        for name, found in groups.items()
        for key, group in found.items()
    ]
    return Table(f"scores-by-{by}", f"Scores by {by}", columns, rows, by_section=True)
