"""Near copies: what agents could read under other names, in another layout or in another order."""

from __future__ import annotations

import ast
import importlib.util
import itertools
from dataclasses import replace
from pathlib import Path

import pytest

from pytest_evocode.checks.leaks import FEWEST, SHARE, find_leaks
from pytest_evocode.checks.text_runs import LARGEST, TOKENS, SolvedRound, Tokens
from tests.checks.texts import joined, statements

IDLE = SolvedRound("round-1", {}, {})
READ = b'''
def read(path):
    """Read the entries of a journal."""
    entries = []
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if not line.strip():
            continue
        day, _, rest = line.partition(" ")
        name, amount = rest.rsplit(" ", 1)
        entries.append((number, day, name, int(amount)))
    return entries
'''
BALANCE = b'''
def balance(entries, since="2024-01-01"):
    """Add up."""
    total = {}
    for number, day, name, amount in entries:
        if day >= since and amount != 0:
            total[name] = total.get(name, 0) + amount
    return {name: value for name, value in sorted(total.items()) if value}
'''
SHOW = b"""
class Table:
    def __init__(self, rows, width=12):
        self.rows = rows
        self.width = width

    def lines(self):
        for name, value in self.rows.items():
            yield f"{name:<{self.width}}{value / 100:>10.2f}"
"""
PROGRAM = joined(b"import sys\n", READ, BALANCE, SHOW)
SOLVED = SolvedRound("round-1", {}, {"ledger.py": PROGRAM}, {"solution/ledger.py": PROGRAM})
ADDED = "what the solution of round-1 adds to ledger.py (solution/ledger.py:3)"
BUT = "but for names, comments, layout and order, and agents see it before round 1; take it out of the image"


def renamed(text: bytes) -> bytes:
    """The same program with other names, no comments, and the layout and quotes of ast."""
    tree = ast.parse(text)
    for node in ast.walk(tree):
        for field in ("id", "arg", "name"):
            if isinstance(name := getattr(node, field, None), str) and name not in ("enumerate", "int", "sorted"):
                setattr(node, field, f"{name[::-1]}_")
        if isinstance(node, ast.FunctionDef) and ast.get_docstring(node):
            node.body = node.body[1:]
    return ast.unparse(tree).encode()


def test_a_renamed_solution_is_a_leak() -> None:
    (problem,) = find_leaks({"notes.txt": renamed(PROGRAM)}, [SOLVED])
    assert problem.startswith("notes.txt:3: has ")
    assert f" of {ADDED} {BUT}" in problem


def test_functions_in_another_order_are_a_leak() -> None:
    (problem,) = find_leaks({"a.py": joined(renamed(SHOW), b"\n", renamed(BALANCE), b"\n", renamed(READ))}, [SOLVED])
    assert BUT in problem


def test_a_part_of_the_solution_alone_is_a_leak() -> None:
    (problem,) = find_leaks({"a.py": renamed(READ)}, [SOLVED])
    assert f" a part of {ADDED} {BUT}" in problem


def test_comments_blank_lines_and_line_breaks_do_not_hide_a_copy() -> None:
    lines = renamed(PROGRAM).replace(b", ", b",\n        ").splitlines()
    spread = b"".join(b"# step %d\n%s  # so\n\n" % (index, line) for index, line in enumerate(lines))
    assert len(find_leaks({"a.py": spread}, [SOLVED])) == 1


@pytest.mark.parametrize("shared", [True, False])
def test_a_test_with_other_names_is_a_leak(shared: bool) -> None:
    tests = {"tests/test_ledger.py": PROGRAM}
    rounds = [IDLE if shared else replace(IDLE, tests=tests)]
    (problem,) = find_leaks({"a.py": renamed(PROGRAM)}, rounds, tests if shared else None)
    assert " of tests/test_ledger.py but for" in problem


def test_a_workdir_must_not_hold_a_near_copy_of_a_later_solution() -> None:
    brings = SolvedRound("round-1", {}, {}, workdir={"draft.py": renamed(PROGRAM)})
    (problem,) = find_leaks({}, [brings, replace(SOLVED, name="round-2")])
    assert problem.startswith("steps/round-1/workdir/draft.py:")
    assert problem.endswith("and agents see it from round-1 on; take it out of the workdir of round-1")


