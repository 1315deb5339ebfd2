"""The requirements that a task's attempts failed most, from what the report has of the task."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping
from typing import Any

_KINDS = {"n": "new miss", "r": "regression", "c": "carried", "s": "stale"}
_FAILING = re.compile("[nrcs]")
_NOT_RUN = str.maketrans("pnrcsk", "xxxxx.")


def failed_requirements(task: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return how often each requirement failed that ever did, as :func:`worst_requirements` counts.

    Args:
        task: A TaskData of ``viewer/data.d.ts``.

    Returns:
        Values for JSON: ``task``, ``requirement`` (or a case that names none), ``failed`` and ``of`` in rounds,
        ``kinds`` of its failing cases. In no order.

    >>> task = {"name": "t", "requirements": [{"id": "R"}], "cases": [{"id": "x", "requirement": 0}],
    ...     "attempts": [{"rounds": {"1": "p", "2": "r"}}]}
    >>> failed_requirements(task)
    [{'task': 't', 'requirement': 'R', 'failed': 1, 'of': 2, 'kinds': {'regression': 1}}]
    """
    names = [_name(task, case) for case in task["cases"]]
    lines = [line for attempt in task["attempts"] for line in attempt["rounds"].values()]
    run: Counter[str] = Counter()
    # Rounds have few sets of cases between them, and thousands of rounds have one set.
    for cases, number in Counter(line.translate(_NOT_RUN) for line in lines).items():
        for name in {name for name, letter in zip(names, cases, strict=False) if letter == "x" and name}:
            run[name] += number
    failed: Counter[str] = Counter()
    kinds: dict[str, Counter[str]] = defaultdict(Counter)
    for line in lines:
        found = [(names[match.start()], _KINDS[match[0]]) for match in _FAILING.finditer(line)]
        failed.update({name for name, _ in found if name})
        for name, kind in found:
            kinds[name][kind] += 1
    return [
        {
            "task": task["name"],
            "requirement": name,
            "failed": number,
            "of": run[name],
            "kinds": dict(sorted(kinds[name].items())),
        }
        for name, number in sorted(failed.items())
    ]


def _name(task: Mapping[str, Any], case: Mapping[str, Any]) -> str:
    index = case["requirement"]
    return str(case["id"] if index is None else task["requirements"][index]["id"])
