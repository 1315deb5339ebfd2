"""What a session says of the slots that its suites share."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.acceptance.sessions import RunTasks
    from tests.acceptance.tasks import WriteTask


def test_the_summary_says_how_busy_the_slots_were_unless_the_session_is_quiet(
    write_task: WriteTask, run_tasks: RunTasks
) -> None:
    write_task("a", 1)
    session = run_tasks("-o", "evocode_verifiers=3", "tasks")
    (line,) = (line for line in session.text.splitlines() if line.startswith("slots:"))
    assert re.fullmatch(r"slots: 3, busy \d+ % of \d+\.\d s, suites queued \d+\.\d s", line)
    # What is resumed took none of this session's time, and there is nothing left to do.
    again = run_tasks("--evocode-resume", "tasks")
    assert again.outcomes == {"passed": 1}
    again.lacks("slots:*")
    run_tasks("-q", "tasks").lacks("slots:*")
