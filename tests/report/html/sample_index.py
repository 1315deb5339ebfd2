"""The index and the comparisons of the sample, as ``data.d.ts`` describes them."""

from __future__ import annotations

from collections import Counter
from itertools import combinations
from random import Random
from statistics import fmean
from typing import Any

from pytest_evocode.report.score_columns import REPORT_MAIN, REPORT_MORE
from tests.report.html.sample_attempts import FAILURES, PARTS
from tests.report.html.sample_world import ACTIVITIES, CHANGE_TYPES, Attempt, Task

_TITLES = {
    "dataset_score": ("Dataset Score", "Mean over tasks of the share of rounds that passed", "%"),
    "case_score": ("Case Score", "Mean over rounds of the share of cases that passed", "%"),
    "mt_at_k": ("MT@k", "Share of tasks with an attempt that passes all rounds", "%"),
    "sr": ("SR", "Share of rounds that pass on their own", "%"),
    "gap": ("Gap", "SR minus Dataset Score", "points"),
    "perfect_tasks": ("Perfect", "Tasks whose rounds all pass", "tasks"),
    "avg_rounds": ("Avg. calls", "Tool calls per round", "calls"),
    "final_round_completion": ("Final", "Share of tasks whose last round passed", "%"),
    "mean_reward": ("Reward", "Mean reward", "%"),
    "reliability": ("Reliability", "How often an attempt repeats what another did", "%"),
    "cost_usd": ("Cost per attempt", "Mean per attempt", "$"),
    "tokens": ("Tokens per attempt", "Mean per attempt", ""),
    "agent_seconds": ("Agent time per attempt", "Mean per attempt", "s"),
}


def index(tasks: list[Task], attempts: list[Attempt], random: Random) -> dict[str, Any]:
    """Return Index."""
    rows = [_row(own, tasks, random) for own in _by_row(attempts).values()]
    points: list[dict[str, Any]] = [
        {"row": row["id"], "x": row["spending"]["cost_usd"], "y": row["scores"]["dataset_score"], "front": False}
        for row in rows
    ]
    for point in points:
        point["front"] = not any(other["x"] < point["x"] and other["y"] > point["y"] for other in points)
        point["standing"] = "on the front (98 %)" if point["front"] else "cannot be told (31 %)"
    return {
        "format": 1,
        "title": "Seven example tasks",
        "written": "2026-11-20T12:00:00Z",
        "version": "0.1.0",
        "under_way": False,
        "directories": ["evocode-results"],
        "rows": rows,
        "tasks": [_task(number, task) for number, task in enumerate(tasks)],
        "attempts": [_attempt(each) for each in attempts],
        "runs": [_run(run, attempts) for run in sorted({each.run for each in attempts})],
        "pareto": [
            {"score": score, "against": against, "points": points}
            for score in ("dataset_score", "case_score")
            for against in ("cost_usd", "tokens", "agent_seconds")
        ],
        "notes": ["k differs: claude-code has 1 to 2 attempts at a round."],
        "problems": ["evocode-results/run-0/aider/ledger/1/round-2/record.json: it is no JSON; the round is left out"],
        "columns": {"main": [*REPORT_MAIN], "more": [*REPORT_MORE]},
        "titles": {
            field: {"title": title, "help": text, "unit": unit} for field, (title, text, unit) in _TITLES.items()
        },
        "process_outcome": {"r": 0.62, "interval": {"low": 0.11, "high": 0.88}, "n": len(tasks), "note": "over tasks"},
    }


def _by_row(attempts: list[Attempt]) -> dict[str, list[Attempt]]:
    rows: dict[str, list[Attempt]] = {}
    for each in attempts:
        rows.setdefault(each.row, []).append(each)
    return rows


def _scores(attempts: list[Attempt]) -> dict[str, Any]:
    passed = [fmean(cell == "p" for cell in each.cells) for each in attempts]
    cases = [each.counts(index) for each in attempts for index in each.verdicts]
    return {
        "dataset_score": 100 * fmean(passed),
        "case_score": 100 * fmean(good / total for good, total in cases if total) if cases else None,
        "avg_rounds": 18.4,
        "perfect_tasks": sum(value == 1 for value in passed),
        "mt_at_k": 100 * fmean(value == 1 for value in passed),
        "sr": None,
        "gap": None,
        "final_round_completion": 100 * fmean(each.cells[-1] == "p" for each in attempts),
        "mean_reward": fmean(passed),
        "reliability": None,
        "tasks": len({each.task.name for each in attempts}),
        "rounds": sum(len(each.cells) for each in attempts),
        "attempts_min": 1,
        "attempts_max": max(each.attempt for each in attempts),
        "trusting": sum(3 in each.verdicts for each in attempts),
    }


