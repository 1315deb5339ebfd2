"""Results directories as sessions and other harnesses leave them, written without running anything."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pytest_evocode.results.directory import AttemptDirectory, write_run
from pytest_evocode.results.phases import Phases
from pytest_evocode.results.records import (
    AttemptRecord,
    Case,
    CaseStatus,
    Mode,
    Outcome,
    RoundRecord,
    RunRecord,
    TaskFacts,
    Usage,
    Verdict,
)
from pytest_evocode.results.rewards import trial_rewards

RUN = "2026-01-02__03-04-05"
OUTCOMES: dict[str, Outcome] = {"p": "passed", "f": "failed", "e": "error", "u": "undecided", "-": "not reached"}
STATUSES: dict[str, CaseStatus] = {"p": "passed", "f": "failed", "s": "skipped", "e": "error"}


def write_attempt(
    root: Path,
    task: str = "ledger",
    agent: str = "gpt",
    outcomes: str = "pp",
    *,
    number: int = 1,
    of: int | None = None,
    cases: Sequence[str] = (),
    run: str = RUN,
    mode: Mode = "chain",
    from_round: str | None = None,
    first: int = 1,
    facts: TaskFacts | None = None,
    finished: bool = True,
    ended: str = "",
    tool_calls: int | None = None,
    usage: Usage | None = None,
    changed: Mapping[int, Sequence[str]] = {},
    phases: Mapping[int, Phases] = {},
    verifier_seconds: float | None = None,
    **more: Any,
) -> Path:
    """An attempt with a letter for each of its rounds from ``first`` on (passed, failed, error, undecided, - for not
    reached).

    ``cases`` has a letter per case by round, of cases c1, c2, ... with requirements R1, R2, ...; ``of`` is the number
    of declared rounds. Without ``finished`` there is no ``result.json``, and
    ``ended`` is when it was, by default when it began. ``changed`` has what verdicts trust by round,
    ``phases`` where the time went by round, and ``more`` other fields of the attempt's record.
    """
    declared = of or first + len(outcomes) - 1
    names = tuple(f"round-{index}" for index in range(1, declared + 1))
    directory = AttemptDirectory.of(root, task, agent, run, number)
    rounds = []
    for place, letter in enumerate(outcomes):
        index, outcome = first + place, OUTCOMES[letter]
        record = RoundRecord(
            task=task,
            agent=agent,
            attempt=number,
            round=names[index - 1],
            index=index,
            declared_rounds=declared,
            outcome=outcome,
            cause="the engine is down" if outcome == "error" else "",
            verdict=_verdict(outcome, cases[place] if place < len(cases) else "", changed.get(index, ())),
            tool_calls=tool_calls,
            usage=usage if outcome != "not reached" else None,
            agent_seconds=1.5 if outcome != "not reached" else None,
            verifier_seconds=verifier_seconds if outcome != "not reached" else None,
            phases=phases.get(index),
        )
        if outcome != "not reached":
            directory.write_round(record, output="said\n" if record.verdict else None, done=outcome != "error")
        rounds.append(record)
    if finished:
        directory.write_attempt(
            AttemptRecord(
                task=task,
                agent=agent,
                attempt=number,
                mode=mode,
                from_round=from_round,
                environment=more.pop("environment", "sandbox"),
                started=(when := f"{run[:10]}T{run[12:].replace('-', ':')}+00:00"),
                finished=ended or when,
                declared_rounds=names,
                facts=facts,
                rewards=trial_rewards(rounds, range(1, declared + 1), "mean"),
                rounds=tuple(rounds),
                **more,
            )
        )
    return directory.path


def _verdict(outcome: Outcome, cases: str, changed: Sequence[str] = ()) -> Verdict | None:
    if outcome not in ("passed", "failed", "undecided"):
        return None
    reward = None if outcome == "undecided" else float(outcome == "passed")
    return Verdict(
        reward=reward,
        rewards={"style": 0.5, "tests": 1.0} if reward is None else {"reward": reward},
        cases=tuple(
            Case(id=f"c{place}", status=STATUSES[letter], requirement=f"R{place}")
            for place, letter in enumerate(cases, 1)
        ),
        rests_on="clean",
        trusts=tuple(changed),
    )


def write_session(root: Path, selected: Mapping[str, Mapping[str, Iterable[int]]], **values: Any) -> Path:
    """The record of a session that was to make these attempts, by task and agent; ``run`` is its name.

    It came to its own end unless ``finished`` is None.
    """
    run = values.pop("run", RUN)
    values.setdefault("finished", "2026-12-31T00:00:00+00:00")
    chosen = {task: {agent: tuple(numbers) for agent, numbers in agents.items()} for task, agents in selected.items()}
    record = RunRecord(run=run, started="", arguments=(), environment="sandbox", selected=chosen, **values)
    write_run(root, record)
    return root / "runs" / f"{run}.json"


def write_files(directory: Path, files: Mapping[str, object]) -> None:
    """Files by their path; what is no text is written as JSON."""
    for name, content in files.items():
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content), encoding="utf-8")
