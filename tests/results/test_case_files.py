"""Cases from the report files that test runners write."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import UnreadableCases, VerifierFault
from pytest_evocode.results.cases import LONGEST_TEXT, MOST_CASES, MOST_CHARACTERS
from pytest_evocode.results.records import Case
from pytest_evocode.results.reports import CASE_FILES, parse_case_file

SUITE = """
import pytest

def test_passes():
    pass

def test_fails():
    assert 1 + 1 == 3, "arithmetic"

@pytest.mark.skip(reason="later")
def test_skipped():
    pass

@pytest.mark.xfail(reason="known")
def test_expected_to_fail():
    assert False

@pytest.mark.xfail(reason="known")
def test_fixed_meanwhile():
    pass

@pytest.fixture
def broken():
    raise RuntimeError("no database")

def test_without_its_fixture(broken):
    pass

@pytest.fixture
def messy():
    yield
    raise RuntimeError("left a mess")

def test_with_a_bad_teardown(messy):
    pass

@pytest.mark.parametrize("text", ["a b", "<&>\\u00e9"])
def test_parametrised(text):
    pass

class TestInside:
    def test_method(self):
        raise ValueError("wrong\\nsecond line")
"""


@pytest.fixture(scope="module")
def reports(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory in which a real pytest ran SUITE and wrote both its reports."""
    directory = tmp_path_factory.mktemp("suite")
    (directory / "test_suite.py").write_text(SUITE, encoding="utf-8")
    (directory / "pytest.ini").write_text("[pytest]\n", encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--junitxml=junit.xml"]
    command += ["--json-report", "--json-report-file=report.json"]
    environ = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
    ended = subprocess.run(command, cwd=directory, env=environ, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 1, ended.stdout + ended.stderr
    return directory


def read(reports: Path, name: str) -> dict[str, Case]:
    cases, notes = parse_case_file(name, (reports / name).read_bytes())
    assert notes == ()
    return {case.id: case for case in cases}


def test_a_pytest_json_report_gives_one_case_per_test(reports: Path) -> None:
    cases = read(reports, "report.json")
    assert {id_.removeprefix("test_suite.py::"): case.status for id_, case in cases.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skipped": "skipped",
        "test_expected_to_fail": "skipped",
        "test_fixed_meanwhile": "passed",
        "test_without_its_fixture": "error",
        "test_with_a_bad_teardown": "error",
        "test_parametrised[a b]": "passed",
        "test_parametrised[<&>\\xe9]": "passed",
        "TestInside::test_method": "failed",
    }
    assert "arithmetic" in cases["test_suite.py::test_fails"].reason
    assert "no database" in cases["test_suite.py::test_without_its_fixture"].reason
    assert "left a mess" in cases["test_suite.py::test_with_a_bad_teardown"].reason
    assert cases["test_suite.py::test_passes"] == Case(id="test_suite.py::test_passes", status="passed")


def test_a_junit_file_of_pytest_gives_one_case_per_test(reports: Path) -> None:
    cases = read(reports, "junit.xml")
    assert {id_.removeprefix("test_suite::"): case.status for id_, case in cases.items()} == {
        "test_passes": "passed",
        "test_fails": "failed",
        "test_skipped": "skipped",
        "test_expected_to_fail": "skipped",
        "test_fixed_meanwhile": "passed",
        "test_without_its_fixture": "error",
        "test_with_a_bad_teardown": "error",
        "test_parametrised[a b]": "passed",
        "test_parametrised[<&>\\xe9]": "passed",
        "test_suite.TestInside::test_method": "failed",
    }
    assert "arithmetic" in cases["test_suite::test_fails"].reason
    assert cases["test_suite::test_skipped"].reason == "later"


def test_junit_takes_the_text_of_a_failure_without_a_message() -> None:
    test = "<testcase name='a'><failure>\n why \n</failure></testcase>"
    text = f'<?xml version="1.0" encoding="utf-8"?><testsuite>{test}</testsuite>'
    assert parse_case_file("junit.xml", text)[0] == (Case(id="a", status="failed", reason="why"),)


def test_junit_ignores_what_a_test_printed() -> None:
    text = "<testsuite><testcase classname='c' name='a'><system-out>failure</system-out></testcase></testsuite>"
    assert parse_case_file("junit.xml", text)[0] == (Case(id="c::a", status="passed"),)


@pytest.mark.parametrize(
    "declaration",
    ["<!DOCTYPE lolz [<!ENTITY a 'aaaa'><!ENTITY b '&a;&a;'>]>", "<!DOCTYPE testsuite SYSTEM 'file:///etc/passwd'>"],
)
def test_junit_with_a_document_type_is_refused(declaration: str) -> None:
    for prolog in ("<?xml version='1.0'?>", "\ufeff<?xml version='1.0'?>\n<!-- <a> -->\n<?style <b> ?>\n", ""):
        text = f"{prolog}{declaration}<testsuite><testcase name='a'/></testsuite>"
        with pytest.raises(UnreadableCases, match="declares a document type"):
            parse_case_file("junit.xml", text)


def test_junit_with_a_web_page_in_its_text_is_read() -> None:
    failure = "<failure><![CDATA[<!DOCTYPE html><!ENTITY x 'y'><html>500</html>]]></failure>"
    text = f"<!-- of <!DOCTYPE --><testsuite><testcase name='a'>{failure}</testcase></testsuite>"
    reason = "<!DOCTYPE html><!ENTITY x 'y'><html>500</html>"
    assert parse_case_file("junit.xml", text)[0] == (Case(id="a", status="failed", reason=reason),)


def test_a_prolog_that_never_ends_takes_no_time() -> None:
    for text in ("<!--" * 500_000, "<?" * 500_000, "<!-- -->" * 300_000 + "<!--" * 300_000):
        with pytest.raises(UnreadableCases):
            parse_case_file("junit.xml", text)


def ctrf(*tests: Any) -> str:
    return json.dumps({"results": {"tool": {"name": "jest"}, "summary": {"tests": len(tests)}, "tests": tests}})


def test_ctrf_gives_every_field_of_a_case() -> None:
    extra = {
        "origin_step": "round-2",
        "requirement_ref": "R7",
        "case_type": "core",
        "intent": "sums",
        "scenario": "two rows",
        "input": [1, 2],
        "expected": 3,
        "actual": None,
    }
    text = ctrf({"name": "sum", "status": "failed", "duration": 3, "message": "4 is not 3", "extra": extra})
    assert parse_case_file("ctrf.json", text)[0] == (
        Case(
            id="sum",
            status="failed",
            origin="round-2",
            requirement="R7",
            kind="core",
            intent="sums",
            scenario="two rows",
            input="[1, 2]",
            expected="3",
            reason="4 is not 3",
        ),
    )


@pytest.mark.parametrize(
    ("status", "read_as"),
    [
        ("passed", "passed"),
        ("failed", "failed"),
        ("skipped", "skipped"),
        ("pending", "skipped"),
        ("other", "error"),
        ("exploded", "error"),
        (None, "error"),
        (["passed"], "error"),
        (True, "error"),
    ],
)
def test_a_ctrf_status_that_is_not_known_is_an_error(status: Any, read_as: str) -> None:
    (case,), _ = parse_case_file("ctrf.json", ctrf({"name": "a", "status": status}))
    assert case.status == read_as


def test_half_a_surrogate_pair_cannot_break_the_record() -> None:
    text = ctrf({"name": "a\ud800", "status": "passed", "message": "\udfff"})
    for case in (*parse_case_file("ctrf.json", text)[0], *parse_case_file("report.json", NAMED_HALF_A_PAIR)[0]):
        assert Case.model_validate_json(case.model_dump_json()) == case
        assert case.id == "a?"


def test_a_report_of_no_tests_gives_no_cases() -> None:
    assert parse_case_file("ctrf.json", ctrf()) == ((), ())
    assert parse_case_file("report.json", '{"tests": []}') == ((), ())
    assert parse_case_file("junit.xml", "<testsuites/>") == ((), ())


NAMED_HALF_A_PAIR = '{"tests": [{"nodeid": "a\\ud800", "outcome": "passed"}]}'
WRONG_CTRF = [
    "{}",
    '{"results": null}',
    '{"results": []}',
    '{"results": {"tests": null}}',
    '{"results": {"tests": 3}}',
    '{"results": {"tests": "abc"}}',
    '{"results": {"tests": {"a": 1}}}',
    '{"results": {"tests": [1]}}',
    '{"results": {"tests": [null]}}',
    '{"results": {"tests": [{"name": "a"}]}}',
    '{"results": {"tests": [{"status": "passed"}]}}',
    '{"results": {"tests": [{"name": "a", "status": "passed", "extra": "text"}]}}',
]
WRONG_JSON_REPORT = [
    "{}",
    '{"tests": null}',
    '{"tests": "abc"}',
    '{"tests": {"a": 1}}',
    '{"tests": [1]}',
    '{"tests": [{"nodeid": "a"}]}',
    '{"tests": [{"outcome": "passed"}]}',
    '{"tests": [{"nodeid": "a", "outcome": {}}]}',
    '{"tests": [{"nodeid": "a", "outcome": "failed", "call": "text"}]}',
    '{"tests": [{"nodeid": "a", "outcome": "failed", "call": {"crash": "text"}}]}',
]
WRONG_ANY = ["", "not json", "[", "[1]", "null", "1", '"text"', "[" * 100_000, "\x00"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        *(("ctrf.json", text) for text in WRONG_CTRF + WRONG_ANY),
        *(("report.json", text) for text in WRONG_JSON_REPORT + WRONG_ANY),
        *(
            ("junit.xml", text)
            for text in ["<testsuite>", "<a></b>", "<testsuite/>x", "&bomb;", "<a>\ud800</a>", *WRONG_ANY]
        ),
    ],
    ids=lambda value: value[:40],
)
def test_a_file_of_another_shape_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(UnreadableCases) as caught:
        parse_case_file(name, text)
    assert str(caught.value).startswith(f"{name} is not what its name says: ")
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", CASE_FILES)
def test_deep_nesting_does_not_end_the_program(name: str) -> None:
    text = "<a>" * 200_000 + "</a>" * 200_000 if name == "junit.xml" else '{"a":' * 200_000
    try:
        cases, _ = parse_case_file(name, text)
    except UnreadableCases:
        cases = ()
    assert cases == ()


def file_of(name: str, number: int, text: str = "") -> str:
    """Return a report with so many passed tests."""
    tests: list[dict[str, Any]]
    if name == "junit.xml":
        one = f'<testcase name="t%d"><skipped message="{text}"/></testcase>'
        return "<testsuite>" + "".join(one % index for index in range(number)) + "</testsuite>"
    if name == "ctrf.json":
        tests = [{"name": f"t{index}", "status": "passed", "message": text} for index in range(number)]
        return json.dumps({"results": {"tests": tests}})
    return json.dumps(
        {
            "tests": [
                {"nodeid": f"t{i}", "outcome": "passed", "call": {"crash": {"message": text}}} for i in range(number)
            ]
        }
    )


@pytest.mark.parametrize("name", CASE_FILES)
@pytest.mark.matrix
def test_a_file_with_more_cases_than_any_suite_has_is_a_flood(name: str) -> None:
    assert len(parse_case_file(name, file_of(name, MOST_CASES))[0]) == MOST_CASES
    with pytest.raises(VerifierFault, match=f"{name} has more than {MOST_CASES} cases"):
        parse_case_file(name, file_of(name, MOST_CASES + 1))


@pytest.mark.parametrize("name", CASE_FILES)
def test_a_file_with_more_text_than_a_record_may_hold_is_a_flood(name: str) -> None:
    with pytest.raises(VerifierFault, match=f"{name} has more than {MOST_CHARACTERS} characters"):
        parse_case_file(name, file_of(name, 2000, "x" * 4000))


@pytest.mark.parametrize("name", CASE_FILES)
def test_a_long_text_loses_its_middle(name: str) -> None:
    (case,), _ = parse_case_file(name, file_of(name, 1, "begin " + "x" * 2_000_000 + " end"))
    assert len(case.reason) <= LONGEST_TEXT
    assert (case.reason[:8], case.reason[-5:]) == ("begin xx", "x end")


def test_a_junit_file_of_very_many_elements_takes_little_memory() -> None:
    # As elements of a tree they would take three times as much as there may be.
    text = "<testsuite>" + "<a/>" * 150_000 + "</testsuite>"
    tracemalloc.start()
    try:
        assert parse_case_file("junit.xml", text) == ((), ())
        assert tracemalloc.get_traced_memory()[1] < 2**22
    finally:
        tracemalloc.stop()


def test_junit_takes_only_the_text_before_what_is_within_a_failure() -> None:
    text = "<testcase name='a'><failure> why <b>not</b> this</failure><system-out>nor this</system-out></testcase>"
    assert [case.reason for case in parse_case_file("junit.xml", text)[0]] == ["why"]
