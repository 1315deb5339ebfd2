"""Measure the harness: ``python -m benchmarks [NAME ...]``, from the project's root.

Every benchmark prints a table and writes ``<name>.json`` with all single times. What a benchmark measures, and against
what, is the docstring of its module. Timings of a machine that does something else at the time are worth nothing.
"""

from __future__ import annotations

import argparse
import importlib
import json
from pathlib import Path

NAMES = (
    "imports",
    "collection",
    "overhead",
    "start",
    "pipelining",
    "real_suite",
    "workers",
    "memory",
    "aggregation",
    "calibration",
    "coverage",
    "loading",
    "process",
    "process-labels",
    "programs",
    "snapshots",
    "judging",
    "correlation",
    "planning",
    "report",
    "pacing",
    "jobs",
    "scale",
)


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of everything that is timed (default: 5)")
    parser.add_argument("--quick", action="store_true", help="one run of everything, and short simulations")
    parser.add_argument("--json", type=Path, default=Path("benchmark-results"), help="directory for the JSON files")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    options.json.mkdir(parents=True, exist_ok=True)
    for name in options.names or NAMES:
        module = importlib.import_module(f"benchmarks.{name.replace('-', '_')}")
        table = module.measure(1 if options.quick else options.runs)
        print(table.text(), end="\n\n", flush=True)
        (options.json / f"{name}.json").write_text(json.dumps(table.as_json(name), indent=1) + "\n")


if __name__ == "__main__":
    main()
