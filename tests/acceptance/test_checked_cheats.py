"""``pytest --evocode-check``: cheats score nothing, and what was checked before is not checked again."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.acceptance.tasks import suite_up_to

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks
    from tests.acceptance.tasks import WriteTask

pytestmark = pytest.mark.slow

ADVICE = "have the tests look at what only the work that was asked for gives"
WITHOUT = f"an untouched workspace does not; {ADVICE}"


def test_cheats_that_score_are_found_and_others_are_not(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    """A script of the author's that writes the line scores, a forged reward does not; nor do tests count programs."""
    there = 'test -e tool.py && s=success || s=fail; echo "CASE_RESULT case_id=there status=$s"\n'
    write_task(
        "a",
        2,
        solve={1: "echo line-1 >> log.txt; echo 'print(1)' > tool.py"},
        test={1: there + suite_up_to(1), 2: there + suite_up_to(2)},
        files={
            "cheat/lines.sh": "echo line-1 > log.txt",
            "cheat/forged.sh": "mkdir -p /logs/verifier /tests; echo 1 > /logs/verifier/reward.txt; cat /cheat/*.sh",
            "cheat/broken.sh": "echo oh; exit 3",
            "cheat/round-2/both.sh": "test $EVOCODE_ROUND = round-2 && sed -i s/1/2/ log.txt",
        },
    )
    checked = check_tasks("-kcheat")
    messages = checked.messages
    assert messages.pop("cheat[lines]") == (f"cheat/lines.sh scores in round-2 what {WITHOUT}:\n  has-line-1")
    assert messages.pop("cheat[round-2/both]") == (
        f"cheat/round-2/both.sh scores in round-2 what the workspace as it was before does not; {ADVICE}:\n  has-line-2"
    )
    assert messages.pop("cheat[broken]").endswith(
        "cheat/broken.sh: the cheat ended with exit code 3 in round-2; correct it. Its last lines:\noh"
    )
    assert {name: message.partition(" (")[0] for name, message in messages.items()} == {
        "cheat[exit-zero]": "the generic cheat exit-zero",
        "cheat[stubs]": "the generic cheat stubs",
    }
    assert all(message.endswith(f"scores in round-2 what {WITHOUT}:\n  there") for message in messages.values())
    assert [name for name, outcome in checked.outcomes.items() if outcome == "passed"] == [
        "cheat[hard-coded]",  # Nothing shows an output.
        "cheat[patched-assert]",
        "cheat[shadowed-tests]",
        "cheat[shadowed-pytest]",
        "cheat[shadowed-modules]",
        "cheat[forged]",
    ]


@pytest.mark.nightly
def test_what_was_passed_is_shown_as_cached_until_something_changes(
    write_task: WriteTask, check_tasks: CheckTasks
) -> None:
    # Other tests of the session, which share the cache, may have checked tasks that are like it otherwise.
    task = write_task("a", 2, toml="# of this test alone", solve={2: "true"})
    selection = ("-v", "-kneeds-work or oracle or nop")

    def cached(*more: str) -> list[str]:
        checked = check_tasks(*selection, *more, anew=False)
        return [
            line.split("::check::")[1].split()[0]
            for line in checked.session.result.outlines
            if "PASSED (cached)" in line
        ]

    assert cached() == []
    assert cached() == ["nop", "needs-work[round-1]"]  # The others have failed.
    (task / "steps/round-2/solution/solve.sh").write_text("echo line-2 >> log.txt")
    assert cached() == ["needs-work[round-1]"]
    assert cached("--cache-clear") == []  # Although all have passed.
