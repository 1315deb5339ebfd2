"""Attempts on disk as sessions leave them, with the trajectories that their recorder writes."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pytest_evocode.report.html.attempt import attempt_data, with_cases
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.loading import StoredAttempt, load_results
from pytest_evocode.results.records import AttemptRecord, Case, RoundRecord, Verdict
from pytest_evocode.trajectories.file_changes import File, describe_change, sha256_of
from tests.report.html.contract import faults

REPOSITORY = Path(__file__).parents[3]
RUN = "2026-01-02__03-04-05"
TIME = "2026-01-02T03:04:05.678+00:00"
Table = dict[str, Any]


def recorded(name: str) -> Path:
    """The directory of a recorded attempt at an example task, such as ``recipes/reckless``."""
    task, _, script = name.partition("/")
    return REPOSITORY / "example_tasks" / "process" / task / "recorded" / script


def stored(directory: Path) -> StoredAttempt:
    """The one attempt in a directory, without its cases, as reports load it."""
    (attempt,) = load_results([directory]).attempts
    return attempt


@dataclass
class Shown:
    """An attempt for the viewer, and the parts of its trajectories."""

    data: dict[str, Any]
    parts: dict[tuple[int, int], list[dict[str, Any]]] = field(default_factory=dict)

    def steps(self, index: int) -> list[dict[str, Any]]:
        """All steps of a round."""
        return [step for (of, _), part in sorted(self.parts.items()) if of == index for step in part]

    def round(self, index: int) -> dict[str, Any]:
        """The round of an index."""
        found: dict[str, Any] = self.data["rounds"][index - 1]
        return found


def shown(directory: Path, *, under_way: bool = False) -> Shown:
    """What the viewer gets of the attempt in a directory; it has to be as the contract says."""
    attempt, problems = with_cases(stored(directory))
    parts: dict[tuple[int, int], list[dict[str, Any]]] = {}

    def write_part(index: int, part: int, steps: list[dict[str, Any]]) -> None:
        parts[index, part] = steps

    data = attempt_data(attempt, id="x", write_part=write_part, under_way=under_way, problems=problems)
    assert faults(data, "AttemptData") == []
    assert [fault for part in parts.values() for step in part for fault in faults(step, "Step")] == []
    return Shown(data, parts)


def change(path: str, old: str | None, new: str | None) -> Table:
    """The table of a changed text file, as our recorder makes it."""
    files = [None if text is None else _file(text) for text in (old, new)]
    (table,) = describe_change(path, files[0], files[1], whole_limit=2**16, limit=2**20)
    return table


def _file(text: str) -> File:
    return File(mode=0o644, content=text.encode(), sha256=sha256_of(text.encode()))


def step(number: int, *changes: Table, command: str = "edit", output: Any = "", **action: Any) -> dict[str, Any]:
    """A step of an agent with one command and what it changed."""
    call = f"call-{number}"
    done = {"tool_call_id": call, "exit_code": 0, "seconds": 0.5, "timed_out": False, **action}
    return {
        "step_id": number,
        "source": "agent",
        "message": f"step {number}",
        "tool_calls": [{"tool_call_id": call, "function_name": "bash", "arguments": {"command": command}}],
        "observation": {"results": [{"source_call_id": call, "content": output}]},
        "extra": {"evocode": {"actions": [done | ({"changes": list(changes)} if changes else {})]}},
    }


def trajectory(*steps: Any, watched: bool = True, **more: Any) -> dict[str, Any]:
    """A trajectory with some steps."""
    ours = {"watched": True} if watched else {}
    document = {"schema_version": "ATIF-v1.7", "agent": {"name": "a", "version": "1", "model_name": "m"}}
    return {**document, "steps": list(steps), "extra": {"evocode": {**ours, **more.pop("ours", {})}}, **more}


@dataclass(frozen=True)
class Played:
    """What happened in a round: its cases, None without a verdict, its trajectory and its suite's output."""

    cases: Sequence[Case] | None = ()
    trajectory: Mapping[str, Any] | None = None
    output: str = ""


def failing(id: str, **fields: Any) -> Case:
    """A case that failed."""
    return Case(**{"id": id, "status": "failed", "failure": "new miss", **fields})


def passing(id: str, **fields: Any) -> Case:
    """A case that passed."""
    return Case(id=id, status="passed", **fields)


def write_attempt(
    results: Path,
    *rounds: Played,
    task: str = "ledger",
    declared: int = 0,
    change: Callable[[Path], None] | None = None,
) -> Path:
    """Write an attempt whose rounds went as they say, and return its directory; ``change`` may damage it."""
    directory = AttemptDirectory.of(results, task, "agent", RUN, 1)
    names = tuple(f"round-{index}" for index in range(1, max(declared, len(rounds)) + 1))
    records = []
    for index, played in enumerate(rounds, start=1):
        record = _record(task, index, len(names), played.cases)
        records.append(record)
        directory.write_round(record, output=played.output, done=True)
        if played.trajectory is not None:
            place = directory.path / "steps" / record.round / "agent"
            place.mkdir(parents=True, exist_ok=True)
            (place / "trajectory.json").write_text(json.dumps(played.trajectory))
    whole = AttemptRecord(
        task=task,
        agent="agent",
        attempt=1,
        environment="sandbox",
        started=TIME,
        finished=TIME,
        declared_rounds=names,
        rewards={"reward": 0.5},
        rounds=tuple(records),
    )
    directory.write_attempt(whole)
    if change is not None:
        change(directory.path)
    return directory.path


def _record(task: str, index: int, of: int, cases: Sequence[Case] | None) -> RoundRecord:
    common: dict[str, Any] = {"task": task, "agent": "agent", "attempt": 1, "round": f"round-{index}", "index": index}
    if cases is None:
        return RoundRecord(**common, declared_rounds=of, outcome="error", fault="infrastructure", cause="no daemon")
    passed = all(case.status == "passed" for case in cases)
    verdict = Verdict(reward=float(passed), rewards={"reward": float(passed)}, cases=tuple(cases))
    return RoundRecord(**common, declared_rounds=of, outcome="passed" if passed else "failed", verdict=verdict)
