"""An attempt with the cases of its rounds, read from its directory whatever state that is in."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pydantic_core import from_json

from pytest_evocode.errors import DamagedRecord, RecordFault
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.loading import load_results
from pytest_evocode.results.plain_files import open_plain
from pytest_evocode.results.records import Case, RoundRecord
from pytest_evocode.results.stored import StoredAttempt


def with_cases(attempt: StoredAttempt) -> tuple[StoredAttempt, list[str]]:
    """Return an attempt with the cases of all its rounds, and what could not be read.

    Args:
        attempt: An attempt that was loaded with its cases, which stays as it is, or without them.
    """
    reader = _CaseReader(AttemptDirectory(attempt.path))
    rounds, problems = [], []
    for round_ in attempt.record.rounds:
        try:
            rounds.append(reader.with_cases(round_))
        except RecordFault as error:
            problems.append(str(error))
            rounds.append(round_)
    if not problems and any(map(_lacks_cases, rounds)):
        rounds = _loaded_again(attempt, rounds)
    return replace(attempt, record=attempt.record.model_copy(update={"rounds": tuple(rounds)})), problems


class _CaseReader:
    """Reads the cases of an attempt; those that say the same in several rounds are made once, which saves most time."""

    def __init__(self, directory: AttemptDirectory) -> None:
        self._directory = directory
        self._known: dict[tuple[Any, ...], Case] = {}

    def with_cases(self, record: RoundRecord) -> RoundRecord:
        """Return a round with its cases; raises RecordFault where their file does not hold cases."""
        verdict = record.verdict
        if verdict is None or not _lacks_cases(record):
            return record
        try:
            with open_plain(self._directory.cases(record.round), within=self._directory.path) as file:
                values = from_json(file.read(), cache_strings="all")
            cases = tuple([self._case(each) for each in values])
        except FileNotFoundError:
            return record
        except (AttributeError, OSError, TypeError, ValueError):
            return self._directory.with_cases(record)  # It says what is wrong.
        return record.model_copy(update={"verdict": verdict.model_copy(update={"cases": cases, "counts": None})})

    def _case(self, values: dict[str, Any]) -> Case:
        key = (*values, *values.values())
        case = self._known.get(key)
        if case is None:
            case = Case.model_validate(values)
            # Others would only take memory: what fails says something else each time.
            if case.status == "passed":
                self._known[key] = case
        return case


def _lacks_cases(record: RoundRecord) -> bool:
    verdict = record.verdict
    return verdict is not None and not verdict.cases and bool(verdict.counts and verdict.counts[1])


def _loaded_again(attempt: StoredAttempt, rounds: list[RoundRecord]) -> list[RoundRecord]:
    """Return the rounds with the cases that lie elsewhere, as in records of version 1 and in results of others."""
    try:
        found = load_results([attempt.path], cases=True).attempts
    except (RecordFault, DamagedRecord, OSError):
        return rounds
    verdicts = {
        round_.index: round_.verdict for each in found if each.path == attempt.path for round_ in each.record.rounds
    }
    return [
        round_.model_copy(update={"verdict": verdicts[round_.index]})
        if _lacks_cases(round_) and verdicts.get(round_.index) is not None
        else round_
        for round_ in rounds
    ]
