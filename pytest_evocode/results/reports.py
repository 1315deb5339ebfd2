"""Reading of the reports in which test runners list their tests: a reader for each format, and rules that all share.

A reader yields cases, and texts on what is wrong with the report, each of which begins with its place there.
"""

from __future__ import annotations

import codecs
import contextlib
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from xml.parsers import expat

from pytest_evocode.errors import UnreadableCases
from pytest_evocode.results.cases import LONGEST_TEXT, MOST_CASES, as_case, bounded, status_of
from pytest_evocode.results.records import Case, CaseStatus

Found: TypeAlias = "tuple[tuple[Case, ...], tuple[str, ...]]"
"""The cases of a report, and what is to be said of it beside them."""
_Reading: TypeAlias = Iterator[Case | str]

#: How the names of files end that may be reports of cases.
REPORT_ENDINGS = (".json", ".xml", ".tap")
_WRONG = (ValueError, KeyError, TypeError, AttributeError, RecursionError, expat.ExpatError)
_MOST_NOTES, _SHOWN = 20, 5
_SHORT = 60  # characters


def parse_case_file(name: str, report: bytes | str, *, shorten: bool = False) -> Found:
    """Return the cases of a report that has one of the usual names.

    Args:
        name: One of :data:`CASE_FILES`, which says the format; a report in another format is read all the same.
        report: The content; it may be hostile, but its size is the caller's to limit.
        shorten: Leave out texts of cases that are too long in all, and refuse none.

    Raises:
        UnreadableCases: The content is in no format.
        VerifierFault: There are more cases, or longer ones, than a suite may report.
    """
    text, notes = _decoded(name, report)
    try:
        return _gathered(CASE_FILES[name](text), name, notes, shorten=shorten)
    except _WRONG as error:
        wrong = UnreadableCases(f"{name} is not what its name says: {type(error).__name__}: {error}")
    try:
        found = parse_report(name, report)
    except UnreadableCases:
        raise wrong from None
    if found is None:
        raise wrong
    return found


def parse_report(name: str, report: bytes | str) -> Found | None:
    """Return the cases of a report in any of the formats, or None where the content is in none of them.

    Args:
        name: What messages call it.
        report: Its content; it may be hostile, but its size is the caller's to limit.

    Raises:
        UnreadableCases: It is in one of the formats up to a place that is wrong.
        VerifierFault: There are more cases, or longer ones, than a suite may report.
    """
    text, notes = _decoded(name, report)
    try:
        reading = _recognised(text)
        return None if reading is None else _gathered(reading, name, notes)
    except _WRONG as error:
        raise UnreadableCases(f"{name} cannot be read: {type(error).__name__}: {error}") from None


def _recognised(text: str) -> _Reading | None:
    """Return the reading of a text by the reader of its format, or None where it has none."""
    head = text.lstrip()[:_LONGEST_LINE]
    if head.startswith("<"):
        return _junit(text) if _JUNIT.search(text) else None
    if not head.startswith("{"):
        return _tap(text) if _TAP_HEAD.match(head) else None
    try:
        report = json.loads(text)
    except (ValueError, RecursionError):
        return _events(text) if _EVENT.search(head) else None
    results = report.get("results")
    if isinstance(results, dict) and _are_tables(results.get("tests"), "name"):
        return _ctrf(report)
    if _are_tables(report.get("testResults"), "assertionResults"):
        return _jest(report)
    if _are_tables(report.get("tests"), "nodeid"):
        return _json_report(report)
    return _events(text) if _EVENT.search(head) else None


def _are_tables(value: object, key: str) -> bool:
    """Return whether a value is a list, empty or of tables with such a key as far as its first tells."""
    return isinstance(value, list) and all(isinstance(first, dict) and key in first for first in value[:1])


def _gathered(reading: Iterable[Case | str], name: str, notes: list[str], *, shorten: bool = False) -> Found:
    """Return what a reader yields: each case with an id of its own, and each note with the name of the report."""
    again: list[str] = []

    def cases() -> Iterator[Case]:
        taken: dict[str, int] = {}
        for found in reading:
            if isinstance(found, str):
                if len(notes) < _MOST_NOTES:
                    notes.append(f"{name}, {found}")
                elif len(notes) == _MOST_NOTES:
                    notes.append(f"{name}: and more like this")
                continue
            case = found
            if found.id in taken:
                taken[found.id] += 1
                while (new := f"{found.id[: LONGEST_TEXT - _SHORT]} ({taken[found.id]})") in taken:
                    taken[found.id] += 1
                case = found.model_copy(update={"id": new})
            taken[case.id] = 1
            if case.flaky:
                again.append(case.id)
            yield case

    kept = bounded(cases(), name, shorten=shorten)
    if again:
        more = f" and {len(again) - _SHOWN} more" if len(again) > _SHOWN else ""
        notes.append(f"{name}: passed when run again: {', '.join(map(_shortened, again[:_SHOWN]))}{more}")
    return kept, tuple(notes)


