"""What the hooks and collectors of one pytest session share: its settings, engine, run and the records so far."""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import pytest

from pytest_evocode.environments.scratch import Scratch, hold
from pytest_evocode.errors import RecordFault, StorageFault, UsageError
from pytest_evocode.plugin.kept_rounds import KeptRounds, RoundPlace
from pytest_evocode.plugin.options import conditions
from pytest_evocode.plugin.session_agents import Roster
from pytest_evocode.plugin.settings import read_settings
from pytest_evocode.results.directory import AttemptDirectory
from pytest_evocode.results.records import RoundRecord, Unscored
from pytest_evocode.results.selection import SelectedAttempt
from pytest_evocode.secrets import Scrubber

if TYPE_CHECKING:
    from pytest_evocode.environments import Engine
    from pytest_evocode.metrics.flaky import FlakyRound
    from pytest_evocode.metrics.scores import RunMode
    from pytest_evocode.metrics.spending import ExpectedAmounts
    from pytest_evocode.plugin.cluster.remote_trial import RemoteTrial
    from pytest_evocode.plugin.run import SessionRun
    from pytest_evocode.tasks import Task
    from pytest_evocode.trial.context import Progress
    from pytest_evocode.trial.trial import Trial

_NAMED = 3  # of what is left behind
_SHOW_ALL = 2
"""The verbosity that ``-vv`` asks for."""
SHARED = "evocode_shared"
"""The input of workers with the path of :attr:`EvocodeSession.shared`."""
RUN_NAME = "run"
"""The file there with the run's name."""
_FAILED_BUILDS = "failed-builds"
Selected = tuple[SelectedAttempt, ...]
"""Attempts, in the order of their names."""


class _Running(Protocol):
    """What a process has under way, and may be told to end."""

    def close(self) -> None: ...


class Elsewhere(Protocol):
    """Makes several attempts at once, and has their items run when their rounds, or the attempts, have ended."""

    @property
    def progress(self) -> dict[str, Progress]:
        """The progress of the attempts that run, by name."""

    def trial_of(self, attempt: pytest.Collector, alone: pytest.Item | None) -> Trial | RemoteTrial:
        """Return the trial of an attempt, or of a round that is run by itself; raises what kept it from beginning."""


