"""Measure the harness: ``python -m benchmarks [NAME ...]``, from the project's root.

Every benchmark prints a table and writes ``<name>.json`` with all single times. What a benchmark measures, and against
what, is the docstring of its module. Timings of a machine that does something else at the time are worth nothing.
``--before REVISION`` measures an earlier version of the package as well, by today's benchmarks, in turn with this one;
the table has no figures of it where it cannot run one.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.tables import Table

ROOT = Path(__file__).parents[1]

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
    "episodes",
)


def _beside(name: str, runs: int, revision: str) -> Table:
    """Measure this version and an earlier one, a run of each in turn."""
    with _tree_of(revision) as earlier:
        found: dict[Path, list[dict[str, Any]]] = {ROOT: [], earlier: []}
        for _ in range(runs):
            for tree, tables in found.items():
                with tempfile.TemporaryDirectory() as results:
                    command = [sys.executable, "-m", "benchmarks", name, "--quick", "--json", results]
                    env = {**os.environ, "PYTHONPATH": str(tree)}
                    # What is measured may be newer than the earlier version.
                    subprocess.run(command, cwd=tree, env=env, stdout=subprocess.DEVNULL, check=tree == ROOT)
                    if (measured := Path(results, f"{name}.json")).exists():
                        tables.append(json.loads(measured.read_text()))
        return Table.of_runs(found[ROOT], found[earlier])


@contextlib.contextmanager
def _tree_of(revision: str) -> Iterator[Path]:
    """Make a directory that has the package as it was, and all else as it is."""
    with tempfile.TemporaryDirectory() as directory:
        tree = Path(directory)
        archive = subprocess.run(
            ["git", "-C", str(ROOT), "archive", revision, "pytest_evocode"], stdout=subprocess.PIPE, check=True
        )
        subprocess.run(["tar", "-x", "-C", directory], input=archive.stdout, check=True)
        for name in ("benchmarks", "tests", "example_tasks"):
            (tree / name).symlink_to(ROOT / name)
        yield tree


def main() -> None:
    """Run those that are named, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"any of {', '.join(NAMES)} (default: all)")
    parser.add_argument("--runs", type=int, default=5, help="runs of everything that is timed (default: 5)")
    parser.add_argument("--quick", action="store_true", help="one run of everything, and short simulations")
    parser.add_argument("--before", metavar="REVISION", help="measure that commit, too")
    parser.add_argument("--json", type=Path, default=Path("benchmark-results"), help="directory for the JSON files")
    options = parser.parse_args()
    if unknown := set(options.names) - set(NAMES):
        parser.error(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(NAMES)}")
    options.json.mkdir(parents=True, exist_ok=True)
    runs = 1 if options.quick else options.runs
    for name in options.names or NAMES:
        if options.before:
            table = _beside(name, runs, options.before)
        else:
            table = importlib.import_module(f"benchmarks.{name.replace('-', '_')}").measure(runs)
        print(table.text(), end="\n\n", flush=True)
        (options.json / f"{name}.json").write_text(json.dumps(table.as_json(name), indent=1) + "\n")


if __name__ == "__main__":
    main()