def _short_of(place: str, announced: object, found: int, what: str = "tests") -> Iterator[str]:
    """Yield a note where a report announces more tests than are in it."""
    if (number := _number(announced)) > found:
        counted = what.removesuffix("s") if number == 1 else what
        yield f"{place} announces {number} {counted} and has {found}: it is not complete"


def _number(value: object) -> int:
    """Return a number of tests; 0 for anything that is none.

    >>> _number("12"), _number(3), _number(True), _number("many"), _number(None)
    (12, 3, 0, 0, 0)
    """
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,9}", value):
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


def _shortened(text: str) -> str:
    return text if len(text) <= _SHORT else f"{text[: _SHORT - 3]}..."


# Bytes.

_DECLARED = re.compile(rb"""\s*<\?xml[^>]{1,200}?encoding\s*=\s*["']([A-Za-z0-9._:-]{1,40})["']""")


def _decoded(name: str, report: bytes | str) -> tuple[str, list[str]]:
    """Return a report as text, without a byte order mark, and notes on bytes that are none in its encoding.

    Zeros and byte order marks tell UTF-16 and UTF-32; XML may declare an encoding in which a byte is a character.
    """
    if isinstance(report, str):
        return report.removeprefix("\ufeff"), []
    encoding: str = json.detect_encoding(report)
    declared = _DECLARED.match(report)
    if encoding == "utf-8" and declared and _is_of_single_bytes(declared[1].decode()):
        encoding = declared[1].decode()
    try:
        return report.decode(encoding).removeprefix("\ufeff"), []
    except UnicodeDecodeError as error:
        line = report.count(b"\n", 0, error.start) + 1
        note = f"{name}, line {line}: the byte {report[error.start]:#04x} is not {encoding}, and is read as \ufffd"
        return report.decode(encoding, "replace").removeprefix("\ufeff"), [note]


def _is_of_single_bytes(encoding: str) -> bool:
    r"""Return whether each byte is a character in an encoding, and those of ASCII are themselves.

    Others could take very long. The backslash tells those that read escapes, which would warn of wrong ones.

    >>> [_is_of_single_bytes(each) for each in ("ISO-8859-1", "cp1252", "big5", "punycode", "unicode_escape", "zip")]
    [True, True, False, False, False, False]
    """
    try:
        codecs.lookup(encoding)
        return len(rb"\n".decode(encoding)) == 2 and len(bytes(range(128, 256)).decode(encoding, "replace")) == 128
    except (LookupError, ValueError):
        return False


# JSON: CTRF, pytest-json-report, jest.


@contextlib.contextmanager
def _at(place: str) -> Iterator[None]:
    """Say in which place of a report something is wrong."""
    try:
        yield
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"{place}: {type(error).__name__}: {error}") from None


def _ctrf(report: Any) -> _Reading:
    results = report["results"]
    found = failing = 0
    for number, test in enumerate(results["tests"]):
        with _at(f"results.tests[{number}]"):
            status = test["status"]
            if status == "other" and status_of(test.get("rawStatus")) == "skipped":
                status = "skipped"  # CTRF has no word for jest's todo.
            case = as_case(test.get("extra") or {}, id=test["name"], status=status, reason=test.get("message"))
            # Old pytest-json-ctrf, which alone writes file_path, makes one test of all parameters and counts them here.
            retries = 0 if "file_path" in test else _number(test.get("retries"))
            again = test.get("flaky") is True or retries > 0
        yield _run_again(case) if again else case
        found += 1
        failing += case.failing
    summary = results.get("summary")
    if isinstance(summary, dict):
        yield from _short_of("results.summary", summary.get("tests"), found)
        yield from _short_of("results.summary", summary.get("failed"), failing, "failed tests")


