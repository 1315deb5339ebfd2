"""How often the rules of process discipline are right: precision and recall for each extractor.

Over the labelled events of tests/process/corpus/, those that the rules were tuned on apart from those held back.
"""

from __future__ import annotations

from benchmarks.tables import Table
from tests.process.labelled_events import EXTRACTORS, HALVES, labelled_events, precision_and_recall


def measure(runs: int) -> Table:
    """Shares from 0 to 1; the number of runs does not matter, since nothing is timed."""
    events = list(labelled_events())
    table = Table("how often the rules are right", "from 0 to 1", ("precision", "recall"), digits=2)
    for half in HALVES:
        for extractor in EXTRACTORS:
            some = [each for each in events if each.extractor == extractor and each.half == half]
            precision, recall = precision_and_recall(some)
            table.add(f"{extractor}, {half} ({len(some)} events)", "precision", [precision])
            table.add(f"{extractor}, {half} ({len(some)} events)", "recall", [recall])
    return table
