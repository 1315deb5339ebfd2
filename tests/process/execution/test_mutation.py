"""Tests that verify something fail for a mutant of what they are about; others count for nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.environments import Engine
from pytest_evocode.process.attempts import score_round
from pytest_evocode.process.execution import Execution
from pytest_evocode.process.execution.mutation import mutants, rewritten, with_names
from pytest_evocode.process.execution.states import ResultCache
from pytest_evocode.tasks import Task
from tests.process.execution.test_execution import HALVED, TEST, MakeTask, execute, make_task, recording
from tests.process.trajectories import LEDGER, Recording, part, read

__all__ = ["make_task"]

CHECKS = f"""import unittest
from ledger import half


class H(unittest.TestCase):
    def test_half(self):
        self.assertEqual(half(4), 2)

    def test_huge(self):
        self.assertGreater(half(4), -1000000)

    def test_source(self):
        self.assertIn("value / 2\\n", open("ledger.py").read())

    def test_compiled_code(self):
        written = {{}}
        exec({HALVED!r}, written)
        self.assertEqual(half.__code__.co_code, written["half"].__code__.co_code)
        self.assertEqual(half.__code__.co_consts, written["half"].__code__.co_consts)

    def test_itself(self):
        named = {{"half": half}}
        self.assertEqual(half, named["half"])
