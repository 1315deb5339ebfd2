"""Reports as test runners write them: each file in ``reports/`` is read as the ``expected.toml`` beside it says."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import UnreadableCases
from pytest_evocode.results.records import Case
from pytest_evocode.results.reports import parse_report

CORPUS = Path(__file__).parent / "reports"
EXPECTED = {
    toml.with_name(name): expected
    for toml in sorted(CORPUS.glob("*/expected.toml"))
    for name, expected in tomllib.loads(toml.read_text(encoding="utf-8")).items()
}
Read = tuple[tuple[Case, ...], tuple[str, ...]]


def each_report(*endings: str) -> pytest.MarkDecorator:
    """Run a test with each report, or with those whose names end so."""
    paths = [path for path in EXPECTED if path.name.endswith(endings or ("",))]
    return pytest.mark.parametrize("path", paths, ids=[str(path.relative_to(CORPUS)) for path in paths])


def read(report: bytes | str) -> Read:
    found = parse_report("R", report)
    assert found is not None
    return found


@each_report()
def test_every_test_has_its_state_and_a_name_of_its_own(path: Path) -> None:
    expected: dict[str, Any] = EXPECTED[path]
    cases, notes = read(path.read_bytes())
    assert [(case.id, case.status) for case in cases] == [*expected["cases"].items()]
    assert [case.id for case in cases if case.flaky] == expected.get("flaky", [])
    assert [*notes] == expected.get("notes", [])


def test_every_report_is_expected() -> None:
    found = {path for path in CORPUS.glob("*/*") if path.name != "expected.toml"}
    assert found == EXPECTED.keys()


@each_report()
@pytest.mark.parametrize(
    "change",
    [
        lambda report: b"\xef\xbb\xbf" + report,
        lambda report: report.decode().encode("utf-16"),
        lambda report: report.replace(b"\n", b"\r\n"),
    ],
    ids=["byte order mark", "UTF-16", "CRLF"],
)
def test_it_is_the_same_in_the_bytes_that_other_systems_write(path: Path, change: Callable[[bytes], bytes]) -> None:
    report = re.sub(rb'encoding="[^"]*"', b"", path.read_bytes(), count=1)
    changed, known = read(change(report)), read(report)
    assert [(case.id, case.status) for case in changed[0]] == [(case.id, case.status) for case in known[0]]
    assert changed[1] == known[1]


@each_report(".xml")
def test_it_is_the_same_with_a_namespace(path: Path) -> None:
    report = path.read_text(encoding="utf-8")
    named = re.sub(r"(<testsuites?)\b", r'\1 xmlns:j="urn:junit"', report, count=1)
    named = re.sub(r"(</?)((?:test|system|propert|failure|error|skipped|rerun|flaky)\w*)", r"\1j:\2", named)
    assert read(named) == read(report)


@each_report()
def test_a_part_of_it_is_not_taken_for_the_whole(path: Path) -> None:
    report = path.read_bytes()
    for parts in range(1, 8):
        part = report[: len(report) * parts // 8]
        if path.suffix == ".tap":  # Its lines are written as a whole.
            part = part[: part.rfind(b"\n") + 1]
        try:
            found = parse_report("R", part)
        except UnreadableCases:
            continue
        assert found is None or found[1], f"nothing says that {parts} of 8 parts are not all"


LATIN = '<?xml version="1.0" encoding="ISO-8859-1"?>\n<testsuite tests="1"><testcase name="caf\xe9"/></testsuite>\n'


@pytest.mark.parametrize(
    "report",
    [
        LATIN.encode("latin-1"),
        LATIN.replace("ISO-8859-1", "windows-1252").encode("cp1252"),
        LATIN.replace("ISO-8859-1", "UTF-8").encode(),
        LATIN.replace("ISO-8859-1", "UTF-16").encode("utf-16"),
        LATIN.replace("ISO-8859-1", "UTF-16").encode("utf-16-le"),
        LATIN.replace("ISO-8859-1", "UTF-16").encode("utf-16-be"),
    ],
)
def test_the_encoding_is_what_xml_declares(report: bytes) -> None:
    assert read(report) == ((Case(id="caf\xe9", status="passed"),), ())


@pytest.mark.parametrize("encoding", ["punycode", "unicode_escape", "zip", "rot13", "idna", "undefined", "no-such"])
def test_an_encoding_that_is_none_of_characters_is_not_used(encoding: str) -> None:
    assert read(LATIN.replace("ISO-8859-1", encoding).encode())[0][0].id == "caf\xe9"


@pytest.mark.parametrize(
    ("report", "id"),
    [
        (b'<testsuite>\n<testcase name="caf\xe9"/></testsuite>', "caf\ufffd"),
        (b'{"tests":\n[{"nodeid": "caf\xe9", "outcome": "passed"}]}', "caf\ufffd"),
        (b"1..1\nok 1 - caf\xe9\n", "caf\ufffd"),
    ],
)
def test_one_bad_byte_costs_no_more_than_itself_and_is_told(report: bytes, id: str) -> None:
    assert read(report) == (
        (Case(id=id, status="passed"),),
        ("R, line 2: the byte 0xe9 is not utf-8, and is read as \ufffd",),
    )


@pytest.mark.parametrize("wrong", ["\x1b", "\0", "&#27;", "&#x0;", "&#x1B;", "&#0011;"])
def test_a_character_that_xml_cannot_have_costs_no_more_than_itself_and_is_told(wrong: str) -> None:
    report = f'<testsuite>\n<testcase name="a"><failure>{wrong}[31mred&#10;&#x9;</failure></testcase></testsuite>'
    assert read(report) == (
        (Case(id="a", status="failed", reason="\ufffd[31mred"),),
        (f"R, line 2: XML cannot have the character {wrong!r}, which is read as \ufffd",),
    )


@pytest.mark.parametrize(
    ("report", "place"),
    [
        ('{"tests": [{"nodeid": "a", "outcome": "passed"}, {"nodeid": "b"}]}', "tests[1]: KeyError: 'outcome'"),
        ('{"results": {"tests": [{"name": "a"}]}}', "results.tests[0]: KeyError: 'status'"),
        ('{"testResults": [{"assertionResults": [{}]}]}', "testResults[0].assertionResults[0]: KeyError: 'name'"),
        ('<testsuite>\n<testcase name="a">\n</testsuite>', "mismatched tag: line 3, column 2"),
    ],
)
def test_what_cannot_be_read_is_named_with_its_place(report: str, place: str) -> None:
    with pytest.raises(UnreadableCases) as refused:
        parse_report("R", report)
    assert str(refused.value).startswith("R cannot be read: ")
    assert str(refused.value).endswith(place)


def test_a_block_in_tap_that_nobody_ends_hides_no_test() -> None:
    cases, notes = read("1..2\nnot ok 1 - a\n  ---\n  message: |\n    ok 2 - b\nok 2 - c\n")
    assert [(case.id, case.status) for case in cases] == [("a", "failed"), ("c", "passed")]
    assert notes == ()


@pytest.mark.parametrize(
    ("events", "id", "reason"),
    [
        ('{"Action": "run", "Package": "p", "Test": "TestA"}\n', "p::TestA", "it began in line 1 and did not end"),
        ('{"type": "test", "event": "started", "name": "a"}\n', "a", "it began in line 1 and did not end"),
        (
            '{"Action": "start", "Package": "p"}\n# p\n{"Action": "output", "Package": "p", "Output": "no x\\n"}\n'
            '{"Action": "fail", "Package": "p"}\n',
            "p",
            "no x",
        ),
    ],
)
def test_what_begins_and_does_not_end_and_what_ends_without_a_test_is_an_error(
    events: str, id: str, reason: str
) -> None:
    assert read(events)[0] == (Case(id=id, status="error", reason=reason),)


def test_names_that_come_again_are_counted() -> None:
    names = ["a", "a (2)", "a", "a", "b"]
    cases, _ = read("1..5\n" + "".join(f"ok - {name}\n" for name in names))
    assert [case.id for case in cases] == ["a", "a (2)", "a (3)", "a (4)", "b"]


def test_many_notes_are_a_few() -> None:
    suites = "".join(f'<testsuite name="s{number}" tests="2"><testcase name="a"/></testsuite>' for number in range(99))
    _, notes = read(f"<testsuites>{suites}</testsuites>")
    assert notes[0] == "R, line 1: s0 announces 2 tests and has 1: it is not complete"
    assert (len(notes), notes[-1]) == (21, "R: and more like this")
