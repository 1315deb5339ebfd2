"""Runs of a results directory as their owner keeps them: excluded from scores, tagged, removed and brought back."""

from __future__ import annotations

import shutil
from pathlib import Path

from pytest_evocode.errors import RecordFault, UsageError
from pytest_evocode.results.directory import read_run, write_run

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
