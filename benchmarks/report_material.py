"""Results directories to make reports of, written without running anything."""

from __future__ import annotations

import json
from pathlib import Path
from random import Random
from typing import Any

from pytest_evocode.results.directory import AttemptDirectory, write_run
from pytest_evocode.results.phases import PHASES, Phases
from pytest_evocode.results.records import AttemptRecord, Outcome, RoundRecord, RunRecord, TaskFacts, Usage, Verdict

RUN = "2026-01-02__03-04-05"
_STARTED, _FINISHED = "2026-01-02T03:04:05.678+00:00", "2026-01-02T04:04:05.678+00:00"
_REQUIREMENTS = 20
_LINE = "the ledger has a balance for every account, and it is what its entries add up to\n"


def write_results(results: Path, agents: int, rounds: list[int], *, cases: int = 100) -> None:
    """Write an attempt by each agent at each task; ``rounds`` has how many rounds each task has."""
    draw = Random(0)
    selected = {}
    for number, of in enumerate(rounds):
        task = f"task-{number:04}"
        selected[task] = {f"agent-{agent:02}": (1,) for agent in range(agents)}
        for agent in selected[task]:
            _write_attempt(results, task, agent, of, cases, draw)
    record = RunRecord(run=RUN, started=_STARTED, finished=_FINISHED, arguments=("tasks",), environment="docker")
    write_run(results, record.model_copy(update={"exit_status": 1, "selected": selected}))


def _write_attempt(results: Path, task: str, agent: str, of: int, cases: int, draw: Random) -> None:
    directory = AttemptDirectory.of(results, task, agent, RUN, 1)
    names = tuple(f"round-{index}" for index in range(1, of + 1))
    records = []
    for index, name in enumerate(names, 1):
        failing = draw.sample(range(cases), draw.randint(1, 4)) if draw.random() < 0.4 else []
        records.append(_round(task, agent, name, index, of, cases, len(failing), draw))
        values = [_case(number, number in failing) for number in range(cases)]
        verifier = directory.path / "steps" / name / "verifier"
        verifier.mkdir(parents=True)
        (verifier / "cases.json").write_text(json.dumps(values, indent=1) + "\n")
        (verifier / "test-stdout.txt").write_text(_LINE * 50)
        (verifier.parent / "round.json").write_text(records[-1].model_dump_json())
    record = AttemptRecord(
        task=task,
        agent=agent,
        attempt=1,
        environment="docker",
        started=_STARTED,
        finished=_FINISHED,
        declared_rounds=names,
        facts=TaskFacts(rounds=names, activity="A1", interaction="I2", category="web"),
        task_hash="0" * 64,
        rewards={"reward": 0.5},
        rounds=tuple(records),
    )
    (directory.path / "result.json").write_text(record.model_dump_json())


def _case(number: int, fails: bool) -> dict[str, Any]:
    value = {
        "id": f"test_rule_{number}",
        "status": "failed" if fails else "passed",
        "origin": f"round-{number % 5 + 1}",
        "requirement": f"R{number % _REQUIREMENTS}",
    }
    if fails:
        value |= {"failure": "regression", "intent": _LINE, "expected": _LINE * 2, "actual": _LINE, "reason": _LINE}
    return value


def _round(
    task: str, agent: str, name: str, index: int, of: int, cases: int, failing: int, draw: Random
) -> RoundRecord:
    outcome: Outcome = "failed" if failing else "passed"
    reward = float(not failing)
    return RoundRecord(
        task=task,
        agent=agent,
        attempt=1,
        round=name,
        index=index,
        declared_rounds=of,
        outcome=outcome,
        verdict=Verdict(reward=reward, rewards={"reward": reward}, counts=(cases - failing, cases), rests_on="clean"),
        tool_calls=draw.randint(1, 50),
        usage=Usage(prompt_tokens=draw.randint(1000, 100_000), completion_tokens=draw.randint(100, 5000), cost_usd=0.5),
        agent_seconds=draw.random() * 600,
        verifier_seconds=draw.random() * 60,
        phases=Phases(**{phase: round(draw.random() * 10, 4) for phase in PHASES}),
    )


def write_trajectory(results: Path, size: int) -> None:
    """Give the first attempt's first round a trajectory of ``size`` bytes, with a line NEEDLE near its end."""
    (step,) = (results / "task-0000" / "harbor_jobs" / "agent-00").glob("*/*/steps/round-1")
    output = "".join(f"{number:05} {_LINE}" for number in range(40))
    steps: list[dict[str, Any]] = [{"step_id": 1, "source": "user", "message": "Keep the ledger."}]
    number = size // (len(output) + 600)
    for place in range(2, number + 2):
        call = {"tool_call_id": f"c{place}", "function_name": "bash", "arguments": {"command": f"cat part-{place}"}}
        said = output + ("NEEDLE\n" if place == number - 5 else "")
        steps.append(
            {
                "step_id": place,
                "source": "agent",
                "timestamp": _STARTED,
                "message": f"Look at part {place}.",
                "reasoning_content": _LINE,
                "tool_calls": [call],
                "observation": {"results": [{"source_call_id": call["tool_call_id"], "content": said}]},
                "metrics": {"prompt_tokens": 1000, "completion_tokens": 50, "cost_usd": 0.01},
            }
        )
    values = {
        "schema_version": "ATIF-v1.7",
        "session_id": "benchmark",
        "agent": {"name": "agent-00", "version": "1", "model_name": "model"},
        "steps": steps,
    }
    (step / "agent").mkdir()
    (step / "agent" / "trajectory.json").write_text(json.dumps(values, indent=1))
