"""What the plugin costs a session that does not use it: of ``pytest`` with nothing to collect, with and without it.

The two are run alternately. "import" is the time within one process for the plugin's module alone, after pytest's own.
"""

from __future__ import annotations

import subprocess
import sys

from benchmarks.material import run_pytest, scratch
from benchmarks.tables import Table

_IMPORT = """
import time, pytest, argparse, dataclasses
from pathlib import Path
started = time.perf_counter()
import pytest_evocode.plugin
print(1000 * (time.perf_counter() - started))
"""


def measure(runs: int) -> Table:
    """Milliseconds."""
    table = Table("a session that does not use the plugin", "ms", ("time",), digits=1)
    with scratch() as directory:
        (directory / "conftest.py").unlink()
        (directory / "test_nothing.py").write_text("def test_nothing(): pass\n")
        run_pytest(directory)
        both = [(run_pytest(directory), run_pytest(directory, "-p", "no:evocode")) for _ in range(3 * runs)]
    table.add("with the plugin", "time", [1000 * each for each, _ in both])
    table.add("without", "time", [1000 * each for _, each in both])
    imports = [
        float(subprocess.run([sys.executable, "-c", _IMPORT], capture_output=True, text=True, check=True).stdout)
        for _ in range(3 * runs)
    ]
    table.add("import", "time", imports, target=10)
    return table
