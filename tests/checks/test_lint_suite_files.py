"""Tests that would never run."""

from __future__ import annotations

import pytest

from pytest_evocode.checks.catalogue import CheckWarning
from tests.checks.conftest import LintTask

TEST = "def test_total():\n    assert True\n"
SCRIPTS = ["steps/round-1/tests/test.sh", "steps/round-2/tests/test.sh"]
FIRST = {"steps/round-1/tests/test_first.py": TEST}


def runs(command: str) -> str:
    return f"#!/bin/bash\n{command}\n"


@pytest.mark.parametrize(
    ("name", "better"),
    [
        ("total_test.py", "test_total.py"),
        ("tests_total.py", "test_total.py"),
        ("test-total.py", "test_total.py"),
        ("total-tests.py", "test_total.py"),
        ("Test_total.py", "test_total.py"),
        ("tests.py", "test_cases.py"),
        ("zones.py", "test_zones.py"),
        ("latest.py", "test_latest.py"),
    ],
)
@pytest.mark.parametrize("place", ["steps/round-2/tests", "tests", "tests/deeper"])
def test_a_native_suite_has_only_what_pytest_collects(lint_task: LintTask, place: str, name: str, better: str) -> None:
    assert lint_task({**FIRST, f"{place}/{name}": TEST}, without=SCRIPTS) == [
        f"{place}/{name}: holds tests that never run, because pytest collects test_*.py; rename it {better}"
    ]


def test_a_word_in_another_module_does_not_run_the_tests_of_a_file_of_that_name(lint_task: LintTask) -> None:
    first = {"steps/round-1/tests/test_first.py": f'"""What holds since round 1."""\n\n{TEST}'}
    test = f'import pytest\n\n@pytest.mark.requirement("R2")\n{TEST}'
    assert lint_task({**first, "steps/round-2/tests/since.py": test}, without=SCRIPTS) == [
        "steps/round-2/tests/since.py: holds tests that never run, because pytest collects test_*.py; "
        "rename it test_since.py"
    ]


@pytest.mark.parametrize(
    "imports",
    ["import since", "from since import (\n    test_total,\n)", "from . import since", 'pytest_plugins = ["since"]'],
)
def test_a_module_that_others_import_may_have_functions_of_any_name(lint_task: LintTask, imports: str) -> None:
    first = {"steps/round-1/tests/test_first.py": f"{imports}\n\n{TEST}"}
    assert lint_task({**first, "steps/round-1/tests/since.py": TEST}, without=SCRIPTS) == []


def test_a_module_is_not_to_be_renamed_over_another_one(lint_task: LintTask) -> None:
    files = {**FIRST, "tests/total_test.py": TEST, "tests/test_total.py": TEST}
    assert lint_task(files, without=SCRIPTS) == [
        "tests/total_test.py: holds tests that never run, because pytest collects test_*.py; move them to test_total.py"
    ]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("test_total.py", TEST),
        ("conftest.py", TEST),
        ("journals.py", "def make_journal():\n    return []\n"),
        ("total_test.py", "BOOKS = 3\n"),
        ("total_test.py", "def test_(:\n"),
        ("total_test.txt", TEST),
    ],
)
def test_other_files_may_lie_beside_native_tests(lint_task: LintTask, name: str, text: str) -> None:
    assert lint_task({**FIRST, f"steps/round-2/tests/{name}": text}, without=SCRIPTS) == []


def test_tests_to_inherit_run_where_they_are_inherited(lint_task: LintTask) -> None:
    shared = "class TestBooks:\n    def test_open(self): ...\n"
    user = "from books_test import TestBooks\n" + TEST
    assert lint_task({"tests/books_test.py": shared, "steps/round-1/tests/test_first.py": user}, without=SCRIPTS) == []


def test_a_script_may_run_tests_of_any_name(lint_task: LintTask) -> None:
    files = {"steps/round-1/tests/total_test.py": TEST, "tests/tests_total.py": TEST}
    assert lint_task({**files, "tests/test.sh": runs("true")}) == []


def test_a_script_that_knows_nothing_of_a_test_file_does_not_run_it(lint_task: LintTask) -> None:
    files = {"steps/round-2/tests/test_total.py": TEST, "steps/round-2/tests/test.sh": runs("python3 /tests/run.py")}
    assert lint_task({**files, "steps/round-2/tests/run.py": "print(1)\n"}) == [
        "steps/round-2/tests/test_total.py: no test.sh of round-2 runs it; run it there, or remove it"
    ]


def test_a_file_without_tests_need_not_be_run(lint_task: LintTask) -> None:
    assert lint_task({"steps/round-1/tests/test_data.py": "BOOKS = 3\n"}) == []


