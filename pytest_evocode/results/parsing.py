"""Parsing of records from JSON, of this and of earlier versions of the format."""

from __future__ import annotations

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from pytest_evocode.errors import DamagedRecord, RecordFault, describe_validation
from pytest_evocode.results.records import RECORD_VERSION, AttemptRecord, RoundRecord

Record = TypeVar("Record", bound=BaseModel)

_NO_FIELDS: set[str] = set()
_OWN_ATTEMPT = f'{{\n "version": {RECORD_VERSION},\n'.encode()


def parse_object(data: bytes) -> dict[str, Any]:
    """Return the JSON object that some bytes hold; raises DamagedRecord for anything else."""
    try:
        # Twice as fast as the standard library, and texts that many records have are kept once.
        values = from_json(data, cache_strings="all")
    except ValueError as error:
        raise DamagedRecord(f"it is not JSON: {error}") from None
    if not isinstance(values, dict):
        raise DamagedRecord(f"it is JSON, but not an object ({type(values).__name__})")
    return values


def read_own_attempt(data: bytes) -> AttemptRecord | None:
    """Return an attempt that this version wrote, without cases, in two thirds of the usual time; else None."""
    if not data.startswith(_OWN_ATTEMPT):
        return None
    try:
        record = AttemptRecord.model_validate_json(data)
    except ValidationError:
        return None
    if any(round_.verdict and round_.verdict.cases for round_ in record.rounds):
        return None
    for round_ in record.rounds:
        for part in (round_, round_.verdict, round_.usage):
            if part is not None:
                # Nothing asks which fields were set, and that would take half of the memory.
                object.__setattr__(part, "__pydantic_fields_set__", _NO_FIELDS)
    return record


def read_record(kind: type[Record], values: dict[str, Any], *, cases: bool = True) -> Record:
    """Return the record that a JSON object is, whichever version wrote it.

    Fields that an earlier version did not have get their defaults.

    Args:
        kind: The kind of record.
        values: The JSON object; it is changed.
        cases: Whether rounds keep their cases; without, they have the number of cases only, and take a fraction of the
            memory.

    Raises:
        DamagedRecord: The object is not such a record.
        RecordFault: It is of a later version.
    """
    # A round has a version only in a file of its own; attempts and runs always have one.
    version = values.pop("version", 1) if kind is RoundRecord else values.get("version")
    if type(version) is not int or version < 1:
        raise DamagedRecord("it does not say which version of the format it has, so pytest-evocode did not write it")
    if version > RECORD_VERSION:
        raise RecordFault(
            f"a later pytest-evocode wrote it, in version {version} of the format; this one reads up to version "
            f"{RECORD_VERSION}, so update it"
        )
    if version < RECORD_VERSION or not cases:
        rounds = values.get("rounds") if kind is AttemptRecord else [values]
        for round_ in rounds if isinstance(rounds, list) else ():
            verdict = round_.get("verdict") if isinstance(round_, dict) else None
            if isinstance(verdict, dict):
                _translate(verdict)
                if not cases:
                    _leave_out_cases(verdict)
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise DamagedRecord(describe_validation(error)) from None


def _translate(verdict: dict[str, Any]) -> None:
    """Say in today's words what a suite trusted: versions up to 3 listed changed tools and told four places apart."""
    place, tools = verdict.get("rests_on"), verdict.pop("changed_tools", None) or ()
    if place in ("fork", "place"):
        # A fork was all of the agent's system, but for its processes.
        verdict |= {"rests_on": "in-place", "trusts": ["/", *tools]}
    elif place == "artifacts":
        verdict["rests_on"] = "clean"
    elif tools and place != "separate":
        verdict["trusts"] = tools


def _leave_out_cases(verdict: dict[str, Any]) -> None:
    """Replace the cases of a verdict by their number; version 1 had them all in ``result.json``."""
    cases = verdict.pop("cases", None)
    if cases and isinstance(cases, list) and verdict.get("counts") is None:
        passed = sum(isinstance(case, dict) and case.get("status") == "passed" for case in cases)
        verdict["counts"] = (passed, len(cases))