def _run_again(case: Case) -> Case:
    """Return the case of a test that was run again because it had failed."""
    return case.model_copy(update={"flaky": case.status == "passed"})


def _json_report(report: Any) -> _Reading:
    statuses = []
    for number, test in enumerate(report["tests"]):
        with _at(f"tests[{number}]"):
            statuses.append(_of_stages(test["outcome"], *_stages(test)))
    # A module that does not import, or is skipped as a whole, has no tests.
    modules = [each for each in report.get("collectors") or () if each["outcome"] != "passed"]
    failing = any(status_of(status) in ("failed", "error") for status in statuses)
    hidden = report.get("exitcode") == 1 and not failing and not any(each["outcome"] == "failed" for each in modules)
    for number, (test, status) in enumerate(zip(report["tests"], statuses, strict=True)):
        with _at(f"tests[{number}]"):
            case = _test_of_pytest(test, status)
        if hidden and str(test["outcome"]).startswith("subtests"):
            # What was said of a subtest that failed is gone when a later one passes.
            reason = "pytest ended with exit code 1, so one of its subtests failed"
            case = case.model_copy(update={"status": "failed", "reason": reason})
        yield _run_again(case) if test["outcome"] == "rerun" else case
    for module in modules:
        status = "error" if module["outcome"] == "failed" else module["outcome"]
        yield as_case({}, id=module["nodeid"], status=status, reason=module.get("longrepr"))
    summary = report.get("summary")
    if isinstance(summary, dict):
        collected = _number(summary.get("collected")) - _number(summary.get("deselected"))
        yield from _short_of("summary", collected, len(statuses))
    if hidden:
        yield "exitcode is 1, and no test is said to have failed"


def _test_of_pytest(test: Mapping[str, Any], status: Any) -> Case:
    # Plugins add metadata; that of native suites has what CASE_RESULT lines have, under other names.
    more = test.get("metadata") or {}
    described = {"origin_step": more.get("origin"), "requirement_ref": more.get("requirement"), **more}
    described["case_type"] = more.get("kind")
    return as_case(described, id=test["nodeid"], status=status, reason=_first_said(test))


