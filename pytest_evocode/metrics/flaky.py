"""Flaky rounds: those whose verdicts differ where nothing else does, so that they tell nothing of an agent."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass

from pytest_evocode.results.records import RoundRecord, Verdict

_LISTED = 50


@dataclass(frozen=True, slots=True)
class FlakyRound:
    """A round whose verdicts differ, between attempts of a deterministic agent or runs of its suite on one snapshot."""

    task: str
    agent: str
    round: str
    index: int
    attempt: int | None
    """The attempt whose suite was run several times; None where the attempts differ."""
    passed: int
    """How many of the attempts, or of the suite's runs, passed."""
    of: int
    differing: tuple[str, ...]
    """The cases whose outcome was not always the same, by their ids, as far as cases are known; 50 at most."""


def flaky_rounds(records: Iterable[RoundRecord], deterministic: Collection[str] = ()) -> list[FlakyRound]:
    """Return the flaky rounds, ordered by task, agent and round.

    Attempts are compared by pass, reward and cases, or by the numbers of cases where no cases are known. A round
    without a verdict, such as an error, is no reason to call another flaky.

    Args:
        records: Rounds of any agents, in any order.
        deterministic: The agents that do the same in every attempt; attempts of others differ for reasons of their own.

    >>> from pytest_evocode.results.records import Verdict
    >>> one, two = (RoundRecord(task="t", agent="oracle", attempt=number, round="r1", index=1, declared_rounds=1,
    ...     outcome=outcome, verdict=Verdict(reward=reward, rewards={}))
    ...     for number, outcome, reward in ((1, "passed", 1.0), (2, "failed", 0.0)))
    >>> [(found.passed, found.of) for found in flaky_rounds([one, two], deterministic={"oracle"})]
    [(1, 2)]
    >>> flaky_rounds([one, two])
    []
    """
    rounds: dict[tuple[str, str, int], list[RoundRecord]] = defaultdict(list)
    for record in records:
        rounds[record.task, record.agent, record.index].append(record)
    found: list[FlakyRound] = []
    for (_, agent, _), several in sorted(rounds.items()):
        several.sort(key=lambda record: record.attempt)
        found += _between_verifications(several)
        if agent in deterministic:
            found += _between_attempts(several)
    return found


def _between_verifications(records: Sequence[RoundRecord]) -> Iterator[FlakyRound]:
    for record in records:
        repeats = record.verdict.repeats if record.verdict else None
        if repeats is not None and repeats.flaky:
            yield _flaky(record, record.attempt, repeats.passed, repeats.times, repeats.differing)


def _between_attempts(records: Sequence[RoundRecord]) -> Iterator[FlakyRound]:
    judged = [record for record in records if record.outcome in ("passed", "failed") and record.verdict is not None]
    verdicts = [record.verdict for record in judged if record.verdict is not None]
    ids, found = differences(verdicts) if all(verdict.cases for verdict in verdicts) else ([], [])
    told = {
        (record.passed, verdict.reward, record.case_counts) for record, verdict in zip(judged, verdicts, strict=True)
    }
    if found or len(told) > 1:
        yield _flaky(judged[0], None, sum(record.passed for record in judged), len(judged), ids)


def differences(verdicts: Sequence[Verdict]) -> tuple[list[str], list[str]]:
    """Return the ids of the cases in which several verdicts on one workspace differ, and lines about all that does."""
    outcomes = [{case.id: str(case.status) for case in verdict.cases} for verdict in verdicts]
    ids = [
        id for id in sorted({id for each in outcomes for id in each}) if len({each.get(id) for each in outcomes}) > 1
    ]
    found = [f"{id}: {by_run([each.get(id, 'not there') for each in outcomes])}" for id in ids]
    if len({verdict.timed_out for verdict in verdicts}) > 1:
        found.append(f"in time: {by_run(['no' if verdict.timed_out else 'yes' for verdict in verdicts])}")
    if not found and len({verdict.reward for verdict in verdicts}) > 1:
        found.append(f"the reward: {by_run([verdict.shown_reward for verdict in verdicts])}")
    return ids, found


def by_run(outcomes: Sequence[str]) -> str:
    """Return in which of several runs each outcome was had.

    >>> by_run(["passed", "failed", "passed", "passed"]), by_run(["passed", "not there"])
    ('passed in runs 1, 3 and 4, failed in run 2', 'passed in run 1, not there in run 2')
    """
    runs = {each: [str(number) for number, other in enumerate(outcomes, 1) if other == each] for each in outcomes}
    return ", ".join(
        f"{outcome} in runs {', '.join(others)} and {last}" if others else f"{outcome} in run {last}"
        for outcome, (*others, last) in runs.items()
    )


def _flaky(record: RoundRecord, attempt: int | None, passed: int, of: int, ids: Sequence[str]) -> FlakyRound:
    return FlakyRound(record.task, record.agent, record.round, record.index, attempt, passed, of, tuple(ids[:_LISTED]))
