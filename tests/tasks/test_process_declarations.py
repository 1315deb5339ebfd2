"""``[metadata.evocode.process]``: read once, and every mistake in it is shown with file, line and what to do."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import DeclaredRequirement, load_task

WriteTask = Callable[..., Path]

STEPS = '[[steps]]\nname = "round-1"\n[[steps]]\nname = "round-2"\n'
DECLARED = (
    STEPS
    + """
[metadata.evocode.process]
category = "know-when-to-fold"
build = "make"
test = "make check"
source = "src/**/*.c"
tests = ["tests/", "src/**/test_*.c"]
abstain = { round-2 = "impossible" }

[[metadata.evocode.process.requirements]]
id = "totals"
text = "The total of every account is printed."

[[metadata.evocode.process.requirements]]
id = "budget"
text = "A month has a budget."
round = "round-2"
"""
)


def process(text: str) -> str:
    return f"{STEPS}[metadata.evocode.process]\n{text}\n"


def refusal(directory: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    return caught.value


def test_a_task_says_what_cannot_be_found_out(write_task: WriteTask) -> None:
    declared = load_task(write_task(DECLARED)).process
    assert declared.category == "know-when-to-fold"
    assert (declared.build, declared.test) == ("make", "make check")
    assert (declared.source, declared.tests) == (("src/**/*.c",), ("tests/", "src/**/test_*.c"))
    assert declared.requirements[1] == DeclaredRequirement(id="budget", text="A month has a budget.", round="round-2")


def test_one_round_may_be_impossible_and_the_others_not(write_task: WriteTask) -> None:
    declared = load_task(write_task(DECLARED)).process
    assert declared.abstention("round-1") is None
    assert declared.abstention("round-2") == "impossible"


def test_a_text_for_abstain_is_meant_for_all_rounds(write_task: WriteTask) -> None:
    declared = load_task(write_task(process('abstain = "ambiguous"'))).process
    assert {declared.abstention("round-1"), declared.abstention("round-2")} == {"ambiguous"}


def test_a_task_may_declare_nothing(write_task: WriteTask) -> None:
    declared = load_task(write_task()).process
    assert (declared.category, declared.requirements, declared.source) == (None, (), ())
    assert declared.abstention("round-1") is None


@pytest.mark.parametrize(
    ("text", "key", "near"),
    [
        ('catgory = "doom-loop"', "metadata.evocode.process.catgory", "category"),
        ('bulid = "make"', "metadata.evocode.process.bulid", "build"),
        (
            'requirements = [{ id = "a", text = "b", rond = "x" }]',
            "metadata.evocode.process.requirements[#1].rond",
            "round",
        ),
    ],
)
def test_an_unknown_key_is_shown_with_the_nearest_known_one(
    write_task: WriteTask, text: str, key: str, near: str
) -> None:
    directory = write_task(process(text))
    (error,) = load_task(directory, unknown_keys="ignore").unread
    assert str(error).startswith(f'{directory}/task.toml:6: {key}: unknown key; did you mean "{near}"?')


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('category = "hard"', 'process.category: must be "plan-then-build", "verify-or-die", "doom-loop", '),
        ("build = 3", "process.build: must be text in quotes, not 3"),
        ('test = ""', "process.test: must be text that is not empty"),
        ('source = ["/src"]', 'process.source[#1]: must be a glob relative to the working directory such as "src/'),
        ('tests = ["../x"]', 'process.tests[#1]: must be a glob relative to the working directory such as "src/'),
        ('abstain = "never"', 'process.abstain: must be "impossible" or "ambiguous", or a table of them by round'),
        ("abstain = {}", 'process.abstain: must be "impossible" or "ambiguous", or a table of them by round'),
        ('abstain = { round-9 = "impossible" }', 'no round is called "round-9"; the rounds are round-1, round-2'),
        ('requirements = ["a"]', "process.requirements[#1]: must be a table"),
        ('requirements = [{ id = "a" }]', "process.requirements[#1].text: is missing; add it"),
        ('requirements = [{ id = "a", text = "b", round = "x" }]', 'requirements[#1].round: no round is called "x"'),
        (
            'requirements = [{ id = "a", text = "b" }, { id = "a", text = "c" }]',
            "requirements[#2].id: entry 1 has the same id; every requirement needs its own",
        ),
    ],
)
def test_a_wrong_value_is_shown_with_what_is_wanted(write_task: WriteTask, text: str, message: str) -> None:
    error = refusal(write_task(process(text)))
    assert message in str(error)
    assert error.line == 6
    assert "\n" not in str(error)
