"""What suites write where no later suite finds it."""

from __future__ import annotations

import pytest

from tests.checks.conftest import LintTask

STATE = '[metadata.evocode]\nverifier_state = ["/var/verifier"]\n'
SCRIPT = "steps/round-1/tests/test.sh"
MODULE = "steps/round-2/tests/cases.py"


def note(path: str, line: int, written: str) -> str:
    return (
        f"{path}:{line}: writes {written}, which is gone when the suite has ended; where a later suite needs it, name "
        "its directory in verifier_state of [metadata.evocode], else write below /tmp"
    )


@pytest.mark.parametrize(
    "line",
    [
        "echo 1 >> /var/verifier/seen",
        'echo 1 >"/var/verifier/seen"',
        "mkdir -p /var/verifier/seen",
        "date | tee -a /var/verifier/seen",
        "touch /var/verifier/seen",
    ],
)
def test_a_script_that_keeps_something_for_later_is_noted(lint_task: LintTask, line: str) -> None:
    assert lint_task({SCRIPT: f"#!/bin/bash\n{line}\n"}) == [note(SCRIPT, 2, "/var/verifier/seen")]
    assert lint_task({SCRIPT: f"#!/bin/bash\n{line}\n"}, toml=STATE) == []


@pytest.mark.parametrize(
    "line",
    [
        'open("/var/verifier/seen", "a")',
        'os.makedirs("/var/verifier/seen")',
        'Path("/var/verifier/seen").write_text("")',
    ],
)
def test_a_module_that_keeps_something_for_later_is_noted(lint_task: LintTask, line: str) -> None:
    assert lint_task({MODULE: f"\n{line}\n"}) == [note(MODULE, 2, "/var/verifier/seen")]
    assert lint_task({MODULE: f"\n{line}\n"}, toml=STATE) == []


@pytest.mark.parametrize(
    "line",
    [
        "echo 1 > /logs/verifier/reward.txt",
        "python3 -m ledger > /tmp/out 2>/dev/null",
        "touch /app/touched",
        "grep -c '<a>/var/x' page.html",
        "# echo 1 > /var/verifier/seen",
        "cat < /var/verifier/seen",
    ],
)
def test_what_a_suite_may_well_write_is_not_noted(lint_task: LintTask, line: str) -> None:
    assert lint_task({SCRIPT: f"#!/bin/bash\n{line}\n"}) == []


def test_a_task_of_one_round_has_no_later_suite(lint_task: LintTask) -> None:
    assert lint_task({SCRIPT: "#!/bin/bash\ntouch /var/seen\n"}, steps=["round-1"]) == []
