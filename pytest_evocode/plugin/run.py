"""The run that a session is: its name in the results directory, and the record that it leaves there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import pytest

from pytest_evocode.errors import UsageError
from pytest_evocode.plugin.options import LATEST
from pytest_evocode.plugin.settings import Settings
from pytest_evocode.results.records import RoundRecord, RunRecord
from pytest_evocode.secrets import Scrubber


class SessionRun:
    """A run of which this process writes the record."""

    def __init__(self, config: pytest.Config, settings: Settings, scrubber: Scrubber, *, environment: str) -> None:
        """Claim a name for a new run, or go on with an earlier one.

        Raises UsageError for a run that cannot be gone on with, and OSError.
        """
        from pytest_evocode.environments.cache import lock_run
        from pytest_evocode.results.directory import claim_run, now, reopen_run, write_run

        self._results = settings.results
        arguments = tuple(scrubber.text(argument) for argument in config.invocation_params.args)
        if settings.resume is None:
            begun = RunRecord(
                run="",
                started=now(),
                arguments=arguments,
                environment=environment,
                mode=settings.mode,
                from_round=settings.from_round,
                shard=settings.shard,
            )
            run = claim_run(self._results, begun)
        else:
            run = reopen_run(self._results, None if settings.resume == LATEST else settings.resume)
            if (run.mode, run.from_round) != (settings.mode, settings.from_round):
                begin = f" --evocode-from={run.from_round}" if run.from_round else ""
                raise UsageError(
                    f"the run {run.run} was begun in another mode; continue it with --evocode-mode={run.mode}{begin}"
                )
            if run.shard != settings.shard:
                shard = "--evocode-shard={}/{}".format(*run.shard) if run.shard else "no --evocode-shard"
                raise UsageError(f"the run {run.run} was begun with {shard}; continue it with that")
        lock = lock_run(self._results, run.run)
        if lock is None:
            raise UsageError(f"the run {run.run} in {self._results} is still under way in another session")
        config.add_cleanup(lock.release)
        if settings.resume is not None:
            update = {"arguments": arguments, "environment": environment, "finished": None, "exit_status": None}
            run = run.model_copy(update=update)
            write_run(self._results, run)
        self._record = run

    @property
    def record(self) -> RunRecord:
        """As it was last written."""
        return self._record

    @property
    def name(self) -> str:
        """As in the results directory."""
        return self._record.run

    def select(self, selected: Mapping[str, Mapping[str, Sequence[int]]]) -> None:
        """Write at once which attempts are to be made, by task and agent, beside those of the sessions before.

        A run that is killed then still tells what is missing of it. Raises OSError.
        """
        from pytest_evocode.results.directory import write_run

        before = self._record.selected
        both = {
            task: {
                agent: tuple(sorted({*before.get(task, {}).get(agent, ()), *selected.get(task, {}).get(agent, ())}))
                for agent in sorted({*before.get(task, {}), *selected.get(task, {})})
            }
            for task in sorted({*before, *selected})
        }
        if both != before:
            self._record = self._record.model_copy(update={"selected": both})
            write_run(self._results, self._record)

    def write(self, records: Sequence[RoundRecord], exit_status: int) -> None:
        """Write how the run ended."""
        from pytest_evocode.metrics.grid import by_agent
        from pytest_evocode.metrics.modes import RunMode
        from pytest_evocode.results.directory import AttemptDirectory, now, write_run

        attempts = {(record.task, record.agent, record.attempt): None for record in records}
        directories = (
            AttemptDirectory.of(Path(), task, agent, self.name, number).path.as_posix()
            for task, agent, number in attempts
        )
        mode = RunMode(self._record.mode, self._record.from_round)
        ended = {
            "finished": now(),
            "exit_status": exit_status,
            "attempts": tuple(directories),
            "scores": {agent: asdict(mode.scores(of_agent)) for agent, of_agent in by_agent(records).items()},
        }
        write_run(self._results, self._record.model_copy(update=ended))

    def count_unfinished(self) -> int:
        """How many attempts of the run may be continued."""
        from pytest_evocode.results.directory import JOURNAL_FILE, STATE_FILE

        attempts = f"*/harbor_jobs/*/{self.name}/*"
        left = [path for place in ("", "steps/*/") for path in self._results.glob(f"{attempts}/{place}{STATE_FILE}")]
        # One that was stopped in its first round has only what was paid for there.
        paid = {path.parents[3] for path in self._results.glob(f"{attempts}/steps/*/agent/{JOURNAL_FILE}")}
        return len(left) + len(paid.difference(parent for path in left for parent in path.parents))
