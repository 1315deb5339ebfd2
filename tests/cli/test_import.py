"""``evocode import``: what it prints, and what it refuses; what it makes is tested with the formats."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pytest_evocode.tasks.lockfile import content_hash
from tests.cli.conftest import Evocode
from tests.tasks.foreign.slopcodebench_problem import CONFIG, PROBLEM


@pytest.fixture
def problem(tmp_path: Path) -> Path:
    """The small problem, at ``problems/adder``."""
    for place, text in PROBLEM.items():
        path = tmp_path / "problems/adder" / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Path("problems/adder")


def test_it_prints_its_report_and_what_to_run_next(evocode: Evocode, problem: Path) -> None:
    ran = evocode("import", "slopcodebench", problem, "--to", "tasks/adder")
    assert ran.status == 0
    assert ran.lines[0] == "not carried over as it was:"
    assert "problems/adder/config.yaml:12: inspiration: has no counterpart here" in ran.lines
    assert ran.lines[-3:] == [
        "made tasks/adder from SlopCodeBench; tasks/adder/IMPORT.md has this report; next:",
        "pytest --evocode-check tasks/adder whether it is sound",
        "pytest --evocode-agent=oracle tasks/adder its reference solutions against its suites",
    ]


def test_the_report_is_no_part_of_the_task(evocode: Evocode, problem: Path, tmp_path: Path) -> None:
    evocode("import", "slopcodebench", problem, "--to", "adder")
    before = content_hash(tmp_path / "adder")
    (tmp_path / "adder/IMPORT.md").unlink()
    assert content_hash(tmp_path / "adder") == before


def test_paths_of_the_host_are_not_in_the_report(evocode: Evocode, problem: Path, tmp_path: Path) -> None:
    evocode("import", "slopcodebench", problem.absolute(), "--to", tmp_path / "adder")
    assert str(tmp_path) not in (tmp_path / "adder/IMPORT.md").read_text()


def test_without_a_solution_the_oracle_has_nothing_to_play(evocode: Evocode, tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text("id: a\ncategory: planning\ndescription: Plan it.\n")
    ran = evocode("import", "rigorbench", "task.yaml", "--to", "planned")
    assert ran.status == 0
    assert ran.lines[-1] == "pytest --evocode-check planned whether it is sound"


def test_mistakes_are_one_message(evocode: Evocode, problem: Path, tmp_path: Path) -> None:
    (tmp_path / problem / "config.yaml").write_text(CONFIG.replace("timeout: 20", "timeout: soon"))
    ran = evocode("import", "slopcodebench", problem, "--to", "tasks/adder")
    assert (ran.status, ran.out) == (1, "")
    assert ran.err == "Error: problems/adder/config.yaml:10: timeout: must be a positive number\n"
    assert [*(tmp_path / "tasks").iterdir()] == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("slopcodebench", "problems/adder", "--to", "problems"), "problems exists already; choose another name"),
        (("slopcodebench", "problems/adder", "--to", "a b"), "no task can be called 'a b'"),
        (("slopcodebench", "problems/none", "--to", "a"), "'problems/none' does not exist"),
        (("slopcodebench", "problems", "--to", "a"), "problems: slopcodebench takes one problem's directory"),
        (("slopcodebench", "problems/adder"), "Missing option '--to'"),
        (("slopcodebench", "--to", "a"), "Missing argument 'PATH...'"),
        (
            ("slopcode", "problems/adder", "--to", "a"),
            "'slopcode' is not one of 'slopcodebench', 'harbor', 'rigorbench'",
        ),
        (("harbor", "problems/adder", "--to", "a"), "this looks like slopcodebench"),
        (("harbor", "one", "--to", "a"), "harbor takes two or more directories with a task.toml"),
        (("rigorbench", "one", "--to", "a"), "rigorbench takes one task.yaml, or the directory that it is in"),
    ],
)
def test_a_wrong_call_is_refused(
    evocode: Evocode, problem: Path, tmp_path: Path, arguments: tuple[str, ...], message: str
) -> None:
    (tmp_path / "one").mkdir()
    (tmp_path / "one/task.toml").touch()
    ran = evocode("import", *arguments)
    assert (ran.status, ran.out) == (2, "")
    assert message in " ".join(ran.err.split())
    assert {path.name for path in tmp_path.iterdir()} == {"problems", "one"}


def test_a_disk_that_is_full_leaves_nothing(
    evocode: Evocode, problem: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "rename", full)
    ran = evocode("import", "slopcodebench", problem, "--to", "tasks/adder")
    assert (ran.status, ran.err) == (1, "Error: tasks/adder cannot be read or written: No space left on device\n")
    assert [*(tmp_path / "tasks").iterdir()] == []


def test_new_from_another_benchmark_is_the_same(evocode: Evocode, problem: Path, tmp_path: Path) -> None:
    earlier = evocode("import", "slopcodebench", problem, "--to", "one/adder")
    ran = evocode("new", "two/adder", "--from", "slopcodebench", problem)
    assert (ran.status, ran.out) == (0, earlier.out.replace("one/adder", "two/adder"))
    assert content_hash(tmp_path / "two/adder") == content_hash(tmp_path / "one/adder")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--from=harbor"], "--from=harbor needs the PATH of what to import"),
        (["problems"], "problems: a PATH goes with --from=FORMAT"),
        (["--from=harbor", "problems", "--rounds=2"], "--from makes what harbor has; leave out --rounds"),
        (["--from=harbor", "problems", "--script"], "leave out --native or --script"),
        (["--from=harbor", "problems", "--round"], "leave out --round"),
    ],
)
@pytest.mark.usefixtures("problem")
def test_what_does_not_go_with_from_is_refused(evocode: Evocode, arguments: list[str], message: str) -> None:
    ran = evocode("new", "made", *arguments)
    assert (ran.status, message in " ".join(ran.err.split())) == (2, True)
