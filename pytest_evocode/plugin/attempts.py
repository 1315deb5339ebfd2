"""An attempt and its rounds as pytest sees them: the collector AttemptCollector and its items, RoundItem."""

from __future__ import annotations

import contextlib
import os
import textwrap
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from types import FunctionType
from typing import TYPE_CHECKING, Any

import pytest

from pytest_evocode.errors import AttemptEnded, EnvironmentFault, RecordFault, RoundFailed, TaskError, UsageError
from pytest_evocode.plugin.kept_rounds import (
    partial_properties,
    report_properties,
    without_record,
)
from pytest_evocode.plugin.pytest_private import add_fixture, finish_with, fixture_info_of, make_failure
from pytest_evocode.plugin.session import session_of
from pytest_evocode.report.printable import printable_line
from pytest_evocode.results.forks import ForkedState, find_fork
from pytest_evocode.results.records import RoundRecord
from pytest_evocode.tasks import Round, Task
from pytest_evocode.tasks.task import RoundSelection

if TYPE_CHECKING:
    from pytest_evocode.environments import Environment
    from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
    from pytest_evocode.plugin.session_agents import SessionAgent
    from pytest_evocode.trial.trial import Trial


_SHOWN_OUTPUT = 2**15  # characters
_LONGEST_LINE = 100  # characters of a request's first line
_OF_TRIALS = (
    *("mode", "speculate", "budget", "timeout_multiplier"),
    *("reuse", "waiting_limit", "verifiers", "verify_times", "strict"),
)
"""Settings that are options of trials of the same name."""