@pytest.mark.parametrize(
    "command",
    [
        "python3 -P -m pytest",
        "python3 /tests/test_total.py",
        "cd /tests && python3 -m test_total",
        "for t in /tests/*.py; do python3 $t; done",
        "python3 -I -m unittest discover",
        "cp -r /tests . && make check",
    ],
)
def test_a_script_that_may_run_a_test_file_is_trusted(lint_task: LintTask, command: str) -> None:
    assert lint_task({"tests/test_total.py": TEST, "tests/test.sh": runs(command)}) == []


def test_a_program_beside_the_script_may_run_the_tests(lint_task: LintTask) -> None:
    files = {"tests/test.sh": runs("python3 /tests/run.py"), "steps/round-2/tests/test_total.py": TEST}
    assert lint_task({**files, "tests/run.py": "import pytest\n"}) == []
    assert lint_task({**files, "tests/run.py": "from test_total import test_total\n"}) == []


def test_two_tests_of_one_name_are_named_by_both_lines(lint_task: LintTask) -> None:
    path = "steps/round-2/tests/test_total.py"
    again = "@mark\nasync def test_total(): ...\n"
    assert lint_task({**FIRST, path: TEST + "\n\n" + again}, without=SCRIPTS) == [
        f"{path}:6: test_total is defined again, and the one at {path}:1 is lost; rename one of them"
    ]


def test_two_methods_of_one_class_and_two_classes_lose_the_first(lint_task: LintTask) -> None:
    path = "steps/round-1/tests/test_total.py"
    methods = "class TestTotal:\n    def test_a(self): ...\n    def test_a(self): ...\n"
    problems = lint_task({path: methods + "class TestTotal: ...\n"}, without=SCRIPTS)
    assert [problem.split(", and")[0] for problem in problems] == [
        f"{path}:3: test_a is defined again",
        f"{path}:4: TestTotal is defined again",
    ]


def test_a_suite_with_a_script_loses_tests_in_the_same_way(lint_task: LintTask) -> None:
    problems = lint_task({"tests/test_total.py": TEST + TEST, "tests/test.sh": runs("pytest /tests")})
    assert [problem.partition(": ")[0] for problem in problems] == ["tests/test_total.py:3"]


@pytest.mark.parametrize(
    "text",
    [
        TEST + "class TestTotal:\n    def test_total(self): ...\n",
        "class TestA:\n    def test_total(self): ...\nclass TestB:\n    def test_total(self): ...\n",
        "if True:\n    def test_total(): ...\nelse:\n    def test_total(): ...\n",
        "def make(): ...\ndef make(): ...\n" + TEST,
        TEST + "test_first = test_total\n" + TEST,
        TEST + "@test_total.variant\n" + TEST,
    ],
)
def test_one_name_in_two_scopes_or_put_to_use_is_not_lost(lint_task: LintTask, text: str) -> None:
    assert lint_task({"steps/round-1/tests/test_total.py": text}, without=SCRIPTS) == []


THREE = ["round-1", "round-2", "round-3"]
UNTESTED = [f"steps/{step}/tests/{name}" for step in THREE for name in ("test.sh", "test_usual.py")]


@pytest.mark.parametrize("name", ["journals.py", "test_data.py", "data.txt"])
def test_each_round_of_native_suites_has_a_test(lint_task: LintTask, name: str) -> None:
    files = {**FIRST, f"steps/round-3/tests/{name}": "BOOKS = 3\n"}
    found = lint_task(files, steps=THREE, without=UNTESTED)
    assert found == [f"steps/{step}/tests: has no test: write what the request asks for" for step in THREE[1:]]
    assert all(isinstance(line, CheckWarning) for line in found)


@pytest.mark.parametrize(
    "files",
    [
        {"steps/round-2/tests/test_total.py": "class Books(TestCase):\n    def test_a(self): ...\n"},
        {
            "steps/round-2/tests/test_total.py": "from books import test_open\n",
            "tests/books.py": TEST + "test_open = 1\n",
        },
        {"steps/round-2/tests/test_total.py": "class Contract: ...\nTestBooks = type('TestBooks', (Contract,), {})\n"},
        {"steps/round-2/workdir/books.txt": "1\n"},
        {"tests/test_all.py": "def test_all(evocode_round): ...\n"},
    ],
)
def test_a_round_may_be_tested_in_other_ways(lint_task: LintTask, files: dict[str, str]) -> None:
    assert lint_task({**FIRST, **files}, without=UNTESTED) == []


def test_rounds_may_share_all_of_their_tests(lint_task: LintTask) -> None:
    assert lint_task({"tests/test_all.py": TEST}, without=UNTESTED) == []
