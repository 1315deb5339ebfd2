"""What the driver keeps of an attempt that runs elsewhere: its files, and records where it is given up."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from pytest_evocode.errors import RecordFault
from pytest_evocode.plugin.cluster.file_changes import FileCopies
from pytest_evocode.plugin.cluster.orders import FILE, Message
from pytest_evocode.results.records import AttemptRecord, RoundRecord
from pytest_evocode.results.rewards import trial_rewards

if TYPE_CHECKING:
    from pytest_evocode.plugin.cluster.units import AttemptUnit


class AttemptFiles:
    """Writes an attempt's files into the results directory as they come.

    Of rounds that are run by themselves each is elsewhere, and their common record is put together here.
    """

    def __init__(self, unit: AttemptUnit) -> None:
        self._unit = unit
        self._copies = FileCopies(unit.directory.path)

    def take(self, message: Message) -> None:
        """Take a message about a file."""
        if self._unit.alone is None or message[1] != "result.json":
            self._copies.take(message)
        elif message[0] == FILE:
            self._add(AttemptRecord.model_validate(json.loads(message[2])))

    def _add(self, record: AttemptRecord) -> None:
        task, directory = self._unit.attempt.task, self._unit.directory
        with directory.composing() as earlier:
            if earlier is not None:
                rounds = {each.index: each for each in (*earlier.rounds, *record.rounds)}
                records = tuple(each for _, each in sorted(rounds.items()))
                update = {
                    "rounds": records,
                    "started": min(earlier.started, record.started),
                    "rewards": trial_rewards(records, range(1, len(task.rounds) + 1), task.reward_strategy),
                }
                record = record.model_copy(update=update)
            directory.write_attempt(record)


def given_up(unit: AttemptUnit, why: str) -> Iterator[RoundRecord]:
    """Yield records of the rounds that no node will run.

    Those that were recorded stay. Of the others the first is an error, as a round is in which an attempt breaks off,
    and the rest is not reached.
    """
    task = unit.attempt.task
    missing = unit.trial.missing([item.index for item in unit.items])
    recorded: dict[str, RoundRecord] = {}
    for index in missing:
        with contextlib.suppress(RecordFault):  # The session waits for a report of each round, also of a damaged one.
            recorded |= unit.directory.read_rounds([task.rounds[index - 1].name])
    outcome: Literal["error", "not reached"] = "error"
    for index in missing:
        name = task.rounds[index - 1].name
        if name in recorded:
            yield recorded[name]
            continue
        yield RoundRecord(
            task=task.name,
            agent=unit.attempt.agent.id,
            attempt=unit.attempt.number,
            round=name,
            index=index,
            declared_rounds=len(task.rounds),
            outcome=outcome,
            cause=f"not run: {why}",
            fault="infrastructure" if outcome == "error" else None,
        )
        outcome = "not reached"
