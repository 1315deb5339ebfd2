"""The runs of a report, Harbor's jobs among them, with what to be careful about: ``RunSummary`` in ``data.d.ts``."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.grouping import session_of
from pytest_evocode.metrics.timeline import Stretch, attempt_label, timeline
from pytest_evocode.names import attempt_name
from pytest_evocode.report.html.ids import attempt_id, results_of_run, run_id
from pytest_evocode.report.score_lines import TRUSTS
from pytest_evocode.report.tables import join_first, values_of
from pytest_evocode.report.timeline import STAGES
from pytest_evocode.results.loading import Results, StoredAttempt, StoredRun
from pytest_evocode.results.phases import PHASES, summed_phases
from pytest_evocode.results.records import RoundRecord, RunRecord

_MOST = 5
"""Places that a warning names."""
_About = Callable[[RoundRecord], str | None]


def run_warnings(record: RunRecord, attempts: Sequence[StoredAttempt]) -> list[str]:
    """Return a line for each kind of thing, with how often it is there and the first places.

    Args:
        record: The run's own record, or what its attempts tell.
        attempts: All that is there of the run's attempts, in order.
    """
    rounds = [round_ for attempt in attempts for round_ in attempt.record.rounds]
    of_run = *_about_versions(record), *_missing(record, attempts)
    return [*of_run, *_about_attempts(attempts), *_about_rounds(rounds), *_lower_bounds(rounds)]


def _about_versions(record: RunRecord) -> Iterator[str]:
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


def _about_attempts(attempts: Sequence[StoredAttempt]) -> Iterator[str]:
    if never := [_name(each) for each in attempts if each.unscored == "never started"]:
        yield _line(never, "attempt never started, and is not scored", "attempts never started, and are not scored")
    if interrupted := [_name(each) for each in attempts if each.unscored == "unfinished"]:
        yield _line(interrupted, "attempt is unfinished, and not scored", "attempts are unfinished, and not scored")
    if unfinished := [_name(each) for each in attempts if each.is_cut_short]:
        yield _line(
            unfinished,
            "attempt is not finished, and its missing rounds count as not passed",
            "attempts are not finished, and their missing rounds count as not passed",
        )
    if partial := [f"{_name(each)} ({join_first(each.round_names, _MOST)})" for each in attempts if each.is_part]:
        yield _line(
            partial,
            "attempt is partial, and only the rounds that were selected count",
            "attempts are partial, and only the rounds that were selected count",
        )
    if waiting := [f"{_name(each)} ({join_first(each.round_names, _MOST)})" for each in attempts if each.waiting]:
        yield _line(
            waiting,
            "attempt waits for a later session, and only its rounds so far count",
            "attempts wait for a later session, and only their rounds so far count",
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
        _when(lambda record: record.outcome == "error" and record.fault != "agent" and record.unscored is None),
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


def _about_rounds(rounds: Sequence[RoundRecord]) -> Iterator[str]:
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
    return f"{record.place} ({more})" if more else record.place


_BARS = 200
"""Bars of a timeline that a page draws; it says how many there are."""
_NOT_A_PHASE = "slot_seconds"


def runs_of(results: Results, roots: Sequence[Path]) -> list[dict[str, Any]]:
    """Return all runs, the newest first.

    Sessions have records; of a job of Harbor, and of a session whose record is gone, its attempts tell what is known.

    Args:
        results: What was loaded.
        roots: The directories that were loaded.
    """
    sessions: dict[tuple[str, str], list[StoredAttempt]] = defaultdict(list)
    for attempt in results.attempts:
        sessions[session_of(attempt)].append(attempt)
    found, known = [], set()
    for run in results.runs:
        where = results_of_run(run)
        known.add(key := (os.fspath(where), run.record.run))
        attempts = sessions.get(key, [])
        commands = [[what, shlex.join(command)] for what, command in _commands(run, attempts, roots)]
        made_by = [*run.record.agents.values(), *(each.record.made_by for each in attempts)]
        more = {"commands": commands, "versions": _versions(run.record, made_by)}
        found.append(_run(run.record, where, attempts, roots) | more)
    for place, name in sessions.keys() - known:
        attempts = sessions[place, name]
        found.append(_run(_record_of(name, attempts), Path(place), attempts, roots))
    return sorted(found, key=lambda each: (each["started"], each["name"], each["id"]), reverse=True)


def _record_of(name: str, attempts: Sequence[StoredAttempt]) -> RunRecord:
    """Return what attempts tell of a run that has no record."""
    first = attempts[0].record
    return RunRecord(
        run=name,
        started=min(each.record.started for each in attempts),
        finished=max((each.record.finished for each in attempts if each.finished), default=None) or None,
        arguments=(),
        environment=first.environment,
        mode=first.mode,
        strict=first.strict,
        verify=first.verify,
        agents={each.record.agent: each.record.made_by for each in attempts},
    )


def _run(record: RunRecord, where: Path, attempts: Sequence[StoredAttempt], roots: Sequence[Path]) -> dict[str, Any]:
    return {
        "id": run_id(record.run, where, roots),
        "name": record.run,
        **values_of(record, "started", "finished", "exit_status", "environment", "mode", "strict", "verify"),
        "arguments": list(record.arguments),
        "shard": list(record.shard) if record.shard else None,
        "agents": {name: dict(made_by) for name, made_by in record.agents.items()},
        "commands": [],
        **_of_rounds(attempts, roots),
        "timeline": _timeline(record, attempts, roots),
        "versions": _versions(record, [each.record.made_by for each in attempts]),
        "warnings": run_warnings(record, attempts),
    }


def _of_rounds(attempts: Sequence[StoredAttempt], roots: Sequence[Path]) -> dict[str, Any]:
    """Return the attempts of a run, and what is summed over their rounds."""
    ids = {id(each): attempt_id(each, roots) for each in attempts}
    phases = summed_phases(record.phases for each in attempts for record in each.record.rounds)
    seconds = {} if phases is None else phases.known
    return {
        "attempts": [ids[id(each)] for each in attempts],
        "phases": {name: seconds[name] for name in PHASES if name in seconds and name != _NOT_A_PHASE},
        "faults": [
            {"attempt": ids[id(each)], "round": record.index, "cause": record.cause or "no cause was recorded"}
            for each in attempts
            for record in each.record.rounds
            if record.outcome == "error"
        ],
    }


def _timeline(record: RunRecord, attempts: Sequence[StoredAttempt], roots: Sequence[Path]) -> dict[str, Any] | None:
    """Return what a run waited for, with bars of its attempts and its slots; None where no record tells."""
    found = timeline(record.run, attempts, record)
    if not found.attempts:
        return None
    ids = {attempt_label(each): attempt_id(each, roots) for each in attempts}
    begin = found.span.begin
    bars: list[dict[str, Any]] = [
        {"name": f"slot {number}", "attempt": None, "turns": [], "suites": [_seconds(each, begin) for each in held]}
        for number, held in enumerate(found.slots, 1)
    ]
    bars += [
        {
            "name": each.name,
            "attempt": ids[each.name],
            "turns": [_seconds(work.span, begin) for work in each.turns],
            "suites": [_seconds(work.held or work.span, begin) for work in each.suites],
        }
        for each in found.attempts
    ]
    if left_out := bars[_BARS:]:
        told = f"and {len(left_out)} more: evocode results --view timeline"
        bars[_BARS:] = [{"name": told, "attempt": None, "turns": [], "suites": []}]
    return {
        "seconds": max(round(found.span.seconds, 3), 0.001),
        "stages": [[name, STAGES[name], round(seconds, 3)] for name, seconds in found.seconds_by_stage.items()],
        "bars": bars,
    }


def _seconds(span: Stretch, since: float) -> list[float]:
    return [round(span.begin - since, 3), round(span.end - since, 3)]


def _versions(record: RunRecord, made_by: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions of what a run ran with, and of harnesses, as far as they are known; several are joined."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for name, versions in record.versions.items():
        found[name] = dict.fromkeys(versions)
    for each in made_by:
        harness = each.get("harness")
        if isinstance(harness, Mapping) and harness.get("name") and harness.get("version"):
            found[str(harness["name"])].setdefault(str(harness["version"]))
    return {name: ", ".join(versions) for name, versions in found.items()}


def _commands(
    run: StoredRun, attempts: Sequence[StoredAttempt], roots: Sequence[Path]
) -> Iterator[tuple[str, list[str]]]:
    """Yield commands that continue, repeat and explain a run, each with what it is for."""
    record, where = run.record, results_of_run(run)
    plain = [each for each in record.arguments if not each.startswith("--evocode-resume")]
    if record.finished is None or len(attempts) < len(record.attempts) or not all(each.finished for each in attempts):
        yield "continue what is unfinished", ["pytest", *plain, f"--evocode-resume={record.run}"]
    yield "repeat it as a new run", ["pytest", *plain]
    shown = next((root for root in roots if root.resolve() == where), where)
    yield "its scores", ["evocode", "results", str(shown), "--run", record.run]
    yield "its failures", ["evocode", "failures", str(shown), "--run", record.run]
