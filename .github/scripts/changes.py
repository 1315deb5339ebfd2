"""Print as Markdown what changed since the baseline; standard input is what ``evocode compare --json`` prints."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from typing import Any


def lines(pairs: list[dict[str, Any]], baseline: str) -> Iterator[str]:
    """Yield the scores then and now, and the rounds that passed then and fail now, and the other way."""
    yield f"### Compared with {baseline}"
    yield ""
    yield from _table(("agent", "Dataset Score before", "now", "difference", "95 %", "p"), map(_score, pairs))
    for lost, title in ((True, "Passed before, fail now"), (False, "Failed before, pass now")):
        flips = [(pair["second"]["name"], flip) for pair in pairs for flip in pair["flips"] if flip["lost"] is lost]
        yield ""
        yield f"**{title}: {len(flips) or 'none'}**"
        if flips:
            yield ""
            yield from _table(("agent", "task", "round", "before", "now"), (_flip(*each) for each in flips))
    changed = {each["task"] for pair in pairs for each in pair["changed_tasks"]}
    for title, tasks in (
        ("Changed tasks", changed),
        ("New tasks", {task for pair in pairs for task in pair["only_second"]} - changed),
        ("Tasks that are gone", {task for pair in pairs for task in pair["only_first"]} - changed),
    ):
        if tasks:
            yield ""
            yield f"{title}, not compared: {', '.join(sorted(tasks))}"


def _score(pair: dict[str, Any]) -> tuple[str, ...]:
    score = pair["metrics"]["dataset_score"]
    interval, p = score["interval"], score["p_value"]
    return (
        pair["second"]["name"] + (" (regressed)" if pair["regression"] else ""),
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
    print("\n".join(lines(json.load(sys.stdin), sys.argv[1])))
