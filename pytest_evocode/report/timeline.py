"""What ``evocode timeline`` prints of a run: what it waited for, and a chart of its attempts and slots."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pytest_evocode.metrics.timeline import AttemptTime, RunTimeline, Stage, Stretch
from pytest_evocode.report.tables import counted
from pytest_evocode.report.views import Column, Table, View

STAGES: dict[Stage, str] = {
    "session": "before, between and after attempts: pytest's start, images, reports",
    "start": "an attempt's environment, up to its first turn",
    "setup": "a round's files, setup.sh and healthcheck",
    "agent": "the agent's turn",
    "snapshot": "the snapshot that the suite needs",
    "bookkeeping": "whatever else is between two turns",
    "waiting": "a suite's wait for slots that no suite of this run had",
    "fork": "making ready what a suite runs in",
    "suite": "the suite's own command",
    "reading": "reading the verdict",
    "end": "from an attempt's last suite to its record",
    "other": "what no record tells",
}
"""What each stage of a critical path is."""
_WIDTH = 60
_MOST = 12
_TURN, _SUITE, _NEITHER = "#", "=", "."
_CHART = (
    f"From the run's first moment to its last: {_TURN} the agent's turn, {_SUITE} suites alone, {_NEITHER} neither."
)


def timeline_view(found: RunTimeline) -> View:
    """Return the view of a run: its critical path by stage and its longest pieces, and charts of attempts and slots."""
    notes = [f"{counted(found.untold, 'round')} left out, whose records do not tell when they began"]
    return View([_stages(found), _longest(found), _attempts(found), _slots(found)], notes=notes if found.untold else [])


def _stages(found: RunTimeline) -> Table:
    columns = (
        Column.text("stage", "stage", "What the run waited for: back from its end, whatever was over last each time."),
        Column.number("seconds", "seconds"),
        Column.form("share", "{percent:.0f} %", "Of the run."),
        Column.text("what it is", "about"),
    )
    rows = [
        {"stage": stage, "seconds": seconds, "percent": _percent(seconds, found.span), "about": STAGES[stage]}
        for stage, seconds in found.seconds_by_stage.items()
    ]
    title = f"critical path of run {found.run}, {found.span.seconds:.1f} s, by stage"
    return Table("stages", title, columns, rows, titled=True)


def _longest(found: RunTimeline) -> Table:
    columns = (
        Column.number("from", "begin", "Seconds since the run's first moment."),
        Column.number("seconds", "seconds"),
        Column.text("stage", "stage"),
        Column.text("attempt", "attempt"),
        Column.text("round", "round"),
    )
    rows = [
        {
            "begin": link.span.begin - found.span.begin,
            "seconds": link.span.seconds,
            "stage": link.stage,
            "attempt": link.attempt,
            "round": link.round,
        }
        for link in sorted(found.path, key=lambda each: -each.span.seconds)
    ]
    more = len(rows) - _MOST
    rest = f"and {counted(more, 'shorter piece')} (--json has all)" if more > 0 else ""
    return Table("pieces", "its longest pieces", columns, rows, titled=True, most=_MOST, rest=rest)


def _attempts(found: RunTimeline) -> Table:
    columns = (
        Column.text("attempt", "attempt"),
        Column.number("from", "begin"),
        Column.number("seconds", "seconds"),
        Column.number("turns", "turns", "Seconds of setups and of the agent's turns."),
        Column.number("between", "between", "Seconds of snapshots and bookkeeping, while the agent waits."),
        Column.number("suites", "suites", "Seconds of forks, suites and reading verdicts, summed."),
        Column.number("queued", "queued", "Seconds that suites waited for slots, summed."),
        Column.text("chart", "chart", _CHART),
    )
    rows = [_attempt_row(each, found.span) for each in found.attempts]
    return Table("attempts", "attempts, as they began", columns, rows, titled=True)


def _attempt_row(attempt: AttemptTime, whole: Stretch) -> dict[str, Any]:
    turns = [each.phases for each in attempt.turns]
    suites = [each.phases for each in attempt.suites]
    work = [(_TURN, each.span) for each in attempt.turns] + [
        (_SUITE, each.held) for each in attempt.suites if each.held
    ]
    return {
        "attempt": attempt.name,
        "begin": attempt.span.begin - whole.begin,
        "seconds": attempt.span.seconds,
        "turns": sum((each.setup or 0.0) + (each.agent or 0.0) for each in turns),
        "between": sum(each.overhead_seconds or 0.0 for each in turns),
        "suites": sum((each.fork or 0.0) + (each.suite or 0.0) + (each.reading or 0.0) for each in suites),
        "queued": sum(each.waiting or 0.0 for each in suites),
        "chart": _chart(whole, [*work, (_NEITHER, attempt.span)]),
    }


def _slots(found: RunTimeline) -> Table:
    columns = (
        Column.count("slot", "slot"),
        Column.number("held", "seconds", "Seconds, as far as records tell."),
        Column.form("share", "{percent:.0f} %"),
        Column.text("chart", "chart"),
    )
    rows = []
    for number, spans in enumerate(found.slots, 1):
        seconds = sum(each.seconds for each in spans)
        chart = _chart(found.span, [(_SUITE, each) for each in spans])
        rows.append({"slot": number, "seconds": seconds, "percent": _percent(seconds, found.span), "chart": chart})
    return Table("slots", "slots that suites held, as few as the records allow", columns, rows, titled=True)


def _percent(seconds: float, whole: Stretch) -> float:
    return 100 * seconds / whole.seconds if whole.seconds else 0.0


def _chart(whole: Stretch, work: Sequence[tuple[str, Stretch]]) -> str:
    """Return a line of so many characters, each what was done for most of its time; of equals the first.

    >>> _chart(Stretch(0.0, 60.0), [("#", Stretch(10.0, 12.0)), (".", Stretch(10.0, 15.0))])
    '          ##...'
    """
    step = whole.seconds / _WIDTH
    line = ""
    for column in range(_WIDTH):
        begin = whole.begin + column * step
        done: dict[str, float] = {" ": step / 2}
        for mark, span in work:
            done[mark] = done.get(mark, 0.0) + span.within(begin, begin + step)
        best = [mark for mark in (_TURN, _SUITE) if done.get(mark, 0.0) >= step / 2]
        line += best[0] if best else max(done, key=lambda mark: done[mark])
    return line.rstrip()
