"""SlopCodeBench's program on the texts of a workspace."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from pytest_evocode.cli.metrics import ScbCheck
from pytest_evocode.errors import StateNotRebuilt, UsageError
from pytest_evocode.metrics.neighbours.published import quality_of

#: Does what the program does on the outside: the last line is the report, and findings have the exit status 1.
STAND_IN = """#!{python}
import json, os, shutil, sys
if "--version" in sys.argv:
    sys.exit(print("0.0.0"))
assert sys.argv[1:4] == ["check", "--report", "--include-all"], sys.argv
assert os.path.exists("scb-check.toml") and os.path.isdir(".git")  # Nobody looks for settings above.
assert shutil.which("sg") == {sg!r}, os.environ["PATH"]
open({calls!r}, "a").write("x")
found = [os.path.join(place, name) for place, _, names in os.walk(sys.argv[4]) for name in names]
texts = [open(path).read() for path in sorted(found)]
if any("warn" in text for text in texts):
    print("ast-grep returned non-zero", file=sys.stderr)
if not any("def" in text for text in texts):
    sys.exit(print("no Python files found at", sys.argv[4]) or 2)
print("working")
names = sorted(os.path.basename(path) for path in found)
print(json.dumps({{"verbosity": 0.5, "erosion": 0.25, "total_loc": len("".join(texts).split("\\n")), "names": names}}))
sys.exit(1)
"""


@pytest.fixture
def checker(tmp_path: Path) -> ScbCheck:
    program, sg = tmp_path / "tool" / "scb-check", tmp_path / "tool" / "sg"
    program.parent.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable, sg=str(sg), calls=str(tmp_path / "calls")))
    sg.write_text("#!/bin/sh\n")
    for path in (program, sg):
        path.chmod(0o755)
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "scb-check").symlink_to(program)  # As uv installs tools.
    return ScbCheck(str(tmp_path / "bin"))


def test_the_report_is_that_of_the_files(checker: ScbCheck) -> None:
    report = checker.report({"a/b.py": "def f(): pass\n", "c.py": "x = 1\n"})
    assert (report["names"], report["verbosity"]) == (["b.py", "c.py"], 0.5)
    assert checker.version == "0.0.0"


def test_equal_files_are_checked_once(checker: ScbCheck, tmp_path: Path) -> None:
    assert checker.report({"a.py": "def f(): pass\n"}) == checker.report({"a.py": "def f(): pass\n"})
    assert (tmp_path / "calls").read_text() == "x"


def test_neither_settings_of_the_agent_nor_paths_elsewhere_are_written(checker: ScbCheck) -> None:
    texts = {".gitignore": "*", "scb-check.toml": "exclude = ['*']", "../x.py": "", "/y.py": "", "z.py": "def f(): ..."}
    assert checker.report(texts)["names"] == ["z.py"]


def test_why_there_is_no_report_is_told(checker: ScbCheck) -> None:
    with pytest.raises(StateNotRebuilt, match="no Python files found"):
        checker.report({"a.py": "x = 1\n"})
    with pytest.raises(StateNotRebuilt, match="could not run ast-grep"):
        checker.report({"a.py": "def warn(): ...\n"})


def test_a_program_that_is_not_installed_is_one_clear_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(UsageError, match="uv tool install scb-check"):
        ScbCheck(str(tmp_path))


@pytest.mark.skipif(shutil.which("scb-check") is None, reason="SlopCodeBench's scb-check is not installed")
def test_the_real_program_gives_the_published_numbers() -> None:
    branches = "".join(f"    if a == {number}:\n        return {number}\n" for number in range(12))
    texts = {"big.py": f"def big(a):\n{branches}    return None\n", "small.py": "def small(a):\n    return a\n"}
    quality = quality_of(ScbCheck().report(texts))
    assert quality is not None
    # 13 paths through 26 lines, of a mass of 13 sqrt(26) + 1 sqrt(2).
    assert quality.erosion == pytest.approx(100 * 13 * 26**0.5 / (13 * 26**0.5 + 2**0.5))
    assert quality.lines == 28
