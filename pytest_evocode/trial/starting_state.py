"""Where an attempt begins: at the image, where an earlier session left it, or where reference solutions lead."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Protocol

from pytest_evocode.agents import Agent, installation_of
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Environment, Snapshot
from pytest_evocode.environments.task_environment import STOPPED
from pytest_evocode.errors import AgentFault, Cancelled, EnvironmentFault, TaskError
from pytest_evocode.results.records import RoundRecord, TurnRecord, Verdict
from pytest_evocode.secrets import withheld_from_agent
from pytest_evocode.tasks.task import RoundSelection
from pytest_evocode.trial.agent_turns import AgentTurns
from pytest_evocode.trial.checkpoints import Resumption
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.reference_states import ReferenceStates
from pytest_evocode.trial.suites.runner import SuiteRunner

logger = logging.getLogger(__name__)

_KEPT = TurnRecord(index=0, snapshot="", timed_out=False, tool_calls=None, agent_seconds=None)
"""The turn of a round whose state is kept. Without a reference of its own no later session goes on from there."""


class OracleAttempt(AbstractContextManager["OracleAttempt"], Protocol):
    """An attempt in which the oracle plays the reference solutions up to some round; it lasts as long as its context.

    :class:`~pytest_evocode.trial.Trial` is one; this module cannot import it, because a trial begins here.
    """

    def first_played(self) -> int:
        """Wait until it is known which round is played first."""

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round that is played."""

    def last_state(self) -> Snapshot:
        """Return the state after the last round, once its record is there."""

    def close(self) -> None:
        """End the attempt now."""


