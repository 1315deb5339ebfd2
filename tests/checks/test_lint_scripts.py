"""Scripts have to run when they are executed directly."""

from __future__ import annotations

import pytest

from tests.checks.conftest import SCRIPT, LintTask

PYTHON = "#!/usr/bin/env python3\nprint()\n"


@pytest.mark.parametrize(
    "path",
    [
        "environment/bin/start",
        "steps/round-1/solution/solve.sh",
        "steps/round-1/solution/edit.py",
        "steps/round-2/tests/test.sh",
        "steps/round-2/workdir/setup.sh",
        "tests/lib/run.py",
    ],
)
def test_a_script_has_to_be_executable(lint_task: LintTask, path: str) -> None:
    assert lint_task({path: PYTHON}, plain=[path]) == [f"{path}:1: begins with #! but is not executable; chmod +x it"]


@pytest.mark.parametrize("text", ["#![deny(warnings)]\nfn main() {}\n", "# a comment\n", "import os\n"])
def test_a_file_that_is_no_script_need_not_be(lint_task: LintTask, text: str) -> None:
    assert lint_task({"environment/main.rs": text}, plain=["environment/main.rs"]) == []


def test_nor_has_a_module_of_the_project_that_is_given(lint_task: LintTask) -> None:
    assert lint_task({"environment/app/main.py": PYTHON}, plain=["environment/app/main.py"]) == []


@pytest.mark.parametrize(
    "path", ["steps/round-1/solution/solve.sh", "steps/round-1/tests/test.sh", "steps/round-2/workdir/setup.sh"]
)
def test_what_the_harness_runs_names_its_interpreter(lint_task: LintTask, path: str) -> None:
    assert lint_task({path: "true\n"}) == [
        f"{path}:1: does not name its interpreter; write #!/bin/bash into its first line and chmod +x it"
    ]


def test_other_shell_scripts_need_no_interpreter(lint_task: LintTask) -> None:
    assert lint_task({f"{place}.sh": "true\n" for place in ("tests/lib", "tests/lib/test", "environment/solve")}) == []


def test_carriage_returns_are_named_by_the_first_line_that_has_one(lint_task: LintTask) -> None:
    problems = lint_task({"steps/round-1/solution/solve.sh": "#!/bin/bash\ntrue\r\ntrue\r\n"})
    assert len(problems) == 1
    assert problems[0].startswith("steps/round-1/solution/solve.sh:2: ends its lines in CRLF")


def test_data_may_have_carriage_returns(lint_task: LintTask) -> None:
    assert lint_task({"environment/orders.csv": "a,b\r\n", "tests/test.sh": SCRIPT}) == []


@pytest.mark.parametrize("path", ["tests/lib/setup.sh", "steps/round-1/solution/parts/build.sh", "tests/books.py"])
def test_what_scripts_and_tests_load_is_utf8(lint_task: LintTask, path: str) -> None:
    files = {"steps/round-1/tests/test_a.py": "import books\ndef test_a(): ...\n", "tests/books.py": "B = 1\n"}
    odd = {path: "# one\n# zw\udcf6lf\n"}
    scripts = ["steps/round-1/tests/test.sh", "steps/round-2/tests/test.sh"]
    assert lint_task({**files, **odd}, without=scripts) == [f"{path}:2: not UTF-8 (byte 0xf6); save the file as UTF-8"]


def test_a_project_that_is_given_and_data_may_have_any_encoding(lint_task: LintTask) -> None:
    assert lint_task({"environment/app/old.sh": "# \udcf6\n", "tests/data/names.csv": "\udcf6\n"}) == []
