"""``evocode new``: what it writes, and what it refuses."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pytest_evocode.checks.lint import lint
from pytest_evocode.cli import main
from pytest_evocode.errors import TaskError
from pytest_evocode.tasks import load_task
from pytest_evocode.tasks.schema import SCHEMA_FILE


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def new(*arguments: str) -> Result:
    return CliRunner().invoke(main, ["new", *arguments])


def contents(directory: Path) -> dict[str, str]:
    return {str(path.relative_to(directory)): path.read_text() for path in directory.rglob("*") if path.is_file()}


def is_executable(path: Path) -> bool:
    return os.access(path, os.X_OK)


def test_it_says_what_it_made_and_what_to_run_next() -> None:
    made = new("tasks/my task's/parcels")
    assert made.exit_code == 0
    assert made.output.splitlines() == [
        "made tasks/my task's/parcels, 2 rounds verified by pytest",
        "tasks/my task's/parcels/task.toml says what is where; next:",
        """  pytest --evocode-check 'tasks/my task'"'"'s/parcels'         whether it is sound""",
        """  pytest --evocode-agent=oracle 'tasks/my task'"'"'s/parcels'  its reference solutions against its suites""",
        """  pytest --evocode-pin 'tasks/my task'"'"'s/parcels'           write down the cases that these pass""",
    ]


@pytest.mark.parametrize("rounds", [1, 2, 3, 99])
@pytest.mark.parametrize("form", ["--native", "--script"])
def test_the_task_has_as_many_rounds_as_wanted(rounds: int, form: str) -> None:
    assert new("parcels", form, f"--rounds={rounds}").exit_code == 0
    task = load_task(Path("parcels"))
    assert [round_.name for round_ in task.rounds] == [f"round-{number}" for number in range(1, rounds + 1)]
    assert all(round_.has_solution and round_.has_script == (form == "--script") for round_ in task.rounds)
    assert task.config.task is not None
    assert task.config.task.name == "your-org/parcels"
    assert task.rounds[0].agent_network == "no-network"
    assert [round_.change_types for round_ in task.rounds[:3]] == [
        ("extension",),
        ("conflict", "extension"),
        ("extension",),
    ][:rounds]


def test_each_round_has_requirements_of_its_own_and_the_second_one_retires_one() -> None:
    new("parcels", "--rounds=4")
    requirements = load_task(Path("parcels")).requirements
    assert {each.introduced for each in requirements} == {"round-1", "round-2", "round-3", "round-4"}
    assert [(each.id, each.retired) for each in requirements if each.retired] == [("price", "round-2")]


def test_one_round_has_nothing_that_could_be_retired() -> None:
    new("parcels", "--rounds=1")
    assert all(not each.retired for each in load_task(Path("parcels")).requirements)


def test_an_empty_task_lacks_what_is_to_be_filled_in_and_nothing_else() -> None:
    made = new("kv", "--empty")
    assert made.exit_code == 0
    assert made.output.splitlines() == [
        "made kv, 1 empty round verified by pytest",
        "fill in:",
        "  kv/task.toml                            the name and the description",
        "  kv/environment/Dockerfile               what the agent finds in round 1",
        "  kv/steps/round-1/instruction.md         the user's request, word for word",
        "  kv/steps/round-1/solution/project/      the reference solution's files",
        "  kv/steps/round-1/tests/test_round_1.py  what verifies the round",
        "next:",
        "  pytest --evocode-check kv         whether it is sound",
        "  pytest --evocode-agent=oracle kv  its reference solutions against its suites",
        "  evocode new kv --round            one more round, from where this one ends",
        "  pytest --evocode-pin kv           write down the cases that these pass",
    ]
    with pytest.raises(TaskError) as missing:
        load_task(Path("kv"))
    assert str(missing.value).splitlines() == [
        "kv/task.toml:30: steps[round-1].name: kv/steps/round-1/instruction.md is empty; write the request to the agent"
    ]
    Path("kv/steps/round-1/instruction.md").write_text("Keep values by their keys.\n")
    assert lint(load_task(Path("kv"))) == ["kv/steps/round-1/tests: has no test: write what the request asks for"]
    with Path("kv/steps/round-1/tests/test_round_1.py").open("a") as module:
        module.write("\n\ndef test_keeps(workspace): ...\n")
    assert lint(load_task(Path("kv"))) == []


@pytest.mark.parametrize("form", ["--native", "--script"])
def test_empty_rounds_have_no_example_in_them(form: str) -> None:
    assert new("kv", "--empty", "--rounds=2", form).exit_code == 0
    rounds = [f"steps/round-{number}" for number in (1, 2)]
    suites = ["test.sh", "test.sh"] if form == "--script" else ["test_round_1.py", "test_round_2.py"]
    each = [
        (f"{at}/instruction.md", f"{at}/solution/solve.sh", f"{at}/tests/{name}")
        for at, name in zip(rounds, suites, strict=True)
    ]
    files = contents(Path("kv"))
    assert files.keys() == {"task.toml", SCHEMA_FILE.name, "environment/Dockerfile", *each[0], *each[1]}
    assert not any("postage" in text or "parcel" in text for text in files.values())
    assert all(Path("kv", at, "solution/project").is_dir() for at in rounds)


@pytest.mark.parametrize("form", ["--native", "--script"])
def test_its_files_have_no_placeholders_left_and_its_programs_parse(form: str) -> None:
    new("parcels", form, "--rounds=3")
    for name, text in contents(Path("parcels")).items():
        if name == SCHEMA_FILE.name:
            continue
        assert text.endswith("\n")
        assert "$" not in text or name.endswith(".sh")
        assert "$$" not in text
        assert max(map(len, text.splitlines())) <= 120
        if name.endswith(".py"):
            compile(text, name, "exec")
        if name.endswith(".sh"):
            assert text.startswith("#!/bin/bash\n")
            subprocess.run(["bash", "-n", Path("parcels", name)], check=True)


def test_scripts_are_executable_and_nothing_else_is() -> None:
    new("parcels", "--script", "--rounds=3")
    executable = {str(path) for path in Path("parcels").rglob("*") if path.is_file() and is_executable(path)}
    solutions = {f"parcels/steps/round-{number}/solution/solve.sh" for number in (1, 2, 3)}
    assert executable == {"parcels/tests/test.sh", "parcels/cheat/forged-verdict.sh", *solutions}


def test_the_umask_decides_who_may_read_it() -> None:
    before = os.umask(0o022)
    try:
        new("parcels")
    finally:
        os.umask(before)
    assert Path("parcels").stat().st_mode & 0o777 == 0o755
    assert Path("parcels/task.toml").stat().st_mode & 0o777 == 0o644
    assert Path("parcels/steps/round-1/solution/solve.sh").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("name", ["a b", ".hidden", "a..b", "a:b", "päckchen", ".."])
def test_a_name_that_no_task_can_have_is_refused(name: str) -> None:
    refused = new(f"tasks/{name}/")
    assert refused.exit_code == 2
    assert f"Error: no task can be called '{name}'; use letters" in refused.output
    assert list(Path().iterdir()) == []


@pytest.mark.parametrize("what", ["directory", "file", "link"])
def test_what_exists_is_refused_and_left_alone(what: str) -> None:
    make: dict[str, Callable[[Path], None]] = {
        "directory": Path.mkdir,
        "file": Path.touch,
        "link": lambda path: path.symlink_to("nowhere"),
    }
    path = Path("parcels")
    make[what](path)
    refused = new("parcels")
    assert refused.exit_code == 2
    assert refused.output.splitlines()[-1] == "Error: parcels exists already; choose another name, or remove it"
    assert list(Path().iterdir()) == [path]
    assert contents(path) == {}


def test_a_task_that_exists_is_told_how_a_round_is_added() -> None:
    new("my-parcels")
    before = contents(Path("my-parcels"))
    refused = new("my-parcels")
    assert refused.exit_code == 2
    assert refused.output.splitlines()[-1] == (
        "Error: my-parcels exists already; choose another name, or remove it; "
        "evocode new my-parcels --round adds a round to it"
    )
    assert contents(Path("my-parcels")) == before


def test_a_task_in_a_task_is_refused() -> None:
    new("parcels")
    refused = new("parcels/steps/inner")
    assert refused.exit_code == 2
    assert f"would lie in the task {Path('parcels').absolute()};" in refused.output


@pytest.mark.parametrize("rounds", ["0", "-1", "100", "two"])
def test_a_number_of_rounds_that_cannot_be_is_refused(rounds: str) -> None:
    refused = new("parcels", "--rounds", rounds)
    assert refused.exit_code == 2
    assert "Error: Invalid value for '--rounds'" in refused.output
    assert not Path("parcels").exists()


def test_a_task_is_written_whole_or_not_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    def disk_full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", disk_full)
    refused = new("tasks/parcels")
    assert refused.exit_code == 1
    assert refused.output == "Error: tasks/parcels cannot be written: No space left on device\n"
    assert list(Path("tasks").iterdir()) == []


def test_a_place_that_cannot_be_written_to_is_one_clear_message() -> None:
    Path("tasks").touch()
    refused = new("tasks/parcels")
    assert refused.exit_code == 1
    assert refused.output.startswith("Error: tasks/parcels cannot be written: ")


def test_the_installed_command_finds_its_templates() -> None:
    evocode = Path(sys.executable).with_name("evocode")
    said = subprocess.run([evocode, "new", "parcels", "--rounds=3"], check=True, capture_output=True, text=True)
    assert said.stdout.startswith("made parcels, 3 rounds")
    ours = contents(Path("parcels"))
    new("again/parcels", "--rounds=3")
    assert contents(Path("again/parcels")) == ours


def test_a_script_says_what_state_is_for() -> None:
    assert new("parcels", "--script").exit_code == 0
    assert {round_.verify_in for round_ in load_task(Path("parcels")).rounds} == {"clean"}
    assert "state = []" in Path("parcels/task.toml").read_text()
