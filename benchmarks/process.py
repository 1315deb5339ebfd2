"""Scoring an agent's process without execution: one round of 2,000 actions, as an agent leaves that works for hours.

Every action is a shell line: reads of sixty files, edits with recorded diffs, test runs that fail and pass, searches,
and a commit now and then. Beside it the same actions in twenty rounds.

Then what it takes to run tests against mutants, in each round of the disciplined attempts at the example tasks that
changed something: once, with nothing cached, in the kind of environment that is there.
"""

from __future__ import annotations

import hashlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.tables import Table
from pytest_evocode.environments import choose_engine
from pytest_evocode.process.attempts import RoundDeclaration, score_attempt, score_rounds
from pytest_evocode.process.execution import Execution
from pytest_evocode.process.execution.execution import MUTATION_BUDGET
from pytest_evocode.process.execution.states import ResultCache
from pytest_evocode.process.trajectory.reader import RecordedRound
from pytest_evocode.tasks import load_task
from pytest_evocode.trajectories.atif import (
    AgentInfo,
    Observation,
    ObservationResult,
    Step,
    StepMetrics,
    ToolCall,
    Trajectory,
)
from pytest_evocode.trajectories.diffs import unified_diff

ACTIONS = 2000
_EXAMPLES = Path(__file__).parents[1] / "example_tasks" / "process"
_FILES = 60
_FAILED = "\n".join(f"FAILED tests/test_{number}.py::test_it - assert 1 == 2" for number in range(40))


def measure(runs: int) -> Table:
    """Seconds."""
    table = Table(f"process of {ACTIONS} actions scored, and tests run against mutants", "s", ("time",))
    for rounds in (1, 20):
        recorded = list(_rounds(rounds))
        times = []
        for _ in range(runs):
            began = time.perf_counter()
            scored = list(score_rounds(recorded))
            times.append(time.perf_counter() - began)
            assert all(round_.score() is not None for round_ in scored)
        table.add(f"{ACTIONS} actions in {rounds} round{'s' if rounds > 1 else ''}", "time", times, target=10)
    with tempfile.TemporaryDirectory() as cache:
        seconds = list(_mutation(ResultCache(Path(cache))))
    table.add(f"mutants of a round, {len(seconds)} rounds", "time", seconds)
    table.add("mutants of the worst round", "time", [max(seconds)], target=MUTATION_BUDGET)
    return table


def _mutation(cache: ResultCache) -> Iterator[float]:
    """Yield the seconds of each round."""
    engine, _ = choose_engine("auto")
    try:
        for recorded in sorted(_EXAMPLES.glob("*/recorded/disciplined")):
            task = load_task(recorded.parents[1])
            # Without seconds for the states, so that little else is run.
            with Execution(task, engine, budget=0, cache=cache) as execution:
                score_attempt(recorded, task, executor=execution)
            yield from execution.mutation_seconds.values()
    finally:
        engine.close()


def _rounds(count: int) -> Iterator[tuple[RecordedRound, RoundDeclaration]]:
    files: dict[str, str] = {}
    for index in range(1, count + 1):
        steps = [
            Step(step_id=1, source="user", message="Teach the ledger budgets: limits, months, overdrafts, reports.")
        ]
        steps += [_step(number, files) for number in range(2, ACTIONS // count + 2)]
        trajectory = Trajectory(agent=AgentInfo(name="bench", version="1"), steps=tuple(steps))
        yield RecordedRound(f"round-{index}", index, trajectory), RoundDeclaration()


def _step(number: int, files: dict[str, str]) -> Step:
    command, output, exit_code, changes = _action(number, files)
    action = {"tool_call_id": "c", "exit_code": exit_code, "changes": changes}
    return Step(
        step_id=number,
        source="agent",
        message=f"Now the overdrafts of month {number}.",
        tool_calls=(ToolCall(tool_call_id="c", function_name="bash", arguments={"command": command}),),
        observation=Observation(results=(ObservationResult(source_call_id="c", content=output),)),
        metrics=StepMetrics(prompt_tokens=1000, completion_tokens=100),
        extra={"evocode": {"actions": [action]}},
    )


def _action(number: int, files: dict[str, str]) -> tuple[str, str, int, list[dict[str, Any]]]:
    name = number % _FILES
    if number % 4 == 0:
        path = f"ledger/module_{name}.py" if number % 8 else f"tests/test_{name}.py"
        text = _module(name, number) if number % 8 else _test(name, number)
        return f"cat > {path} <<'EOF'\n{text}EOF", "", 0, [_change(path, text, files)]
    if number % 4 == 1:
        failed = number % 3 == 0
        output = f"{_FAILED}\n40 failed, 3 passed in 1.00s" if failed else "43 passed in 1.00s"
        return "cd /app && timeout 60 python -m pytest -q 2>&1 | tail -50", output, 0, []
    if number % 50 == 2:
        return f"git add -A && git commit -qm 'Overdrafts of month {number}'", "", 0, []
    if number % 4 == 2:
        shown = "\n".join(f"ledger/module_{each}.py:3:def overdraft_{each}(limit):" for each in range(_FILES))
        return "grep -rn 'def overdraft' ledger | sort | head -60", shown, 0, []
    return f"sed -n '1,200p' ledger/module_{name}.py tests/test_{name}.py; git status", _module(name, number) * 3, 0, []


def _module(name: int, number: int) -> str:
    functions = (
        f"def overdraft_{name}_{each}(limit, month):\n    spent = limit * {number} - month\n    return max(0, spent)\n"
        for each in range(20)
    )
    return "\n\n".join(("import math\n", *functions))


def _test(name: int, number: int) -> str:
    calls = (
        f"def test_{each}():\n    assert overdraft_{name}_{each}(1, 2) == {number}\n"
        f"    assert overdraft_{name}_{each}(0, 0) == 0\n"
        for each in range(10)
    )
    imports = ", ".join(f"overdraft_{name}_{each}" for each in range(10))
    return "\n\n".join((f"from ledger.module_{name} import {imports}\n", *calls))


def _change(path: str, text: str, files: dict[str, str]) -> dict[str, Any]:
    before = files.get(path)
    files[path] = text
    kind = "added" if before is None else "modified"
    digest = hashlib.sha256(text.encode()).hexdigest()
    return {"path": path, "kind": kind, "mode": "0644", "diff": unified_diff(path, before, text), "sha256": digest}
