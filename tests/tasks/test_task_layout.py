"""Every mistake in a task's directories is a TaskError that names the path to create or remove."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_evocode.errors import BuildError, TaskError
from pytest_evocode.tasks import load_task

WriteTask = Callable[..., Path]


def refusal(directory: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_task(directory)
    return caught.value


def test_a_missing_instruction_names_the_path_and_the_entry(write_task: WriteTask) -> None:
    directory = write_task(without=["steps/round-2/instruction.md"])
    error = refusal(directory)
    assert (error.path, error.line) == (directory / "task.toml", 4)
    assert f"steps[round-2].name: the round has no instruction; create {directory}/steps/round-2/instruction.md" in str(
        error
    )


def test_a_missing_instruction_of_a_single_step_task_names_the_path(write_task: WriteTask) -> None:
    directory = write_task("", steps=(), without=["instruction.md"])
    assert f"the round has no instruction; create {directory}/instruction.md" in str(refusal(directory))


@pytest.mark.parametrize("text", ["", " \n\t\n"])
def test_an_empty_instruction_is_refused(write_task: WriteTask, text: str) -> None:
    error = refusal(write_task(files={"steps/round-1/instruction.md": text}))
    assert "steps/round-1/instruction.md is empty; write the request to the agent" in str(error)
    assert error.line == 2


def test_an_instruction_of_one_word_is_enough(write_task: WriteTask) -> None:
    assert load_task(write_task(files={"steps/round-1/instruction.md": "Go"})).rounds


def test_an_instruction_must_be_a_file(write_task: WriteTask) -> None:
    directory = write_task(without=["steps/round-1/instruction.md"])
    (directory / "steps/round-1/instruction.md").mkdir()
    assert "instruction.md must be a file" in str(refusal(directory))


def test_a_round_without_a_suite_says_what_to_write(write_task: WriteTask) -> None:
    directory = write_task(
        without=["steps/round-1/tests/test.sh"], files={"steps/round-1/tests/ledger_test.py": "", "tests/lib.sh": ""}
    )
    error = refusal(directory)
    assert f"nothing verifies the round; write {directory}/steps/round-1/tests/test.sh" in str(error)
    assert f"or {directory}/steps/round-1/tests/test_*.py for pytest" in str(error)
    assert error.line == 2


def test_a_single_step_task_needs_a_suite_too(write_task: WriteTask) -> None:
    directory = write_task("", steps=(), without=["tests/test.sh"])
    assert f"write {directory}/tests/test.sh" in str(refusal(directory))


def test_a_suite_that_is_a_directory_is_no_suite(write_task: WriteTask) -> None:
    directory = write_task(without=["steps/round-1/tests/test.sh"])
    (directory / "steps/round-1/tests/test.sh").mkdir(parents=True)
    assert "nothing verifies the round" in str(refusal(directory))


def test_a_task_needs_something_to_run_in(write_task: WriteTask) -> None:
    directory = write_task(without=["environment/Dockerfile"])
    message = f"create {directory}/environment/Dockerfile or set docker_image in [environment]"

    def is_refused() -> None:
        """When it is run; it is loaded with a warning."""
        task = load_task(directory, unknown_keys="ignore")
        assert message in str(*task.unread)
        with pytest.raises(BuildError, match=re.escape(message)):
            task.dockerfile_to_build()

    is_refused()
    (directory / "environment" / "Dockerfile").mkdir(parents=True)
    is_refused()


@pytest.mark.parametrize("toml", ['[[steps]]\nname = "round-1"\n', ""])
def test_a_step_directory_needs_an_entry(write_task: WriteTask, toml: str) -> None:
    files = {"instruction.md": "Go", "tests/test.sh": "true"}
    error = refusal(write_task(toml, files=files))
    message = 'steps/round-2/ has no entry; add [[steps]] with name = "round-2" or remove the directory'
    assert message in str(error)


@pytest.mark.parametrize("steps", [("round-1",), ()])
def test_an_entry_needs_a_directory(write_task: WriteTask, steps: tuple[str, ...]) -> None:
    directory = write_task(steps=steps, files={"tests/test.sh": "true"})
    error = refusal(directory)
    message = f"steps[round-2].name: there is no directory for this step; create {directory}/steps/round-2"
    assert message in str(error)
    assert str(error).splitlines()[-1].startswith(f"{directory}/task.toml:4: ")


def test_a_file_is_no_step_directory(write_task: WriteTask) -> None:
    directory = write_task(steps=("round-1",), files={"steps/round-2": ""})
    assert "there is no directory for this step" in str(refusal(directory))


def test_a_step_directory_may_be_a_link(write_task: WriteTask) -> None:
    directory = write_task(steps=("round-1",))
    (directory / "steps" / "round-2").symlink_to("round-1")
    assert len(load_task(directory).rounds) == 2


def test_the_task_s_solution_is_that_of_steps_without_their_own(write_task: WriteTask) -> None:
    directory = write_task(without=["steps/round-2/solution/solve.sh"], files={"solution/solve.sh": "true\n"})
    own, shared = load_task(directory).rounds
    assert (own.solution, shared.solution) == (directory / "steps/round-1/solution", directory / "solution")
    assert own.has_solution
    assert shared.has_solution


@pytest.mark.parametrize(
    "files",
    [{"solution/notes.md": "x"}, {"solution/solve.sh": "true\n", "steps/round-2/solution/notes.md": "x"}],
    ids=["of the task", "of the step"],
)
def test_a_solution_without_its_script_serves_no_step(write_task: WriteTask, files: dict[str, str]) -> None:
    directory = write_task(without=["steps/round-2/solution/solve.sh"], files=files)
    assert [round_.solution is not None for round_ in load_task(directory).rounds] == [True, False]


@pytest.mark.parametrize("extra", ["steps/round-1/solution/notes.md", "steps/round-1/solution"])
def test_a_solution_without_its_script_is_none(write_task: WriteTask, extra: str) -> None:
    task = load_task(write_task(without=["steps/round-1/solution/solve.sh"], files={extra: "x"}))
    assert [round_.solution is not None for round_ in task.rounds] == [False, True]


def test_a_step_may_have_a_name_that_harbor_takes(write_task: WriteTask) -> None:
    task = load_task(write_task('[[steps]]\nname = "First step (é), v1.2"\n', steps=["First step (é), v1.2"]))
    assert [round_.name for round_ in task.rounds] == ["First step (é), v1.2"]


def test_a_workdir_must_be_a_directory(write_task: WriteTask) -> None:
    error = refusal(write_task(files={"steps/round-2/workdir": "x"}))
    assert "steps/round-2/workdir must be a directory" in str(error)


def test_all_directory_problems_are_one_error(write_task: WriteTask) -> None:
    error = refusal(write_task(without=["steps/round-1/instruction.md", "steps/round-2/tests/test.sh"]))
    lines = str(error).splitlines()
    assert len(lines) == 2
    assert "task.toml:2: steps[round-1]" in lines[0]
    assert "task.toml:4: steps[round-2]" in lines[1]


def test_a_directory_that_cannot_be_read_is_a_task_error(write_task: WriteTask) -> None:
    directory = write_task(without=["steps/round-1/instruction.md"])
    (directory / "steps/round-1/instruction.md").symlink_to("instruction.md")
    assert "instruction.md: cannot be read" in str(refusal(directory))


@pytest.mark.parametrize("name", ["instructions.md", "Instruction.md", "instruction.txt"])
def test_an_instruction_under_a_name_that_is_nearly_right_is_named(write_task: WriteTask, name: str) -> None:
    directory = write_task()
    round_ = directory / "steps/round-2"
    (round_ / "instruction.md").rename(round_ / name)
    assert f"the round has no instruction; create {round_}/instruction.md, or rename {name} there" in str(
        refusal(directory)
    )


def test_a_task_whose_steps_were_forgotten_is_told_so_at_what_names_one(write_task: WriteTask) -> None:
    directory = write_task(toml='[[metadata.requirement_chain.steps]]\nstep = "round-2"\nchange_types = ["conflict"]\n')
    assert str(refusal(directory)) == (
        f'{directory}/task.toml:2: metadata.requirement_chain.steps[#1].step: no step is called "round-2"; '
        'add [[steps]] with name = "round-2", or, in a task of one round, call it round-1'
    )
