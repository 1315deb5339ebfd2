"""Whole files of tests and solutions among those that agents can see, and what rounds bring with their workdir."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pytest_evocode.checks.leaks import SHORTEST, find_leaks
from pytest_evocode.checks.text_runs import LINES, SolvedRound
from tests.checks.texts import joined, statements

BINARY = bytes(range(SHORTEST))
BOOKS = statements("books", 12)
PRICES = statements("prices", LINES)
IDLE = SolvedRound("round-1", {}, {})
REMEDY = "and agents see it before round 1; take it out of the image and the build context"


@pytest.mark.parametrize("content", [BINARY, BOOKS])
@pytest.mark.parametrize(
    "name", ["round-1/tests/cases.json", "round-1/solution/solve.sh", "round-1/solution/model.bin"]
)
def test_a_hidden_file_among_the_starter_s_is_a_leak(content: bytes, name: str) -> None:
    kind = "tests" if "/tests/" in name else "solution"
    files = {"solution": {}, "tests": {}, kind: {name: content}}
    rounds = [SolvedRound("round-1", {}, {}, **files)]
    assert find_leaks({"environment/a": content}, rounds) == [f"environment/a: is the same file as {name}, {REMEDY}"]


def test_tests_that_all_rounds_share_are_hidden_too() -> None:
    assert find_leaks({"a": BINARY}, [IDLE], {"tests/run.py": BINARY}) == [
        f"a: is the same file as tests/run.py, {REMEDY}"
    ]


def test_a_file_that_many_rounds_have_is_one_leak() -> None:
    rounds = [replace(IDLE, name=name, tests={f"{name}/data": BINARY}) for name in ("round-1", "round-2")]
    assert find_leaks({"a": BINARY, "b": BINARY}, rounds) == [f"a: is the same file as round-1/data, {REMEDY}"]


RATES = b"up_to,cents\n70,99\n"


@pytest.mark.parametrize(
    ("visible", "hidden", "content"),
    [
        ("old/prices", "round-1/rates.csv", RATES),
        ("run.sh", "round-1/solve.sh", b"#!/bin/bash\necho 42 > answers.txt\n"),
        ("key", "round-1/key.bin", bytes(range(200, 230))),
        ("a/answer.txt", "round-1/answer.txt", b"42\n"),
    ],
)
def test_small_files_that_say_something_or_have_one_name_are_leaks(visible: str, hidden: str, content: bytes) -> None:
    rounds = [replace(IDLE, tests={hidden: content})]
    others = {"0/first.txt": content} if visible.endswith("answer.txt") else {}
    assert find_leaks({**others, visible: content}, rounds) == [f"{visible}: is the same file as {hidden}, {REMEDY}"]


@pytest.mark.parametrize(
    ("visible", "hidden", "content"),
    [
        ("size.txt", "round-1/answer.txt", b"42\n"),
        ("a.txt", "round-1/b.txt", b"1\n2\n3\n"),
        ("a/__init__.py", "round-1/__init__.py", b""),
        ("a/__init__.py", "round-1/__init__.py", b'"""The version."""\nVERSION = "1.0"\n'),
        ("a/test_a.py", "round-1/test_b.py", b"import os\nimport sys\nfrom pathlib import Path\n"),
        ("a/empty.txt", "round-1/empty.txt", b"\n\n"),
        ("requirements.txt", "round-1/requirements.txt", b"pytest\nhypothesis\n"),
        ("a/__main__.py", "round-1/__main__.py", b'if __name__ == "__main__":\n    main()\n'),
        ("run.sh", "round-1/solve.sh", b"#!/bin/bash\nset -e\n"),
    ],
)
def test_small_files_of_every_project_are_equal_by_chance(visible: str, hidden: str, content: bytes) -> None:
    assert find_leaks({visible: content}, [replace(IDLE, tests={hidden: content})]) == []


def test_a_licence_is_no_leak_of_any_size() -> None:
    licence = statements("licence", 30)
    rounds = [SolvedRound("round-1", {}, {"LICENSE": licence}, {"solution/LICENSE": licence})]
    assert find_leaks({"environment/vendor/LICENSE": licence, "/app/COPYING": licence + b"\n"}, rounds) == []


def test_a_leaked_file_is_not_named_again_for_its_lines() -> None:
    rounds = [SolvedRound("round-1", {}, {"ledger.py": BOOKS}, {"solution/ledger.py": BOOKS})]
    assert find_leaks({"a.py": BOOKS}, rounds) == [f"a.py: is the same file as solution/ledger.py, {REMEDY}"]


def test_a_solution_may_ship_files_that_it_leaves_as_they_are() -> None:
    workspace = {"lib/money.py": BOOKS}
    rounds = [SolvedRound("round-1", workspace, workspace, {"solution/money.py": BOOKS})]
    assert find_leaks({"environment/money.py": BOOKS}, rounds) == []


def test_a_solution_may_ship_files_that_it_moves_or_puts_back() -> None:
    old, new, gone = {"a/money.py": BOOKS}, {"b/money.py": BOOKS}, {"a/money.py": b"pass\n"}
    moves = SolvedRound("round-1", old, new, {"solution/money.py": BOOKS})
    assert find_leaks(old, [moves]) == []
    restores = [SolvedRound("round-1", old, gone), SolvedRound("round-2", gone, old, {"solution/money.py": BOOKS})]
    assert find_leaks(old, restores) == []


def test_a_draft_of_the_solution_in_the_workspace_is_no_unchanged_file() -> None:
    workspace = {".old/money.py": BOOKS}
    rounds = [SolvedRound("round-1", workspace, workspace | {"money.py": BOOKS}, {"solution/money.py": BOOKS})]
    assert find_leaks(workspace, rounds) == [f".old/money.py: is the same file as solution/money.py, {REMEDY}"]


def test_the_script_of_a_solution_is_never_an_unchanged_file() -> None:
    workspace = {"solve.sh": BOOKS}
    rounds = [SolvedRound("round-1", workspace, workspace, {"solution/solve.sh": BOOKS})]
    assert find_leaks(workspace, rounds) == [f"solve.sh: is the same file as solution/solve.sh, {REMEDY}"]


def brings(workdir: dict[str, bytes], after: dict[str, bytes], name: str = "round-2") -> SolvedRound:
    """A round whose workdir lies in the workspace when its solution begins."""
    script = joined(b"#!/bin/bash\n", *after.values())
    return SolvedRound(name, workdir, after, {f"{name}/solve.sh": script}, workdir=workdir)


def test_a_workdir_must_not_hold_what_its_own_round_s_solution_adds() -> None:
    workdir = {"notes.txt": joined(b"Prices\n", PRICES)}
    assert find_leaks({}, [IDLE, brings(workdir, workdir | {"ledger.py": PRICES})]) == [
        f"steps/round-2/workdir/notes.txt:2: has {LINES} lines in a row that the solution of round-2 adds to ledger.py "
        "(round-2/solve.sh:3), and agents see them from round-2 on; take it out of the workdir of round-2"
    ]


def test_a_workdir_must_not_hold_what_a_later_round_hides() -> None:
    later = SolvedRound("round-3", {}, {"ledger.py": PRICES}, tests={"round-3/cases": BINARY})
    problems = find_leaks({}, [IDLE, brings({"a.txt": joined(PRICES, b"x\n"), "b": BINARY}, {}), later])
    assert [problem.partition(" that ")[0].partition(",")[0] for problem in problems] == [
        f"steps/round-2/workdir/a.txt:1: has {LINES} lines in a row",
        "steps/round-2/workdir/b: is the same file as round-3/cases",
    ]


def test_a_workdir_may_hold_what_an_earlier_round_was_about() -> None:
    earlier = SolvedRound("round-1", {}, {"ledger.py": PRICES}, tests={"round-1/cases": BINARY})
    assert find_leaks({}, [earlier, brings({"ledger.py": PRICES, "b": BINARY}, {"ledger.py": PRICES})]) == []


def test_a_solution_may_edit_the_file_that_the_workdir_brings() -> None:
    """Even where a setup.sh has made something else of it before the turn."""
    workdir = {"prices.py": PRICES}
    edits = SolvedRound("round-2", {"prices.py": b"pass\n"}, {"prices.py": joined(PRICES, BOOKS)}, workdir=workdir)
    assert find_leaks({}, [IDLE, edits]) == []


def test_a_solution_may_move_what_the_workdir_brings() -> None:
    workdir = {"delivery.py": PRICES}
    assert find_leaks({}, [IDLE, brings(workdir, {"prices.py": joined(BOOKS, PRICES)})]) == []
