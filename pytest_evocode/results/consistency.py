"""What in a record cannot be, though each field has a value of its kind: nothing can be counted from such a record."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from pytest_evocode.errors import DamagedRecord
from pytest_evocode.results.records import AttemptRecord, RoundRecord, RunRecord


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
