"""What agents could read of solutions and tests before their round, in the image and in the build context."""

from __future__ import annotations

import pytest

from pytest_evocode.checks.leaks import find_leaks
from pytest_evocode.checks.text_runs import LINES, Files, SolvedRound
from tests.checks.texts import joined, statements

BOOKS = statements("books", 12)
PRICES = statements("prices", LINES)
REMEDY = "and agents see them before round 1; take it out of the image and the build context"


def played(name: str, before: Files, after: Files, solution: Files | None = None) -> SolvedRound:
    """A round whose script writes all that is there afterwards, unless it is given."""
    return SolvedRound(name, before, after, solution or {"solve.sh": joined(b"#!/bin/bash\n", *after.values())})


def test_lines_that_a_later_solution_adds_are_a_leak() -> None:
    """Named by the starter's line, the round, the file it goes to and where the solution has it."""
    starter = {"environment/notes.txt": joined(b"# todo\n\n", PRICES)}
    program = joined(BOOKS, b"# prices\n", PRICES)
    rounds = [
        played("round-1", {}, {"ledger.py": BOOKS}),
        played(
            "round-2",
            {"ledger.py": BOOKS},
            {"ledger.py": program},
            {"solution/solve.sh": joined(b"#!/bin/sh\n", PRICES)},
        ),
    ]
    assert find_leaks(starter, rounds) == [
        f"environment/notes.txt:3: has {LINES} lines in a row that the solution of round-2 adds to ledger.py "
        f"(solution/solve.sh:2), {REMEDY}"
    ]


def test_the_first_round_s_solution_is_as_secret() -> None:
    assert len(find_leaks({"a.txt": joined(PRICES, b"end\n")}, [played("round-1", {}, {"ledger.py": PRICES})])) == 1


def test_what_rounds_before_added_is_named_with_the_first_of_them() -> None:
    rounds = [
        played("round-1", {}, {"ledger.py": BOOKS}),
        played("round-2", {"ledger.py": BOOKS}, {"ledger.py": BOOKS, "copy.py": BOOKS}),
    ]
    (problem,) = find_leaks({"old.txt": joined(BOOKS, b"end\n")}, rounds)
    assert "the solution of round-1 adds to ledger.py" in problem


def test_one_line_less_than_a_run_is_chance() -> None:
    shorter = statements("prices", LINES - 1)
    assert find_leaks({"a.txt": shorter}, [played("round-1", {}, {"ledger.py": shorter})]) == []


@pytest.mark.parametrize(
    "filler",
    [
        b"\n",
        b"   \n",
        b"}\n",
        b"});\n",
        b"# why\n",
        b"// why\n",
        b"import os\n",
        b"from os import path\n",
        b"#include <a.h>\n",
    ],
)
def test_lines_that_say_nothing_neither_make_a_run_nor_break_it(filler: bytes) -> None:
    spread = b"".join(line + filler for line in PRICES.splitlines(keepends=True))
    rounds = [played("round-1", {}, {"ledger.py": PRICES})]
    assert len(find_leaks({"a.txt": spread}, rounds)) == 1
    assert find_leaks({"a.txt": filler * 2 * LINES}, [played("round-1", {}, {"ledger.py": filler * 2 * LINES})]) == []


def test_indentation_and_line_ends_do_not_hide_a_run() -> None:
    indented = b"".join(b"\t    " + line + b"\r\n" for line in PRICES.splitlines())
    assert len(find_leaks({"a.txt": indented}, [played("round-1", {}, {"ledger.py": PRICES})])) == 1


def test_a_run_needs_every_line_to_be_added() -> None:
    """Five old lines and a new one between them are no leak, though the starter has all six."""
    lines = PRICES.splitlines(keepends=True)
    before = b"".join(lines[:2] + lines[3:])
    assert find_leaks({"a.txt": PRICES}, [played("round-1", {"b.py": before}, {"b.py": PRICES})]) == []


def test_what_the_program_always_had_is_no_leak() -> None:
    program = {"ledger.py": joined(BOOKS, PRICES)}
    edited = {"ledger.py": joined(statements("head", 3), BOOKS, PRICES)}
    assert find_leaks({"/app/ledger.py": joined(BOOKS, PRICES)}, [played("round-1", program, edited)]) == []


