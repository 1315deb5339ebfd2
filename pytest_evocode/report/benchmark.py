"""The terminal summary of a session: the benchmark table, the grid of rounds and tasks, and where time went."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from pytest_evocode.metrics.failures import refusal_rates
from pytest_evocode.metrics.faults import faults
from pytest_evocode.metrics.flaky import FlakyRound
from pytest_evocode.metrics.grid import by_agent, by_task, scored, suite_facts
from pytest_evocode.metrics.score_table import apart_in
from pytest_evocode.metrics.scores import RunMode
from pytest_evocode.metrics.spending import spending
from pytest_evocode.names import ForkPoint, attempt_name, is_fork
from pytest_evocode.report.score_columns import SESSION
from pytest_evocode.report.score_lines import (
    PARTIAL,
    apart_lines,
    cut_lines_of_session,
    flaky_lines,
    marked_lines,
    notes_below,
    scores_table,
)
from pytest_evocode.report.tables import aligned, format_number, join_first
from pytest_evocode.report.views import definition_lines, shown_cells
from pytest_evocode.results.records import Outcome, RoundRecord, total_waits

CHAIN = RunMode()
_MARKS: dict[Outcome, str] = {"passed": ".", "failed": "F", "undecided": "u", "error": "E", "not reached": "-"}
_WAITING = "w"


def describe_mode(mode: RunMode) -> str:
    """Return what a mode does in one line; empty for whole chains, the default."""
    parts = []
    if mode.mode == "single-round":
        parts.append("each round starts from what the reference solutions of the earlier rounds lead to")
    if mode.mode == "fail-stop":
        parts.append("the first round that does not pass ends its attempt")
    if mode.from_round is not None and is_fork(mode.from_round):
        point = ForkPoint.parse(mode.from_round)
        parts.append(f"attempts go on from what {point.agent} left after {point.round}; rounds until then do not count")
    elif mode.from_round is not None:
        start = f"{mode.from_round} starts from what the reference solutions of the earlier rounds lead to"
        parts.append(f"{start}, which do not count")
    return "; ".join(parts)


def lowest_score(records: Sequence[RoundRecord], mode: RunMode = CHAIN) -> float | None:
    """Return the lowest Dataset Score of all agents, 0 to 100; in mode single-round, the lowest SR.

    None where no reward decides any round of an agent, which is no score that could reach anything.
    """
    suites = suite_facts(records)
    found = [mode.score(of_agent, suites) for of_agent in by_agent(scored(records)).values()]
    known = [score for score in found if score is not None]
    # An agent of which nothing is scored reaches nothing, beside others that do.
    return min(known) if known and len(known) == len(by_agent(records)) else None


def waiting_attempts(records: Sequence[RoundRecord]) -> set[tuple[str, str, int]]:
    """Return task, agent and number of each attempt that waits for a later session."""
    return {(record.task, record.agent, record.attempt) for record in records if record.waiting}


def waiting_line(records: Sequence[RoundRecord], run: str) -> str:
    """Return which limit of the run attempts wait at, how many these are, and what to do; empty without any."""
    if not (waiting := waiting_attempts(records)):
        return ""
    why = next(record.waiting for record in records if record.waiting)
    every = len({(record.task, record.agent, record.attempt) for record in records})
    attempts = f"1 of {every} attempts waits" if len(waiting) == 1 else f"{len(waiting)} of {every} attempts wait"
    return (
        f"{why}: {attempts}, and rounds without a verdict do not count; raise the limit and go on with "
        f"--evocode-resume={run}"
    )


def benchmark_lines(
    records: Sequence[RoundRecord],
    mode: RunMode = CHAIN,
    *,
    grid: bool,
    definitions: bool = False,
    fail_under: float | None = None,
    controls: Collection[str] = (),
    flaky: Sequence[FlakyRound] = (),
) -> Iterator[str]:
    """Yield the summary of a session.

    Args:
        records: The records of all rounds.
        mode: The mode of the session.
        grid: Whether to add a line of marks for each task and attempt.
        definitions: Whether to add what each column is.
        fail_under: The score that ``--evocode-fail-under`` asks for, 0 to 100.
        controls: The agents that it does not ask.
        flaky: The rounds whose verdict is not always the same.
    """
    counting = scored(records)
    agents = {mode.name(agent): of_agent for agent, of_agent in by_agent(counting).items()}
    suites = suite_facts(records)
    found = {agent: mode.scores(of_agent, suites) for agent, of_agent in agents.items()}
    spent = {agent: spending(of_agent) for agent, of_agent in agents.items()}
    broken = {agent: faults(*mode.grids(of_agent, suites)) for agent, of_agent in agents.items()}
    if agents:
        waits = {mode.name(each[1]) for each in waiting_attempts(records)} & agents.keys()
        parts = {mode.name(each[1]) for each in partial_attempts(records, mode)} & agents.keys()
        scores = scores_table(
            found, spent, table=SESSION[mode.mode], faults=broken, open_rows=waits, partial_rows=parts
        )
        yield from aligned(shown_cells(scores))
        # What is partial is told in the last line, round by round.
        yield from marked_lines(partial=False, is_open=bool(waits))
    yield from apart_lines(apart_in(records))
    yield from unpriced_lines(agents)
    grids = {name: mode.grid(of_agent) for name, of_agent in agents.items()}
    yield from notes_below(found, grids, counting, broken)
    for agent, rate in refusal_rates(counting).items():
        refused = sorted(record.place for record in counting if record.agent == agent and record.refused)
        yield f"refused: {len(refused)} rounds of {agent} ({rate:.1f} %): {join_first(refused)}"
    yield from lower_bound_lines(agents)
    yield from cut_lines_of_session({mode.name(agent): of_agent for agent, of_agent in by_agent(records).items()})
    if definitions and agents:
        yield from definition_lines(scores)
    if grid:
        yield ""
        yield from _grid(records)
    if about_flaky := list(flaky_lines(flaky)):
        yield ""
        yield from about_flaky
    if note := partial_note(records, mode):
        yield ""
        yield note
    if fail_under is not None:
        yield ""
        yield reaches(fail_under, records, mode, controls)[1]


def reaches(
    least: float, records: Sequence[RoundRecord], mode: RunMode = CHAIN, controls: Collection[str] = ()
) -> tuple[bool, str]:
    """Return whether all agents but ``controls`` reach the score of ``--evocode-fail-under``, and that in words."""
    asked = [record for record in records if record.agent not in controls]
    left_out = sorted({record.agent for record in records}.intersection(controls))
    note = f"; controls do not count ({', '.join(left_out)})" if left_out else ""
    option = f"--evocode-fail-under={least:g}"
    if left_out and not asked:  # A shard may have no others.
        return True, f"{option}: nothing to reach{note}"
    if waiting_attempts(asked):
        return False, f"{option}: not reached, attempts wait{note}"
    lowest = lowest_score(asked, mode)
    reached = lowest is not None and lowest >= least
    score = f"{'an' if mode.headline == 'SR' else 'a'} {mode.headline} of {_apart(lowest, least)}"
    return reached, f"{option}: {'reached' if reached else 'not reached'} with {score}{note}"


def _apart(score: float | None, least: float) -> str:
    """Return a score with as many digits as it takes not to look like the one that it is below.

    >>> _apart(66.6667, 66.7), _apart(66.6667, 60)
    ('66.67', '66.7')
    """
    if score is None or score >= least:
        return format_number(score)
    return next(
        (text for digits in range(1, 10) if float(text := format_number(score, digits=digits)) < least), str(score)
    )


def unpriced_lines(agents: Mapping[str, Sequence[RoundRecord]]) -> Iterator[str]:
    """Yield which agents used tokens whose cost nobody knows, in one line, and what to do about it."""
    unpriced = [
        agent
        for agent, records in agents.items()
        if any(each.usage is not None and each.usage.tokens and each.usage.cost_usd is None for each in records)
    ]
    if unpriced:
        yield (
            f"the cost of {join_first(unpriced)} is not known: give the model's prices with --evocode-agent-option "
            "prices=FILE"
        )


def lower_bound_lines(agents: Mapping[str, Sequence[RoundRecord]]) -> Iterator[str]:
    """Yield, in a line for each agent, the rounds that took more than is known."""
    for agent, records in agents.items():
        if killed := [each for each in records if each.usage is not None and each.usage.at_least]:
            names = sorted(f"{each.task} {attempt_name(agent, each.attempt)} {each.round}" for each in killed)
            yield (
                f"at least: {agent} used more than is known, because it was killed in mid-turn or a reply of its model "
                f"broke off, in {join_first(names)}"
            )


def partial_attempts(
    records: Sequence[RoundRecord], mode: RunMode = CHAIN
) -> dict[tuple[str, str, int], tuple[int, ...]]:
    """Return task, agent and number of each attempt that not all rounds were selected for, with those that were."""
    waiting = waiting_attempts(records)
    return {
        key: task.own(number)
        for of_agent in by_agent(records).values()
        for task in mode.grid(of_agent).tasks
        for number in task.partial
        if (key := (task.task, task.agent, number)) not in waiting
    }


def partial_note(records: Sequence[RoundRecord], mode: RunMode = CHAIN) -> str:
    """Return which rounds were selected of the tasks of which that is not all, in one line; empty without any.

    Rounds that were selected and not reached have a record too.
    """
    names = {(record.task, record.index): record.round for record in records}
    partial = sorted(
        {
            f"{task} {' '.join(names[task, index] for index in own)}"
            for (task, _, _), own in partial_attempts(records, mode).items()
        }
    )
    return f"{PARTIAL} Not all rounds were selected, only these count: {join_first(partial)}" if partial else ""


def _grid(records: Sequence[RoundRecord]) -> Iterator[str]:
    yield from aligned(grid_rows(records))
    undecided = "u undecided   " if any(record.outcome == "undecided" for record in records) else ""
    waiting = f"   {_WAITING} waiting" if waiting_attempts(records) else ""
    brought = "   ( ) brought along, not counted" if any(record.brought_along for record in records) else ""
    yield f". passed   F failed   {undecided}E error   - not reached{waiting}{brought}"


def grid_rows(records: Sequence[RoundRecord]) -> list[tuple[str, ...]]:
    """Return a head and a row for each attempt, with a mark for each round.

    The marks are ``.`` (passed), ``F`` (failed), ``u`` (undecided), ``E`` (error), ``-`` (not reached) and ``w``
    (waiting for a later session), in brackets where the round was brought along; empty is a round that was not run.
    Where no score counts an attempt, a last column says why.
    """
    agents = by_agent(records)
    longest = max(record.declared_rounds for record in records)
    states = {(each.task, each.agent, each.attempt): each.unscored for each in records if each.unscored is not None}
    rows: list[tuple[str, ...]] = [("round", *(str(index) for index in range(1, longest + 1)), *[""][: len(states)])]
    for agent, of_agent in agents.items():
        for task, attempts in by_task(of_agent).items():
            for number, attempt in attempts.items():
                marks = {record.index: _mark(record) for record in attempt}
                name = task if len(agents) == 1 else f"{task} {agent}"
                label = name if number == 1 else f"{name}.{number}" if len(agents) > 1 else f"{name} {agent}.{number}"
                state = [states.get((task, agent, number), "")] if states else []
                rows.append((label, *(marks.get(index, "") for index in range(1, longest + 1)), *state))
    return rows


def _mark(record: RoundRecord) -> str:
    mark = _WAITING if record.waiting else _MARKS[record.outcome]
    return f"({mark})" if record.brought_along else mark


def slots_line(records: Iterable[RoundRecord], slots: int, seconds: float) -> str:
    """Return how busy a session's suites kept the slots that they had for so many seconds; empty without suites.

    >>> from pytest_evocode.results.phases import Phases
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=1, outcome="passed",
    ...     phases=Phases(waiting=0.5, slot_seconds=8.0))
    >>> slots_line([record, record], slots=2, seconds=10.0)
    'slots: 2, busy 80 % of 10.0 s, suites queued 1.0 s'
    """
    known = [record.phases for record in records if record.phases is not None]
    held = sum(phases.slot_seconds or 0.0 for phases in known)
    if not held or seconds <= 0:
        return ""
    waited = sum(phases.waiting or 0.0 for phases in known)
    busy = min(1.0, held / (slots * seconds))
    return f"slots: {slots}, busy {busy:.0%} of {seconds:.1f} s, suites queued {waited:.1f} s".replace("%", " %")


def waits_line(records: Iterable[RoundRecord]) -> str:
    """Return how long the turns of some rounds waited and for what; empty where none did for a tenth of a second.

    >>> from pytest_evocode.results.records import Waits
    >>> record = RoundRecord(task="t", agent="a", attempt=1, round="r1", index=1, declared_rounds=1, outcome="passed",
    ...     provider_waits=Waits(retries=2, seconds={"rate limit": 61.0, "network": 1.25}))
    >>> waits_line([record])
    'held up by model providers: 62.2 s (rate limit 61.0 s, network 1.2 s), 2 retries; not counted as working time'
    """
    waits = total_waits(record.provider_waits for record in records)
    if waits is None or (waits.total < 0.1 and not waits.retries):
        return ""
    causes = ", ".join(f"{cause} {seconds:.1f} s" for cause, seconds in waits.seconds.items() if seconds >= 0.05)
    retries = f", {waits.retries} {'retry' if waits.retries == 1 else 'retries'}" if waits.retries else ""
    by_cause = f" ({causes})" if causes else ""
    return f"held up by model providers: {waits.total:.1f} s{by_cause}{retries}; not counted as working time"
