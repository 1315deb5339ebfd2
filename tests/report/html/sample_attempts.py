"""The values of tasks, attempts and trajectories of the sample, as ``data.d.ts`` describes them."""

from __future__ import annotations

from random import Random
from typing import Any

from pytest_evocode.report.html.task import written
from tests.report.html.sample_world import CASES_PER_ROUND, CHANGE_TYPES, KINDS, Attempt, Task

FAILURES = {"n": "new miss", "r": "regression", "c": "carried", "s": "stale"}
OUTCOMES = {"a": "error", "i": "error", "-": "not reached", ".": "not reached", "?": "under way", "p": "passed"}
CAUSES = {"t": "the suite took longer than 120 s", "a": "the agent exited with 1", "b": "no case ran"}
PARTS = {
    "pf": ("PAC", "DQ", "PEA"), "vc": ("TCR", "dC", "RT"), "re": ("f(RAC)", "SD", "1-TWR"), "aq": ("AQ",),
    "ati": ("BH", "TS", "CH"), "tad": ("TAD",), "ee": ("EE",),
}  # fmt: skip
REPEATS = {"times": 3, "passed": 2, "flaky": True, "differing": ["test_rule_1_a"]}
STEPS_PER_PART = 25
DIFF = (
    "@@ -{0},7 +{0},9 @@ def balance(account):\n"
    "     entries = read(account)\n"
    "     total = 0\n"
    "-    for entry in entries:\n"
    "-        total += entry.amount\n"
    "+    for entry in sorted(entries, key=lambda entry: entry.booked):\n"
    "+        if entry.cancelled:\n"
    "+            continue\n"
    "+        total += entry.amount * entry.sign\n"
    "     return total\n"
)


def task_data(task: Task, attempts: list[Attempt], *, gone: bool = False) -> dict[str, Any]:
    """Return TaskData."""
    cases = range(len(task.rounds) * CASES_PER_ROUND)
    order = sorted(cases)
    return {
        "id": task.id,
        "name": task.name,
        "rounds": None if gone else [_task_round(task, index) for index in range(1, len(task.rounds) + 1)],
        "note": "The task's files are not where they were: tasks/gone. Give --tasks DIR." if gone else "",
        "requirements": [
            {
                "id": f"R{number + 1}",
                "introduced": number + 1,
                "retired": task.retired(number * CASES_PER_ROUND) or None,
                "kinds": [KINDS[number % 3]],
                "cases": list(range(number * CASES_PER_ROUND, (number + 1) * CASES_PER_ROUND)),
            }
            for number in range(len(task.rounds))
        ],
        "cases": [
            {
                "id": task.case(number),
                "origin": f"round-{number // CASES_PER_ROUND + 1}",
                "requirement": number // CASES_PER_ROUND,
                "kind": KINDS[number % 3],
                "intent": f"Rule {number // CASES_PER_ROUND + 1} holds when the account has {number} entries",
            }
            for number in order
        ],
        "attempts": [
            {
                "id": each.id,
                "rounds": {
                    str(index): "".join(verdict.get(number, ".") for number in order)
                    for index, verdict in each.verdicts.items()
                },
            }
            for each in attempts
        ],
    }


def _task_round(task: Task, index: int) -> dict[str, Any]:
    instruction = (
        f"# Round {index}\n\nKeep the ledger's format. Add rule {index}: a booking that is *repeated*\n"
        "is answered with the bytes of the first answer, and nothing is booked twice.\n\n"
        "- `booking` and [the format](https://example.org/format)\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    return {
        "name": task.rounds[index - 1],
        "instruction": instruction,
        "written": written(instruction),
        "change_types": [CHANGE_TYPES[index % 4]],
        "suite": [task.case(number) for number in task.active(index)],
    }