def test_code_that_a_solution_moves_is_no_leak() -> None:
    before = {"ledger.py": joined(BOOKS, PRICES)}
    after = {"ledger.py": BOOKS, "prices.py": PRICES}
    assert find_leaks(before, [played("round-1", before, after)]) == []
    assert find_leaks(before, [played("round-1", before, {"books.py": before["ledger.py"]})]) == []


def test_code_that_a_solution_moves_a_second_time_is_no_leak() -> None:
    first, second = {"ledger.py": joined(BOOKS, PRICES)}, {"ledger.py": BOOKS, "prices.py": PRICES}
    third = {"ledger.py": BOOKS, "money.py": joined(PRICES, b"end\n")}
    assert find_leaks(first, [played("round-1", first, second), played("round-2", second, third)]) == []


def test_code_that_stays_while_a_solution_writes_it_elsewhere_is_a_leak() -> None:
    before = {"drafts/prices.py": joined(PRICES, b"end\n"), "ledger.py": BOOKS}
    after = before | {"ledger.py": joined(BOOKS, PRICES)}
    (problem,) = find_leaks(before, [played("round-1", before, after)])
    assert problem.startswith(
        f"drafts/prices.py:1: has {LINES} lines in a row that the solution of round-1 adds to ledger.py"
    )


def test_what_a_command_copies_or_builds_from_the_workspace_is_no_leak() -> None:
    before = {"src/ledger.py": BOOKS}
    after = before | {"build/lib/ledger.py": joined(b"built = 1\n", BOOKS)}
    assert find_leaks(before, [played("round-1", before, after, {"solve.sh": b"python3 setup.py build\n"})]) == []


def test_what_a_command_copies_from_outside_the_workspace_is_a_leak() -> None:
    solution = {"solve.sh": b"cp /opt/answers/prices.py .\n"}
    rounds = [played("round-1", {}, {"prices.py": PRICES}, solution)]
    assert len(find_leaks({"/opt/answers/prices.py": PRICES}, rounds)) == 1


def test_a_solution_without_its_files_is_taken_to_have_written_all() -> None:
    before = {"drafts.py": PRICES}
    assert len(find_leaks(before, [SolvedRound("round-1", before, before | {"prices.py": PRICES})])) == 1


def test_a_patch_is_a_solution_s_text_too() -> None:
    patch = b"git apply <<'END'\n--- a\n+++ b\n@@ -0,0 +1,6 @@\n" + b"".join(
        b"+" + line for line in PRICES.splitlines(True)
    )
    before = {"drafts.py": PRICES}
    rounds = [played("round-1", before, before | {"prices.py": PRICES}, {"solve.sh": patch})]
    (problem,) = find_leaks(before, rounds)
    assert "(solve.sh:5)" in problem


def test_what_a_round_takes_out_may_be_put_back_by_a_later_one() -> None:
    whole, less = {"ledger.py": joined(BOOKS, PRICES)}, {"ledger.py": BOOKS}
    assert find_leaks(whole, [played("round-1", whole, less), played("round-2", less, whole)]) == []


def test_a_draft_that_a_round_removes_was_there_before() -> None:
    """To put lines back means into the file that had them."""
    draft, clean = {"ledger.py": BOOKS, "draft.py": PRICES}, {"ledger.py": BOOKS}
    after = {"ledger.py": joined(BOOKS, PRICES)}
    assert len(find_leaks(draft, [played("round-1", draft, clean), played("round-2", clean, after)])) == 1


def test_several_runs_of_one_origin_are_one_message_at_the_longest() -> None:
    program = joined(PRICES, b"a = 1\n", BOOKS, b"b = 1\n", statements("more", LINES))
    starter = {"a.txt": joined(PRICES, b"x = 1\n", BOOKS, b"y = 1\n", statements("more", LINES))}
    (problem,) = find_leaks(starter, [played("round-1", {}, {"ledger.py": program})])
    assert problem.startswith(f"a.txt:{LINES + 2}: has 12 lines in a row and 2 more such runs that")


def test_of_equal_starter_files_the_first_is_named() -> None:
    starter = {"environment/a.txt": joined(PRICES, b"end\n"), "/app/a.txt": joined(PRICES, b"end\n")}
    (problem,) = find_leaks(starter, [played("round-1", {}, {"ledger.py": PRICES})])
    assert problem.startswith("environment/a.txt:1: ")


def test_binary_files_have_no_lines() -> None:
    binary = b"\0" + PRICES
    assert find_leaks({"a.db": binary}, [played("round-1", {}, {"b.db": binary + b"1"})]) == []
