"""The results directory: reads and writes it in Harbor's layout, each file whole or not at all."""

from __future__ import annotations

import contextlib
import fcntl
import gzip
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from secrets import randbelow
from typing import Any

from pydantic import BaseModel, TypeAdapter, ValidationError
from pydantic_core import from_json

from pytest_evocode.errors import DamagedRecord, RecordFault, UsageError, describe_validation
from pytest_evocode.results.cases import with_summary
from pytest_evocode.results.harbor_files import trial_fields
from pytest_evocode.results.parsing import Record, parse_object, read_record
from pytest_evocode.results.plain_files import open_plain
from pytest_evocode.results.records import (
    RECORD_VERSION,
    AttemptRecord,
    AttemptState,
    Case,
    ChangedPaths,
    ChangesFile,
    Mode,
    RoundRecord,
    RunRecord,
    SnapshotFile,
)
from pytest_evocode.results.rewards import write_reward
from pytest_evocode.results.scrubbing import scrub_tree, scrubbed
from pytest_evocode.secrets import Scrubber
from pytest_evocode.tasks.atomic_write import replacing, write_atomically

#: The state of an unfinished attempt; no session removes a snapshot that it mentions.
STATE_FILE = "state.json"
#: What was paid for in a turn that has not ended.
JOURNAL_FILE = "journal.jsonl"
#: Where the workspace after a round is kept; no session removes a snapshot that it mentions.
SNAPSHOT_FILE = "snapshot.json"
SUITE_LOGS = "logs"  # Beside the output of a round's suite: what it left in /logs/verifier, as it wrote it.
STAMP = "%Y-%m-%d__%H-%M-%S"
"""The time that a run's name begins with."""


def now() -> str:
    """Return the present time as records hold it: ISO 8601 with the offset from UTC, to the millisecond."""
    return datetime.now(UTC).astimezone().isoformat(timespec="milliseconds")


def _as_json(
    record: BaseModel, behind: Mapping[str, object] | None = None, *, nulls: bool = True, **more: object
) -> str:
    # Not pydantic's own writer, which refuses half a surrogate pair; programs and models print some now and then.
    values = {**more, **record.model_dump(mode="json", exclude_none=not nulls), **(behind or {})}
    return json.dumps(values, indent=1, ensure_ascii=False) + "\n"


