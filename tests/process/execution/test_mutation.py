"""Tests that verify something fail for a mutant of what they are about; others count for nothing."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.process.execution.command_results import ResultCache
from pytest_evocode.process.execution.mutants import mutants, rewritten
from pytest_evocode.process.scores.round_scores import score_round
from tests.process.execution.test_execution import HALVED, TEST, MakeTask, execute, make_task, recording
from tests.process.trajectories import LEDGER, Recording, part, read

__all__ = ["make_task"]

CHECKS = """import unittest
from ledger import half


class H(unittest.TestCase):
    def test_half(self):
        self.assertEqual(half(4), 2)

    def test_huge(self):
        self.assertGreater(half(4), -1000000)

    def test_source(self):
        self.assertIn("value / 2\\n", open("ledger.py").read())
"""


def test_each_changed_function_has_a_mutant_of_each_kind_that_it_has_a_place_for() -> None:
    found = list(mutants("ledger.py", LEDGER, HALVED))
    assert [(each.symbol, each.what) for each in found] == [
        ("half", "half: returns other values"),
        ("half", "half: refuses nothing"),
        ("half", "half: takes the other branches"),
        ("half", "half: has other numbers"),
    ]
    assert "raise" not in found[1].text.partition("_evocode_other")[0]


@pytest.mark.parametrize(
    ("value", "other"),
    [("3", "4"), ("'a'", "'a?'"), ("True", "False"), ("(1, 'b')", "(2, 'b?')"), ("[1]", "[2]"), ("None", "None")],
)
def test_a_mutant_returns_another_value_of_the_same_type(value: str, other: str) -> None:
    (mutant, *_) = mutants("a.py", None, f"def f():\n    return {value}\n")
    names: dict[str, object] = {}
    exec(compile(mutant.text, "a.py", "exec"), names)
    assert repr(eval("f()", names)) == other


def test_what_mutants_are_compared_with_does_the_same_in_other_bytes() -> None:
    text = rewritten(f"{HALVED}# The end.\n")
    assert "# The end." not in text
    assert ast.dump(ast.parse(text)).startswith(ast.dump(ast.parse(HALVED)).rpartition("]")[0][:200])


@pytest.mark.slow
def test_only_tests_that_fail_for_a_mutant_count(make_task: MakeTask, engine: Engine, tmp_path: Path) -> None:
    task = make_task()
    played = recording().bash("a", changes={"ledger.py": HALVED}).bash("b", changes={"test_half.py": CHECKS})
    (executed,) = execute(task, engine, ResultCache(tmp_path / "cache"), played)
    assert executed.verification is not None
    # The second holds for any result, and the third is about the source's bytes, which all mutants share.
    assert {name: set(found) for (_, name), found in executed.verification.kills.items()} == {
        "H::test_half": {"ledger.py:half"}
    }
    (activity,) = read(played)
    process = score_round(activity, executed=executed)
    assert (part(process, "vc", "TCR"), process.pillars["vc"].parts["TCR"].certainty) == (1, "executed")
    # One assertion of the three tests counts: 1 / 3 / 5.
    assert part(process, "tad", "TAD") == pytest.approx(1 / 15)


@pytest.mark.slow
def test_a_test_that_only_calls_covers_nothing(make_task: MakeTask, engine: Engine, tmp_path: Path) -> None:
    vague = CHECKS.replace("self.assertEqual(half(4), 2)", "self.assertGreaterEqual(half(4), -9)")
    played: Recording = recording().bash("a", changes={"ledger.py": HALVED}).bash("b", changes={"test_half.py": vague})
    (executed,) = execute(make_task(), engine, ResultCache(tmp_path / "cache"), played)
    (activity,) = read(played)
    process = score_round(activity, executed=executed)
    assert (part(process, "vc", "TCR"), part(process, "tad", "TAD"), part(process, "vc", "dC")) == (0, 0, 0)
    assert TEST not in vague
