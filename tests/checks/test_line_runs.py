"""Properties of what counts as a leaked run."""

from __future__ import annotations

from random import Random

from hypothesis import given
from hypothesis import strategies as st

from pytest_evocode.checks.leaks import find_leaks
from pytest_evocode.checks.text_runs import LINES, SolvedRound, Text
from tests.checks.texts import joined, statements

counts = st.integers(0, 3 * LINES)


@given(head=counts, leaked=counts, tail=counts, old=counts)
def test_a_run_is_found_wherever_it_stands_and_exactly_from_its_length_on(
    head: int, leaked: int, tail: int, old: int
) -> None:
    secret, program = statements("secret", leaked), statements("old", old)
    starter = {"a.txt": joined(statements("head", head), secret, statements("tail", tail))}
    after = {"b.py": joined(program, secret, b"end = 1\n")}
    problems = find_leaks(starter, [SolvedRound("round-1", {"b.py": program}, after)])
    assert len(problems) == (leaked >= LINES)
    if problems:
        assert problems[0].startswith(f"a.txt:{head + 1}: has {leaked} lines in a row")


@given(st.lists(st.sampled_from([statements(topic, LINES + 1) for topic in "abcd"]), unique=True), st.data())
def test_files_that_only_change_their_names_and_order_leak_nothing(texts: list[bytes], data: st.DataObject) -> None:
    before = {f"{index}.py": text for index, text in enumerate(texts)}
    moved = data.draw(st.permutations(texts))
    after = {"all.py": joined(*moved)} if data.draw(st.booleans()) else dict(zip("wxyz", moved, strict=False))
    assert find_leaks(before, [SolvedRound("round-1", before, after)]) == []


@given(st.binary())
def test_any_bytes_are_a_text(content: bytes) -> None:
    text = Text(content)
    assert len(text.lines) == len(text.numbers)
    assert all(line == line.strip() for line in text.lines)
    assert text.numbers == sorted(text.numbers)


def test_large_files_take_no_quadratic_time() -> None:
    """Many lines, each as often as no difference ignores, and in another order, would keep it busy for long."""
    rows = statements("row", 120).splitlines(keepends=True) * 300
    secret = statements("secret", LINES)
    mixed = rows.copy()
    Random(0).shuffle(mixed)
    after = {"data.csv": joined(b"a = 1\n", *mixed, secret, b"z = 1\n")}
    rounds = [SolvedRound("round-1", {"data.csv": joined(*rows)}, after)]
    (problem,) = find_leaks({"a.txt": joined(secret, b"end\n")}, rounds)
    assert problem.startswith("a.txt:1: ")