@dataclass(frozen=True, slots=True)
class AttemptDirectory:
    """The files of one attempt: ``<task>/harbor_jobs/<agent>/<run>/<task>__a<attempt>`` below a results directory.

    The host's secrets are taken out of all that is written and out of the artifacts, see :mod:`pytest_evocode.secrets`;
    only the record of a round has to come without them.
    """

    path: Path
    scrubber: Scrubber = field(default_factory=Scrubber, compare=False)
    only_round: str = ""
    """In single-round mode, the name of the round that this object is about; empty where it is about all rounds."""

    @classmethod
    def of(
        cls,
        results: Path,
        task: str,
        agent: str,
        run: str,
        attempt: int,
        scrubber: Scrubber | None = None,
        *,
        only_round: str = "",
    ) -> AttemptDirectory:
        """Return the directory of one attempt of a run.

        Without a scrubber it gets one that knows the secrets of the process's environment.
        """
        path = results / task / "harbor_jobs" / agent / run / f"{task}__a{attempt}"
        return cls(path, scrubber or Scrubber(), only_round)

    @property
    def state_directory(self) -> Path:
        """The directory that :data:`STATE_FILE` is in."""
        return self.path / "steps" / self.only_round if self.only_round else self.path

    def artifacts(self, round_name: str) -> Path:
        """Return the directory for the artifacts of a round."""
        return self.path / "steps" / round_name / "artifacts"

    def services(self, round_name: str) -> Path:
        """Return the directory for what the services of a compose file were like after a turn."""
        return self.path / "steps" / round_name / "services"

    def gathered_artifacts(self, round_name: str) -> Path:
        """Return the directory in which the artifacts of a round are gathered, until no secret is in them."""
        return self.artifacts(round_name).with_name(".artifacts")

    def verifier_output(self, round_name: str) -> Path:
        """Return the file with the output of a round's suite."""
        return self.path / "steps" / round_name / "verifier" / "test-stdout.txt"

    def cases(self, round_name: str) -> Path:
        """Return the file with the cases of a round."""
        return self.path / "steps" / round_name / "verifier" / "cases.json"

    def journal(self, round_name: str) -> Path:
        """Return the file in which a turn that costs money is noted as long as it lasts."""
        return self.path / "steps" / round_name / "agent" / JOURNAL_FILE

    @property
    def session(self) -> str:
        """The attempt's name in trajectories: agent, run, task and number, and in single-round mode the round."""
        return "/".join((*self.path.parts[-3:], *([self.only_round] if self.only_round else [])))

    def write_round(self, record: RoundRecord, *, output: str | None, done: bool) -> None:
        """Write the record of a round, its cases, its reward and its suite's output.

        Args:
            record: The round's record, without secrets.
            output: What the suite printed; None leaves the file as it is.
            done: Whether the round counts as done, so that a session that resumes the attempt does not run it again.

        Raises:
            OSError: Something could not be written.
        """
        step = self.path / "steps" / record.round
        # First, so that secrets in them are on disk for as short a time as possible.
        for tree in (self.artifacts(record.round), self.verifier_output(record.round).with_name(SUITE_LOGS)):
            scrub_tree(tree, self.scrubber)
        verdict = record.verdict
        if output is not None:
            text = with_summary(self.scrubber.text(output), verdict.cases if verdict else ())
            write_atomically(self.verifier_output(record.round), text)
        if verdict is not None:
            cases = [case.model_dump(exclude_defaults=True) for case in verdict.cases]
            write_atomically(self.cases(record.round), json.dumps(cases, indent=1) + "\n")
            # After the cases, because Harbor's tools take it for the whole verdict as soon as it is there.
            write_reward(step / "verifier", verdict, passed=record.passed)
        # Last, because a session that resumes the attempt does not run a round again that has this file.
        if done:
            write_atomically(step / "round.json", _as_json(record, version=RECORD_VERSION))

    def read_rounds(self, names: Iterable[str]) -> dict[str, RoundRecord]:
        """Return the records of those of the rounds that are done, by their names; raises RecordFault."""
        found = ((name, _read_if_there(RoundRecord, self.path / "steps" / name / "round.json")) for name in names)
        return {name: record for name, record in found if record is not None}

    def recover_rounds(self, names: Iterable[str]) -> tuple[dict[str, RoundRecord], dict[str, str]]:
        """Return the records of those of the rounds that are done, and what is wrong with damaged ones, by their names.

        A damaged file is set aside as ``round.json.damaged``. Raises RecordFault for one that is not damaged and cannot
        be read, and OSError.
        """
        done: dict[str, RoundRecord] = {}
        damaged: dict[str, str] = {}
        for name in names:
            # What a killed session gathered there may hold secrets, and is not gathered again if the round is done.
            shutil.rmtree(self.gathered_artifacts(name), ignore_errors=True)
            try:
                done |= self.read_rounds([name])
            except DamagedRecord as error:
                path = self.path / "steps" / name / "round.json"
                aside = path.with_name("round.json.damaged")
                os.replace(path, aside)
                damaged[name] = f"{error} (now {aside.name})"
        return done, damaged

    def write_snapshot(self, round_name: str, kept: SnapshotFile) -> None:
        """Write where the workspace is kept that a round was left with."""
        write_atomically(self.path / "steps" / round_name / SNAPSHOT_FILE, _as_json(kept))

    def read_snapshot(self, round_name: str) -> SnapshotFile | None:
        """Return what :meth:`write_snapshot` wrote, or None where no workspace is kept; raises RecordFault."""
        return _read_if_there(SnapshotFile, self.path / "steps" / round_name / SNAPSHOT_FILE)

    def set_aside(self) -> Path:
        """Copy the verdicts of all rounds to ``earlier/<n>``, n from 1, and return that directory.

        Raises:
            OSError: The copy cannot be made, and there is nothing left of it.
        """
        earlier = self.path / "earlier"
        earlier.mkdir(exist_ok=True)
        numbers = [int(path.name) for path in earlier.iterdir() if path.name.isdecimal()]
        target = earlier / str(max(numbers, default=0) + 1)
        with tempfile.TemporaryDirectory(prefix=".", dir=earlier) as work:
            copy = Path(work, "copy")
            copy.mkdir()
            shutil.copy2(self.path / "result.json", copy)
            for step in (self.path / "steps").iterdir():
                if (step / "verifier").is_dir():
                    shutil.copytree(step / "verifier", copy / "steps" / step.name / "verifier", symlinks=True)
                if (step / "round.json").is_file():
                    shutil.copy2(step / "round.json", copy / "steps" / step.name)
            os.rename(copy, target)
        return target

    def write_trajectory(self, round_name: str, trajectory: BaseModel) -> None:
        """Write the trajectory of a round's turn, in ATIF."""
        # Other readers of ATIF accept an absent list and fail for null.
        path = self.path / "steps" / round_name / "agent" / "trajectory.json"
        write_atomically(path, _as_json(scrubbed(trajectory, self.scrubber), nulls=False))

    def write_image(self, round_name: str, name: str, data: bytes) -> str:
        """Write an image that an agent saw, and return its path from the trajectory's directory."""
        path = self.path / "steps" / round_name / "agent" / "images" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return f"images/{name}"

    @contextlib.contextmanager
    def composing(self) -> Iterator[AttemptRecord | None]:
        """Lock ``result.json`` and yield what it has of other rounds, for :meth:`write_attempt` to add to.

        In single-round mode several processes write the record of one attempt, a round each. Yields None where there is
        no record yet, and without a lock in the other modes.

        Raises:
            RecordFault: The record that is there cannot be read.
            OSError: The directory cannot be made or locked.
        """
        if not self.only_round:
            yield None
            return
        self.path.mkdir(parents=True, exist_ok=True)
        # Not filelock, which would leave a lock file among the results.
        directory = os.open(self.path, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            yield _read_if_there(AttemptRecord, self.path / "result.json")
        finally:
            os.close(directory)

    def write_attempt(self, record: AttemptRecord) -> None:
        """Write ``result.json``: counts in place of the cases, and what Harbor's programs look for."""
        record = record.model_copy(update={"rounds": tuple(round_.without_cases() for round_ in record.rounds)})
        record = scrubbed(record, self.scrubber)
        write_atomically(self.path / "result.json", _as_json(record, trial_fields(record, self.path)))

    def reopen(self) -> None:
        """Remove an earlier session's ``result.json``: the attempt goes on. That of single rounds has others, too."""
        if not self.only_round:
            (self.path / "result.json").unlink(missing_ok=True)

    def read_attempt(self) -> AttemptRecord | None:
        """Return the record of an attempt that has ended, with all cases, or None; raises RecordFault."""
        record = _read_if_there(AttemptRecord, self.path / "result.json")
        if record is None:
            return None
        rounds = (round_ for round_ in record.rounds if self.only_round in ("", round_.round))
        return record.model_copy(update={"rounds": tuple(map(self.with_cases, rounds))})

    def with_cases(self, record: RoundRecord, known: dict[tuple[Any, ...], Case] | None = None) -> RoundRecord:
        """Return a round of ``result.json`` with its cases, which lie in a file of their own.

        A round stays as it is where that file is gone, or where its suite gave the number of cases only. With a table
        of ``known`` cases those that say the same in several rounds are made once, which saves most of the time.

        Raises:
            RecordFault: The file does not hold cases.
        """
        verdict = record.verdict
        if verdict is None or not record.lacks_cases:
            return record
        path = self.cases(record.round)
        try:
            with open_plain(path, within=self.path) as file:
                data = file.read()
            cases = _CASES.validate_json(data) if known is None else _known_cases(data, known)
        except FileNotFoundError:
            return record
        except (OSError, ValidationError) as error:
            why = describe_validation(error) if isinstance(error, ValidationError) else error.strerror
            raise RecordFault(
                f"{path}: it does not hold cases ({why}); remove it, and their number alone is known"
            ) from None
        return record.model_copy(update={"verdict": verdict.model_copy(update={"cases": cases, "counts": None})})

    def with_all_cases(self, record: AttemptRecord) -> tuple[AttemptRecord, list[str]]:
        """Return an attempt with the cases of its rounds, and what could not be read."""
        known: dict[tuple[Any, ...], Case] = {}
        rounds, problems = [], []
        for round_ in record.rounds:
            try:
                rounds.append(self.with_cases(round_, known))
            except RecordFault as error:
                problems.append(str(error))
                rounds.append(round_)
        return record.model_copy(update={"rounds": tuple(rounds)}), problems

    def read_state(self) -> AttemptState | None:
        """Return the state of an attempt that was broken off, or None where there is none; raises RecordFault."""
        return _read_if_there(AttemptState, self.state_directory / STATE_FILE)

    def write_state(self, state: AttemptState | None) -> None:
        """Write ``state.json``; None removes it."""
        if state is not None:
            write_atomically(self.state_directory / STATE_FILE, _as_json(scrubbed(state, self.scrubber)))
        else:
            with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                (self.state_directory / STATE_FILE).unlink()


_CASES = TypeAdapter(tuple[Case, ...])


def _known_cases(data: bytes, known: dict[tuple[Any, ...], Case]) -> tuple[Case, ...]:
    """Return the cases in a file, those from ``known`` that are there, and add to it those that passed."""
    found = []
    try:
        for values in from_json(data, cache_strings="all"):
            key = (*values, *values.values())
            if (case := known.get(key)) is None:
                case = Case.model_validate(values)
                # Others would only take memory: what fails says something else each time.
                if case.status == "passed":
                    known[key] = case
            found.append(case)
    except (AttributeError, TypeError, ValueError):
        return _CASES.validate_json(data)  # It says what is wrong.
    return tuple(found)


def _read(kind: type[Record], path: Path, *, cases: bool = True) -> Record:
    try:
        return read_record(kind, parse_object(path.read_bytes()), cases=cases)
    except RecordFault as error:
        raise type(error)(f"{path}: {error}") from None
    except FileNotFoundError:
        raise
    except OSError as error:
        raise RecordFault(f"{path}: it cannot be read: {error.strerror}") from None


def _read_if_there(kind: type[Record], path: Path) -> Record | None:
    try:
        return _read(kind, path)
    except FileNotFoundError:
        return None


def last_seconds(results: Path, task: str, agent: str, mode: Mode = "chain", only_round: str = "") -> float | None:
    """Return how long, in seconds, the newest complete attempt of an agent at a task took, or None where there is none.

    Args:
        results: The results directory.
        task: The task's name.
        agent: The agent's id.
        mode: Attempts in other modes are passed over.
        only_round: In single-round mode, the round whose time is asked for.
    """
    runs = results / task / "harbor_jobs" / agent
    for record in sorted(runs.glob("*/*/result.json"), reverse=True):
        with contextlib.suppress(OSError, RecordFault, ValueError):
            attempt = _read(AttemptRecord, record, cases=False)
            if attempt.mode != mode:
                continue
            for round_ in attempt.rounds if only_round else ():
                if round_.round == only_round and round_.agent_seconds is not None:
                    return round_.agent_seconds + (round_.verifier_seconds or 0.0)
            if not only_round and len(attempt.rounds) == len(attempt.declared_rounds):
                begun, ended = map(datetime.fromisoformat, (attempt.started, attempt.finished))
                return (ended - begun).total_seconds()
    return None


def claim_run(results: Path, record: RunRecord) -> RunRecord:
    """Write a session's first record under a name that no session has, here or on another machine.

    It is its time to the microsecond and three random digits. The name is claimed by linking a complete file, so even a
    run killed at once leaves a whole record.
    """
    runs = results / "runs"
    runs.mkdir(parents=True, exist_ok=True)
    while True:
        name = f"{datetime.now().strftime(f'{STAMP}-%f')}{randbelow(1000):03}"
        named = record.model_copy(update={"run": name})
        with tempfile.NamedTemporaryFile("w", dir=runs, prefix=".claim.", encoding="utf-8", errors="replace") as file:
            file.write(_as_json(named))
            file.flush()
            os.fchmod(file.fileno(), 0o644)
            with contextlib.suppress(FileExistsError):
                os.link(file.name, runs / f"{named.run}.json")
                return named


def drop_run(results: Path, run: str, made: Iterable[Path]) -> None:
    """Remove the record that :func:`claim_run` wrote, and those of the directories ``made`` for it that are empty."""
    (results / "runs" / f"{run}.json").unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # Another session uses them by now.
        for path in made:
            path.rmdir()


def has_runs(results: Path) -> bool:
    """Tell whether there is the record of any run."""
    return any((results / "runs").glob("[!.]*.json"))


def run_names(results: Path) -> list[str]:
    """Return the names of all runs, the newest last; raises UsageError where there is none."""
    known = sorted(path.stem for path in (results / "runs").glob("[!.]*.json"))
    if not known:
        raise UsageError(f"there is no run to continue in {results}")
    return known


def reopen_run(results: Path, name: str) -> RunRecord:
    """Return the record of an earlier session that is to go on.

    Raises:
        UsageError: There is no such run, or its record cannot be read.
    """
    known = run_names(results)
    if name not in known:
        raise UsageError(f"there is no run {name} in {results}; the newest are {', '.join(known[-3:])}")
    try:
        return read_run(results / "runs" / f"{name}.json")
    except RecordFault as error:
        raise UsageError(f"no run can be continued from this record: {error}") from None


def read_run(path: Path) -> RunRecord:
    """Return the record of a session; raises RecordFault, and FileNotFoundError where there is none."""
    return _read(RunRecord, path)


def write_run(results: Path, record: RunRecord) -> None:
    """Write ``runs/<run>.json``."""
    write_atomically(results / "runs" / f"{record.run}.json", _as_json(record))


def recorded_changes(changes: ChangesFile, scrubber: Scrubber) -> ChangedPaths:
    """Return what a verdict says of changes, with the address that their file has or would have."""
    counts = {kind: len(paths) for kind, paths in changes.paths.items()}
    address = hashlib.sha256(_contents(changes, scrubber)).hexdigest() if counts else ""
    return ChangedPaths(counts=counts, address=address)


def write_changes(attempt: Path, changes: ChangesFile, scrubber: Scrubber) -> None:
    """Write the file into an attempt's directory, once for the same changes and never for none.

    Raises:
        OSError: It could not be written.
    """
    address = recorded_changes(changes, scrubber).address
    path = attempt / "changes" / f"{address}.json.gz"
    if address and not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        with replacing(path) as file:
            file.write(gzip.compress(_contents(changes, scrubber), mtime=0))


def _contents(changes: ChangesFile, scrubber: Scrubber) -> bytes:
    return scrubber.text(json.dumps(changes.model_dump(mode="json"), ensure_ascii=False, indent=0)).encode()


def remove_rounds(directory: AttemptDirectory, rounds: Iterable[str], *, keep_journals: bool) -> None:
    """Remove the files of rounds, given by their names.

    With ``keep_journals`` the replies stay that were paid for in their turns, because a later session may play these
    rounds after all. Raises OSError.
    """
    for name in rounds:
        step = directory.path / "steps" / name
        journal = directory.journal(name)
        if not step.is_dir():
            continue
        if not (keep_journals and journal.is_file()):
            shutil.rmtree(step)
            continue
        _remove_all_in(step, journal.parent)
        _remove_all_in(journal.parent, journal)
    with contextlib.suppress(OSError):
        (directory.path / "steps").rmdir()  # It stays where a round is left.


def _remove_all_in(directory: Path, but: Path) -> None:
    for path in directory.iterdir():
        if path == but:
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()


def remove_changes(directory: AttemptDirectory, but: Container[str]) -> None:
    """Remove lists of what an agent changed, all but those with an address of :class:`ChangedPaths` in ``but``.

    Raises OSError.
    """
    changes = directory.path / "changes"
    for path in changes.glob("*.json.gz"):
        if path.name.removesuffix(".json.gz") not in but:
            path.unlink()
    with contextlib.suppress(OSError):
        changes.rmdir()


# Runs as their owner keeps them: excluded from scores, tagged, removed and brought back.

TRASH = ".trash"
"""Where removed runs lie, in the results directory; names with a dot are read as no results."""


def change_run(results: Path, run: str, **update: object) -> None:
    """Change fields of a run's record; raises UsageError where there is none that can be read."""
    path = results / "runs" / f"{run}.json"
    try:
        record = read_run(path)
    except FileNotFoundError:
        raise UsageError(f"{path}: there is no such record, and only runs that have one can be changed") from None
    except RecordFault as error:
        raise UsageError(f"the run cannot be changed: {error}") from None
    write_run(results, record.model_copy(update=update))


def remove_run(results: Path, run: str) -> Path:
    """Move all that is of a run into the trash, and return where it is; raises UsageError where there is nothing."""
    trash = results / TRASH / run
    if trash.exists():
        raise UsageError(f"{trash}: a run of this name was removed before; bring it back, or delete it")
    found = _files_of(results, run)
    if not found:
        raise UsageError(f"there is no run {run} in {results}")
    for path in found:
        _move(path, trash / path.relative_to(results))
        _drop_empty(path.parent, results)
    return trash


def removed_runs(results: Path) -> list[str]:
    """Return the names of the runs in the trash, in order."""
    return sorted(path.name for path in (results / TRASH).glob("*"))


def restore_run(results: Path, run: str) -> None:
    """Bring a run back from the trash; raises UsageError where it is not there, or its place is taken."""
    trash = results / TRASH / run
    found = _files_of(trash, run)
    if not found:
        there = removed_runs(results)
        raise UsageError(f"{trash}: there is no such run{'; there are ' + ', '.join(there) if there else ''}")
    targets = [results / path.relative_to(trash) for path in found]
    if taken := [target for target in targets if target.exists()]:
        raise UsageError(f"{taken[0]}: it is there again, so the removed run stays in {trash}")
    for path, target in zip(found, targets, strict=True):
        _move(path, target)
    shutil.rmtree(trash)
    _drop_empty(results / TRASH, results)


def _files_of(directory: Path, run: str) -> list[Path]:
    """Return what is of a run: the directories of its attempts, its record, and what its processes share."""
    records = [path for path in (directory / "runs").glob("*") if path.name.startswith(f"{run}.")]
    return sorted([*directory.glob(f"[!.]*/harbor_jobs/*/{run}"), *records])


def _move(path: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    path.rename(target)


def _drop_empty(directory: Path, results: Path) -> None:
    """Remove a directory, and those above it, below the results, as far as they are empty."""
    while directory != results and not any(directory.iterdir()):
        directory.rmdir()
        directory = directory.parent
