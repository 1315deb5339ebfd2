"""What to be careful about in a run, as far as its records say: ``RunSummary.warnings`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from pytest_evocode.names import attempt_name
from pytest_evocode.report.scores import TRUSTS
from pytest_evocode.report.tables import join_first
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import RoundRecord, RunRecord

_MOST = 5
"""Places that a warning names."""
_About = Callable[[RoundRecord], str | None]


def run_warnings(record: RunRecord | None, attempts: Sequence[StoredAttempt]) -> list[str]:
    """Return a line for each kind of thing, with how often it is there and the first places.

    Args:
        record: The run's own record; None where there is none, as of Harbor's jobs.
        attempts: All that is there of the run's attempts, in order.
    """
    rounds = [round_ for attempt in attempts for round_ in attempt.record.rounds]
    of_run = () if record is None else (*_of_versions(record), *_missing(record, attempts))
    return [*of_run, *_of_attempts(attempts), *_of_rounds(rounds), *_lower_bounds(rounds)]


def _of_versions(record: RunRecord) -> Iterator[str]:
    changed = [f"{name} {', then '.join(each)}" for name, each in record.versions.items() if len(each) > 1]
    if changed:
        yield f"it was continued with other versions: {'; '.join(changed)}"


def _missing(record: RunRecord, attempts: Sequence[StoredAttempt]) -> Iterator[str]:
    made = {(each.record.task, each.record.agent, each.record.attempt) for each in attempts}
    if record.shard is not None:
        return  # The others are for other shards to make.
    missing = [
        f"{task} {attempt_name(agent, number)}"
        for task, agents in record.selected.items()
        for agent, numbers in agents.items()
        for number in numbers
        if (task, agent, number) not in made
    ]
    if missing:
        yield _line(missing, "attempt was selected and left nothing", "attempts were selected and left nothing")


def _of_attempts(attempts: Sequence[StoredAttempt]) -> Iterator[str]:
    if unfinished := [_name(each) for each in attempts if not each.finished]:
        yield _line(
            unfinished,
            "attempt is not finished, and its missing rounds count as not passed",
            "attempts are not finished, and their missing rounds count as not passed",
        )
    if partial := [f"{_name(each)} ({join_first(each.round_names, _MOST)})" for each in attempts if each.partial]:
        yield _line(
            partial,
            "attempt is partial, and only the rounds that were selected count",
            "attempts are partial, and only the rounds that were selected count",
        )
    if regraded := [f"{_name(each)} ({each.record.regraded})" for each in attempts if each.record.regraded]:
        yield _line(regraded, "attempt was verified again later", "attempts were verified again later")


def _stopped(record: RoundRecord) -> str | None:
    return record.stopped or None


def _flags(record: RoundRecord) -> str | None:
    return "; ".join(record.verdict.flags) or None if record.verdict is not None else None


def _when(holds: Callable[[RoundRecord], bool]) -> _About:
    """Return what says nothing more of a round than that something holds of it."""
    return lambda record: "" if holds(record) else None


#: What is said of one round, what of several, and what returns, for a round that it holds of, more about it.
_ABOUT_ROUNDS: tuple[tuple[str, str, _About], ...] = (
    (
        "round ended in an infrastructure error, and counts as not passed",
        "rounds ended in infrastructure errors, and count as not passed",
        _when(lambda record: record.outcome == "error" and record.fault != "agent"),
    ),
    (
        "round ended because the agent broke down",
        "rounds ended because the agent broke down",
        _when(lambda record: record.outcome == "error" and record.fault == "agent"),
    ),
    (
        f"verdict trusts {TRUSTS}",
        f"verdicts trust {TRUSTS}",
        _when(lambda record: record.verdict is not None and record.verdict.trusts_agent),
    ),
    (
        "verdict counts no case, because it trusts the agent's system in a strict session",
        "verdicts count no case, because they trust the agent's system in a strict session",
        _when(lambda record: record.verdict is not None and record.verdict.void),
    ),
    (
        "suite did not give the same verdict every time that it ran",
        "suites did not give the same verdict every time that they ran",
        _when(lambda record: bool(record.verdict and record.verdict.repeats and record.verdict.repeats.flaky)),
    ),
    ("turn of the agent was ended from outside", "turns of the agent were ended from outside", _stopped),
    ("verdict is marked", "verdicts are marked", _flags),
)


def _of_rounds(rounds: Sequence[RoundRecord]) -> Iterator[str]:
    for one, several, about in _ABOUT_ROUNDS:
        found = [(record, more) for record in rounds if (more := about(record)) is not None]
        if found:
            yield _line([_place(record, more) for record, more in found], one, several)


def _lower_bounds(rounds: Sequence[RoundRecord]) -> Iterator[str]:
    """Yield what models used or cost in some rounds and is not known of others, so that sums are lower bounds."""
    used = [record for record in rounds if record.usage is not None]
    unknown: Mapping[str, list[RoundRecord]] = {
        "tokens": [record for record in used if record.usage and record.usage.tokens is None],
        "cost": [record for record in used if record.usage and record.usage.cost_usd is None],
    }
    for what, records in unknown.items():
        if 0 < len(records) < len(used):
            places = join_first([_place(record, "") for record in records], _MOST)
            yield f"{what} of {len(records)} of {len(used)} rounds not known, so sums are lower bounds: {places}"


def _line(places: Sequence[str], one: str, several: str) -> str:
    return f"{len(places)} {one if len(places) == 1 else several}: {join_first(places, _MOST)}"


def _name(attempt: StoredAttempt) -> str:
    return f"{attempt.record.task} {attempt_name(attempt.record.agent, attempt.record.attempt)}"


def _place(record: RoundRecord, more: str) -> str:
    place = f"{record.task} {attempt_name(record.agent, record.attempt)} {record.round}"
    return f"{place} ({more})" if more else place
