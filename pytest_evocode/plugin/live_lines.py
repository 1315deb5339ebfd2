"""The text of the lines that a session shows while it runs, of running attempts and of ended rounds."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pytest_evocode.report.printable import printable_line
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.trial.context import Progress


def status_lines(running: Mapping[str, Progress], *, now: float, columns: int, rows: int) -> list[str]:
    """Return a line for each attempt, cut to the width of the screen, on no more than half of its height.

    Args:
        running: The attempts' progress by name.
        now: The time, in seconds since the epoch.
        columns: The width of the screen.
        rows: The height of the screen.
    """
    names = list(running)
    most = max(1, rows // 2)
    if len(names) > most:
        names = names[: most - 1]
    lines = [f"{name}: {', '.join(_status(running[name], now))}" for name in names]
    if left := len(running) - len(names):
        lines.append(f"and {left} more" if names else f"{left} attempts")
    return [_fit(printable_line(line), columns) for line in lines]


def round_line(name: str, record: RoundRecord) -> str:
    """Return how a round ended, in one line that starts with the name of its attempt."""
    if record.outcome == "error":
        return printable_line(f"{name} {record.round} error: {record.cause.partition(chr(10))[0]}")
    return printable_line(f"{name} {record.round} {', '.join(_ending(record))}")


def _status(progress: Progress, now: float) -> Iterator[str]:
    if progress.index:
        yield f"round {progress.index}/{progress.rounds}"
    if progress.doing != "working":
        yield f"clearing up: {progress.forks} forks" if progress.forks else progress.doing
    yield from _used(progress.turns or None, progress.tokens or None, progress.cost_usd or None)
    elapsed = max(0.0, now - progress.since)
    if progress.limit is None:
        yield clock(elapsed)
    else:
        yield f"{clock(max(0.0, progress.limit - elapsed))} left"


def _ending(record: RoundRecord) -> Iterator[str]:
    yield record.outcome
    passed, cases = record.case_counts
    if cases:
        yield f"{passed}/{cases} cases"
    if (usage := record.usage) is not None:
        yield from _used(usage.requests, usage.tokens, usage.cost_usd)
    seconds = [each for each in (record.agent_seconds, record.verifier_seconds) if each is not None]
    if seconds:
        yield f"{sum(seconds):.1f} s"


def _used(turns: int | None, tokens: int | None, cost_usd: float | None) -> Iterator[str]:
    """Yield what a model has used, without the amounts that are not known."""
    if turns is not None:
        yield "1 turn" if turns == 1 else f"{turns} turns"
    if tokens is not None:
        yield f"{_short_number(tokens)} tokens"
    if cost_usd is not None:
        yield f"${cost_usd:.2f}" if cost_usd == 0 or cost_usd >= 0.01 else f"${cost_usd:.4f}"


def _short_number(number: int) -> str:
    """Return a number in about three digits.

    >>> _short_number(999), _short_number(30_149), _short_number(999_960), _short_number(1_250_000)
    ('999', '30.1k', '1.00M', '1.25M')
    """
    if number < 1000:
        return str(number)
    return f"{number / 1e3:.1f}k" if number < 999_950 else f"{number / 1e6:.2f}M"


def clock(seconds: float) -> str:
    """Return a duration as minutes and seconds, from an hour on with hours.

    >>> clock(9.9), clock(754), clock(3601)
    ('0:09', '12:34', '1:00:01')
    """
    minutes, second = divmod(int(seconds), 60)
    hours, minute = divmod(minutes, 60)
    return f"{hours}:{minute:02}:{second:02}" if hours else f"{minute}:{second:02}"


def _fit(line: str, columns: int) -> str:
    """Return a line cut so that it ends before the last column."""
    return line if len(line) < columns else line[: max(0, columns - 4)] + "..."
