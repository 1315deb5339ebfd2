"""``pytest --evocode-check``: suites notice the author's controls, by the requirement that each names."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import pytest

from tests.acceptance.tasks import native_test

if TYPE_CHECKING:
    from tests.acceptance.sessions import CheckTasks
    from tests.acceptance.tasks import WriteNative, WriteTask

pytestmark = pytest.mark.slow

IDLE = """
@pytest.mark.requirement("idle")
def test_idle():
    assert True
"""


def change(round_: str, old: str, new: str, breaks: str = "", table: str = "change", **more: str) -> str:
    values = {"round": round_, "file": "log.txt", "old": old, "new": new, "breaks": breaks, **more}
    return "\n".join([f"[[{table}]]", *(f"{key} = '{value}'" for key, value in values.items()), ""])


def test_what_suites_notice_of_controls(write_native: WriteNative, check_tasks: CheckTasks) -> None:
    write_native(
        "a",
        3,
        test={1: native_test(1) + IDLE},
        files={
            "controls/ends.toml": 'ends_after = "round-1"',
            "controls/noticed.toml": change("round-2", "line-1", "x", "line-1")
            + change("round-3", "line-2", "", "line-2"),
            "controls/by-another.toml": change("round-3", "line-1", "x", "line-2"),
            "controls/by-any.toml": change("round-3", "line-1", "x"),
            "controls/by-none.toml": change("round-3", "line-1", "line-1 line-1")
            + change("round-2", "line-2", "x", "idle"),
            "controls/built.toml": change("round-1", "line-1", "x line-1", "line-1", run="sed -i s/.*line-1// log.txt"),
        },
    )
    messages = check_tasks("-kcontrol").messages
    assert messages == {
        "control[by-another]": "the suites do not notice controls/by-another.toml:\n"
        "  round-3: no case of line-2 fails when log.txt is changed",
        "control[by-none]": "the suites do not notice controls/by-none.toml:\n"
        "  round-2: no case of idle fails when log.txt is changed\n"
        "  round-3 is passed",
    }


def test_mutants_are_made_one_at_a_time_and_fail_but_for_those_that_are_said_to_survive(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    """The two that are noticed change the same passage, and would hide what the next two do not break."""
    mutant = partial(change, "round-2", table="mutant")
    write_native(
        "a",
        2,
        files={
            "controls/killed.toml": mutant("line-2", "x") + mutant("line-2", "y", "line-2"),
            "controls/left.toml": mutant("line-2", "x")
            + mutant("line-2", "line-2 line-2")
            + mutant("line-2", "x", "line-1")
            + mutant("line-2", "line-2 ", survives="nobody sees it")
            + mutant("line-2", "x", survives="nobody sees it"),
        },
    )
    assert check_tasks("-kcontrol").messages == {
        "control[left]": "the suites do not notice controls/left.toml:\n"
        "  round-2 is passed (log.txt, 'line-2' -> 'line-2 line-2')\n"
        "  round-2: no case of line-1 fails when log.txt is changed (log.txt, 'line-2' -> 'x')\n"
        "  round-2: a case fails, although it survives: take `survives` out (log.txt, 'line-2' -> 'x')",
    }


def test_a_round_that_is_passed_without_its_solution_is_named(
    write_native: WriteNative, check_tasks: CheckTasks
) -> None:
    """What round 3 requires, which the second brings and the third takes back, is there after the first."""
    passing = 'import os, pytest\n\n@pytest.mark.requirement("none", retired="round-3")\ndef test_more():\n'
    write_native(
        "a",
        3,
        solve={2: "touch more", 3: "rm more"},
        test={
            2: passing + "    assert os.path.exists('more')\n",
            3: passing.replace(', retired="round-3"', "").replace("none", "no-more")
            + "    assert not os.path.exists('more')\n",
        },
        files={"controls/ends.toml": 'ends_after = "round-1"'},
    )
    assert check_tasks("-kcontrol").messages == {
        "control[ends]": "the suites do not notice controls/ends.toml:\n"
        "  round-3 is passed, although nothing was done after round-1"
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (
            change("round-1", "line-9", "x"),
            "old = 'line-9': log.txt of round-1 has it 0 times; name a passage that it has once",
        ),
        (
            change("round-1", "l", "x") + change("round-1", "e", "x", run="echo oh; exit 7"),
            "run = 'echo oh; exit 7' failed in round-1: oh",
        ),
        (change("round-7", "l", "x"), "no round is called 'round-7'; there are round-1"),
        (change("round-1", "l", "x", "tune"), "no test has the requirement 'tune', which is to break in round-1"),
        ("about = 'nothing'", "name the round that it ends_after, or a [[change]] or [[mutant]] or more"),
        ("change = 1", "change: Input should be a valid tuple"),
        ("about = ", "Invalid value (at line 1, column 9)"),
    ],
    ids=["passage", "command", "round", "requirement", "neither", "value", "toml"],
)
def test_a_control_that_is_none_says_why(
    write_native: WriteNative, check_tasks: CheckTasks, text: str, why: str
) -> None:
    task = write_native(files={"controls/wrong.toml": text})
    [(name, message)] = check_tasks("-kcontrol").messages.items()
    assert name == "control[wrong]"
    assert message.endswith(f"{task.name}/controls/wrong.toml: {why}")


def test_controls_of_a_script_are_noticed_by_its_cases(write_task: WriteTask, check_tasks: CheckTasks) -> None:
    write_task(
        "a",
        2,
        files={
            "controls/noticed.toml": change("round-2", "line-1", "x"),
            "controls/missed.toml": change("round-2", "line-1", "x", "first"),
        },
    )
    assert check_tasks("-kcontrol").messages == {
        "control[missed]": "the suites do not notice controls/missed.toml:\n"
        "  round-2: no case of first fails when log.txt is changed"
    }
