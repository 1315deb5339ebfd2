"""What ``evocode process`` prints: RigorBench's pillars by agent, task and round, with the evidence for them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean
from typing import Any

from pytest_evocode.process.evidence import Measure
from pytest_evocode.process.measured import measured_lines
from pytest_evocode.process.scores.released_scorer import ReleasedResult, work_of
from pytest_evocode.process.scores.rigor_score import (
    EXTENDED,
    OF_CATEGORY,
    PILLARS,
    WEIGHTS,
    AttemptProcess,
    RigorScore,
    RoundProcess,
)
from pytest_evocode.process.scores.summary import (
    Correlation,
    Pairs,
    ProcessSummary,
    as_json,
    by_task,
    judged,
    sensitivity,
    summarise_agent,
    summarise_task,
    within_agent,
    within_tasks,
)
from pytest_evocode.report.tables import NOT_MEASURED, aligned, counted, format_number, join_first
from pytest_evocode.report.views import Column, Table, View, shown_cells


def _number(value: float | None) -> str:
    return format_number(value, digits=2)


def _score_text(score: RigorScore | None) -> str:
    """Return a score with the share of the weights that was measured, and how much of that was not just parsed.

    >>> _score_text(RigorScore(value=0.61, coverage=0.75))
    '0.61 over 75 %'
    >>> _score_text(RigorScore(value=0.61, coverage=0.75, judged=0.12, executed=0.3))
    '0.61 over 75 %, 30 % executed, 12 % judged'
    """
    if score is None:
        return NOT_MEASURED
    executed = f", {score.executed:.0%} executed" if score.executed else ""
    judged = f", {score.judged:.0%} judged" if score.judged else ""
    claimed = f", {score.claimed:.0%} claimed" if score.claimed else ""
    return f"{score.value:.2f} over {score.coverage:.0%}{executed}{judged}{claimed}".replace("%", " %")


def process_lines(attempts: Sequence[AttemptProcess], weights: Mapping[str, float] = WEIGHTS) -> Iterator[str]:
    """Yield the whole report: pillars, sub-metrics beyond RigorBench's, sensitivity to weights, outcome, judge."""
    yield (
        "Process discipline, 0 to 1 (n/a: not measured). RigorScore over the share of the weight that was measured; "
        "what is not marked as executed, judged or claimed (told by the agent's program) was parsed."
    )
    yield ""
    yield from aligned(shown_cells(_pillar_table(attempts, weights)))
    agents = {agent: summarise_agent(tasks, weights) for agent, tasks in by_task(attempts).items()}
    yield from measured_lines(
        name for name in PILLARS if any(each.values[name] is not None for each in agents.values())
    )
    for table in _extended_tables(agents):
        yield from ("", table.title, *aligned(shown_cells(table)))
    yield from _certainty_lines(agents)
    yield from _sensitivity_lines(agents, weights)
    yield from outcome_lines(attempts, weights)
    yield from _closing_lines(attempts)


def process_view(
    attempts: Sequence[AttemptProcess], weights: Mapping[str, float] = WEIGHTS, *, explained: bool = False
) -> View:
    """Return the whole report, or with ``explained`` the evidence behind its values, which is text only."""
    agents = {agent: summarise_agent(tasks, weights) for agent, tasks in by_task(attempts).items()}
    lines = explain_lines(attempts, weights) if explained else process_lines(attempts, weights)
    tables = [_pillar_table(attempts, weights), *_extended_tables(agents)]
    return View(tables, json=lambda: as_json(agents), text="\n".join(lines).split("\n"))


def agents_view(agents: Mapping[str, ProcessSummary]) -> View:
    """Return the pillars with a row for each agent."""
    return View([agent_table(agents)], json=lambda: as_json(agents))


def _score_values(score: RigorScore | None) -> dict[str, Any]:
    values = score.model_dump() if score is not None else dict.fromkeys(RigorScore.model_fields)
    return {"score": score, "rigor_score": values.pop("value"), **values}


_PILLAR_COLUMNS = tuple(Column.number(name.upper(), name, f"{title}.", digits=2) for name, title in PILLARS.items())
_SCORE_COLUMN = Column(
    "RigorScore",
    lambda row: _score_text(row["score"]),
    help="The mean of pillars by their weights, over the share of the weight that was measured.",
    fields=("rigor_score", "coverage", "executed", "judged", "claimed"),
)
_TITLE = "Process discipline, 0 to 1"


def agent_lines(agents: Mapping[str, ProcessSummary]) -> Iterator[str]:
    """Yield the pillars with a row for each agent."""
    yield from aligned(shown_cells(agent_table(agents)))


def agent_table(agents: Mapping[str, ProcessSummary]) -> Table:
    """Return the table of pillars with a row for each agent."""
    rows = [
        {"agent": agent, **summary.values, **_score_values(summary.score), "attempts": summary.attempts}
        for agent, summary in agents.items()
    ]
    columns = (Column.text("agent", "agent"), *_PILLAR_COLUMNS, _SCORE_COLUMN, Column.count("attempts", "attempts"))
    return Table("process", _TITLE, columns, rows)


