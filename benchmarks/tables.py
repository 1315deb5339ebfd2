"""A table of medians: printed for people, with every single measurement for programs."""

from __future__ import annotations

import os
import platform
import statistics
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, ClassVar


@dataclass
class Table:
    """``unit`` is that of all values; by row and column ``targets`` are upper bounds, ``before`` what was earlier."""

    title: str
    unit: str
    columns: Sequence[str]
    rows: dict[str, dict[str, list[float]]] = field(default_factory=dict)
    targets: dict[tuple[str, str], float] = field(default_factory=dict)
    before: dict[tuple[str, str], list[float]] = field(default_factory=dict)
    digits: int = 2
    summary: ClassVar[str] = "medians"

    def add(self, row: str, column: str, values: Sequence[float], target: float | None = None) -> None:
        """Add a cell with all that was measured for it."""
        self.rows.setdefault(row, {})[column] = list(values)
        if target is not None:
            self.targets[row, column] = target

    def text(self) -> str:
        """The medians, with their targets behind them."""
        cells = [["", *self.columns]]
        cells += [[row, *(self._cell(row, column) for column in self.columns)] for row in self.rows]
        widths = [max(len(line[place]) for line in cells) for place in range(len(cells[0]))]
        lines = ["  ".join(f"{text:{width}}" for text, width in zip(line, widths, strict=True)) for line in cells]
        return "\n".join([f"{self.title} ({self.unit}, {self.summary})", *(line.rstrip() for line in lines)])

    def _cell(self, row: str, column: str) -> str:
        values = self.rows[row].get(column)
        if not values:
            return "not measured"
        about = []
        if before := self.before.get((row, column)):
            about.append(f"before {statistics.median(before):.{self.digits}f}")
        if (target := self.targets.get((row, column))) is not None:
            about.append(f"target {target:g}")
        return f"{statistics.median(values):.{self.digits}f}" + (f" ({', '.join(about)})" if about else "")

    def as_json(self, name: str) -> dict[str, Any]:
        """Everything, and what it was measured on."""
        machine = {"cores": os.cpu_count(), "system": platform.platform(), "python": platform.python_version()}
        rows = [
            {
                "row": row,
                "column": column,
                "median": statistics.median(values),
                "values": values,
                "before": self.before.get((row, column), []),
                "target": self.targets.get((row, column)),
            }
            for row, cells in self.rows.items()
            for column, values in cells.items()
        ]
        when = datetime.now(UTC).isoformat(timespec="seconds")
        return {
            "benchmark": name,
            "title": self.title,
            "unit": self.unit,
            "digits": self.digits,
            "when": when,
            "machine": machine,
            "rows": rows,
        }

    @classmethod
    def of_runs(cls, now: Sequence[dict[str, Any]], before: Sequence[dict[str, Any]]) -> Table:
        """Return one table of what :meth:`as_json` gave of several runs, and of an earlier version's."""
        first = now[0]
        columns = list(dict.fromkeys(each["column"] for each in first["rows"]))
        table = cls(first["title"], first["unit"], columns, digits=first["digits"])
        for each in (row for run in now for row in run["rows"]):
            values = table.rows.get(each["row"], {}).get(each["column"], [])
            table.add(each["row"], each["column"], values + each["values"], each["target"])
        for each in (row for run in before for row in run["rows"]):
            table.before.setdefault((each["row"], each["column"]), []).extend(each["values"])
        return table
