"""Whatever a suite leaves behind, reading it ends in a bounded result or in one of the documented errors."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from xml.sax.saxutils import quoteattr

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pytest_evocode.errors import UnreadableCases, VerifierFault
from pytest_evocode.results.cases import LONGEST_TEXT, MOST_CASES, parse_case_lines
from pytest_evocode.results.records import Case, RoundRecord, Verdict
from pytest_evocode.results.reports import CASE_FILES, parse_case_file, parse_report
from pytest_evocode.results.rewards import MOST_REWARDS, decide, parse_reward_json, parse_reward_text

#: What files of an environment are decoded to, with replacement characters for what is no UTF-8.
TEXTS = st.one_of(st.text(), st.binary().map(lambda data: data.decode("utf-8", "replace")))
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)
NAMES = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
#: Values where reports have something that they are not.
NEAR = st.one_of(
    JSON,
    st.sampled_from(["passed", "failed", "skipped", "error", "fail", "", "PASSED"]),
)
CTRF = st.fixed_dictionaries(
    {"results": st.fixed_dictionaries({"tests": st.lists(st.fixed_dictionaries(
        {"name": NEAR, "status": NEAR}, optional={"message": NEAR, "extra": NEAR | st.dictionaries(NAMES, NEAR)},
    ) | JSON, max_size=5) | JSON}) | JSON},
)  # fmt: skip
STAGE = st.fixed_dictionaries({}, optional={"crash": st.fixed_dictionaries({"message": NEAR}) | JSON}) | JSON
JSON_REPORT = st.fixed_dictionaries(
    {"tests": st.lists(st.fixed_dictionaries(
        {"nodeid": NEAR, "outcome": NEAR},
        optional={"setup": STAGE, "call": STAGE, "teardown": STAGE, "metadata": JSON | st.dictionaries(NAMES, NEAR)},
    ) | JSON, max_size=5) | JSON},
)  # fmt: skip
MARKUP = st.lists(
    st.sampled_from(
        ["<testsuite>", "</testsuite>", "<testcase name='a'>", "<testcase classname='c' name='b'/>", "</testcase>",
         "<failure message='m'>", "<failure>", "</failure>", "<error/>", "<skipped/>", "<![CDATA[", "]]>", "&amp;",
         "&#0;", "&#x1b;", "<?xml version='1.0' encoding='utf-16'?>", "<!DOCTYPE a>", "<!--", "-->", "\0", "\ud800"]
    ) | st.text(max_size=5),
    max_size=12,
).map("".join)  # fmt: skip
WORDS = st.sampled_from(
    ["CASE_RESULT ", "CASE_SUMMARY ", "case_id=", "status=", "success", "fail", "total_cases=", "actual=", '"', "\\",
     "\n", "\\u", "d800", "\\ud83d\\ude00", " ", "=", "\r", "\u2028", "intent=", "1", "\u0661"]
)  # fmt: skip
LINES = st.lists(WORDS | st.text(max_size=5), max_size=30).map("".join)


def require_bounded(cases: tuple[Case, ...]) -> None:
    """Fail unless the cases can be written to a record, and are no more than that may hold."""
    assert len(cases) <= MOST_CASES
    for case in cases:
        texts = [value for value in case.model_dump().values() if isinstance(value, str)]
        assert all(len(text) <= LONGEST_TEXT for text in texts)
        "".join(texts).encode()
    assert tuple(Case.model_validate_json(case.model_dump_json()) for case in cases) == cases


def read_file(name: str, report: str | bytes) -> None:
    with contextlib.suppress(UnreadableCases, VerifierFault):
        cases, notes = parse_case_file(name, report)
        require_bounded(cases)
        assert len({case.id for case in cases}) == len(cases)
        assert len(notes) <= 25
        "".join(notes).encode()


@contextlib.contextmanager
def short_faults(longest: int = 500) -> Iterator[None]:
    """Catch a fault whose message is not long."""
    try:
        yield
    except VerifierFault as fault:
        if len(str(fault)) > longest:
            raise


@given(TEXTS)
@example("0_1")
@example("9" * 10_000)
@example("1e" + "9" * 10_000)
def test_any_reward_text(text: str) -> None:
    with short_faults():
        rewards = parse_reward_text(text)
        assert rewards.keys() == {"reward"}
        assert math.isfinite(rewards["reward"])


@given(st.text("0123456789+-._eEnaif \n\u0661\uff11", max_size=12))
def test_a_reward_is_a_number_in_plain_digits(text: str) -> None:
    with contextlib.suppress(VerifierFault):
        parse_reward_text(text)
        assert text.isascii()
        assert "_" not in text


@given(st.floats(0, 1))
def test_a_reward_comes_back_as_it_was_written(reward: float) -> None:
    assert decide(parse_reward_text(repr(reward)), None).reward == reward
    assert decide(parse_reward_json(json.dumps({"reward": reward})), None).reward == reward


@given(TEXTS | JSON.map(json.dumps) | st.dictionaries(st.text(), JSON).map(json.dumps), st.none() | st.text())
@example('{"reward": 1' + "0" * 400 + "}", None)
@example('{"reward": 1' + "0" * 5000 + "}", None)
@example('{"' + "x" * 100_000 + '": 1}', None)
@example("[" * 100_000, None)
def test_any_reward_json(text: str, key: str | None) -> None:
    with short_faults(500 + MOST_REWARDS * 210):
        rewards = parse_reward_json(text)
        reward = decide(rewards, key).reward
        assert reward is not None
        assert math.isfinite(reward)
        assert len(rewards) <= MOST_REWARDS
        json.dumps(rewards, ensure_ascii=False, allow_nan=False).encode()


@given(TEXTS | LINES, st.booleans())
@example('CASE_RESULT case_id="\\ud800" status=success', True)
@example("CASE_RESULT \nCASE_SUMMARY total_cases=" + "9" * 100_000, True)
def test_any_output(text: str, refuse_wrong: bool) -> None:
    with contextlib.suppress(VerifierFault):
        cases, flags = parse_case_lines(text, refuse_wrong=refuse_wrong)
        require_bounded(cases)
        assert len({case.id for case in cases}) == len(cases)
        assert len(flags) <= 3
        assert sum(map(len, flags)) <= 3 * (LONGEST_TEXT + 100)
        "".join(flags).encode()


@given(st.sampled_from([*CASE_FILES]), TEXTS | JSON.map(json.dumps) | MARKUP | st.binary())
def test_any_content_as_any_file(name: str, report: str | bytes) -> None:
    read_file(name, report)


TAP = st.lists(
    st.sampled_from(
        ["ok", "not ok", " 1", " - a", "# SKIP", "# TODO", "\n", "    ", "1..2", "---", "...", "{", "}", "Bail out!"]
    )
    | st.text(max_size=5)
).map("".join)
EVENT = st.fixed_dictionaries(
    {},
    optional={"Action": NEAR, "event": NEAR, "Test": NEAR, "name": NEAR, "Package": NEAR, "type": NEAR, "Output": NEAR},
)


@given(TAP | st.lists(EVENT, min_size=1).map(lambda events: "\n".join(map(json.dumps, events))))
def test_nearly_lines(text: str) -> None:
    with contextlib.suppress(UnreadableCases, VerifierFault):
        require_bounded((parse_report("any", text) or ((), ()))[0])


@given(CTRF)
@settings(max_examples=100)
def test_nearly_ctrf(report: object) -> None:
    read_file("ctrf.json", json.dumps(report))


@given(JSON_REPORT)
@settings(max_examples=100)
def test_nearly_a_json_report(report: object) -> None:
    read_file("report.json", json.dumps(report))


@given(MARKUP)
@settings(max_examples=300)
def test_nearly_junit(text: str) -> None:
    read_file("junit.xml", f"<testsuites>{text}</testsuites>")
    read_file("junit.xml", text)


CASES = st.lists(
    st.builds(
        Case, id=NAMES, status=st.sampled_from(["passed", "failed", "skipped", "error"]), origin=NAMES,
        requirement=NAMES, kind=NAMES, intent=NAMES, scenario=NAMES, input=NAMES, expected=NAMES, actual=NAMES,
        reason=NAMES,
    ),
    max_size=4, unique_by=lambda case: case.id,
)  # fmt: skip
LINE_STATUS = {"passed": "success", "failed": "fail", "skipped": "skipped", "error": "error"}


def described(case: Case) -> dict[str, str]:
    return {
        "origin_step": case.origin, "requirement_ref": case.requirement, "case_type": case.kind, "intent": case.intent,
        "scenario": case.scenario, "input": case.input, "expected": case.expected, "actual": case.actual,
    }  # fmt: skip


@given(CASES)
def test_cases_come_back_from_their_lines(cases: list[Case]) -> None:
    output = ""
    for case in cases:
        fields = {"case_id": case.id, "status": LINE_STATUS[case.status], "failure_reason": case.reason}
        output += "CASE_RESULT "
        output += " ".join(f"{name}={json.dumps(text)}" for name, text in {**fields, **described(case)}.items()) + "\n"
    assert parse_case_lines(output) == (tuple(cases), ())


@given(CASES)
def test_cases_come_back_from_ctrf(cases: list[Case]) -> None:
    tests = [
        {"name": each.id, "status": each.status, "message": each.reason, "extra": described(each)} for each in cases
    ]
    # CTRF's own word for what is no verdict.
    for test in tests:
        test["status"] = "other" if test["status"] == "error" else test["status"]
    assert parse_case_file("ctrf.json", json.dumps({"results": {"tests": tests}}))[0] == tuple(cases)


@given(st.lists(st.text(st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1), max_size=4, unique=True))
def test_names_and_reasons_come_back_from_junit(names: list[str]) -> None:
    tests = (f"<testcase name={quoteattr(each)}><failure message={quoteattr(each)}/></testcase>" for each in names)
    cases, _ = parse_case_file("junit.xml", f"<testsuite>{''.join(tests)}</testsuite>")
    assert [(case.id, case.reason) for case in cases] == [(each, each) for each in names]


def test_the_largest_record_has_a_few_megabytes() -> None:
    def read(length: int) -> tuple[Case, ...]:
        tests = [{"name": f"t{n}", "status": "failed", "message": "\x1b" * length} for n in range(MOST_CASES)]
        return parse_case_file("ctrf.json", json.dumps({"results": {"tests": tests}}))[0]

    with pytest.raises(VerifierFault):
        read(90)
    cases = read(60)
    record = RoundRecord(
        task="t", agent="a", attempt=1, round="r", index=1, declared_rounds=1, outcome="failed",
        verdict=Verdict(reward=0, rewards={}, cases=cases),
    )  # fmt: skip
    assert len(json.dumps(record.model_dump(mode="json", exclude_defaults=True), indent=1)) < 6 * 2**20
