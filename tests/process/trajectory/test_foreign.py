"""Trajectories of other harnesses: the directory that was worked in, scratch files, and edits that no one recorded."""

from __future__ import annotations

import pytest

from pytest_evocode.process.attempts import score_round
from pytest_evocode.process.trajectory.reader import TaskContext, inferred_workdir, unseen_edits
from tests.process.trajectories import BUDGET, Recording, read


def edited(*paths: str) -> Recording:
    recording = Recording(files={})
    for path in paths:
        recording.call("Write", {"file_path": path, "content": BUDGET})
    return recording


@pytest.mark.parametrize(
    ("recording", "workdir"),
    [
        (edited("/testbed/ledger.py", "/testbed/src/report.py"), "/testbed"),
        (edited("/work/shop/src/cart.py"), "/work/shop"),
        (edited("/testbed/a/b.py").bash("cd /testbed && ls"), "/testbed"),
        (edited("/tmp/try.py"), None),
        (edited("ledger.py"), None),
    ],
)
def test_the_directory_that_was_worked_in(recording: Recording, workdir: str | None) -> None:
    assert inferred_workdir([recording.trajectory()]) == workdir


def test_absolute_paths_are_the_products_and_scratch_files_are_not() -> None:
    recording = edited("/testbed/tests/test_a.py", "/testbed/try_it.py", "/tmp/look.py")
    recording.call("Edit", {"file_path": "/testbed/ledger.py", "old_string": "a", "new_string": "b"})
    (activity,) = read(recording, context=TaskContext())
    process = score_round(activity)
    assert process.edited
    # Nothing imports or names the script beside the product, and the other one lies outside.
    assert {edit.path for edit in activity.working_edits} == {"ledger.py"}


def test_scripts_that_write_files_are_counted() -> None:
    script = "python3 - <<'EOF'\nfrom pathlib import Path\nPath('a.py').write_text('x')\nEOF"
    recording = Recording().bash(script).bash("python3 -c 'print(1)'").bash("cat a.py")
    assert unseen_edits([recording.trajectory()]) == 1
