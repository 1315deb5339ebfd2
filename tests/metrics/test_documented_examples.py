"""The numbers in docs/metrics.md are those that the functions give."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

from tests.metrics.documented import CHAIN, SINGLE

DOCUMENT = Path(__file__).parents[2] / "docs" / "metrics.md"


def test_the_examples_give_what_they_say() -> None:
    names = {"chain": CHAIN, "single": SINGLE}
    found = doctest.testfile(str(DOCUMENT), module_relative=False, optionflags=doctest.REPORT_NDIFF, globs=names)
    assert found.attempted >= 8
    assert found.failed == 0


def test_the_table_of_scores_has_the_numbers_of_the_example() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    in_table = re.findall(r"^\| [^|]+\|[^|]+\|[^|]*\*\*([0-9./]+)\*\*", text, flags=re.MULTILINE)
    in_example = dict(re.findall(r"^(\w+) +([0-9.]+)$", text, flags=re.MULTILINE))
    order = (
        "dataset_score",
        "case_score",
        "pinned_case_score",
        "avg_rounds",
        "perfect_tasks",
        "mean_reward",
        "mt_at_k",
        "reliability",
        "sr",
        "sr_macro",
        "gap",
        "final_round_completion",
        "hard_tasks",
    )
    in_example["perfect_tasks"] += "/3"
    assert in_table == [in_example[name] for name in order]
