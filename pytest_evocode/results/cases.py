"""Parsing of the reports in which a suite lists its cases: CTRF, pytest-json-report, JUnit, and lines on stdout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from xml.etree import ElementTree

from pytest_evocode.errors import UnreadableCases
from pytest_evocode.results.records import Case, CaseStatus

#: Reports in /logs/verifier, of which the first that exists counts.
CASE_FILES = ("ctrf.json", "report.json", "junit.xml")

_STATUSES: dict[str, CaseStatus] = {
    "passed": "passed", "success": "passed", "xpassed": "passed", "failed": "failed", "fail": "failed",
    "error": "error", "other": "error", "skipped": "skipped", "pending": "skipped", "xfailed": "skipped",
}  # fmt: skip
#: The names that ``CASE_RESULT`` lines have for the fields of a case.
_DESCRIPTIONS = {
    "origin": "origin_step", "requirement": "requirement_ref", "kind": "case_type", "intent": "intent",
    "scenario": "scenario", "input": "input", "expected": "expected", "actual": "actual",
}  # fmt: skip
_RESULT_LINE = re.compile(r"^CASE_RESULT (?P<fields>.*)$", re.MULTILINE)
_SUMMARY_LINE = re.compile(r"^CASE_SUMMARY (?P<fields>.*)$", re.MULTILINE)
# The word boundary and the possessive quantifiers keep the time linear in the line, whatever a program printed there.
_FIELD = re.compile(r'\b(\w++)=(?:"([^"\\]*+(?:\\.[^"\\]*+)*+)"|(\S*+))')
_DOCUMENT_TYPE = re.compile(r"[^<]*+(?:<(?:\?.*?\?>|!--.*?-->)[^<]*+)*+<!DOCTYPE", re.DOTALL)
_ESCAPE = re.compile(r"((?:\\u[0-9a-fA-F]{4})+)|\\(.)")
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", '"': '"', "\\": "\\", "/": "/"}


def parse_case_file(name: str, text: str) -> tuple[Case, ...]:
    """Return the cases of a report.

    Args:
        name: One of :data:`CASE_FILES`, which says the format.
        text: The content; it may be hostile, but its size is the caller's to limit.

    Raises:
        UnreadableCases: The text is not in that format.
    """
    parse = {"ctrf.json": _ctrf, "report.json": _json_report, "junit.xml": _junit}[name]
    try:
        return tuple(parse(text))
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, ElementTree.ParseError) as error:
        raise UnreadableCases(f"{name} is not what its name says: {type(error).__name__}: {error}") from None


def parse_case_lines(output: str) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return the cases of the ``CASE_RESULT`` lines in a suite's output, and what ``CASE_SUMMARY`` says otherwise."""
    lines = (dict(_fields(match["fields"])) for match in _RESULT_LINE.finditer(output))
    cases = tuple(
        _described(line, id=line.get("case_id"), status=line.get("status"), reason=line.get("failure_reason"))
        for line in lines
    )
    flags = []
    summaries = _SUMMARY_LINE.findall(output)
    if summaries:
        summary = dict(_fields(summaries[-1]))
        counted = {
            "total_cases": len(cases),
            "success_count": sum(case.status == "passed" for case in cases),
            "fail_count": sum(case.failing for case in cases),
        }
        flags = [
            f"CASE_SUMMARY says {name}={summary[name]}, its CASE_RESULT lines give {count}"
            for name, count in counted.items()
            if name in summary and summary[name] != str(count)
        ]
    return cases, tuple(flags)


def _fields(text: str) -> Iterator[tuple[str, str]]:
    for match in _FIELD.finditer(text):
        name, quoted, bare = match.groups()
        yield name, bare if quoted is None else _ESCAPE.sub(_unescape, quoted)


def _unescape(match: re.Match[str]) -> str:
    """Return what an escape of JSON stands for; a backslash before anything else stands for itself."""
    if match[1]:
        # Decoded together, because a pair of surrogates is one character, and half a pair is none.
        return bytes.fromhex(match[1].replace("\\u", "")).decode("utf-16-be", "replace")
    return _ESCAPED.get(match[2], match[0])


def _described(fields: Mapping[str, Any], *, id: Any, status: Any, reason: Any) -> Case:
    """Return a case with the descriptions that ``CASE_RESULT`` lines and CTRF's ``extra`` give under the same names."""
    texts: dict[str, Any] = {name: _text(fields.get(key)) for name, key in _DESCRIPTIONS.items()}
    return Case(id=_text(id), status=_STATUSES.get(_text(status), "error"), reason=_text(reason), **texts)


def _ctrf(text: str) -> Iterator[Case]:
    for test in json.loads(text)["results"]["tests"]:
        yield _described(test.get("extra") or {}, id=test["name"], status=test["status"], reason=test.get("message"))


def _json_report(text: str) -> Iterator[Case]:
    for test in json.loads(text)["tests"]:
        stages = [test.get(when) or {} for when in ("setup", "call", "teardown")]
        crashes = [(stage.get("crash") or {}).get("message") for stage in stages]
        reason = next((crash for crash in crashes if crash), "")
        # Plugins add this; that of native suites has what CASE_RESULT lines have, under other names.
        more = test.get("metadata") or {}
        described = {"origin_step": more.get("origin"), "requirement_ref": more.get("requirement"), **more}
        described["case_type"] = more.get("kind")
        status = _STATUSES.get(test["outcome"], "error")
        yield _described(described, id=test["nodeid"], status=status, reason=reason)


def _junit(text: str) -> Iterator[Case]:
    # No library: junitparser reads hostile XML with the standard library too, and defusedxml (of 2021) has nothing that
    # this check has not. Without a document type there are no entities; in a CDATA section it is only text.
    if _DOCUMENT_TYPE.match(text):
        raise ValueError("it declares a document type")
    for test in ElementTree.fromstring(text).iter("testcase"):
        status: CaseStatus = "passed"
        reason = ""
        for child in test:
            if child.tag in ("failure", "error", "skipped"):
                status = {"failure": "failed", "error": "error", "skipped": "skipped"}[child.tag]  # type: ignore[assignment]
                reason = child.get("message") or (child.text or "").strip()
        classname = test.get("classname")
        name = test.get("name") or ""
        yield Case(id=f"{classname}::{name}" if classname else name, status=status, reason=reason)


def _text(value: Any) -> str:
    """Return a value as text that UTF-8 can encode, with ``?`` for each half of a surrogate pair that JSON held."""
    return "" if value is None else str(value).encode("utf-8", "replace").decode()