def _around(value: float | None, half: float, high: float = 100) -> dict[str, float] | None:
    return None if value is None else {"low": max(0.0, value - half), "high": min(high, value + half)}


def _row(attempts: list[Attempt], tasks: list[Task], random: Random) -> dict[str, Any]:
    first = attempts[0]
    scores = _scores(attempts)
    chain = first.mode == "chain"
    cells = Counter("".join(each.cells for each in attempts))
    cost = 2.0 + random.random() * 6
    return {
        "id": first.row,
        "name": first.agent if chain else f"{first.agent} ({first.mode})",
        "agent": first.agent,
        "mode": first.mode,
        "from_round": None,
        "harness": "shell" if first.row == "row-0" else "container",
        "environment": "docker",
        "strict": True,
        "ranking": 1 if chain else 2,
        "scores": scores,
        "intervals": {
            field: _around(scores[field], half)
            for field, half in (("dataset_score", 9.5), ("case_score", 6.0), ("mt_at_k", 20.0))
        },
        "without_faults": {"dataset_score": min(100.0, scores["dataset_score"] + 4)} if cells["i"] else None,
        "spending": {
            "cost_usd": cost,
            "tokens": 90_000 + cost * 110_000,
            "output_tokens": 41_000.0,
            "agent_seconds": 300 + 200 * random.random() if chain else None,
        },
        "groups": _groups(attempts, tasks),
        "survival": _survival(attempts),
        "failures": {
            "rounds": {name: cells[kind] for kind, name in FAILURES.items()},
            "cases": {name: 2 * cells[kind] for kind, name in FAILURES.items()},
            "not_reached": cells["-"],
        },
        "faults": cells["i"] + cells["a"],
        "partial": sum(not each.finished for each in attempts),
        "missing": [{"task": tasks[0].name, "attempt": 2}] if first.row == "row-1" else [],
        "process": _process(random) if chain else None,
        "notes": [] if chain else ["Stops at the first round that fails."],
    }


def _groups(attempts: list[Attempt], tasks: list[Task]) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, list[Attempt]]] = {"task": {}, "activity": {}, "change": {}, "round": {}}
    for each in attempts:
        number = tasks.index(each.task)
        groups["task"].setdefault(each.task.name, []).append(each)
        groups["activity"].setdefault(ACTIVITIES[number % 3], []).append(each)
        groups["change"].setdefault(CHANGE_TYPES[number % 4], []).append(each)
    return {
        dimension: {
            name: {field: _scores(own)[field] for field in ("dataset_score", "case_score", "tasks", "rounds")}
            for name, own in found.items()
        }
        for dimension, found in groups.items()
    }


def _survival(attempts: list[Attempt]) -> list[dict[str, Any]]:
    points = []
    for index in range(1, max(len(each.cells) for each in attempts) + 1):
        there = [each for each in attempts if len(each.cells) >= index]
        first = sum(each.cells[index - 1] != "p" and set(each.cells[: index - 1]) <= {"p"} for each in there)
        passed = sum(each.cells[index - 1] == "p" for each in there)
        points.append({"round": index, "passed": passed, "of": len(there), "first_failures": first})
    return points


def _process(random: Random) -> dict[str, Any]:
    pillars = {}
    for name in PARTS:
        value = None if name == "aq" else round(random.random(), 3)
        interval = _around(value, 0.12, 1.0) if name != "ee" else None
        pillars[name] = {
            "value": value,
            "coverage": 0.0 if value is None else 0.4 + 0.6 * random.random(),
            "interval": interval,
        }
    score = 40 + 50 * random.random()
    return {"score": score, "interval": _around(score, 7.5), "pillars": pillars, "rounds": 24}


def _task(number: int, task: Task) -> dict[str, Any]:
    return {
        "id": task.id,
        "name": task.name,
        "rounds": task.rounds,
        "change_types": [[CHANGE_TYPES[(place + 1) % 4]] for place in range(len(task.rounds))],
        "activity": ACTIVITIES[number % 3],
        "interaction": ("isolated", "dependent")[number % 2],
        "category": "bookkeeping",
        "difficulty": ("easy", "medium", "hard")[number % 3],
    }


def _attempt(each: Attempt) -> dict[str, Any]:
    chain = each.mode == "chain"
    return {
        "id": each.id, "row": each.row, "task": each.task.name, "agent": each.agent, "attempt": each.attempt,
        "run": each.run, "mode": each.mode, "finished": each.finished, "cells": each.cells,
        "cases": [list(each.counts(index)) for index in range(1, len(each.cells) + 1)],
        "trusts": [index for index in each.verdicts if index == 3],
        "cost_usd": 3.2 if chain else None, "tokens": 412_000 if chain else None, "seconds": 512.5, "left_out": "",
    }  # fmt: skip