def test_other_languages_are_compared_in_the_same_way() -> None:
    script = b"""
    async function serve(port, options = {}) {
      const server = http.createServer((request, response) => {
        response.writeHead(200, { "Content-Type": "application/json" });
        for (const [name, value] of options.headers ?? []) response.setHeader(name, value);  // Ours.
        response.end(JSON.stringify({ ok: true, path: request.url.split("?")[0] }));
      });
      await new Promise((resolve) => server.listen(port, "127.0.0.1", resolve));
      return server;
    }
    """
    other = (
        script.replace(b"request", b"ask").replace(b"server", b"it").replace(b"options", b"given").replace(b"  ", b"\t")
    )
    (problem,) = find_leaks({"a.txt": other}, [SolvedRound("round-1", {}, {"serve.js": script})])
    assert "the solution of round-1 adds to serve.js but for names" in problem


def test_a_draft_in_the_workspace_is_a_leak() -> None:
    draft = {".old/draft.py": renamed(PROGRAM)}
    after = draft | {"ledger.py": PROGRAM}
    (problem,) = find_leaks(draft, [SolvedRound("round-1", draft, after, {"solution/ledger.py": PROGRAM})])
    assert ADDED in problem


def test_what_the_program_has_is_no_copy_of_what_is_made_of_it() -> None:
    """A solution may rename, move and extend what is there."""
    old, new = {"ledger.py": PROGRAM}, {"ledger.py": joined(renamed(PROGRAM), b"\n\nprint(sys.argv[1:])\n")}
    assert find_leaks(old, [SolvedRound("round-1", old, new, {"solution/ledger.py": new["ledger.py"]})]) == []
    moved = {"books.py": renamed(PROGRAM)}
    assert find_leaks(old, [SolvedRound("round-1", old, moved, {"solution/books.py": moved["books.py"]})]) == []


def test_what_a_later_round_puts_back_was_there() -> None:
    whole, less = {"ledger.py": PROGRAM}, {"ledger.py": READ}
    again = {"ledger.py": renamed(PROGRAM)}
    rounds = [
        SolvedRound("round-1", whole, less),
        SolvedRound("round-2", less, again, {"s/ledger.py": again["ledger.py"]}),
    ]
    assert find_leaks(whole, rounds) == []


def test_the_same_shape_with_other_texts_and_numbers_is_no_copy() -> None:
    """Tests of one kind look alike; what they are about is in their texts."""
    one = b"".join(b'def test_%d(run):\n    assert run("add", "a%d") == (0, "b%d")\n' % (i, i, i) for i in range(9))
    two = b"".join(b'def test_%d(run):\n    assert run("sum", "c%d") == (1, "d%d")\n' % (i, i, i) for i in range(9))
    assert find_leaks({"a.py": one}, [replace(IDLE, tests={"b.py": two})]) == []


@pytest.mark.parametrize(
    "common",
    [
        b'import sys\nfrom x import main\n\nif __name__ == "__main__":\n    raise SystemExit(main(sys.argv[1:]))\n',
        b"".join(b"class Error%d(Exception):\n    pass\n\n" % i for i in range(30)),
        b"".join(b"from .a%d import (b%d, c%d)\nNAMES.append(b%d)\n" % (i, i, i, i) for i in range(30)),
        b"Words of a licence or a README say nothing, however many of them there are. " * 30,
        b"1,2,3\n" * 100,
        b"",
    ],
)
def test_what_many_files_have_is_no_copy(common: bytes) -> None:
    assert find_leaks({"a.txt": common + b"\n"}, [replace(IDLE, tests={"b.txt": common})]) == []


def test_binary_and_very_large_files_are_not_compared() -> None:
    large = joined(PROGRAM, statements("filler", LARGEST // 12))
    for content in (b"\0" + PROGRAM, large):
        assert Tokens(content).runs == frozenset()


def test_a_near_copy_has_the_line_where_it_begins() -> None:
    (problem,) = find_leaks({"a.py": joined(statements("head", 9), renamed(PROGRAM))}, [SOLVED])
    assert 10 <= int(problem.split(":")[1]) <= 12


def test_modules_that_have_nothing_to_do_with_each_other_are_no_copies() -> None:
    """The bound is far from chance: no two of these share a third of it."""
    names = (
        "argparse",
        "configparser",
        "csv",
        "difflib",
        "fractions",
        "gettext",
        "graphlib",
        "shlex",
        "textwrap",
        "zipapp",
    )
    found = [importlib.util.find_spec(name) for name in names]
    modules = [Tokens(Path(spec.origin).read_bytes()) for spec in found if spec is not None and spec.origin]
    for one, two in itertools.permutations(modules, 2):
        assert one.covered(one.runs & two.runs) < max(FEWEST, SHARE / 3 * one.covered(one.runs))


def test_tokens_know_their_lines() -> None:
    text = Tokens(joined(b"# why\n\n", READ))
    assert text.first_line(text.runs) == 4
    assert text.covered(text.runs) >= 2 * TOKENS