class EvocodeSession:
    """A pytest session that runs or checks tasks. It has no hooks: those of the plugins around it change it.

    Making one raises pytest.UsageError for options that make no sense.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.settings = read_settings(config)
        self.scrubber = Scrubber()
        """Takes the host's secrets out of all that this session prints and writes."""
        self.roster = Roster(config, self.settings)
        self.worker_input: dict[str, Any] | None = getattr(config, "workerinput", None)
        """What xdist's controller passes to this process, None where it is no worker."""
        self.run: SessionRun | None = None
        """The run whose record this process writes; None in a worker, and where none is written."""
        self.elsewhere: Elsewhere | None = None
        """What makes several attempts at once, on the nodes of a cluster or in this process; None where this process
        makes one after the other, as their items are run.
        """
        self.collected: dict[str, Path] = {}
        """The directories of the tasks that were collected, by the tasks' names."""
        self.selected: Selected = ()
        """The attempts that are to be made, those of other shards too, once tasks have been collected."""
        self.interrupted = False
        """Whether somebody ended the session, as by Ctrl-C; that it stops by itself, as with ``-x``, is not that."""
        self.errors = 0
        """How many reports of the session are errors, which are no verdict on any agent."""
        self.unmet: list[str] = []
        """What makes the exit status 1 beside reports of tests, in a line each: what was asked for and not reached."""
        self.running: _Running | None = None
        """The last attempt that this process started, or what it does for tasks side by side; it may have ended."""
        self.engine_reason = ""
        """Why the engine was chosen, once it is."""
        self._engine: Engine | None = None
        self._shares_connections = False
        self._begun_at = time.monotonic()
        self.rounds = KeptRounds()
        """The rounds that were reported, with their records, in the process that reports."""

    # The environment and the agents.

    @property
    def plays(self) -> bool:
        """Whether anything is run: not where items are only collected, or only their fixtures are looked at."""
        return not any(self.config.getoption(name, False) for name in ("collectonly", "setuponly", "setupplan"))

    @property
    def engine(self) -> Engine:
        """The engine of this process, made on first use; raises EnvironmentUnavailable or UsageError."""
        if self._engine is None:
            from pytest_evocode.environments import choose_engine

            hidden = [self.config.rootpath, self.settings.results, self.config.invocation_params.dir]
            self._engine, self.engine_reason = choose_engine(
                self.settings.environment,
                hidden=hidden,
                failed_builds=self.shared / _FAILED_BUILDS,
                images=self.settings.images,
            )
            # Not at the session's end: one that is refused after this has none.
            self.config.add_cleanup(partial(self._close, self._engine))
        return self._engine

    def describe_images(self, selected: Selected) -> str:
        """Return which of the images that were given have no effect; empty where all have one."""
        from pytest_evocode.environments.choice import describe_images

        return describe_images(self.settings.images, self.engine, {each.directory for each in selected})

    def _close(self, engine: Engine) -> None:
        engine.close()
        # What a worker leaves is found by its controller, and by the next session.
        if self.worker_input is None and (left := engine.left_behind):
            more = f" and {len(left) - _NAMED} more" if len(left) > _NAMED else ""
            print(
                f"evocode: left behind: {', '.join(left[:_NAMED])}{more}; to remove it, run: evocode clean",
                file=sys.stderr,
            )

    @cached_property
    def shared(self) -> Path:
        """The directory with the files by which the session's processes tell one another what they have to know."""
        if self.worker_input is not None:
            directory = Path(self.worker_input[SHARED])
            hold(directory)  # A worker may outlive a controller that is killed, for a moment.
            return directory
        scratch = Scratch("session")
        self.config.add_cleanup(scratch.close)
        (scratch.path / _FAILED_BUILDS).mkdir()
        return scratch.path

    @cached_property
    def conditions(self) -> dict[str, str]:
        """What can change a verdict or a score, besides what records have as fields of their own; without secrets."""
        from importlib.metadata import version

        given = {name: self.scrubber.text(text) for name, text in conditions(self.config).items()}
        return {**given, "version": version("pytest-evocode")}

    @property
    def left_out_controls(self) -> frozenset[str]:
        """The ids of the controls, whose scores are nobody's, where other agents run, too; else empty."""
        from pytest_evocode.results.identity import identity_of

        agents = self.roster.agents
        found = frozenset(each.id for each in agents if identity_of(each.description, each.id).is_control)
        return found if len(found) < len(agents) else frozenset()

    def describe_conditions(self) -> str:
        """Return the conditions that are not as by default, in the words of results' labels; empty where all are."""
        from pytest_evocode.results.identity import Conditions, settings_of

        strict, verify = self.settings.strict, self.settings.verify
        changed = {name: self.scrubber.text(text) for name, text in conditions(self.config, only_changed=True).items()}
        found = Conditions(strict=strict, verify=verify, settings=settings_of(changed))
        _, about_strict, about_verify = found.texts()
        said = [text for text, is_said in ((about_strict, strict), (about_verify, verify)) if is_said]
        return ", ".join([*said, *(found.setting(name) for name, _ in found.settings or ())])

    @property
    def run_mode(self) -> RunMode:
        """How the session's attempts go through the rounds."""
        from pytest_evocode.metrics.scores import RunMode

        return RunMode(self.settings.mode, self.settings.start)

    @cached_property
    def expected_seconds(self) -> ExpectedAmounts | None:
        """What rounds took before, by which shards are made; None to go by timeouts. Raises pytest.UsageError."""
        times = self.settings.shard_times
        if times is None:
            return None
        from pytest_evocode.metrics.spending import ExpectedAmounts, seconds_of
        from pytest_evocode.results.loading import load_results

        expected = ExpectedAmounts(load_results([times]).attempts, seconds_of)
        if not expected:
            raise pytest.UsageError(f"--evocode-shard-times={times}: no attempt there has measured times")
        return expected

    def stop_running(self) -> None:
        """End the attempt, the checks or the making ready that is under way, if any; raises EnvironmentFault."""
        if self.running is not None:
            self.running.close()

    # The run and its results.

    @property
    def run_name(self) -> str:
        """The session's name in the results directory, the same in all its processes; empty where it writes none."""
        if self.worker_input is not None:
            # A file, because which run is resumed is known only once workers have collected.
            return (self.shared / RUN_NAME).read_text()
        return self.run.name if self.run is not None else ""

    def attempt_directory(self, task: str, agent: str, attempt: int, only_round: str = "") -> AttemptDirectory:
        """Return where this run keeps an attempt; ``alone`` names the round of a single-round attempt."""
        results = self.settings.results
        return AttemptDirectory.of(results, task, agent, self.run_name, attempt, self.scrubber, only_round=only_round)

    def share_connections(self) -> None:
        """Have clients of models in this process go by the limits of the whole run, where it is recorded."""
        if self.run_name and not self._shares_connections:
            from pytest_evocode.llm.connection_limits import MOST, SharedConnections, connections_shared_by

            self._shares_connections = True
            sharing = contextlib.ExitStack()
            most = self.settings.max_connections or max(MOST, self.settings.jobs)
            sharing.enter_context(connections_shared_by(SharedConnections(self._connections, most)))
            self.config.add_cleanup(sharing.close)

    def forget_connections(self) -> None:
        """Remove what the run's processes share; to be called when none of them asks a model any more."""
        if self.run_name:
            shutil.rmtree(self._connections, ignore_errors=True)

    @property
    def _connections(self) -> Path:
        return self.settings.results / "runs" / f"{self.run_name}.connections"

    def shown(self, path: Path) -> str:
        """Return a path as short as it can be written from where pytest was started."""
        relative = os.path.relpath(path, self.config.invocation_params.dir)
        return str(path) if relative.startswith("..") else relative

    def output_of(self, record: RoundRecord) -> Path:
        """Return where the output of a round's suite was written."""
        return self.attempt_directory(record.task, record.agent, record.attempt).verifier_output(record.round)

    @property
    def shows_all(self) -> bool:
        """Whether long texts and lists are printed whole."""
        return self.config.get_verbosity() >= _SHOW_ALL

    def describe_failure(self, record: RoundRecord) -> str:
        """Return the report of a failed round."""
        from pytest_evocode.report.failures import describe_failure

        output = None if self.settings.case or self.settings.warm else self.output_of(record)
        return describe_failure(record, output, whole=self.shows_all)

    def describe_slots(self) -> str:
        """Return how busy the session's suites kept the slots that they had; empty where none was run."""
        from pytest_evocode.report.benchmark import slots_line

        # As many as VerifierSlots has, without what it imports: xdist's controller needs none of that.
        slots = self.settings.verifiers or os.cpu_count() or 1
        return slots_line(self.records, slots, time.monotonic() - self._begun_at)

    def select(self, selected: Selected) -> str:
        """Note the attempts that are to be made, in all shards, and return what to tell of a run that is resumed.

        Raises pytest.UsageError where none can be.
        """
        self.selected = selected
        try:
            agents = {agent.id: agent.description for agent in self.roster.agents}
            times = self.expected_seconds.digest if self.expected_seconds is not None else None
            return self.run.select(selected, agents, times) if self.run is not None else ""
        except (UsageError, StorageFault) as error:
            option = "--evocode-resume" if self.settings.resume is not None else "evocode_storage"
            raise pytest.UsageError(f"{option}: {error}") from None

    # Records.

    def write_run(self, exit_status: int) -> None:
        """Write the run's record, where there is one, as the session ends with this status."""
        if self.run is None:
            return
        records = self.records
        # An attempt that could not go on is as it was, for a session that can.
        refused = any(each.outcome == "error" and each.unscored == "unfinished" for each in records)
        self.run.write(records, self.begun, exit_status, interrupted=self.interrupted or refused)

    @property
    def snapshots_elsewhere(self) -> int:
        """How many attempts could not go on, because the snapshots that they need are not on this machine."""
        left = [each for each in self.records if each.outcome == "error" and each.unscored == "unfinished"]
        if not left:
            return 0
        from pytest_evocode.trial.log import SNAPSHOT_ELSEWHERE

        return len({(each.task, each.agent, each.attempt) for each in left if SNAPSHOT_ELSEWHERE in each.cause})

    @property
    def records(self) -> list[RoundRecord]:
        """The rounds reported so far, in the process that reports; in an order that does not depend on workers.

        These have the numbers of their cases in place of the cases. Where a run is recorded, the other selected rounds
        follow, those of attempts included that were never begun: the same counts that ``evocode results`` counts.
        """
        found = {RoundPlace.of(each): each for each in self.rounds.without_cases()}
        is_recorded = self.run is not None and self.run.is_used  # Else the session was refused.
        for place, record in not_reached(self.selected, found, never_begun=is_recorded).items():
            directory = self.attempt_directory(record.task, record.agent, record.attempt)
            found[place] = record if self.run is None else as_recorded(directory, record)
        if self.config.pluginmanager.hasplugin("dsession") or self.elsewhere is not None:
            found = dict(sorted(found.items()))
        records = list(found.values())
        return broken_off(records, self.attempt_directory) if self.interrupted and self.run is not None else records

    @property
    def begun(self) -> list[tuple[str, str, int]]:
        """Task, agent and number of each attempt of which a round was reported."""
        return list(dict.fromkeys((each.task, each.agent, each.attempt) for each in self.rounds.places()))

    @property
    def flaky_rounds(self) -> list[FlakyRound]:
        """The rounds whose verdict is not always the same, ordered by task, agent and round."""
        from pytest_evocode.metrics.flaky import flaky_rounds

        by_round = defaultdict(list)
        for record in self.records:
            by_round[record.task, record.agent, record.index].append(record)
        # Only what is compared case by case has its cases, and one round of a task after the other.
        deterministic = self.roster.deterministic if by_round else frozenset[str]()
        found = []
        for (_, agent, _), records in sorted(by_round.items()):
            are_compared = agent in deterministic and len(records) > 1
            found += flaky_rounds(map(self.with_cases, records) if are_compared else records, deterministic)
        return found

    def with_cases(self, record: RoundRecord) -> RoundRecord:
        """Return one of :attr:`records` with its cases."""
        return self.rounds.whole(RoundPlace.of(record)) or record


