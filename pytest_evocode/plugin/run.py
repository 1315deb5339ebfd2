"""A session's run: its name in the results directory, and the record of it there."""

from __future__ import annotations

import contextlib
import logging
import platform
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from pytest_evocode.errors import RecordFault, StorageFault, UsageError
from pytest_evocode.plugin.options import AUTO, LATEST
from pytest_evocode.plugin.settings import Settings
from pytest_evocode.report.tables import join_first
from pytest_evocode.results import directory
from pytest_evocode.results.harbor_files import write_jobs
from pytest_evocode.results.identity import differing_settings
from pytest_evocode.results.records import RECORD_VERSION, RoundRecord, RunRecord
from pytest_evocode.results.scrubbing import scrubbed
from pytest_evocode.results.selection import (
    RunProgress,
    SelectedAttempt,
    attempts_of,
    progress_of,
    run_to_continue,
    why_not_continued,
    with_selected,
)
from pytest_evocode.secrets import Scrubber

logger = logging.getLogger(__name__)
#: How many sessions after the first a run's record has the arguments of.
_SESSIONS = 50


class SessionRun:
    """A run whose record this process writes.

    A new run has a record from the start, so that no other session takes its name; it is removed again where nothing is
    selected. That of an earlier run is not changed until something is.
    """

    def __init__(
        self,
        config: pytest.Config,
        settings: Settings,
        scrubber: Scrubber,
        environment: str,
        versions: Mapping[str, str],
        conditions: Mapping[str, str],
    ) -> None:
        """Claim a name for a new run, or find the earlier one that is named.

        Raises:
            UsageError: The run to continue does not exist, is under way, or was begun with other options.
            OSError: The results directory cannot be written.
        """
        self._config = config
        self._settings = settings
        self._results = settings.results
        self._arguments = tuple(scrubber.text(argument) for argument in config.invocation_params.args)
        self._environment = environment
        self._versions = _versions(versions)
        self._conditions = dict(conditions)
        self._scrubber = scrubber
        self.is_used = False
        """Whether attempts were selected, so that the record says what is to be made."""
        self._is_stored = False
        self._before: RunRecord | None = None
        """The record of a run that is continued, as its earlier sessions left it."""
        self._elsewhere: frozenset[tuple[str, str, int]] = frozenset()
        """Task, agent and number of each attempt that another shard is to make."""
        self._only_reports = False
        """Whether nothing is left to be made, so that the record stays as it is."""
        self._storage = settings.open_storage()
        self.record: RunRecord | None = None
        """The record as it was last read or written; None as long as it is not known which run is to be continued."""
        name = settings.resume
        self.is_new = name is None or (name == AUTO and not directory.has_runs(self._results))
        """Whether the session begins the run; with ``auto`` it may be that only what is selected tells."""
        if name is None or self.is_new:
            self._claim()
        elif name not in (LATEST, AUTO):
            if self._storage is not None:
                self._storage.restore_run(self._results, name)
            self._take(directory.reopen_run(self._results, name))
        else:
            directory.run_names(self._results)

    @property
    def name(self) -> str:
        """The run's name in the results directory; empty as long as it is not known."""
        return self.record.run if self.record is not None else ""

    def _claim(self) -> None:
        made = [path for path in (self._results / "runs", self._results) if not path.exists()]
        begun = RunRecord(
            run="",
            started=directory.now(),
            arguments=self._arguments,
            environment=self._environment,
            versions={name: (each,) for name, each in self._versions.items()},
            mode=self._settings.mode,
            from_round=self._settings.from_round,
            fork_from=self._settings.fork_from.text if self._settings.fork_from is not None else None,
            shard=self._settings.shard,
            verify=self._settings.verify,
            strict=self._settings.strict,
            conditions=self._conditions,
        )
        self.record = record = directory.claim_run(self._results, begun)

        def drop_unused() -> None:
            if not self.is_used:
                directory.drop_run(self._results, record.run, made)

        self._config.add_cleanup(drop_unused)
        self._lock(record)

    def _take(self, run: RunRecord) -> None:
        """Continue a run, unless it was begun with other options or is under way."""
        if why := self._why_other(run):
            raise UsageError(why)
        self._lock(run)
        self.record = run

    def _why_other(self, run: RunRecord) -> str:
        """Return which other options a run was begun with; empty where they are the session's."""
        settings = self._settings
        if (run.mode, run.from_round) != (settings.mode, settings.from_round):
            begin = f" --evocode-from={run.from_round}" if run.from_round else ""
            return f"the run {run.run} was begun in another mode; continue it with --evocode-mode={run.mode}{begin}"
        for option, is_alike, value in (
            ("--evocode-fork-from", run.start == settings.start, run.fork_from and f"={run.fork_from}"),
            ("--evocode-shard", run.shard == settings.shard, run.shard and "={}/{}".format(*run.shard)),
            ("--evocode-verify", run.verify == settings.verify, run.verify and f"={run.verify}"),
            ("--evocode-strict", run.strict in (None, settings.strict), "" if run.strict else None),
        ):
            if not is_alike:
                given = f"no {option}" if value is None else f"{option}{value}"
                return f"the run {run.run} was begun with {given}; continue it with that"
        if differing := differing_settings(run.conditions, self._conditions):
            return (
                f"the run {run.run} was begun under other conditions, {join_first(differing)} now; continue it with "
                "those of its beginning"
            )
        return ""

    def _lock(self, run: RunRecord) -> None:
        from pytest_evocode.environments.cache import lock_run

        lock = lock_run(self._results, run.run)
        if lock is None:
            raise UsageError(f"the run {run.run} in {self._results} is still under way in another session")
        self._config.add_cleanup(lock.release)

    def _newest(self, selected: Sequence[SelectedAttempt], agents: Mapping[str, Mapping[str, Any]]) -> RunRecord | None:
        """Return the run to continue; None to begin a new one. Raises UsageError where that was not asked for."""

        def fits(run: RunRecord) -> bool:
            return run.environment == self._environment and not self._why_other(run)

        begins = self._settings.resume == AUTO
        found = run_to_continue(
            self._results, selected, fits, agents, only_fitting=begins, environment=self._environment
        )
        if found is not None or begins:
            return found
        run = directory.reopen_run(self._results, directory.run_names(self._results)[-1])
        self._lock(run)  # It may not have got as far as to say what it selected.
        raise UsageError(
            f"no run in {self._results} has an attempt of what is selected, {_names(selected)}; leave the option out "
            "to begin a new run, or name the run: --evocode-resume=RUN"
        )

    def select(
        self,
        selected: Sequence[SelectedAttempt],
        agents: Mapping[str, Mapping[str, Any]],
        shard_times: str | None = None,
    ) -> str:
        """Add the attempts that are to be made, and what made their ``agents``, to those of the run's earlier sessions.

        They are written at once, so that the record of a run that is killed tells what is missing. Returns what is left
        of a run that is continued, in one line, and nothing at later calls. ``shard_times`` is a hash of the times
        by which shards are made. Raises UsageError, StorageFault and OSError.
        """
        if not selected or self.is_used:
            return ""
        resuming = ""
        self._elsewhere = frozenset((each.task, each.agent, each.number) for each in selected if each.elsewhere)
        made_by = scrubbed(
            {name: dict(agents[name]) for name in sorted({each.agent for each in selected})}, self._scrubber
        )
        if self.record is None:
            found = self._newest(selected, made_by)
            self.is_new = found is None
            if found is None:
                self._claim()
            else:
                self._take(found)
        assert self.record is not None
        if self.is_new and self._settings.resume is not None:
            resuming = f"nothing to resume: no run there fits what is selected, so {self.name} begins"
        elif not self.is_new:
            resuming = self._go_on(self.record, [each for each in selected if not each.elsewhere], made_by, shard_times)
            if self._only_reports:
                return resuming
        self.is_used = True
        self.record = with_selected(self.record, selected, made_by).model_copy(
            update={"version": RECORD_VERSION, "shard_times": shard_times}
        )
        directory.write_run(self._results, self.record)
        if self._storage is not None:
            self._storage.save_run(self._results, self.record.run)
            self._is_stored = True
        return resuming

    def _go_on(
        self,
        run: RunRecord,
        selected: Sequence[SelectedAttempt],
        made_by: Mapping[str, Mapping[str, Any]],
        shard_times: str | None,
    ) -> str:
        """Begin another session of a run, and return what is left of it, in one line; see :meth:`select`.

        Where nothing is left, the record stays as it is. Raises UsageError where the session does not fit the run.
        """
        if run.shard_times not in (None, shard_times):
            raise UsageError(
                f"the shards of the run {run.run} were made by other times ({run.shard_times}, not {shard_times}), so "
                "this one would have other attempts; name the same results: --evocode-shard-times=RESULTS"
            )
        self._bring(selected)
        if why := why_not_continued(self._results, run, selected, made_by, self._environment):
            raise UsageError(why)
        found = progress_of(self._results, run, selected)
        self._before = run
        wider = with_selected(run, selected)
        is_wider = (wider.selected, wider.partial) != (run.selected, run.partial)
        if found is not None and found.ended and not is_wider and (not _is_open(run) or self._left()):
            self.is_used = self._only_reports = True
        else:
            anew = {
                "arguments": self._arguments,
                "earlier_arguments": _earlier_arguments(run),
                "environment": self._environment,
                "versions": _with_versions(run, self._versions),
            }
            self.record = run.model_copy(
                update={**anew, "finished": None, "exit_status": None, "interrupted": False, "waiting": ""}
            )
        return _resuming(run, found)

    def _bring(self, selected: Sequence[SelectedAttempt]) -> None:
        """Bring the records of attempts, for this session to say what is left; their snapshots come with the trials."""
        if self._storage is None or self._settings.mode == "single-round":
            return
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(8) as pool:
            list(pool.map(self._storage.restore, map(self._place, selected)))

    def _place(self, each: SelectedAttempt) -> directory.AttemptDirectory:
        """Return where the run keeps an attempt."""
        return directory.AttemptDirectory.of(
            self._results, each.task, each.agent, self.name, each.number, self._scrubber
        )

    def write(
        self,
        records: Sequence[RoundRecord],
        begun: Iterable[tuple[str, str, int]],
        exit_status: int,
        *,
        interrupted: bool = False,
    ) -> None:
        """Write how the run ended, with the scores of each agent; not where nothing was selected.

        Of the attempts that were ``begun`` it names the directories.
        """
        from pytest_evocode.metrics.failures import refusal_rates
        from pytest_evocode.metrics.grid import by_agent, scored, suite_facts
        from pytest_evocode.metrics.scores import RunMode

        if self.record is None or not self.is_used or self._only_reports:
            return
        before, waiting = self._before, next((record.waiting for record in records if record.waiting), "")
        if before is not None:
            records = [*records, *self._of_others(records)]
            if _is_open(before) and self._left():  # Attempts that this session was not to make, or not to the end.
                interrupted |= before.broke_off
                waiting = waiting or before.waiting
        directories = (
            directory.AttemptDirectory.of(Path(), task, agent, self.name, number).path.as_posix()
            for task, agent, number in begun
        )
        mode, suites = RunMode(self.record.mode, self.record.start), suite_facts(records)
        ended = {
            "finished": directory.now(),
            "exit_status": exit_status,
            "interrupted": interrupted,
            "refusal_rates": refusal_rates(scored(records)),
            "waiting": waiting,
            "attempts": tuple(dict.fromkeys((*self.record.attempts, *directories))),
            "scores": {
                agent: asdict(mode.scores(of_agent, suites)) for agent, of_agent in by_agent(scored(records)).items()
            },
        }
        ended_run = self.record.model_copy(update=ended)
        write_jobs(self._results, ended_run)
        directory.write_run(self._results, ended_run)
        if self._storage is not None and self._is_stored:  # Else the session has not begun, and said why.
            try:
                self._storage.save_run(self._results, self.record.run)
            except StorageFault as error:
                logger.warning("%s; it has the record that the run began with", error)

    def _left(self) -> list[directory.AttemptDirectory]:
        """Return where the attempts of the run that no session has ended are, or would be."""
        assert self.record is not None
        places = {(each.task, each.agent, each.number): self._place(each) for each in attempts_of(self.record)}
        return [
            place
            for key, place in places.items()
            if key not in self._elsewhere and not (place.path / "result.json").is_file()
        ]

    def _of_others(self, records: Sequence[RoundRecord]) -> Iterator[RoundRecord]:
        """Yield what the run has of attempts that this session was not to make, for its scores."""
        assert self.record is not None
        assert self._before is not None
        own = {(each.task, each.agent, each.attempt) for each in records}
        for each in attempts_of(self.record):
            if (each.task, each.agent, each.number) in own:
                continue
            place = self._place(each)
            with contextlib.suppress(RecordFault, OSError):  # Who reads the results is told.
                if (ended := place.read_attempt()) is not None:
                    yield from (record.without_cases() for record in ended.rounds)
                elif self._before.waiting:
                    yield from (record.without_cases() for record in place.read_rounds(each.names()).values())

    def count_unfinished(self, *, interrupted: bool) -> int:
        """Return how many attempts of the run can be continued; of an ``interrupted`` one those that never started."""
        if not self.is_used:
            return 0
        attempts = f"*/harbor_jobs/*/{self.name}/*"
        left = [
            path
            for place in ("", "steps/*/")
            for path in self._results.glob(f"{attempts}/{place}{directory.STATE_FILE}")
        ]
        # An attempt that was stopped in its first round has only the journal of what was paid for.
        paid = {path.parents[3] for path in self._results.glob(f"{attempts}/steps/*/agent/{directory.JOURNAL_FILE}")}
        begun = {parent for path in left for parent in path.parents}
        is_open = interrupted or (self._before is not None and _is_open(self._before))
        others = {place.path for place in self._left()} - begun - paid if is_open else ()
        return len(left) + len(paid - begun) + len(others)


