"""The process of attempts as far as it was scored before; the shape is ``ProcessSummary`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from pytest_evocode.errors import RecordFault, describe_validation
from pytest_evocode.metrics.intervals import FEWEST_TASKS
from pytest_evocode.metrics.score_table import ScoreRow, ScoreTable
from pytest_evocode.metrics.statistics.intervals import bounded_interval
from pytest_evocode.process.scores.rigor_score import PILLARS, AttemptProcess
from pytest_evocode.process.scores.summary import (
    Correlation,
    ProcessSummary,
    by_task,
    summarise_agent,
    summarise_task,
    within_agent,
    within_tasks,
)
from pytest_evocode.report.html.ids import row_id
from pytest_evocode.report.process import score_and_outcome
from pytest_evocode.report.views import ends
from pytest_evocode.results.plain_files import open_plain

PROCESS_FILE = "process.json"
"""What a session with ``--evocode-process`` writes beside an attempt's record."""
_LARGEST = 64 * 2**20  # bytes

Processes = Mapping[str, Sequence[AttemptProcess]]
"""By the ids of rows, what was scored of their attempts; each by the name of its row."""


def read_process(attempt: Path) -> AttemptProcess | None:
    """Return what was scored of the attempt in a directory; None where nothing was.

    Raises:
        RecordFault: The file cannot be read; the message says what to do.
    """
    path = attempt / PROCESS_FILE
    again = "score it again with evocode process, or remove it"
    try:
        with open_plain(path, within=attempt) as file:
            data = file.read(_LARGEST + 1)
        if len(data) > _LARGEST:
            raise RecordFault(f"{path}: it is over {_LARGEST:,} bytes and not shown; {again}")
        return AttemptProcess.model_validate_json(data)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise RecordFault(f"{path}: it cannot be read: {error.strerror}; {again}") from None
    except ValidationError as error:
        raise RecordFault(f"{path}: it is no record of a process ({describe_validation(error)}); {again}") from None


def read_processes(table: ScoreTable) -> tuple[Processes, list[str]]:
    """Return what was scored of the attempts that count, and why files cannot be read; nothing is scored now."""
    found: dict[str, list[AttemptProcess]] = {}
    problems: list[str] = []
    for row in table.rows:
        scored = []
        for attempt in row.attempts:
            try:
                process = read_process(attempt.path)
            except RecordFault as error:
                problems.append(str(error))
                continue
            if process is not None:
                known = {"agent": row.name, "task": attempt.record.task, "attempt": attempt.record.attempt}
                scored.append(process.model_copy(update=known))
        if scored:
            found[row_id(row)] = scored
    return found, problems


def process_values(attempts: Sequence[AttemptProcess]) -> dict[str, Any]:
    """Return what the report shows of the process of one row.

    Intervals are over tasks, as those of scores are: of pillars the same as of bounded scores, of the RigorScore, whose
    weights depend on what was measured, by leaving out one task at a time.
    """
    (tasks,) = by_task(attempts).values()
    whole = summarise_agent(tasks)
    of_tasks = [summarise_task(some) for some in tasks.values()]
    rounds = [round_ for attempt in attempts for round_ in attempt.rounds]
    measured = Counter(name for round_ in rounds for name, value in round_.values.items() if value is not None)
    return {
        "score": None if whole.score is None else 100 * whole.score.value,
        "interval": None if whole.interval is None else _ends((whole.interval.low, whole.interval.high), 100),
        "pillars": {
            name: {
                "value": whole.values[name],
                "coverage": measured[name] / len(rounds) if rounds else 0.0,
                "interval": _ends(_of_pillar(name, of_tasks)),
            }
            for name in PILLARS
        },
        "rounds": len(rounds),
    }


def _of_pillar(name: str, tasks: Iterable[ProcessSummary]) -> tuple[float, float] | None:
    known = [value for summary in tasks if (value := summary.values[name]) is not None]
    return bounded_interval(known, 0, 1) if len(known) >= FEWEST_TASKS else None


def _ends(found: tuple[float, float] | None, scale: float = 1) -> dict[str, float] | None:
    return None if found is None else {"low": scale * found[0], "high": scale * found[1]}


def outcome_values(processes: Processes, rows: Sequence[ScoreRow]) -> dict[str, Any] | None:
    """Return how process and outcome correlate over all rows, or the one that was scored; None where none was."""
    pairs = score_and_outcome([each for row in rows for each in processes.get(row_id(row), ())])
    if not pairs:
        return None
    found: Correlation = within_tasks(pairs) if len(pairs) > 1 else within_agent(*pairs.values())
    over = "within tasks, over all agents" if len(pairs) > 1 else f"over the tasks of {next(iter(pairs))}"
    return {
        "r": found.r,
        "interval": found.interval and ends(found.interval),
        "n": found.tasks,
        "note": "; ".join(filter(None, [f"RigorScore and share of cases passed, {over}", found.reason])),
    }
