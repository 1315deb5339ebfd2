"""From a turn that has ended to the record of its round: suites run beside the turns that follow."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from pytest_evocode.environments import Environment
from pytest_evocode.errors import describe_error
from pytest_evocode.results.records import TurnRecord
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Round
from pytest_evocode.trial.agent_turns import STOPPED, AgentTurns
from pytest_evocode.trial.checkpoints import Checkpoints
from pytest_evocode.trial.reference_states import ReferenceStates
from pytest_evocode.trial.round_records import RoundRecords
from pytest_evocode.trial.suite_runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun, judge


class VerdictPipeline:
    """Delivers the records of an attempt's rounds once their turns have ended.

    ``references`` is where states are kept that suites accept, None for nowhere; ``strict`` fails rounds in which tools
    were changed. ``threads`` is how many suites may be asked for at once.
    """

    def __init__(
        self,
        turns: AgentTurns,
        suites: SuiteRunner,
        checkpoints: Checkpoints,
        records: RoundRecords,
        references: ReferenceStates | None,
        scrubber: Scrubber,
        cancelled: threading.Event,
        *,
        strict: bool,
        threads: int,
    ) -> None:
        self._turns = turns
        self._suites = suites
        self._checkpoints = checkpoints
        self._records = records
        self._references = references
        self._scrubber = scrubber
        self._cancelled = cancelled
        self._strict = strict
        self._pool = ThreadPoolExecutor(threads, thread_name_prefix="verifier")

    def begin(self, environment: Environment, round_: Round, turn: TurnRecord) -> None:
        """Have a round's suite run in a fork and its record delivered, after those of the rounds before."""
        self._pool.submit(self._verify, environment, round_, turn)

    def wait(self) -> None:
        """Wait for all that was begun; nothing more may be."""
        self._pool.shutdown(wait=True)

    def conclude(self, round_: Round, turn: TurnRecord, suite: SuiteRun) -> None:
        """Make a round's record of its turn and its suite, and deliver it."""
        earlier = self._records.before(round_.index)
        # Here and not only when it is delivered: cases are compared by name with those of rounds that were.
        suite = replace(suite, verdict=scrubbed(suite.verdict, self._scrubber))
        values = judge(
            turn,
            suite,
            earlier,
            agent_limit=self._turns.limit(round_),
            verifier_limit=self._suites.limit(round_),
            held=self._records.left_to_solutions,
            strict=self._strict,
        )
        record = self._records.make(round_, **values)
        if record.outcome == "failed" and self._suites.fork_of(round_.index) is not None:
            self._checkpoints.hold(round_.index)
        else:
            self._suites.drop_fork(round_.index)
        self._records.deliver(record, output=suite.output, done=True)

    def _verify(self, environment: Environment, round_: Round, turn: TurnRecord) -> None:
        try:
            self._turns.refuse_when_cancelled()
            snapshot = self._checkpoints.snapshot_of(round_.index)
            suite = self._suites.run(environment, snapshot, round_)
            if self._references is not None and suite.verdict is not None and suite.verdict.passed:
                self._references.keep(round_.index, snapshot)
            self.conclude(round_, turn, suite)
        except Exception as error:
            self._fail(round_, turn, error)

    def _fail(self, round_: Round, turn: TurnRecord, error: Exception) -> None:
        self._suites.drop_fork(round_.index)
        stopped = self._cancelled.is_set()  # Then what was killed under it is to blame, and not the engine.
        record = self._records.make(
            round_,
            outcome="not reached" if stopped else "error",
            cause=STOPPED if stopped else describe_error(error),
            fault=None if stopped else "infrastructure",
            tool_calls=turn.tool_calls,
            usage=turn.usage,
            stopped=turn.stopped,
            agent_seconds=turn.agent_seconds,
        )
        self._records.deliver(record, done=False)