def _is_open(run: RunRecord) -> bool:
    """Return whether attempts of a run without an end are for a later session, and no score counts them."""
    return run.broke_off or bool(run.waiting)


def _versions(of_engine: Mapping[str, str]) -> dict[str, str]:
    """Return the versions of what a session runs with, by name."""
    found = {
        "pytest-evocode": version("pytest-evocode"),
        "Python": platform.python_version(),
        "pytest": pytest.__version__,
        "platform": platform.platform(),
        **of_engine,
    }
    return {name: each for name, each in found.items() if each}


def _earlier_arguments(run: RunRecord) -> tuple[tuple[str, ...], ...]:
    """Return the arguments of all sessions of a run that is continued, as far as they are kept."""
    first, *others = (*run.earlier_arguments, run.arguments)
    return (first, *others[-_SESSIONS:])


def _with_versions(run: RunRecord, versions: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Return the versions of a run that is continued, those of the session that continues it last."""
    names = dict.fromkeys((*run.versions, *versions))
    return {
        name: tuple(dict.fromkeys((*run.versions.get(name, ()), *filter(None, [versions.get(name)])))) for name in names
    }


def _resuming(run: RunRecord, found: RunProgress | None) -> str:
    """Return what is left of a run that is continued, in one line."""
    if found is None:
        return f"resuming {run.run}: it has none of the selected attempts, so all of them begin anew"
    if not found.to_go:
        return f"resuming {run.run}: {_turns(found.kept)} kept, nothing to go; what was recorded is reported again"
    return f"resuming {run.run}: {_turns(found.kept)} kept, {found.to_go} to go"


def _turns(number: int) -> str:
    return "1 turn" if number == 1 else f"{number} turns"


def _names(selected: Sequence[SelectedAttempt]) -> str:
    return join_first(list(dict.fromkeys(f"{each.task} by {each.agent}" for each in selected)), 3)
