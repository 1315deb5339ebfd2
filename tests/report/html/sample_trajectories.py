"""Trajectories of the sample: steps that read, edit and test, with what recordings say beside them."""

from __future__ import annotations

from typing import Any

from tests.report.html.sample_attempts import DIFF, STEPS_PER_PART

_WORK = (
    ("read", "shell", "sed -n 1,80p ledger/report.py", "def balance(account):\n    ...\n", 0),
    ("edit", "edit_file", "ledger/report.py", "1 replacement", 0),
    ("test", "shell", "python -m pytest -q", "\x1b[31mF\x1b[0m...\n1 failed, 3 passed in 0.21 s\n", 1),
    ("search", "shell", "grep -rn 'cancelled' ledger", "ledger/entries.py:31:    cancelled: bool = False\n", 0),
    ("build", "shell", "make", "make: Nothing to be done for 'all'.\n", 0),
    ("git", "shell", "git commit -am 'Skip cancelled entries'", "[main 3f2c1ab] Skip cancelled entries\n", 0),
)
_REMARKS = {
    9: "4,210 characters of this output were left out before the model saw it",
    15: "the request was repeated twice after status 529",
    21: "the model declined to answer",
}


def parts(count: int, *, copied: int = 0) -> list[list[dict[str, Any]]]:
    """Return Step[] in the parts of a trajectory with so many steps; the first ``copied`` repeat an earlier round's."""
    steps = [_step(number, copied=number <= copied) for number in range(1, count + 1)]
    return [steps[first : first + STEPS_PER_PART] for first in range(0, count, STEPS_PER_PART)]


def _step(number: int, *, copied: bool) -> dict[str, Any]:
    source = "system" if number == 1 else "user" if number == 2 else "agent"
    texts = {
        "system": "You work in a container. Use the tools. Stop when the task is done.",
        "user": "# The request\n\nAdd rule 4: a repeated booking is answered with the first answer.",
        "agent": f"Step {number}: the balance skips cancelled entries, so I look at where entries are read.",
    }
    return {
        "id": number,
        "source": source,
        "time": f"2026-11-20T09:{number // 60 % 60:02}:{number % 60:02}Z",
        "model": "gpt-5.4" if source == "agent" else "",
        "text": texts[source],
        "reasoning": "The sign is wrong for credits.\nCheck entries.py before the report." if number % 3 == 0 else "",
        "calls": [_call(number)] if source == "agent" else [],
        "prompt_tokens": 8_000 + 700 * number if source == "agent" else None,
        "completion_tokens": 120 + number if source == "agent" else None,
        "cost_usd": 0.0121 if source == "agent" else None,
        "copied": copied,
        "remarks": [_REMARKS[number]] if number in _REMARKS else [],
    }


def _call(number: int) -> dict[str, Any]:
    purpose, name, command, output, code = _WORK[number % len(_WORK)]
    edit = purpose == "edit"
    change = {
        "path": command, "kind": "changed", "from": "", "diff": DIFF.format(number), "added": 4, "removed": 2,
        "note": "", "steps": [number],
    }  # fmt: skip
    return {
        "id": f"call-{number}",
        "name": name,
        "arguments": {"path": command, "old": "total += entry.amount", "new": "total += entry.amount * entry.sign"}
        if edit
        else {"command": command},
        "purpose": purpose,
        "output": output * (400 if number % 13 == 8 else 1),
        "exit_code": None if edit else code,
        "seconds": 0.2 + number % 7,
        "changes": [change] if edit else [],
    }
