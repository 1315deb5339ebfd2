"""The records of an attempt's rounds: made, written, and handed to whoever waits for them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import EnvironmentFault, RunLimitReached, describe_error
from pytest_evocode.results.cases import LONGEST_TEXT, without_middle
from pytest_evocode.results.directory import now
from pytest_evocode.results.records import AttemptRecord, Outcome, RoundRecord, TurnRecord, task_facts
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.tasks import Round
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.checkpoints import Checkpoints
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.verifier import compare_cases

logger = logging.getLogger(__name__)

_LONGEST_CAUSE = 2**15  # characters
_OF_TURN = (
    *("tool_calls", "usage", "stopped", "refused", "user_usage"),
    *("agent_seconds", "phases", "denied", "provider_waits"),
)
"""The fields of a record that tell of the agent's turn."""
_MOST_FLAGS = 200


class RoundRecords:
    """One record for each round of an attempt that is run, by its index; they come in any order.

    All records pass through :meth:`deliver`, where the host's secrets are taken out and the record is written.
    """

    def __init__(
        self, context: TrialContext, agent: str, attempt: int, rounds: RoundSelection, checkpoints: Checkpoints
    ) -> None:
        """Begin without records; ``agent`` is what they call the agent."""
        self._task = context.task
        self._agent = agent
        self._attempt = attempt
        self._mode = context.options.mode
        self._begin_with = rounds.begin_with if self._mode != "single-round" else None
        self._rounds = {each.index: each for each in self._task.rounds[rounds.rounds_before : rounds.last]}
        self._directory = context.directory
        self._context = context
        self._checkpoints = checkpoints
        self._records: dict[int, Future[RoundRecord]] = {index: Future() for index in self._rounds}
        self.undone = False
        """Whether a round has no record that a later session would keep."""
        self.waits = False
        """Whether the attempt waits for a later session, because the run has used what it may."""
        self.outputs: dict[int, str] = {}
        """What suites printed, by round, where there is no directory for it."""

    def __contains__(self, index: int) -> bool:
        return index in self._records

    @property
    def all_there(self) -> bool:
        """Whether all rounds have their records."""
        return all(record.done() for record in self._records.values())

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round."""
        return self._records[index].result()

    def get(self, index: int) -> RoundRecord | None:
        """Return the record of a round if it is there; does not wait."""
        record = self._records.get(index)
        return record.result() if record is not None and record.done() else None

    def skip_before(self, index: int) -> None:
        """Have no records of the rounds before one, which are not run."""
        self._records = {later: record for later, record in self._records.items() if later >= index}

    def restore(self, records: Mapping[int, RoundRecord]) -> None:
        """Hand out the records that an earlier session wrote."""
        for index, record in records.items():
            self._records[index].set_result(record)

    def give_up(self, lost: Mapping[int, str]) -> None:
        """Record rounds whose own records are lost, with the reasons, as errors that no session can make good."""
        for index, cause in lost.items():
            self.deliver(self._record(self._rounds[index], "error", cause, fault="infrastructure"), done=True)

    def leave_alone(self) -> None:
        """Write nothing from here on."""
        self._directory = None

    def after_turn(
        self, round_: Round, turn: TurnRecord, outcome: Outcome = "not reached", cause: str = "", **more: Any
    ) -> RoundRecord:
        """Return the record of a round as far as the agent's turn tells, and with ``more`` of its fields."""
        return self._record(round_, outcome, cause, **{name: getattr(turn, name) for name in _OF_TURN}, **more)

    def _record(self, round_: Round, outcome: Outcome, cause: str, **more: Any) -> RoundRecord:
        return RoundRecord(
            task=self._task.name,
            agent=self._agent,
            attempt=self._attempt,
            round=round_.name,
            index=round_.index,
            declared_rounds=len(self._task.rounds),
            outcome=outcome,
            cause=cause,
            **more,
        )

    def deliver(self, record: RoundRecord, *, done: bool, output: str | None = None) -> None:
        """Write a record and hand it out; ``done`` says that a later session would only repeat the round.

        One with a verdict waits for the records of the rounds before, with whose cases its own are compared.
        """
        record = _bounded(scrubbed(record, self._context.scrubber))
        if record.verdict is not None:
            # What the rounds required that are left to the solutions held when the first of these began.
            held = [round_.name for round_ in self._task.rounds if round_.index < min(self._records)]
            before = [earlier.result() for index, earlier in self._records.items() if index < record.index]
            record = compare_cases(record, before, held)
        try:
            if self._directory is not None:
                self._directory.write_round(record, output=output, done=done)
            elif output is not None:
                self.outputs[record.index] = output
            if done:
                self._checkpoints.round_done(record.index)
        except (OSError, ValueError, EnvironmentFault) as error:
            cause = self._context.scrubber.text(f"the results could not be written: {error}")
            failed = {"outcome": "error", "cause": cause, "fault": "infrastructure"}
            record, done = record.model_copy(update=failed), False
        logger.info("%s, %s: %s", record.task, record.round, record.outcome)
        self.undone |= not done
        self._records[record.index].set_result(record)

    def skip_after(self, index: int, cause: str, taken: Mapping[int, Mapping[str, Any]] | None = None) -> None:
        """Record why the rounds after one that have no record were not reached.

        ``taken`` are fields of their records by round: what was used of the model and the agent's time all the same.
        """
        for later, record in self._records.items():
            if later > index and not record.done():
                more = (taken or {}).get(later, {})
                record.set_result(self._record(self._rounds[later], "not reached", cause, **more))

    def break_off(self, index: int, error: BaseException, turns: AgentTurns) -> None:
        """Give an error to the round in which it happened: the first from ``index`` on that has no record.

        Where the session was stopped it is no error, and where the run has used what it may these rounds wait for a
        later session. ``turns`` tell whose fault it is, and what the round had used until then.
        """
        self.undone = True
        if not self._context.cancelled.is_set():
            first = next((each for each, record in self._records.items() if each >= index and not record.done()), None)
            if isinstance(error, RunLimitReached):
                self.waits = True
                self._leave_waiting(index, str(error), turns.taken)
            elif first is not None:
                round_, cause = self._rounds[first], describe_error(error)
                taken = {**turns.taken, "agent_seconds": None}  # No more than a part of what the turn would have taken.
                self.deliver(self._record(round_, "error", cause, fault=turns.fault_of(error), **taken), done=False)
                self.skip_after(first, f"the attempt ended in {round_.name} with an error")
        self.skip_after(index - 1, STOPPED)

    def _leave_waiting(self, index: int, why: str, taken: Mapping[str, Any]) -> None:
        """Have the rounds from ``index`` on that have no record wait; ``taken`` are fields of the first's record."""
        for later, record in self._records.items():
            if later >= index and not record.done():
                more = {"waiting": why, **taken}
                record.set_result(self._record(self._rounds[later], "not reached", f"waiting: {why}", **more))
                taken = {}

    def write_attempt(self, started: str, *, deterministic: bool) -> None:
        """Write the attempt's record, now that all rounds have theirs; raises OSError and RecordFault.

        ``deterministic`` is what the agent says of itself.
        """
        if self._directory is None:
            return
        own = {index: record.result() for index, record in self._records.items()}
        # A chain from a later round leaves out those before.
        counting = range(self._begin_with or 1, len(self._task.rounds) + 1)
        with self._directory.composing() as earlier:
            others = {record.index: record for record in earlier.rounds} if earlier is not None else {}
            records = tuple(record for _, record in sorted({**others, **own}.items()))
            self._directory.write_attempt(
                AttemptRecord(
                    task=self._task.name,
                    agent=self._agent,
                    attempt=self._attempt,
                    mode=self._mode,
                    from_round=self._task.rounds[self._begin_with - 1].name if self._begin_with else None,
                    environment=self._context.engine.name,
                    task_hash=self._context.task_hash,
                    made_by=dict(self._context.options.agent),
                    strict=self._context.options.strict,
                    verify=self._task.verify,
                    deterministic=deterministic,
                    started=min(started, earlier.started) if earlier is not None else started,
                    finished=now(),
                    declared_rounds=tuple(round_.name for round_ in self._task.rounds),
                    facts=task_facts(self._task),
                    rewards=trial_rewards(records, counting, self._task.reward_strategy),
                    rounds=records,
                )
            )


def _bounded(record: RoundRecord) -> RoundRecord:
    """Return a record whose texts have a bound, whatever programs, agents and engines had to say."""
    update: dict[str, Any] = {"cause": without_middle(record.cause, _LONGEST_CAUSE)}
    if record.verdict is not None:
        flags = [without_middle(flag, LONGEST_TEXT) for flag in record.verdict.flags]
        more = [f"and {len(flags) - _MOST_FLAGS} more"] if len(flags) > _MOST_FLAGS else []
        update["verdict"] = record.verdict.model_copy(update={"flags": (*flags[:_MOST_FLAGS], *more)})
    return record.model_copy(update=update)