def not_reached(
    selected: Selected, reported: Collection[RoundPlace], *, never_begun: bool
) -> dict[RoundPlace, RoundRecord]:
    """Return records of the selected rounds that this session's attempts have not reached.

    Args:
        selected: The attempts that are to be made, those of other shards too, which are left out.
        reported: The rounds that were reported.
        never_begun: Whether attempts count of which no round was reported.
    """
    begun = {(task, agent, number) for task, agent, number, _ in reported}
    found: dict[RoundPlace, RoundRecord] = {}
    for each in selected:
        of_attempt = each.task, each.agent, each.number
        is_begun = of_attempt in begun
        if not is_begun and (each.elsewhere or not never_begun):
            continue
        for index in each.rounds:
            place = RoundPlace(*of_attempt, index)
            # What an oracle that begins at a known state leaves out was not needed.
            before = place._replace(round_index=index - 1)
            is_needed = each.single or not is_begun or before in reported or before in found
            if is_needed and place not in reported:
                found[place] = _stand_in(each, index)
    return found


def as_recorded(directory: AttemptDirectory, record: RoundRecord) -> RoundRecord:
    """Return what an attempt's directory has of a round that was not reported, else ``record``.

    A worker may have written a round that the session was stopped before it heard of.
    """
    with contextlib.suppress(RecordFault):  # A damaged one is one that is not there.
        return directory.read_rounds([record.round]).get(record.round, record)
    return record


