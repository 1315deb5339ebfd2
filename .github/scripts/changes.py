"""Print as Markdown what changed since the baseline; standard input is what ``evocode compare --json`` prints.

A file with what ``evocode merge --json`` printed tells which attempts were not run, and so have not failed.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

Missing = Counter[tuple[str, str]]
"""How many attempts were not run, by agent and task."""


def lines(pairs: list[dict[str, Any]], baseline: str, missing: Missing) -> Iterator[str]:
    """Yield the scores then and now, and the rounds that passed then and fail now, and the other way."""
    yield f"### Compared with {baseline}"
    yield ""
    head = ("agent", "Dataset Score before", "now", "difference", "95 %", "p")
    yield from _table(head, (_score(pair, missing) for pair in pairs))
    flipped = [(pair["second"]["name"], flip) for pair in pairs for flip in pair["flips"]]
    run = [(agent, flip) for agent, flip in flipped if (agent, flip["task"]) not in missing]
    for lost, title in ((True, "Passed before, fail now"), (False, "Failed before, pass now")):
        flips = [(agent, flip) for agent, flip in run if flip["lost"] is lost]
        yield ""
        yield f"**{title}: {len(flips) or 'none'}**"
        if flips:
            yield ""
            yield from _table(("agent", "task", "round", "before", "now"), (_flip(*each) for each in flips))
    changed = {each["task"] for pair in pairs for each in pair["changed_tasks"]}
    for title, tasks in (
        ("Tasks that were not run, or not by every attempt", {task for _, task in missing}),
        ("Changed tasks", changed),
        ("New tasks", {task for pair in pairs for task in pair["only_second"]} - changed),
        ("Tasks that are gone", {task for pair in pairs for task in pair["only_first"]} - changed),
    ):
        if tasks:
            yield ""
            yield f"{title}, not compared: {', '.join(sorted(tasks))}"


def not_run(merged: dict[str, Any]) -> Missing:
    """Return which attempts were not run of what was merged."""
    return Counter((each["agent"], each["task"]) for each in merged["missing"])


def _score(pair: dict[str, Any], missing: Missing) -> tuple[str, ...]:
    agent = pair["second"]["name"]
    not_run = sum(number for (of_agent, _), number in missing.items() if of_agent == agent)
    regressed = " (regressed)" if pair["regression"] else ""
    state = f" ({not_run} {'attempt' if not_run == 1 else 'attempts'} not run)" if not_run else regressed
    score = pair["metrics"]["dataset_score"]
    interval, p = score["interval"], score["p_value"]
    return (
        agent + state,
        f"{score['first']:.1f}",
        f"{score['second']:.1f}",
        f"{score['difference']:+.1f}",
        "n/a" if interval is None else f"{interval[0]:+.1f} to {interval[1]:+.1f}",
        "n/a" if p is None else f"{p:.3f}",
    )


def _flip(agent: str, flip: dict[str, Any]) -> tuple[str, ...]:
    return agent, flip["task"], flip["round"] or f"round {flip['index']}", _share(flip["first"]), _share(flip["second"])


def _share(share: float) -> str:
    return {0.0: "failed", 1.0: "passed"}.get(share, f"{100 * share:.0f} % passed")


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> Iterator[str]:
    for cells in (head, ("---",) * len(head), *rows):
        yield "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


if __name__ == "__main__":
    merged = json.loads(Path(sys.argv[2]).read_text(encoding="utf-8"))
    print("\n".join(lines(json.load(sys.stdin), sys.argv[1], not_run(merged))))
