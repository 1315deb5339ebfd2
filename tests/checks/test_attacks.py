"""Files that try to score without the work: what each generic cheat lays into the workspace."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.checks.attacks import ATTACKS, GENERIC, Visible, examples_in, stub_of

pytestmark = pytest.mark.turns(2)

INSTRUCTION = """Write `/app/ledger.py`. `python3 /app/ledger.py balance sample.journal` must print exactly

```
  12.00  Assets
```

and `python3 /app/ledger.py register sample.journal`

```text
2024-01-01 Start
```
"""
SOLUTION = b'''"""Sums."""
import sys

LIMIT = 3


class Books:
    total = 0

    def add(self, amount):
        self.total += amount


def main(argv):
    print(argv)
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv))
'''
VISIBLE = Visible(
    workspace={"sample.journal": b"...", "old.py": b"print(1)", "run": b"#!/bin/bash\necho 1", "README.md": b"# Old"},
    solved={
        "sample.journal": b"...",
        "old.py": b"print(1)",
        "run": b"#!/bin/bash\necho 1",
        "README.md": b"# New",
        "ledger.py": SOLUTION,
        "rates.csv": b"1,2",
    },
    instructions=[INSTRUCTION],
    tests=["conftest.py", "test_books.py", "answers/books.py", "old.py", "test.sh", "expected.txt"],
)


def run(directory: Path, files: Mapping[str, str], *command: str) -> tuple[int, str]:
    for path, text in files.items():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text)
    done = subprocess.run([sys.executable, *command], cwd=directory, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout


def test_exit_zero_is_every_program_and_module_of_workspace_and_solution(tmp_path: Path) -> None:
    files = GENERIC["exit-zero"](VISIBLE)
    assert sorted(files) == ["ledger.py", "old.py", "run"]
    assert files["run"] == "#!/bin/sh\nexit 0\n"
    assert run(tmp_path, files, "ledger.py", "balance", "books.journal") == (0, "")
    assert run(tmp_path, files, "-c", "import ledger; print('not reached')") == (0, "")


@pytest.mark.parametrize(
    ("command", "printed"),
    [
        ("balance sample.journal", "  12.00  Assets\n"),
        ("register sample.journal", "2024-01-01 Start\n"),
        ("register books.journal", "2024-01-01 Start\n"),  # As like as any example.
        ("check books.journal", ""),
    ],
)
def test_hard_coded_outputs_are_those_of_the_example_that_is_most_alike(
    tmp_path: Path, command: str, printed: str
) -> None:
    files = GENERIC["hard-coded"](VISIBLE)
    assert run(tmp_path, files, "ledger.py", *command.split()) == (0, printed)


def test_examples_are_blocks_after_a_command_and_prompts_with_what_follows() -> None:
    shown = "```console\n$ tool now\n12:00\n$ tool tomorrow\n```\nOr `just words` and `tool 'a b' c`:\n~~~\nx\ny\n~~~\n"
    assert examples_in(shown) == [(["tool", "now"], "12:00\n"), (["tool", "a b", "c"], "x\ny\n")]
    assert examples_in("No block, `tool now`.") == []
    assert GENERIC["hard-coded"](replace(VISIBLE, instructions=[])) == {}


def test_stubs_have_the_names_of_the_solution_and_do_nothing(tmp_path: Path) -> None:
    files = GENERIC["stubs"](VISIBLE)
    assert sorted(files) == ["ledger.py", "rates.csv"]  # What was there and is no module stays as it was.
    assert files["rates.csv"] == ""
    assert run(tmp_path, files, "ledger.py", "balance") == (0, "")
    looked = "import ledger; print(ledger.main([]), ledger.Books().add(1), hasattr(ledger, 'LIMIT'))"
    assert run(tmp_path, files, "-c", looked) == (0, "None None False\n")


def test_a_solution_that_is_no_python_has_an_empty_stub() -> None:
    assert stub_of(b"def (:") == ""


def test_names_of_tests_are_taken_where_nothing_lies_yet(tmp_path: Path) -> None:
    files = GENERIC["shadowed-tests"](VISIBLE)
    assert {"conftest.py", "test_books.py", "tests/test_books.py", "books.py", "tests/answers/books.py"} <= files.keys()
    assert "old.py" not in files
    assert "expected.txt" not in files
    looked = "import books; print(books.ANSWERS == 3, books.read('x')[0:1] if 0 else books.read('x') != 4)"
    assert run(tmp_path, files, "-c", looked) == (0, "True False\n")


def test_a_patched_assert_has_a_failing_test_of_the_workspace_pass(tmp_path: Path) -> None:
    """Where pytest is started in the workspace as it is, that is so; it shows that the cheat is none in name only."""
    files = {**GENERIC["patched-assert"](VISIBLE), "test_wrong.py": "def test_wrong():\n    assert 1 == 2\n"}
    status, output = run(tmp_path, files, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir=.")
    assert (status, "1 passed" in output) == (0, True)


@pytest.mark.parametrize("name", ["shadowed-pytest", "shadowed-modules"])
def test_modules_in_the_workspace_are_run_in_place_of_pytest(tmp_path: Path, name: str) -> None:
    subprocess.run(["bash", "-c", ATTACKS[name].script], cwd=tmp_path, check=True)
    assert run(tmp_path, {}, "-m", "pytest", "no-such-test.py") == (0, "")
    assert run(tmp_path, {}, "-P", "-m", "pytest", "no-such-test.py")[0] == 4


def test_a_conftest_above_all_tests_has_a_failing_one_pass(tmp_path: Path) -> None:
    script = ATTACKS["root-conftest"].script.replace(" /", f" {tmp_path}/").replace("=/", f"={tmp_path}")
    subprocess.run(["bash", "-c", script], check=True)
    files = {"tests/test_wrong.py": "def test_wrong():\n    assert 1 == 2\n"}
    status, output = run(tmp_path, files, "-m", "pytest", "-q", "-p", "no:cacheprovider", "tests/test_wrong.py")
    assert (status, "1 passed" in output) == (0, True)
