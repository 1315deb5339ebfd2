"""The modules of a suite's session are those that were there when it began."""

from __future__ import annotations

import pytest

from tests.verifier.conftest import RunNative

# One test changes files as a program under test could; the next ones import what they did not import before.
REWRITES = """
import sys
from pathlib import Path

HERE = Path(__file__).parent

def rewrite():
    for name in ("late.py", "round-1/late.py", "later/__init__.py", "difflib.py", "colorsys.py", "round-1/new.py"):
        (HERE.parent / name).parent.mkdir(exist_ok=True)
        (HERE.parent / name).write_text("VALUE = 'changed'")
    for path in (HERE.parent / ".evocode").glob("*"):
        if path.is_file():
            path.write_bytes(b"")

def test_0_shared():
    rewrite()
    import late
    assert late.VALUE == "as it was"

def test_1_relative():
    from . import late
    assert late.VALUE == "as it was"

def test_2_a_package_does_not_take_the_place_of_a_module():
    import later
    assert later.VALUE == "as it was"

def test_3_python():
    import colorsys
    assert not hasattr(colorsys, "VALUE")

def test_4_new():
    try:
        from . import new
    except ImportError:
        return
    assert not hasattr(new, "VALUE")

def test_5_pytest_loads_the_rest_of_itself():
    assert [1, {"a": "b"}] == [1, {"a": "c"}], "this fails, and is explained"
"""


def test_what_is_written_while_the_suite_runs_is_not_imported(native: RunNative) -> None:
    files = {
        "tests/late.py": "VALUE = 'as it was'\n",
        "tests/later.py": "VALUE = 'as it was'\n",
        "round-1/late.py": "VALUE = 'as it was'\n",
        "round-1/test_a.py": REWRITES,
    }
    run = native(files)
    assert "1 failed, 5 passed" in run.output
    assert "At index 1 diff: {'a': 'b'} != {'a': 'c'}" in run.output
    assert run.verdict is None  # Nobody knows what else was changed.


def test_of_changed_tests_none_has_passed(native: RunNative) -> None:
    files = {
        "tests/expected.txt": "as it was\n",
        "round-1/test_a.py": "from pathlib import Path\n\ndef test_x():\n    Path('/tests/expected.txt').touch()\n",
    }
    run = native(files, pinned={"round-1/test_a.py::test_x": ""})
    assert run.verdict is not None
    assert [case.status for case in run.verdict.cases] == ["error"]
    assert not run.verdict.passed
    assert "tests/expected.txt: it was changed while the suite ran" in run.verdict.flags[0]


@pytest.mark.nightly
def test_a_directory_of_the_tests_that_was_away_for_a_while_is_noticed(native: RunNative) -> None:
    test = """
import os
from pathlib import Path

HERE = Path(__file__).parent

def test_x():
    os.rename(HERE / "data", HERE / "away")
    (HERE / "data").mkdir()
    (HERE / "data/expected.txt").write_text("forged")
    assert (HERE / "data/expected.txt").read_text() == "forged"
    (HERE / "data/expected.txt").unlink()
    (HERE / "data").rmdir()
    os.rename(HERE / "away", HERE / "data")
"""
    files = {"round-1/test_a.py": test, "round-1/data/expected.txt": "as it was\n"}
    run = native(files, pinned={"round-1/test_a.py::test_x": ""})
    assert run.verdict is not None
    assert not run.verdict.passed
    assert "round-1/tests/data: it was changed while the suite ran" in run.verdict.flags[0]


def test_processes_of_tests_may_write_caches_of_their_helpers(native: RunNative) -> None:
    test = """
import subprocess
import sys
from pathlib import Path

def test_x():
    driver = Path(__file__).with_name("driver.py")
    assert subprocess.run([sys.executable, driver], capture_output=True, text=True).stdout == "helped\\n"
    assert list(driver.with_name("__pycache__").iterdir())
"""
    files = {
        "round-1/test_a.py": test,
        "round-1/driver.py": "import helper\n",
        "round-1/helper.py": "print('helped')\n",
    }
    run = native(files)
    assert run.verdict is not None, run.fault
    assert run.verdict.passed


def test_tests_may_import_what_pytest_uses_from_the_image(native: RunNative) -> None:
    test = """
import importlib.metadata
from importlib.metadata import distributions

import pytest

def test_metadata():
    with pytest.raises(importlib.metadata.PackageNotFoundError):
        importlib.metadata.version("no such distribution")
    assert importlib.metadata.distributions is distributions

def test_pygments_is_the_images_if_it_has_one():
    try:
        import pygments
    except ImportError:
        return
    assert pygments.__file__
"""
    run = native({"round-1/test_a.py": test})
    assert run.verdict is not None, run.fault
    assert run.verdict.passed, run.output
