"""A round's record as user properties of its reports, which bring it from an xdist worker to the controller."""

from __future__ import annotations

from typing import Any

import pytest

from pytest_evocode.results.records import RoundRecord

_RECORD = "evocode"
_CASES = "evocode_cases"


def report_properties(record: RoundRecord, protocol: str) -> list[tuple[str, Any]]:
    """Return the user properties of a round's reports: its record, its cases, and the mode where it is special.

    ``protocol`` is the mode's :func:`~pytest_evocode.names.protocol`.
    """
    values = record.model_dump(mode="json", exclude={"verdict": {"cases"}})
    cases = record.verdict.cases if record.verdict else ()
    return [
        (_RECORD, values),
        (_CASES, [case.model_dump(mode="json", exclude_defaults=True) for case in cases]),
        *([("evocode_mode", protocol)] if protocol else []),
    ]


def read_record(report: pytest.TestReport) -> RoundRecord | None:
    """Return the record that a report carries, None for the report of another test or of a round without a record."""
    properties: dict[str, Any] = dict(report.user_properties)
    if _RECORD not in properties:
        return None
    values = dict(properties[_RECORD])
    if values["verdict"] is not None:
        values["verdict"] = {**values["verdict"], "cases": properties[_CASES]}
    return RoundRecord.model_validate(values)