def _pillar_table(attempts: Iterable[AttemptProcess], weights: Mapping[str, float]) -> Table:
    """Return the table of pillars with a row for each agent, each of its tasks, and each of their rounds."""

    def row(
        name: str, found: ProcessSummary | RoundProcess, score: RigorScore | None, *place: object
    ) -> dict[str, Any]:
        where = dict(zip(("agent", "task", "attempt", "round"), (*place, None, None, None), strict=False))
        return {"name": name, **where, **found.values, **_score_values(score), "outcome": found.outcome}

    rows = []
    for agent, tasks in by_task(attempts).items():
        whole = summarise_agent(tasks, weights)
        rows.append(row(agent, whole, whole.score, agent))
        for task, found in tasks.items():
            some = summarise_task(found, weights)
            rows.append(row(f"  {task}", some, some.score, agent, task))
            for attempt in found:
                mark = f" (attempt {attempt.attempt})" if len(found) > 1 else ""
                for each in attempt.rounds:
                    place = agent, task, attempt.attempt, each.round
                    rows.append(row(f"    {each.round}{mark}", each, each.score(weights), *place))
    names = Column.form("agent, task, round", "{name}", fields=("agent", "task", "attempt", "round"), left=True)
    outcome = Column.number("outcome", "outcome", "The share of cases that passed.", digits=2)
    return Table("process", _TITLE, (names, *_PILLAR_COLUMNS, _SCORE_COLUMN, outcome), rows)


def _extended_tables(agents: Mapping[str, ProcessSummary]) -> Iterator[Table]:
    if not any(value is not None for summary in agents.values() for value in summary.extended.values()):
        return
    rows = [
        {"agent": agent, **summary.extended, **{f"{name}_shown": _extended_cell(summary, name) for name in EXTENDED}}
        for agent, summary in agents.items()
    ]
    columns = [Column.form(name, f"{{{name}_shown}}", fields=(name,)) for name in EXTENDED]
    title = f"Extended: {', '.join(f'{name} {what}' for name, what in EXTENDED.items())}"
    yield Table("process-extended", title, (Column.text("agent", "agent"), *columns), rows)


def _extended_cell(summary: ProcessSummary, name: str) -> str:
    """Return the value of an extended metric, marked where a model judged it or where it is a mean of several kinds."""
    found = summary.certainties.get(name, frozenset())
    mark = f" {' and '.join(sorted(found))}" if len(found) > 1 or "judged" in found else ""
    return f"{_number(summary.extended[name])}{mark}"


def _certainty_lines(agents: Mapping[str, ProcessSummary]) -> Iterator[str]:
    """Yield how sure each agent's RigorScore is, and in how many rounds nothing was run, so that RE is n/a there."""
    for agent, summary in agents.items():
        if summary.score is None:
            continue
        found = summary.interval
        interval = f"95 % {found.low:.2f} to {found.high:.2f} over tasks" if found else "too few tasks for an interval"
        idle, rounds = summary.idle
        yield f"{agent}: RigorScore {interval}; nothing was run after an edit in {idle} of {rounds} rounds with an edit"


def _sensitivity_lines(agents: Mapping[str, ProcessSummary], weights: Mapping[str, float]) -> Iterator[str]:
    if sum(summary.score is not None for summary in agents.values()) < 2:
        return
    variations = sensitivity({agent: summary.values for agent, summary in agents.items()}, weights)
    kept = sum(variation.kept for variation in variations)
    yield ""
    yield f"Rank order with each weight changed by 50 %: kept in {kept} of {len(variations)}"
    rows: list[tuple[str, ...]] = [("weight", "x 0.5", "x 1.5")]
    for pillar in weights:
        found = [variation for variation in variations if variation.pillar == pillar]
        rows.append((pillar.upper(), *("kept" if each.kept else " > ".join(each.order) for each in found)))
    yield from aligned(rows, left=(0, 1, 2))


def outcome_lines(attempts: Sequence[AttemptProcess], weights: Mapping[str, float] = WEIGHTS) -> Iterator[str]:
    """Yield RigorScore and outcome side by side, by task, and how they correlate."""
    pairs = score_and_outcome(attempts, weights)
    if not pairs:
        return
    yield ""
    yield "Process against outcome (share of cases passed), by task"
    tasks = sorted({task for points in pairs.values() for task in points})
    rows = [("task", *pairs)]
    for task in tasks:
        cells = (points.get(task) for points in pairs.values())
        rows.append((task, *(f"{point[0]:.2f} / {point[1]:.2f}" if point else NOT_MEASURED for point in cells)))
    yield from aligned(rows)
    for agent, points in pairs.items():
        yield f"{agent}, over tasks: {_correlation_text(within_agent(points))}"
    if len(pairs) > 1:
        yield f"all agents, within tasks: {_correlation_text(within_tasks(pairs))}"


def score_and_outcome(attempts: Iterable[AttemptProcess], weights: Mapping[str, float] = WEIGHTS) -> Pairs:
    """Return RigorScore and outcome by agent and task, where both are known."""
    pairs: dict[str, dict[str, tuple[float, float]]] = {}
    for agent, tasks in by_task(attempts).items():
        for task, found in tasks.items():
            summary = summarise_task(found, weights)
            if summary.score is not None and summary.outcome is not None:
                pairs.setdefault(agent, {})[task] = (summary.score.value, summary.outcome)
    return pairs


