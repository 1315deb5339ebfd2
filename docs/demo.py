"""Makes the report that the documentation shows as its demo: ``python docs/demo.py DIR``, from the project's root."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

_EXAMPLES = Path("example_tasks")
_PLAYED = ("process", "ledger", "stockroom")
_RECORDED = ("disciplined", "reckless")


def main(out: Path) -> None:
    """Play the example tasks in the sandbox, score the process of recorded attempts, and write the report."""
    with tempfile.TemporaryDirectory() as scratch:
        results = os.path.join(scratch, "example-results")
        _pytest(results, "--evocode-agent=oracle", "--evocode-agent=nop", *(str(_EXAMPLES / name) for name in _PLAYED))
        for name in _RECORDED:
            for recording in sorted(_EXAMPLES.glob(f"process/*/recorded/{name}")):
                agent = f"--evocode-agent=replay:{recording}"
                _pytest(
                    results, agent, "--evocode-process", "-o", "evocode_process_budget=0", str(recording.parents[1])
                )
        title = "Example tasks by the oracle, nop and recorded attempts"
        subprocess.run(["evocode", "report", results, f"--title={title}", f"--output={out}"], check=True)


def _pytest(results: str, *arguments: str) -> None:
    # That rounds fail is what a demo is for: the status is 0 all the same.
    options = ["--evocode-env=sandbox", "--evocode-fail-under=0", f"--evocode-results={results}", "-q", "--tb=no"]
    subprocess.run(["pytest", "-p", "no:cacheprovider", *options, *arguments], check=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
