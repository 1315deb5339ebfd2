"""Reports of cases whose names do not say what they are: CTRF, pytest-json-report, JUnit or TAP, told by their text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator

from pytest_evocode.errors import UnreadableCases
from pytest_evocode.results.cases import bounded, parse_case_file
from pytest_evocode.results.records import Case, CaseStatus

REPORT_ENDINGS = (".json", ".xml", ".tap")
"""How the names of files end that may be reports of cases."""
_TAP_HEAD = re.compile(r"(?:TAP version \d+|1\.\.\d+|(?:not )?ok\b)")
_TAP_TEST = re.compile(r"(not )?ok\b *(\d{0,9}) *(?:- *)?([^#\n]*)(?:# *(skip|todo)?\S* *(.*))?", re.IGNORECASE)
_LONGEST_LINE = 4096  # characters


def parse_report(name: str, text: str) -> tuple[Case, ...] | None:
    """Return the cases of a report in any of the formats, or None where a text is in none of them.

    Args:
        name: What messages call it.
        text: Its content; it may be hostile, but its size is the caller's to limit.

    Raises:
        VerifierFault: There are more cases, or longer ones, than a suite may report.
    """
    kind = _kind(text)
    try:
        if kind == "tap":
            return bounded(_tap(text), name)
        return parse_case_file(kind, text, called=name) if kind else None
    except UnreadableCases:
        return None


def _kind(text: str) -> str:
    """Return the usual name of a report in the format of a text; empty where it is none."""
    head = text.lstrip("\ufeff \t\r\n")[:_LONGEST_LINE]
    if head.startswith("<"):
        return "junit.xml" if "<testsuite" in text or "<testcase" in text else ""
    if head.startswith("{"):
        try:
            report = json.loads(text)
        except (ValueError, RecursionError):
            return ""
        if isinstance(report.get("results"), dict):
            return "ctrf.json"
        return "report.json" if isinstance(report.get("tests"), list) else ""
    return "tap" if _TAP_HEAD.match(head) else ""


def _tap(text: str) -> Iterator[Case]:
    """Yield the tests at the top of a TAP stream; those of subtests are in the one that stands for them."""
    for number, line in enumerate((line for line in text.splitlines() if _TAP_TEST.match(line)), 1):
        found = _TAP_TEST.match(line[:_LONGEST_LINE])
        if found is None:
            continue
        status: CaseStatus = "failed" if found[1] else "passed"
        # A test that is still to be written does not count, whether it passes or not.
        if (found[4] or "").lower() in ("skip", "todo"):
            status = "skipped"
        yield Case(id=found[3].strip() or f"test {found[2] or number}", status=status, reason=(found[5] or "").strip())