def _stages(test: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the outcomes of a test's set-up, call and tear-down; None where there is none."""
    yield from ((test.get(when) or {}).get("outcome") for when in ("setup", "call", "teardown"))


def _first_said(test: Mapping[str, Any]) -> str:
    """Return why a test failed, as the first of its stages says that has something to say."""
    stages = [test.get(when) or {} for when in ("setup", "call", "teardown")]
    crashes = [(stage.get("crash") or {}).get("message") for stage in stages]
    texts = [stage.get("longrepr") for stage in stages if stage.get("outcome") == "failed"]
    return next((said for said in (*crashes, *texts) if said), "")


def _of_stages(outcome: Any, setup: Any, call: Any, teardown: Any) -> Any:
    """Return the status of a test from the word for all of it and those for its stages.

    The word may be that of a run that was repeated, or of a subtest, which says nothing of the test.

    >>> _of_stages("rerun", "passed", "passed", "passed"), _of_stages("subtests passed", "passed", "failed", "passed")
    ('passed', 'failed')
    >>> _of_stages("xfailed", "passed", "skipped", "passed"), _of_stages("rerun", "failed", None, "passed")
    ('xfailed', 'error')
    """
    if isinstance(outcome, dict | list):
        raise TypeError("the outcome of a test is no text")
    stages = [each for each in (setup, call, teardown) if each]
    if status_of(outcome) is not None or not stages:
        return outcome
    if "failed" in (setup, teardown):
        return "error"
    return max(stages, key=lambda each: {"passed": 0, "skipped": 1, "failed": 2}.get(each, 3))


def _jest(report: Any) -> _Reading:
    found = failing = 0
    for number, file in enumerate(report["testResults"]):
        of_file = 0
        for place, test in enumerate(file["assertionResults"]):
            with _at(f"testResults[{number}].assertionResults[{place}]"):
                reason = "\n".join(map(str, test.get("failureMessages") or ()))
                case = as_case({}, id=f"{file['name']}::{test['fullName']}", status=test["status"], reason=reason)
                again = _number(test.get("invocations")) > 1
            yield _run_again(case) if again else case
            found += 1
            of_file += case.failing
        failing += of_file
        if file.get("status") == "failed" and not of_file:
            yield as_case({}, id=file["name"], status="error", reason=file.get("message"))
    yield from _short_of("numTotalTests", report.get("numTotalTests"), found)
    yield from _short_of("numFailedTests", report.get("numFailedTests"), failing, "failed tests")


# Lines of JSON: go test -json, and libtest of Rust.

_GO_BROKEN = re.compile(r"FAIL\t(\S+)\s*(.*)")
_EVENT = re.compile(r'"(?:Action|event)"\s*:')
_ENDS = {
    "ok": "passed",
    "pass": "passed",
    "fail": "failed",
    "failed": "failed",
    "skip": "skipped",
    "ignored": "skipped",
}


@dataclass(slots=True)
class _Stream:
    """The tests of a stream of events that have begun and not ended, by package and name."""

    running: dict[tuple[str, str], int] = field(default_factory=dict)
    """The lines in which they began."""
    output: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    failing: set[str] = field(default_factory=set)
    """The packages that a test has failed in."""
    begun: set[str] = field(default_factory=set)
    """The packages that have not ended."""
    announced: int = 0
    found: int = 0


def _events(text: str) -> _Reading:
    stream = _Stream()
    for number, line in enumerate(text.split("\n"), 1):
        if line.lstrip()[:1] != "{":
            # What a compiler has to say may be between the events, and until 1.23 how go ends a package that fails so.
            if broken := _GO_BROKEN.match(line):
                yield as_case({}, id=broken[1], status="error", reason=broken[2])
            continue
        try:
            event = json.loads(line)
        except ValueError:
            yield f"line {number} is not whole: {_shortened(line)}"
            continue
        yield from _event(stream, event, number)
    if not text.endswith("\n"):
        yield "its last line has no end: it may not be complete"
    for key, begun in stream.running.items():
        yield as_case({}, id=_joined(key), status="error", reason=f"it began in line {begun} and did not end")
    for package in sorted(stream.begun):
        yield f"the package {_shortened(package)} has no end: it is not complete"
    yield from _short_of("the events of suites", stream.announced, stream.found)


def _event(stream: _Stream, event: Mapping[str, Any], number: int) -> _Reading:
    """Yield what becomes known by an event: the case that ended."""
    package = str(event.get("Package") or event.get("ImportPath") or "").partition(" ")[0]
    name = str(event.get("Test") or event.get("name") or "")
    what, key = event.get("Action") or event.get("event"), (package, name)
    if package and what in _ENDS and not name:
        stream.begun.discard(package)
    elif package and "Package" in event:
        stream.begun.add(package)
    if event.get("type") == "suite":
        stream.announced += _number(event.get("test_count"))
    elif what in ("run", "started") and name:
        stream.running[key] = number
    elif what in ("output", "build-output"):
        stream.output.setdefault(key, []).append(str(event.get("Output")))
    elif what in _ENDS and (name or (what == "fail" and package not in stream.failing)):
        # A package that fails as a whole, because it does not compile or a test ended the program.
        status = _ENDS[what] if name else "error"
        said = str(event.get("stdout") or event.get("message") or "") or "".join(stream.output.pop(key, ()))
        if status == "failed":
            stream.failing.add(package)
        stream.running.pop(key, None)
        stream.found += 1
        yield as_case({}, id=_joined(key), status=status, reason="" if status == "passed" else said.strip())


def _joined(key: tuple[str, str]) -> str:
    return "::".join(part for part in key if part)


# XML as JUnit's, which most runners can write.

_JUNIT = re.compile(r"<(?:[\w.-]+:)?test(?:suites?|case)\b")
#: Control characters, and references to such: programs print them, and not all runners leave them out.
_NOT_XML = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]"
    r"|&#(?:0*(?:[0-8]|1[124-9]|2[0-9]|3[01])|x0*(?:[0-8bcef]|1[0-9a-f]));",
    re.IGNORECASE,
)
_RANKS: tuple[CaseStatus, ...] = ("passed", "skipped", "failed", "error")
_OUTCOMES: dict[str, CaseStatus] = {"failure": "failed", "error": "error", "skipped": "skipped"}
"""The statuses of a test, by JUnit's element that says so."""
_AGAIN = ("flaky", "rerun")
"""How elements begin that tell of a test that was run again: one passed at last, the other did not."""
_DEEPEST = 1000  # elements of XML within one another
_CHUNK = 2**16  # characters


