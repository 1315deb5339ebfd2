"""The list of tests that are left to the night."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
LINES = [line for line in (TESTS / "by_night.txt").read_text().splitlines() if not line.startswith("#")]


def test_each_line_names_a_function_that_exists() -> None:
    assert sorted(set(LINES)) == LINES
    for line in LINES:
        path, *_, name = line.partition("[")[0].split("::")
        assert re.search(rf"^ *def {name}\(", (TESTS / path).read_text(), re.MULTILINE), line


@pytest.mark.nightly
def test_each_line_names_a_test_that_is_collected() -> None:
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", str(TESTS)]
    listed = subprocess.run(command, cwd=TESTS.parent, capture_output=True, text=True, check=True)
    assert {f"tests/{line}" for line in LINES} <= set(listed.stdout.splitlines())
