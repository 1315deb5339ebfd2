"""Verifies recorded attempts again: today's suites on the kept snapshots, without an agent."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from pytest_evocode.environments import Engine, choose_engine
from pytest_evocode.errors import EvocodeError, RegradingRefused, describe_error
from pytest_evocode.results.directory import AttemptDirectory, now, write_changes
from pytest_evocode.results.harbor_files import write_job_of
from pytest_evocode.results.loading import StoredAttempt
from pytest_evocode.results.records import AttemptRecord, RoundRecord, SnapshotFile, task_facts
from pytest_evocode.results.rewards import trial_rewards
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks import Round, Task, load_task
from pytest_evocode.tasks.lockfile import content_hash
from pytest_evocode.trial.context import TrialContext
from pytest_evocode.trial.options import TrialOptions
from pytest_evocode.trial.reference_states import ReferenceChanges
from pytest_evocode.trial.suites.control import ControlledSuites
from pytest_evocode.trial.suites.runner import SuiteRunner
from pytest_evocode.verifier import SuiteRun, compare_cases, ended_by, judge


@dataclass(slots=True)
class Regraded:
    """What came of verifying an attempt again."""

    attempt: StoredAttempt
    before: tuple[RoundRecord, ...] = ()
    """The attempt's rounds as they were, with all cases; empty where nothing could be verified."""
    after: tuple[RoundRecord, ...] = ()
    """The rounds as they are now, in the same order."""
    verified: int = 0
    """How many rounds have a new verdict."""
    same_task: bool = False
    """Whether the task's files are what they were, so that a verdict that has changed is flaky."""
    problems: list[str] = field(default_factory=list)
    """Why the attempt, or some of its rounds, kept the verdicts that they had."""


