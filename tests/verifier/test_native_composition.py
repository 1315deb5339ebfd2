"""Round i runs the tests of rounds 1 to i, without those that have been retired by then."""

from __future__ import annotations

import pytest

from pytest_evocode.results.records import Case, Verdict
from pytest_evocode.verifier import SuiteRun
from tests.verifier.conftest import RunNative

pytestmark = pytest.mark.turns(2)

ROUNDS = ("round-1", "round-2", "round-3")
FILES = {
    "tests/test_always.py": "def test_shared():\n    pass\n",
    "round-1/test_a.py": """
import pytest

pytestmark = pytest.mark.requirement("kept")

def test_of_the_module():
    pass

@pytest.mark.requirement("old", kind="core", retired="round-2")
def test_until_a_round():
    pass

@pytest.mark.requirement("old-too", retired="new")
def test_until_a_requirement():
    pass

@pytest.mark.requirement("class", kind="integration", retired="round-3")
class TestClass:
    def test_inner(self):
        pass

    @pytest.mark.requirement("method")
    def test_own(self):
        pass

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=pytest.mark.requirement("two", retired="round-2"))])
def test_each(n):
    pass
""",
    "round-2/test_b.py": """
import pytest

@pytest.mark.requirement("two-again", kind="boundary")
def test_second():
    pass
""",
    "round-3/test_c.py": """
import pytest

@pytest.mark.requirement("new", kind="error")
def test_third(record_property):
    \"\"\"It says
    what is wrong.

    More of it.
    \"\"\"
    record_property("scenario", "a scenario")
    record_property("input", "3")
    record_property("expected", {"a": 1})
    record_property("actual", 5)
    record_property("anything", "else")

@pytest.mark.requirement("upper")
@pytest.mark.requirement("lower")
def test_of_two_markers():
    pass
""",
}


def verdict(run: SuiteRun) -> Verdict:
    assert run.verdict is not None, run.fault
    return run.verdict


@pytest.mark.parametrize(
    ("at", "requirements"),
    [
        ("round-1", ["kept", "old", "old-too", "class", "method", "kept", "two", ""]),
        ("round-2", ["kept", "old-too", "class", "method", "kept", "", "two-again"]),
        ("round-3", ["kept", "method", "kept", "", "two-again", "new", "upper"]),
    ],
)
@pytest.mark.matrix
def test_a_round_has_what_is_required_by_then(native: RunNative, at: str, requirements: list[str]) -> None:
    cases = verdict(native(FILES, rounds=ROUNDS, at=at)).cases
    assert [case.requirement for case in cases] == requirements
    assert {case.status for case in cases} == {"passed"}


def test_a_case_tells_what_its_test_says_and_of_two_markers_the_upper(native: RunNative) -> None:
    cases = {case.id: case for case in verdict(native(FILES, rounds=ROUNDS)).cases}
    assert cases["round-3/test_c.py::test_of_two_markers"].requirement == "upper"
    assert cases["round-3/test_c.py::test_third"] == Case(
        id="round-3/test_c.py::test_third",
        status="passed",
        origin="round-3",
        requirement="new",
        kind="error",
        intent="It says what is wrong.",
        scenario="a scenario",
        input="3",
        expected="{'a': 1}",
        actual="5",
    )
    assert cases["test_always.py::test_shared"] == Case(
        id="test_always.py::test_shared", status="passed", origin="round-1"
    )


def test_the_tests_of_one_round_can_run_alone(native: RunNative) -> None:
    assert [case.id for case in verdict(native(FILES, rounds=ROUNDS, only="round-2")).cases] == [
        "round-2/test_b.py::test_second"
    ]


def test_a_suite_can_run_backwards(native: RunNative) -> None:
    tests = "".join(f"def test_{n}(): pass\n" for n in range(20))
    cases = verdict(native({"round-1/test_a.py": tests}, backwards=True)).cases
    assert [case.id for case in cases] == [f"round-1/test_a.py::test_{n}" for n in reversed(range(20))]


def test_a_round_adds_to_the_rounds_before_only(native: RunNative) -> None:
    later = {"round-2/test_later.py": "raise SystemExit\n", "round-2/conftest.py": "raise SystemExit\n"}
    run = native({"round-1/test_a.py": "def test_x():\n    pass\n", **later}, at="round-1")
    assert [case.id for case in verdict(run).cases] == ["round-1/test_a.py::test_x"]


# Passed, failed, skipped.


OUTCOMES = {
    "pass": ("passed", ""),
    "assert 1 == 2, 'why'": ("failed", "AssertionError: why\nassert 1 == 2"),
    "raise ValueError('why')": ("failed", "ValueError: why"),
    "raise SystemExit(0)": ("failed", "SystemExit: 0"),
    "pytest.fail('why')": ("failed", "Failed: why"),
    "pytest.skip('why')": ("skipped", "Skipped: why"),
    "pytest.xfail('why')": ("skipped", "_pytest.outcomes.XFailed: why"),
    "with subtests.test(): assert 0": ("failed", "contains 1 failed subtest"),
    "request.applymarker(pytest.mark.xfail)": ("failed", "[XPASS(strict)]"),
}


def test_a_case_is_passed_failed_or_skipped_as_its_test_is(native: RunNative) -> None:
    bodies = enumerate(OUTCOMES)
    test = "".join(f"def test_{number}(subtests, request):\n    {body}\n\n" for number, body in bodies)
    found = verdict(native({"round-1/test_a.py": f"import pytest\n\n{test}"}))
    assert [(case.status, case.reason) for case in found.cases] == list(OUTCOMES.values())
    assert (found.reward, found.rewards) == (0.0, {"reward": 0.0})


