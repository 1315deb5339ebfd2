"""A round's record as user properties of its reports, which xdist's workers send, and what is kept once it is reported.

A run may have tens of thousands of rounds, each with many cases.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

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


_LONGEST_SAMPLE = 2**15
"""Bytes; zlib looks no further back."""


class RoundPlace(NamedTuple):
    """Which round of which attempt."""

    task: str
    agent: str
    attempt: int
    round_index: int
    """From 1."""

    @classmethod
    def of(cls, record: RoundRecord) -> RoundPlace:
        """Return the place of a record's round."""
        return cls(record.task, record.agent, record.attempt, record.index)


class KeptRound:
    """A record, compressed.

    Attempts have the same cases, so beside a ``sample`` of the same round one takes hardly more with hundreds of them.
    The sample is a pickle of another record.
    """

    __slots__ = ("_cases", "_rest", "_sample", "place")

    def __init__(self, record: RoundRecord, sample: bytes = b"") -> None:
        self.place = RoundPlace.of(record)
        self._sample = sample
        self._rest = self._packed(record.without_cases())
        verdict = record.verdict
        self._cases = self._packed((verdict.cases, verdict.counts)) if verdict is not None and verdict.cases else b""

    def record(self) -> RoundRecord:
        """Return the record as it was."""
        record = self.without_cases()
        if not self._cases or record.verdict is None:
            return record
        cases, counts = self._unpacked(self._cases)
        verdict = record.verdict.model_copy(update={"cases": cases, "counts": counts})
        return record.model_copy(update={"verdict": verdict})

    def without_cases(self) -> RoundRecord:
        """Return the record with the number of cases in place of the cases."""
        record: RoundRecord = self._unpacked(self._rest)
        return record

    def _packed(self, value: object) -> bytes:
        packer = zlib.compressobj(zdict=self._sample)
        return packer.compress(_pickled(value)) + packer.flush()

    def _unpacked(self, packed: bytes) -> Any:
        return pickle.loads(zlib.decompressobj(zdict=self._sample).decompress(packed))


class KeptRounds:
    """The rounds that were reported, by node id."""

    def __init__(self) -> None:
        self._rounds: dict[str, KeptRound] = {}
        self._places: dict[RoundPlace, KeptRound] = {}
        self._samples: dict[tuple[str, int], bytes] = {}
        """The first record of each task's rounds, by task and the index of the round."""
        self._newest: tuple[str, RoundRecord] | None = None
        """The record that was asked for last: while a round is reported, each plugin asks for the same."""
        self._listed: list[RoundRecord] = []
        """All records, from the time when they are asked for: when the session ends, by many."""

    def add(self, nodeid: str, record: RoundRecord) -> None:
        """Keep a record, in place of an earlier one of the same test."""
        of_round = record.task, record.index
        if of_round not in self._samples:
            self._samples[of_round] = _pickled(record)[-_LONGEST_SAMPLE:]
        kept = KeptRound(record, self._samples[of_round])
        self._rounds[nodeid] = self._places[kept.place] = kept
        self._newest, self._listed = (nodeid, record), []

    def kept(self, nodeid: str) -> KeptRound | None:
        """Return the round of a test, still compressed; None without one."""
        return self._rounds.get(nodeid)

    def record(self, nodeid: str) -> RoundRecord | None:
        """Return the record of a test's round, None without one."""
        if self._newest is None or self._newest[0] != nodeid:
            if (kept := self._rounds.get(nodeid)) is None:
                return None
            self._newest = nodeid, kept.record()
        return self._newest[1]

    def whole(self, place: RoundPlace) -> RoundRecord | None:
        """Return the record of a round with its cases, None where it was not reported."""
        return kept.record() if (kept := self._places.get(place)) is not None else None

    def without_cases(self) -> list[RoundRecord]:
        """Return all records, with the numbers of cases in place of the cases."""
        if not self._listed:
            self._listed = [each.without_cases() for each in self._rounds.values()]
        return self._listed

    def places(self) -> Iterator[RoundPlace]:
        """Yield which rounds there are."""
        return (each.place for each in self._rounds.values())


class KeptProperties(Sequence[tuple[str, Any]]):
    """The user properties of a round's report that was reported; those of the record are made anew when they are read.

    pytest keeps all reports of a session until its end.
    """

    __slots__ = ("_others", "_round")
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, round_: KeptRound, properties: Sequence[tuple[str, Any]]) -> None:
        self._round = round_
        self._others = tuple(without_record(properties))

    def _all(self) -> list[tuple[str, Any]]:
        return [*record_properties(self._round.record()), *self._others]

    def __len__(self) -> int:
        return len(self._all())

    def __getitem__(self, index: Any) -> Any:
        return self._all()[index]

    def __iter__(self) -> Iterator[tuple[str, Any]]:
        return iter(self._all())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Sequence) and self._all() == list(other)

    def __add__(self, other: Sequence[tuple[str, Any]]) -> list[tuple[str, Any]]:
        return [*self, *other]

    def __repr__(self) -> str:
        return repr(self._all())


def compress_properties(report: pytest.TestReport, round_: KeptRound) -> None:
    """Compress the user properties of a round's report."""
    properties: Any = KeptProperties(round_, report.user_properties)
    report.user_properties = properties


def _pickled(value: object) -> bytes:
    return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