class StartingState:
    """Finds the state that an attempt begins in.

    Where the agent's first round is not the task's, the reference solutions of those before come first: ``play`` makes
    an attempt of the oracle at some rounds with some options. The oracle itself may begin at any known state before the
    first round that was asked for.
    """

    def __init__(
        self,
        context: TrialContext,
        agent: Agent,
        rounds: RoundSelection,
        play: Callable[[RoundSelection, TrialOptions], OracleAttempt],
    ) -> None:
        self._task = context.task
        self._rounds = rounds
        self._cancelled = context.cancelled
        self._play = play
        self.is_oracle = type(agent) is OracleAgent
        """Whether the agent plays the reference solutions."""
        self.installation = context.options.installation or installation_of(agent)
        """What is in the image besides the task's own."""
        options = context.options
        # No other agent than the oracle begins where a secret may lie, whatever it declares itself.
        withheld = options.withheld_from_solutions if self.is_oracle else withheld_from_agent(options.environ, ())
        self._options = replace(options, withheld_from_solutions=withheld)
        self._solutions = replace(context, options=self._options, directory=None)
        self._states: ReferenceStates | None = None
        if options.references:
            self._states = ReferenceStates(
                context.engine, self._task, options.environ, withheld=withheld, installation=self.installation
            )
        self._attempt: OracleAttempt | None = None
        self._until_closed = ExitStack()

    @property
    def kept(self) -> ReferenceStates | None:
        """Where the states go that this attempt itself leads to; None where they are nobody's reference."""
        return self._states if self.is_oracle else None

    @property
    def is_of_task_alone(self) -> bool:
        """Whether all that runs in the attempt's environment is the task's own, and nothing installed for an agent."""
        return self.is_oracle and self.installation is None

    def find(self, in_place: bool, until_started: ExitStack) -> Resumption:
        """Return where the attempt begins; its state is kept for as long as ``until_started`` is open.

        With suites ``in_place`` that is the image, and :meth:`play_in_place` goes on from there. Raises
        :class:`~pytest_evocode.errors.TaskError` where the solutions do not lead there, Cancelled and EnvironmentFault.
        """
        before = self._rounds.rounds_before
        if in_place:
            return Resumption(first_played=before + 1)
        if kept := self._reused():
            turns = tuple(_KEPT.model_copy(update={"index": index}) for index in kept)
            last = max(kept)
            return Resumption(turns=turns, last_turn=last, first_played=min(kept), start=kept[last], kept=kept)
        if not before:
            nearest = range(self._rounds.first_wanted - 1, 0, -1) if self.is_oracle else ()
            index, state = self._known(nearest, until_started)
            return Resumption(last_turn=index, first_played=index + 1, start=state)
        with self._states.making(self._cancelled) if self._states is not None else contextlib.nullcontext():
            state = self._known([before], until_started)[1] or self._played(until_started)
        return Resumption(last_turn=before, first_played=before + 1, start=state)

    def play_in_place(self, environment: Environment, suites: SuiteRunner) -> None:
        """Play the solutions where the agent is to work, with suites that run there as well; raises as :meth:`find`."""
        turns = AgentTurns(self._solutions, OracleAgent())
        before = self._rounds.rounds_before
        for round_ in self._task.rounds[:before]:
            try:
                turns.take(environment, round_)
            except AgentFault as error:
                raise self._leads_nowhere(round_.name, str(error)) from None
            suite = suites.run_in_place(environment, round_, collect=False)
            # The suites of earlier rounds may fail: what they require may have been retired.
            if round_.index == before and not (suite.verdict is not None and suite.verdict.passed):
                raise self._leads_nowhere(round_.name, suite.fault or suite.hang or _failing(suite.verdict))

    def close(self) -> None:
        """Let go of the states that the attempt used."""
        self._until_closed.close()

    def stop(self) -> None:
        """End the reference solutions that are still played."""
        if self._attempt is not None:
            with contextlib.suppress(EnvironmentFault):
                self._attempt.close()

    def _known(self, indexes: Sequence[int], until_started: ExitStack) -> tuple[int, Snapshot | None]:
        """Return the first known one of the states after some rounds, with its round's index, or 0 and None.

        No other state takes its place while ``until_started`` is open.
        """
        if self._states is not None and indexes:
            with ExitStack() as stack:
                stack.enter_context(self._states.held())
                for index in indexes:
                    if (state := self._states.find(index)) is not None:
                        logger.info("%s: begins at the known state after round %d", self._task.name, index)
                        until_started.push(stack.pop_all())
                        return index, state
        return 0, None

    def _reused(self) -> dict[int, Snapshot]:
        """Return the states in which the oracle's rounds are verified without a turn, from the first that is wanted."""
        if self._states is None or not (self.is_oracle and self._options.reuse):
            return {}
        last = min(self._rounds.last or len(self._task.rounds), len(self._task.rounds))
        kept = self._states.use(range(self._rounds.first_wanted, last + 1), self._until_closed)
        if kept:
            logger.info(
                "%s: the solutions of rounds %d to %d are not played again", self._task.name, min(kept), max(kept)
            )
        return kept

    def _played(self, until_started: ExitStack) -> Snapshot:
        options = TrialOptions(
            environ=self._options.environ,
            timeout_multiplier=self._options.timeout_multiplier,
            verifiers=self._options.verifiers,
            references=self._options.references,
            withheld_from_solutions=self._options.withheld_from_solutions,
            installation=self.installation,
            hold_last=True,
        )
        last = self._rounds.rounds_before
        logger.info("%s: the reference solutions are played up to round %d", self._task.name, last)
        attempt = self._play(RoundSelection(first_wanted=last, last=last), options)
        self._attempt = until_started.enter_context(attempt)
        records = [attempt.wait(index) for index in range(attempt.first_played(), last + 1)]
        if records[-1].passed:
            return attempt.last_state()
        if self._cancelled.is_set():
            raise Cancelled(STOPPED)
        broken = next((record for record in records if record.outcome == "error"), records[-1])
        raise self._leads_nowhere(broken.round, broken.cause or _failing(broken.verdict))

    def _leads_nowhere(self, round_name: str, why: str) -> TaskError:
        return TaskError(
            f"{self._task.rounds[self._rounds.rounds_before].name} begins where the reference solutions lead, and that "
            f"of {round_name} fails; correct it, --evocode-check helps: {why}",
            self._task.file,
        )


def _failing(verdict: Verdict | None) -> str:
    cases = ", ".join(case.id for case in verdict.cases if case.failing) if verdict is not None else ""
    return f"it does not pass its suite: {cases}" if cases else "it does not pass its suite"