def attempt_data(attempt: Attempt, trajectory_steps: int, random: Random) -> dict[str, Any]:
    """Return AttemptData; ``trajectory_steps`` is 0 for an attempt without recordings."""
    return {
        "id": attempt.id,
        "task": attempt.task.name,
        "agent": attempt.agent,
        "attempt": attempt.attempt,
        "run": attempt.run,
        "started": "2026-11-20T09:00:00Z",
        "finished": "2026-11-20T10:12:31Z" if attempt.finished else "",
        "environment": "docker",
        "made_by": {"model": "openai/gpt-5.4", "temperature": 0.2, "budget": {"cost_usd": 4}},
        "strict": True,
        "regraded": None,
        "rewards": {"reward": 0.625, "style": 0.5},
        "path": f"evocode-results/run/{attempt.agent}/{attempt.task.name}/{attempt.attempt}",
        "rounds": [
            _round(attempt, index, trajectory_steps, random) for index in range(1, len(attempt.task.rounds) + 1)
        ],
        "problems": []
        if attempt.finished
        else ["round-3/agent/trajectory.json: it ends in the middle of a value; the steps before it are shown"],
    }


def _round(attempt: Attempt, index: int, steps: int, random: Random) -> dict[str, Any]:
    cell = attempt.cells[index - 1]
    reached = cell not in "-.?"
    verdict = attempt.verdicts.get(index, {})
    passed, total = attempt.counts(index)
    steps = steps if reached else 0
    return {
        "index": index,
        "name": attempt.task.rounds[index - 1],
        "cell": cell,
        "outcome": OUTCOMES.get(cell, "failed"),
        "cause": CAUSES.get(cell, ""),
        "fault": {"a": "agent", "i": "infrastructure"}.get(cell),
        "timed_out": "verifier" if cell == "t" else None,
        "stopped": "the budget of 4 $ was used up" if cell == "o" else "",
        "reward": passed / total if total else None,
        "rewards": {"reward": passed / total} if total else {},
        "counts": [passed, total],
        "flags": ["agent left processes behind"] if cell == "r" else [],
        "rests_on": ("in-place", "clean", "separate", "clean")[index % 4] if total else None,
        "void": False,
        "trusts": ["/usr/lib/plugin.so"] if index == 3 and total else [],
        "changed_counts": {"carried": 1} if index == 3 and total else {},
        "repeats": REPEATS if index == 4 else None,
        "cases": [_case(attempt, index, number, kind) for number, kind in verdict.items()],
        "output": _output(attempt, index) if reached else "",
        "omitted": 48_213 if index == 2 else 0,
        "changes": [_change(number, steps) for number in range(random.randint(1, 4))] if steps else None,
        "artifacts": ["coverage.xml"] if reached else [],
        "usage": {
            "prompt_tokens": 81_230 * index, "cached_tokens": 60_100, "completion_tokens": 4_210,
            "cost_usd": 0.21 * index, "requests": 17,
        } if steps else None,
        "tool_calls": steps // 2 if steps else None,
        "phases": {"setup": 1.2, "agent": 82.5 + index, "snapshot": 0.3, "waiting": 4.0, "suite": 6.1, "reading": 0.1}
        if reached else {},
        "agent_seconds": 82.5 + index if reached else None,
        "verifier_seconds": 6.1 if reached else None,
        "node_id": f"tasks/{attempt.task.name}/task.toml::{attempt.task.rounds[index - 1]}",
        "trajectory": {
            "steps": steps,
            "parts": (steps + STEPS_PER_PART - 1) // STEPS_PER_PART,
            "first": list(range(0, steps, STEPS_PER_PART)),
            "notes": "" if index % 3 else "Recorded from the harness's own log; times are of the log.",
        } if steps else None,
        "process": _process(steps, random) if steps and index % 5 else None,
    }  # fmt: skip


