"""Parsing of records from JSON, of this and of earlier versions of the format, and what in a record cannot be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json

from pytest_evocode.errors import DamagedRecord, RecordFault, describe_validation
from pytest_evocode.results.records import RECORD_VERSION, AttemptRecord, RoundRecord, RunRecord

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
    parts = [part for round_ in record.rounds for part in (round_, round_.verdict, round_.usage) if part is not None]
    for part in (record, *parts):
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


def check_attempt(record: AttemptRecord) -> None:
    """Raise DamagedRecord with the first contradiction in an attempt's record."""
    # Plain code, because there are tens of thousands of rounds.
    contradiction = _of_attempt(record)
    for round_ in record.rounds:
        contradiction = contradiction or _of_round(record, round_) or _of_numbers(round_)
    if contradiction:
        raise DamagedRecord(contradiction)


def check_run(record: RunRecord) -> None:
    """Raise DamagedRecord with the first contradiction in a run's record."""
    for contradiction in _of_run(record):
        raise DamagedRecord(contradiction)


def _of_attempt(record: AttemptRecord) -> str:
    if not record.declared_rounds:
        return "it says that the task has no rounds"
    if record.attempt < 1:
        return f"it has the number {record.attempt}, and attempts are numbered from 1"
    indices = [round_.index for round_ in record.rounds]
    if len(set(indices)) < len(indices):
        index, times = Counter(indices).most_common(1)[0]
        return f"it has round {index} {times} times"
    return ""


def _of_round(attempt: AttemptRecord, record: RoundRecord) -> str:
    declared = len(attempt.declared_rounds)
    if (record.task, record.agent, record.attempt) != (attempt.task, attempt.agent, attempt.attempt):
        return (
            f"{record.round} is of attempt {record.attempt} of {record.agent} at {record.task}, and the others of "
            f"attempt {attempt.attempt} of {attempt.agent} at {attempt.task}"
        )
    if record.declared_rounds != declared:
        return f"{record.round} is of {record.declared_rounds} rounds, and the attempt of {declared}"
    if not 1 <= record.index <= declared:
        return f"{record.round} is round {record.index} of {declared}"
    return ""


def _of_numbers(record: RoundRecord) -> str:
    usage, verdict = record.usage, record.verdict
    phases = record.phases.known.values() if record.phases is not None else ()
    if min((record.agent_seconds or 0, record.verifier_seconds or 0, *phases)) < 0:
        return f"{record.round} took a negative time"
    if (record.tool_calls or 0) < 0:
        return f"{record.round} has {record.tool_calls} tool calls"
    if usage is not None and (
        (usage.prompt_tokens or 0) < 0
        or (usage.cached_tokens or 0) < 0
        or (usage.completion_tokens or 0) < 0
        or (usage.requests or 0) < 0
        or (usage.cost_usd or 0) < 0
    ):
        return f"{record.round} used a negative number of tokens, requests or dollars"
    if verdict is not None:
        for passed, of in (record.case_counts, verdict.pinned or (0, 0)):
            if not 0 <= passed <= of:
                return f"in {record.round} {passed} of {of} cases passed"
    return ""


def _of_run(record: RunRecord) -> Iterator[str]:
    for task, known in record.tasks.items():
        if not known.facts.rounds:
            yield f"it says that {task} has no rounds"
    for task, agents in record.selected.items():
        for agent, numbers in agents.items():
            if any(number < 1 for number in numbers):
                yield f"it selects an attempt {min(numbers)} of {agent} at {task}, and attempts are numbered from 1"
            for part in record.partial.get(task, {}).get(agent, {}).values():
                if not part or min(part) < 1:
                    yield f"it selects rounds {part} of {agent} at {task}, and rounds are numbered from 1"