def _correlation_text(found: Correlation) -> str:
    r = NOT_MEASURED if found.r is None else f"r = {found.r:.2f}"
    stands_on = counted(found.tasks, "task")
    if found.interval is None:
        return f"{r} ({stands_on}; {found.reason})"
    return f"{r} ({stands_on}, 95 % {found.interval.low:.2f} to {found.interval.high:.2f})"


def _closing_lines(attempts: Sequence[AttemptProcess]) -> Iterator[str]:
    false = [
        f"{attempt.agent}, {attempt.task}, {round_.round}: {round_.false_abstention.quote}"
        for attempt in attempts
        for round_ in attempt.rounds
        if round_.false_abstention is not None
    ]
    if false:
        yield ""
        yield "Gave up on a request that can be met:"
        yield from (f"  {line}" for line in false)
    yield from _judge_lines(attempts)
    notes = dict.fromkeys(note for attempt in attempts for note in attempt.notes)
    if notes:
        yield ""
        yield from notes


def _judge_lines(attempts: Sequence[AttemptProcess]) -> Iterator[str]:
    """Yield how far a judging model agrees with the rules, and what it cost, which counts for no agent."""
    found = judged(attempts)
    if not found:
        return
    names = dict.fromkeys(round_.judge for attempt in attempts for round_ in attempt.rounds if round_.judge)
    costs = [judgement.cost_usd for judgements in found.values() for judgement in judgements]
    known = [cost for cost in costs if cost is not None]
    cost = f"${sum(known):.4f}" if len(known) == len(costs) else f"${sum(known):.4f} and what has no price"
    yield ""
    yield f"Judged by {', '.join(names)}, at {cost}; agreement with the rules, 1 less the mean difference:"
    for name, judgements in found.items():
        agreements = [judgement.agreement for judgement in judgements if judgement.agreement is not None]
        shown = f"{fmean(agreements):.2f} (n = {len(agreements)})" if agreements else f"{NOT_MEASURED} (n = 0)"
        yield f"  {name} {shown}"


def explain_lines(attempts: Iterable[AttemptProcess], weights: Mapping[str, float] = WEIGHTS) -> Iterator[str]:
    """Yield all evidence for the attempts, round by round."""
    for attempt in attempts:
        about = OF_CATEGORY.get(attempt.category or "")
        category = f", {attempt.category} (about {about.upper()})" if about else ""
        yield f"{attempt.task}: {attempt.agent}, attempt {attempt.attempt}{category}"
        for round_ in attempt.rounds:
            yield ""
            yield f"  {round_.round}: RigorScore {_score_text(round_.score(weights))}"
            yield from _explain_round(round_)
        yield from (f"  {note}" for note in attempt.notes)
        yield ""


def _explain_round(round_: RoundProcess) -> Iterator[str]:
    for name, title in PILLARS.items():
        pillar = round_.pillars[name]
        yield f"    {name.upper()} {_number(pillar.value)}  {title}"
        for part, measure in pillar.parts.items():
            yield from _explain_measure(part, measure)
    if round_.extended:
        yield "    extended"
    for name, measure in round_.extended.items():
        yield from _explain_measure(name, measure)
    if round_.false_abstention is not None:
        yield f"    false abstention, step {round_.false_abstention.step}: {round_.false_abstention.quote}"


def _explain_measure(name: str, measure: Measure) -> Iterator[str]:
    sure = f" ({measure.certainty})" if measure.certainty else ""
    yield f"      {name} {_number(measure.value)}{sure}: {measure.reason}"
    for evidence in measure.evidence:
        place = f"step {evidence.step}: " if evidence.step is not None else ""
        quote = f": {evidence.quote}" if evidence.quote else ""
        yield f"        {place}{evidence.what}{quote}"


def missing_task_notes(results: Sequence[ReleasedResult]) -> Iterator[str]:
    """Yield what the numbers of harnesses lack: tasks that others have results of, and work that TAD is counted in."""
    tasks: dict[str, set[str]] = defaultdict(set)
    without_work: dict[str, list[str]] = defaultdict(list)
    for result in results:
        tasks[result.harness].add(result.task)
        if not result.has_work:
            without_work[result.harness].append(result.task)
    every = set().union(*tasks.values())
    for harness, own in sorted(tasks.items()):
        if lacks := sorted(every - own):
            yield (
                f"{harness}: {len(own)} of {counted(len(every), 'task')}, without {join_first(lacks)}; "
                "means over other tasks cannot be compared"
            )
    for harness, lacking in sorted(without_work.items()):
        of = sum(result.harness == harness for result in results)
        yield (
            f"{harness}: TAD is the neutral 0.5 in {len(lacking)} of {counted(of, 'result')}, because the agent's work "
            f"is not there, as tasks/CATEGORY/TASK/{work_of(harness)} beside the results: {join_first(sorted(lacking))}"
        )
