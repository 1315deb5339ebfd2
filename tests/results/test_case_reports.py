"""Reports of any name are told by their text."""

from __future__ import annotations

import json

import pytest

from pytest_evocode.errors import UnreadableCases, VerifierFault
from pytest_evocode.results.cases import MOST_CASES, MOST_CHARACTERS
from pytest_evocode.results.records import Case
from pytest_evocode.results.reports import parse_case_file, parse_report

CTRF = json.dumps({"results": {"tests": [{"name": "a", "status": "passed"}, {"name": "b", "status": "failed"}]}})
PYTEST = json.dumps({"tests": [{"nodeid": "a", "outcome": "passed"}, {"nodeid": "b", "outcome": "failed"}]})
JUNIT = '<?xml version="1.0"?><testsuite><testcase name="a"/><testcase name="b"><failure/></testcase></testsuite>'
TAP = "TAP version 13\n1..2\nok 1 - a\nnot ok 2 - b\n  ---\n  at: x\n  ...\n"


def cases_of(text: str) -> tuple[Case, ...]:
    found = parse_report("any", text)
    assert found is not None
    return found[0]


@pytest.mark.parametrize("text", [CTRF, PYTEST, JUNIT, TAP])
def test_the_format_is_told_by_the_text(text: str) -> None:
    assert [(case.id, case.status) for case in cases_of(text)] == [("a", "passed"), ("b", "failed")]


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"score": 1}', '{"tests": 3}', "<html></html>", "all ok", "\0"])
def test_what_is_no_report_has_no_cases(text: str) -> None:
    assert parse_report("any", text) is None


@pytest.mark.parametrize("text", ["<testsuite>", '<testsuite><testcase name="a"/>', '{"tests": [{"nodeid": "a"}]}'])
def test_a_report_that_breaks_off_is_refused_by_name(text: str) -> None:
    with pytest.raises(UnreadableCases, match=r"^any cannot be read: "):
        parse_report("any", text)


def test_what_tap_skips_or_is_still_to_do_is_skipped() -> None:
    text = "1..4\nok 1 - a # SKIP no network\nnot ok 2 - b # TODO later\nok 3\n    ok 1 - inner\nok\n"
    assert [(case.id, case.status, case.reason) for case in cases_of(text)] == [
        ("a", "skipped", "no network"),
        ("b", "skipped", "later"),
        ("test 3", "passed", ""),
        ("test 4", "passed", ""),
    ]


def test_a_flood_of_tap_is_refused() -> None:
    with pytest.raises(VerifierFault, match="flooded"):
        parse_report("any", "ok\n" * (MOST_CASES + 1))


def test_texts_of_a_suites_own_report_are_left_out_where_there_is_no_room() -> None:
    tests = [
        {"nodeid": f"a::{number}", "outcome": "failed", "call": {"crash": {"message": "x" * 4000}}}
        for number in range(2000)
    ]
    report = json.dumps({"tests": tests})
    with pytest.raises(VerifierFault, match=f"{MOST_CHARACTERS} characters of cases"):
        parse_case_file("report.json", report)
    cases, _ = parse_case_file("report.json", report, shorten=True)
    assert [(case.id, case.status) for case in cases] == [(f"a::{number}", "failed") for number in range(2000)]
    assert (len(cases[0].reason), cases[-1].reason) == (4000, "")
