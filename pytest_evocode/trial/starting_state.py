"""Where an attempt begins: at the image, where an earlier session left it, or where reference solutions lead."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from typing import Protocol

from pytest_evocode.agents import Agent, installation_of
from pytest_evocode.agents.oracle import OracleAgent
from pytest_evocode.environments import Engine, Environment, Snapshot
from pytest_evocode.errors import AgentFault, Cancelled, EnvironmentFault, TaskError
from pytest_evocode.results.records import RoundRecord, Verdict
from pytest_evocode.secrets import withheld_from_agent
from pytest_evocode.tasks import Task
from pytest_evocode.trial.agent_turns import STOPPED, AgentTurns
from pytest_evocode.trial.checkpoints import Resumption
from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.reference_states import ReferenceStates
from pytest_evocode.trial.suite_runner import SuiteRunner


class OracleAttempt(AbstractContextManager["OracleAttempt"], Protocol):
    """An attempt of the oracle that plays the solutions up to some round, while its context lasts."""

    def begun_after(self) -> int:
        """Wait until it is known which rounds are not played, because the state after them is."""

    def wait(self, index: int) -> RoundRecord:
        """Wait for the record of a round that is played."""

    def last_state(self) -> Snapshot:
        """The state after the last round, once its record is there."""

    def close(self) -> None:
        """End it now."""


class StartingState:
    """How an attempt finds where it begins.

    ``first`` is the index of the first round that is the agent's own: where it is not 1, the reference solutions of
    those before come first. ``play`` has the oracle play them up to a round, with the options that it is given.
    ``wanted`` is the first round that is asked for; the oracle itself may begin at any state before it that is known.
    """

    def __init__(
        self,
        task: Task,
        agent: Agent,
        engine: Engine,
        options: TrialOptions,
        *,
        first: int,
        wanted: int,
        cancelled: threading.Event,
        play: Callable[[int, TrialOptions], OracleAttempt],
    ) -> None:
        self._task = task
        self._options = options
        self._first = first
        self._wanted = wanted
        self._cancelled = cancelled
        self._play = play
        self._is_oracle = type(agent) is OracleAgent
        self.installation = options.installation or installation_of(agent)
        """What is in the image besides the task's own."""
        # No other agent than the oracle begins where a secret may lie, whatever it declares itself.
        self._withheld = options.withheld if self._is_oracle else withheld_from_agent(options.environ, ())
        self._states: ReferenceStates | None = None
        if options.references:
            self._states = ReferenceStates(
                engine, task, options.environ, withheld=self._withheld, installation=self.installation
            )
        self._playing: OracleAttempt | None = None

    @property
    def kept(self) -> ReferenceStates | None:
        """Where the states go that this attempt itself leads to; None where they are nobody's reference."""
        return self._states if self._is_oracle else None

    def find(self, *, in_place: bool, until_started: ExitStack) -> Resumption:
        """Where the attempt begins; a state stays as it is until the environment has started.

        With suites ``in_place`` that is the image, where :meth:`play_in_place` goes on. Raises
        :class:`~pytest_evocode.errors.TaskError` where the solutions do not lead there, Cancelled and EnvironmentFault.
        """
        before = self._first - 1
        if in_place:
            return Resumption(begun_after=before)
        if not before:
            nearest = range(self._wanted - 1, 0, -1) if self._is_oracle else ()
            index, state = self._known(nearest, until_started)
            return Resumption(last_turn=index, begun_after=index, start=state)
        with self._states.making(self._cancelled) if self._states is not None else contextlib.nullcontext():
            state = self._known([before], until_started)[1] or self._played(until_started)
        return Resumption(last_turn=before, begun_after=before, start=state)

    def play_in_place(self, environment: Environment, suites: SuiteRunner) -> None:
        """Play the solutions where the agent is to work, with suites that run there as well; raises as :meth:`find`."""
        turns = AgentTurns(
            self._task,
            OracleAgent(),
            environ=self._options.environ,
            timeout_multiplier=self._options.timeout_multiplier,
            cancelled=self._cancelled,
            withheld=self._withheld,
        )
        for round_ in self._task.rounds[: self._first - 1]:
            try:
                turns.take(environment, round_)
            except AgentFault as error:
                raise self._leads_nowhere(round_.name, str(error)) from None
            suite = suites.run_in_place(environment, round_, collect=False)
            # Those before the last need not: what they require may have been retired.
            if round_.index == self._first - 1 and not (suite.verdict is not None and suite.verdict.passed):
                raise self._leads_nowhere(round_.name, suite.fault or _failing(suite.verdict))

    def stop(self) -> None:
        """End what still plays."""
        if self._playing is not None:
            with contextlib.suppress(EnvironmentFault):
                self._playing.close()

    def _known(self, indexes: Sequence[int], until_started: ExitStack) -> tuple[int, Snapshot | None]:
        """The first of the states that is known, with its round; it does not make way for another one meanwhile."""
        if self._states is not None and indexes:
            with ExitStack() as stack:
                stack.enter_context(self._states.held())
                for index in indexes:
                    if (state := self._states.find(index)) is not None:
                        until_started.push(stack.pop_all())
                        return index, state
        return 0, None

    def _played(self, until_started: ExitStack) -> Snapshot:
        options = TrialOptions(
            environ=self._options.environ,
            timeout_multiplier=self._options.timeout_multiplier,
            verifiers=self._options.verifiers,
            references=self._options.references,
            withheld=self._withheld,
            installation=self.installation,
            hold_last=True,
        )
        last = self._first - 1
        self._playing = playing = until_started.enter_context(self._play(last, options))
        records = [playing.wait(index) for index in range(playing.begun_after() + 1, last + 1)]
        if records[-1].passed:
            return playing.last_state()
        if self._cancelled.is_set():
            raise Cancelled(STOPPED)
        broken = next((record for record in records if record.outcome == "error"), records[-1])
        raise self._leads_nowhere(broken.round, broken.cause or _failing(broken.verdict))

    def _leads_nowhere(self, round_name: str, why: str) -> TaskError:
        return TaskError(
            f"{self._task.rounds[self._first - 1].name} begins where the reference solutions lead, and that of "
            f"{round_name} fails; correct it, --evocode-check helps: {why}",
            self._task.file,
        )


def _failing(verdict: Verdict | None) -> str:
    cases = ", ".join(case.id for case in verdict.cases if case.failing) if verdict is not None else ""
    return f"it does not pass its suite: {cases}" if cases else "it does not pass its suite"
