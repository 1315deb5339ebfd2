"""A round's record as user properties of its reports, which bring it from an xdist worker to the controller."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from pytest_evocode.results.records import RoundRecord

_RECORD = "evocode"
_CASES = "evocode_cases"
#: What a round says of which only some cases were run.
PARTIAL = "evocode_case"


def report_properties(record: RoundRecord, protocol: str) -> list[tuple[str, Any]]:
    """Return the user properties of a round's reports: its record, its cases, and the mode where it is special.

    ``protocol`` is the mode's :func:`~pytest_evocode.names.protocol`.
    """
    return [*record_properties(record), *([("evocode_mode", protocol)] if protocol else [])]


def record_properties(record: RoundRecord) -> list[tuple[str, Any]]:
    """Return a record and its cases as user properties."""
    values = record.model_dump(mode="json", exclude={"verdict": {"cases"}})
    cases = record.verdict.cases if record.verdict else ()
    return [(_RECORD, values), (_CASES, [case.model_dump(mode="json", exclude_defaults=True) for case in cases])]


def without_record(properties: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Return the user properties of a report that are not :func:`record_properties`."""
    return [(name, value) for name, value in properties if name not in (_RECORD, _CASES)]


def partial_properties(record: RoundRecord, patterns: Sequence[str]) -> list[tuple[str, Any]]:
    """Return the user properties of a round of which only some cases were run: none that could count as a verdict."""
    cases = record.verdict.cases if record.verdict else ()
    passed = sum(case.status == "passed" for case in cases)
    return [(PARTIAL, f"no verdict: {passed} of {len(cases)} cases called {' or '.join(patterns)} passed")]


def read_record(report: pytest.TestReport) -> RoundRecord | None:
    """Return the record that a report carries, None for the report of another test or of a round without a record."""
    properties: dict[str, Any] = dict(report.user_properties)
    if _RECORD not in properties:
        return None
    values = dict(properties[_RECORD])
    if values["verdict"] is not None:
        values["verdict"] = {**values["verdict"], "cases": properties[_CASES]}
    return RoundRecord.model_validate(values)