class AttemptCollector(pytest.Collector):
    """One run of one agent through one task; the rounds below it share its container.

    In single-round mode each of them has one of its own.
    """

    def __init__(
        self,
        *,
        agent: SessionAgent,
        number: int,
        task: Task,
        first: int | None = None,
        fork: ForkedState | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        self.fork = fork
        """The state of another attempt that it goes on from; None of one that is no fork."""
        first = first if fork is None else fork.source.index + 1
        self.agent = agent
        self.number = number
        self.task = task
        self.rounds = RoundSelection(begin_with=first, first_wanted=len(task.rounds), last=0)
        """The rounds that were selected; ``begin_with`` is a fork's first, or the one that ``--evocode-from`` names."""
        self.trial: Trial | RemoteTrial | None = None
        """The trial under way, None before the first round and after the last.

        One on a node of a cluster is there for one round after the other.
        """
        self._evocode = session_of(self.config)
        self._rounds: list[RoundItem] = []
        self._ahead: Trial | BaseException | None = None
        """The trial that was begun before its turn, or what kept it from beginning."""

    def collect(self) -> list[RoundItem]:
        """Return the rounds, the same objects at every call."""
        if not self._rounds:
            add_fixture("evocode_container", container_fixture(self), self)
            subtests = self._evocode.settings.cases == "subtests"
            shared: dict[str, Any] = {}
            check: Callable[..., None] = _check_with_subtests if subtests else _check
            option = self.config.option
            is_listed = option.collectonly and option.verbose > 0
            for round_ in self.task.rounds:
                item = RoundItem.from_parent(
                    self,
                    name=round_.name,
                    callobj=_asking(check, round_) if is_listed else check,
                    index=round_.index,
                    **shared,
                )
                shared = {"fixtureinfo": fixture_info_of(item)}
                self._rounds.append(item)
        return self._rounds

    @property
    def is_chain(self) -> bool:
        """Whether each round continues in the environment of the one before it."""
        return self._evocode.settings.mode != "single-round"

    def setup(self) -> None:
        """Start the trial of a chain; pytest calls this before the first selected round."""
        if self.is_chain and self._evocode.plays:
            self.begin()

    def begin(self, alone: RoundItem | None = None) -> None:
        """Start a trial, through the last round that was selected, or of one round by itself."""
        session = self._evocode
        if (elsewhere := session.elsewhere) is not None:
            self.trial = elsewhere.trial_of(self, alone)
            return
        ahead, self._ahead = self._ahead, None
        if isinstance(ahead, BaseException):
            raise ahead
        if ahead is None:
            session.running = trial = self.make_trial(alone)
            self.trial = trial.__enter__()
            return
        if not session.settings.pin:
            self._warn_of_stale_pins()
        session.running = self.trial = ahead

    def begin_ahead(self) -> None:
        """Start the trial of a chain before its first round is set up; what goes wrong, :meth:`begin` tells."""
        try:
            # Before it is started, so that whatever comes between is no reason to forget it.
            self._ahead = trial = self._trial(None)
            trial.__enter__()
        except pytest.exit.Exception:  # Somebody ends the session.
            raise
        except (Exception, pytest.fail.Exception, pytest.skip.Exception) as error:
            self._ahead = error

    def drop_ahead(self) -> None:
        """End a trial that was begun ahead and whose rounds are not set up any more; raises EnvironmentFault."""
        ahead, self._ahead = self._ahead, None
        if ahead is not None and not isinstance(ahead, BaseException):
            ahead.close()

    def make_trial(self, alone: RoundItem | None = None) -> Trial:
        """Make a trial that has not begun, through the last round that was selected, or of one round by itself."""
        if not self._evocode.settings.pin:
            self._warn_of_stale_pins()
        return self._trial(alone)

    def _trial(self, alone: RoundItem | None) -> Trial:
        try:
            return self._make_trial(alone)
        except (TaskError, UsageError) as error:
            raise pytest.fail.Exception(str(error), pytrace=False) from None

    def _make_trial(self, alone: RoundItem | None) -> Trial:
        from pytest_evocode.llm.budget import RunSpending
        from pytest_evocode.trial.context import TrialOptions
        from pytest_evocode.trial.trial import Trial

        session, settings = self._evocode, self._evocode.settings
        session.share_connections()
        spending = RunSpending(settings.results / "runs" / f"{session.run_name}.spent")
        # What a worker finds of this run is from one that was lost.
        resume = settings.resume is not None or session.worker_input is not None
        rounds = self.rounds if alone is None else RoundSelection.single(alone.index)
        if resume and self.fork is not None:
            self.fork = self._fork_begun_from(self.fork)
        cases = cases_by_round(self.task.rounds[rounds.first_wanted - 1 : rounds.last], settings.case)
        return Trial(
            self.task,
            session.roster.make(self.agent),
            session.engine,
            name=self.agent.id,
            attempt=self.number,
            rounds=rounds,
            directory=None
            if cases
            else session.attempt_directory(
                self.task.name, self.agent.id, self.number, only_round=alone.name if alone is not None else ""
            ),
            options=TrialOptions(**self.trial_options(cases), run_spending=spending, resume=resume),
        )

    def _fork_begun_from(self, newest: ForkedState) -> ForkedState:
        """Return the state that an earlier session began the attempt in, where there is a newer one now."""
        settings = self._evocode.settings
        assert settings.fork_from is not None
        directory = self._evocode.attempt_directory(self.task.name, self.agent.id, self.number)
        try:
            earlier = directory.read_state() or directory.read_attempt()
        except RecordFault:  # To go on with the attempt says so.
            return newest
        source = earlier.forked_from if earlier is not None else None
        if source is None or settings.fork_from.run or source.run == newest.source.run:
            return newest
        return find_fork(settings.results, settings.fork_from._replace(run=source.run), self.task, self.number)

    def trial_options(self, cases: Mapping[str, tuple[str, ...]]) -> dict[str, Any]:
        """Return how the attempt is run, as arguments of TrialOptions that do not depend on the machine.

        ``cases`` are the patterns of the only cases that are run, by round; none to run all.
        """
        settings = self._evocode.settings
        return {
            **{name: getattr(settings, name) for name in _OF_TRIALS},
            "agent": self.agent.description,
            "conditions": self._evocode.conditions,
            "cases": cases,
            "fork": self.fork,
            "references": not settings.replay,
            "hold_forks": settings.holds_forks,
            "hold_all_forks": settings.shell == "always",
            "keep_snapshots": settings.snapshots,
            "storage": settings.open_storage(),
        }

    def _warn_of_stale_pins(self) -> None:
        from pytest_evocode.tasks.lockfile import read_pins

        with contextlib.suppress(TaskError):  # The attempt says what is wrong with it.
            if (stale := read_pins(self.task.directory).stale) is not None:
                message = f"{stale}: stale, the task has changed since; pin it again with --evocode-pin"
                warnings.warn_explicit(message, pytest.PytestWarning, str(stale), 1)

    def teardown(self) -> None:
        """End the trial, finished or not."""
        self.end()

    def end(self) -> None:
        """End the trial."""
        if (trial := self.trial) is not None:
            fault = ""
            try:
                trial.close()
            except EnvironmentFault as error:
                fault = str(error)
            finally:
                self.trial = None
            for note in trial.storage_notes:
                self.warn(pytest.PytestWarning(note))
            if fault:  # Out here, or pytest would show where the error comes from.
                pytest.fail(fault, pytrace=False)


def container_fixture(attempt: AttemptCollector) -> Callable[[pytest.FixtureRequest], Environment | None]:
    """Return a session-scoped fixture of the attempt's own: what depends on it lives as long as the container."""

    def evocode_container(request: pytest.FixtureRequest) -> Environment | None:
        """Return the environment that the rounds of this attempt share; None if it ended before, or none is started."""
        finish_with(request, attempt if attempt.is_chain else None)
        if attempt.trial is None:  # Nothing is played.
            return None
        try:
            return attempt.trial.wait_environment()
        except AttemptEnded:
            return None

    return evocode_container


def cases_by_round(rounds: Sequence[Round], patterns: tuple[str, ...]) -> Mapping[str, tuple[str, ...]]:
    """Return what the only cases are called that are run of the suites of some rounds, for ``TrialOptions.cases``.

    Raises:
        TaskError: A round has a script suite, which runs as a whole.
    """
    if patterns and (scripts := [round_.name for round_ in rounds if round_.has_script]):
        raise TaskError(
            f"--evocode-case picks cases of native suites, and a test.sh, as {', '.join(scripts)} has, runs as a "
            "whole; leave the option out",
            rounds[0].directory,
        )
    return {round_.name: patterns for round_ in rounds} if patterns else {}


class Later(pytest.Item):
    """Stands for the item that follows a round as long as that is not known."""

    def __init__(self, *, goes_on: bool = False, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.goes_on = goes_on
        """Whether rounds of the same attempt are still to come."""

    def runtest(self) -> None:
        """Do nothing; it is never run."""


def later(session: pytest.Session, *, goes_on: bool = False) -> Later:
    """Return what stands for an item that is not known yet."""
    made: Later = Later.from_parent(session, name="later", goes_on=goes_on)
    return made


def run_item(session: pytest.Session, item: pytest.Item, following: pytest.Item | None) -> None:
    """Run a test, and end the session where the test or whoever heard of it wants that."""
    item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
    if session.shouldfail:
        raise session.Failed(session.shouldfail)
    if session.shouldstop:
        raise session.Interrupted(session.shouldstop)


def run_others(session: pytest.Session) -> None:
    """Run the tests of a session that are no rounds, to be followed by rounds where it has some."""
    others = [item for item in session.items if not isinstance(item, RoundItem)]
    last = later(session) if len(others) < len(session.items) else None
    for position, item in enumerate(others):
        run_item(session, item, next(iter(others[position + 1 :]), last))


Made = tuple[AttemptCollector, "RoundItem | None"]
"""What is made as a whole: an attempt, or of one in single-round mode a round, which is an attempt of its own."""


def items_by_attempt(items: Iterable[pytest.Item]) -> dict[Made, list[RoundItem]]:
    """Return the rounds among the items of a session, in their order."""
    grouped: dict[Made, list[RoundItem]] = {}
    for item in items:
        if isinstance(item, RoundItem):
            grouped.setdefault((item.parent, None if item.parent.is_chain else item), []).append(item)
    return grouped


def name_for_people(made: Made) -> str:
    """Return what the live view and messages call an attempt."""
    attempt, alone = made
    return f"{attempt.task.name} {attempt.name}{f' {alone.name}' if alone is not None else ''}"


def stops_before_tests(session: pytest.Session) -> bool:
    """Return whether no test is run, which pytest's own loop says or does without a word."""
    stops_for_errors = session.testsfailed and not session.config.option.continue_on_collection_errors
    return bool(stops_for_errors or not session_of(session.config).plays)


def is_last_of_attempt(item: RoundItem, nextitem: pytest.Item | None) -> bool:
    """Tell whether no round of the same attempt comes after one."""
    if isinstance(nextitem, Later):
        return not nextitem.goes_on
    return getattr(nextitem, "parent", None) is not item.parent


class RoundItem(pytest.Function):
    """One round of an attempt. Its set-up waits for the verdict, its call fails when the verdict is not a pass."""

    parent: AttemptCollector

    def __init__(self, *, index: int, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.index = index
        self.record: RoundRecord | None = None
        self.before_verdict: Callable[[], None] | None = None
        """What is to be done before its verdict is waited for."""

    def setup(self) -> None:
        """Wait for the round's record.

        This is done in set-up because what goes wrong without a verdict has to be an error, and pytest calls a failure
        an error only when it happens in set-up.
        """
        if not session_of(self.config).plays:
            super().setup()
            return
        if not self.parent.is_chain:
            self.parent.begin(self)
        trial = self.parent.trial
        assert trial is not None
        if self.before_verdict is not None:
            self.before_verdict()
        if not self.is_played:
            fork = self.parent.fork
            assert fork is not None
            pytest.skip(f"forked from {fork.source.agent} after {fork.source.round}")
        if self.index < (first := trial.first_played()):
            pytest.skip(f"not needed: the reference state after {self.parent.task.rounds[first - 2].name} is known")
        self.record = record = trial.wait(self.index)
        settings = session_of(self.config).settings
        if not settings.case:
            self.user_properties += report_properties(record, settings.protocol)
        elif self.has_single_cases and record.verdict is not None:
            self.user_properties += partial_properties(record, settings.case)
            self.add_report_section("call", "suite output", trial.output_of(self.index)[-_SHOWN_OUTPUT:])
        if record.outcome == "not reached":
            pytest.skip(f"not reached: {record.cause}")
        if record.outcome == "error":
            pytest.fail("\n".join((record.cause, *record.notes)), pytrace=False)
        super().setup()

    @property
    def is_played(self) -> bool:
        """Whether it is not left to what the attempt begins in: to reference solutions, or to another agent's work."""
        return self.index > self.parent.rounds.rounds_before

    @property
    def has_single_cases(self) -> bool:
        """Whether only some cases of its suite are run: of a round that was asked for, with ``--evocode-case``."""
        return bool(session_of(self.config).settings.case) and self.index >= self.parent.rounds.first_wanted

    def teardown(self) -> None:
        """End the trial that is this round's alone."""
        super().teardown()
        if not self.parent.is_chain:
            self.parent.end()

    def forget(self) -> None:
        """Drop the record, which was reported: pytest keeps all items of a session until its end."""
        self.record, self.user_properties = None, without_record(self.user_properties)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], *args: Any, **kwargs: Any) -> Any:
        """Return the failing cases in place of a traceback."""
        if isinstance(excinfo.value, RoundFailed):
            session = session_of(self.config)
            text = session.describe_failure(_record_of(self))
            if self.has_single_cases:
                text = f"no verdict, only cases called {' or '.join(session.settings.case)} were run: {text}"
            return make_failure(self, text)
        return super().repr_failure(excinfo, *args, **kwargs)

    def reportinfo(self) -> tuple[os.PathLike[str] | str, int | None, str]:
        """Return where reports say that the round is."""
        return self.path, 0, f"{self.parent.task.name} {self.parent.name} {self.name}"


def _asking(check: Callable[..., None], round_: Round) -> FunctionType:
    """Return the test of a round with the first line of the request, which ``--collect-only -v`` shows with it."""
    assert isinstance(check, FunctionType)
    asking = FunctionType(check.__code__, check.__globals__, check.__name__)
    text = round_.instruction.read_text(encoding="utf-8", errors="replace")
    asking.__doc__ = printable_line(
        textwrap.shorten(text.strip().partition("\n")[0], _LONGEST_LINE, placeholder=" ...")
    )
    return asking


def _check(request: pytest.FixtureRequest, evocode_container: Environment | None) -> None:
    """Be the test that every round is."""
    _judge(request.node)


def _judge(item: RoundItem) -> None:
    """Fail a round that failed, and skip one that no reward decides."""
    # No variable has the record: the traceback would keep it.
    if _record_of(item).outcome == "undecided":
        pytest.skip(f"undecided: {_record_of(item).cause}")
    if not _record_of(item).passed:
        raise RoundFailed(f"{_record_of(item).round} failed")


def _check_with_subtests(
    request: pytest.FixtureRequest, evocode_container: Environment | None, subtests: pytest.Subtests
) -> None:
    """Be the test that every round is, with every case a subtest."""
    record = _record_of(request.node)
    for case in record.verdict.cases if record.verdict else ():
        with subtests.test(printable_line(case.id)):
            if case.status == "skipped":
                pytest.skip(case.reason or "skipped by the suite")
            if case.failing:
                pytest.fail(
                    case.reason or f"{case.failure}: expected {case.expected!r}, got {case.actual!r}", pytrace=False
                )
    _judge(request.node)


def _record_of(item: RoundItem) -> RoundRecord:
    assert item.record is not None
    return item.record
