"""What a failed round says, word for word."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from pytest_evocode.report.failures import describe_failure
from pytest_evocode.results.cases import GAP, LONGEST_TEXT, without_middle
from pytest_evocode.results.records import Case, RoundRecord, Verdict

OUTPUT = Path("results/test-stdout.txt")


def failed(
    *cases: Case,
    reward: float = 0.0,
    cause: str = "",
    flags: tuple[str, ...] = (),
    timed_out: Literal["agent", "verifier"] | None = None,
    output: Path = OUTPUT,
    whole: bool = False,
) -> str:
    record = RoundRecord(
        task="ledger",
        agent="oracle",
        attempt=1,
        round="round-2",
        index=2,
        declared_rounds=3,
        outcome="failed",
        cause=cause,
        timed_out=timed_out,
        verdict=Verdict(
            reward=reward,
            rewards={"reward": reward},
            cases=cases,
            flags=flags,
            timed_out=timed_out == "verifier",
        ),
    )
    return describe_failure(record, output, whole=whole)


def case(id_: str, failure: str | None = "new miss", **fields: Any) -> Case:
    return Case.model_validate({"id": id_, "status": "failed", "failure": failure, **fields})


PASSED = Case(id="fine", status="passed", intent="is not mentioned")


def test_new_misses_stand_apart_from_regressions() -> None:
    report = failed(
        PASSED,
        case(
            "sum",
            origin="round-2",
            intent="adds the rows up",
            scenario="two rows",
            input="1 2",
            expected="3",
            actual="4",
            reason="off by one",
        ),
        case("list", "regression", origin="round-1", status="error"),
        case("show", "carried", origin="round-1", scenario="an empty file"),
        Case(id="later", status="skipped"),
    )
    assert report == (
        "round-2 failed: 3 of 5 cases failed (1 new miss, 1 regression, 1 carried)\n"
        "new misses: first required in this round (1)\n"
        "  sum [round-2]\n"
        "      adds the rows up\n"
        "      scenario: two rows\n"
        "      input: 1 2\n"
        "      expected: 3\n"
        "      actual: 4\n"
        "      off by one\n"
        "regressions: passed in an earlier round of this attempt (1)\n"
        "  list [round-1]\n"
        "carried: required before, never passed (1)\n"
        "  show [round-1]\n"
        "      an empty file\n"
        "suite output: results/test-stdout.txt"
    )


def test_a_single_failing_case_is_one_regression() -> None:
    assert failed(PASSED, case("list", "regression")) == (
        "round-2 failed: 1 of 2 cases failed (0 new misses, 1 regression)\n"
        "regressions: passed in an earlier round of this attempt (1)\n"
        "  list\n"
        "suite output: results/test-stdout.txt"
    )


def test_a_case_that_was_not_judged_is_listed() -> None:
    assert "  odd\n" in failed(case("odd", None))


def test_a_reward_below_one_without_a_failing_case_says_so() -> None:
    flag = "the reward is 0.5, but none of 1 cases failed"
    assert failed(PASSED, reward=0.5, flags=(flag,)) == (
        f"round-2 failed: reward 0.5, no failed case reported\nnote: {flag}\nsuite output: results/test-stdout.txt"
    )


def test_without_a_failing_case_the_end_of_the_suites_output_is_shown(tmp_path: Path) -> None:
    output = tmp_path / "test-stdout.txt"
    output.write_text("".join(f"line {number}\n" for number in range(99)) + "\n  bash: foo: not found\n")
    shown = failed(output=output).partition(f"{output}\n")[2].splitlines()
    assert shown == [*(f"    line {number}" for number in range(77, 99)), "", "      bash: foo: not found"]


def test_a_suite_out_of_time_says_so() -> None:
    cause = "the suite was stopped at its timeout of 600 s"
    assert failed(cause=cause, timed_out="verifier") == (
        f"round-2 failed: timeout, no failed case reported\n{cause}\nsuite output: results/test-stdout.txt"
    )


@pytest.mark.parametrize("whose", ["agent", "verifier"])
def test_whose_time_was_up_is_told_beside_the_failing_cases(whose: Literal["agent", "verifier"]) -> None:
    lines = failed(case("a"), cause=f"the {whose} was stopped\nin two lines", timed_out=whose).splitlines()
    assert lines[:3] == [
        f"round-2 failed: {whose} timeout, 1 of 1 cases failed (1 new miss, 0 regressions)",
        f"the {whose} was stopped",
        "in two lines",
    ]


def test_all_flags_are_notes_before_the_place_of_the_output() -> None:
    assert failed(case("a"), flags=("one", "two")).splitlines()[-3:] == [
        "note: one",
        "note: two",
        "suite output: results/test-stdout.txt",
    ]


def test_lines_of_a_long_value_stand_under_one_another() -> None:
    report = failed(case("a", expected="one\n  two\nthree\n", actual="\n\none"))
    assert report.splitlines()[2:7] == [
        "  a",
        "      expected: one",
        "                  two",
        "                three",
        "      actual: one",
    ]


def test_long_texts_are_cut_and_say_how_much_is_left_out() -> None:
    report = failed(case("a", actual="x" * 1_000_000, expected="y" * 300, reason="z" * 2001))
    assert report.splitlines()[3:8] == [
        "      expected: " + "y" * 300,
        "      actual: " + "x" * 300,
        "      ... 999,700 more characters, use '-vv' to show",
        "      " + "z" * 2000,
        "      ... 1 more character, use '-vv' to show",
    ]


DIFF = "\n".join(["assert actual == expected", *(f"- line {number}" for number in range(99))])


def test_of_a_diff_a_screenful_is_shown() -> None:
    shown = failed(case("a", reason=DIFF)).splitlines()[3:-1]
    assert shown[:2] == ["      assert actual == expected", "      - line 0"]
    assert shown[-2:] == ["      - line 22", "      ... 76 more lines, use '-vv' to show"]


def test_all_of_a_diff_is_shown_where_it_is_asked_for() -> None:
    cases = [case(f"case-{number}", reason=DIFF, actual="x" * 4000) for number in range(30)]
    report = failed(*cases, whole=True)
    assert report.count("- line 98\n") == 30
    assert report.count("x" * 4000) == 30
    assert " more" not in report


def test_what_the_record_lacks_comes_from_the_suites_output(tmp_path: Path) -> None:
    output = tmp_path / "test-stdout.txt"
    failures = "======== FAILURES ========\n" + "- line\n" * 10_000 + "==== 1 failed in 0.1s ===="
    output.write_text(f"collected 2 items\n{failures}\n")
    reason = without_middle("- line\n" * 10_000, LONGEST_TEXT)
    assert failed(case("a", reason=reason), whole=True, output=output).endswith(f"suite output: {output}\n{failures}")
    assert "... at least " in failed(case("a", reason=reason), output=output)
    assert "FAILURES" not in failed(case("a", reason="- line"), whole=True, output=output), "all of it is there"


def test_of_a_script_all_output_is_shown_and_of_a_flood_its_ends(tmp_path: Path) -> None:
    output = tmp_path / "test-stdout.txt"
    output.write_text("first\n" + "x" * 5_000_000 + "\nlast\n")
    reason = without_middle("x" * 5000, LONGEST_TEXT)
    report = failed(case("a", reason=reason), whole=True, output=output)
    assert len(report) < 1_200_000
    assert "\nfirst\n" in report
    assert report.endswith("\nlast")


def test_an_output_that_is_gone_is_no_error(tmp_path: Path) -> None:
    report = failed(case("a", reason=f"a{GAP}b"), whole=True, output=tmp_path / "gone")
    assert report.endswith("it cannot be read: No such file or directory")


def test_a_value_of_many_lines_is_shown_in_part() -> None:
    report = failed(case("a", actual="\n".join(map(str, range(100_000)))))
    assert len(report.splitlines()) < 150
    assert len(report) < 5_000


def test_a_value_of_blanks_leaves_an_empty_place() -> None:
    assert "      actual: \n" in failed(case("a", actual=" \n "))


@pytest.mark.parametrize(("count", "more"), [(19, None), (20, None), (21, 1), (500, 480)])
def test_no_more_than_twenty_cases_of_a_kind_are_shown(count: int, more: int | None) -> None:
    lines = failed(
        *(case(f"new-{number}") for number in range(count)),
        *(case(f"old-{number}", "regression") for number in range(count)),
    ).splitlines()
    shown = min(count, 20)
    assert (
        lines[0] == f"round-2 failed: {2 * count} of {2 * count} cases failed ({count} new misses, {count} regressions)"
    )
    assert [line.strip() for line in lines if line.startswith("  new-")] == [f"new-{i}" for i in range(shown)]
    assert [line.strip() for line in lines if line.startswith("  old-")] == [f"old-{i}" for i in range(shown)]
    assert [line for line in lines if "more" in line] == (
        [f"  ... and {more} more, use '-vv' to show"] * 2 if more else []
    )