def _run(run: str, attempts: list[Attempt]) -> dict[str, Any]:
    mine = [each for each in attempts if each.run == run]
    faults = [(each, index) for each in mine for index, cell in enumerate(each.cells, start=1) if cell in "ai"]
    unfinished = not all(each.finished for each in mine)
    return {
        "id": run,
        "name": f"2026-11-20 {mine[0].agent}",
        "started": "2026-11-20T09:00:00Z",
        "finished": None if unfinished else "2026-11-20T11:40:00Z",
        "exit_status": None if unfinished else 1,
        "arguments": [f"--evocode-agent={mine[0].agent}", "-n", "4", "tasks/"],
        "environment": "docker",
        "mode": mine[0].mode,
        "shard": [1, 2] if run == "run-1" else None,
        "strict": True,
        "verify": "clean",
        "attempts": [each.id for each in mine],
        "phases": {"setup": 40.0, "agent": 4_000.5, "snapshot": 12.0, "waiting": 90.0, "suite": 220.0, "reading": 3.0},
        "timeline": _timeline(mine) if mine[0].agent != "nop" else None,
        "agents": {mine[0].agent: {"model": "openai/gpt-5.4", "temperature": 0.2}},
        "versions": {"pytest-evocode": "0.1.0", "python": "3.11.2", "docker": "28.1"},
        "warnings": ["ledger: the suite of round 3 has no cases of its own"] if run == "run-1" else [],
        "commands": [
            ("Continue it", f"pytest --evocode-resume={run}"),
            ("Repeat the failed", f"pytest --lf --evocode-run={run}"),
        ],
        "faults": [
            {"attempt": each.id, "round": index, "cause": "the image could not be pulled"} for each, index in faults
        ],
    }


def _timeline(attempts: list[Attempt]) -> dict[str, Any]:
    bars: list[dict[str, Any]] = [
        {
            "name": f"{each.task.name} {each.agent}",
            "attempt": each.id,
            "turns": [[10.0 * place + 4 * number, 10.0 * place + 4 * number + 3] for number in range(6)],
            "suites": [[10.0 * place + 4 * number + 3, 10.0 * place + 4 * number + 5] for number in range(6)],
        }
        for place, each in enumerate(attempts)
    ]
    bars.append({"name": "slot 1", "attempt": None, "turns": [], "suites": [[3.0, 40.0], [41.0, 90.0]]})
    stages = [["agent", "the agent's turn", 200.0], ["suite", "the suite's own command", 80.5]]
    return {"seconds": 300.0, "stages": stages, "bars": bars}


def comparisons(tasks: list[Task], attempts: list[Attempt], random: Random) -> dict[str, Any]:
    """Return Comparisons of the rows of the first ranking."""
    rows = [row for row in _by_row(attempts).items() if row[1][0].mode == "chain"]
    return {
        "pairs": [_pair(first, second, tasks, random) for first, second in combinations(rows, 2)],
        "note": "Rows of different rankings are not compared: they were measured in different ways.",
    }


def _pair(
    first: tuple[str, list[Attempt]], second: tuple[str, list[Attempt]], tasks: list[Task], random: Random
) -> dict[str, Any]:
    flips: list[dict[str, Any]] = []
    for task in tasks:
        ours, theirs = ([each for each in row[1] if each.task is task] for row in (first, second))
        for index in range(1, len(task.rounds) + 1):
            shares = [fmean(each.cells[index - 1] == "p" for each in side) for side in (ours, theirs)]
            if (shares[0] > 0.5) != (shares[1] > 0.5):
                flips.append({"task": task.name, "round": index, "first": shares[0], "second": shares[1]})
    before, after = _scores(first[1]), _scores(second[1])
    differences = []
    for field in ("dataset_score", "case_score", "mt_at_k"):
        gap = after[field] - before[field]
        differences.append({
            "field": field, "first": before[field], "second": after[field], "difference": gap,
            "interval": {"low": gap - 12, "high": gap + 12} if field != "mt_at_k" else None,
            "p_value": round(random.random() ** 2, 4) if field != "mt_at_k" else None,
            "won": sum(flip["second"] > 0.5 for flip in flips), "lost": sum(flip["first"] > 0.5 for flip in flips),
            "tied": 1, "tasks": len(tasks),
        })  # fmt: skip
    return {
        "first": first[0],
        "second": second[0],
        "differences": differences,
        "flips": flips,
        "flips_p_value": 0.0431,
        "flips_by_task_p_value": 0.125 if len(tasks) > 2 else None,
        "only_first": ["archive"],
        "only_second": [],
        "same_attempts": True,
    }
