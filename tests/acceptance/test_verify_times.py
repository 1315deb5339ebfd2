"""``--evocode-verify-times``: a verdict that several runs of a suite come to."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from pytest_evocode.results.records import Repeats
from tests.acceptance.tasks import suite_up_to

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow


def test_a_suite_that_changes_its_mind_is_named_and_the_record_counts(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    """Round 1 has another case each time, and round 2 has not."""
    changing = "echo CASE_RESULT case_id=case-$RANDOM$RANDOM$RANDOM status=success\n"
    write_task("a", 2, test={1: changing + suite_up_to(1)})
    session = run_tasks("--evocode-verify-times=3", "tasks")
    assert session.outcomes == {"passed": 2}
    session.has("*a, oracle, round-1: flaky: the suite passed in 3 of 3 runs on the same workspace*")
    session.has("*case-*: passed in run 1, not there in runs 2 and 3*")
    session.has("  a oracle round-1: 3 of 3 runs of its suite passed (differing: case-*")
    assert session.record("a", "oracle").deterministic
    changed, steady = (round_.verdict for round_ in session.record("a", "oracle").rounds)
    assert changed is not None
    assert changed.repeats is not None
    assert (changed.repeats.times, changed.repeats.passed, changed.repeats.flaky) == (3, 3, True)
    assert len(changed.repeats.differing) == 3
    assert steady is not None
    assert steady.repeats == Repeats(times=3, passed=3, flaky=False)


def test_less_than_one_run_is_refused(write_task: WriteTask, run_tasks: RunTasks) -> None:
    write_task("a", 1)
    session = run_tasks("--evocode-verify-times=0", "tasks")
    assert session.exit_status == pytest.ExitCode.USAGE_ERROR
    assert "--evocode-verify-times=0: it has to be 1 or more" in session.text