@dataclass(slots=True)
class _Element:
    """An element of XML that has begun; the numbers are of all within it."""

    tag: str
    attributes: Mapping[str, str]
    line: int
    text: list[str] = field(default_factory=list)
    has_children: bool = False
    status: CaseStatus = "passed"
    reason: str = ""
    is_flaky: bool = False
    is_todo: bool = False
    tests: int = 0
    failures: int = 0
    missing: int = 0
    runs_again: int = 0

    def take(self, status: CaseStatus, reason: str) -> None:
        """Take an outcome of a test, of which the worst counts."""
        if _RANKS.index(status) > _RANKS.index(self.status):
            self.status, self.reason = status, reason


class _JUnitReader:
    """Reads without a tree, which would take much memory, and refuses document types: so there are no entities."""

    def __init__(self) -> None:
        self.found: list[Case | str] = []
        self._of_pytest: dict[str, list[Case]] = {}
        self._kept = 0
        self._open: list[_Element] = []
        self.parser = expat.ParserCreate()
        self.parser.buffer_text = True
        self.parser.StartElementHandler = self._start
        self.parser.EndElementHandler = self._end
        self.parser.CharacterDataHandler = self._add
        self.parser.StartDoctypeDeclHandler = self._refuse

    def _refuse(self, *_: object) -> None:
        raise ValueError("it declares a document type")

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) == _DEEPEST:
            raise ValueError(f"its elements are nested deeper than {_DEEPEST} levels")
        if self._open:
            self._open[-1].has_children = True
        self._open.append(_Element(name.rpartition(":")[2], attributes, self.parser.CurrentLineNumber))

    def _add(self, text: str) -> None:
        if self._open[-1].tag in _OUTCOMES and not self._open[-1].has_children:
            self._open[-1].text.append(text)

    def _is_of_pytest(self, element: _Element) -> bool:
        """Return whether a suite is one of pytest, which counts subtests as tests, and only what it has told of."""
        return any(each.attributes.get("name") in ("pytest", "pytest tests") for each in (*self._open, element))

    def _take(self, case: Case, *, is_of_pytest: bool) -> None:
        """Take a test; of pytest's, one that is told of again after what looks like a pass was run again."""
        if not is_of_pytest:
            self.found.append(case)
            return
        told = self._of_pytest.setdefault(case.id, [])
        if told and told[-1].status == "passed":
            told[-1] = _run_again(case)
        else:
            told.append(case)
            self._kept += 1
        if self._kept > MOST_CASES:
            self._flush()

    def _flush(self) -> None:
        for told in self._of_pytest.values():
            self.found += told
        self._of_pytest.clear()
        self._kept = 0

    def _end(self, _: str) -> None:
        element = self._open.pop()
        above = self._open[-1] if self._open else _Element("", {}, 0)
        if element.tag == "testcase":
            self._take(_test_of(element), is_of_pytest=self._is_of_pytest(element))
            element.tests += 1
        elif element.tag in _OUTCOMES and above.tag == "testcase":
            reason = element.attributes.get("message") or "".join(element.text).strip()
            above.take(_OUTCOMES[element.tag], reason)
            above.is_todo |= element.tag == "skipped" and element.attributes.get("type") == "todo"
            above.failures += element.tag != "skipped"
        elif element.tag.startswith(_AGAIN) and above.tag == "testcase":
            above.is_flaky |= element.tag.startswith("flaky")
            above.runs_again += 1
        elif element.tag in ("testsuite", "testsuites"):
            self._flush()
            self.found += [] if self._is_of_pytest(element) else _short_suite(element)
        above.tests += element.tests
        above.failures += element.failures
        above.missing += element.missing
        above.runs_again += element.runs_again


def _test_of(element: _Element) -> Case:
    """Return the case of a ``testcase``, which may say in an attribute alone that it was not run."""
    for name in ("status", "result"):
        element.take(status_of(element.attributes.get(name)) or "passed", "")
    if element.is_todo:
        element.status = "skipped"  # It need not pass yet, as in TAP.
    test, classname = element.attributes.get("name") or "", element.attributes.get("classname")
    id = f"{classname}::{test}" if classname else test or f"the test of line {element.line}"
    case = as_case({}, id=id, status=element.status, reason=element.reason)
    return _run_again(case) if element.is_flaky else case


