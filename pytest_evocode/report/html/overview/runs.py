"""The runs of a report, Harbor's jobs among them; the shape is ``RunSummary`` in ``viewer/data.d.ts``."""

from __future__ import annotations

import os
import shlex
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.metrics.grouping import session_of
from pytest_evocode.report.html.ids import attempt_id, results_of_run, run_id
from pytest_evocode.report.html.overview.warnings import run_warnings
from pytest_evocode.results.loading import Results, StoredAttempt, StoredRun
from pytest_evocode.results.phases import PHASES, summed_phases
from pytest_evocode.results.records import RunRecord

_NOT_A_PHASE = "slot_seconds"
_Sessions = Mapping[tuple[str, str], Sequence[StoredAttempt]]


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
    found = []
    for run in results.runs:
        where = os.fspath(results_of_run(run)), run.record.run
        found.append(_of_record(run, sessions.get(where, []), roots))
    known = {(os.fspath(results_of_run(run)), run.record.run) for run in results.runs}
    found += [_of_attempts(*key, sessions[key], roots) for key in sessions if key not in known]
    return sorted(found, key=lambda each: (each["started"], each["name"], each["id"]), reverse=True)


def _of_record(run: StoredRun, attempts: Sequence[StoredAttempt], roots: Sequence[Path]) -> dict[str, Any]:
    record, where = run.record, results_of_run(run)
    return {
        "id": run_id(record.run, where, roots),
        "name": record.run,
        "started": record.started,
        "finished": record.finished,
        "exit_status": record.exit_status,
        "arguments": list(record.arguments),
        "environment": record.environment,
        "mode": record.mode,
        "shard": list(record.shard) if record.shard else None,
        "strict": record.strict,
        "verify": record.verify,
        "agents": {name: dict(made_by) for name, made_by in record.agents.items()},
        "commands": [[what, shlex.join(command)] for what, command in _commands(run, attempts, roots)],
        **_of_rounds(attempts, roots),
        "versions": _versions(record, [*record.agents.values(), *(each.record.made_by for each in attempts)]),
        "warnings": run_warnings(record, attempts),
    }


def _of_attempts(where: str, name: str, attempts: Sequence[StoredAttempt], roots: Sequence[Path]) -> dict[str, Any]:
    first, made_by = attempts[0], {each.record.agent: each.record.made_by for each in attempts}
    return {
        "id": run_id(name, Path(where), roots),
        "name": name,
        "started": min(each.record.started for each in attempts),
        "finished": max((each.record.finished for each in attempts if each.finished), default=None) or None,
        "exit_status": None,
        "arguments": [],
        "environment": first.record.environment,
        "mode": first.record.mode,
        "shard": None,
        "strict": first.record.strict,
        "verify": first.record.verify,
        "agents": {name: dict(made) for name, made in made_by.items()},
        "commands": [],
        **_of_rounds(attempts, roots),
        "versions": _versions(None, [each.record.made_by for each in attempts]),
        "warnings": run_warnings(None, attempts),
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


def _versions(record: RunRecord | None, made_by: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Return the versions of what a run ran with, and of harnesses, as far as they are known; several are joined."""
    found: dict[str, dict[str, None]] = defaultdict(dict)
    for name, versions in record.versions.items() if record is not None else ():
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
