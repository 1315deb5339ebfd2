"""What README's two commands print and write is what they printed and wrote before the package's modules were moved.

By day the first is given one task.

After a change that is meant to change records or tables, write the expectations anew with
``python -m tests.acceptance.test_golden_results``, and say so in a fragment of changelog.d/.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOLDEN = Path(__file__).parent / "golden"
COMMANDS = {
    "task": ["--evocode-agent=oracle", "example_tasks/process/recipes"],
    "oracle": ["--evocode-agent=oracle", "example_tasks/process/", "example_tasks/ledger", "example_tasks/stockroom"],
    "nop": ["-q", "--tb=no", "--evocode-agent=nop", "example_tasks/ledger"],
}
#: What differs from run to run: names of runs, times, durations, paths, versions of other packages; and from machine to
#: machine what programs leave in the caches of its Python, which is recorded among the changes.
VARYING = [
    (r"\d{4}-\d\d-\d\d__\d\d-\d\d-\d\d(-\d+)?", "RUN"),
    (r'("id": )"[0-9a-f-]{36}"', r'\1"ID"'),  # Of a trial for Harbor, made from when it began.
    (r"\d{4}-\d\d-\d\dT[\d:.]+(\+00:00|Z)", "TIME"),
    (r'("\w*seconds": )[\d.e-]+', r"\1SECONDS"),
    (r'("(start|stop|duration)": )[\d.e-]+', r"\1TIME"),  # In the report of a suite's own runner.
    # Which are 0 to the last digit differs too, and how many slots there are depends on the machine.
    (r'"phases": \{[^}]*\}', '"phases": PHASES'),
    (r"slots: \d+, busy .*", "SLOTS"),
    (r'"versions": \{[^}]*\}', '"versions": VERSIONS'),
    # The expectations are older than this version.
    (rf'("version": )"{re.escape(version("pytest-evocode"))}"', r'\1"0.1.0"'),
    (r'("image": )"\w+"', r'\1"IMAGE"'),  # Of a sandbox, made from the machine's own system.
    (r'"changed": \{\s*"counts": \{[^}]*\},\s*"address": "\w*"\s*\}', '"changed": CHANGED'),
    (r"\d+\.\d+ ?s\b( \(\d:\d\d:\d\d\))?", "SECONDS"),
    (r"=+ (.*?) =+", r"== \1 =="),
    (r"(platform|rootdir|configfile|plugins|cachedir|evocode: environment)\b.*", r"\1"),
    (r"  +", "  "),
]


def normalised(text: str, results: Path) -> str:
    """A text without what differs from run to run."""
    text = text.replace(str(results), "RESULTS")
    for pattern, replacement in VARYING:
        text = re.sub(pattern, replacement, text)
    return text


def play(name: str, results: Path) -> dict[str, str]:
    """What a command prints, and the hash of every file that it writes, by the file's path."""
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--evocode-env=sandbox"]
    command += [f"--evocode-results={results}", *COMMANDS[name]]
    # In CI pytest cuts no line of its summary; on a terminal it cuts where the window ends.
    environ = {
        name: value for name, value in os.environ.items() if name not in ("CI", "GITHUB_ACTIONS", "BUILD_NUMBER")
    }
    environ["COLUMNS"] = "80"
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, text=True, check=False)
    found = {"stdout": normalised(done.stdout, results)}
    for path in sorted(results.rglob("*")):
        if path.is_file() and path.parent.name != "changes":
            content = normalised(path.read_text(encoding="utf-8"), results)
            place = normalised(str(path.relative_to(results)), results)
            found[place] = hashlib.sha256(content.encode()).hexdigest()
    return found


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name == "task" else [pytest.mark.nightly]) for name in COMMANDS]
)
def test_what_is_printed_and_written_stays_the_same(name: str, tmp_path: Path) -> None:
    expected = json.loads((GOLDEN / f"{name}.json").read_text(encoding="utf-8"))
    assert play(name, tmp_path / "results") == expected


def main() -> None:
    """Write the expectations."""
    for name in COMMANDS:
        with tempfile.TemporaryDirectory() as directory:
            found = play(name, Path(directory) / "results")
        (GOLDEN / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
