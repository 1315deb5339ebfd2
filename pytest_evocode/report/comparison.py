"""What ``evocode compare`` prints: the scores of two agents side by side, and the rounds that only one passes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from pytest_evocode.metrics.comparison import Comparison, Flip
from pytest_evocode.metrics.task_values import Metric
from pytest_evocode.report.scores import format_interval
from pytest_evocode.report.tables import aligned

TITLES: dict[Metric, str] = {
    "dataset_score": "Dataset Score",
    "case_score": "Case Score",
    "pinned_case_score": "Pinned Case Score",
    "mt_at_k": "MT@k",
    "final_round_completion": "Comp",
    "perfect_tasks": "Perfect Tasks, %",
    "avg_rounds": "Avg Rounds",
}


def comparison_lines(
    first: str, second: str, found: Mapping[Metric, Comparison], *, single_rounds: bool = False
) -> Iterator[str]:
    """Yield the table of metrics, and the rounds that only one of two agents passes.

    Args:
        first: The name of A.
        second: The name of B.
        found: The comparisons by metric; the Dataset Score is one of them, and its flips are listed.
        single_rounds: Whether the two were measured in mode single-round, where the Dataset Score is the SR by task.
    """
    headline = found["dataset_score"]
    yield f"A: {first}"
    yield f"B: {second}"
    yield f"paired by task, {headline.tasks} of them; 95 % intervals by bootstrap over tasks"
    yield ""
    rows = [("", "A", "B", "B - A", "95 %", "won", "tied", "lost")]
    for metric, each in found.items():
        title = "SR, by task" if single_rounds and metric == "dataset_score" else TITLES[metric]
        numbers = f"{each.first:.1f}", f"{each.second:.1f}", f"{each.difference:+.1f}", format_interval(each.interval)
        rows.append((title, *numbers, str(each.won), str(each.tied), str(each.lost)))
    yield from aligned(rows)
    yield from _flips("passed in A, not in B", [flip for flip in headline.flips if flip.lost])
    yield from _flips("passed in B, not in A", [flip for flip in headline.flips if not flip.lost])
    for side, tasks in (("A", headline.only_first), ("B", headline.only_second)):
        if tasks:
            yield ""
            yield f"only in {side}, not compared: {', '.join(tasks)}"


def _flips(title: str, flips: Sequence[Flip]) -> Iterator[str]:
    if not flips:
        return
    yield ""
    yield f"{title} ({len(flips)})"
    partial = any(share not in (0.0, 1.0) for flip in flips for share in (flip.first, flip.second))
    rows = []
    for flip in flips:
        shares = f"{100 * flip.first:.0f} % -> {100 * flip.second:.0f} % of the attempts" if partial else ""
        rows.append((f"  {flip.task}", flip.round or f"round {flip.index}", shares))
    yield from aligned(rows, left=(0, 1, 2))