def broken_off(
    records: Sequence[RoundRecord], directory_of: Callable[[str, str, int], AttemptDirectory]
) -> list[RoundRecord]:
    """Return the records of an interrupted session; those of attempts without an end say that no score counts them.

    An attempt that has left nothing never started. What a turn used is added as far as its trajectory tells.
    """
    from pytest_evocode.environments.task_environment import STOPPED
    from pytest_evocode.results.loading import usage_of_turn

    states: dict[tuple[str, str, int], Unscored] = {}
    for record in records:
        key = record.task, record.agent, record.attempt
        if record.outcome == "not reached" and record.cause == STOPPED and key not in states:
            states[key] = "unfinished" if directory_of(*key).path.is_dir() else "never started"
    found = []
    for record in records:
        key = record.task, record.agent, record.attempt
        if key in states and record.unscored is None:
            usage = record.usage
            if usage is None and record.outcome == "not reached":
                usage = usage_of_turn(directory_of(*key).path, record.round)
            record = record.model_copy(update={"unscored": states[key], "usage": usage})
        found.append(record)
    return found


def given_up(
    task: Task,
    agent: str,
    number: int,
    directory: AttemptDirectory,
    indices: Iterable[int],
    why: str,
    brings_along: Callable[[int], bool],
) -> Iterator[RoundRecord]:
    """Yield records of the rounds of an attempt that nobody will run.

    Those that were recorded stay. Of the others the first is an error, as a round is in which an attempt breaks off,
    and the rest is not reached.
    """
    outcome: Literal["error", "not reached"] = "error"
    for index in indices:
        record = RoundRecord(
            task=task.name,
            agent=agent,
            attempt=number,
            round=task.rounds[index - 1].name,
            index=index,
            declared_rounds=len(task.rounds),
            outcome=outcome,
            cause=f"not run: {why}",
            fault="infrastructure" if outcome == "error" else None,
            brought_along=brings_along(index),
        )
        found = as_recorded(directory, record)
        yield found
        outcome = "not reached" if found is record else outcome


def _stand_in(attempt: SelectedAttempt, index: int) -> RoundRecord:
    """Return the record of a round that was not reached."""
    return RoundRecord(
        task=attempt.task,
        agent=attempt.agent,
        attempt=attempt.number,
        round=attempt.declared[index - 1],
        index=index,
        declared_rounds=len(attempt.declared),
        outcome="not reached",
        cause="the session was stopped",
        brought_along=index in attempt.brought_along,
    )


_SESSION = pytest.StashKey[EvocodeSession]()


def start_session(config: pytest.Config) -> EvocodeSession:
    """Make the session of a configuration, for :func:`session_of` to find."""
    config.stash[_SESSION] = session = EvocodeSession(config)
    return session


def session_of(config: pytest.Config) -> EvocodeSession:
    """Return the session that belongs to a configuration; KeyError where it runs no tasks."""
    return config.stash[_SESSION]