"""


#: The ledger with a function of which there is one mutant.
DOUBLED = f"{LEDGER}\n\ndef twice(value):\n    return value + value\n"


def test_each_changed_function_has_a_mutant_of_each_kind_that_it_has_a_place_for() -> None:
    found = list(mutants("ledger.py", LEDGER, HALVED))
    assert [(each.symbol, each.what) for each in found] == [
        ("half", "half: returns other values"),
        ("half", "half: refuses nothing"),
        ("half", "half: takes the other branches"),
        ("half", "half: has other numbers"),
    ]
    assert "raise" not in found[1].text.rpartition("_evocode_other")[2]


def test_the_getter_and_the_setter_of_a_property_are_told_apart() -> None:
    text = "class A:\n    @property\n    def x(self):\n        return self._x\n\n"
    text += "    @x.setter\n    def x(self, value):\n        self._x = value + 1\n"
    assert not list(mutants("a.py", text, text))
    found = list(mutants("a.py", text.replace("+ 1", "+ 2"), text))
    assert [each.what for each in found] == ["A.x: returns other values", "A.x: has other numbers"]
    assert "value + 2" in found[1].text


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
    names: dict[str, Any] = {}
    exec(compile(text, "ledger.py", "exec"), names)
    assert (names["half"](4), names["total"]([1, 2])) == (2, 3)
    with pytest.raises(ValueError, match="-4"):
        names["half"](-4)
    originals: dict[str, Any] = {}
    exec(compile(HALVED, "ledger.py", "exec"), originals)
    for part_ in ("co_code", "co_consts", "co_names"):
        assert getattr(names["half"].__code__, part_) != getattr(originals["half"].__code__, part_)


def test_functions_that_run_at_import_can_be_mutated() -> None:
    text = '"""A module."""\nfrom __future__ import annotations\n\ndef f():\n    return 1\n\n\nA = f()\n'
    (mutant, *_) = mutants("a.py", None, text)
    for changed, value in ((mutant.text, 2), (rewritten(text), 1)):
        names: dict[str, Any] = {}
        exec(compile(changed, "a.py", "exec"), names)
        assert (names["A"], names["__doc__"]) == (value, "A module.")


def test_what_mutants_are_compared_with_keeps_docstrings_and_generators() -> None:
    names: dict[str, Any] = {}
    exec(rewritten('def f(n):\n    """Count."""\n    for each in range(n):\n        yield each\n'), names)
    assert (names["f"].__doc__, list(names["f"](3))) == ("Count.", [0, 1, 2])


def told_by(task: Task, engine: Engine, cache: ResultCache, played: Recording, seconds: float) -> tuple[Any, list[str]]:
    """Return what was measured in a round, mutants running for so long, and what was said meanwhile."""
    told: list[str] = []
    with Execution(task, engine, cache=cache, mutation_budget=seconds, tell=told.append) as execution:
        (executed,) = (execution.run_round(activity) for activity in read(played))
    return executed, told


@pytest.mark.slow
def test_only_tests_that_fail_for_a_mutant_count_which_are_told_and_run_once(
    make_task: MakeTask, engine: Engine, tmp_path: Path
) -> None:
    task, cache = make_task(), ResultCache(tmp_path / "cache")
    played = recording().bash("a", changes={"ledger.py": HALVED}).bash("b", changes={"test_half.py": CHECKS})
    executed, told = told_by(task, engine, cache, played, seconds=0)
    assert (executed.verification, told) == (None, [])
    executed, told = told_by(task, engine, cache, played, seconds=600)
    assert told[0].endswith(", round-1: running the tests against the product as it is, written anew")
    assert told[1].endswith(", round-1: running the tests against mutant 1 of 4: half: returns other values")
    assert told_by(task, engine, cache, played, seconds=600) == (executed, [])
    assert executed.verification is not None
    # The second holds for any result; two are about the source or the code, which changes without a change of what it
    # does, too; and the last fails before the round because of its import only.
    assert {name: set(found) for (_, name), found in executed.verification.kills.items()} == {
        "H::test_half": {"ledger.py:half"}
    }
    (activity,) = read(played)
    process = score_round(activity, executed=executed)
    assert (part(process, "vc", "TCR"), process.pillars["vc"].parts["TCR"].certainty) == (1, "executed")
    # One assertion of the five tests counts: 1 / 5 / 5.
    assert part(process, "tad", "TAD") == pytest.approx(1 / 25)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_test_of_a_constant_counts_where_it_failed_before_the_round_and_not_one_beside_it(
    make_task: MakeTask, engine: Engine, tmp_path: Path
) -> None:
    checks = "import unittest\nfrom ledger import LIMIT, total, twice\n\n\nclass L(unittest.TestCase):\n"
    checks += "    def test_limit(self):\n        self.assertEqual(LIMIT, 5)\n\n"
    checks += "    def test_total(self):\n        self.assertGreater(total([1]), -1000)\n\n"
    checks += "    def test_twice(self):\n        self.assertTrue(twice)\n"
    played = recording().bash("a", changes={"ledger.py": f"LIMIT = 5\n{DOUBLED}"})
    played.bash("b", changes={"test_limit.py": checks})
    (executed,) = execute(make_task(), engine, ResultCache(tmp_path / "cache"), played)
    assert executed.verification is not None
    assert {name: set(found) for (_, name), found in executed.verification.kills.items()} == {
        "L::test_limit": {"before"}
    }


def test_a_module_as_it_was_has_the_names_that_it_has_gained() -> None:
    now = "import os.path\nfrom a import b as c, d\nfor e in (): f = 1\nclass G: h = 1\n\n"
    now += "def i(j): k = 1\nif l := 1: pass\n"
    assert with_names("import os\nd = 1", now) == "import os\nd = 1\n" + "".join(
        f"{name} = None\n" for name in "cefGil"
    )
    assert with_names(None, "x: int = 1\n") == "\nx = None\n"


@pytest.mark.slow
@pytest.mark.nightly
def test_mutants_end_with_their_seconds(make_task: MakeTask, engine: Engine, tmp_path: Path) -> None:
    task, cache = make_task(), ResultCache(tmp_path / "cache")
    slow = "import time\nimport unittest\nfrom ledger import twice\n\n\nclass D(unittest.TestCase):\n"
    slow += "    def test_twice(self):\n        self.assertEqual(twice(4), 8)\n        time.sleep(1.5)\n"
    played = recording().bash("a", changes={"ledger.py": DOUBLED}).bash("b", changes={"test_twice.py": slow})
    # In one second the tests, which take longer, do not end, and what was cut short is not kept as a result.
    executed, told = told_by(task, engine, cache, played, seconds=1)
    assert (executed.verification, len(told)) == (None, 1)
    executed, told = told_by(task, engine, cache, played, seconds=60)
    assert executed.verification is not None
    assert told[0].endswith(", round-1: running the tests against the product as it is, written anew")
    assert told[1].endswith(", round-1: running the tests against mutant 1 of 1: twice: returns other values")
    assert told_by(task, engine, cache, played, seconds=60)[1] == []


#: A function of which a copy by other names is told.
SUMMED = f"{LEDGER}\n\ndef spent(entries, limit):\n    found = [each for each in entries if each < limit]\n"
SUMMED += "    return sum(found) * -1\n"
COPIED = SUMMED.rpartition("\n\n")[2].replace("spent", "written").replace("each", "one")
COMPARING = "import unittest\nfrom ledger import spent\n\n{copy}\n\nclass S(unittest.TestCase):\n"
COMPARING += "    def test_spent(self):\n        self.assertEqual(spent([1, -2], 0), written([1, -2], 0))\n"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("copy", "verified"),
    [
        (COPIED, False),
        (f"names = {{}}\nexec({COPIED!r}, names)\nwritten = names['written']\n", False),
        ("def written(entries, limit):\n    return 2\n", True),
    ],
)
def test_a_test_that_has_a_copy_of_a_function_verifies_nothing_of_it(
    make_task: MakeTask, engine: Engine, tmp_path: Path, copy: str, verified: bool
) -> None:
    played = recording().bash("a", changes={"ledger.py": SUMMED})
    played.bash("b", changes={"test_spent.py": COMPARING.format(copy=copy)})
    (executed,) = execute(make_task(), engine, ResultCache(tmp_path / "cache"), played)
    (activity,) = read(played)
    assert part(score_round(activity, executed=executed), "vc", "TCR") == verified


@pytest.mark.slow
def test_tests_that_take_up_all_time_verify_nothing(
    make_task: MakeTask, engine: Engine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pytest_evocode.process.execution.mutation.MUTANT_LIMIT", 0.7)
    slow = "import time\nimport unittest\nfrom ledger import twice\n\n\nclass D(unittest.TestCase):\n"
    slow += "    def test_twice(self):\n        time.sleep(1.5)\n        self.assertGreater(twice(4), -1000)\n"
    played = recording().bash("a", changes={"ledger.py": DOUBLED}).bash("b", changes={"test_twice.py": slow})
    executed, _ = told_by(make_task(), engine, ResultCache(tmp_path / "cache"), played, seconds=2)
    (activity,) = read(played)
    process = score_round(activity, executed=executed)
    assert (part(process, "vc", "TCR"), part(process, "tad", "TAD")) == (0, 0)


@pytest.mark.slow
@pytest.mark.nightly
def test_a_test_that_only_calls_covers_nothing(make_task: MakeTask, engine: Engine, tmp_path: Path) -> None:
    vague = CHECKS.replace("self.assertEqual(half(4), 2)", "self.assertGreaterEqual(half(4), -9)")
    played: Recording = recording().bash("a", changes={"ledger.py": HALVED}).bash("b", changes={"test_half.py": vague})
    (executed,) = execute(make_task(), engine, ResultCache(tmp_path / "cache"), played)
    (activity,) = read(played)
    process = score_round(activity, executed=executed)
    assert (part(process, "vc", "TCR"), part(process, "tad", "TAD"), part(process, "vc", "dC")) == (0, 0, 0)
    assert TEST not in vague