@pytest.mark.parametrize("call", ["skip", "xfail"])
@pytest.mark.matrix
def test_a_skipped_case_is_not_passed(native: RunNative, call: str) -> None:
    found = verdict(native({"round-1/test_a.py": f"import pytest\n\ndef test_x():\n    pytest.{call}()\n"}))
    assert found.reward == 0.0
    assert found.flags == ("skipped, which is not passed: round-1/test_a.py::test_x",)


def test_the_suite_runs_as_the_verifiers_user_with_the_verifiers_variables(native: RunNative) -> None:
    test = """
import os
from pathlib import Path

def test_user(tmp_path):
    assert (os.getuid(), os.environ["TOKEN"]) == (65534, "a b")
    (tmp_path / "x").touch()
    Path("/logs/verifier/notes").touch()
"""
    run = native({"round-1/test_a.py": test}, step='[steps.verifier]\nuser = "nobody"\n', env={"TOKEN": "a b"})
    assert verdict(run).passed


def test_long_texts_are_cut(native: RunNative) -> None:
    test = """
def test_x(record_property):
    record_property("input", "i" * 10**6)
    record_property("other", "o" * 10**6)
    assert 0, "m" * 10**6
"""
    (case,) = verdict(native({"round-1/test_a.py": test})).cases
    assert len(case.input) < 5_000
    assert len(case.reason) < 5_000
    assert case.input.startswith("iiii")
    assert "[...]" in case.reason


def test_diffs_are_printed_whole(native: RunNative) -> None:
    test = """
def test_of_pytest():
    assert list(range(30)) == [*range(29), 30]

def test_of_ours():
    assert "\\n".join(f"is {n}" for n in range(300)) == "\\n".join(f"was {n}" for n in range(300))

def test_with_equal_items():
    assert {"a": 1, "b": 2} == {"a": 1, "b": 3}
"""
    run = native({"round-1/test_a.py": test})
    assert [case.status for case in verdict(run).cases] == ["failed"] * 3
    for line in ("          3,\n", "    -     30,\n", "  - was 150\n", "  + is 299\n", "Omitting 1 identical items\n"):
        assert line in run.output
    assert "-vv" not in run.output
    assert "truncated" not in run.output


# What is retired and still there.

STALE = {
    "round-1/test_a.py": """
import pytest
from pathlib import Path

TEXT = Path("text")

@pytest.mark.requirement("format", retired="new-format")
def test_old():
    assert TEXT.read_text() == "old\\n"

@pytest.mark.requirement("size", retired="round-2")
def test_size():
    assert len(TEXT.read_text()) == 4
""",
    "round-2/test_b.py": """
import pytest
from pathlib import Path

TEXT = Path("text")

@pytest.mark.requirement("new-format")
def test_new():
    assert TEXT.read_text() == "new!\\n"

@pytest.mark.requirement("size")
def test_size():
    assert len(TEXT.read_text()) == 5

@pytest.mark.requirement("other")
def test_other():
    assert TEXT.read_text().endswith("!\\n")
""",
}


@pytest.mark.parametrize(
    ("text", "failures"),
    [
        ("new!", {"new-format": None, "size": None, "other": None}),
        ("old", {"new-format": "stale", "size": "stale", "other": None}),
        ("oth", {"new-format": None, "size": "stale", "other": None}),
        ("something", {"new-format": None, "size": None, "other": None}),
    ],
)
@pytest.mark.matrix
def test_a_case_is_stale_where_what_it_replaces_still_passes(
    native: RunNative, text: str, failures: dict[str, str | None]
) -> None:
    found = verdict(native(STALE, workspace=f"echo '{text}' > text"))
    assert {case.requirement: case.failure for case in found.cases} == failures


@pytest.mark.nightly
def test_where_no_requirement_tells_all_cases_of_the_round_replace_what_it_retires(native: RunNative) -> None:
    files = {
        "round-1/test_a.py": """
import pytest

@pytest.mark.requirement("gone", retired="round-2")
def test_old():
    pass
""",
        "round-2/test_b.py": "def test_new():\n    assert 0\n\ndef test_newer():\n    pass\n",
    }
    found = verdict(native(files))
    assert [(case.status, case.failure) for case in found.cases] == [("failed", "stale"), ("passed", None)]


def test_a_case_of_another_requirement_replaces_nothing_and_is_a_new_miss(native: RunNative) -> None:
    old = "@pytest.mark.requirement('price', retired='round-2')\ndef test_price():\n    pass\n"
    new = "@pytest.mark.requirement('zone')\ndef test_zone():\n    assert 0\n"
    files = {"round-1/test_a.py": f"import pytest\n\n{old}", "round-2/test_b.py": f"import pytest\n\n{new}"}
    assert [case.failure for case in verdict(native(files)).cases] == [None]


@pytest.mark.nightly
def test_a_later_round_still_tells_what_is_stale(native: RunNative) -> None:
    files = {**STALE, "round-3/test_c.py": "def test_more():\n    assert 0\n"}
    found = verdict(native(files, rounds=ROUNDS, workspace="echo old > text"))
    assert [case.failure for case in found.cases] == ["stale", "stale", None, None]