def _short_suite(element: _Element) -> list[str]:
    """Return a note where a suite announces more than it has, unless that is all told of suites within it."""
    announced = element.attributes.get
    place = f"line {element.line}: {_shortened(announced('name') or element.tag)}"
    missing = _number(announced("tests")) - element.tests - element.missing
    if missing > 0:
        element.missing += missing
        return [*_short_of(place, announced("tests"), element.tests)]
    if element.missing:
        return []
    if 0 < _number(announced("tests")) < element.tests and element.tag == "testsuite" and not element.runs_again:
        # jest-junit does not count what is still to be written, and has it as if it had passed. Surefire counts too few
        # where tests were run again.
        return [f"{place} announces {announced('tests')} tests and has {element.tests}: not all of them may have run"]
    failures = _number(announced("failures")) + _number(announced("errors"))
    notes = [*_short_of(place, failures, element.failures, "failures")]
    element.failures = max(failures, element.failures)
    return notes


def _junit(text: str) -> _Reading:
    if wrong := _NOT_XML.search(text):
        line = text.count("\n", 0, wrong.start()) + 1
        yield f"line {line}: XML cannot have the character {wrong[0]!r}, which is read as \ufffd"
        text = _NOT_XML.sub("\ufffd", text)
    reader = _JUnitReader()
    for start in range(0, len(text), _CHUNK):
        reader.parser.Parse(text[start : start + _CHUNK])
        yield from reader.found
        reader.found.clear()
    reader.parser.Parse("", True)
    yield from reader.found


# TAP, of versions 12 to 14.

_TAP_HEAD = re.compile(r"(?:TAP version \d+|1\.\.\d+|(?:not )?ok\b|Bail out!)")
_TAP_PLAN = re.compile(r"1\.\.([0-9]{1,9})\s*(?:#\s*(.*))?$")
_TAP_TEST = re.compile(r"(\s*)(not )?ok\b *(\d{0,9}) *(?:- *)?(.*)")
_TAP_DIRECTIVE = re.compile(r"(?:^|\s)#\s*(?:(skip|todo)\S*\s*(.*)|time=\S*\s*\{?)$", re.IGNORECASE)
_LONGEST_LINE = 4096  # characters


def _tap(text: str) -> _Reading:
    """Yield the tests at the top of a stream; a failure in a subtest is one of the test that stands for it."""
    plan: str | None = None
    found, broken, in_block = 0, "", False
    for number, whole in enumerate(text.split("\n"), 1):
        line = whole[:_LONGEST_LINE].rstrip()
        in_block = in_block and line[:1] in (" ", "\t", "")  # It ends with its indentation, if not before.
        if in_block or line.strip() == "---":
            in_block = line.strip() != "..."
        elif line.startswith("Bail out!"):
            yield f"line {number}: {_shortened(line)}"
        elif plan is None and (planned := _TAP_PLAN.match(line)):
            plan = planned[1]
            if plan == "0":
                yield f"line {number}: it skips all its tests: {_shortened(planned[2] or '')}"
        elif line == "}":
            broken = ""  # Subtests in braces come behind their test, which counts them.
        elif match := _TAP_TEST.match(line):
            status, name, reason = _tap_test(match)
            if match[1]:
                broken = broken or (name or match[3] or "one" if status == "failed" else "")
                continue
            found += 1
            if broken and status == "passed":
                status, reason = "failed", f"its subtest failed: {broken}"
            broken = ""
            yield as_case({}, id=name or f"test {match[3] or found}", status=status, reason=reason)
    if plan is None:
        yield "it has no plan (1..N), so it may not be complete"
    yield from _short_of("the plan", plan, found)


def _tap_test(match: re.Match[str]) -> tuple[CaseStatus, str, str]:
    """Return status, name and reason of a test; one that is still to be written does not count, passed or not."""
    status: CaseStatus = "failed" if match[2] else "passed"
    directive = _TAP_DIRECTIVE.search(match[4])
    name = (match[4][: directive.start()] if directive else match[4]).removesuffix(" {").strip()
    if directive and directive[1]:
        status = "skipped"
    reason = (directive[2] or "").strip() if directive else ""
    return status, name.replace("\\#", "#").replace("\\\\", "\\"), reason


#: Reports in /logs/verifier with their readers, of which the first that exists counts.
CASE_FILES: Mapping[str, Callable[[str], _Reading]] = {
    "ctrf.json": lambda text: _ctrf(json.loads(text)),
    "report.json": lambda text: _json_report(json.loads(text)),
    "junit.xml": _junit,
}