class Regrader:
    """Verifies attempts again, with the ``tasks`` given by name, or else those in the recorded directories."""

    def __init__(self, tasks: Mapping[str, Path], environ: Mapping[str, str] = os.environ) -> None:
        self._tasks = tasks
        self._environ = environ
        self._scrubber = Scrubber(environ)
        self._engines: dict[str, Engine] = {}

    def __enter__(self) -> Regrader:
        return self

    def __exit__(self, *error: object) -> None:
        for engine in self._engines.values():
            engine.close()

    def regrade(self, attempt: StoredAttempt) -> Regraded:
        """Verify the rounds of an attempt whose states are kept, and write the new verdicts beside the old ones."""
        found = Regraded(attempt)
        try:
            self._regrade(found, AttemptDirectory(attempt.path, self._scrubber))
        except (EvocodeError, OSError) as error:
            found.problems.append(self._scrubber.text(str(error)))
        return found

    def _regrade(self, found: Regraded, directory: AttemptDirectory) -> None:
        record = directory.read_attempt()
        if record is None:
            raise RegradingRefused("it was not finished; continue it with --evocode-resume")
        snapshots = ((each.index, directory.read_snapshot(each.round)) for each in record.rounds)
        kept = {index: snapshot for index, snapshot in snapshots if snapshot is not None}
        if not kept:
            raise RegradingRefused(
                "no round's files were kept, which takes a run with --evocode-snapshots; --evocode-agent=replay:"
                f"{directory.path} plays the recorded changes again"
            )
        task = self._load(record, next(iter(kept.values())))
        found.same_task = content_hash(task.directory) == record.task_hash
        suites = self._verify(task, kept, found, is_oracle=_is_oracle(record))
        found.before, found.verified = record.rounds, len(suites)
        found.after = self._judged(task, record, kept, suites)
        if suites:
            self._write(directory, task, record, found.after, suites)

    def _load(self, record: AttemptRecord, kept: SnapshotFile) -> Task:
        task = load_task(self._tasks.get(record.task, Path(kept.task)))
        task = task.with_reward_key(record.facts.reward_key if record.facts else "")
        task = task.judged(kept.verify)
        names = tuple(round_.name for round_ in task.rounds)
        if names != record.declared_rounds:
            raise RegradingRefused(f"{task.directory} has other rounds now: {', '.join(names)}")
        if task.in_place:
            raise RegradingRefused(
                f"{task.directory} is verified in place, by what runs there, and only files are kept"
            )
        engine = self._engine(kept.environment)
        if engine.image_key(task) != kept.image:
            raise RegradingRefused(
                f"the image of {task.directory} is another one now, which its rounds were not left in"
            )
        return task

    def _engine(self, name: str) -> Engine:
        if name not in self._engines:
            self._engines[name], _ = choose_engine(name, hidden=[Path.cwd()])
        return self._engines[name]

    def _verify(
        self, task: Task, kept: Mapping[int, SnapshotFile], found: Regraded, *, is_oracle: bool
    ) -> dict[int, SuiteRun]:
        """Run the suites, several at once; those that give no verdict become problems of the attempt."""
        first = next(iter(kept.values()))
        options = TrialOptions(environ=self._environ, timeout_multiplier=first.timeout_multiplier, strict=first.strict)
        context = TrialContext.of(task, self._engine(first.environment), options)
        suites = SuiteRunner(context, ReferenceChanges(context), is_oracle=is_oracle)
        suites.prepare()
        controlled = ControlledSuites(context, suites, is_oracle=is_oracle)
        environment = context.task_environment.create()  # Never started: it is what forks are made from.

        for index in kept:
            suites.state.expect(index)

        def run(round_: Round) -> SuiteRun:
            with suites.in_turn(round_.index):
                return verify(round_)

        def verify(round_: Round) -> SuiteRun:
            context.task_environment.refuse_when_cancelled()
            snapshot = context.engine.find_snapshot(kept[round_.index].reference)
            if snapshot is None:
                raise RegradingRefused("its files are not on this machine, or were removed by evocode clean --kept")
            times = kept[round_.index].verify_times
            suite, left = controlled.run(environment, snapshot, round_, times)
            if left is not None:
                suites.let_go(left)
            return suite

        with ThreadPoolExecutor(context.slots.count, thread_name_prefix="regrade") as pool:
            begun = {index: pool.submit(run, task.rounds[index - 1]) for index in kept}
            try:
                done = self._completed(task, begun, found)
                suites.close()
                return done
            except BaseException:  # Such as Ctrl-C: the pool would wait until all suites have ended by themselves.
                context.cancelled.set()
                while not all(future.done() for future in begun.values()):
                    # Repeatedly, because a fork may have been about to start during an earlier call.
                    suites.stop()
                    time.sleep(0.05)
                suites.close()
                raise

    def _completed(self, task: Task, begun: Mapping[int, Future[SuiteRun]], found: Regraded) -> dict[int, SuiteRun]:
        """Wait for the suites of rounds, and return those with a verdict."""
        done = {}
        for index, future in begun.items():
            name = task.rounds[index - 1].name
            try:
                suite = future.result()
            except Exception as error:
                found.problems.append(f"{name}: {self._scrubber.text(describe_error(error))}")
                continue
            if suite.verdict is None and not suite.of_agent:
                found.problems.append(f"{name}: {self._scrubber.text(suite.fault)}")
            else:
                done[index] = suite
        return done

    def _judged(
        self, task: Task, record: AttemptRecord, kept: Mapping[int, SnapshotFile], suites: Mapping[int, SuiteRun]
    ) -> tuple[RoundRecord, ...]:
        """Return all rounds in order, with what the suites say of them now."""
        rounds: list[RoundRecord] = []
        last, alone = "", record.mode == "single-round"
        for old in record.rounds:
            new = old
            if last:
                new = _not_reached(old, last)
            elif (suite := suites.get(old.index)) is not None:
                # Each single round begins where the solutions of those before lead, as the first of a chain may.
                before = [] if alone else list(rounds)
                new = self._judge(task, old, kept[old.index], suite, before, _is_oracle(record))
            rounds.append(new)
            if not alone and new.verdict is not None and ended_by(task.rounds[old.index - 1], new, record.mode):
                last = old.round
        return tuple(rounds)

    def _judge(
        self,
        task: Task,
        old: RoundRecord,
        kept: SnapshotFile,
        suite: SuiteRun,
        earlier: list[RoundRecord],
        is_oracle: bool,
    ) -> RoundRecord:
        record = judge(
            task.rounds[old.index - 1],
            old,
            suite,
            agent_timed_out=old.timed_out == "agent",
            timeout_multiplier=kept.timeout_multiplier,
            strict=kept.strict,
            is_oracle=is_oracle,
        )
        held = [each.name for each in task.rounds if each.index < min((old.index, *(one.index for one in earlier)))]
        return compare_cases(scrubbed(record, self._scrubber), earlier, held)

    def _write(
        self,
        directory: AttemptDirectory,
        task: Task,
        record: AttemptRecord,
        rounds: tuple[RoundRecord, ...],
        suites: Mapping[int, SuiteRun],
    ) -> None:
        """Write the new verdicts, after the old ones were set aside."""
        directory.set_aside()
        for round_ in rounds:
            if (suite := suites.get(round_.index)) is not None:
                if suite.changes is not None:
                    write_changes(directory.path, suite.changes, self._scrubber)
                directory.write_round(round_, output=suite.output, done=True)
        begun = record.declared_rounds.index(record.from_round) if record.from_round in record.declared_rounds else 0
        changes = {
            "rounds": rounds,
            "rewards": trial_rewards(rounds, range(begun + 1, len(task.rounds) + 1), task.reward_strategy),
            "task_hash": content_hash(task.directory),
            "facts": task_facts(task),
            "regraded": now(),
        }
        directory.write_attempt(record.model_copy(update=changes))
        write_job_of(directory.path)


def _is_oracle(record: AttemptRecord) -> bool:
    return record.made_by.get("spec") == "oracle"


def _not_reached(record: RoundRecord, by: str) -> RoundRecord:
    if record.outcome == "not reached":
        return record
    cause = f"{by} would have ended the attempt, verified again"
    return record.model_copy(update={"outcome": "not reached", "cause": cause, "verdict": None, "fault": None})
