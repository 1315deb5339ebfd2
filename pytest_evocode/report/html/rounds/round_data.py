"""A round and its cases as the viewer shows them: ``RoundData`` and ``CaseData`` in ``viewer/data.d.ts``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pytest_evocode.process.evidence import Measure
from pytest_evocode.process.scores.rigor_score import RoundProcess
from pytest_evocode.report.html.bounded import bounded
from pytest_evocode.report.html.cells import UNDER_WAY
from pytest_evocode.results.records import Case, FailureKind, RoundRecord, Verdict

_TEXT = 20_000  # characters of a text of a case, of which a suite may give 4,096
_ID = 1000  # characters of what names a case
_CAUSE = 20_000  # characters
_MOST = 500  # flags, tools and the like
_USAGE = ("prompt_tokens", "cached_tokens", "completion_tokens", "cost_usd", "requests")
_EVIDENCE = 2000  # characters of a text of evidence


class CaseTexts:
    """Makes cases for the viewer; those that passed are the same value in all rounds of an attempt."""

    def __init__(self) -> None:
        self._passed: dict[int, dict[str, Any]] = {}

    def of_round(
        self, cases: Sequence[Case], kinds: Mapping[int, FailureKind], introduced: Mapping[int, dict[str, Any]]
    ) -> list[dict[str, Any]]:
        """Return the cases of a round.

        Args:
            cases: The cases, which are kept elsewhere as long as this is used.
            kinds: What kind of failure those are that fail, by their :func:`id`.
            introduced: Who introduced the failures, by the place of the case.
        """
        found = []
        for place, case in enumerate(cases):
            if case.status != "passed":
                found.append(_case_data(case, kinds.get(id(case)), introduced.get(place)))
                continue
            # By identity, because they are read once where they say the same.
            data = self._passed.get(id(case))
            if data is None:
                data = self._passed[id(case)] = _case_data(_without_texts(case), None, None)
            found.append(data)
        return found


def _without_texts(case: Case) -> Case:
    return Case(id=case.id, status=case.status, origin=case.origin, requirement=case.requirement, kind=case.kind)


def _case_data(case: Case, kind: FailureKind | None, introduced: dict[str, Any] | None) -> dict[str, Any]:
    return {
        "id": bounded(case.id, _ID),
        "status": case.status,
        "origin": bounded(case.origin, _ID),
        "requirement": bounded(case.requirement, _ID),
        "kind": bounded(case.kind, _ID),
        "intent": bounded(case.intent, _TEXT),
        "scenario": bounded(case.scenario, _TEXT),
        "input": bounded(case.input, _TEXT),
        "expected": bounded(case.expected, _TEXT),
        "actual": bounded(case.actual, _TEXT),
        "reason": bounded(case.reason, _TEXT),
        "failure": kind,
        "introduced": introduced,
    }


def missing_round(
    index: int,
    name: str,
    cell: str,
    node_id: str,
    trajectory: dict[str, Any] | None,
    changes: list[dict[str, Any]] | None,
) -> dict[str, Any]:
    """Return a declared round that has no record: not selected, not reached or under way, as its cell says."""
    return {
        "index": index,
        "name": name,
        "cell": cell,
        "outcome": "under way" if cell == UNDER_WAY else "not reached",
        "cause": "",
        "fault": None,
        "timed_out": None,
        "stopped": "",
        "reward": None,
        "rewards": {},
        "counts": [0, 0],
        "flags": [],
        "rests_on": None,
        "void": False,
        "trusts": [],
        "changed_counts": {},
        "repeats": None,
        "cases": [],
        "output": "",
        "omitted": 0,
        "changes": changes,
        "artifacts": [],
        "usage": None,
        "tool_calls": None,
        "phases": {},
        "agent_seconds": None,
        "verifier_seconds": None,
        "node_id": node_id,
        "trajectory": trajectory,
        "process": None,
    }


def round_data(record: RoundRecord, **given: Any) -> dict[str, Any]:
    """Return a round that has a record.

    Args:
        record: The record; its verdict's cases are not looked at.
        given: What the record does not tell, by the names of the fields in ``RoundData``.
    """
    usage = record.usage
    found = missing_round(record.index, record.round, given["cell"], given["node_id"], None, None) | {
        "outcome": record.outcome,
        "cause": bounded(record.cause, _CAUSE),
        "fault": record.fault,
        "timed_out": record.timed_out,
        "stopped": bounded(record.stopped, _CAUSE),
        "counts": list(record.case_counts),
        "usage": None if usage is None else {name: getattr(usage, name) for name in _USAGE},
        "tool_calls": record.tool_calls,
        "phases": record.phases.known if record.phases is not None else {},
        "agent_seconds": record.agent_seconds,
        "verifier_seconds": record.verifier_seconds,
    }
    if record.verdict is not None:
        found |= _verdict_data(record.verdict)
    found["flags"] = [bounded(note, _EVIDENCE) for note in record.notes[:_MOST]]
    return found | given


def _verdict_data(verdict: Verdict) -> dict[str, Any]:
    repeats = verdict.repeats
    return {
        "reward": verdict.reward,
        "rewards": verdict.rewards,
        "rests_on": verdict.rests_on,
        "void": verdict.void,
        "trusts": list(verdict.trusts[:_MOST]),
        "changed_counts": dict(verdict.changed.counts) if verdict.changed is not None else {},
        "repeats": None if repeats is None else repeats.model_dump(mode="json"),
    }


def process_data(scored: RoundProcess) -> dict[str, Any]:
    """Return what the viewer shows of the process of a round."""
    score = scored.score()
    return {
        "score": None if score is None else 100 * score.value,
        "edited": scored.edited,
        "pillars": {
            name: {
                "value": pillar.value,
                "measures": {part: _measure_data(measure) for part, measure in pillar.parts.items()},
            }
            for name, pillar in scored.pillars.items()
        },
        "extended": {name: _measure_data(measure) for name, measure in scored.extended.items()},
    }


def _measure_data(measure: Measure) -> dict[str, Any]:
    return {
        "value": measure.value,
        "certainty": measure.certainty,
        "reason": bounded(measure.reason, _EVIDENCE),
        "evidence": [
            {"what": bounded(each.what, _EVIDENCE), "step": each.step, "quote": bounded(each.quote, _EVIDENCE)}
            for each in measure.evidence[:_MOST]
        ],
    }
