"""Rounds that do not fit together."""

from __future__ import annotations

import pytest

from tests.checks.conftest import SCRIPT, LintTask


def test_steps_in_the_order_of_letters_are_out_of_order(lint_task: LintTask) -> None:
    problems = lint_task(steps=["round-1", "round-10", "round-2", "round-3"])
    assert problems == [
        f"task.toml:{line}: {name} comes after round-10; list the steps in the order in which they are played"
        for line, name in ((6, "round-2"), (8, "round-3"))
    ]


@pytest.mark.parametrize(
    "steps",
    [["round-1", "round-2", "round-10"], ["round-2", "extra-1", "round-3"], ["setup", "build"], ["01-b", "00-a"]],
)
def test_steps_are_in_order_when_the_numbers_of_a_name_rise(lint_task: LintTask, steps: list[str]) -> None:
    assert lint_task(steps=steps) == []


def test_a_task_is_called_what_its_directory_is_called(lint_task: LintTask) -> None:
    assert lint_task(toml='[task]\nname = "evocode/ledger"\n') == []
    assert lint_task(toml='[task]\nname = "evocode/books"\n') == [
        'task.toml:2: the task is called "evocode/books" and its directory "ledger"; rename one of them'
    ]


def test_a_solution_that_only_some_rounds_have_is_missing_in_the_others(lint_task: LintTask) -> None:
    assert lint_task(without=["steps/round-2/solution/solve.sh"]) == [
        "steps/round-2/solution/solve.sh: is missing while other rounds have one, "
        "so the agent oracle cannot play the task; write it"
    ]


def test_a_task_without_solutions_is_no_mistake(lint_task: LintTask) -> None:
    assert lint_task(without=["steps/round-1/solution/solve.sh", "steps/round-2/solution/solve.sh"]) == []


def test_two_rounds_do_not_ask_for_the_same(lint_task: LintTask) -> None:
    texts = {"steps/round-1/instruction.md": "Add a flag.\n", "steps/round-3/instruction.md": "\nAdd a flag."}
    assert lint_task(texts, steps=["round-1", "round-2", "round-3"]) == [
        "steps/round-3/instruction.md:1: is the same request as round-1's; write what round-3 asks for"
    ]


def test_two_rounds_may_have_the_same_suite(lint_task: LintTask) -> None:
    assert (
        lint_task({"steps/round-1/tests/cases.txt": "1", "steps/round-2/tests/cases.txt": "1", "tests/a": SCRIPT}) == []
    )
