"""Merging of the results of several machines into one results directory."""

from __future__ import annotations

import filecmp
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, count
from pathlib import Path

from pytest_evocode.errors import UsageError
from pytest_evocode.results.directory import read_run, write_run
from pytest_evocode.results.harbor_files import write_jobs
from pytest_evocode.results.loading import Results, StoredAttempt, StoredRun


def merge(sources: Sequence[Results], out: Path, scored_with: Callable[[StoredAttempt], object]) -> list[Path]:
    """Copy all attempts and runs into a new directory, and return the attempts that were left out.

    An attempt that is partial is left out where another source has it whole, and one that was broken off where another
    has it finished. Where different agents of one name would lie in one place, because their sessions began in the same
    second, the later source's run gets a number behind its name. The directory is written whole or not at all.

    Args:
        sources: What is to be merged.
        out: The new directory.
        scored_with: Returns the same for attempts that are scored together, such as those of one agent.

    Raises:
        UsageError: Two sources have different attempts of the same number, of one agent at one task; or ``out`` is not
            empty, or cannot be written.
    """
    require_new(out)
    chosen, left_out = _choose(sources, scored_with)
    names = _run_names(chosen, scored_with)
    out.parent.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=f".{out.name}.", dir=out.parent))
    try:
        for number, attempt in chosen:
            shutil.copytree(attempt.path, work / _place(attempt, names[number, attempt.run]), symlinks=True)
        for number, source in enumerate(sources):
            _copy_runs(source.runs, {run: name for (of, run), name in names.items() if of == number}, work)
        for path in sorted((work / "runs").glob("*.json")):
            write_jobs(work, read_run(path))
        os.chmod(work, 0o755)
        os.rename(work, out)
    except BaseException as error:
        shutil.rmtree(work, ignore_errors=True)
        if isinstance(error, OSError | shutil.Error):
            raise UsageError(f"{out} could not be written: {error}") from None
        raise
    return left_out


def require_new(out: Path) -> None:
    """Raise UsageError for a directory that has something in it, or a file."""
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UsageError(f"{out} is not empty; name a directory that does not exist yet")


def missing_shards(runs: Iterable[StoredRun]) -> list[tuple[int, int]]:
    """Return (shard, number of shards) for each shard without a run, where another of that number has one.

    >>> missing_shards([])
    []
    """
    found: dict[int, set[int]] = defaultdict(set)
    for run in runs:
        if run.record.shard is not None:
            number, of = run.record.shard
            found[of].add(number)
    return [(number, of) for of in sorted(found) for number in range(1, of + 1) if number not in found[of]]


def _choose(
    sources: Sequence[Results], scored_with: Callable[[StoredAttempt], object]
) -> tuple[list[tuple[int, StoredAttempt]], list[Path]]:
    """Return the attempts to copy, each with the number of its source, and those to leave out."""
    by_identity: dict[object, dict[int, list[StoredAttempt]]] = defaultdict(lambda: defaultdict(list))
    for number, source in enumerate(sources):
        for attempt in source.attempts:
            record = attempt.record
            key = scored_with(attempt), record.task, record.mode, record.from_round, record.attempt
            by_identity[key][number].append(attempt)
    chosen: list[tuple[int, StoredAttempt]] = []
    left_out: list[Path] = []
    conflicts: list[tuple[StoredAttempt, StoredAttempt]] = []
    for of_sources in by_identity.values():
        whole = [each for each in of_sources.values() if not all(attempt.partial for attempt in each)]
        keep = whole or list(of_sources.values())
        keep = [each for each in keep if any(attempt.finished for attempt in each)] or keep
        first, *others = keep
        conflicts += [(first[0], other[0]) for other in others if not _same(first, other)]
        number = next(number for number, each in of_sources.items() if each is first)
        chosen += [(number, attempt) for attempt in first]
        left_out += [attempt.path for each in of_sources.values() if each not in keep for attempt in each]
    if conflicts:
        raise UsageError(_conflicts(conflicts))
    return chosen, left_out


def _run_names(
    chosen: Iterable[tuple[int, StoredAttempt]], scored_with: Callable[[StoredAttempt], object]
) -> dict[tuple[int, str], str]:
    """Return what to call the run of each source, by its number and name, so that no attempt takes another's place."""
    by_run: dict[tuple[int, str], list[StoredAttempt]] = defaultdict(list)
    for number, attempt in chosen:
        by_run[number, attempt.run].append(attempt)
    taken: dict[Path, StoredAttempt] = {}
    names: dict[tuple[int, str], str] = {}
    conflicts = []
    for (source, run), attempts in sorted(by_run.items(), key=lambda each: each[0]):
        both = [(taken[_place(each, run)], each) for each in attempts if _place(each, run) in taken]
        conflicts += [pair for pair in both if scored_with(pair[0]) == scored_with(pair[1])]
        further = (f"{run}-{number}" for number in count(2))
        free = (name for name in chain([run], further) if all(_place(each, name) not in taken for each in attempts))
        names[source, run] = name = next(free)
        taken |= {_place(each, name): each for each in attempts}
    if conflicts:
        raise UsageError(_conflicts(conflicts))
    return names


def _same(first: Sequence[StoredAttempt], second: Sequence[StoredAttempt]) -> bool:
    """Return whether two attempts are copies of one."""
    ones, others = ({_place(each, each.run): each for each in attempts} for attempts in (first, second))
    if ones.keys() != others.keys():
        return False
    pairs = ((each, others[place]) for place, each in ones.items())
    return all(a.finished == b.finished and a.record == b.record for a, b in pairs)


def _same_file(first: Path, second: Path) -> bool:
    try:
        return filecmp.cmp(first, second, shallow=False)
    except OSError:
        return False


def _conflicts(pairs: Sequence[tuple[StoredAttempt, StoredAttempt]]) -> str:
    lines = [
        f"attempt {first.record.attempt} of {first.record.agent} at {first.record.task}: {first.path} and {second.path}"
        for first, second in pairs
    ]
    shown = "\n  ".join([*lines[:20], *([f"and {len(lines) - 20} more"] if len(lines) > 20 else [])])
    return (
        "the same attempts are there twice; leave one directory out, or give every job its share with "
        f"--evocode-shard:\n  {shown}"
    )


def _place(attempt: StoredAttempt, run: str) -> Path:
    """Return where an attempt of a run belongs, relative to a results directory."""
    record = attempt.record
    return Path(record.task, "harbor_jobs", record.agent, run, attempt.path.name)


def _copy_runs(runs: Sequence[StoredRun], names: Mapping[str, str], results: Path) -> None:
    """Copy the records of a source's runs; where two of one name differ, the later file gets a number behind it."""
    for run in runs:
        name = names.get(run.record.run, run.record.run)
        if name != run.record.run:
            write_run(results, run.record.model_copy(update={"run": name}))
            continue
        out = results / "runs"
        out.mkdir(exist_ok=True)
        target = out / run.path.name
        number = 2
        while target.exists() and not _same_file(target, run.path):
            target = out / f"{run.path.stem}-{number}.json"
            number += 1
        shutil.copy2(run.path, target)
