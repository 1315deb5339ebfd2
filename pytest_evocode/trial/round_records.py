"""The records of an attempt's rounds: made, written, and handed to who waits for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future

from pytest_evocode.errors import EnvironmentFault
from pytest_evocode.results.directory import AttemptDirectory, now
from pytest_evocode.results.records import AttemptRecord, AttemptState, Fault, Mode, RoundRecord, Usage
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.results.task_facts import task_facts
from pytest_evocode.results.trial_rewards import trial_rewards
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Round, Task
from pytest_evocode.trial.agent_turns import STOPPED
from pytest_evocode.trial.checkpoints import Checkpoints


class RoundRecords:
    """One record for each of the ``rounds`` of an attempt that are run, by index; they come in any order.

    ``from_round`` is the one that a chain begins with by choice. ``directory`` is where they are written, None for
    nowhere; they hold nothing that the ``scrubber`` knows.
    """

    def __init__(
        self,
        task: Task,
        agent: str,
        attempt: int,
        rounds: Sequence[Round],
        *,
        mode: Mode,
        from_round: str | None,
        directory: AttemptDirectory | None,
        scrubber: Scrubber,
        checkpoints: Checkpoints,
    ) -> None:
        self._task = task
        self._agent = agent
        self._attempt = attempt
        self._mode = mode
        self._from_round = from_round
        self._rounds = {round_.index: round_ for round_ in rounds}
        self._directory = directory
        self._scrubber = scrubber
        self._checkpoints = checkpoints
        self._records: dict[int, Future[RoundRecord]] = {index: Future() for index in self._rounds}
        self.undone = False
        """Whether a round has no record that a later session would keep."""

    def __contains__(self, index: int) -> bool:
        return index in self._records

    @property
    def all_there(self) -> bool:
        """Whether nobody has to wait any more."""
        return all(record.done() for record in self._records.values())

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round."""
        return self._records[index].result()

    def before(self, index: int) -> list[RoundRecord]:
        """Wait for the records of the rounds before one, in order."""
        return [record.result() for earlier, record in self._records.items() if earlier < index]

    @property
    def left_to_solutions(self) -> tuple[str, ...]:
        """The rounds before the first that is run: what they require held when it began."""
        return tuple(round_.name for round_ in self._task.rounds if round_.index < min(self._records))

    def begin_after(self, index: int) -> None:
        """Have none for the rounds up to this one, which are not run."""
        self._records = {later: record for later, record in self._records.items() if later > index}

    def restore(self, records: Mapping[int, RoundRecord]) -> None:
        """Hand out what an earlier session wrote."""
        for index, record in records.items():
            self._records[index].set_result(record)

    def leave_alone(self) -> None:
        """Write nothing from here on."""
        self._directory = None

    def make(self, round_: Round, **values: object) -> RoundRecord:
        """A round's record with the rest of its fields filled in."""
        return RoundRecord.model_validate(
            {
                "task": self._task.name,
                "agent": self._agent,
                "attempt": self._attempt,
                "round": round_.name,
                "index": round_.index,
                "declared_rounds": len(self._task.rounds),
                **values,
            }
        )

    def deliver(self, record: RoundRecord, *, done: bool, output: str | None = None) -> None:
        """Write a record and hand it out; ``done`` says that a later session would only repeat it."""
        record = scrubbed(record, self._scrubber)
        try:
            if self._directory is not None:
                self._directory.write_round(record, output=output, done=done)
            if done:
                self._checkpoints.round_done(record.index)
        except (OSError, ValueError, EnvironmentFault) as error:
            cause = self._scrubber.text(f"the results could not be written: {error}")
            failed = {"outcome": "error", "cause": cause, "fault": "infrastructure"}
            record, done = record.model_copy(update=failed), False
        self.undone |= not done
        self._records[record.index].set_result(record)

    def skip_after(self, index: int, cause: str) -> None:
        """Say of all rounds after one that have no record why they were not reached."""
        for later, record in self._records.items():
            if later > index and not record.done():
                record.set_result(self.make(self._rounds[later], outcome="not reached", cause=cause))

    def break_off(
        self, index: int, cause: str | None, fault: Fault = "infrastructure", *, usage: Usage | None = None
    ) -> None:
        """Put an error on the round it happened in, the first from ``index`` on that has no record.

        Without a cause the session was stopped; ``fault`` says who is to blame for one, ``usage`` what was paid there.
        """
        self.undone = True
        if cause is not None:
            left = (each for each, record in self._records.items() if each >= index and not record.done())
            if (first := next(left, None)) is not None:
                round_ = self._rounds[first]
                broken = self.make(round_, outcome="error", cause=cause, fault=fault, usage=usage)
                self.deliver(broken, done=False)
                self.skip_after(first, f"the attempt ended in {round_.name} with an error")
        self.skip_after(index - 1, STOPPED)

    def write_attempt(self, state: AttemptState, started: str) -> None:
        """Write the attempt's record, now that all rounds have theirs; raises OSError and RecordFault."""
        if self._directory is None:
            return
        own = {index: record.result() for index, record in self._records.items()}
        with self._directory.composing() as earlier:
            others = {record.index: record for record in earlier.rounds} if earlier is not None else {}
            records = tuple(record for _, record in sorted({**others, **own}.items()))
            self._directory.write_attempt(
                AttemptRecord(
                    task=self._task.name,
                    agent=self._agent,
                    attempt=self._attempt,
                    mode=self._mode,
                    from_round=self._from_round,
                    environment=state.environment,
                    task_hash=state.task_hash,
                    made_by=state.made_by,
                    started=min(started, earlier.started) if earlier is not None else started,
                    finished=now(),
                    declared_rounds=tuple(round_.name for round_ in self._task.rounds),
                    facts=task_facts(self._task),
                    rewards=trial_rewards(records, self._counting, self._task.reward_strategy),
                    rounds=records,
                )
            )

    @property
    def _counting(self) -> range:
        """The indices of the declared rounds, without those that a chain from a later one leaves out."""
        names = [round_.name for round_ in self._task.rounds]
        first = 1 if self._from_round is None else names.index(self._from_round) + 1
        return range(first, len(names) + 1)