def _case(attempt: Attempt, index: int, number: int, kind: str) -> dict[str, Any]:
    case: dict[str, Any] = {
        "id": attempt.task.case(number),
        "status": {"p": "passed", "k": "skipped"}.get(kind, "failed"),
        "origin": f"round-{number // CASES_PER_ROUND + 1}",
        "requirement": f"R{number // CASES_PER_ROUND + 1}",
        "kind": KINDS[number % 3],
        "intent": "", "scenario": "", "input": "", "expected": "", "actual": "", "reason": "",
        "failure": FAILURES.get(kind),
        "test": "",
        "introduced": None,
    }  # fmt: skip
    if kind in FAILURES:
        since = next(
            back
            for back in range(index, 0, -1)
            if back == 1 or attempt.verdicts.get(back - 1, {}).get(number, "p") not in FAILURES
        )
        case |= {
            "intent": "A booking that is repeated is answered with the bytes of the first answer",
            "scenario": "An account with three entries, one of them cancelled",
            "input": "ledger balance --account 7 --at 2026-03-01",
            "expected": "balance: 120.00 EUR\nentries: 3\nas of: 2026-03-01\n",
            "actual": "balance: 102.00 EUR\nentries: 3\nas of: 2026-03-01\nwarning: 1 entry was skipped\n",
            "test": "tests/test_ledger.py:12\ndef test_balance(ledger):\n    assert ledger('balance') == 120",
            "reason": "\x1b[31mAssertionError\x1b[0m: 102.00 EUR is not 120.00 EUR in ledger/report.py:48",
            "introduced": {"round": since, "step": 6, "why": "last edit of ledger/report.py, which the failure names"}
            if number % 2
            else {"round": since, "step": None, "why": "several edits, none of a file that the failure names"},
        }
    return case


def _output(attempt: Attempt, index: int) -> str:
    lines = ["\x1b[1m===== test session starts =====\x1b[0m", "collected 12 items", ""]
    for number, kind in attempt.verdicts.get(index, {}).items():
        word = "\x1b[32mPASSED\x1b[0m" if kind == "p" else "\x1b[31mFAILED\x1b[0m"
        lines.append(f"tests/test_ledger.py::{attempt.task.case(number)} {word}")
    lines += [
        f"  entry {number:4}: {'=' * (number % 70)} 12.{number:02} EUR" for number in range(60 if index == 2 else 3)
    ]
    return "\n".join([*lines, "\x1b[31m1 failed\x1b[0m, \x1b[32m11 passed\x1b[0m in 0.42 s", ""])


def _change(number: int, steps: int) -> dict[str, Any]:
    kind = ("changed", "added", "renamed", "removed")[number % 4]
    return {
        "path": ("ledger/report.py", "tests/test_report.py", "ledger/entries.py", "notes.bin")[number % 4],
        "kind": kind,
        "from": "ledger/entry.py" if kind == "renamed" else "",
        "diff": "" if kind == "removed" else DIFF.format(12 + number),
        "added": 0 if kind == "removed" else 4,
        "removed": 2,
        "note": "The content was not recorded." if kind == "removed" else "",
        "steps": [step for step in (2, 6, 10) if step <= steps][: number + 1],
    }


def _process(steps: int, random: Random) -> dict[str, Any]:
    pillars: dict[str, Any] = {}
    for pillar, parts in PARTS.items():
        measures = {part: _measure(part, steps, random, measured=pillar != "aq" and part != "BH") for part in parts}
        values = [measure["value"] for measure in measures.values() if measure["value"] is not None]
        pillars[pillar] = {"value": sum(values) / len(values) if values else None, "measures": measures}
    known = [pillar["value"] for pillar in pillars.values() if pillar["value"] is not None]
    extended = {name: _measure(name, steps, random, measured=name != "DM") for name in ("RR", "DCA", "DM", "CGR")}
    return {"score": 100 * sum(known) / len(known), "edited": True, "pillars": pillars, "extended": extended}


def _measure(name: str, steps: int, random: Random, *, measured: bool) -> dict[str, Any]:
    if not measured:
        return {"value": None, "certainty": None, "reason": "nothing was executed: give --execute", "evidence": []}
    evidence = [
        {
            "what": f"{name}: the agent ran the tests before its edit",
            "step": min(steps, 4),
            "quote": "python -m pytest -q",
        },
        {"what": "a test with an assertion that can fail", "step": None, "quote": "tests/test_report.py:12"},
    ]
    certainty = random.choice(("executed", "parsed", "parsed", "judged"))
    return {"value": round(random.random(), 3), "certainty": certainty, "reason": "", "evidence": evidence}
